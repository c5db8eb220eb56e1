"""All kernels compiled ahead, by small calls of what runs them."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._kernels import n_compiled
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.forests.ruzhash import ruzhash
from ruzhash_cv.opencv import find_fundamental_matrix


def warmup() -> int:
    """Compile the kernels that are not in numba's cache, and return how many these were."""
    from ruzhash_cv.paper import VoronoiForest  # an import of .2 s

    before = n_compiled()
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 500, (120, 2))
    points2 = points1 + np.where(points1[:, :1] < 250, [20.0, 5.0], rng.uniform(5, 60, (120, 1)) * [1.0, 0.0])
    points2[:20] = rng.uniform(0, 500, (20, 2))
    for model in ("homography", "fundamental"):
        filter_points(points1, points2, model=model)
    find_fundamental_matrix(points1, points2)
    camera = np.array([[500.0, 0.0, 250.0], [0.0, 500.0, 250.0], [0.0, 0.0, 1.0]])
    for cameras in ((camera, camera), (camera, None)):
        filter_points(points1, points2, cameras=cameras).camera_pose(camera, camera)
    rows = rng.random((40, 8))
    ruzhash(rows)
    VoronoiForest(n_trees=2).fit_anomaly_scores(rows)
    return n_compiled() - before
