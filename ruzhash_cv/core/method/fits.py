"""Fits: iteratively reweighted least squares, by Tukey's biweight within a radius, or by Student's law of residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.core.families.base import GIVEN, Families, Models, TwoViewFamily
from ruzhash_cv.core.families.weighting import EXACT as EXACT
from ruzhash_cv.core.families.weighting import TUKEY, student
from ruzhash_cv.core.families.weighting import noise_scales as noise_scales
from ruzhash_cv.core.kernels.fit import costs_at_reaches
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters

#: No match is left out.
_NOTHING = np.zeros((0, 0), bool)


def refit(family: TwoViewFamily, matches: MatchSet, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to matches within `radii` (m,) of models, by Tukey's biweight; where one fails, the model."""
    return family.reweighted(matches.data, matches.weights, models, radii, TUKEY, 1, _NOTHING)[0]


def refits(family: TwoViewFamily, matches: MatchSet, models: Array, parameters: Parameters) -> Array:
    """Return models refitted with narrower and narrower radii: the fits by every radius."""
    fitted = [models]
    for radius in parameters.refit_radii:
        fitted.append(refit(family, matches, fitted[-1], np.full(len(models), radius * matches.unit)))
    return np.concatenate(fitted[1:])


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
    Where a fit fails, the model stays.
    """
    law, n_rounds = student(family.codimension, parameters.student_degrees), len(parameters.refit_radii)
    excluded = _NOTHING if excluded is None else excluded
    return family.reweighted(matches.data, matches.weights, models, limits, law, n_rounds, excluded)


def ranking_costs(squared: Array, weights: Array, reach: float, parameters: Parameters) -> Array:
    """Return the costs (m,) by which candidates are ranked, from squared residuals (m, n) of weighted matches.

    The cost of a match is the sum of its squared residual over the square of `reach`, of a third of it and of a ninth, each at most 1:
    without a single noise scale, precise models come before wide ones (as in MAGSAC, Barath, Matas, Noskova, CVPR 2019).
    """
    (m, n), reaches = squared.shape, reach / 3.0 ** np.arange(parameters.n_scales)
    costs, no_models = np.empty((m, len(reaches))), np.empty((m, 9))
    # NumPy would make a matrix for each reach, which takes forty times as long.
    costs_at_reaches(np.full(m, GIVEN), squared, no_models, weights, reaches, np.empty(n + 1), costs)
    return np.asarray(costs.sum(axis=1))


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
