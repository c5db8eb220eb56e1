"""The families of two views, homographies and fundamental matrices, and what their fits share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.families.protocol import ModelFamily

#: A homography of unit norm with a smaller determinant has no inverse worth the name.
_SINGULAR = 1e-9
#: Where products of two of (x, y, 1) stand among (x x, x y, y y, x, y, 1).
PRODUCT = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
#: Inverse iteration stops here at the latest; on degenerate data any vector of a null space will do.
_MOST_ITERATIONS = 40
# A cofactor of a matrix is the product of the first two of these entries less that of the others.
_CROSSED = np.array(
    [[4, 5, 3, 7, 8, 6, 1, 2, 0], [8, 6, 7, 2, 0, 1, 5, 3, 4], [5, 3, 4, 8, 6, 7, 2, 0, 1], [7, 8, 6, 1, 2, 0, 4, 5, 3]]
)


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


@dataclass(frozen=True)
class FundamentalMatrices:
    """Fundamental matrices of correspondences (x1, y1, x2, y2), rows of 9; the residual is the Sampson distance.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]])
    >>> FundamentalMatrices().squared_residuals(np.array([[0.0, 0.0, 5.0, 2.0]]), sideways)
    array([[2.]])
    """

    name: str = "fundamental"
    sample_size: int = 7
    codimension: int = 1
    locally_affine: bool = False

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return up to three fundamental matrices (k, 9) of unit norm of each sample (s, 7, 4), and the sample (k,) of each."""
        first, second = (np.ascontiguousarray(samples[..., image : image + 2], np.float32) for image in (0, 2))
        solved: list[Any] = list(map(cv2.findFundamentalMat, first, second, repeat(cv2.FM_7POINT)))
        stacks = [np.zeros((0, 3)) if stack is None else stack for stack, _ in solved]
        models = unit_norm(np.vstack([np.zeros((0, 3)), *stacks]).reshape(-1, 9))
        owner = np.repeat(np.arange(len(samples)), [len(stack) // 3 for stack in stacks])
        usable = np.isfinite(models).all(axis=1)
        return models[usable], owner[usable]

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared Sampson distances (m, n) of correspondences (n, 4) (Hartley and Zisserman, equation 11.9)."""
        squared = np.empty((len(models), len(data)))
        _squared_sampson_distances(np.ascontiguousarray(data.T), np.ascontiguousarray(models), squared)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the normalised 8-point algorithm's matrices, of rank 2 (Hartley and Zisserman, algorithm 11.1).

        Reweighted by the gradients that `models` have at the points, its error is the Sampson distance.
        """
        with np.errstate(all="ignore"):
            if models is not None:
                weights = np.array(weights, order="C")
                _divide_by_gradients(np.ascontiguousarray(data.T), np.ascontiguousarray(models), weights)
            sums, into1, into2 = weighted_products(data, weights)
            grams = sums[:, PRODUCT][..., PRODUCT].transpose(0, 1, 3, 2, 4).reshape(-1, 9, 9)
            return self.to_pixels(of_rank_two(least_vectors(grams), grams), into1, into2)

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return matrices of rank 2 after a Gauss-Newton step from `models` towards the least squares of Sampson distances.

        Fits by reweighting do not end there, as gradients change with the model too (Chojnacki et al., "On the fitting of surfaces to
        data with covariances", PAMI 2000).
        """
        grams, slopes = np.zeros((len(models), 9, 9)), np.zeros((len(models), 9, 1))
        with np.errstate(all="ignore"):
            _, *into = weighted_products(data, weights)
            started = self.to_pixels(models, *np.linalg.inv(into))
            _linearise(*map(np.ascontiguousarray, (data, started, weights, *into, grams, slopes)))
            steps = np.linalg.solve(_without_scale(grams, started), slopes)[:, :, 0]
            return self.to_pixels(of_rank_two(unit_norm(started - steps), grams), *into)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return fundamental matrices (m, 9) of pixels."""
        return unit_norm((into2.swapaxes(-1, -2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def of_rank_two(models: Array, grams: Array) -> Array:
    """Return the matrices of rank 2 whose error f'Gf is least, near the least vectors f (m, 9) of `grams` G (m, 9, 9).

    A step of least cost to det F = 0 is along G^-1 times the gradient of det F, its cofactors (Kanatani and Sugaya, "Compact
    fundamental matrix computation", IPSJ 2010). What two steps leave goes with the smallest singular triplet, F (1 - v v').
    """
    costs, fitted = _without_scale(grams, models), models
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


@jit
def _divide_by_gradients(points: Any, models: Any, weights: Any) -> None:
    """Divide weights by the squared gradients of x2' F x1 at the points (4, n); what is no number then has no weight."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, _ = models[item]
        for row in range(points.shape[1]):
            x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            weight = weights[item, row] / (p * p + q * q + r * r + s * s)
            weights[item, row] = weight if abs(weight) < np.inf else 0.0


def _without_scale(grams: Array, models: Array) -> Array:
    """Return `grams` (m, 9, 9) that no longer leave the length of `models` (m, 9) free, and have inverses."""
    trace = np.trace(grams, axis1=1, axis2=2)[:, None, None]
    costs: Array = grams + trace * models[:, :, None] * models[:, None, :] + (1e-13 * trace + 1e-300) * np.eye(9)
    return costs


@jit
def _linearise(data: Any, models: Any, weights: Any, into1: Any, into2: Any, grams: Any, slopes: Any) -> None:
    """Write sums over the gradients J of Sampson distances d to models in normalised coordinates: J J', J d."""
    gradient = np.empty(9)
    for item in range(len(models)):
        gram, slope = grams[item], slopes[item, :, 0]
        one, two = into1[item], into2[item]
        a, b, c, d, e, f, g, h, i = models[item]
        square1, square2 = one[0, 0] * one[0, 0], two[0, 0] * two[0, 0]
        for row in range(len(data)):
            weight = weights[item, row]
            if weight != 0.0:
                x1, y1 = one[0, 0] * data[row, 0] + one[0, 2], one[1, 1] * data[row, 1] + one[1, 2]
                x2, y2 = two[0, 0] * data[row, 2] + two[0, 2], two[1, 1] * data[row, 3] + two[1, 2]
                p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
                r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
                error = x2 * p + y2 * q + g * x1 + h * y1 + i
                square = square2 * (p * p + q * q) + square1 * (r * r + s * s)
                share, weight = error / square, weight / square
                # Sampson's correction moves the second point by (-dx, -dy), the first one to (u, v).
                dx, dy = square2 * share * p, square2 * share * q
                u, v = x1 - square1 * share * r, y1 - square1 * share * s
                gradient[0], gradient[1], gradient[2] = x2 * u - dx * x1, x2 * v - dx * y1, x2 - dx
                gradient[3], gradient[4], gradient[5] = y2 * u - dy * x1, y2 * v - dy * y1, y2 - dy
                gradient[6], gradient[7], gradient[8] = u, v, 1.0
                if abs(weight) < np.inf:
                    for j in range(9):
                        factor = weight * gradient[j]
                        slope[j] += factor * error
                        for k in range(9):
                            gram[j, k] += factor * gradient[k]


@jit
def _squared_sampson_distances(points: Any, models: Any, squared: Any) -> None:
    """Loops without branches over rows of coordinates (4, n) compile to vector instructions."""
    for item in range(len(models)):
        a, b, c, d, e, f, g, h, i = models[item]
        for row in range(points.shape[1]):
            x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
            p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
            r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
            numerator = x2 * p + y2 * q + g * x1 + h * y1 + i
            # The last term: both points in the epipoles satisfy any F, 0 / 0; no evidence for the match, but no distance either.
            error = numerator * numerator / (p * p + q * q + r * r + s * s + 1e-300)
            # A comparison with NaN is false: what is not finite is infinitely far.
            squared[item, row] = error if error < np.inf else np.inf


def squared_residuals(families: Sequence[ModelFamily], codes: NDArray[np.uint8], models: Array, data: Array) -> Array:
    """Return squared residuals (m, n) to models of several families, infinite where there is none; `codes` (m,) tell which."""
    squared = np.empty((len(models), len(data)))
    for code, family in enumerate(families):
        own = codes == code
        # The smaller of NaN and infinity is infinity here.
        if own.all():
            return np.fmin(family.squared_residuals(data, models), np.inf)
        if own.any():
            squared[own] = np.fmin(family.squared_residuals(data, models[own]), np.inf)
    return squared


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
