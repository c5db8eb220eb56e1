"""The family of homographies: planes, and what a camera sees that only turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.normal_equations import PRODUCT, inverse_iteration, sum_products, unit_norm

#: A homography of unit norm with a smaller determinant has no inverse worth the name.
_SINGULAR = 1e-9


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
    is_plane: bool = True

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return homographies (k, 9) of unit norm of samples (s, 4, 4) near the unit square, and the sample (k,) of each.

        H = sum of w_i q_i l_i' over three points p_i and their partners q_i: l_i is the line through the other two, so that p_i goes to
        q_i. The fourth p goes to the fourth q if w_i is the ratio of what such lines in the second and in the first image are there.
        """
        x1, y1, *second = samples.transpose(2, 1, 0)
        with np.errstate(all="ignore"):
            (lines, own), (_, other) = _opposite_lines(x1, y1), _opposite_lines(*second)
            weights = other * own[[1, 2, 0]] * own[[2, 0, 1]]
            partners = np.array([*second, np.ones_like(x1)])[:, :3]
            models = unit_norm(np.einsum("uis,vis->suv", weights * partners, lines).reshape(-1, 9))
        a, b, c, d, e, f, g, h, i = models.T
        # Of what is not finite the comparison is false.
        usable = np.flatnonzero(np.abs(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)) > _SINGULAR)
        return models[usable], usable

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared symmetric transfer errors (m, n) of correspondences (n, 4); infinite where a point has no image."""
        squared = np.empty((len(models), len(data)))
        _squared_transfer_errors(np.ascontiguousarray(data.T), np.ascontiguousarray(models), squared)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the normalised direct linear transform of correspondences (Hartley and Zisserman, algorithm 4.2).

        Reweighted by the depths that `models` give the points, its error is the geometric one.
        """
        if models is None:
            models = np.tile(np.identity(3).ravel(), (len(weights), 1))
        fitted = np.empty((len(weights), 9))
        _fit_kernel(*map(np.ascontiguousarray, (data, models, weights, fitted)))
        return fitted

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return the direct linear transform reweighted by the depths that `models` give the points."""
        return self.fit(data, weights, models)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return homographies (m, 9) of pixels."""
        return unit_norm((np.linalg.inv(into2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def _opposite_lines(x: Array, y: Array) -> tuple[Array, Array]:
    """Return the lines (3, 3, s) opposite to each of the first three of points (4, s), and what they are at the fourth, (3, s)."""
    j, k = [1, 2, 0], [2, 0, 1]
    lines = np.array([y[j] - y[k], x[k] - x[j], x[j] * y[k] - x[k] * y[j]])
    return lines, lines[0] * x[3] + lines[1] * y[3] + lines[2]


@jit
def _fit_kernel(data: Any, models: Any, weights: Any, fitted: Any) -> None:
    """Write the fits, of unit norm. Weights are divided by squared depths; what is no number then has no weight."""
    m, scaled = len(weights), np.empty_like(weights)
    x, y = data[:, 0].copy(), data[:, 1].copy()
    for item in range(m):
        g, h, i = models[item, 6], models[item, 7], models[item, 8]
        for row in range(len(data)):
            depth = g * x[row] + h * y[row] + i
            weight = weights[item, row] / (depth * depth)
            scaled[item, row] = weight if abs(weight) < np.inf else 0.0
    into, sums, grams = np.zeros((2, m, 3, 3)), np.zeros((m, 6, 6)), np.zeros((m, 9, 9))
    sum_products(data, scaled, into, sums)
    for item in range(m):
        own, gram = sums[item], grams[item]
        for i in range(3):
            for j in range(3):
                product = PRODUCT[i, j]
                gram[i, j] = gram[3 + i, 3 + j] = own[5, product]
                gram[6 + i, j], gram[6 + i, 3 + j] = -own[3, product], -own[4, product]
                gram[6 + i, 6 + j] = own[0, product] + own[2, product]
    inverse_iteration(grams, fitted, np.empty(9))
    for item in range(m):
        for i in range(0, 9, 3):
            fitted[item, i + 2] += fitted[item, i] * into[0, item, 0, 2] + fitted[item, i + 1] * into[0, item, 1, 2]
            fitted[item, i] *= into[0, item, 0, 0]
            fitted[item, i + 1] *= into[0, item, 0, 0]
        for i in range(6):
            fitted[item, i] -= into[1, item, i // 3, 2] * fitted[item, 6 + i % 3]
            fitted[item, i] /= into[1, item, 0, 0]
        norm = 0.0
        for i in range(9):
            norm += fitted[item, i] * fitted[item, i]
        for i in range(9):
            fitted[item, i] /= np.sqrt(norm)


@jit
def _squared_transfer_errors(points: Any, models: Any, squared: Any) -> None:
    """Loops without branches over rows of coordinates (4, n) compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        _add_transfer(points, (a, b, c, d, e, f, g, h, i), 0, squared[item])
        # The inverse up to scale, which exists for a singular one too.
        first = e * i - f * h, c * h - b * i, b * f - c * e
        second = f * g - d * i, a * i - c * g, c * d - a * f
        _add_transfer(points, (*first, *second, d * h - e * g, b * g - a * h, a * e - b * d), 2, squared[item])


@jit
def _add_transfer(points: Any, model: Any, source: int, squared: Any) -> None:
    """Write the squared errors of points of one image mapped to the other: the first image's, then the larger of the two."""
    a, b, c, d, e, f, g, h, i = model
    for row in range(points.shape[1]):
        x, y = points[source, row], points[source + 1, row]
        w = 1.0 / (g * x + h * y + i)
        dx = (a * x + b * y + c) * w - points[2 - source, row]
        dy = (d * x + e * y + f) * w - points[3 - source, row]
        error = dx * dx + dy * dy
        # A comparison with NaN is false: what has no image in one of the images is infinitely far.
        error = error if error < np.inf else np.inf
        squared[row] = error if source == 0 or error > squared[row] else squared[row]
