"""Rounds of reweighted least squares: one kernel for all models, of pixels and of rays."""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.families.linear import check_models, in_columns
from ruzhash_cv.core.families.weighting import AS_GIVEN, Law
from ruzhash_cv.core.kernels.rays import fit_in_rounds
from ruzhash_cv.foundation.arrays import Array, Mask

#: What a fit is: of a homography; of the equations x2' F x1 = 0, of these divided by gradients, or a step of Gauss and Newton; a step
#: of an essential matrix.
TRANSFORM, EQUATIONS, DISTANCES, STEP, TURNS = range(5)
#: Weight that a fit needs: a sample and one more.
_LEAST = {TRANSFORM: 5.0, EQUATIONS: 8.0, DISTANCES: 8.0, STEP: 8.0, TURNS: 6.0}
_NOTHING = np.zeros((0, 0), bool)


def fits(kind: int, data: Array, weights: Array, models: Array) -> Array:
    """Return fits (m, 9) of a kind by weights (m, n), NaN if there is none, from models (m, 9)."""
    return reweighted_in_rounds(kind, data, weights, models, np.zeros(len(models)), AS_GIVEN, 1, _NOTHING)[0]


def reweighted_in_rounds(
    kind: int, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
) -> tuple[Array, Array]:
    """Return what `TwoViewFamily.reweighted` does; `weights` are (n,), or (m, n) for each model."""
    if len(data) == 0:  # as of a match without weight, so that there is one for the kernels to look at
        data, weights, excluded = np.zeros((1, data.shape[1])), np.zeros(1), _NOTHING
    check_models(models)
    (m, _), (n, _) = models.shape, data.shape
    if weights.shape not in ((n,), (1, n), (m, n)):
        raise ValueError(f"weights must have shape ({n},) or ({m}, {n}), got {weights.shape}")
    fitted, noise = np.array(models, order="C"), np.zeros(m)
    weights, rows = np.array(weights, ndmin=2, order="C", copy=None), np.empty(n, np.int64)
    fit_in_rounds(
        kind, in_columns(data), weights, excluded.view(np.uint8), limits, law.width, law.median, law.floor**2, n_rounds,
        _LEAST[kind], rows, np.empty((3, n)), np.empty((2, 10, 9)), fitted, noise,
    )  # fmt: skip
    return fitted, noise
