"""AdelaideRMF: its labelled matches, and fresh SIFT and ORB matches on its images."""

from collections.abc import Iterator
from functools import partial

import cv2
import numpy as np
from cache import Arrays, stored
from geometry import Matrix, Points, refit, residuals
from matching import matches_of
from numpy.typing import NDArray
from problems import Problem

from ruzhash_cv.datasets import FUNDAMENTAL_SCENES, HOMOGRAPHY_SCENES, AdelaideScene, fetch_adelaidermf

# Even places of each alphabetical list are for tuning, odd ones for judging; johnsonb shares its image pair with
# johnsona and moves to its half.
TUNE = (*HOMOGRAPHY_SCENES[::2], "johnsonb", *FUNDAMENTAL_SCENES[::2])
JUDGE = (*(name for name in HOMOGRAPHY_SCENES[1::2] if name != "johnsonb"), *FUNDAMENTAL_SCENES[1::2])

TRUE_WITHIN = 5.0
"""A fresh match this close (pixels) to a labelled structure is true ..."""
FALSE_BEYOND = 15.0
"""... and this far from all of them false; between the two it does not count."""


def scene_names(half: str) -> tuple[str, ...]:
    """Scenes of the "tune" or "judge" half."""
    return TUNE if half == "tune" else JUDGE


def images_of(name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Both pictures of a scene, grey."""
    scene = fetch_adelaidermf(name)
    grey = lambda image: image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY), np.uint8)  # noqa: E731
    img1, img2 = grey(scene.img1), grey(scene.img2)
    return img1, img2


def fair(problem: Problem) -> Problem:
    """The problem; in a static scene, likely true matches off the labelled planes are not judged."""
    if problem.kind != "homography":
        return problem
    return problem.with_off_plane_unjudged(images_of(problem.name) if problem.models else None)


def labelled(half: str) -> Iterator[Problem]:
    """The 38 scenes' own matches with hand-made labels."""
    for name in scene_names(half):
        scene = fetch_adelaidermf(name)
        labels = scene.labels.astype(np.intp) + 1
        suite = f"adelaidermf {scene.kind[0].upper()}"
        judged = np.ones(len(labels), dtype=bool)
        yield fair(Problem(name, suite, scene.kind, scene.points1, scene.points2, labels, judged))


def inside_hull(points: Points, corners: Points) -> NDArray[np.bool_]:
    """Whether each point lies inside the convex hull of `corners` or on it."""
    hull = cv2.convexHull(corners.astype(np.float32))
    return np.array([cv2.pointPolygonTest(hull, (float(x), float(y)), False) >= 0 for x, y in points], dtype=bool)


def judge_fresh(
    scene: AdelaideScene, points1: Points, points2: Points
) -> tuple[NDArray[np.intp], NDArray[np.bool_], tuple[Matrix, ...]]:
    """Labels and which matches count, from models refitted to each labelled structure inside its hulls."""
    labels = np.zeros(len(points1), dtype=np.intp)
    nearest = np.full(len(points1), np.inf)
    best_true = np.full(len(points1), TRUE_WITHIN)
    models = []
    for structure in range(int(scene.labels.max()) + 1):
        own = scene.labels == structure
        model = refit(scene.kind, scene.points1[own], scene.points2[own])
        if model is None:
            continue
        models.append(model)
        error = residuals(scene.kind, model, points1, points2)
        nearest = np.minimum(nearest, error)
        inside = inside_hull(points1, scene.points1[own]) & inside_hull(points2, scene.points2[own])
        better = inside & (error < best_true)
        labels[better], best_true[better] = structure + 1, error[better]
    return labels, (labels > 0) | (nearest > FALSE_BEYOND), tuple(models)


def match_both(img1: NDArray[np.uint8], img2: NDArray[np.uint8]) -> Arrays:
    """Matches of one pair that pass the ratio test, as `sift1`, `sift2`, `orb1`, `orb2`."""
    found = {features: matches_of(img1, img2, features)[0][:, :4] for features in ("sift", "orb")}
    return {f"{features}{side + 1}": rows[:, 2 * side :][:, :2] for features, rows in found.items() for side in (0, 1)}


def fresh(half: str, features: str) -> Iterator[Problem]:
    """Fresh matches on the scenes' images ("sift", "orb"), judged against the labelled structures."""
    for name in scene_names(half):
        scene = fetch_adelaidermf(name)
        # partial, not a lambda: a closure would see the loop's last scene.
        arrays = stored(f"{name}_opencv{cv2.__version__}", partial(match_both, scene.img1, scene.img2))
        points1, points2 = arrays[f"{features}1"], arrays[f"{features}2"]
        labels, judged, models = judge_fresh(scene, points1, points2)
        suite = f"{features} on adelaidermf {scene.kind[0].upper()}"
        yield fair(Problem(name, suite, scene.kind, points1, points2, labels, judged, models))
