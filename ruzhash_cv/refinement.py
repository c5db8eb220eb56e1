"""Fits of models: refits with narrower and narrower radii, and the last, robust fits of structures at their own noise scales.

A structure also gives way to narrower ones. Planes a few pixels from each other may lie within one structure, wider than the widest
noise scale, that has more evidence than each of them. Patches of its matches, each a match and its nearest, are fitted, and refitted
narrowly. Parts are found among these as structures are, with radii smaller than the structure's by sqrt 2 or 2 at least. They take its
place if they have more -ln NFA together. A curved surface or a noisy plane is seldom divided: the surroundings of a part are as dense
as the part, and alpha counts these.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import chdtri, fdtri, gammaln

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Models, TwoViewFamily
from ruzhash_cv.selection import (
    Hypotheses,
    Radii,
    Structures,
    Tests,
    count_weights,
    evidence,
    extract,
    strongest_first,
)

#: Noise that is less, in units or tolerances, is the rounding of exact matches.
EXACT = 1e-6


def refit(family: TwoViewFamily, matches: MatchSet, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to what lies within `radii` (m,) of models, by Tukey's biweight; where one fails, the model."""
    squared = np.ascontiguousarray(family.squared_residuals(matches.data, models))
    weights = np.empty_like(squared)
    _biweight_kernel(squared, matches.weights, radii, weights)
    return keep_usable(family, family.fit(matches.data, weights, models), weights.sum(axis=1), models)


def keep_usable(family: TwoViewFamily, fitted: Array, support: Array, models: Array) -> Array:
    """Return what was `fitted` (m, 9), and models where this failed or had too little `support` (m,)."""
    usable = np.isfinite(fitted).all(axis=1) & (support > family.sample_size + 1.0)
    return np.where(usable[:, None], fitted, models)


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
    models: Models, matches: MatchSet, tolerances: Array, radii: Radii, excluded: Mask | None = None
) -> tuple[Array, Array]:
    """Return models (m, 9) fitted to what lies within `tolerances` (m,), by the likeliest law of residuals, and noise scales (m,).

    `excluded` (m, n) tells which correspondences a model is not fitted to: a structure fitted to what others hold as well could become
    one of these.
    """
    parameters, fitted, noise = radii.parameters, models.models.copy(), np.zeros(len(models))
    for family_id in np.unique(models.family_ids):
        family, rows = radii.families[family_id], np.flatnonzero(models.family_ids == family_id)
        limits, laws = tolerances[rows], _student_laws(family.codimension, parameters.student_degrees)
        for fits in range(len(parameters.refit_radii) + 1):
            squared = np.ascontiguousarray(family.squared_residuals(matches.data, fitted[rows]))
            squared[~(squared <= (limits**2)[:, None])] = np.inf  # NaN too
            if excluded is not None:
                squared[excluded[rows]] = np.inf
            noise[rows] = noise_scales(squared, family.codimension)
            if fits < len(parameters.refit_radii):
                weights = np.empty_like(squared)
                _student_kernel(squared, matches.weights, np.maximum(noise[rows], EXACT * limits), laws, weights)
                support = (squared < np.inf) @ matches.weights
                steps = family.step(matches.data, weights, fitted[rows])
                fitted[rows] = keep_usable(family, steps, support, fitted[rows])
    return fitted, noise


@jit
def _student_kernel(squared: Any, match_weights: Any, noise: Any, laws: Any, weights: Any) -> None:
    """Write matches' weights times those of the likeliest law; what has no residual has none.

    By a law of n degrees of freedom and scale s a residual r in c dimensions has a density in proportion to
    (1 + r^2 / (n s^2))^-((n + c) / 2), and in a fit the weight 1 / (1 + r^2 / (n s^2)).
    """
    for item in range(len(squared)):
        largest, scale = -np.inf, noise[item] * noise[item]
        weights[item] = 0.0
        for law in range(len(laws)):
            exponent, width, height = laws[law]
            likelihood = 0.0
            for row in range(squared.shape[1]):
                if squared[item, row] < np.inf:
                    ratio = squared[item, row] / (width * scale)
                    likelihood += match_weights[row] * (height - exponent * np.log1p(ratio))
            if likelihood > largest:
                largest = likelihood
                for row in range(squared.shape[1]):
                    weights[item, row] = match_weights[row] / (1.0 + squared[item, row] / (width * scale))


@cache
def _student_laws(codimension: int, degrees: tuple[float, ...]) -> Array:
    """Return Student's laws, a row each: (n + c) / 2, n s^2, and the logarithm of the density at 0, but for a constant.

    The scale s is such that the median residual is that of Gaussian noise of scale 1.
    """
    n = np.array(degrees)
    exponents = (n + codimension) / 2.0
    widths = n * chdtri(codimension, 0.5) / (codimension * fdtri(codimension, n, 0.5))
    heights = gammaln(exponents) - gammaln(n / 2.0) - codimension / 2.0 * np.log(widths)
    return np.column_stack([exponents, widths, heights])


def noise_scales(squared: Array, codimension: int) -> Array:
    """Return noise scales (m,) by the upper medians of those squared residuals (m, n) that are finite, 0 where none is."""
    n_finite = (squared < np.inf).sum(axis=1).tolist()
    middle = [row[n // 2] if n > 0 else 0.0 for row, n in zip(np.sort(squared, axis=1), n_finite, strict=True)]
    return np.sqrt(np.array(middle, np.float64) / chdtri(codimension, 0.5))


def fits_as_well(noise: Array, least: float, radii: Radii) -> Mask:
    """Tell whether noise scales (m,) are at most twice the least there is, or twice the smallest radius."""
    parameters = radii.parameters
    as_well = parameters.radii[2] / parameters.radii[0]
    return np.asarray(noise <= as_well * max(least, parameters.radii[0] * radii.unit))


def refine_structures(structures: Structures, matches: MatchSet, radii: Radii) -> Structures:
    """Return structures fitted at their own noise scales; what is stationary keeps its model.

    A fit leaves out the matches of stronger structures of the same codimension that are as narrow, so that a structure beside one of
    these does not become it. The matches of planes are not left out of motions, because motions hold planes.
    """
    tolerances, rank = structures.tolerances, np.arange(len(structures))
    codimensions = radii.families.codimensions[structures.family_ids]
    before = (rank[:, None] > rank) & (tolerances[:, None] >= tolerances) & (codimensions[:, None] == codimensions)
    excluded = None
    if before.any():
        squared = radii.families.squared_residuals(structures, matches.data)
        excluded = before @ (squared <= (tolerances**2)[:, None])
    models, noise = refine(structures, matches, tolerances, radii, excluded)
    models = np.where(structures.stationary[:, None], structures.models, models)
    return replace(structures, models=models, noise=noise)


def divide(structures: Structures, matches: MatchSet, decoys: Array, radii: Radii, n_tried: int) -> Structures:
    """Return structures with wide planes replaced by the narrower ones that explain their matches better; strongest first."""
    parameters, families = radii.parameters, radii.families
    wide = (parameters.radii[structures.radius_indices] > parameters.widest_scale) & ~structures.stationary
    wide &= families.is_plane(structures)
    if not wide.any():
        return structures
    tests = Tests(n_tried, float(matches.weights.sum()))
    nearest = families.nearest(structures, structures.tolerances, matches.data)
    parts = []
    for item in range(len(structures)):
        whole, rows = structures.take(np.array([item])), np.flatnonzero(nearest == item)
        if wide[item] and len(rows) >= 2 * parameters.patch_size:
            background = radii.hypotheses(whole, matches.data[:0], decoys).background
            models = _with_patches(whole, matches, rows, radii)
            indices = radii.radius_indices(families.squared_residuals(models, matches.data[rows]))
            found = Hypotheses(models.models, models.family_ids, indices, np.repeat(background, len(models), axis=0))
            whole = _better(whole, found, matches.weights[rows], radii, tests)
        parts.append(whole)
    return strongest_first(Structures.join(parts))


def _with_patches(whole: Structures, matches: MatchSet, rows: Rows, radii: Radii) -> Models:
    """Return a structure's model, and those of patches of its matches, fitted to them and then narrowly to all."""
    parameters, family = radii.parameters, radii.families[whole.family_ids[0]]
    own = replace(matches, data=matches.data[rows], weights=matches.weights[rows])
    seeds = np.linspace(0, len(rows) - 1, min(parameters.n_refits, len(rows))).astype(np.int64)
    near = np.asarray(cKDTree(own.coordinates).query(own.coordinates[seeds], parameters.patch_size)[1])
    weights = np.zeros((len(seeds), len(rows)))
    np.put_along_axis(weights, near, own.weights[near], axis=1)
    models = family.fit(own.data, weights)
    models = models[np.isfinite(models).all(axis=1)]
    models = np.vstack([whole.models, refit(family, own, models, np.full(len(models), matches.unit))])
    return Models(models, np.repeat(whole.family_ids, len(models)))


def _better(whole: Structures, found: Hypotheses, weights: Array, radii: Radii, tests: Tests) -> Structures:
    """Return a structure, the first hypothesis, or the narrower ones that have more evidence together."""
    step = int(whole.radius_indices[0])
    counts = count_weights(found.radius_indices, weights, radii.parameters.n_radius_indices)
    gains = evidence(found, counts, tests.total, radii.rules, tests.n_tried)
    best, most = whole, float(gains[0, step])
    patches = found.take(np.flatnonzero(gains[:, :step].max(axis=1) > 0.0))
    for widest in (step - 1, step - 2):
        parts, _ = extract(patches, weights, radii, tests, widest)
        if len(parts) > 1 and parts.evidences.sum() > most:
            best, most = parts, float(parts.evidences.sum())
    return best
