"""Iteratively reweighted least squares: robust weights of the matches near a model, and rounds of fits for any family.

Families of the package have kernels that do all rounds of all models, with `weigh`. For others `reweighted` does the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.kernels.fit import write_medians

#: Noise that is less, in units or tolerances, is the rounding of exact matches.
EXACT = 1e-6


class Law(NamedTuple):
    """A law of residuals: n of Student's n s^2, s being the noise scale, and the median of r^2 / s^2 by Gaussian noise.

    A width of 0 is Tukey's biweight, (1 - (r / limit)^2)^2, and of -1 no law: weights are as given.
    """

    width: float
    median: float


TUKEY, AS_GIVEN = Law(0.0, 1.0), Law(-1.0, 1.0)


@lru_cache(8)
def student(codimension: int, degrees: float) -> Law:
    """Return Student's law with the median residual of Gaussian noise of scale 1.

    Its weight of a residual r is 1 / (1 + r^2 / (n s^2)), n being the degrees of freedom (Lange, Little, Taylor, "Robust statistical
    modeling using the t distribution", JASA 1989).
    """
    from scipy.special import chdtri, fdtri  # an import of .03 s

    median = float(chdtri(codimension, 0.5))
    return Law(float(degrees * median / (codimension * fdtri(codimension, degrees, 0.5))), median)


def reweighted(
    family: Any, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
) -> tuple[Array, Array]:
    """Return models (m, p) after rounds of reweighted least squares, and noise scales (m,), as `TwoViewFamily.reweighted` does."""
    fitted, noise, bounds = models, np.zeros(len(models)), (limits * limits)[:, None]

    def residuals(models: Array) -> Array:
        squared = np.ascontiguousarray(family.squared_residuals(data, models))
        if law.width > 0.0:
            squared[~(squared <= bounds)] = np.inf  # NaN too
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
