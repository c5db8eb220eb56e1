"""Local optimisation: models refitted, over and over, to the correspondences that agree with them.

Least squares on more than a minimal sample: the normalised direct linear transform and the normalised 8-point algorithm
(Hartley and Zisserman, algorithms 4.2 and 11.1), iteratively reweighted towards the geometric distance and by Tukey's
biweight, with a radius that closes in.

Kernels take correspondences as rows of coordinates, `points` (4, n), and a consensus set as `near` (row numbers) with
`weights`, of which the first `count` entries are in use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._jit import jit
from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.residuals import squared_residuals

#: Biweights that a refit needs: one more than the minimal sample of a homography, two more than a fundamental matrix's.
_FEWEST = (5.0, 9.0)
#: Inverse iteration stops here at the latest; on degenerate consensus sets any vector of a null space will do.
_MOST_ITERATIONS = 40
#: Where products of two of (x, y, 1) stand among (x x, x y, y y, x, y, 1).
_PRODUCT = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])


@jit
def smallest_eigenvector(matrix: Any, vector: Any) -> None:
    """Write a unit eigenvector of the smallest eigenvalue of a positive semi-definite matrix, by inverse iteration.

    Only the lower triangle of `matrix` is read, and overwritten with its Cholesky factor, inverse on the diagonal.
    """
    n = len(matrix)
    shift = 0.0
    for i in range(n):
        shift += matrix[i, i]
    shift = 1e-13 * shift + 1e-300
    for i in range(n):
        for j in range(i):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = total * matrix[j, j]
        total = matrix[i, i] + shift
        for k in range(i):
            total -= matrix[i, k] * matrix[i, k]
        matrix[i, i] = 1.0 / np.sqrt(max(total, shift))
    previous = np.empty(n)
    for i in range(n):
        # Any start that is not orthogonal to the answer: unequal entries, so that symmetry cannot make it so.
        previous[i] = 1.0 + 0.37 * i - 0.11 * i * i
    for iteration in range(_MOST_ITERATIONS):
        norm = 0.0
        for i in range(n):
            total = previous[i]
            for k in range(i):
                total -= matrix[i, k] * vector[k]
            vector[i] = total * matrix[i, i]
        for i in range(n - 1, -1, -1):
            total = vector[i]
            for k in range(i + 1, n):
                total -= matrix[k, i] * vector[k]
            vector[i] = total * matrix[i, i]
            norm += vector[i] * vector[i]
        norm, along = 1.0 / np.sqrt(norm), 0.0
        for i in range(n):
            vector[i] *= norm
            along += vector[i] * previous[i]
            previous[i] = vector[i]
        if iteration > 0 and abs(along) > 1.0 - 1e-14:
            break


@jit
def normaliser(points: Any, near: Any, weights: Any, count: int) -> Any:
    """Return the weighted centroids and the scales that bring points to a root mean square distance of sqrt(2) from them.

    (x1, y1, x2, y2, s1, s2).
    """
    frame = np.zeros(6)
    total = 0.0
    for item in range(count):
        total += weights[item]
        for axis in range(4):
            frame[axis] += weights[item] * points[axis, near[item]]
    for axis in range(4):
        frame[axis] /= total
    for item in range(count):
        for axis in range(4):
            offset = points[axis, near[item]] - frame[axis]
            frame[4 + axis // 2] += weights[item] * offset * offset
    for image in range(4, 6):
        frame[image] = np.sqrt(2.0 * total / (frame[image] + 1e-300))
    return frame


@jit
def moments(points: Any, near: Any, weights: Any, count: int, frame: Any) -> Any:
    """Return the weighted sums of products of (u u, u v, v v, u, v, 1) with (x x, x y, y y, x, y, 1), shape (6, 6).

    (x, y) and (u, v) are the points of the first and the second image, normalised. Both families' normal equations are made of
    these sums.
    """
    sums, first, second = np.zeros((6, 6)), np.ones(6), np.ones(6)
    for item in range(count):
        row, weight = near[item], weights[item]
        x, y = (points[0, row] - frame[0]) * frame[4], (points[1, row] - frame[1]) * frame[4]
        u, v = (points[2, row] - frame[2]) * frame[5], (points[3, row] - frame[3]) * frame[5]
        first[0], first[1], first[2], first[3], first[4] = x * x, x * y, y * y, x, y
        second[0], second[1], second[2], second[3], second[4] = u * u, u * v, v * v, u, v
        for i in range(6):
            factor = weight * second[i]
            for j in range(6):
                sums[i, j] += factor * first[j]
    return sums


@jit
def fit_homography(points: Any, near: Any, weights: Any, count: int) -> Any:
    """Return the homography (9,) of least weighted algebraic error."""
    frame = normaliser(points, near, weights, count)
    sums = moments(points, near, weights, count, frame)
    gram, h = np.zeros((9, 9)), np.empty(9)
    for i in range(3):
        for j in range(3):
            at = _PRODUCT[i, j]
            gram[i, j] = gram[3 + i, 3 + j] = sums[5, at]
            gram[6 + i, j], gram[6 + i, 3 + j] = -sums[3, at], -sums[4, at]
            gram[6 + i, 6 + j] = sums[0, at] + sums[2, at]
    smallest_eigenvector(gram, h)
    # H = T2^-1 h T1
    for i in range(0, 9, 3):
        h[i], h[i + 1] = h[i] * frame[4], h[i + 1] * frame[4]
        h[i + 2] -= h[i] * frame[0] + h[i + 1] * frame[1]
    for j in range(3):
        h[j] = h[j] / frame[5] + frame[2] * h[6 + j]
        h[3 + j] = h[3 + j] / frame[5] + frame[3] * h[6 + j]
    return h


@jit
def fit_fundamental(points: Any, near: Any, weights: Any, count: int) -> Any:
    """Return the fundamental matrix (9,), of rank 2, of least weighted algebraic error."""
    frame = normaliser(points, near, weights, count)
    sums = moments(points, near, weights, count, frame)
    gram, f = np.empty((9, 9)), np.empty(9)
    for i in range(9):
        for j in range(9):
            gram[i, j] = sums[_PRODUCT[i // 3, j // 3], _PRODUCT[i % 3, j % 3]]
    smallest_eigenvector(gram, f)
    # The nearest matrix of rank 2 in Frobenius norm is f without its smallest singular triplet: f (1 - v v').
    square, epipole = np.zeros((3, 3)), np.empty(3)
    for i in range(3):
        for j in range(3):
            for k in range(0, 9, 3):
                square[i, j] += f[k + i] * f[k + j]
    smallest_eigenvector(square, epipole)
    # F = T2' f T1
    for i in range(0, 9, 3):
        along = f[i] * epipole[0] + f[i + 1] * epipole[1] + f[i + 2] * epipole[2]
        for j in range(3):
            f[i + j] -= along * epipole[j]
        f[i], f[i + 1] = f[i] * frame[4], f[i + 1] * frame[4]
        f[i + 2] -= f[i] * frame[0] + f[i + 1] * frame[1]
    for j in range(3):
        f[j], f[3 + j] = f[j] * frame[5], f[3 + j] * frame[5]
        f[6 + j] -= f[j] * frame[2] + f[3 + j] * frame[3]
    return f


@jit
def pack_one(matrix: Any, packed: Any, kinds: Any, column: int) -> bool:
    """Write one model, at unit norm, as the 18 numbers of `residuals.pack_models`; False, and nothing, where it is not finite."""
    norm = 0.0
    for i in range(9):
        norm += matrix[i] * matrix[i]
    norm = 1.0 / np.sqrt(norm)
    if not 0.0 < norm < np.inf:
        return False
    for i in range(9):
        packed[column, i] = matrix[i] * norm
    if kinds[column] == HOMOGRAPHY:
        for i in range(3):
            for j in range(3):
                a, b, c, d = (j + 1) % 3, (j + 2) % 3, (i + 1) % 3, (i + 2) % 3
                packed[column, 9 + 3 * i + j] = (
                    packed[column, 3 * a + c] * packed[column, 3 * b + d]
                    - packed[column, 3 * a + d] * packed[column, 3 * b + c]
                )
    return True


@jit
def reweigh(
    points: Any, votes: Any, packed: Any, kinds: Any, column: int, radius: float, near: Any, weights: Any
) -> Any:
    """Write the consensus set of a model and its weights in the next fit; return its size and the sum of biweights.

    Tukey's biweight of residual / radius, times the correspondence's votes, divided by the squared factor between algebraic
    and geometric distance.
    """
    squared_residuals(points, packed, kinds, column, weights)
    m, limit = packed, radius * radius
    # Not literals: numba would compile all that is called with them once more.
    count: Any = np.int64(0)
    support = 0.0
    for row in range(points.shape[1]):
        squared = weights[row]
        if not squared < limit or votes[row] <= 0.0:
            continue
        x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
        if kinds[column] == HOMOGRAPHY:
            factor = (m[column, 6] * x1 + m[column, 7] * y1 + m[column, 8]) ** 2
        else:
            factor = (m[column, 0] * x1 + m[column, 1] * y1 + m[column, 2]) ** 2
            factor += (m[column, 3] * x1 + m[column, 4] * y1 + m[column, 5]) ** 2
            factor += (m[column, 0] * x2 + m[column, 3] * y2 + m[column, 6]) ** 2
            factor += (m[column, 1] * x2 + m[column, 4] * y2 + m[column, 7]) ** 2
        if factor > 0.0:
            biweight = votes[row] * (1.0 - squared / limit) * (1.0 - squared / limit)
            support += biweight
            # In place: what has been read is overwritten from the front.
            near[count], weights[count] = row, biweight / factor
            count += 1
    return count, support


@jit
def refine_one(
    points: Any, votes: Any, packed: Any, kinds: Any, column: int, radius: float, near: Any, weights: Any
) -> bool:
    """Refit one packed model, in place, to what lies within `radius`; False where too little does.

    `near` and `weights` (n,) are room to work in.
    """
    count, support = reweigh(points, votes, packed, kinds, column, radius, near, weights)
    if support < _FEWEST[kinds[column]]:
        return False
    if kinds[column] == HOMOGRAPHY:
        return pack_one(fit_homography(points, near, weights, count), packed, kinds, column)
    return pack_one(fit_fundamental(points, near, weights, count), packed, kinds, column)


@jit
def refine_kernel(points: Any, votes: Any, packed: Any, kinds: Any, radii: Any) -> Any:
    """Refit every model with each of its `radii` (rounds, m) in turn and return all the fits, (rounds, m, 18).

    Where a fit fails the one before stays.
    """
    refined = np.empty((len(radii), len(packed), 18))
    near, weights = np.empty(points.shape[1], np.int64), np.empty(points.shape[1])
    for step in range(len(radii)):
        for column in range(len(packed)):
            for item in range(18):
                refined[step, column, item] = packed[column, item] if step == 0 else refined[step - 1, column, item]
            refine_one(points, votes, refined[step], kinds, column, radii[step, column], near, weights)
    return refined
