"""Fits: iteratively reweighted least squares, by Tukey's biweight within a radius, or by Student's law of residuals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import chdtri, fdtri

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv._kernels import jit
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models, TwoViewFamily
from ruzhash_cv.parameters import Parameters

#: Noise that is less, in units or tolerances, is the rounding of exact matches.
EXACT = 1e-6


def refit(family: TwoViewFamily, matches: MatchSet, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to matches within `radii` (m,) of models, by Tukey's biweight; where one fails, the model."""
    squared = np.ascontiguousarray(family.squared_residuals(matches.data, models))
    weights = np.empty_like(squared)
    _biweight_kernel(squared, matches.weights, radii, weights)
    return _usable(family, family.fit(matches.data, weights, models), models, weights.sum(axis=1))


def _usable(family: TwoViewFamily, fitted: Array, models: Array, support: Array) -> Array:
    """Return fits (m, 9); where one failed or has little `support` (m,), the model (m, 9) it started from."""
    usable = np.isfinite(fitted).all(axis=1) & (support > family.sample_size + 1.0)
    return np.where(usable[:, None], fitted, models)


def refits(family: TwoViewFamily, matches: MatchSet, models: Array, parameters: Parameters) -> Array:
    """Return models refitted with narrower and narrower radii: the fits by every radius."""
    fitted = [models]
    for radius in parameters.refit_radii:
        fitted.append(refit(family, matches, fitted[-1], np.full(len(models), radius * matches.unit)))
    return np.vstack(fitted[1:])


@jit
def _biweight_kernel(squared: Any, match_weights: Any, radii: Any, weights: Any) -> None:
    """Write matches' weights times (1 - (r / radius)^2)^2; what has no residual has none, nor has anything by a radius of 0."""
    for item in range(len(squared)):
        limit = radii[item] * radii[item]
        for row in range(squared.shape[1]):
            ratio = squared[item, row] / limit
            share = 1.0 - ratio if ratio < 1.0 else 0.0
            weights[item, row] = match_weights[row] * (share * share)


def refine(
    family: TwoViewFamily,
    models: Array,
    matches: MatchSet,
    limits: Array,
    parameters: Parameters,
    excluded: Mask | None = None,
) -> tuple[Array, Array]:
    """Return models (m, 9) fitted to matches within `limits` (m,), by Student's law of residuals, and noise scales (m,).

    A model is not fitted to matches `excluded` (m, n): fitted to what others hold as well, a structure could become one of these.
    By Student's law of n degrees of freedom and scale s a residual r has the weight 1 / (1 + r^2 / (n s^2)) (Lange, Little, Taylor,
    "Robust statistical modeling using the t distribution", JASA 1989). Where a fit fails, the model stays.
    """
    n, codimension = parameters.student_degrees, family.codimension
    # The law with the median residual of Gaussian noise of scale 1.
    width = n * chdtri(codimension, 0.5) / (codimension * fdtri(codimension, n, 0.5))

    def near(models: Array) -> tuple[Array, Array]:
        squared = np.ascontiguousarray(family.squared_residuals(matches.data, models))
        squared[~(squared <= (limits**2)[:, None])] = np.inf  # NaN too
        if excluded is not None:
            squared[excluded] = np.inf
        return squared, noise_scales(squared, codimension)

    for _ in range(len(parameters.refit_radii)):
        squared, noise = near(models)
        scales = np.maximum(noise, EXACT * limits)[:, None]
        with np.errstate(over="ignore"):
            weights = matches.weights / (1.0 + squared / np.maximum(width * scales**2, 1e-300))
        support = (squared < np.inf) @ matches.weights
        models = _usable(family, family.step(matches.data, weights, models), models, support)
    return models, near(models)[1]


def noise_scales(squared: Array, codimension: int) -> Array:
    """Return noise scales (m,) by the upper medians of those squared residuals (m, n) that are finite, 0 where none is."""
    n_finite = (squared < np.inf).sum(axis=1).tolist()
    middle = [row[n // 2] if n > 0 else 0.0 for row, n in zip(np.sort(squared, axis=1), n_finite, strict=True)]
    return np.sqrt(np.array(middle, np.float64) / chdtri(codimension, 0.5))


def refine_structures(structures: Models, matches: MatchSet, families: Families, parameters: Parameters) -> Models:
    """Return structures fitted at their noise scales; a stationary one keeps its model.

    A fit leaves out the matches of stronger structures of the same codimension that are as narrow, so that a structure beside one of
    these does not become it. The matches of planes are not left out of motions, because motions hold planes.
    """
    tolerances, rank = structures.tolerances, np.arange(len(structures))
    codimensions = families.codimensions[structures.family_ids]
    before = (rank[:, None] > rank) & (tolerances[:, None] >= tolerances) & (codimensions[:, None] == codimensions)
    excluded = None
    if before.any():
        squared = families.squared_residuals(structures, matches.data)
        excluded = before @ (squared <= (tolerances**2)[:, None])
    matrices, noise = structures.matrices.copy(), np.zeros(len(structures))
    for family_id in np.unique(structures.family_ids):
        rows = np.flatnonzero(structures.family_ids == family_id)
        given = matches, tolerances[rows], parameters, None if excluded is None else excluded[rows]
        matrices[rows], noise[rows] = refine(families[family_id], matrices[rows], *given)
    matrices = np.where(structures.stationary[:, None], structures.matrices, matrices)
    return replace(structures, matrices=matrices, noise=noise)
