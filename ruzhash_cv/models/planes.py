"""The family of homographies: planes, and what a camera sees that only turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.linear import (
    carried,
    divided_by_gradients,
    has_rays,
    homogeneous,
    least_vectors,
    quadratic_forms,
    unit_norm,
)

#: A homography of unit norm with a smaller determinant has no inverse worth the name.
_SINGULAR = 1e-9
#: What the error of a match divides by, see `divided_by_gradients`: the depth of a pixel, the length of a ray.
_DEPTH, _LENGTH = (0.0, 1.0, 0.0, 0.0), (1.0, 1.0, 0.0, 0.0)
#: Products of the equations' coefficients by products of second points: of two equations (1, 0, -x), (0, 1, -y); of X2 x H X1 = 0.
_PIXELS = np.zeros((6, 6))
_PIXELS[[0, 2, 3, 4, 5, 5], [5, 5, 3, 4, 0, 2]] = 1.0, 1.0, -1.0, -1.0, 1.0, 1.0
_RAYS = np.array([[1.0, 0, 1, 0, 0, 1]] * 6) * np.array([1.0, 0, 1, 0, 0, 1])[:, None] - np.eye(6)


@dataclass(frozen=True)
class Homographies:
    """Homographies of correspondences (x1, y1, x2, y2), rows of 9; the residual is the symmetric transfer error.

    Rows with rays, see `models.linear`, have homographies of rays.

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
        """Return homographies (k, 9) of unit norm of samples (s, 4, d) near the unit square, and the sample (k,) of each.

        H = sum of w_i q_i l_i' over three points p_i and their partners q_i: l_i is the line through the other two, so that p_i goes to
        q_i. The fourth p goes to the fourth q if w_i is the ratio of what such lines in the second and in the first image are there.
        """
        points = homogeneous(samples)
        with np.errstate(all="ignore"):
            (lines, own), (_, other) = _opposite_lines(*points[:3]), _opposite_lines(*points[3:])
            weights = other * own[[1, 2, 0]] * own[[2, 0, 1]]
            models = unit_norm(np.einsum("uis,vis->suv", weights * points[3:, :3], lines).reshape(-1, 9))
        a, b, c, d, e, f, g, h, i = models.T
        # Of what is not finite the comparison is false.
        usable = np.flatnonzero(np.abs(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)) > _SINGULAR)
        return models[usable], usable

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared symmetric transfer errors (m, n) of correspondences (n, d); infinite where a point has no image."""
        squared = np.empty((len(models), len(data)))
        if has_rays(data):
            _squared_turns(homogeneous(data), np.ascontiguousarray(models), squared)
        else:
            _squared_transfer_errors(np.ascontiguousarray(data.T), np.ascontiguousarray(models), squared)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the normalised direct linear transform of correspondences (Hartley and Zisserman, algorithm 4.2).

        Reweighted by the depths that `models` give the points, its error is the geometric one.
        """
        points, of_rays = homogeneous(data), has_rays(data)
        if models is None:
            models = np.tile(np.identity(3).ravel(), (len(weights), 1))
        weights = divided_by_gradients(points, models, weights, _LENGTH if of_rays else _DEPTH)
        forms, into1, into2 = quadratic_forms(points, weights, _RAYS if of_rays else _PIXELS, of_rays)
        fitted = least_vectors(forms)
        if of_rays:
            return carried(fitted, into1, into2)
        _denormalise(fitted, into1, into2)
        return fitted

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return the direct linear transform reweighted by the depths that `models` give the points."""
        return self.fit(data, weights, models)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return homographies (m, 9) of pixels; without distortion, of rays that `into1`, `into2` brought these to."""
        return unit_norm((np.linalg.inv(into2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def _opposite_lines(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Return the lines (3, 3, s) opposite to each of the first three of points (4, s), and what they are at the fourth, (3, s)."""
    j, k = [1, 2, 0], [2, 0, 1]
    lines = np.array([y[j] * z[k] - z[j] * y[k], z[j] * x[k] - x[j] * z[k], x[j] * y[k] - y[j] * x[k]])
    return lines, lines[0] * x[3] + lines[1] * y[3] + lines[2] * z[3]


@jit
def _denormalise(fitted: Any, into1: Any, into2: Any) -> None:
    """Bring homographies (m, 9) of normalised pixels back to pixels, of unit norm."""
    for item in range(len(fitted)):
        for i in range(0, 9, 3):
            fitted[item, i + 2] += fitted[item, i] * into1[item, 0, 2] + fitted[item, i + 1] * into1[item, 1, 2]
            fitted[item, i] *= into1[item, 0, 0]
            fitted[item, i + 1] *= into1[item, 0, 0]
        for i in range(6):
            fitted[item, i] -= into2[item, i // 3, 2] * fitted[item, 6 + i % 3]
            fitted[item, i] /= into2[item, 0, 0]
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


@jit
def _squared_turns(rays: Any, models: Any, squared: Any) -> None:
    """Loops without branches over rows of coordinates compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        first = e * i - f * h, c * h - b * i, b * f - c * e
        second = f * g - d * i, a * i - c * g, c * d - a * f
        third = d * h - e * g, b * g - a * h, a * e - b * d
        # Of either sign; the one that keeps what is before the camera there has a positive determinant.
        sign = 1.0 if a * first[0] + b * second[0] + c * third[0] > 0.0 else -1.0
        _add_turn(
            rays,
            (sign * a, sign * b, sign * c, sign * d, sign * e, sign * f, sign * g, sign * h, sign * i),
            0,
            squared[item],
        )
        _add_turn(rays, (*first, *second, *third), 3, squared[item])


@jit
def _add_turn(rays: Any, model: Any, source: int, squared: Any) -> None:
    """Write the squared errors of rays of one image mapped to the other: the first image's, then the larger of the two."""
    a, b, c, d, e, f, g, h, i = model
    other = 3 - source
    for row in range(rays.shape[1]):
        x, y, z = rays[source, row], rays[source + 1, row], rays[source + 2, row]
        u, v, w = rays[other, row], rays[other + 1, row], rays[other + 2, row]
        p, q, r = a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + i * z
        s, t, o = v * r - w * q, w * p - u * r, u * q - v * p
        error = (s * s + t * t + o * o) / (p * p + q * q + r * r)
        # A comparison with NaN is false: what has no image is infinitely far, as is what points away.
        error = error if (error < np.inf) & (p * u + q * v + r * w > 0.0) else np.inf
        squared[row] = error if (source == 0) | (error > squared[row]) else squared[row]
