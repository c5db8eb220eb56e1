"""The best of the four poses of essential matrices."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.core.families.linear import homogeneous
from ruzhash_cv.core.kernels.rays import place


def placed(essentials: Array, data: Array, weights: Array, squared: Array, reach: float) -> tuple[Array, Array, Mask]:
    """Return rotations (m, 3, 3), unit translations (m, 3), and which rows (m, n) lie in front of both cameras.

    Of the four poses of an essential matrix (m, 9) of unit norm it is the one with the largest sum of weights (n,) times
    1 - r^2 / reach^2 over the rows (n, 10) in front whose squared residuals r^2 (m, n) are within the reach.
    """
    m, n = squared.shape
    rotations, translations, in_front = np.empty((m, 9)), np.empty((m, 3)), np.empty((m, n), np.uint8)
    matrices, work = np.ascontiguousarray(essentials), np.empty((7, n))
    place(homogeneous(data), weights, squared, reach * reach, matrices, work, rotations, translations, in_front)
    return rotations.reshape(m, 3, 3), translations, in_front.view(bool)
