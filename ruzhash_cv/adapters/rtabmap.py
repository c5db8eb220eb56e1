"""RTAB-Map's Python matcher: mutual nearest neighbours, of which the mismatches are removed.

RTAB-Map takes a script. Let it hold one line, ``from ruzhash_cv.adapters.rtabmap import init, match``, and give RTAB-Map its path:
``--Vis/CorNNType 6 --PyMatcher/Path /path/of/the/script.py``. Descriptors must be floats, as those of SIFT and SuperPoint.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv.filtering import Model, filter_points

_model: Model = "auto"


def init(
    descriptor_dim: int, match_threshold: float = 0.0, iterations: int = 0, cuda: Any = False, model: str = "auto"
) -> None:
    """Take RTAB-Map's parameters, and ignore all but one.

    ``--PyMatcher/Model`` may be "homography", "fundamental" or "auto". Any other, as RTAB-Map's default, is "auto".
    """
    global _model
    _model = "homography" if model == "homography" else "fundamental" if model == "fundamental" else "auto"


def match(
    points_from: ArrayLike,
    points_to: ArrayLike,
    scores_from: Any,
    scores_to: Any,
    descriptors_from: ArrayLike,
    descriptors_to: ArrayLike,
    image_width: int,
    image_height: int,
) -> NDArray[np.int32]:
    """Return the kept matches as index pairs, shape (k, 2).

    Parameters
    ----------
    points_from, points_to : array_like of float, shapes (n, 2) and (m, 2)
        Pixels (x, y).
    descriptors_from, descriptors_to : array_like of float, shapes (n, d) and (m, d)
    scores_from, scores_to, image_width, image_height
        Ignored.
    """
    first, second = (np.asarray(each, np.float32) for each in (descriptors_from, descriptors_to))
    if len(first) == 0 or len(second) == 0:
        return np.zeros((0, 2), np.int32)
    mutual = cv2.BFMatcher(cv2.NORM_L2, crossCheck=True).match(first, second)
    pairs = np.array([(each.queryIdx, each.trainIdx) for each in mutual], np.int32).reshape(-1, 2)
    kept = filter_points(np.asarray(points_from), np.asarray(points_to), pairs, model=_model).inlier_mask
    # RTAB-Map reads the memory as it lies. Of unsigned 64 bits it reads every pair twice.
    return np.ascontiguousarray(pairs[kept])
