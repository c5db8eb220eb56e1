"""Calls of the public functions that run kernels or OpenCV."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import ruzhash_cv as rc
from ruzhash_cv import models, paper
from ruzhash_cv.models import Lines


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return matches of a plane, of a rigid scene, and mismatches."""
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 800, (400, 2))
    points2 = points1 + np.where(points1[:, :1] < 400, [20.0, 5.0], rng.uniform(5, 60, (400, 1)) * [1.0, 0.0])
    points2[:100] = rng.uniform(0, 800, (100, 2))
    return points1, points2


def calls() -> dict[str, Callable[[], Any]]:
    """Return the calls by their names."""
    camera = np.array([[800.0, 0, 400], [0, 800, 400], [0, 0, 1]])
    pair, rng, lens = points(), np.random.default_rng(1), rc.Camera(camera, [0.1, 0.01, 0.0, 0.0])
    many = np.vstack([pair[0] + rng.normal(0, 2, pair[0].shape) for _ in range(50)])
    matches, picture = np.stack([np.arange(400)] * 2, axis=1), np.zeros((800, 800, 3), np.uint8)
    drawn, rows = (picture, pair[0], picture, pair[1], matches), rng.random((300, 40))
    result = functools.cache(lambda: rc.filter_points(*pair))

    def motions() -> Any:
        made = rc.filter_points(*pair)
        return made.motions, made.camera_pose(camera, camera)

    return {
        "filter_points": lambda: rc.filter_points(*pair),
        "filter_points of many": lambda: rc.filter_points(many, many + 5.0),
        "filter_points of unrelated points": lambda: rc.filter_points(many[:2500], rng.uniform(0, 900, (2500, 2))),
        "filter_points of few": lambda: rc.filter_points(many[:5], many[:5]),
        "filter_points, homography": lambda: rc.filter_points(*pair, model="homography", pixel=2.0),
        "filter_points, fundamental": lambda: rc.filter_points(*pair, model="fundamental", false_discovery_rate=0.05),
        "filter_points, cameras": lambda: rc.filter_points(*pair, cameras=(camera, camera)),
        "filter_points, one camera": lambda: rc.filter_points(*pair, cameras=(lens, None)),
        "filter_matches": lambda: rc.filter_matches(*pair, matches, threshold=3.0),
        "motions": motions,
        "find_homography": lambda: rc.find_homography(*pair),
        "find_fundamental_matrix": lambda: rc.find_fundamental_matrix(*pair),
        "find_essential_matrix": lambda: rc.find_essential_matrix(*pair, camera),
        "transfer_error": lambda: models.transfer_error(*pair, np.eye(3)),
        "sampson_distance": lambda: models.sampson_distance(*pair, camera),
        "find_structures": lambda: rc.find_structures(rows[:, :2], Lines()),
        "RuzHashForest": lambda: paper.RuzHashForest(n_jobs=2).fit_anomaly_scores(np.vstack([rows] * 30)),
        "VoronoiForest": lambda: paper.VoronoiForest(n_trees=20).fit(rows).anomaly_scores(rows),
        "ruzhash": lambda: paper.ruzhash(rows, n_hashes=50),
        "draw_matches": lambda: rc.draw_matches(*drawn, result()),
        "draw_scores": lambda: rc.draw_scores(*drawn, result()),
        "draw_structures": lambda: rc.draw_structures(*drawn, result()),
    }
