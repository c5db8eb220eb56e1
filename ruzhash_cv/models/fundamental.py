"""The family of fundamental matrices: rigid motions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import cv2
import numpy as np

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.normal_equations import (
    PARALLAX_SIZE,
    PRODUCT,
    least_vectors,
    of_rank_two,
    parallax,
    unit_norm,
    weighted_products,
    without_scale,
)


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
    is_plane: bool = False
    parallax_size: int = PARALLAX_SIZE

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
            data, started, weights, into1, into2 = map(np.ascontiguousarray, (data, started, weights, *into))
            _linearise(data, started, weights, (into1, into2), grams, slopes)
            steps = np.linalg.solve(without_scale(grams, started), slopes)[:, :, 0]
            return self.to_pixels(of_rank_two(unit_norm(started - steps), grams), *into)

    def from_plane(self, plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Return matrices (n, 9) of a plane's homography (9,) and two correspondences off it each, drawn at random."""
        ones = np.ones((len(data), 1))
        return parallax(plane, np.hstack([data[:, :2], ones]), np.hstack([data[:, 2:], ones]), n, rng)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return fundamental matrices (m, 9) of pixels."""
        return unit_norm((into2.swapaxes(-1, -2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


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


@jit
def _linearise(data: Any, models: Any, weights: Any, into: Any, grams: Any, slopes: Any) -> None:
    """Write sums over the gradients J of Sampson distances d to models in normalised coordinates: J J', J d."""
    gradient = np.empty(9)
    for item in range(len(models)):
        gram, slope = grams[item], slopes[item, :, 0]
        one, two = into[0][item], into[1][item]
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
