"""Photographs of known cameras and of a building: `posed` and `sceaux_castle` beside the photographs of `photos.py`.

The poses are those of C. Strecha, W. von Hansen, L. Van Gool, P. Fua, U. Thoennessen, "On benchmarking camera calibration and
multi-view stereo for high resolution imagery", CVPR 2008, in `strecha.npz`; SIFT, ratio test .8. `strecha_xfeat.npz` has matches of
XFeat (mutual nearest neighbours), `strecha_lighterglue.npz` XFeat's by LighterGlue. None of these is part of this repository.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import cv2
import numpy as np
from cache import Arrays, stored
from geometry import Points, homogeneous
from matching import RATIO, Image, detect, nearest
from methods import MANY, opencv
from numpy.typing import NDArray
from photos import home, photos
from pose_scenes import exact_model
from problems import Cameras, Problem

from ruzhash_cv.datasets import load_pair

N_FEATURES, FEWEST_MATCHES, RIGID_SHARE = 4000, 50, 0.6
NEAR_SUITE = "near misses, photographed"
FEWEST_EXACT = 60  # matches within a pixel of the true epipolar lines, of which a fifth are moved
TRUE_WITHIN, FALSE_BEYOND = 3.0, 10.0  # pixels; learned matches between them are not judged
STILL = ["facade", "rigid"]  # of the bundled pairs


def of_half(items: list[str], half: str) -> list[str]:
    """Even places of the sorted names tune, odd ones judge."""
    return sorted(items)[::2] if half == "tune" else sorted(items)[1::2]


def posed(half: str, per_cell: int = 1, matches: str = "strecha") -> Iterator[Problem]:
    """Pairs of calibrated cameras with surveyed poses; nothing if a file is absent. All matches are labelled true."""
    paths = [home().parent / "posed" / f"{stem}.npz" for stem in ("strecha", matches)]
    if all(path.exists() for path in paths):
        with np.load(paths[0]) as data, np.load(paths[1]) as matched:
            for name in of_half([key.removesuffix(":pose") for key in data.files if key.endswith(":pose")], half):
                rows, (K1, K2), pose = matched[f"{name}:matches"], data[f"{name}:cameras"], data[f"{name}:pose"]
                labels, points = np.ones(len(rows), np.intp), np.hsplit(rows.astype(np.float64), 2)
                cameras = Cameras(K1, K2, pose[:, :3], pose[:, 3])
                yield Problem(name, "photographed poses", "fundamental", *points, labels, labels > 0, cameras=cameras)


def line_distances(problem: Problem) -> NDArray[np.float64]:
    """The larger distance, of both images, from each point to its true epipolar line in pixels."""
    cameras = problem.cameras
    F = exact_model(cameras.K1, cameras.K2, cameras.R, cameras.t)
    x1, x2 = homogeneous(problem.points1), homogeneous(problem.points2)
    lines = x1 @ F.T, x2 @ F
    slopes = np.min([np.hypot(*line[:, :2].T) for line in lines], axis=0)
    return np.abs((x2 * lines[0]).sum(axis=1)) / slopes


def learned(matcher: str, half: str, per_cell: int = 1) -> Iterator[Problem]:
    """The surveyed pairs with matches of "xfeat" or "lighterglue": true within 3 px of the true epipolar lines, false beyond 10 px."""
    for problem in posed(half, per_cell, f"strecha_{matcher}"):
        distance = line_distances(problem)
        true, judged = distance <= TRUE_WITHIN, (distance <= TRUE_WITHIN) | (distance > FALSE_BEYOND)
        yield replace(problem, suite=f"learned, {matcher}", labels=true.astype(np.intp), judged=judged)


def near_misses(half: str, per_cell: int = 1) -> Iterator[Problem]:
    """Photographed rigid scenes: a fifth of the exact matches, true and within 1 px of a model, is moved by 6 to 20 px."""
    for problem in photos("rigid", "sift", half):
        points = problem.points1, problem.points2
        model, mask = opencv("fundamental", "USAC_MAGSAC", 1.0, *points, 0, **MANY)
        exact = mask & (problem.labels > 0)
        if model is not None and exact.sum() >= FEWEST_EXACT:
            labels = np.where(exact, 1, 0)
            yield replace(problem, suite=NEAR_SUITE, labels=labels).with_near_misses()


def features_of(image: Image) -> Arrays:
    """SIFT keypoints of a gray picture."""
    return detect(image, "sift", N_FEATURES)


def matched(first: Arrays, second: Arrays) -> tuple[Points, Points]:
    """The points of matches that pass the ratio test."""
    found = nearest(first, second, "sift")
    pairs = found.pairs[found.ratio < RATIO]
    return first["keypoints"][pairs[:, 0]], second["keypoints"][pairs[:, 1]]


def rigid(name: str, suite: str, points: tuple[Points, Points], true: np.ndarray) -> Problem:
    """A static scene whose true matches are those of OpenCV's best fundamental matrix."""
    return Problem(name, suite, "fundamental", *points, true.astype(np.intp), np.ones(len(true), bool))


def building(half: str, per_cell: int = 1) -> Iterator[Problem]:
    """Pairs of photographs of one building, halved in size, that USAC_MAGSAC explains by one fundamental matrix."""
    sides = {}
    for path in sorted((home().parent / "sceaux_castle").glob("*.[jJ][pP][gG]")):
        picture = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        small = cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        sides[path.stem] = stored(f"castle_{path.stem}_opencv{cv2.__version__}", partial(features_of, small))
    for one, two in itertools.islice(itertools.combinations(sides, 2), half == "judge", None, 2):
        points = matched(sides[one], sides[two])
        if len(points[0]) >= FEWEST_MATCHES:
            mask = opencv("fundamental", "USAC_MAGSAC", 1.0, *points, 0, maxIters=10_000, confidence=0.9999)[1]
            if mask.mean() >= RIGID_SHARE:
                yield rigid(f"{one} {two}", "building", points, mask)


def static(half: str, per_cell: int = 1) -> Iterator[Problem]:
    """Photographs and bundled pictures of scenes that stand still."""
    yield from (replace(problem, suite="static photographs") for problem in photos("rigid", "sift", half))
    for name in of_half(STILL, half):
        pair = load_pair(name)
        points = matched(*(features_of(cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)) for image in (pair.img1, pair.img2)))
        yield rigid(name, "bundled static pairs", points, pair.labels(*points) >= 0)
