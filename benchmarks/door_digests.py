"""Cases of `digests.py` beside matches without cameras: cameras, `find_*`, `find_structures`, COLMAP's and hloc's files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from cache import Arrays, stored
from measures import mask_quality

K1 = np.array([[800.0, 0.0, 320.0], [0.0, 800.0, 240.0], [0.0, 0.0, 1.0]])
K2 = np.array([[500.0, 0.0, 300.0], [0.0, 510.0, 250.0], [0.0, 0.0, 1.0]])
BARREL, FISHEYE = np.array([-0.2, 0.05, 0.001, -0.001]), np.array([0.02, -0.005, 0.001, 0.0])
LENSES = ("pinhole", "distorted", "fisheye", "one known")
Answer = dict[str, Any]
"""Lists of arrays by the fields of `digests.FIELDS`, and "f1"."""
Case = tuple[str, Callable[[], Answer]]


def views(lens: str, seed: int) -> np.ndarray:
    """Points of both images and whether they match, (n, 5): planes, relief or a rotation alone, by the seed."""
    rng = np.random.default_rng(seed)
    n, n_wrong = 160 + 40 * (seed % 3), 60 + 30 * (seed % 4)
    points = np.column_stack([rng.uniform(-1.2, 1.2, (n, 2)), rng.uniform(3, 6, n)])
    points[: n // 2, 2] = 5 + 0.4 * points[: n // 2, 0]  # a wall
    turn = rng.normal(0, 0.08, 3)
    step = np.zeros(3) if seed % 5 == 4 else rng.normal(0, [0.5, 0.2, 0.3])
    images = []
    for matrix, at in ((K1, (np.zeros(3), np.zeros(3))), (K2, (turn, step))):
        if lens == "fisheye":
            seen = cv2.fisheye.projectPoints(points[:, None], *at, matrix, FISHEYE)[0]
        else:
            seen = cv2.projectPoints(points, *at, matrix, BARREL if lens == "distorted" else None)[0]
        seen = seen.reshape(-1, 2) + rng.normal(0, 0.5, (n, 2))
        images.append(np.vstack([seen, rng.uniform(0, [640, 480], (n_wrong, 2))]))
    return np.column_stack([*images, np.arange(n + n_wrong) < n])


def curves(kind: str, seed: int) -> np.ndarray:
    """Points (n, 2) of two to four lines or circles among others."""
    rng = np.random.default_rng(seed)
    parts = [rng.uniform(0, 100, (80, 2))]
    for _ in range(2 + seed):
        along, centre = rng.uniform(0, 1, 60), rng.uniform(20, 80, 2)
        if kind == "lines":
            parts.append(centre + 90 * (along[:, None] - 0.5) * rng.normal(size=2))
        else:
            parts.append(centre + rng.uniform(8, 25) * np.column_stack([np.cos(6.3 * along), np.sin(6.3 * along)]))
    points = np.vstack(parts)
    return points + rng.normal(0, 0.3, points.shape)


def make_all() -> Arrays:
    """Every scene, by its name."""
    made = {f"{lens} {seed}": views(lens, seed) for lens, seed in product(LENSES, range(6))}
    return made | {f"{kind} {seed}": curves(kind, seed) for kind, seed in product(("lines", "circles"), range(3))}


def matrices(given: Iterable[Any]) -> list[Any]:
    """Matrices, nothing in place of those that are None."""
    return [() if matrix is None else matrix for matrix in given]


def of_filter(points: np.ndarray, cameras: tuple[Any, Any]) -> Answer:
    """What `filter_points` says, and the pose."""
    from ruzhash_cv import filter_points

    result = filter_points(points[:, :2], points[:, 2:4], cameras=cameras)
    pose = result.camera_pose(cameras[0], cameras[1] or K2) if result.motions else ()
    return {
        "mask": [result.inlier_mask],
        "labels": [result.labels],
        "scores": [result.anomaly_scores],
        "probabilities": [result.inlier_probabilities],
        "models": matrices([model.matrix for model in result.models]),
        "motions": matrices([*(motion.matrix for motion in result.motions), *pose]),
        "f1": mask_quality(result.inlier_mask, points[:, 4] > 0)["f1"],
    }


def of_found(name: str, points: np.ndarray, *arguments: Any) -> Answer:
    """What one of `find_*` returns."""
    import ruzhash_cv

    matrix, mask = getattr(ruzhash_cv, name)(points[:, :2], points[:, 2:4], *arguments)
    f1 = mask_quality(mask.ravel() > 0, points[:, 4] > 0)["f1"]
    return {"mask": [mask], "models": matrices([matrix]), "f1": f1}


def of_structures(kind: str, points: np.ndarray) -> Answer:
    """What `find_structures` finds."""
    from ruzhash_cv import families, find_structures

    family = families.Lines() if kind == "lines" else families.Circles()
    result = find_structures(points, family)
    numbers = [result.tolerances, result.noise_scales, result.evidences]
    of_points = {"mask": [result.masks], "labels": [result.labels], "scores": [result.anomaly_scores]}
    return {**of_points, "models": [result.models], "motions": numbers}


def of_colmap(scenes: Sequence[np.ndarray], prior: bool) -> Iterator[tuple[str, Answer]]:
    """What the file of a COLMAP database holds of each pair; `prior`: whether the cameras are known."""
    import pycolmap

    from ruzhash_cv.pipelines.colmap import verify

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "database.db"
        with pycolmap.Database.open(path) as db:
            for number, points in enumerate(scenes):
                ids = []
                for side, matrix in enumerate((K1, K2)):
                    parameters = [*matrix[[0, 1], [0, 1]], *matrix[:2, 2]]
                    camera = pycolmap.Camera(model="PINHOLE", width=640, height=480, params=parameters)
                    camera.has_prior_focal_length = prior
                    image = pycolmap.Image(name=f"{number}_{side}.jpg", camera_id=db.write_camera(camera))
                    ids.append(db.write_image(image))
                    db.write_keypoints(ids[-1], points[:, 2 * side : 2 * side + 2].astype(np.float32))
                db.write_matches(*ids, np.repeat(np.arange(len(points), dtype=np.uint32)[:, None], 2, axis=1))
        verify(path, n_jobs=1, progress=False)
        with pycolmap.Database.open(path) as db:
            for number, points in enumerate(scenes):
                geometry = db.read_two_view_geometry(2 * number + 1, 2 * number + 2)
                rows = np.asarray(geometry.inlier_matches)
                kept = np.isin(np.arange(len(points)), rows[:, 0] if len(rows) else [])
                models = matrices([geometry.F, geometry.H, geometry.E])
                answer = {"mask": [rows], "labels": [int(geometry.config)], "models": models}
                yield str(number), {**answer, "f1": mask_quality(kept, points[:, 4] > 0)["f1"]}


def of_hloc(scenes: Sequence[np.ndarray]) -> Iterator[tuple[str, Answer]]:
    """What hloc's file holds of each pair."""
    import h5py

    from ruzhash_cv.pipelines.hloc import filter_matches

    with tempfile.TemporaryDirectory() as folder:
        features, matches, output = (Path(folder) / name for name in ("features.h5", "matches.h5", "filtered.h5"))
        with h5py.File(features, "w") as points_file, h5py.File(matches, "w") as matches_file:
            for number, points in enumerate(scenes):
                points_file[f"{number}a/keypoints"], points_file[f"{number}b/keypoints"] = points[:, :2], points[:, 2:4]
                matches_file[f"{number}a/{number}b/matches0"] = np.arange(len(points), dtype=np.int16)
        pairs = [(f"{number}a", f"{number}b") for number in range(len(scenes))]
        filter_matches(features, matches, pairs, output, n_jobs=1, progress=False)
        with h5py.File(output) as file:
            for number, points in enumerate(scenes):
                group = file[f"{number}a/{number}b"]
                partners = group["matches0"][()]
                f1 = mask_quality(partners >= 0, points[:, 4] > 0)["f1"]
                yield str(number), {"mask": [partners], "scores": [group["matching_scores0"][()]], "f1": f1}


def known(lens: str) -> tuple[Any, Any]:
    """The cameras of `views`."""
    from ruzhash_cv import Camera

    distortion = {"distorted": BARREL, "fisheye": FISHEYE}.get(lens)
    first, second = (Camera(matrix, distortion, fisheye=lens == "fisheye") for matrix in (K1, K2))
    return first, None if lens == "one known" else second


def cases() -> Iterator[Case]:
    """A title and what computes the answer, for each case."""
    scenes = stored("digests_doors_1", make_all)
    for lens, seed in product(LENSES, range(6)):
        points = scenes[f"{lens} {seed}"]
        yield f"cameras, {lens} {seed}", lambda lens=lens, points=points: of_filter(points, known(lens))
    for seed in range(6):
        points = scenes[f"pinhole {seed}"]
        for name, arguments in (
            ("find_homography", ()),
            ("find_fundamental_matrix", ()),
            ("find_essential_matrix", (K1, None, K2, None)),
        ):
            yield f"{name} {seed}", lambda of=(name, points, *arguments): of_found(*of)
    for kind, seed in product(("lines", "circles"), range(3)):
        points = scenes[f"{kind} {seed}"]
        yield f"find_structures, {kind} {seed}", lambda kind=kind, points=points: of_structures(kind, points)
    pairs = [scenes[f"one known {seed}"] for seed in range(6)]
    for title, make in (
        ("COLMAP", lambda: of_colmap(pairs, prior=False)),
        ("COLMAP with cameras", lambda: of_colmap(pairs, prior=True)),
        ("hloc", lambda: of_hloc(pairs)),
    ):
        answers: dict[str, Answer] = {}
        for number in range(len(pairs)):

            def answer(number: int = number, make: Any = make, answers: dict[str, Answer] = answers) -> Answer:
                if not answers:
                    answers.update(make())
                return answers[str(number)]

            yield f"{title} {number}", answer
