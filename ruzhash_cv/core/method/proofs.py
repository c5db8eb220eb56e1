"""Proofs of rigid motions: their evidence beside that of the surfaces that they hold.

A plane is a motion by itself, because nothing else is seen or the camera only turned, unless a matrix has evidence beside it: matches
off the plane that are displaced towards one epipole, and relief of the plane along the epipolar lines. Both pay for the candidates
tried, and together for the numbers of the matrix, `motion_cost`. Mismatches crowd around a plane in any direction: among those at a
distance d, a share 2 / pi asin(sqrt 2 r / d) comes within r (Sampson) of an epipolar line.

Matches off all surfaces belong to a motion only if they are evidence together, `off_surface`, and do not repeat the texture of planes,
see `opacity`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from ruzhash_cv.core.families.base import Models, MotionFamily
from ruzhash_cv.core.families.planes import squared_noise
from ruzhash_cv.core.method.evidence import Candidates, candidates, count_weights, evidence, rules_of
from ruzhash_cv.core.method.fits import noise_scales
from ruzhash_cv.core.method.opacity import Opacity
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scene import Scene, on_surfaces
from ruzhash_cv.core.method.sides import on_one_side
from ruzhash_cv.foundation.arrays import Array, Mask, Rows


def proofs(
    motions: Models,
    holds: Mask,
    left: Mask,
    labels: Rows,
    counts: tuple[int, int],
    surfaces: Scene,
    copies: Mask,
    weights: Array,
    problem: Problem,
) -> tuple[Array, Array]:
    """Return tolerances and evidences (m,) of motions that hold surfaces (m, k), from matches that are `left` (n,).

    The evidence of a motion that holds a plane is computed from the matches off the strongest one and from the relief of this, for the
    number of candidates made here, the second of the `counts`. It must exceed `motion_cost`. Without a plane it is computed from the
    matches of no plane by `labels` (n,), for the models of the search as well, the first of the `counts`. All these matches have equal
    weights then, because their scores follow from the same models. The matches of `copies` (k, k) of a plane are no evidence beside it.
    """
    n_searched, n_tried = counts
    matches, _, families, parameters = problem
    is_plane, size = families.is_plane(surfaces), families[motions.family_ids[0]].sample_size
    given, evidences = seen_candidates(motions, problem), np.full(len(motions), -np.inf)
    every = motion_evidence(given, np.where(left, weights, 0.0), size, n_tried, problem)
    tolerances = parameters.radii[every.argmax(axis=1) + parameters.tolerance_steps] * matches.unit
    of_no_plane = left & ~on_surfaces(is_plane, labels, False)
    if of_no_plane.any():
        alone = np.where(of_no_plane, matches.weights, 0.0)
        evidences = motion_evidence(given, alone, size, n_searched + n_tried, problem).max(axis=1)
    planes = holds & is_plane
    strongest = np.where(planes.any(axis=1), planes.argmax(axis=1), -1)
    for number in np.unique(strongest[strongest >= 0]).tolist():
        items, plane = np.flatnonzero(strongest == number), surfaces.take(np.array([number]))
        holding, of_plane = given.take(items), np.flatnonzero(left & (labels == number))
        beside = left & ~on_surfaces(copies[number], labels, False)
        parallax = parallax_gains(holding, plane, beside, weights, n_tried, problem, parameters.motion_cost)
        relief = relief_gains(holding, plane, of_plane, weights, problem) - np.log(n_tried)
        gains = np.maximum(parallax, 0.0) + np.maximum(relief, 0.0)
        evidences[items] = np.where(gains > parameters.motion_cost, gains + plane.evidences[0], -np.inf)
    return tolerances, evidences


def parallax_gains(
    motions: Candidates, plane: Scene, left: Mask, weights: Array, n_tried: int, problem: Problem, enough: float
) -> Array:
    """Return -ln NFA (m,) of motions among matches that are `left` (n,), those off a plane that the motions hold.

    Surfaces are connected: matches near a plane are used first, those further off only if none has `enough` by the first.
    """
    matches, _, families, parameters = problem
    family, gains = cast(MotionFamily, families[motions.family_ids[0]]), np.full(len(motions), -np.inf)
    distances = np.sqrt(2.0 * squared_noise(matches.data, plane.matrices[0])) / matches.unit
    # Matches within its noise are not off a plane.
    beyond = max(1.0, parameters.preference_cut * float(plane.noise[0]) / matches.unit)
    for reach in (parameters.preference_limit, np.inf):
        off = left & (distances > beyond) & (distances <= reach)
        if off.any() and not (gains > enough).any():
            ratios = np.minimum(1.0, np.sqrt(2.0) * parameters.radii[:, None] / distances[off])
            share = 2.0 / np.pi * np.arcsin(ratios) @ weights[off] / max(weights[off].sum(), 1e-300)
            given = np.where(off, weights, 0.0), family.parallax_size, n_tried, problem, share
            gains = motion_evidence(motions, *given).max(axis=1)
    return gains


def off_surface(scene: Scene, n_tried: int, problem: Problem, opacity: Opacity | None = None) -> Mask:
    """Return which models (k,) of a scene hold matches: planes, and motions with evidence among the matches off all surfaces.

    Without any the strongest model does: the search has proven a structure. `opacity` is that of the scene's planes, if it is known.
    """
    matches, _, families, parameters = problem
    holding, planes = np.ones(len(scene), bool), families.is_plane(scene)
    if planes.all() or not families.has_both:
        return holding
    opacity = opacity or Opacity.of(scene.take(np.flatnonzero(planes)), matches, families, parameters)
    for motion in np.flatnonzero(~planes).tolist():
        has_planes = bool(np.count_nonzero(scene.owners == motion) > 1)
        holding[motion] = is_evident(scene.take(np.array([motion])), opacity, has_planes, n_tried, problem)
    holding[scene.evidences.argmax()] |= not holding.any()
    return holding


def is_evident(motion: Models, opacity: Opacity, has_planes: bool, n_tried: int, problem: Problem) -> bool:
    """Return whether a motion has evidence among the matches off all surfaces, and these are no slips."""
    matches, _, families, _ = problem
    family = cast(MotionFamily, families[motion.family_ids[0]])
    given = family.parallax_size if has_planes else family.sample_size, n_tried, problem
    squared = on_one_side(families.squared_residuals(motion, matches.data), motion, matches, families)
    if opacity.are_slips(squared, matches.unit, problem.parameters)[0]:
        return False
    off = np.where(opacity.off, matches.weights, 0.0)
    return bool(motion_evidence(seen_candidates(motion, problem), off, *given).max() > 0.0)


def seen_candidates(motions: Models, problem: Problem) -> Candidates:
    """Return motions as candidates, whose matches beyond the epipole lie beyond all radii."""
    matches, _, families, parameters = problem
    given = candidates(motions, matches.data, problem)
    nowhere = np.zeros((len(motions), len(matches)))
    beyond = on_one_side(nowhere, motions, matches, families, matches.data) > 0.0
    indices = np.where(beyond, np.uint8(parameters.n_radius_indices - 1), given.radius_indices)
    return replace(given, radius_indices=indices)


def relief_gains(motions: Models, plane: Models, rows: Rows, weights: Array, problem: Problem) -> Array:
    """Return the log-likelihood (m,) that a plane's matches gain if a motion explains them: noise across its lines, relief along them.

    Without the motion they have the same noise in all directions. A fifth of both laws is three times as wide. A twentieth of the
    matches are mismatches near the plane, which are as likely with the motion as without.
    """
    matches, _, families, parameters = problem
    if len(rows) < parameters.neighbourhoods[0]:
        return np.zeros(len(motions))
    data, floor = matches.data[rows], np.sqrt(2.0) * parameters.least_noise * matches.unit
    # Sampson distances in units of both images' noise: a transfer error would have an ellipse of noise if the map stretches.
    both = 2.0 * squared_noise(data, plane.matrices[0])[None]
    across = np.minimum(2.0 * families.squared_residuals(motions, data), both)
    along = both - across
    scale = max(float(noise_scales(both, 2)[0]), floor)
    narrow = np.maximum(noise_scales(across, 1), floor)[:, None]
    wide = np.maximum(noise_scales(along, 1)[:, None], narrow)
    gains = log_of_two_scales(across / narrow**2 + along / wide**2) - np.log(narrow * wide)
    gains += np.log(scale**2) - log_of_two_scales(both / scale**2)
    return np.asarray(np.logaddexp(np.log(0.95) + gains, np.log(0.05)) @ weights[rows])


def log_of_two_scales(squares: Array) -> Array:
    """Return the logarithm of the law of squared residuals in noise scales, four fifths by one scale and one by three times as much."""
    return np.asarray(np.log(0.8 * np.exp(-0.5 * squares) + 0.2 / 9.0 * np.exp(-squares / 18.0) + 1e-300))


def motion_evidence(
    motions: Candidates,
    weights: Array,
    n_free: int,
    n_tried: int,
    problem: Problem,
    background: Array | float = 0.0,
) -> Array:
    """Return -ln NFA (m, n_radii) of motions, as `candidates`, among matches by weights (n,), up to a radius of one unit.

    They fit `n_free` matches in any case. Chance puts at least the share `background` (n_radii,) of matches within the radii.
    """
    parameters, codimension = problem.parameters, problem.families[motions.family_ids[0]].codimension
    background = np.maximum(motions.background, background)
    given = replace(motions, background=background, family_ids=np.zeros_like(motions.family_ids))
    rules = rules_of((n_free,), (codimension,), parameters)
    rows = given.radius_indices, weights, problem.matches.keypoints
    counts = count_weights(*rows, parameters.n_radius_indices)
    gains = evidence(given, counts, float(weights.sum()), rules, n_tried)
    gains[:, parameters.radii > 1.0 + 1e-9] = -np.inf
    return gains
