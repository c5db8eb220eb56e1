"""What families of models of rays share: where rays are in the data, their products, and the distance from epipolar planes.

Rows of correspondences seen by known cameras have ten columns: the four coordinates, the ray of the first image and that of the second.
A ray is as long as an angle of one radian there is in the unit of the coordinates, so that residuals are lengths of the images wherever
the ray is, also behind a fisheye. For a point moved by a pixel across its ray X, X moves by 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import RAYS1, RAYS2, Array
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.normal_equations import least_vectors, unit_norm

#: Where products of two of (x, y, z) stand among (x x, x y, x z, y y, y z, z z).
_PRODUCT = np.array([[0, 1, 2], [1, 3, 4], [2, 4, 5]])
#: Makes tr(P) I - P, the squared length across a ray, of a ray's products P.
_ACROSS = np.array([[1.0, 0, 0, 1, 0, 1]] * 6) * np.array([1.0, 0, 0, 1, 0, 1])[:, None] - np.eye(6)


def both_rays(data: Array) -> Array:
    """Return the rays of correspondences (n, 10) as rows (6, n) of coordinates."""
    return np.ascontiguousarray(data[:, RAYS1.start : RAYS2.stop].T)


def directions(rays: Array) -> Array:
    """Return rays of length 1."""
    return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))


def ray_products(rays: Array, weights: Array) -> Array:
    """Return sums (m, 6, 6) of weights (m, n) times products of the second rays times products of the first."""
    sums = np.zeros((len(weights), 6, 6))
    _sum_ray_products(rays, np.ascontiguousarray(weights), sums)
    return sums


def across_second(sums: Array) -> Array:
    """Return sums whose second part is the squared length across the second rays, tr(X X') I - X X'."""
    return np.asarray(_ACROSS @ sums)


def whitened(sums: Array) -> tuple[Array, Array, Array]:
    """Return quadratic forms (m, 9, 9) of matrices M' and the matrices A2, A1 (m, 3, 3) of M = A2' M' A1.

    Both parts of the sums have equal moments in every direction then, as in Hartley's normalisation but for rays: those of a narrow
    field of view are nearly one direction.
    """
    m = len(sums)
    grams, into2, into1 = np.empty((m, 9, 9)), np.zeros((m, 3, 3)), np.zeros((m, 3, 3))
    _whiten_kernel(np.ascontiguousarray(sums), grams, into2, into1)
    return grams, into2, into1


def unwhitened(models: Array, into2: Array, into1: Array) -> Array:
    """Return matrices (m, 9) of unit norm of rays, of those that `whitened` forms are of."""
    return unit_norm((into2.transpose(0, 2, 1) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def least_epipolar(rays: Array, weights: Array) -> Array:
    """Return matrices (m, 9) of least weighted (X2' M X1)^2, of any rank: the 8-point algorithm."""
    grams, into2, into1 = whitened(ray_products(rays, weights))
    return unwhitened(least_vectors(grams), into2, into1)


def squared_epipolar_distances(data: Array, models: Array) -> Array:
    """Return squared Sampson distances (m, n) of correspondences (n, 10) to epipolar matrices (m, 9) of rays.

    (X2' M X1)^2 / (|M X1|^2 + |M' X2|^2): the denominator is the squared gradient for moves of both points across their rays, but for
    what M X1 has along X2, which is as small as the error.
    """
    squared = np.empty((len(models), len(data)))
    _squared_epipolar(both_rays(data), np.ascontiguousarray(models), squared)
    return squared


def divided_by_gradients(rays: Array, models: Array, weights: Array) -> Array:
    """Return weights (m, n) divided by the squared gradients of X2' M X1; what is no number then has no weight."""
    divided = np.array(weights, order="C")
    _divide_by_ray_gradients(rays, np.ascontiguousarray(models), divided)
    return divided


@jit
def _squared_epipolar(rays: Any, models: Any, squared: Any) -> None:
    """Loops without branches over rows of coordinates compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        for row in range(rays.shape[1]):
            x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
            p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
            s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
            numerator = x2 * p + y2 * q + z2 * r
            error = numerator * numerator / (p * p + q * q + r * r + s * s + t * t + u * u + 1e-300)
            squared[item, row] = error if error < np.inf else np.inf


@jit
def _divide_by_ray_gradients(rays: Any, models: Any, weights: Any) -> None:
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        for row in range(rays.shape[1]):
            x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
            p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
            s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
            weight = weights[item, row] / (p * p + q * q + r * r + s * s + t * t + u * u)
            weights[item, row] = weight if abs(weight) < np.inf else 0.0


@jit
def _sum_ray_products(rays: Any, weights: Any, sums: Any) -> None:
    one, other = np.empty(6), np.empty(6)
    for item in range(len(weights)):
        for row in range(weights.shape[1]):
            weight = weights[item, row]
            if weight != 0.0:
                x, y, z = rays[0, row], rays[1, row], rays[2, row]
                one[0], one[1], one[2], one[3], one[4], one[5] = x * x, x * y, x * z, y * y, y * z, z * z
                x, y, z = rays[3, row], rays[4, row], rays[5, row]
                other[0], other[1], other[2], other[3], other[4], other[5] = x * x, x * y, x * z, y * y, y * z, z * z
                for i in range(6):
                    factor = weight * other[i]
                    for j in range(6):
                        sums[item, i, j] += factor * one[j]


@jit
def _whiten_kernel(sums: Any, grams: Any, into2: Any, into1: Any) -> None:
    moments, partly, whole = np.empty((2, 6)), np.empty((6, 6)), np.empty((6, 6))
    for item in range(len(sums)):
        own = sums[item]
        for i in range(6):
            moments[0, i] = own[0, i] + own[3, i] + own[5, i]
            moments[1, i] = own[i, 0] + own[i, 3] + own[i, 5]
        _write_whitening(moments[0], into1[item])
        _write_whitening(moments[1], into2[item])
        for i in range(6):
            _turn_products(into1[item], own[i], partly[i])
        for i in range(6):
            _turn_products(into2[item], partly[:, i], whole[:, i])
        for i in range(9):
            for j in range(9):
                grams[item, i, j] = whole[_PRODUCT[i // 3, j // 3], _PRODUCT[i % 3, j % 3]]


@jit
def _write_whitening(moments: Any, into: Any) -> None:
    """Write the inverse of the Cholesky factor of moments (x x, x y, x z, y y, y z, z z), a lower triangle."""
    trace = moments[0] + moments[3] + moments[5]
    shift = 1e-13 * trace + 1e-100
    a = np.sqrt(max(moments[0] + shift, shift))
    b, c = moments[1] / a, moments[2] / a
    d = np.sqrt(max(moments[3] + shift - b * b, shift))
    e = (moments[4] - b * c) / d
    f = np.sqrt(max(moments[5] + shift - c * c - e * e, shift))
    into[0, 0], into[1, 1], into[2, 2] = 1.0 / a, 1.0 / d, 1.0 / f
    into[1, 0], into[2, 1] = -b / (a * d), -e / (d * f)
    into[2, 0] = (b * e - c * d) / (a * d * f)


@jit
def _turn_products(into: Any, products: Any, turned: Any) -> None:
    """Write A P A' of products P and a lower triangle A."""
    a, b, c, d, e, f = into[0, 0], into[1, 0], into[1, 1], into[2, 0], into[2, 1], into[2, 2]
    xx, xy, xz, yy, yz, zz = products
    turned[0] = a * a * xx
    turned[1] = a * (b * xx + c * xy)
    turned[2] = a * (d * xx + e * xy + f * xz)
    turned[3] = b * b * xx + 2.0 * b * c * xy + c * c * yy
    turned[4] = b * (d * xx + e * xy + f * xz) + c * (d * xy + e * yy + f * yz)
    turned[5] = d * d * xx + e * e * yy + f * f * zz + 2.0 * (d * e * xy + d * f * xz + e * f * yz)
