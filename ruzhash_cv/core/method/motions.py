"""Rigid motions among surfaces and matches: one matrix for the surfaces that move together and for the matches off them.

Candidates are matrices of

    a plane's homography H and two matches off it, [e]_x H: the epipole e is where the lines H x1, x2 of the two meet,
    two planes: the epipole is an eigenvector of H2 H1^-1,
    samples of as many matches as the solver takes, drawn as often from a small surface as from a large one, unless the search has
    explained all but mismatches,
    and those that the search selected.

A plane is a motion by itself, because nothing else is seen or the camera only turned, unless a matrix has evidence beside it: matches
off the plane that are displaced towards one epipole, and relief of the plane along the epipolar lines. Both pay for the candidates
tried, and together for the numbers of the matrix, `motion_cost`. Mismatches crowd around a plane in any direction: among those at a
distance d, a share 2 / pi asin(sqrt 2 r / d) comes within r (Sampson) of an epipolar line.

A motion holds the surfaces whose matches it fits about as well as any matrix does. The matches of a weaker motion are each other's
neighbours: among those of a stronger one they are mismatches or noise. Matches off all surfaces belong to a motion only if they are
evidence together, `off_surface`, and do not repeat the texture of planes, `are_slips`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.core.families.base import Families, Models, MotionFamily, TwoViewFamily
from ruzhash_cv.core.families.epipolar import PARALLAX_SIZE
from ruzhash_cv.core.families.weighting import student
from ruzhash_cv.core.kernels.fit import lower_least_medians, write_medians_by_label
from ruzhash_cv.core.kernels.weigh import write_likelihoods
from ruzhash_cv.core.method.competition import interleaved
from ruzhash_cv.core.method.evidence import candidates, count_weights, evidence, rules_of
from ruzhash_cv.core.method.fits import noise_scales, ranking_costs, refine
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import Problem, draw_samples
from ruzhash_cv.core.method.search import EXPLAINED, Tried

#: A guard: no more motions are looked for.
MAX_MOTIONS = 8
#: Steps of EM for the shares of noise scales in a likelihood, and the pseudo-count of each share, in matches.
_N_STEPS, _PRIOR = 4, 0.5
#: Planes that candidates are made of, the strongest ones.
_N_PLANES = 4


def assign(surfaces: Models, matches: MatchSet, families: Families) -> Rows:
    """Return the surface (n,) that each match belongs to, -1 for none: of those within tolerance the narrowest, planes before lines."""
    if len(surfaces) == 0:
        return np.full(len(matches), -1)
    within = families.in_tolerances(surfaces, surfaces.tolerances, matches.data) <= 1.0
    order = np.lexsort((surfaces.tolerances, ~families.is_plane(surfaces)))
    first = within[order].argmax(axis=0)
    return np.where(within.any(axis=0), order[first], -1)


def taken_keypoints(labels: Rows, matches: MatchSet) -> Mask:
    """Return which matches (n,) of no surface end at a keypoint of a match on one: at most one match of a keypoint is right."""
    held, taken = labels >= 0, np.zeros(len(labels), bool)
    for numbers in matches.keypoints:
        taken |= (np.bincount(numbers, held) > 0.0)[numbers]
    return taken & ~held


def are_slips(squared: Array, labels: Rows, taken: Mask, reach: float, parameters: Parameters) -> Mask:
    """Return for which models (m,) the matches of no surface repeat the texture of surfaces, from squared residuals (m, n).

    Windows matched some windows off lie on the epipolar lines of a matrix whose epipole is the vanishing point of their rows. They
    differ from true matches off the surfaces: many of them end at keypoints that are `taken` (n,).
    """
    if np.count_nonzero(taken) <= PARALLAX_SIZE:
        return np.zeros(len(squared), bool)
    off = squared[:, labels < 0] <= reach**2
    n_taken = np.count_nonzero(off[:, taken[labels < 0]], axis=1)
    return np.asarray((n_taken > PARALLAX_SIZE) & (n_taken >= parameters.taken_share * np.count_nonzero(off, axis=1)))


def without_slips(squared: Array, labels: Rows, taken: Mask, reach: float, parameters: Parameters) -> Array:
    """Return squared residuals (m, n) of models, which become infinite for matches of no surface where these are slips."""
    slipped = are_slips(squared, labels, taken, reach, parameters)
    squared[np.ix_(slipped, labels < 0)] = np.inf
    return squared


def with_motions(surfaces: Models, problem: Problem, tried: Tried, rng: np.random.Generator) -> tuple[Models, Array]:
    """Return the scene of surfaces that a search has found, and matrices (m, 9) that its last ones are chosen among.

    The scene is rigid motions and surfaces, `owners` (k,) being the motion each belongs to, itself for a motion. Structures that are
    not planes are motions already. A surface of no motion is its own owner.
    """
    families = problem.families
    planes, motions, pool = families.is_plane(surfaces), list[Models](), np.zeros((0, 9))
    if families.motion_id is not None and len(families) > 1 and len(surfaces) > 0:
        motions, pool = find_motions(surfaces, problem, tried, rng)
    held = np.any([motion.holds[0] for motion in motions], axis=0) & np.ones(len(surfaces), bool)
    alone = surfaces.take(np.flatnonzero(planes | ~held))
    numbers = np.full(len(surfaces), -1)
    numbers[planes | ~held] = len(motions) + np.arange(len(alone))
    scene = Models.join([*motions, alone]).but(holds=np.zeros(0, bool))
    owners = np.arange(len(scene))
    for item, motion in enumerate(motions):
        owners[numbers[motion.holds[0] & planes]] = item
    return scene.but(owners=owners), pool


def find_motions(
    surfaces: Models, problem: Problem, tried: Tried, rng: np.random.Generator
) -> tuple[list[Models], Array]:
    """Return rigid motions, one after the other, among the surfaces that move and the matches of these and of none.

    Returns all matrices (m, 9) that were refined, too. If the search has explained all but mismatches, no samples are drawn beside the
    candidates of surfaces, and the motion that holds the last surface is the last one.
    """
    matches, _, families, parameters = problem
    family_id, free = cast(int, families.motion_id), ~surfaces.stationary
    labels = assign(surfaces, matches, families)
    family, data, unit = cast(MotionFamily, families[family_id]), matches.data, matches.unit
    left, least = np.append(free, True)[labels], None
    taken = taken_keypoints(np.where(np.append(families.is_plane(surfaces), False)[labels], labels, -1), matches)
    weights = np.where(taken, 0.0, matches.weights)
    pool = plane_candidates(surfaces, left, problem, rng)
    motions, compared, is_explained = list[Models](), list[Array](), tried.ended == EXPLAINED
    n_samples = 0 if is_explained and len(pool) else parameters.motion_samples
    while len(motions) < MAX_MOTIONS and not (motions and is_explained and not free.any()):
        rows = np.flatnonzero(left)
        remaining = replace(matches, data=data[rows], weights=weights[rows])
        drawing = balanced(weights[rows], labels[rows])
        sampling = drawing, n_samples, family, unit, parameters, rng, (0,)
        samples, _ = draw_samples(remaining.data, *sampling)
        models = np.vstack([pool, family.solve(remaining.data[samples])[0]])
        if len(models) == 0:
            break
        of_all = without_slips(
            family.squared_residuals(remaining.data, models), labels[rows], taken[rows], unit, parameters
        )
        order = np.argsort(ranking_costs(of_all, drawing, unit, parameters), kind="stable")
        best = models[order[: parameters.n_refits // 2]]
        refined, noise = refine(family, best, remaining, np.full(len(best), unit), parameters)
        compared.append(refined)
        squared = without_slips(
            family.squared_residuals(remaining.data, refined), labels[rows], taken[rows], unit, parameters
        )
        if least is None:
            least = least_noise(squared, of_all, labels[rows], len(surfaces), family)
        holds = held_by_motions(squared, labels[rows], least, unit, parameters) & free
        likelihoods = log_likelihoods(squared, matches.weights[rows], unit, family.codimension)
        order = np.argsort(-likelihoods, kind="stable")
        given = Models.of_family(refined, family_id).but(noise=noise, holds=holds)
        given = with_evidence(given, rows, labels, (tried.n, len(models)), surfaces, weights, problem)
        others = ~left & (labels >= 0) & np.append(~surfaces.stationary, False)[labels]
        for item in order[given.evidences[order] > 0.0].tolist():
            mine = np.zeros(len(data), bool)
            mine[rows] = squared[item] <= given.tolerances[item] ** 2
            mine &= ~taken & np.append(holds[item], True)[labels]
            if not motions or not interleaved(matches.coordinates, mine, others, unit, parameters):
                break
        else:
            break
        motions.append(given.take(np.array([item])))
        free &= ~holds[item]
        left &= ~(family.squared_residuals(data, refined[[item]])[0] <= given.tolerances[item] ** 2)
        left &= np.append(free, True)[labels]
    return motions, np.vstack([np.zeros((0, 9)), *compared])


def plane_candidates(surfaces: Models, free: Mask, problem: Problem, rng: np.random.Generator) -> Array:
    """Return matrices (m, 9) of the strongest planes, each with two matches off it or with another plane, and of other structures."""
    matches, _, families, parameters = problem
    family = cast(MotionFamily, families[cast(int, families.motion_id)])
    planes = families.is_plane(surfaces)
    tried = [surfaces.matrices[~planes]]
    strongest = surfaces.matrices[planes & ~surfaces.stationary][:_N_PLANES]
    for plane in strongest:
        off = free & ~(families[0].squared_residuals(matches.data, plane[None])[0] <= matches.unit**2)
        tried.append(family.from_plane(plane, matches.data[off], parameters.plane_samples // len(strongest), rng))
    tried.append(family.from_planes(strongest))
    models = np.vstack(tried)
    return models[np.isfinite(models).all(axis=1)]


def least_noise(refined: Array, squared: Array, labels: Rows, n_surfaces: int, family: TwoViewFamily) -> Array:
    """Return the least noise scale (k,) that any matrix has on a surface's matches, for the degrees of freedom of a fit.

    It is estimated from squared residuals (m, n) of `refined` matrices and of all. Of the latter only those can have less noise that
    have more than half of their residuals below the least noise of the former.
    """
    counts, least, room = (
        np.bincount(labels + 1, minlength=n_surfaces + 1)[1:],
        np.full(n_surfaces, np.inf),
        rooms(labels),
    )
    for residuals in (refined, squared):
        lower_least_medians(residuals, labels, *room, least)
    freedom = np.maximum(counts, 1) / np.maximum(counts - family.sample_size, 1)
    return np.asarray(np.sqrt(least / student(family.codimension, 1.0).median * freedom))


def rooms(labels: Rows) -> tuple[Rows, Array]:
    """Return what kernels list the matches of each label (n,) in, and their residuals."""
    return np.empty_like(labels), np.empty(len(labels))


def held_by_motions(squared: Array, labels: Rows, least: Array, unit: float, parameters: Parameters) -> Mask:
    """Return which surfaces (m, k) matrices with squared residuals (m, n) fit about as well as any matrix does.

    That is with at most `held_ratio` times the noise. Noise below `exact_noise` is the same: a lens that is not undistorted bends the
    lines of each plane differently.
    """
    floor, medians = parameters.exact_noise * unit, np.empty((len(squared), len(least)))
    write_medians_by_label(squared, labels, *rooms(labels), medians)
    noise = np.maximum(np.sqrt(medians / student(1, 1.0).median), floor)
    return np.asarray((noise <= parameters.held_ratio * np.maximum(least, floor)) & (medians < np.inf))


def with_evidence(
    motions: Models,
    rows: Rows,
    labels: Rows,
    counts: tuple[int, int],
    surfaces: Models,
    weights: Array,
    problem: Problem,
) -> Models:
    """Return motions with evidences and tolerances, from some `rows` of the matches, with `labels` (n,) of surfaces.

    The evidence of a motion that holds a plane is computed from the matches off the strongest one and from the relief of this, for the
    number of candidates made here, the second of the `counts`. It must exceed `motion_cost`. Without a plane it is computed from the
    matches of no plane, for the models of the search as well, the first of the `counts`. All these matches have equal weights then,
    because their scores follow from the same models.
    """
    n_searched, n_tried = counts
    matches, _, families, parameters = problem
    family, is_plane = cast(MotionFamily, families[motions.family_ids[0]]), families.is_plane(surfaces)
    given, size = candidates(motions, matches.data, problem), family.sample_size
    every = motion_evidence(given, only(weights, rows), size, n_tried, problem)
    steps = every.argmax(axis=1) + parameters.tolerance_steps
    of_no_plane = rows[~np.append(is_plane, False)[labels[rows]]]
    evidences = np.full(len(motions), -np.inf)
    if len(of_no_plane) > 0:
        every = motion_evidence(given, only(matches.weights, of_no_plane), size, n_searched + n_tried, problem)
        evidences = every.max(axis=1)
    planes = motions.holds & is_plane
    seeds = np.where(planes.any(axis=1), planes.argmax(axis=1), -1)
    for seed in np.unique(seeds[seeds >= 0]).tolist():
        seeded = np.flatnonzero(seeds == seed)
        plane = surfaces.take(np.array([seed]))
        distances = np.sqrt(families.squared_residuals(plane, matches.data[rows])[0]) / matches.unit
        gains = np.full(len(seeded), -np.inf)
        # Surfaces are connected: matches near a plane are used first, those further off only if the first show no motion.
        for reach in (parameters.preference_limit, np.inf):
            off = (distances > 1.0) & (distances <= reach)
            if off.any() and not (gains > parameters.motion_cost).any():
                ratios = np.minimum(1.0, np.sqrt(2.0) * parameters.radii[:, None] / distances[off])
                share = 2.0 / np.pi * np.arcsin(ratios) @ weights[rows[off]] / max(weights[rows[off]].sum(), 1e-300)
                beside = only(weights, rows[off]), family.parallax_size, n_tried, problem, share
                gains = motion_evidence(given.take(seeded), *beside).max(axis=1)
        mine = rows[labels[rows] == seed]
        relief = relief_gains(motions.take(seeded), plane, mine, weights, problem) - np.log(n_tried)
        gains = np.maximum(gains, 0.0) + np.maximum(relief, 0.0)
        evidences[seeded] = np.where(gains > parameters.motion_cost, gains + plane.evidences[0], -np.inf)
    tolerances, nothing = parameters.radii[steps] * matches.unit, np.zeros(len(motions))
    columns = {"steps": steps, "tolerances": tolerances, "evidences": evidences, "support": nothing}
    return motions.but(**columns, stationary=nothing > 0.0)


def only(weights: Array, rows: Rows) -> Array:
    """Return the weights (n,) of some rows, 0 for others."""
    chosen = np.zeros(len(weights))
    chosen[rows] = weights[rows]
    return chosen


def off_surface(scene: Models, n_tried: int, problem: Problem) -> Mask:
    """Return which models (k,) of a scene hold matches: planes, and motions with evidence among the matches off all surfaces.

    Without any the strongest model does: the search has proven a structure.
    """
    matches, _, families, _ = problem
    holding, planes = np.ones(len(scene), bool), families.is_plane(scene)
    if planes.all() or not families.has_both:
        return holding
    labels = assign(scene.take(np.flatnonzero(planes)), matches, families)
    for motion in np.flatnonzero(~planes).tolist():
        has_planes = bool(np.count_nonzero(scene.owners == motion) > 1)
        holding[motion] = is_evident(scene.take(np.array([motion])), labels, has_planes, n_tried, problem)
    holding[scene.evidences.argmax()] |= not holding.any()
    return holding


def is_evident(motion: Models, labels: Rows, has_planes: bool, n_tried: int, problem: Problem) -> bool:
    """Return whether a motion has evidence among the matches of no surface, -1 in `labels` (n,), and these are no slips."""
    matches, _, families, _ = problem
    family, taken = cast(MotionFamily, families[motion.family_ids[0]]), taken_keypoints(labels, matches)
    given = family.parallax_size if has_planes else family.sample_size, n_tried, problem
    squared = families.squared_residuals(motion, matches.data)
    if are_slips(squared, labels, taken, matches.unit, problem.parameters)[0]:
        return False
    gains = motion_evidence(
        candidates(motion, matches.data, problem), np.where(labels < 0, matches.weights, 0.0), *given
    )
    return bool(gains.max() > 0.0)


def relief_gains(motions: Models, plane: Models, rows: Rows, weights: Array, problem: Problem) -> Array:
    """Return the log-likelihood (m,) that a plane's matches gain if a motion explains them: noise across its lines, relief along them.

    Without the motion they have the same noise in all directions. A fifth of both laws is three times as wide.
    """
    matches, _, families, parameters = problem
    if len(rows) < parameters.neighbourhoods[0]:
        return np.zeros(len(motions))
    data, floor = matches.data[rows], np.sqrt(2.0) * parameters.exact_noise * matches.unit
    both = families.squared_residuals(plane, data)
    # A transfer error has the noise of both images, a Sampson distance half of its square.
    across = np.minimum(2.0 * families.squared_residuals(motions, data), both)
    along = both - across
    scale = max(float(noise_scales(both, 2)[0]), floor)
    narrow = np.maximum(noise_scales(across, 1), floor)[:, None]
    wide = np.maximum(noise_scales(along, 1)[:, None], narrow)
    gains = log_of_two_scales(across / narrow**2 + along / wide**2) - np.log(narrow * wide)
    return np.asarray((gains - log_of_two_scales(both / scale**2) + np.log(scale**2)) @ weights[rows])


def log_of_two_scales(squares: Array) -> Array:
    """Return the logarithm of the law of squared residuals in noise scales, four fifths by one scale and one by three times as much."""
    return np.asarray(np.log(0.8 * np.exp(-0.5 * squares) + 0.2 / 9.0 * np.exp(-squares / 18.0) + 1e-300))


def motion_evidence(
    motions: Models,
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
    given = motions.but(background=background, family_ids=np.zeros_like(motions.family_ids))
    rules = rules_of((n_free,), (codimension,), parameters)
    counts = count_weights(given.radius_indices, weights, parameters.n_radius_indices)
    gains = evidence(given, counts, float(weights.sum()), rules, n_tried)
    gains[:, parameters.radii > 1.0 + 1e-9] = -np.inf
    return gains


def with_best_matrices(
    scene: Models, pool: Array, probabilities: Array, problem: Problem, rng: np.random.Generator
) -> tuple[Models, Array]:
    """Return the scene with the best matrix of each rigid motion: the likeliest one.

    They are refined from a pool (m, 9) and from samples. A match counts by its probability (n, k) of each model. Returns the refined
    ones (m, 9) too.
    """
    matches, _, families, parameters = problem
    matrices, noise, compared = scene.matrices.copy(), scene.noise.copy(), [pool[:0]]
    surfaces = assign(scene.take(np.flatnonzero(families.is_plane(scene))), matches, families)
    taken = taken_keypoints(surfaces, matches)
    for item in np.flatnonzero(~families.is_plane(scene)).tolist():
        shares = probabilities[:, scene.owners == item]
        weights = matches.weights * np.minimum(shares.sum(axis=1), 1.0)
        labels = np.where(shares.any(axis=1), shares.argmax(axis=1), -1)
        family, weighted = families[scene.family_ids[item]], replace(matches, weights=weights)
        given = np.vstack([scene.matrices[[item]], pool])
        models, scales, squared = refined_samples(given, labels, weighted, family, parameters, rng)
        squared = without_slips(squared, surfaces, taken, matches.unit, parameters)
        compared.append(models)
        best = log_likelihoods(squared, weights, matches.unit, family.codimension).argmax()
        matrices[item], noise[item] = models[best], scales[best]
    scene = scene.but(matrices=matrices, noise=noise)
    return scene.but(owners=owners_of_planes(scene, probabilities, problem)), np.vstack(compared)


def owners_of_planes(scene: Models, probabilities: Array, problem: Problem) -> Rows:
    """Return the owners (k,) of a scene whose planes of no motion join the one that has their matches within its tolerance.

    Some other matrix may fit the few matches of a plane so well that no motion holds it in comparison. `probabilities` (n, k) say which
    matches belong to it.
    """
    matches, _, families, parameters = problem
    owners, motions = scene.owners.copy(), np.flatnonzero(~families.is_plane(scene))
    alone = families.is_plane(scene) & ~scene.stationary & (owners == np.arange(len(scene)))
    if len(motions) > 0 and alone.any():
        labels = np.where(probabilities.sum(axis=1) > 0.5, probabilities.argmax(axis=1), -1)
        squared = families.squared_residuals(scene.take(motions), matches.data)
        least = np.maximum(scene.noise[motions], parameters.exact_noise * matches.unit)
        for plane in np.unique(labels[np.append(alone, False)[labels]]).tolist():
            ratios = noise_scales(squared[:, labels == plane], 1) / least
            owners[plane] = motions[ratios.argmin()] if ratios.min() <= parameters.tolerance_scales else plane
    return owners


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
        costs = ranking_costs(family.squared_residuals(matches.data, usable), weights, reach, parameters)
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
    (m, n), given = squared.shape, (np.ascontiguousarray(squared), weights, reach / 3.0, codimension)
    likelihoods, room = np.empty(m), (np.empty(n, np.int64), np.empty((n, 3)))
    write_likelihoods(*given, _N_STEPS, _PRIOR, *room, likelihoods)
    return likelihoods


def fundamental_matrix(matrix: Array, kind: str, matches: MatchSet) -> Array | None:
    """Return the fundamental matrix (3, 3) of pixels without distortion that a model is or makes; None for a plane."""
    if kind != "essential":
        return None if kind == "homography" else matrix
    into1, into2 = matches.into
    fundamental = into2.T @ matrix @ into1
    return np.asarray(fundamental / np.linalg.norm(fundamental))
