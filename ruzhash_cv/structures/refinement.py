"""Precise models: a structure is found with wide radii, and ends with a robust fit at the noise scale of its own matches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._core.jit import jit
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import squared_residuals

Array = NDArray[np.float64]
Families = tuple[TwoViewFamily, ...]

#: Fits of a model, each with a biweight whose radius is so many noise scales. It is wide, as labels are not exact
#: and points not all on the plane.
N_FITS, RADIUS = 3, 6.0
#: The median length of Gaussian noise of scale 1, by the number of its directions: that of the chi distribution.
MEDIANS = {1: 0.6745, 2: 1.1774}


def refit(family: TwoViewFamily, data: Array, votes: Array, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to what lies within `radii` (m,) of models, by Tukey's biweight; a failed one stays."""
    squared = np.ascontiguousarray(family.squared_residuals(data, models))
    weights = np.empty_like(squared)
    _biweight_kernel(squared, votes, radii, weights)
    fitted = family.fit(data, weights, models)
    usable = np.isfinite(fitted).all(axis=1) & (weights.sum(axis=1) > family.sample_size + 1.0)
    return np.where(usable[:, None], fitted, models)


@jit("void(f8[:, ::1], f8[::1], f8[::1], f8[:, ::1])")
def _biweight_kernel(squared: Any, votes: Any, radii: Any, weights: Any) -> None:
    """Write votes times (1 - (r / radius)^2)^2; what has no residual has no weight, nor has anything by a radius of 0."""
    for item in range(len(squared)):
        limit = radii[item] * radii[item]
        for row in range(squared.shape[1]):
            ratio = squared[item, row] / limit
            share = 1.0 - ratio if ratio < 1.0 else 0.0
            weights[item, row] = votes[row] * (share * share)


def refine(
    families: Families, codes: NDArray[np.uint8], models: Array, data: Array, votes: Array, tolerances: Array
) -> tuple[Array, Array]:
    """Return models (m, 9) fitted at their noise scales, and these (m,), from what lies within `tolerances` (m,) of them."""
    models, noise, limits = models.copy(), np.zeros(len(models)), tolerances
    for fits in range(N_FITS + 1):
        for code in np.unique(codes):
            own = np.flatnonzero(codes == code)
            squared = squared_residuals(families, codes[own], models[own], data)
            squared[squared > (limits[own] ** 2)[:, None]] = np.inf
            noise[own] = noise_scales(squared, families[code].codimension)
            if fits < N_FITS:
                models[own] = refit(families[code], data, votes, models[own], RADIUS * noise[own])
        limits = np.minimum(tolerances, RADIUS * noise)
    return models, noise


def noise_scales(squared: Array, codimension: int) -> Array:
    """Return noise scales (m,) by the medians of squared residuals (m, n) that are finite, 0 where none is."""
    held = [row[row < np.inf] for row in squared]
    middle = [np.partition(row, len(row) // 2)[len(row) // 2] if len(row) else 0.0 for row in held]
    return np.sqrt(np.array(middle, np.float64)) / MEDIANS[codimension]
