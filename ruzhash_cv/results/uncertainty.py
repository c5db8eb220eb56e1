"""How sure a pose is: standard deviations of its rotation and of its direction, from the curvature of the likelihood at its maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ruzhash_cv.core.families.linear import homogeneous
from ruzhash_cv.foundation.arrays import Array

#: Residuals (k, n) of rows after a small turn (3,) and a small step (3,) of the direction.
Residuals: TypeAlias = "Callable[[Array, Array], Array]"
#: Radians of the steps of numeric derivatives, and degrees of freedom of Student's law.
_STEP, _DEGREES = 1e-6, 4.0
#: Pixels: the error that matches of one part of the images share, of cameras, lenses or surfaces; and the number of such parts.
_SHARED, _N_PATCHES = 0.07, 30.0
#: However many matches a pair has, their noise averages out as that of so many independent ones at most.
_INDEPENDENT = 500.0


def deviations(
    rotation: Array, translation: Array, data: Array, weights: Array, noise: float, pixel: float
) -> tuple[float, float]:
    """Return standard deviations, in degrees, of the rotation and of the direction of a pose, from weighted rows (n, 10).

    Both are root mean squares of an angle: of that about any axis, and of that between directions.
    """
    rays = homogeneous(data)

    def residuals(turn: Array, step: Array) -> Array:
        """Return signed Sampson distances (1, n)."""
        essential = np.cross(translation + step, (rotation + np.cross(turn, rotation.T).T).T).T
        to2, to1 = essential @ rays[:3], essential.T @ rays[3:]
        return np.asarray(((rays[3:] * to2).sum(axis=0) / np.sqrt(np.square([to2, to1]).sum(axis=(0, 1))))[None])

    across = np.linalg.svd(translation[None])[2][1:]
    covariance = _covariance(residuals, [*_turns(), *((np.zeros(3), step) for step in across)], weights, noise, pixel)
    return _degrees(covariance[:3, :3]), _degrees(covariance[3:, 3:])


def deviation_of_turn(rotation: Array, data: Array, weights: Array, noise: float, pixel: float) -> float:
    """Return the standard deviation, in degrees, of the rotation of a camera that only turned."""
    rays = homogeneous(data)
    reach = np.sqrt(np.square(rays).sum(axis=0))

    def residuals(turn: Array, step: Array) -> Array:
        """Return the three parts (3, n) of the vector between rays, each of which has its share of it."""
        turned = rotation @ rays[:3]
        return np.asarray(np.cross(turned + np.cross(turn, turned.T).T, rays[3:], axis=0) / reach)

    return _degrees(_covariance(residuals, _turns(), weights, noise, pixel))


def _turns() -> list[tuple[Array, Array]]:
    return [(turn, np.zeros(3)) for turn in np.eye(3)]


def _degrees(covariance: Array) -> float:
    return float(np.degrees(np.sqrt(np.trace(covariance))))


def _covariance(
    residuals: Residuals, changes: list[tuple[Array, Array]], weights: Array, noise: float, pixel: float
) -> Array:
    """Return the covariance (p, p) of a fit by Student's law, of p changes; infinite if the rows do not show one.

    With residuals r, their gradients J, weights w of the law and its curvatures c it is A^-1 B A^-1, with A = sum c J J' and
    B = sum w^2 r^2 J J' (Huber, "The behavior of maximum likelihood estimates under nonstandard conditions", 1967): residuals show how
    exact each row is. What the rows of one part of the images share does not average out: n rows in some parts add n / parts of it.
    Noise of neighbouring rows is alike, and n rows inform as n / (1 + n / most independent) do (Kish, "Survey Sampling", 1965).
    """
    squares = np.square(residuals(np.zeros(3), np.zeros(3)))
    gradients = np.array(
        [(residuals(_STEP * a, _STEP * b) - residuals(-_STEP * a, -_STEP * b)) / (2.0 * _STEP) for a, b in changes]
    )
    ratios = squares.sum(axis=0) / (_DEGREES * max(noise, 1e-300) ** 2)
    by_law, curvatures = weights / (1.0 + ratios), weights * (1.0 - ratios) / (1.0 + ratios) ** 2
    p, n = len(changes), float(by_law.sum())
    information = np.einsum("akn,bkn,n->ab", gradients, gradients, curvatures)
    squares = squares * (1.0 + n / _INDEPENDENT) + (_SHARED * pixel) ** 2 * n / _N_PATCHES
    spread = np.einsum("akn,bkn,kn,n->ab", gradients, gradients, squares, by_law**2)
    if n <= p or not np.linalg.cond(information) < 1e12:
        return np.full((p, p), np.inf)
    inverse = np.linalg.inv(information)
    return np.asarray(inverse @ spread @ inverse * (n / (n - p)))
