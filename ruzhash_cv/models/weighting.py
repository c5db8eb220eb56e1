"""Iteratively reweighted least squares: robust weights of the matches near a model, and rounds of fits for any family.

Families of the package have kernels that do all rounds of all models, with `weigh`. For others `reweighted` does the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv._kernels import ZERO, jit

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
    _write_medians(np.ascontiguousarray(squared), work, medians)
    return np.sqrt(medians / student(codimension, 1.0).median)


@jit
def _write_medians(squared: Any, work: Any, medians: Any) -> None:
    for item in range(len(squared)):
        n = ZERO
        for row in range(squared.shape[1]):
            work[n] = squared[item, row]
            n += squared[item, row] < np.inf
        if n > 0:
            medians[item] = nth_smallest(work, n, n // 2)


@jit
def weigh(
    squared: Any, given: Any, limit: float, width: float, median: float, rows: Any, weights: Any, work: Any
) -> Any:
    """Write rows and their weights by a law; return how many there are, what weight supports a fit, and the noise scale.

    `given` are weights of matches. Of the law `AS_GIVEN` they are the weights, and a fit needs no support. Of others the rows are those
    within the limit, and beyond any limit are infinite residuals. The noise scale is estimated by the upper median.
    """
    n, bound, support, noise = ZERO, limit * limit, 0.0, 0.0
    if width < 0.0:
        for row in range(len(given)):
            rows[n], weights[n] = row, given[row]
            n += given[row] != 0.0
        return n, np.inf, noise
    if not bound < np.inf:
        bound = 1.7e308
    for row in range(len(squared)):
        rows[n], work[n] = row, squared[row]
        n += squared[row] <= bound
    if width > 0.0 and n > 0:
        noise = np.sqrt(nth_smallest(work, n, n // 2) / median)
    scale = noise if noise > EXACT * limit else EXACT * limit
    spread = width * scale * scale
    if spread < 1e-300:
        spread = 1e-300
    for at in range(n):
        row = rows[at]
        if width > 0.0:
            weights[at] = given[row] / (1.0 + squared[row] / spread)
            support += given[row]
        else:
            share = 1.0 - squared[row] / bound
            weights[at] = given[row] * (share * share) if share > 0.0 else 0.0
            support += weights[at]
    return n, support, noise


@jit
def nth_smallest(values: Any, n: Any, nth: Any) -> float:
    """Return the number of that rank among the first n, which are reordered (Hoare, "Algorithm 65: find", CACM 1961)."""
    low, high = ZERO, n - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            break
    return float(values[nth])
