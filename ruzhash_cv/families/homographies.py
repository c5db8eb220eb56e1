"""Homographies, x2 ~ H x1: planes, and cameras that only turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._core.jit import jit
from ruzhash_cv.families.two_view import PRODUCT, Array, adjugates, least_vectors, unit_norm, weighted_products

#: A homography of unit norm with a smaller determinant has no inverse worth the name.
_SINGULAR = 1e-9
#: Four points whose equations have no larger pivot make no homography.
_NO_PIVOT = 100.0 * np.finfo(np.float64).eps


@dataclass(frozen=True)
class Homographies:
    """Homographies of correspondences (x1, y1, x2, y2), rows of 9; the residual is the symmetric transfer error.

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> models, _ = Homographies().solve(np.hstack([square, 2 * square])[None])
    >>> (models / models[0, 8]).round(6).reshape(3, 3).diagonal()
    array([2., 2., 1.])
    """

    name: str = "homography"
    sample_size: int = 4
    codimension: int = 2
    locally_affine: bool = True

    def solve(self, samples: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return homographies (k, 9) of unit norm of samples (s, 4, 4) near the unit square, and the sample (k,) of each."""
        models = np.zeros((len(samples), 9))
        _solve_kernel(np.ascontiguousarray(samples, np.float32), models)
        models = unit_norm(models)
        a, b, c, d, e, f, g, h, i = models.T
        with np.errstate(invalid="ignore"):
            usable = np.abs(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)) > _SINGULAR
        usable &= np.isfinite(models).all(axis=1)
        return models[usable], np.flatnonzero(usable)

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared symmetric transfer errors (m, n) of correspondences (n, 4); infinite where a point has no image."""
        squared = np.empty((len(models), len(data)))
        _squared_transfer_errors(np.ascontiguousarray(data.T), np.ascontiguousarray(models), adjugates(models), squared)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the normalised direct linear transform of correspondences (Hartley and Zisserman, algorithm 4.2).

        Reweighted by the depths that `models` give the points, its error is the geometric one.
        """
        with np.errstate(all="ignore"):
            if models is not None:
                weights = np.array(weights, order="C")
                _divide_by_depths(np.ascontiguousarray(data[:, :2].T), np.ascontiguousarray(models), weights)
            sums, into1, into2 = weighted_products(data, weights)
            grams = np.zeros((len(weights), 3, 3, 3, 3))
            grams[:, 0, :, 0] = grams[:, 1, :, 1] = sums[:, 5][:, PRODUCT]
            grams[:, 2, :, 0], grams[:, 2, :, 1] = -sums[:, 3][:, PRODUCT], -sums[:, 4][:, PRODUCT]
            grams[:, 2, :, 2] = (sums[:, 0] + sums[:, 2])[:, PRODUCT]
            fitted = least_vectors(grams.reshape(-1, 9, 9)).reshape(-1, 3, 3)
            return unit_norm((_inverse(into2) @ fitted @ into1).reshape(-1, 9))

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return homographies (m, 9) of pixels."""
        return unit_norm((_inverse(into2[None]) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def _inverse(similarities: Array) -> Array:
    """Return the inverses of similarities (m, 3, 3) without a rotation."""
    back = np.zeros_like(similarities)
    back[:, 0, 0] = back[:, 1, 1] = 1.0 / similarities[:, 0, 0]
    back[:, :2, 2] = -similarities[:, :2, 2] / similarities[:, :1, 0]
    back[:, 2, 2] = 1.0
    return back


@jit("void(f4[:, :, ::1], f8[:, ::1])")
def _solve_kernel(samples: Any, models: Any) -> None:
    """Write homographies whose last entry is 1: Gaussian elimination of a sample's eight equations, with pivots of the column.

    A singular system leaves the other entries as they are.
    """
    system = np.empty((8, 9))
    for item in range(len(samples)):
        for row in range(8):
            x, y, target = samples[item, row % 4, 0], samples[item, row % 4, 1], samples[item, row % 4, 2 + row // 4]
            system[row] = 0.0
            first = 3 * (row // 4)
            system[row, first], system[row, first + 1], system[row, first + 2] = x, y, 1.0
            system[row, 6], system[row, 7], system[row, 8] = -x * target, -y * target, target
        models[item, 8] = 1.0
        for i in range(8):
            pivot = i
            for j in range(i + 1, 8):
                if abs(system[j, i]) > abs(system[pivot, i]):
                    pivot = j
            if abs(system[pivot, i]) < _NO_PIVOT:
                break
            for k in range(i, 9):
                system[i, k], system[pivot, k] = system[pivot, k], system[i, k]
            factor = -1.0 / system[i, i]
            for j in range(i + 1, 8):
                share = system[j, i] * factor
                for k in range(i + 1, 9):
                    system[j, k] += share * system[i, k]
        else:
            for i in range(7, -1, -1):
                total = system[i, 8]
                for k in range(i + 1, 8):
                    total -= system[i, k] * models[item, k]
                models[item, i] = total / system[i, i]


@jit("void(f8[:, ::1], f8[:, ::1], f8[:, ::1])")
def _divide_by_depths(points: Any, models: Any, weights: Any) -> None:
    """Divide weights by the squared depths of the first image's points (2, n); what is no number then has no weight."""
    for item in range(len(models)):
        g, h, i = models[item, 6:]
        for row in range(points.shape[1]):
            depth = g * points[0, row] + h * points[1, row] + i
            weight = weights[item, row] / (depth * depth)
            weights[item, row] = weight if abs(weight) < np.inf else 0.0


@jit("void(f8[:, ::1], f8[:, ::1], f8[:, ::1], f8[:, ::1])")
def _squared_transfer_errors(points: Any, models: Any, inverses: Any, squared: Any) -> None:
    """Loops without branches over rows of coordinates (4, n) compile to vector instructions."""
    for item in range(len(models)):
        _add_transfer(points, models, item, 0, squared)
        _add_transfer(points, inverses, item, 2, squared)


@jit
def _add_transfer(points: Any, models: Any, item: int, source: int, squared: Any) -> None:
    """Write the squared errors of points of one image mapped to the other: the first image's, then the larger of the two."""
    a, b, c, d, e, f, g, h, i = models[item]
    for row in range(points.shape[1]):
        x, y = points[source, row], points[source + 1, row]
        w = 1.0 / (g * x + h * y + i)
        dx = (a * x + b * y + c) * w - points[2 - source, row]
        dy = (d * x + e * y + f) * w - points[3 - source, row]
        error = dx * dx + dy * dy
        # A comparison with NaN is false: what has no image in one of the images is infinitely far.
        error = error if error < np.inf else np.inf
        squared[item, row] = error if source == 0 or error > squared[item, row] else squared[item, row]
