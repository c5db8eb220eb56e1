"""How sure a pose is: standard deviations of its rotation and of its direction, from the curvature of the likelihood at its maximum."""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.families.linear import cross_matrix, crossed, homogeneous
from ruzhash_cv.foundation.arrays import Array

#: Degrees of freedom of Student's law.
_DEGREES = 4.0
#: Pixels: the error that matches of one part of the images share, of cameras, lenses or surfaces; and the number of such parts.
_SHARED, _N_PATCHES = 0.07, 30.0
#: What rotations about the three axes change a vector by, for a small angle.
_TURNS = np.array([cross_matrix(axis) for axis in np.eye(3)])
#: However many matches a pair has, their noise averages out as that of so many independent ones at most.
_INDEPENDENT = 500.0


def redundancy(n: float) -> float:
    """Return how many times less n matches inform than n independent ones (Kish, "Survey Sampling", 1965).

    Noise of neighbouring matches is alike.
    """
    return 1.0 + n / _INDEPENDENT


def deviations(
    rotation: Array, translation: Array, data: Array, weights: Array, noise: float, pixel: float
) -> tuple[float, float]:
    """Return standard deviations, in degrees, of the rotation and of the direction of a pose, from weighted rows (n, 10).

    Both are root mean squares of an angle: of that about any axis, and of that between directions.
    """
    rays = homogeneous(data)
    across = np.linalg.svd(translation[None])[2][1:]
    essential, *steps = (cross_matrix(vector) @ rotation for vector in (translation, *across))
    turns = cross_matrix(translation) @ _TURNS @ rotation
    to2, to1 = essential @ rays[:3], essential.T @ rays[3:]
    length = np.sqrt(np.square([to2, to1]).sum(axis=(0, 1)))
    # Sampson distances: small, so that changes of their length are nothing.
    residuals = (rays[3:] * to2).sum(axis=0) / length
    gradients = (rays[3:] * (np.array([*turns, *steps]) @ rays[:3])).sum(axis=1) / length
    covariance = _covariance(residuals[None], gradients[:, None], weights, noise, pixel)
    return _degrees(covariance[:3, :3]), _degrees(covariance[3:, 3:])


def deviation_of_turn(rotation: Array, data: Array, weights: Array, noise: float, pixel: float) -> float:
    """Return the standard deviation, in degrees, of the rotation of a camera that only turned."""
    rays = homogeneous(data)
    turned, reach = rotation @ rays[:3], np.sqrt(np.square(rays).sum(axis=0))
    # The three parts of the vector between rays, each of which has its share of it.
    residuals, *gradients = (crossed(vectors, rays[3:]) / reach for vectors in (turned, *(_TURNS @ turned)))
    return _degrees(_covariance(residuals, np.array(gradients), weights, noise, pixel))


def _degrees(covariance: Array) -> float:
    return float(np.degrees(np.sqrt(np.trace(covariance))))


def _covariance(residuals: Array, gradients: Array, weights: Array, noise: float, pixel: float) -> Array:
    """Return the covariance (p, p) of a fit by Student's law, of p changes; infinite if the rows do not show one.

    With residuals r (k, n), their gradients J (p, k, n), weights w of the law and its curvatures c it is A^-1 B A^-1, with A = sum
    c J J' and B = sum w^2 r^2 J J' (Huber, "The behavior of maximum likelihood estimates under nonstandard conditions", 1967):
    residuals show how exact each row is. What the rows of one part of the images share does not average out: n rows in some parts
    add n / parts of it. Their noise is alike, see `redundancy`.
    """
    squares = np.square(residuals)
    ratios = squares.sum(axis=0) / (_DEGREES * max(noise, 1e-300) ** 2)
    by_law, curvatures = weights / (1.0 + ratios), weights * (1.0 - ratios) / (1.0 + ratios) ** 2
    p, n = len(gradients), float(by_law.sum())
    squares = squares * redundancy(n) + (_SHARED * pixel) ** 2 * n / _N_PATCHES
    information, spread = (
        (gradients * factors).reshape(p, -1) @ gradients.reshape(p, -1).T
        for factors in (curvatures, squares * by_law**2)
    )
    if n <= p or not np.linalg.cond(information) < 1e12:
        return np.full((p, p), np.inf)
    inverse = np.linalg.inv(information)
    return np.asarray(inverse @ spread @ inverse * (n / (n - p)))
