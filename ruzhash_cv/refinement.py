"""Local optimisation: models refitted, over and over, to the correspondences that agree with them.

Least squares on more than a minimal sample: the normalised direct linear transform and the normalised 8-point algorithm
(Hartley and Zisserman, algorithms 4.2 and 11.1), iteratively reweighted towards the geometric distance and by Tukey's
biweight, with a radius that closes in.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._jit import jit
from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.residuals import model_residual


@jit
def smallest_eigenvector(matrix: Any) -> Any:
    """Return a unit eigenvector of the smallest eigenvalue of a positive semi-definite matrix, by inverse iteration."""
    n = len(matrix)
    lower = np.zeros((n, n))
    shift = 0.0
    for i in range(n):
        shift += matrix[i, i]
    shift = 1e-13 * shift + 1e-300
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j] + (shift if i == j else 0.0)
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(max(total, shift)) if i == j else total / lower[j, j]
    vector = np.empty(n)
    for i in range(n):
        # Any start that is not orthogonal to the answer: unequal entries, so that symmetry cannot make it so.
        vector[i] = 1.0 + 0.37 * i - 0.11 * i * i
    vector /= np.sqrt(np.dot(vector, vector))
    previous = np.zeros(n)
    for _ in range(100):
        previous[:] = vector
        for i in range(n):
            for k in range(i):
                vector[i] -= lower[i, k] * vector[k]
            vector[i] /= lower[i, i]
        norm = 0.0
        for i in range(n - 1, -1, -1):
            for k in range(i + 1, n):
                vector[i] -= lower[k, i] * vector[k]
            vector[i] /= lower[i, i]
            norm += vector[i] * vector[i]
        vector /= np.sqrt(norm)
        if abs(np.dot(vector, previous)) > 1.0 - 1e-14:
            break
    return vector


@jit
def normaliser(pairs: Any, weights: Any) -> Any:
    """Return the weighted centroids and the inverse mean distances from them: (x1, y1, x2, y2, s1, s2)."""
    out = np.zeros(6)
    total = weights.sum()
    for row in range(len(pairs)):
        if weights[row] > 0.0:
            for axis in range(4):
                out[axis] += weights[row] * pairs[row, axis] / total
    for row in range(len(pairs)):
        if weights[row] > 0.0:
            out[4] += weights[row] * np.sqrt((pairs[row, 0] - out[0]) ** 2 + (pairs[row, 1] - out[1]) ** 2) / total
            out[5] += weights[row] * np.sqrt((pairs[row, 2] - out[2]) ** 2 + (pairs[row, 3] - out[3]) ** 2) / total
    out[4], out[5] = np.sqrt(2.0) / (out[4] + 1e-300), np.sqrt(2.0) / (out[5] + 1e-300)
    return out


@jit
def fit_homography(pairs: Any, weights: Any) -> Any:
    """Return the homography (9,) of least weighted algebraic error."""
    frame = normaliser(pairs, weights)
    gram = np.zeros((9, 9))
    first, second = np.zeros(9), np.zeros(9)
    for row in range(len(pairs)):
        if weights[row] <= 0.0:
            continue
        x, y = (pairs[row, 0] - frame[0]) * frame[4], (pairs[row, 1] - frame[1]) * frame[4]
        u, v = (pairs[row, 2] - frame[2]) * frame[5], (pairs[row, 3] - frame[3]) * frame[5]
        first[0], first[1], first[2], first[6], first[7], first[8] = x, y, 1.0, -u * x, -u * y, -u
        second[3], second[4], second[5], second[6], second[7], second[8] = x, y, 1.0, -v * x, -v * y, -v
        for i in range(9):
            a, b = weights[row] * first[i], weights[row] * second[i]
            for j in range(i + 1):
                gram[i, j] += a * first[j] + b * second[j]
    h = smallest_eigenvector(gram).reshape(3, 3)
    # H = T2^-1 h T1
    model = np.empty((3, 3))
    for i in range(3):
        a, b = h[i, 0] * frame[4], h[i, 1] * frame[4]
        model[i, 0], model[i, 1], model[i, 2] = a, b, h[i, 2] - a * frame[0] - b * frame[1]
    for j in range(3):
        model[0, j] = model[0, j] / frame[5] + frame[2] * model[2, j]
        model[1, j] = model[1, j] / frame[5] + frame[3] * model[2, j]
    return (model / np.sqrt((model * model).sum())).reshape(9)


@jit
def fit_fundamental(pairs: Any, weights: Any) -> Any:
    """Return the fundamental matrix (9,), of rank 2, of least weighted algebraic error."""
    frame = normaliser(pairs, weights)
    gram = np.zeros((9, 9))
    line = np.empty(9)
    for row in range(len(pairs)):
        if weights[row] <= 0.0:
            continue
        x, y = (pairs[row, 0] - frame[0]) * frame[4], (pairs[row, 1] - frame[1]) * frame[4]
        u, v = (pairs[row, 2] - frame[2]) * frame[5], (pairs[row, 3] - frame[3]) * frame[5]
        line[0], line[1], line[2] = u * x, u * y, u
        line[3], line[4], line[5] = v * x, v * y, v
        line[6], line[7], line[8] = x, y, 1.0
        for i in range(9):
            a = weights[row] * line[i]
            for j in range(i + 1):
                gram[i, j] += a * line[j]
    f = smallest_eigenvector(gram).reshape(3, 3)
    # The nearest matrix of rank 2 in Frobenius norm is f without its smallest singular triplet: f (1 - v v').
    square = np.zeros((3, 3))
    for i in range(3):
        for j in range(3):
            for k in range(3):
                square[i, j] += f[k, i] * f[k, j]
    epipole = smallest_eigenvector(square)
    model = np.empty((3, 3))
    for i in range(3):
        along = f[i, 0] * epipole[0] + f[i, 1] * epipole[1] + f[i, 2] * epipole[2]
        for j in range(3):
            model[i, j] = f[i, j] - along * epipole[j]
    # F = T2' f T1
    for i in range(3):
        a, b = model[i, 0] * frame[4], model[i, 1] * frame[4]
        model[i, 2] -= a * frame[0] + b * frame[1]
        model[i, 0], model[i, 1] = a, b
    for j in range(3):
        a, b = model[0, j] * frame[5], model[1, j] * frame[5]
        model[2, j] -= a * frame[2] + b * frame[3]
        model[0, j], model[1, j] = a, b
    return (model / np.sqrt((model * model).sum())).reshape(9)


@jit
def pack_one(matrix: Any, packed: Any, kinds: Any, column: int) -> None:
    """Write one model as the 18 numbers of `residuals.pack_models`."""
    for i in range(9):
        packed[column, i] = matrix[i]
    if kinds[column] == HOMOGRAPHY:
        for i in range(3):
            for j in range(3):
                a, b, c, d = (j + 1) % 3, (j + 2) % 3, (i + 1) % 3, (i + 2) % 3
                packed[column, 9 + 3 * i + j] = (
                    matrix[3 * a + c] * matrix[3 * b + d] - matrix[3 * a + d] * matrix[3 * b + c]
                )


@jit
def reweigh(packed: Any, kinds: Any, column: int, pairs: Any, votes: Any, radius: float, weights: Any) -> float:
    """Write each correspondence's weight in the next fit of a model and return the sum of biweights.

    Tukey's biweight of residual / radius, times the correspondence's votes, divided by the squared factor between algebraic
    and geometric distance.
    """
    support = 0.0
    model = packed[column]
    homography = kinds[column] == HOMOGRAPHY
    for row in range(len(pairs)):
        weights[row] = 0.0
        if votes[row] <= 0.0:
            continue
        residual = model_residual(packed, kinds, column, pairs, row, radius)
        if not residual <= radius:
            continue
        x1, y1, x2, y2 = pairs[row, 0], pairs[row, 1], pairs[row, 2], pairs[row, 3]
        if homography:
            factor = (model[6] * x1 + model[7] * y1 + model[8]) ** 2
        else:
            factor = (model[0] * x1 + model[1] * y1 + model[2]) ** 2 + (model[3] * x1 + model[4] * y1 + model[5]) ** 2
            factor += (model[0] * x2 + model[3] * y2 + model[6]) ** 2 + (model[1] * x2 + model[4] * y2 + model[7]) ** 2
        if factor > 0.0:
            share = residual / radius
            biweight = votes[row] * (1.0 - share * share) * (1.0 - share * share)
            support += biweight
            weights[row] = biweight / factor
    return support


@jit
def refine_one(packed: Any, kinds: Any, column: int, pairs: Any, votes: Any, radius: float, weights: Any) -> bool:
    """Refit one packed model, in place, to what lies within `radius`; False where too little does."""
    fewest = 5.0 if kinds[column] == HOMOGRAPHY else 9.0
    if reweigh(packed, kinds, column, pairs, votes, radius, weights) < fewest:
        return False
    matrix = fit_homography(pairs, weights) if kinds[column] == HOMOGRAPHY else fit_fundamental(pairs, weights)
    if not np.isfinite(matrix.sum()):
        return False
    pack_one(matrix, packed, kinds, column)
    return True


@jit
def refine_kernel(pairs: Any, votes: Any, packed: Any, kinds: Any, radii: Any) -> Any:
    """Refit every model with each radius of `radii` in turn and return all the fits, (rounds, m, 18); the last good fit stays."""
    refined = np.empty((len(radii), len(packed), 18))
    weights = np.empty(len(pairs))
    models = packed.copy()
    for column in range(len(packed)):
        for step in range(len(radii)):
            refine_one(models, kinds, column, pairs, votes, radii[step], weights)
            refined[step, column] = models[column]
    return refined
