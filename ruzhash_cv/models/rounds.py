"""Rounds of reweighted least squares in pixels: one kernel for all models of homographies or of fundamental matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.sampson import write_matrix, write_squared_distances
from ruzhash_cv.models.transfer import write_squared_errors, write_transform
from ruzhash_cv.models.weighting import AS_GIVEN, Law, weigh

#: Kinds of fits: of a homography; others are of fundamental matrices, see `sampson`.
TRANSFORM = 0
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
    given = np.ascontiguousarray(data.T), np.array(weights, ndmin=2, order="C", copy=None), excluded, limits
    least = 5.0 if kind == TRANSFORM else 8.0  # a sample and one more
    space = np.empty(n, np.int64), np.empty((3, n)), np.empty((4, 10, 9))
    _fit_kernel(kind, *given, law.width, law.median, n_rounds, least, *space, fitted, noise)
    return fitted, noise


@jit
def _fit_kernel(
    kind: int,
    points: Any,
    given: Any,
    excluded: Any,
    limits: Any,
    width: float,
    median: float,
    n_rounds: int,
    least: float,
    rows: Any,
    space: Any,
    room: Any,
    models: Any,
    noise: Any,
) -> None:
    """Overwrite models with fits by a law's weights, round by round; if a fit by residuals fails, it stays. Write noise scales."""
    squared, weights, work, fitted = space[:1], space[1], space[2], room[3, 3]
    for item in range(len(models)):
        model, of_model = models[item], given[item if len(given) > 1 else 0]
        for fit in range(n_rounds + 1):
            if width >= 0.0 and kind == TRANSFORM:
                write_squared_errors(points, models[item : item + 1], squared)
            elif width >= 0.0:
                write_squared_distances(points, models[item : item + 1], squared)
            for row in range(excluded.shape[1]):
                if excluded[item, row]:
                    squared[0, row] = np.inf
            n, support, noise[item] = weigh(squared[0], of_model, limits[item], width, median, rows, weights, work)
            if fit == n_rounds or not support > least:
                break
            if kind == TRANSFORM:
                write_transform(points, rows, weights, n, model, room, fitted)
            else:
                write_matrix(kind, points, rows, weights, n, model, room, fitted)
            total = 0.0
            for k in range(9):
                total += fitted[k]
            if width >= 0.0 and not abs(total) < np.inf:
                break
            for k in range(9):
                model[k] = fitted[k]
            if width <= 0.0:
                break
