"""Rigid motions among surfaces and matches: one matrix for the surfaces that move together and for the matches off them.

They are found one after the other. Matrices are proposed: those of

    a plane's homography H and two matches off it, [e]_x H: the epipole e is where the lines H x1, x2 of the two meet,
    two planes: the epipole is an eigenvector of H2 H1^-1,
    samples of as many matches as the solver takes, drawn as often from a small surface as from a large one, unless the search has
    explained all but mismatches,
    those that the search selected, and the likeliest one of each surface's matches alone.

The best ranked are refined. The likeliest that is proven, see `proofs`, and misses little, see `ranked`, is accepted: it holds the
surfaces whose matches are about as likely with it as with any matrix, but not two copies of one object, which compete for keypoints.
The matches of a weaker motion are each other's neighbours: among those of a stronger one they are mismatches or noise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from ruzhash_cv.core.families.base import Models, MotionFamily
from ruzhash_cv.core.method.bending import STRAIGHT, Lens, lens_of_planes
from ruzhash_cv.core.method.competition import competing
from ruzhash_cv.core.method.fits import balanced, log_likelihoods, ranking_costs, refine, refined_samples
from ruzhash_cv.core.method.matches import floored
from ruzhash_cv.core.method.opacity import Opacity, interleaved
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.proofs import parallax_gains, proofs, relief_gains, seen_candidates
from ruzhash_cv.core.method.sampling import Problem, draw_samples
from ruzhash_cv.core.method.scene import Scene, on_surfaces
from ruzhash_cv.core.method.search import EXPLAINED, Tried
from ruzhash_cv.core.method.sides import on_one_side
from ruzhash_cv.foundation.arrays import Array, Mask, Rows

#: A guard: no more motions are looked for.
MAX_MOTIONS = 8
#: Planes that candidates are made of, the strongest ones.
_N_PLANES = 4


def with_motions(
    surfaces: Scene, problem: Problem, tried: Tried, rng: np.random.Generator
) -> tuple[Scene, Array, Lens]:
    """Return the scene of surfaces that a search has found, matrices (m, 9) that its last ones are chosen among, and the lens.

    The scene is rigid motions and surfaces. Structures that are not planes are motions already: a motion takes the place of those that
    it holds.
    """
    families = problem.families
    if families.motion_id is None or len(families) == 1 or len(surfaces) == 0:
        return surfaces, np.zeros((0, 9)), STRAIGHT
    motions, holders, pool, lens = find_motions(surfaces, problem, tried, rng)
    kept = np.flatnonzero(families.is_plane(surfaces) | (holders < 0))
    scene = Scene.join([*motions, surfaces.take(kept)])
    owners = np.arange(len(scene))
    owners[len(motions) :] = np.where(holders[kept] < 0, owners[len(motions) :], holders[kept])
    return replace(scene, owners=owners), pool, lens


def find_motions(
    surfaces: Scene, problem: Problem, tried: Tried, rng: np.random.Generator
) -> tuple[list[Scene], Rows, Array, Lens]:
    """Return rigid motions among the surfaces that move and the matches of these and of none.

    Returns the number of the motion that holds each surface (k,), -1 for none, and all matrices (m, 9) that were refined, too. If the
    search has explained all but mismatches, no samples are drawn beside the candidates of surfaces, and the motion that holds the last
    surface is the last one.
    """
    matches, _, families, parameters = problem
    family_id, unit, moved = cast(int, families.motion_id), matches.unit, ~surfaces.stationary
    family, planes, free = families[family_id], families.is_plane(surfaces), moved
    opacity = Opacity.of(surfaces, matches, families, parameters)
    labels, lens = opacity.labels, STRAIGHT
    weights, left = np.where(opacity.contradict, 0.0, matches.weights), on_surfaces(moved, labels, True)
    copies = competing((labels == np.arange(len(surfaces))[:, None]) & planes[:, None], matches, parameters)
    own, is_explained = own_matrices(np.where(left, labels, -1), problem, rng), tried.ended == EXPLAINED
    pool = np.vstack([plane_candidates(surfaces, left, problem, rng), own, tried.motions])
    n_samples = 0 if is_explained and len(pool) else parameters.motion_samples
    motions, holders, compared = list[Scene](), np.full(len(surfaces), -1), [pool[:0]]
    is_lone = is_explained and len(surfaces) == 1 and planes.all()
    while len(motions) < MAX_MOTIONS and not (motions and is_explained and not free.any()):
        rows = np.flatnonzero(left)
        remaining = replace(matches, data=matches.data[rows], weights=weights[rows])
        drawing, of_rows = balanced(weights[rows], labels[rows]), opacity.take(rows)
        # Propose.
        samples, _ = draw_samples(remaining.data, drawing, n_samples, family, unit, parameters, rng, (0,))
        models = np.vstack([pool, family.solve(remaining.data[samples])[0]])
        if len(models) == 0:
            break
        of_all = floored(family.squared_residuals(remaining.data, models), matches)
        of_all = of_rows.without_slips(of_all, unit, parameters)
        order = np.argsort(ranking_costs(of_all, drawing, unit, parameters), kind="stable")
        best = models[order[: parameters.n_refits // 2]]
        if is_lone and not might_move(Models.of_family(best, family_id), left, labels, surfaces, weights, problem):
            compared.append(best)
            break
        # Refine.
        lens = lens if motions else lens_of_planes(surfaces, labels, matches, families, parameters)
        refined, noise = refine(family, best, remaining, np.full(len(best), unit), parameters)
        compared.append(refined)
        squared = family.squared_residuals(remaining.data, refined)
        squared = on_one_side(squared, Models.of_family(refined, family_id), remaining, families)
        squared = of_rows.without_slips(floored(squared, matches), unit, parameters)
        of_own = floored(family.squared_residuals(remaining.data, own), matches)
        rivals = np.vstack([squared, of_own])
        bent = lens.bent_residuals(refined, squared, family, remaining, unit, parameters)
        bent = rivals if bent is squared else np.vstack([floored(bent, matches), of_own])
        given = rivals, bent, labels[rows], matches.weights[rows], len(surfaces), unit, parameters
        holds, lost, of_none = held_by_motions(*given)
        holds = holds[: len(refined)] & free
        strongest = np.where((holds & planes).any(axis=1), (holds & planes).argmax(axis=1), -1)
        holds &= ~np.vstack([copies, np.zeros(len(copies), bool)])[strongest]
        proposed, counts = Models.of_family(refined, family_id), (tried.n, len(of_all))
        tolerances, evidences = proofs(proposed, holds, left, labels, counts, surfaces, copies, weights, problem)
        # Accept the likeliest that is proven and no noise of a motion before it.
        likelihoods = log_likelihoods(squared, matches.weights[rows], unit, family.codimension)
        proven = np.flatnonzero(evidences > 0.0)
        for item in proven[ranked(likelihoods[proven], lost[proven], of_none[proven], lens, parameters)].tolist():
            mine = left & ~opacity.contradict & on_surfaces(holds[item], labels, True)
            mine[rows] &= squared[item] <= tolerances[item] ** 2
            others = ~left & on_surfaces(moved, labels, False)
            if not motions or not interleaved(matches.coordinates, mine, others, unit, parameters):
                break
        else:
            break
        holders[holds[item]], free = len(motions), free & ~holds[item]
        motions.append(Scene.of(proposed, tolerances, evidences, noise).take(np.array([item])))
        left &= ~(family.squared_residuals(matches.data, refined[[item]])[0] <= tolerances[item] ** 2)
        left &= on_surfaces(free, labels, True)
    return motions, holders, np.vstack(compared), lens


def plane_candidates(surfaces: Scene, free: Mask, problem: Problem, rng: np.random.Generator) -> Array:
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


def own_matrices(labels: Rows, problem: Problem, rng: np.random.Generator) -> Array:
    """Return the likeliest matrix (m, 9) of each surface's matches alone, by `labels` (n,) of surfaces.

    Small surfaces have none, and neither has the only one.
    """
    matches, _, families, parameters = problem
    family, own = families[cast(int, families.motion_id)], np.zeros((0, 9))
    for surface in np.unique(labels[labels >= 0]).tolist():
        rows = np.flatnonzero(labels == surface)
        if parameters.neighbourhoods[0] <= len(rows) < np.count_nonzero(labels >= 0):
            mine = replace(matches, data=matches.data[rows], weights=matches.weights[rows])
            models, _, squared = refined_samples(own[:0], labels[rows], mine, family, parameters, rng)
            likelihoods = log_likelihoods(floored(squared, matches), mine.weights, matches.unit, family.codimension)
            own = np.vstack([own, models[np.argsort(-likelihoods, kind="stable")[:1]]])
    return own


def might_move(proposed: Models, left: Mask, labels: Rows, plane: Scene, weights: Array, problem: Problem) -> bool:
    """Return whether any matrix has evidence beside a lone plane as it is proposed, whatever a motion costs."""
    given, n_tried = seen_candidates(proposed, problem), problem.parameters.plane_samples
    if (parallax_gains(given, plane, left, weights, n_tried, problem, 0.0) > 0.0).any():
        return True
    relief = relief_gains(given, plane, np.flatnonzero(left & (labels == 0)), weights, problem)
    return bool((relief > np.log(n_tried)).any())


def held_by_motions(
    squared: Array, bent: Array, labels: Rows, weights: Array, n_surfaces: int, unit: float, parameters: Parameters
) -> tuple[Mask, Array, Array]:
    """Return which surfaces (m, k) matrices with squared residuals (m, n) explain about as well as any of them does.

    With another matrix, of another motion, the log-likelihood of a surface's matches may be greater by `motion_cost`, by the logarithm
    of `held_ratio` for each match, as no surface is quite flat, and by twice what the matrix gains if the lens distortion of planes is
    undone, with squared residuals `bent` (m, n): then the lens explains at least half of it. The rest is lost. Returns what each matrix
    loses (m,), and the log-likelihood of the matches of no surface (m,), too.
    """
    likelihoods, reach = np.zeros((len(squared), n_surfaces + 1)), parameters.widest_scale * unit
    gained = np.zeros_like(likelihoods)
    for label in np.unique(labels).tolist():
        mine = labels == label
        likelihoods[:, label] = log_likelihoods(squared[:, mine], weights[mine], reach, 1)
        if bent is not squared:
            gained[:, label] = log_likelihoods(bent[:, mine], weights[mine], reach, 1) - likelihoods[:, label]
    counts = np.bincount(labels + 1, weights, minlength=n_surfaces + 1)[1:]
    allowed = parameters.motion_cost + np.log(parameters.held_ratio) * counts + 2.0 * np.maximum(gained[:, :-1], 0.0)
    likelihoods, of_none = likelihoods[:, :-1], likelihoods[:, -1]
    lost = np.maximum(likelihoods.max(axis=0, initial=0.0) - allowed - likelihoods, 0.0)
    return (likelihoods > 0.0) & (lost == 0.0), lost.sum(axis=1), of_none


def ranked(likelihoods: Array, lost: Array, of_none: Array, lens: Lens, parameters: Parameters) -> Rows:
    """Return the order of matrices: the likeliest first, by log-likelihoods (m,), but for a distorted lens, those that miss much last.

    Likelihoods tell precise residuals apart, and of a plane behind such a lens some matrix explains even the bend. It misses what is on
    the plane. A matrix misses much if it has `lost` (m,) surfaces, and their matches and those of no surface,
    with log-likelihoods `of_none` (m,), are likelier with another matrix by more than a motion costs.
    """
    if lens.bending == 0.0:
        return np.argsort(-likelihoods, kind="stable")
    gains = of_none - lost
    return np.lexsort((-likelihoods, (lost > 0.0) & (gains < gains.max(initial=-np.inf) - parameters.motion_cost)))


def with_best_matrices(
    scene: Scene,
    pool: Array,
    lens: Lens,
    opacity: Opacity,
    probabilities: Array,
    problem: Problem,
    rng: np.random.Generator,
) -> tuple[Scene, Array]:
    """Return the scene with the best matrix of each rigid motion: the first one as they are `ranked`.

    They are refined from a pool (m, 9) and from samples. A match counts by its probability (n, k) of each model. `opacity` is that of
    the scene's planes. Returns the refined ones (m, 9) too.
    """
    matches, _, families, parameters = problem
    matrices, noise, compared = scene.matrices.copy(), scene.noise.copy(), [pool[:0]]
    for item in np.flatnonzero(~families.is_plane(scene)).tolist():
        shares = probabilities[:, scene.owners == item]
        weights = matches.weights * np.minimum(shares.sum(axis=1), 1.0)
        labels = np.where(shares.any(axis=1), shares.argmax(axis=1), -1)
        family, weighted = families[scene.family_ids[item]], replace(matches, weights=weights)
        given = np.vstack([scene.matrices[[item]], pool])
        models, scales, squared = refined_samples(given, labels, weighted, family, parameters, rng)
        squared = on_one_side(squared, Models.of_family(models, scene.family_ids[item]), weighted, families)
        squared = opacity.without_slips(floored(squared, matches), matches.unit, parameters)
        compared.append(models)
        bent = lens.bent_residuals(models, squared, family, weighted, matches.unit, parameters)
        likelihoods = log_likelihoods(squared, weights, matches.unit, family.codimension)
        _, lost, of_none = held_by_motions(squared, bent, labels, weights, len(scene), matches.unit, parameters)
        best = ranked(likelihoods, lost, of_none, lens, parameters)[0]
        matrices[item], noise[item] = models[best], scales[best]
    return replace(scene, matrices=matrices, noise=noise), np.vstack(compared)
