"""Rounds of reweighted least squares in pixels: one kernel for all models of homographies or of fundamental matrices."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.kernels.fit import fit_in_rounds
from ruzhash_cv.models.weighting import AS_GIVEN, Law

#: What a fit is: of a homography; of the equations x2' F x1 = 0, of these divided by gradients, or a step of Gauss and Newton.
TRANSFORM, EQUATIONS, DISTANCES, STEP = range(4)
_NOTHING = np.zeros((0, 0), bool)


def fits(kind: int, data: Array, weights: Array, models: Array) -> Array:
    """Return fits (m, 9) of a kind by weights (m, n), NaN if there is none, from models (m, 9)."""
    return reweighted_in_pixels(kind, data, weights, models, np.zeros(len(models)), AS_GIVEN, 1, _NOTHING)[0]


def reweighted_in_pixels(
    kind: int, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
) -> tuple[Array, Array]:
    """Return what `TwoViewFamily.reweighted` does; `weights` are (n,), or (m, n) for each model."""
    (m, _), (n, _) = models.shape, data.shape
    fitted, noise = np.array(models, order="C"), np.zeros(m)
    given = (
        np.ascontiguousarray(data.T),
        np.array(weights, ndmin=2, order="C", copy=None),
        excluded.view(np.uint8),
        limits,
    )
    least = 5.0 if kind == TRANSFORM else 8.0  # a sample and one more
    space = np.empty(n, np.int64), np.empty((3, n)), np.empty((2, 10, 9))
    fit_in_rounds(kind, *given, law.width, law.median, n_rounds, least, *space, fitted, noise)
    return fitted, noise
