"""The family of essential matrices: rigid motions seen by known cameras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from ruzhash_cv._arrays import RAYS1, RAYS2, Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.five_points import through_five
from ruzhash_cv.models.normal_equations import PARALLAX_SIZE, unit_norm
from ruzhash_cv.models.rays import both_rays, directions, least_epipolar, squared_epipolar_distances

#: Steps of a fit without a model to start from, and the angle that one may turn by.
_STEPS, _LARGEST_TURN = 3, 0.5


@dataclass(frozen=True)
class EssentialMatrices:
    """Essential matrices of rows with rays, see `models.rays`; rows of 9, of unit norm. The residual is the Sampson distance."""

    name: str = "essential"
    sample_size: int = 5
    codimension: int = 1
    is_plane: bool = False
    parallax_size: int = PARALLAX_SIZE

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return up to ten essential matrices (k, 9) of each sample (s, 5, 10), and the sample (k,) of each."""
        return through_five(*(directions(samples[..., rays]) for rays in (RAYS1, RAYS2)))

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared Sampson distances (m, n) of correspondences (n, 10)."""
        return squared_epipolar_distances(data, models)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return essential matrices of least Sampson distances: those of the 8-point algorithm after some steps, `models` after one."""
        if models is not None:
            return self.step(data, weights, models)
        rays = both_rays(data)
        return _refined(rays, weights, as_essential(least_epipolar(rays, weights)), _STEPS)

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return essential matrices after one step from `models`."""
        return _refined(both_rays(data), weights, models, 1)

    def from_plane(self, plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
        """Return the essential matrices of the two poses that a plane's homography (9,) of rays has, none of a rotation.

        See Malis and Vargas, "Deeper understanding of the homography decomposition for vision-based control", INRIA 2007.
        """
        homography = plane.reshape(3, 3) * np.sign(np.linalg.det(plane.reshape(3, 3)))
        _, rotations, translations, _ = cv2.decomposeHomographyMat(homography, np.eye(3))
        # Each twice, for the two directions of the normal.
        poses = zip(rotations[::2], translations[::2], strict=True)
        models = [np.cross(np.ravel(translation), np.asarray(rotation).T).T.ravel() for rotation, translation in poses]
        found = unit_norm(np.array(models).reshape(-1, 9))
        return found[np.isfinite(found).all(axis=1)]

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return the matrices (m, 9), which hold for rays."""
        return as_essential(models)


def as_essential(models: Array) -> Array:
    """Return the essential matrices (m, 9) nearest to matrices: two singular values are equal and the third is 0."""
    usable = np.isfinite(models).all(axis=1)
    found = np.full(models.shape, np.nan)
    left, _, right = np.linalg.svd(models[usable].reshape(-1, 3, 3))
    found[usable] = (np.sqrt(0.5) * left[:, :, :2] @ right[:, :2]).reshape(-1, 9)
    return found


def _refined(rays: Array, weights: Array, models: Array, n_steps: int) -> Array:
    found = np.array(models, order="C")
    _refine_kernel(rays, np.ascontiguousarray(weights), n_steps, found)
    return found


@jit
def _refine_kernel(rays: Any, weights: Any, n_steps: int, models: Any) -> None:
    """Levenberg-Marquardt steps to the least squares of Sampson distances.

    E becomes exp([a]) E exp([b]), which keeps its singular values. Of the six numbers a, b one is free: both turn about the baseline.
    """
    gram, slope, step, tried = np.empty((6, 6)), np.empty(6), np.empty(6), np.empty(9)
    for item in range(len(models)):
        damping = 1e-4
        cost = _linearise_essential(rays, weights[item], models[item], gram, slope)
        for taken in range(n_steps):
            trace = 0.0
            for i in range(6):
                trace += gram[i, i]
            if not 0.0 < trace < np.inf:
                break
            accepted = False
            for _ in range(4):
                _solve_six(gram, slope, damping * trace / 6.0 + 1e-12 * trace, step)
                _turn_both(models[item], step, tried)
                if _cost_of_essential(rays, weights[item], tried) < cost:
                    accepted = True
                    break
                damping *= 10.0
            if not accepted:
                break
            damping *= 0.1
            models[item] = tried
            if taken + 1 < n_steps:
                cost = _linearise_essential(rays, weights[item], models[item], gram, slope)


@jit
def _cost_of_essential(rays: Any, weights: Any, model: Any) -> float:
    a, b, c, d, e, f, g, h, i = model
    total = 0.0
    for row in range(len(weights)):
        if weights[row] == 0.0:
            continue
        x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
        p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
        s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
        numerator = x2 * p + y2 * q + z2 * r
        total += weights[row] * (numerator * numerator / (p * p + q * q + r * r + s * s + t * t + u * u + 1e-300))
    return total


@jit
def _linearise_essential(rays: Any, weights: Any, model: Any, gram: Any, slope: Any) -> float:
    """Write sums over gradients J of Sampson distances by a, b: J J' and J d; return the sum of squares.

    With y = E X1, z = E' X2, g^2 = |y|^2 + |z|^2 and the error k = X2' y: dk = a (y x X2) + b (X1 x z), and of g dg
    a (E z x X2) + b (X1 x E' y).
    """
    a, b, c, d, e, f, g, h, i = model
    gram[:] = 0.0
    slope[:] = 0.0
    gradient, total = np.empty(6), 0.0
    for row in range(len(weights)):
        weight = weights[row]
        if weight != 0.0:
            x1, y1, z1, x2, y2, z2 = rays[0, row], rays[1, row], rays[2, row], rays[3, row], rays[4, row], rays[5, row]
            p, q, r = a * x1 + b * y1 + c * z1, d * x1 + e * y1 + f * z1, g * x1 + h * y1 + i * z1
            s, t, u = a * x2 + d * y2 + g * z2, b * x2 + e * y2 + h * z2, c * x2 + f * y2 + i * z2
            error = x2 * p + y2 * q + z2 * r
            square = p * p + q * q + r * r + s * s + t * t + u * u + 1e-300
            share = error / square
            # y - share E z and z - share E' y take the change of g along.
            along_x = p - share * (a * s + b * t + c * u)
            along_y = q - share * (d * s + e * t + f * u)
            along_z = r - share * (g * s + h * t + i * u)
            back_x = s - share * (a * p + d * q + g * r)
            back_y = t - share * (b * p + e * q + h * r)
            back_z = u - share * (c * p + f * q + i * r)
            gradient[0], gradient[1], gradient[2] = (
                along_y * z2 - along_z * y2,
                along_z * x2 - along_x * z2,
                along_x * y2 - along_y * x2,
            )
            gradient[3], gradient[4], gradient[5] = (
                y1 * back_z - z1 * back_y,
                z1 * back_x - x1 * back_z,
                x1 * back_y - y1 * back_x,
            )
            factor = weight / square
            total += weight * error * share
            for one in range(6):
                slope[one] += factor * gradient[one] * error
                for other in range(one + 1):
                    gram[one, other] += factor * gradient[one] * gradient[other]
    return total


@jit
def _solve_six(gram: Any, slope: Any, damping: float, step: Any) -> None:
    """Write the solution of (gram + damping I) step = -slope by Cholesky; only the lower triangle is read."""
    lower = np.empty((6, 6))
    for i in range(6):
        for j in range(i + 1):
            total = gram[i, j] + (damping if i == j else 0.0)
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            lower[i, j] = np.sqrt(max(total, 1e-300)) if i == j else total / lower[j, j]
    for i in range(6):
        total = -slope[i]
        for k in range(i):
            total -= lower[i, k] * step[k]
        step[i] = total / lower[i, i]
    for i in range(5, -1, -1):
        total = step[i]
        for k in range(i + 1, 6):
            total -= lower[k, i] * step[k]
        step[i] = total / lower[i, i]
    largest = 0.0
    for i in range(6):
        largest = max(largest, abs(step[i]))
    if largest > _LARGEST_TURN:
        for i in range(6):
            step[i] *= _LARGEST_TURN / largest


@jit
def _turn_both(model: Any, step: Any, turned: Any) -> None:
    """Write exp([a]) E exp([b]): rotations by Cayley's formula, which is the exponential to second order."""
    left, right = np.empty((3, 3)), np.empty((3, 3))
    _cayley(step[0], step[1], step[2], left)
    _cayley(step[3], step[4], step[5], right)
    between = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            between[i, j] = left[i, 0] * model[j] + left[i, 1] * model[3 + j] + left[i, 2] * model[6 + j]
    for i in range(3):
        for j in range(3):
            turned[3 * i + j] = between[i, 0] * right[0, j] + between[i, 1] * right[1, j] + between[i, 2] * right[2, j]


@jit
def _cayley(x: float, y: float, z: float, rotation: Any) -> None:
    """Write the rotation of the quaternion (1, x / 2, y / 2, z / 2)."""
    x, y, z = 0.5 * x, 0.5 * y, 0.5 * z
    n = 2.0 / (1.0 + x * x + y * y + z * z)
    rotation[0, 0], rotation[0, 1], rotation[0, 2] = 1.0 - n * (y * y + z * z), n * (x * y - z), n * (x * z + y)
    rotation[1, 0], rotation[1, 1], rotation[1, 2] = n * (x * y + z), 1.0 - n * (x * x + z * z), n * (y * z - x)
    rotation[2, 0], rotation[2, 1], rotation[2, 2] = n * (x * z - y), n * (y * z + x), 1.0 - n * (x * x + y * y)
