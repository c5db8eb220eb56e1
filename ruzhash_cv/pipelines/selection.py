"""Which of the kept matches a host gets, and the model that goes with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.estimation import find_fundamental_matrix
from ruzhash_cv.families.solving import sampson_distance
from ruzhash_cv.result import FilterResult

Array = NDArray[np.float64]
#: From this share of the kept matches on, one plane or rotation holds nearly all.
NEARLY_ALL = 0.9


def strongest_motion(result: FilterResult, points1: Array, points2: Array) -> tuple[NDArray[np.bool_], Array | None]:
    """Return the mask (n,) of the matches of the strongest rigid motion, and its fundamental matrix.

    None where only a plane or a rotation is seen.
    """
    kept, strongest = result.inlier_mask, result.models[0]
    if strongest.kind == "fundamental":
        near = sampson_distance(points1, points2, strongest.matrix) <= strongest.tolerance
        return kept & (near | (result.labels == 0)), strongest.matrix
    if dominant_plane(result, kept) is not None:
        return kept, None
    matrix, mask = find_fundamental_matrix(points1[kept], points2[kept], n_jobs=1)
    motion = kept.copy()
    motion[kept] = mask[:, 0] > 0
    return motion, matrix


def dominant_plane(result: FilterResult, kept: NDArray[np.bool_]) -> Array | None:
    """Return the homography that holds nearly all of the matches that are `kept`, None where there is none."""
    for index, model in enumerate(result.models):
        if model.kind == "homography" and np.sum(result.labels[kept] == index) >= NEARLY_ALL * kept.sum():
            return model.matrix
    return None
