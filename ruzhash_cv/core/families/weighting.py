"""Iteratively reweighted least squares: robust weights of the matches near a model, and rounds of fits for any family.

Families of the package have kernels that do all rounds of all models, with `weigh`. For others `reweighted` does the same.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv.core.kernels.residuals import write_medians
from ruzhash_cv.foundation.arrays import Array, Mask

#: Noise that is less, in units or tolerances, is the rounding of exact matches.
EXACT = 1e-6


class Law(NamedTuple):
    """A law of residuals: n of Student's n s^2, s being the noise scale, and the median of r^2 / s^2 by Gaussian noise.

    A width of 0 is Tukey's biweight, (1 - (r / limit)^2)^2, and of -1 no law: weights are as given. By Student's law residuals below
    the `floor` are equal to it.
    """

    width: float
    median: float
    floor: float = 0.0


TUKEY, AS_GIVEN = Law(0.0, 1.0), Law(-1.0, 1.0)


@lru_cache(8)
def student(codimension: int, degrees: float) -> Law:
    """Return Student's law with the median residual of Gaussian noise of scale 1.

    Its weight of a residual r is 1 / (1 + r^2 / (n s^2)), n being the degrees of freedom (Lange, Little, Taylor, "Robust statistical
    modeling using the t distribution", JASA 1989).
    """
    # Medians of chi2 of one and of two degrees of freedom, and of F of these and `degrees`.
    if codimension == 2:
        median, of_student = 2.0 * math.log(2.0), 0.5 * degrees * (2.0 ** (2.0 / degrees) - 1.0)
    else:
        median, of_student = 0.45493642311957283, _median_of_student(degrees) ** 2
    return Law(degrees * median / (codimension * of_student), median)


def _median_of_student(degrees: float) -> float:
    """Return the median of |t|, by Newton's steps; Simpson's rule integrates the density."""
    height = math.exp(math.lgamma(0.5 * degrees + 0.5) - math.lgamma(0.5 * degrees)) / math.sqrt(math.pi * degrees)
    places, rule, t = np.linspace(0.0, 1.0, 1001), np.array([1.0, *[4.0, 2.0] * 499, 4.0, 1.0]) / 3000.0, 0.7
    for _ in range(8):
        density = height * (1.0 + np.square(t * places) / degrees) ** (-0.5 * degrees - 0.5)
        t -= (t * float(rule @ density) - 0.25) / float(density[-1])
    return t


def reweighted(
    family: Any, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
) -> tuple[Array, Array]:
    """Return models (m, p) after rounds of reweighted least squares, and noise scales (m,), as `TwoViewFamily.reweighted` does."""
    fitted, noise, bounds = models, np.zeros(len(models)), (limits * limits)[:, None]

    def residuals(models: Array) -> Array:
        squared = np.ascontiguousarray(family.squared_residuals(data, models))
        if law.width > 0.0:
            squared[~(squared <= bounds)] = np.inf  # NaN too
            np.maximum(squared, law.floor**2, out=squared)
        if len(excluded):
            squared[excluded] = np.inf
        return squared

    for _ in range(n_rounds):
        squared = residuals(fitted)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if law.width == 0.0:
                by_law = np.square(np.fmax(0.0, 1.0 - squared / bounds)) * weights  # of NaN and 0, the latter
                support, refitted = by_law.sum(axis=1), family.fit(data, by_law, fitted)
            else:
                scales = np.maximum(noise_scales(squared, family.codimension), EXACT * limits)[:, None]
                by_law = weights / (1.0 + squared / np.maximum(law.width * scales**2, 1e-300))
                support, refitted = (squared < np.inf) @ weights, family.step(data, by_law, fitted)
        usable = np.isfinite(refitted).all(axis=1) & (support > family.sample_size + 1.0)
        fitted = np.where(usable[:, None], refitted, fitted)
    return fitted, noise if law.width == 0.0 else noise_scales(residuals(fitted), family.codimension)


def noise_scales(squared: Array, codimension: int) -> Array:
    """Return noise scales (m,) by the upper medians of those squared residuals (m, n) that are finite, 0 where none is."""
    medians, work = np.zeros(len(squared)), np.empty(squared.shape[1])
    write_medians(np.ascontiguousarray(squared), work, medians)
    return np.sqrt(medians / student(codimension, 1.0).median)
