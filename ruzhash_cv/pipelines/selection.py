"""Which of the kept matches a host gets, and the model that goes with them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.result import FilterResult

Array = NDArray[np.float64]
#: From this share of the kept matches on, one plane or rotation holds nearly all.
NEARLY_ALL = 0.9


def strongest_motion(result: FilterResult) -> tuple[NDArray[np.bool_], Array | None]:
    """Return the mask (n,) of the matches of the strongest rigid motion, and its fundamental matrix.

    None where only a plane or a rotation is seen.
    """
    if not result.motions:
        return np.zeros(len(result.inlier_mask), bool), None
    motion = result.motions[0]
    return result.motion_labels == 0, motion.matrix if motion.kind == "fundamental" else None


def dominant_plane(result: FilterResult, kept: NDArray[np.bool_]) -> Array | None:
    """Return the homography that holds nearly all of the matches that are `kept`, None where there is none."""
    for index, model in enumerate(result.models):
        if model.kind == "homography" and np.sum(result.labels[kept] == index) >= NEARLY_ALL * kept.sum():
            return model.matrix
    return None
