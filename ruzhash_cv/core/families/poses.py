"""The best of the four poses of essential matrices."""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.families.linear import homogeneous
from ruzhash_cv.core.kernels.rays import place
from ruzhash_cv.foundation.arrays import Array


def placed(
    essentials: Array, data: Array, weights: Array, squared: Array, reach: float, far: float = 0.0
) -> tuple[Array, Array, Array]:
    """Return rotations (m, 3, 3), unit translations (m, 3), and squared residuals (m, n) of rows that both cameras see.

    Of the four poses of an essential matrix (m, 9) of unit norm it is the one with the largest sum of weights (n,) times
    1 - r^2 / reach^2 over the rows (n, 10) that it sees and whose squared residuals r^2 (m, n) are within the reach. The residual of a
    row behind a camera is infinite, unless it is within `far` of where it would be if it were infinitely far.
    """
    m, n = squared.shape
    rotations, translations, seen = np.empty((m, 9)), np.empty((m, 3)), np.empty((m, n))
    given, matrices, work = np.ascontiguousarray(squared), np.ascontiguousarray(essentials), np.empty((7, n))
    place(homogeneous(data), weights, given, reach * reach, matrices, far * far, work, rotations, translations, seen)
    return rotations.reshape(m, 3, 3), translations, seen
