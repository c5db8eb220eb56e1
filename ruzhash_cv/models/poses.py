"""The four poses of essential matrices, and how many matches lie in front of both cameras of each."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Array
from ruzhash_cv.kernels.rays import place
from ruzhash_cv.models.linear import homogeneous


def placed(
    essentials: Array, data: Array, weights: Array, squared: Array, reaches: Array
) -> tuple[Array, Array, Array]:
    """Return both rotations (m, 2, 3, 3) and a unit translation (m, 3) of essential matrices (m, 9), and costs (m, 2, 2) of four poses.

    Poses are either rotation with the translation or its opposite. The cost of a pose is the sum of weights (n,) of rows (n, 10) times
    min(r^2 / reach^2, 1) over all `reaches`, r^2 being squared residuals (m, n). A row behind a camera is beyond all reaches.
    """
    m, n = squared.shape
    rotations, translations, costs = np.empty((m, 2, 9)), np.empty((m, 3)), np.empty((m, 4))
    given = homogeneous(data), weights, squared, np.square(reaches), np.ascontiguousarray(essentials)
    place(*given, np.empty((5, n)), rotations, translations, costs)
    return rotations.reshape(m, 2, 3, 3), translations, costs.reshape(m, 2, 2)
