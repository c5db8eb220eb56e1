"""What the fits of both families share: sums over matches, normalisation, the least vector of a quadratic form."""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array
from ruzhash_cv._kernels import jit

#: Where products of two of (x, y, 1) stand among (x x, x y, y y, x, y, 1).
PRODUCT = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
# A cofactor of a matrix is the product of the first two of these entries less that of the others.
_CROSSED = np.array(
    [[4, 5, 3, 7, 8, 6, 1, 2, 0], [8, 6, 7, 2, 0, 1, 5, 3, 4], [5, 3, 4, 8, 6, 7, 2, 0, 1], [7, 8, 6, 1, 2, 0, 4, 5, 3]]
)
#: Matches off a plane that fix the epipole, and with it the matrix of a motion: these fit it whatever they are.
PARALLAX_SIZE = 2
#: Inverse iteration stops here at the latest; on degenerate data any vector of a null space will do.
_MOST_ITERATIONS = 40


def unit_norm(models: Array) -> Array:
    """Return models (m, 9) divided by their Euclidean norms; a zero model becomes NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled: Array = models / np.sqrt(np.einsum("mi,mi->m", models, models))[:, None]
    return scaled


def weighted_products(data: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return the sums (m, 6, 6) that normal equations are made of, and the similarity (m, 3, 3) that normalises each image.

    Sums of weights times (u u, u v, v v, u, v, 1) times (x x, x y, y y, x, y, 1). (x, y) and (u, v) are the points of the first and
    the second image, moved to a centroid of 0 and a root mean square distance of sqrt(2) from it (Hartley and Zisserman, 4.4.4).
    """
    sums, similarities = np.zeros((len(weights), 6, 6)), np.zeros((2, len(weights), 3, 3))
    sum_products(np.ascontiguousarray(data), np.ascontiguousarray(weights), similarities, sums)
    return sums, similarities[0], similarities[1]


@jit
def normalise(data: Any, weights: Any, rows: Any, moments: Any, similarities: Any) -> None:
    """Write the similarities (2, 3, 3) that normalise each image's `rows`; `moments` (2, 3) is room for sums."""
    total = 0.0
    moments[:] = 0.0
    for row in rows:
        weight = weights[row]
        total += weight
        for image in range(2):
            x, y = data[row, 2 * image], data[row, 2 * image + 1]
            moments[image, 0] += weight * x
            moments[image, 1] += weight * y
            moments[image, 2] += weight * (x * x + y * y)
    for image in range(2):
        mx, my = moments[image, 0] / total, moments[image, 1] / total
        s = np.sqrt(2.0 / max(moments[image, 2] / total - mx * mx - my * my, 1e-300))
        into = similarities[image]
        into[0, 0], into[1, 1], into[2, 2], into[0, 2], into[1, 2] = s, s, 1.0, -s * mx, -s * my


@jit
def sum_products(data: Any, weights: Any, similarities: Any, sums: Any) -> None:
    """Add up; one thread does it, where a matrix product would wake all of them.

    Most weights are 0. The rows of the others are listed first, without a branch to be foreseen.
    """
    n = np.uint64(weights.shape[1])
    moments, monomials, weighted = np.empty((2, 3)), np.ones((2, 6)), np.empty(n, np.uint64)
    for item in range(len(weights)):
        n_weighted = np.uint64(0)
        for row in range(n):
            weighted[n_weighted] = row
            n_weighted += np.uint64(weights[item, row] != 0.0)
        rows = weighted[:n_weighted]
        normalise(data, weights[item], rows, moments, similarities[:, item])
        for row in rows:
            for image in range(2):
                into = similarities[image, item]
                x = into[0, 0] * data[row, 2 * image] + into[0, 2]
                y = into[1, 1] * data[row, 2 * image + 1] + into[1, 2]
                terms = monomials[image]
                terms[0], terms[1], terms[2], terms[3], terms[4] = x * x, x * y, y * y, x, y
            for i in range(6):
                factor = weights[item, row] * monomials[1, i]
                for j in range(6):
                    sums[item, i, j] += factor * monomials[0, j]


def least_vectors(grams: Array) -> Array:
    """Return a unit eigenvector (m, k) of the smallest eigenvalue of each positive semi-definite matrix (m, k, k)."""
    work = np.array(grams, np.float64, order="C")
    vectors = np.ones(work.shape[:2])
    inverse_iteration(work, vectors, np.empty(work.shape[1]))
    return vectors


@jit
def inverse_iteration(grams: Any, vectors: Any, previous: Any) -> None:
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


def of_rank_two(models: Array, grams: Array) -> Array:
    """Return the matrices of rank 2 whose error f'Gf is least, near the least vectors f (m, 9) of `grams` G (m, 9, 9).

    A step of least cost to det F = 0 is along G^-1 times the gradient of det F, its cofactors (Kanatani and Sugaya, "Compact
    fundamental matrix computation", IPSJ 2010). What two steps leave goes with the smallest singular triplet, F (1 - v v').
    """
    costs, fitted = without_scale(grams, models), models
    for _ in range(2):
        a, b, c, d = (fitted.take(entries, axis=1) for entries in _CROSSED)
        cofactors = a * b - c * d
        step = np.linalg.solve(costs, cofactors[:, :, None])[:, :, 0]
        determinants = np.einsum("mi,mi->m", cofactors, fitted) / 3.0
        moved = fitted - (determinants / np.einsum("mi,mi->m", cofactors, step))[:, None] * step
        fitted = np.where(np.isfinite(moved).all(axis=1, keepdims=True), moved, fitted)
    matrices = fitted.reshape(-1, 3, 3)
    epipole = least_vectors(matrices.transpose(0, 2, 1) @ matrices)
    return (matrices - (matrices @ epipole[:, :, None]) * epipole[:, None, :]).reshape(-1, 9)


def without_scale(grams: Array, models: Array) -> Array:
    """Return `grams` (m, 9, 9) that no longer leave the length of `models` (m, 9) free, and have inverses."""
    trace = np.trace(grams, axis1=1, axis2=2)[:, None, None]
    costs: Array = grams + trace * models[:, :, None] * models[:, None, :] + (1e-13 * trace + 1e-300) * np.eye(9)
    return costs


def parallax(plane: Array, first: Array, second: Array, n: int, rng: np.random.Generator) -> Array:
    """Return [e]_x H (n, 9) of a plane's homography H (9,) and two matches off it each, drawn among homogeneous points (k, 3).

    The epipole e is where the lines H x1, x2 of the two meet.
    """
    matrix = plane.reshape(3, 3)
    if len(first) < PARALLAX_SIZE:
        return np.zeros((0, 9))
    lines = np.cross(first @ matrix.T, second)
    i, j = rng.integers(len(first), size=(2, n))
    epipoles = np.cross(lines[i], lines[j])
    # Row r of [e]_x H is the cross product of e and H's columns.
    return unit_norm(np.cross(epipoles[:, None], matrix.T[None]).transpose(0, 2, 1).reshape(-1, 9))
