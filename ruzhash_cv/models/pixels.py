"""Fits to pixels, of homographies and of fundamental matrices: kernels that do all models, and all rounds of reweighting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.sampson import DISTANCES, STEP, write_fit, write_squared_distances
from ruzhash_cv.models.transfer import write_squared_errors, write_transform
from ruzhash_cv.models.weighting import Law, weigh

#: Kinds of fits: of a homography, and those of `sampson`.
TRANSFORM = 0
#: By kind: what fits need more weight than, a sample and one more.
_LEAST_SUPPORT = (5.0, 8.0, 8.0, 8.0)


def fits_to_pixels(kind: int, data: Array, weights: Array, models: Array) -> Array:
    """Return fits (m, 9) of a kind by weights (m, n), NaN if there is none; `models` (m, 9) are what they start from."""
    fitted = np.array(models, order="C")
    _fit_kernel(kind, np.ascontiguousarray(data.T), np.ascontiguousarray(weights), fitted)
    return fitted


def reweighted_in_pixels(
    kind: int, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
) -> tuple[Array, Array]:
    """Return what `TwoViewFamily.reweighted` does.

    Fits of fundamental matrices by Tukey's weights are those of the 8-point algorithm: a sample may be far from the least distances.
    """
    fitted, noise = np.array(models, order="C"), np.zeros(len(models))
    if kind == STEP and law.width == 0.0:
        kind = DISTANCES
    given = np.ascontiguousarray(data.T), weights, excluded, limits
    _reweight_kernel(kind, *given, law.width, law.median, n_rounds, _LEAST_SUPPORT[kind], fitted, noise)
    return fitted, noise


@jit
def _fit_kernel(kind: int, points: Any, weights: Any, models: Any) -> None:
    """Overwrite models with fits."""
    n = weights.shape[1]
    rows, left, space, fitted = np.empty(n, np.int64), np.empty(n), np.empty((2, 9, 9)), np.empty((4, 9))
    for item in range(len(models)):
        n_left = 0
        for row in range(n):
            rows[n_left], left[n_left] = row, weights[item, row]
            n_left += weights[item, row] != 0.0
        _write_fit(kind, points, rows, left, n_left, models[item], space, fitted)
        for k in range(9):
            models[item, k] = fitted[0, k]


@jit
def _reweight_kernel(
    kind: int,
    points: Any,
    match_weights: Any,
    excluded: Any,
    limits: Any,
    width: float,
    median: float,
    n_rounds: int,
    least_support: float,
    models: Any,
    noise: Any,
) -> None:
    """Overwrite models with fits by the law's weights, round by round, and write their noise scales. Where a fit fails, one stays."""
    n, space, fitted = points.shape[1], np.empty((2, 9, 9)), np.empty((4, 9))
    squared, rows, weights, work = np.empty((1, n)), np.empty(n, np.int64), np.empty(n), np.empty(n)
    for item in range(len(models)):
        for fits in range(n_rounds + 1):
            if kind == TRANSFORM:
                write_squared_errors(points, models[item : item + 1], squared)
            else:
                write_squared_distances(points, models[item : item + 1], squared)
            for row in range(excluded.shape[1]):
                if excluded[item, row]:
                    squared[0, row] = np.inf
            near, support, scale = weigh(squared[0], match_weights, limits[item], width, median, rows, weights, work)
            noise[item] = scale
            if fits == n_rounds or not support > least_support:
                break
            _write_fit(kind, points, rows, weights, near, models[item], space, fitted)
            total = 0.0
            for k in range(9):
                total += fitted[0, k]
            if not abs(total) < np.inf:
                break
            for k in range(9):
                models[item, k] = fitted[0, k]
            if width == 0.0:
                break


@jit
def _write_fit(kind: int, points: Any, rows: Any, weights: Any, n: int, model: Any, space: Any, fitted: Any) -> None:
    """Write a fit to n weighted rows as the first of `fitted`."""
    if kind == TRANSFORM:
        write_transform(points, rows, weights, n, model, space[0], fitted[0])
    else:
        write_fit(points, rows, weights, n, kind, model, space[0], space[1], fitted)
