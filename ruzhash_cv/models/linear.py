"""What the fits of all families of two views share: sums over matches, normalisation, the least vector of a quadratic form.

A point is three homogeneous coordinates: (x, y, 1) of a pixel, a ray if the cameras are known. Rows of such correspondences have ten
columns: the four coordinates, the ray of the first image and the ray of the second. A ray is as long as an angle of one radian is there
in the unit of the coordinates, so that residuals are lengths in the images in every direction, also behind a fisheye.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import COORDINATES, RAYS1, RAYS2, Array
from ruzhash_cv._kernels import jit

_N_COORDINATES: int = COORDINATES.stop
#: Where products of two of (x, y, z) stand among (x x, x y, y y, x z, y z, z z).
_PRODUCT = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
#: Inverse iteration stops here at the latest; on degenerate data any vector of a null space will do. As plain numbers they would
#: compile for themselves first.
MOST_ITERATIONS, NO_ITERATIONS = np.int64(40), np.int64(0)


def has_rays(data: Array) -> bool:
    """Return whether rows (..., 10) hold rays, beside the four coordinates."""
    n_columns: int = data.shape[-1]
    return n_columns > _N_COORDINATES


def homogeneous(data: Array) -> Array:
    """Return both points of correspondences (n, 4) or (n, 10) as rows (6, n) of coordinates, of samples (s, k, d) as (6, k, s)."""
    if has_rays(data):
        return np.ascontiguousarray(data.T[RAYS1.start : RAYS2.stop])
    points = np.ones((6, *data.T.shape[1:]))
    points[[0, 1, 3, 4]] = data.T
    return points


def directions(rays: Array) -> Array:
    """Return rays of length 1."""
    return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))


def unit_norm(models: Array) -> Array:
    """Return models (m, 9) divided by their Euclidean norms; a zero model becomes NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Array = models / np.sqrt(np.einsum("mi,mi->m", models, models))[:, None]
    return scaled


def carried(models: Array, into1: Array, into2: Array) -> Array:
    """Return A2' M A1 (m, 9) of unit norm: a bilinear form of points, for the points that A1, A2 (3, 3) brought to the models'."""
    return unit_norm((into2.swapaxes(-1, -2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def divided_by_gradients(points: Array, models: Array, weights: Array, factors: tuple[float, ...]) -> Array:
    """Return weights (m, n) divided by squared gradients; if one is not finite, the weight is 0.

    With M X1 = (p, q, r) and M' X2 = (s, t, u), the square is f0 (p^2 + q^2) + f1 r^2 + f2 (s^2 + t^2) + f3 u^2.
    """
    divided = np.array(weights, order="C")
    _divide_by_gradients(points, np.ascontiguousarray(models), divided, factors)
    return divided


def quadratic_forms(rays: Array, weights: Array, part: Array) -> tuple[Array, Array, Array]:
    """Return quadratic forms (m, 9, 9) of matrices M' of whitened rays, M = A2' M' A1, and A1, A2 (m, 3, 3) that whiten.

    The forms are sums of weights (m, n) times products of the first rays (6, n) times `part` (6, 6) of products of the second rays.
    Both parts of the forms have equal moments in every direction.
    """
    m = len(weights)
    forms, into = np.empty((m, 9, 9)), np.zeros((2, m, 3, 3))
    _sum_products(np.ascontiguousarray(rays.T), np.ascontiguousarray(weights), part, into, forms)
    into1, into2 = into
    both = (into2[:, :, None, :, None] * into1[:, None, :, None, :]).reshape(m, 9, 9)
    return both @ forms @ both.swapaxes(1, 2), into1, into2


@jit
def _divide_by_gradients(points: Any, models: Any, weights: Any, factors: Any) -> None:
    across1, along1, across2, along2 = factors
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        for row in range(points.shape[1]):
            x1, y1, z1 = points[0, row], points[1, row], points[2, row]
            x2, y2, z2 = points[3, row], points[4, row], points[5, row]
            p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
            s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
            square = across1 * (p * p + q * q) + along1 * r * r + across2 * s * s + across2 * t * t + along2 * u * u
            weight = weights[item, row] / square
            weights[item, row] = weight if abs(weight) < np.inf else 0.0


@jit
def _sum_products(rays: Any, weights: Any, part: Any, into: Any, forms: Any) -> None:
    """Add up; one thread does it, where a matrix product would wake all of them."""
    monomials, sums, second, moments = np.empty((2, 6)), np.empty((6, 6)), np.empty((6, 6)), np.empty((2, 6))
    for item in range(len(weights)):
        for i in range(6):
            for j in range(6):
                sums[i, j] = second[i, j] = 0.0
        for row in range(len(rays)):
            if weights[item, row] != 0.0:
                for image in range(2):
                    terms = monomials[image]
                    x, y, z = rays[row, 3 * image], rays[row, 3 * image + 1], rays[row, 3 * image + 2]
                    terms[0], terms[1], terms[2], terms[3], terms[4], terms[5] = (
                        x * x,
                        x * y,
                        y * y,
                        x * z,
                        y * z,
                        z * z,
                    )
                for i in range(6):
                    factor = weights[item, row] * monomials[1, i]
                    for j in range(6):
                        sums[i, j] += factor * monomials[0, j]
        for i in range(6):
            for k in range(6):
                for j in range(6):
                    second[i, j] += part[i, k] * sums[k, j]
        for i in range(6):
            moments[0, i] = second[0, i] + second[2, i] + second[5, i]
            moments[1, i] = second[i, 0] + second[i, 2] + second[i, 5]
        _whiten(moments[0], into[0, item])
        _whiten(moments[1], into[1, item])
        for i in range(9):
            for j in range(9):
                forms[item, i, j] = second[_PRODUCT[i // 3, j // 3], _PRODUCT[i % 3, j % 3]]


@jit
def _whiten(moments: Any, into: Any) -> None:
    """Write the inverse of the Cholesky factor of moments (x x, x y, y y, x z, y z, z z), a lower triangle."""
    trace = moments[0] + moments[2] + moments[5]
    shift = 1e-13 * trace + 1e-100
    a = np.sqrt(max(moments[0] + shift, shift))
    b, c = moments[1] / a, moments[3] / a
    d = np.sqrt(max(moments[2] + shift - b * b, shift))
    e = (moments[4] - b * c) / d
    f = np.sqrt(max(moments[5] + shift - c * c - e * e, shift))
    into[0, 0], into[1, 1], into[2, 2] = 1.0 / a, 1.0 / d, 1.0 / f
    into[1, 0], into[2, 1] = -b / (a * d), -e / (d * f)
    into[2, 0] = (b * e - c * d) / (a * d * f)


def least_vectors(grams: Array) -> Array:
    """Return a unit eigenvector (m, k) of the smallest eigenvalue of each positive semi-definite matrix (m, k, k)."""
    grams = np.ascontiguousarray(grams, np.float64)
    m, k, _ = grams.shape
    vectors, nothing, factor = np.ones((m, k)), np.zeros(k), np.empty((k + 1, k))
    for gram, vector in zip(grams, vectors, strict=True):
        solve(gram, nothing, vector, factor, MOST_ITERATIONS)
    return vectors


@jit
def solve(gram: Any, model: Any, vector: Any, factor: Any, n_iterations: Any) -> None:
    """Overwrite a vector b with the solution x of (G + tr(G) f f') x = b, by Cholesky's factor.

    Of a form G that leaves the length of a model f free the sum has an inverse. A share of the trace that rounding would hide is added
    as well, so that any matrix has one. With iterations the vector becomes a unit eigenvector of the smallest eigenvalue, whatever it
    was, by inverse iteration.
    """
    n, trace = len(vector), 0.0
    for i in range(n):
        trace += gram[i, i]
    shift = 1e-13 * trace + 1e-300
    for i in range(n):
        for j in range(i + 1):
            total = gram[i, j] + trace * model[i] * model[j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = total * factor[j, j]
            else:
                # The inverse is on the diagonal.
                factor[i, i] = 1.0 / np.sqrt(total + shift if total > 0.0 else shift)
        # Any start that is not orthogonal to the answer: unequal entries, so that symmetry cannot make it so.
        factor[n, i] = 1.0 + 0.37 * i - 0.11 * i * i
        if n_iterations > 0:
            vector[i] = factor[n, i]
    for iteration in range(n_iterations if n_iterations > 0 else 1):
        norm = along = 0.0
        for i in range(n):
            total = vector[i]
            for k in range(i):
                total -= factor[i, k] * vector[k]
            vector[i] = total * factor[i, i]
        for i in range(n - 1, -1, -1):
            total = vector[i]
            for k in range(i + 1, n):
                total -= factor[k, i] * vector[k]
            vector[i] = total * factor[i, i]
            norm += vector[i] * vector[i]
        if n_iterations > 0:
            norm = 1.0 / np.sqrt(norm)
            for i in range(n):
                vector[i] *= norm
                along += vector[i] * factor[n, i]
                factor[n, i] = vector[i]
            if iteration > 0 and abs(along) > 1.0 - 1e-14:
                break


@jit
def write_similarities(points: Any, rows: Any, weights: Any, n: int, similarities: Any) -> None:
    """Write s, t, u (2, 3) of the similarities (s x + t, s y + u) that normalise n weighted pixels (Hartley and Zisserman, 4.4.4).

    They bring the centroid to 0, and the root mean square distance from it to sqrt(2).
    """
    for image in range(2):
        total = sum_x = sum_y = sum_squares = 0.0
        for at in range(n):
            weight, x, y = weights[at], points[2 * image, rows[at]], points[2 * image + 1, rows[at]]
            total += weight
            sum_x += weight * x
            sum_y += weight * y
            sum_squares += weight * (x * x + y * y)
        x, y = sum_x / total, sum_y / total
        spread = sum_squares / total - x * x - y * y
        s = np.sqrt(2.0 / (spread if spread > 1e-300 else 1e-300))
        similarities[image, 0], similarities[image, 1], similarities[image, 2] = s, -s * x, -s * y
