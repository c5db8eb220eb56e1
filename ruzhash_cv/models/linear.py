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

#: Where products of two of (x, y, z) stand among (x x, x y, y y, x z, y z, z z).
_PRODUCT = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
#: Inverse iteration stops here at the latest; on degenerate data any vector of a null space will do.
_MOST_ITERATIONS = 40


def has_rays(data: Array) -> bool:
    """Return whether rows (..., 10) hold rays, beside the four coordinates."""
    return bool(data.shape[-1] > COORDINATES.stop)


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


def quadratic_forms(points: Array, weights: Array, part: Array, is_whitened: bool) -> tuple[Array, Array, Array]:
    """Return quadratic forms (m, 9, 9) of matrices M' in normalised coordinates, and the matrices A1, A2 (m, 3, 3) that normalise.

    The forms are sums of weights (m, n) times products of the first points (6, n) times `part` (6, 6) of products of the second points.
    Pixels are moved to a centroid of 0 and a root mean square distance of sqrt(2) from it (Hartley and Zisserman, 4.4.4). Rays are
    whitened afterwards: both parts of the forms have equal moments in every direction, and M = A2' M' A1.
    """
    m = len(weights)
    forms, into = np.empty((m, 9, 9)), np.zeros((2, m, 3, 3)) + np.eye(3)
    _sum_products(np.ascontiguousarray(points.T), np.ascontiguousarray(weights), part, is_whitened, into, forms)
    into1, into2 = into
    if is_whitened:
        both = (into2[:, :, None, :, None] * into1[:, None, :, None, :]).reshape(m, 9, 9)
        forms = both @ forms @ both.swapaxes(1, 2)
    return forms, into1, into2


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
def _normalise(points: Any, weights: Any, rows: Any, into: Any) -> None:
    """Write the similarity (3, 3) that normalises the pixels (3, n) of `rows`."""
    total = sum_x = sum_y = sum_squares = 0.0
    for row in rows:
        weight, x, y = weights[row], points[row, 0], points[row, 1]
        total += weight
        sum_x += weight * x
        sum_y += weight * y
        sum_squares += weight * (x * x + y * y)
    x, y = sum_x / total, sum_y / total
    s = np.sqrt(2.0 / max(sum_squares / total - x * x - y * y, 1e-300))
    into[0, 0], into[1, 1], into[0, 2], into[1, 2] = s, s, -s * x, -s * y


@jit
def _sum_products(points: Any, weights: Any, part: Any, is_whitened: bool, into: Any, forms: Any) -> None:
    """Add up; one thread does it, where a matrix product would wake all of them.

    Most weights are 0. The rows of the others are listed first, without a branch to be foreseen.
    """
    n = np.uint64(weights.shape[1])
    monomials, sums, second, weighted = np.empty((2, 6)), np.empty((6, 6)), np.empty((6, 6)), np.empty(n, np.uint64)
    for item in range(len(weights)):
        n_weighted = np.uint64(0)
        for row in range(n):
            weighted[n_weighted] = row
            n_weighted += np.uint64(weights[item, row] != 0.0)
        rows = weighted[:n_weighted]
        if not is_whitened:
            _normalise(points[:, :3], weights[item], rows, into[0, item])
            _normalise(points[:, 3:], weights[item], rows, into[1, item])
        sums[:] = 0.0
        for row in rows:
            for image in range(2):
                to, terms = into[image, item], monomials[image]
                z = points[row, 3 * image + 2]
                x = to[0, 0] * points[row, 3 * image] + to[0, 2] * z
                y = to[1, 1] * points[row, 3 * image + 1] + to[1, 2] * z
                terms[0], terms[1], terms[2], terms[3], terms[4], terms[5] = x * x, x * y, y * y, x * z, y * z, z * z
            for i in range(6):
                factor = weights[item, row] * monomials[1, i]
                for j in range(6):
                    sums[i, j] += factor * monomials[0, j]
        second[:] = 0.0
        for i in range(6):
            for k in range(6):
                for j in range(6):
                    second[i, j] += part[i, k] * sums[k, j]
        if is_whitened:
            _whiten(second[0] + second[2] + second[5], into[0, item])
            _whiten(second[:, 0] + second[:, 2] + second[:, 5], into[1, item])
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
    work = np.array(grams, np.float64, order="C")
    vectors = np.ones(work.shape[:2])
    _inverse_iteration(work, vectors, np.empty(work.shape[1]))
    return vectors


@jit
def _inverse_iteration(grams: Any, vectors: Any, previous: Any) -> None:
    """Only the lower triangles of `grams` are read, and overwritten with Cholesky factors, inverse on the diagonal."""
    n = grams.shape[1]
    for item in range(len(grams)):
        shift = 0.0
        for i in range(n):
            shift += grams[item, i, i]
        shift = 1e-13 * shift + 1e-300
        for i in range(n):
            for j in range(i):
                total = grams[item, i, j]
                for k in range(j):
                    total -= grams[item, i, k] * grams[item, j, k]
                grams[item, i, j] = total * grams[item, j, j]
            total = grams[item, i, i] + shift
            for k in range(i):
                total -= grams[item, i, k] * grams[item, i, k]
            if not total > shift:
                total = shift
            grams[item, i, i] = 1.0 / np.sqrt(total)
            # Any start that is not orthogonal to the answer: unequal entries, so that symmetry cannot make it so.
            previous[i] = 1.0 + 0.37 * i - 0.11 * i * i
        for iteration in range(_MOST_ITERATIONS):
            norm = 0.0
            for i in range(n):
                total = previous[i]
                for k in range(i):
                    total -= grams[item, i, k] * vectors[item, k]
                vectors[item, i] = total * grams[item, i, i]
            for i in range(n - 1, -1, -1):
                total = vectors[item, i]
                for k in range(i + 1, n):
                    total -= grams[item, k, i] * vectors[item, k]
                vectors[item, i] = total * grams[item, i, i]
                norm += vectors[item, i] * vectors[item, i]
            norm, along = 1.0 / np.sqrt(norm), 0.0
            for i in range(n):
                vectors[item, i] *= norm
                along += vectors[item, i] * previous[i]
                previous[i] = vectors[item, i]
            if iteration > 0 and abs(along) > 1.0 - 1e-14:
                break
