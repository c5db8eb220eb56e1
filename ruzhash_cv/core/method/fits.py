"""Fits: iteratively reweighted least squares, by Tukey's biweight within a radius, or by Student's law of residuals.

Of many matrices the best ranked are refined, and the likeliest of these is chosen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ruzhash_cv.core.families.base import GIVEN, Families, TwoViewFamily
from ruzhash_cv.core.families.weighting import EXACT as EXACT
from ruzhash_cv.core.families.weighting import TUKEY, student
from ruzhash_cv.core.families.weighting import noise_scales as noise_scales
from ruzhash_cv.core.kernels.residuals import costs_at_reaches
from ruzhash_cv.core.kernels.weigh import write_likelihoods
from ruzhash_cv.core.method.matches import MatchSet, floored
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import draw_samples
from ruzhash_cv.core.method.scene import Scene, Structures
from ruzhash_cv.foundation.arrays import Array, Mask, Rows

#: No match is left out.
_NOTHING = np.zeros((0, 0), bool)
#: Steps of EM for the shares of noise scales in a likelihood, and the pseudo-count of each share, in matches.
_N_STEPS, _PRIOR = 4, 0.5


def refit(family: TwoViewFamily, matches: MatchSet, models: Array, radii: Array) -> Array:
    """Return least-squares fits (m, 9) to matches within `radii` (m,) of models, by Tukey's biweight; where one fails, the model."""
    return family.reweighted(matches.data, matches.shares, models, radii, TUKEY, 1, _NOTHING)[0]


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
    if family.codimension == 1:  # an exact residual along an axis does not fix a point
        law = law._replace(floor=matches.rounding)
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


def refine_structures(structures: Structures, matches: MatchSet, families: Families, parameters: Parameters) -> Scene:
    """Return the scene of structures fitted at their noise scales, each of no motion; a stationary one keeps its model.

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
    # At most one match of a keypoint is near a structure: the others are no rivals here.
    alone = replace(matches, weights=matches.shares)
    for family_id in np.unique(structures.family_ids):
        rows = np.flatnonzero(structures.family_ids == family_id)
        others = None if excluded is None else excluded[rows]
        matrices[rows], noise[rows] = refine(
            families[family_id], matrices[rows], alone, tolerances[rows], parameters, others
        )
    matrices = np.where(structures.stationary[:, None], structures.matrices, matrices)
    tolerances, least = tolerances.copy(), parameters.least_noise * matches.unit
    fitted = replace(structures, matrices=matrices)
    for item in np.flatnonzero(families.is_plane(structures) & ~structures.stationary).tolist():
        squared = families.squared_residuals(fitted.take(np.array([item])), matches.data)[0]
        scale = core_scale(squared[squared <= tolerances[item] ** 2], float(noise[item]), parameters)
        if scale < noise[item]:
            limits, others = np.full(1, 6.0 * scale), None if excluded is None else excluded[[item]]
            refined = refine(families[structures.family_ids[item]], matrices[[item]], alone, limits, parameters, others)
            matrices[item], noise[item] = refined[0][0], refined[1][0]
            tolerances[item] = min(tolerances[item], parameters.tolerance_scales * max(noise[item], least))
    columns = tolerances, structures.evidences, structures.stationary, noise, rank
    return Scene(matrices, structures.family_ids, *columns)


def core_scale(squared: Array, scale: float, parameters: Parameters) -> float:
    """Return the noise scale of the core of a plane's matches by squared residuals (n,), its `scale` if they have none.

    A crowd around a plane, players on a pitch, makes it wide. A core has the share `core_share` of the matches within three scales, the
    share `crowd_share` lies beyond six, and between these it is less dense by `core_density`, of a normal law by less than 2.
    """
    scales, near = scale / np.sqrt(2.0) ** np.arange(parameters.n_radii, 0, -1), np.sort(squared)
    within, around = (np.searchsorted(near, np.square(factor * scales)) for factor in (3.0, 6.0))
    is_core = within >= max(parameters.core_share * len(near), parameters.neighbourhoods[1])
    is_core &= len(near) - around >= parameters.crowd_share * len(near)
    is_core &= 3.0 * within > parameters.core_density * (around - within)
    return float(scales[is_core.argmax()]) if is_core.any() else scale


def refined_samples(
    given: Array,
    labels: Rows,
    matches: MatchSet,
    family: TwoViewFamily,
    parameters: Parameters,
    rng: np.random.Generator,
    reach: float | None = None,
) -> tuple[Array, Array, Array]:
    """Return matrices (m, 9) refined to matches by their weights, their noise scales (m,) and squared residuals (m, n).

    They are the best ranked among those given and among samples drawn by the weights, as often from a small label as from a large one.
    They are refined to the matches within `reach` in the frame, by default a unit.
    """
    reach, weights = matches.unit if reach is None else reach, matches.weights
    # Few of the samples of static matches make a matrix.
    n_samples = parameters.last_samples if len(given) > 0 else 2 * parameters.motion_samples
    drawing = balanced(weights, labels), n_samples, family, matches.unit, parameters, rng, (0,)
    samples, _ = draw_samples(matches.data, *drawing)
    groups = list[Array]()
    # Half of those refined are samples: matrices that a mover has bent would take all places.
    for models in (given, family.solve(matches.data[samples])[0]):
        usable = models[np.isfinite(models).all(axis=1)]
        squared = floored(family.squared_residuals(matches.data, usable), matches)
        costs = ranking_costs(squared, weights, reach, parameters)
        groups.append(usable[np.argsort(costs, kind="stable")[: parameters.n_refits // 2]])
    tried = np.vstack(groups)
    refined, noise = refine(family, tried, matches, np.full(len(tried), reach), parameters)
    return refined, noise, family.squared_residuals(matches.data, refined)


def balanced(weights: Array, labels: Rows) -> Array:
    """Return weights (n,) by which samples are drawn as often from a small label as from a large one."""
    held = np.bincount(labels + 1, weights, minlength=1)
    # All matches of a label may have no weight.
    return weights / np.sqrt(np.maximum(held[labels + 1], 1e-300))


def log_likelihoods(squared: Array, weights: Array, reach: float, codimension: int) -> Array:
    """Return log-likelihoods (m,) of models from squared residuals (m, n), less that of mismatches.

    A true match has one of three noise scales, 1/3, 1/9 and 1/27 of `reach`, whose shares EM estimates for each model. A match counts
    by its weight.
    """
    (m, n), squared = squared.shape, np.ascontiguousarray(squared)
    likelihoods, room = np.empty(m), (np.empty(n, np.int64), np.empty((n, 3)))
    write_likelihoods(squared, weights, reach / 3.0, codimension, _N_STEPS, _PRIOR, *room, likelihoods)
    return likelihoods
