"""Fits: iteratively reweighted least squares, by Tukey's biweight within a radius, or by Student's law of residuals."""

from __future__ import annotations

from collections.abc import Callable
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


def irls(
    family: TwoViewFamily,
    data: Array,
    models: Array,
    weigh: Callable[[Array], tuple[Array, Array]],
    n: int = 1,
    *,
    geometric: bool = False,
) -> Array:
    """Return models (m, 9) after n steps of iteratively reweighted least squares; where a fit fails, the model stays.

    `weigh` makes weights (m, n) and the support (m,) of models of their squared residuals (m, n). A `geometric` step goes
    towards the least squares of residuals, others fit the family's equations.
    """
    fit = family.step if geometric else family.fit
    for _ in range(n):
        weights, support = weigh(np.ascontiguousarray(family.squared_residuals(data, models)))
        fitted = fit(data, weights, models)
        usable = np.isfinite(fitted).all(axis=1) & (support > family.sample_size + 1.0)
        models = np.where(usable[:, None], fitted, models)
    return models


def refit(family: TwoViewFamily, matches: MatchSet, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to matches within `radii` (m,) of models, by Tukey's biweight; where one fails, the model."""

    def biweight(squared: Array) -> tuple[Array, Array]:
        weights = np.empty_like(squared)
        _biweight_kernel(squared, matches.weights, radii, weights)
        return weights, weights.sum(axis=1)

    return irls(family, matches.data, models, biweight)


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
    models: Models,
    matches: MatchSet,
    tolerances: Array,
    families: Families,
    parameters: Parameters,
    excluded: Mask | None = None,
) -> tuple[Array, Array]:
    """Return models (m, 9) fitted to matches within `tolerances` (m,), by Student's law of residuals, and noise scales (m,).

    A model is not fitted to matches `excluded` (m, n): fitted to what others hold as well, a structure could become one of these.
    """
    fitted, noise = models.matrices.copy(), np.zeros(len(models))
    for family_id in np.unique(models.family_ids):
        rows = np.flatnonzero(models.family_ids == family_id)
        without = None if excluded is None else excluded[rows]
        fitted[rows], noise[rows] = _refine_family(
            families[family_id], fitted[rows], matches, tolerances[rows], parameters, without
        )
    return fitted, noise


def _refine_family(
    family: TwoViewFamily,
    models: Array,
    matches: MatchSet,
    limits: Array,
    parameters: Parameters,
    excluded: Mask | None,
) -> tuple[Array, Array]:
    """Return models of one family, fitted, and their noise scales.

    By Student's law of n degrees of freedom and scale s a residual r has the weight 1 / (1 + r^2 / (n s^2)) (Lange, Little, Taylor,
    "Robust statistical modeling using the t distribution", JASA 1989).
    """
    n, codimension = parameters.student_degrees, family.codimension
    # The law whose median residual is that of Gaussian noise of scale 1.
    width = n * chdtri(codimension, 0.5) / (codimension * fdtri(codimension, n, 0.5))

    def near(squared: Array) -> tuple[Array, Array]:
        squared[~(squared <= (limits**2)[:, None])] = np.inf  # NaN too
        if excluded is not None:
            squared[excluded] = np.inf
        return squared, noise_scales(squared, family.codimension)

    def student(squared: Array) -> tuple[Array, Array]:
        squared, noise = near(squared)
        scales = np.maximum(noise, EXACT * limits)[:, None]
        with np.errstate(over="ignore"):
            weights = matches.weights / (1.0 + squared / np.maximum(width * scales**2, 1e-300))
        return weights, (squared < np.inf) @ matches.weights

    fitted = irls(family, matches.data, models, student, len(parameters.refit_radii), geometric=True)
    return fitted, near(np.ascontiguousarray(family.squared_residuals(matches.data, fitted)))[1]


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
    matrices, noise = refine(structures, matches, tolerances, families, parameters, excluded)
    matrices = np.where(structures.stationary[:, None], structures.matrices, matrices)
    return replace(structures, matrices=matrices, noise=noise)
