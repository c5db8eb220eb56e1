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

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.core.families.base import Models, MotionFamily
from ruzhash_cv.core.method.competition import competing, interleaved
from ruzhash_cv.core.method.fits import balanced, log_likelihoods, ranking_costs, refine, refined_samples
from ruzhash_cv.core.method.matches import floored
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.proofs import proofs
from ruzhash_cv.core.method.sampling import Problem, draw_samples
from ruzhash_cv.core.method.scene import Scene, assign, on_surfaces, taken_keypoints, without_slips
from ruzhash_cv.core.method.search import EXPLAINED, Tried
from ruzhash_cv.core.method.sides import on_one_side

#: A guard: no more motions are looked for.
MAX_MOTIONS = 8
#: Planes that candidates are made of, the strongest ones.
_N_PLANES = 4


def with_motions(surfaces: Scene, problem: Problem, tried: Tried, rng: np.random.Generator) -> tuple[Scene, Array]:
    """Return the scene of surfaces that a search has found, and matrices (m, 9) that its last ones are chosen among.

    The scene is rigid motions and surfaces. Structures that are not planes are motions already: a motion takes the place of those that
    it holds.
    """
    families = problem.families
    if families.motion_id is None or len(families) == 1 or len(surfaces) == 0:
        return surfaces, np.zeros((0, 9))
    motions, holders, pool = find_motions(surfaces, problem, tried, rng)
    kept = np.flatnonzero(families.is_plane(surfaces) | (holders < 0))
    scene = Scene.join([*motions, surfaces.take(kept)])
    owners = np.arange(len(scene))
    owners[len(motions) :] = np.where(holders[kept] < 0, owners[len(motions) :], holders[kept])
    return replace(scene, owners=owners), pool


def find_motions(
    surfaces: Scene, problem: Problem, tried: Tried, rng: np.random.Generator
) -> tuple[list[Scene], Rows, Array]:
    """Return rigid motions among the surfaces that move and the matches of these and of none.

    Returns the number of the motion that holds each surface (k,), -1 for none, and all matrices (m, 9) that were refined, too. If the
    search has explained all but mismatches, no samples are drawn beside the candidates of surfaces, and the motion that holds the last
    surface is the last one.
    """
    matches, _, families, parameters = problem
    family_id, unit, moved = cast(int, families.motion_id), matches.unit, ~surfaces.stationary
    family, labels, free = families[family_id], assign(surfaces, matches, families), moved
    planes = families.is_plane(surfaces)
    taken = taken_keypoints(np.where(on_surfaces(planes, labels, False), labels, -1), matches)
    weights, left = np.where(taken, 0.0, matches.weights), on_surfaces(moved, labels, True)
    copies, _ = competing((labels == np.arange(len(surfaces))[:, None]) & planes[:, None], matches, parameters)
    own, is_explained = own_matrices(np.where(left, labels, -1), problem, rng), tried.ended == EXPLAINED
    pool = np.vstack([plane_candidates(surfaces, left, problem, rng), own])
    n_samples = 0 if is_explained and len(pool) else parameters.motion_samples
    motions, holders, compared = list[Scene](), np.full(len(surfaces), -1), [pool[:0]]
    while len(motions) < MAX_MOTIONS and not (motions and is_explained and not free.any()):
        rows = np.flatnonzero(left)
        remaining = replace(matches, data=matches.data[rows], weights=weights[rows])
        drawing, of_rows = balanced(weights[rows], labels[rows]), (labels[rows], taken[rows], unit, parameters)
        # Propose.
        samples, _ = draw_samples(remaining.data, drawing, n_samples, family, unit, parameters, rng, (0,))
        models = np.vstack([pool, family.solve(remaining.data[samples])[0]])
        if len(models) == 0:
            break
        of_all = without_slips(floored(family.squared_residuals(remaining.data, models), matches), *of_rows)
        order = np.argsort(ranking_costs(of_all, drawing, unit, parameters), kind="stable")
        best = models[order[: parameters.n_refits // 2]]
        # Refine.
        refined, noise = refine(family, best, remaining, np.full(len(best), unit), parameters)
        compared.append(refined)
        squared = family.squared_residuals(remaining.data, refined)
        squared = on_one_side(squared, Models.of_family(refined, family_id), remaining, families)
        squared = without_slips(floored(squared, matches), *of_rows)
        rivals = np.vstack([squared, floored(family.squared_residuals(remaining.data, own), matches)])
        given = rivals, labels[rows], matches.weights[rows], len(surfaces), unit, parameters
        holds, lost, of_none = held_by_motions(*given)
        holds = holds[: len(refined)] & free
        strongest = np.where((holds & planes).any(axis=1), (holds & planes).argmax(axis=1), -1)
        holds &= ~np.vstack([copies, np.zeros(len(copies), bool)])[strongest]
        proposed, counts = Models.of_family(refined, family_id), (tried.n, len(of_all))
        tolerances, evidences = proofs(proposed, holds, left, labels, counts, surfaces, copies, weights, problem)
        # Accept the likeliest that is proven and no noise of a motion before it.
        likelihoods = log_likelihoods(squared, matches.weights[rows], unit, family.codimension)
        proven = np.flatnonzero(evidences > 0.0)
        for item in proven[ranked(likelihoods[proven], lost[proven], of_none[proven], parameters)].tolist():
            mine = left & ~taken & on_surfaces(holds[item], labels, True)
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
    return motions, holders, np.vstack(compared)


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


def held_by_motions(
    squared: Array, labels: Rows, weights: Array, n_surfaces: int, unit: float, parameters: Parameters
) -> tuple[Mask, Array, Array]:
    """Return which surfaces (m, k) matrices with squared residuals (m, n) explain about as well as any of them does.

    With another matrix, of another motion, the log-likelihood of a surface's matches may be greater by what a motion costs and by the
    logarithm of `held_ratio` for each match: a lens that is not undistorted bends the lines of each plane differently. What it is
    greater by beyond that is lost. Returns what each matrix loses (m,), and the log-likelihood of the matches of no surface (m,), too.
    """
    likelihoods, reach = np.zeros((len(squared), n_surfaces + 1)), parameters.widest_scale * unit
    for label in np.unique(labels).tolist():
        mine = labels == label
        likelihoods[:, label] = log_likelihoods(squared[:, mine], weights[mine], reach, 1)
    counts = np.bincount(labels + 1, weights, minlength=n_surfaces + 1)[1:]
    allowed = parameters.motion_cost + np.log(parameters.held_ratio) * counts
    likelihoods, of_none = likelihoods[:, :-1], likelihoods[:, -1]
    lost = np.maximum(likelihoods.max(axis=0, initial=0.0) - allowed - likelihoods, 0.0)
    return (likelihoods > 0.0) & (lost == 0.0), lost.sum(axis=1), of_none


def ranked(likelihoods: Array, lost: Array, of_none: Array, parameters: Parameters) -> Rows:
    """Return the order of matrices: the likeliest first, by log-likelihoods (m,), but last those that miss much.

    Likelihoods tell precise residuals apart, and of a plane behind a lens that bends lines some matrix explains even the bend. It
    misses what stands on the plane. A matrix misses much if it has `lost` (m,) surfaces, and their matches and those of no surface,
    with log-likelihoods `of_none` (m,), are likelier with another matrix by more than a motion costs.
    """
    gains = of_none - lost
    return np.lexsort((-likelihoods, (lost > 0.0) & (gains < gains.max(initial=-np.inf) - parameters.motion_cost)))


def with_best_matrices(
    scene: Scene, pool: Array, probabilities: Array, problem: Problem, rng: np.random.Generator
) -> tuple[Scene, Array]:
    """Return the scene with the best matrix of each rigid motion: the first one as they are `ranked`.

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
        squared = on_one_side(squared, Models.of_family(models, scene.family_ids[item]), weighted, families)
        squared = without_slips(floored(squared, matches), surfaces, taken, matches.unit, parameters)
        compared.append(models)
        likelihoods = log_likelihoods(squared, weights, matches.unit, family.codimension)
        _, lost, of_none = held_by_motions(squared, labels, weights, len(scene), matches.unit, parameters)
        best = ranked(likelihoods, lost, of_none, parameters)[0]
        matrices[item], noise[item] = models[best], scales[best]
    return replace(scene, matrices=matrices, noise=noise), np.vstack(compared)
