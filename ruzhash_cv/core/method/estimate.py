"""The method on one page: from matches to the scene, and to how probable it is that a match belongs to each of its models.

    search -> repetitions and overlapping planes are dropped -> fits -> motions -> probabilities -> the best matrix of each motion
           -> its surfaces -> false motions are dropped -> scores -> probabilities -> the last fit of each motion

Masks, labels, poses and the models of `find_homography` and its like are views of this estimate.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ruzhash_cv.core.families.base import Families
from ruzhash_cv.core.families.linear import has_rays
from ruzhash_cv.core.method.bending import STRAIGHT, Lens, lens_of_motion
from ruzhash_cv.core.method.competition import drop_repetitions, scored_without
from ruzhash_cv.core.method.fits import noise_scales, refine, refine_structures
from ruzhash_cv.core.method.law import probabilities_of, tail_shares
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.motions import with_best_matrices, with_motions
from ruzhash_cv.core.method.opacity import Opacity, false_motions
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.proofs import off_surface
from ruzhash_cv.core.method.sampling import Problem, decoys_of_matches, decoys_of_unexplained
from ruzhash_cv.core.method.scene import Scene, Structures, held_by, memberships
from ruzhash_cv.core.method.scores import Scores, score
from ruzhash_cv.core.method.search import Tried, search
from ruzhash_cv.core.method.surfaces import PlaneEquations, with_surfaces
from ruzhash_cv.foundation.arrays import COORDINATES, Array, Mask, Rows, cached


@dataclass(frozen=True, eq=False)
class Ranking:
    """How anomalous matches are, computed when it is read. A pickle has the numbers, and not what they are computed from."""

    scores: Scores | None  # None of matches that decide nothing
    matches: MatchSet
    rows: Rows  # of the matches that were searched

    @cached
    def of_matches(self) -> Array:
        """Anomaly scores (n,) of the distinct matches."""
        if self.scores is None:
            return np.ones(len(self.matches))
        return self.scores.of_all(self.matches, self.rows, self.scores.problem)

    @cached
    def of_given(self) -> Array:
        """Anomaly scores of all rows that were given."""
        return self.matches.of_given(self.of_matches, 1.0)

    @cached
    def significant(self) -> Mask:
        """Whether at most the share `significant_share` of decoys scores as well as each of the distinct matches."""
        scores = self.scores
        if scores is None:
            return np.zeros(len(self.matches), bool)
        shares = tail_shares(self.of_matches, np.sort(scores.of_decoys))
        return np.asarray(shares <= scores.problem.parameters.significant_share)

    def __getstate__(self) -> dict[str, Any]:
        return {"of_given": self.of_given, "significant": self.significant}


@dataclass(frozen=True)
class Estimate:
    """A scene, the probabilities (n, k) that matches belong to each of its models, how anomalous they are, and what was tried."""

    scene: Scene
    probabilities: Array
    ranking: Ranking
    matches: MatchSet
    families: Families
    parameters: Parameters
    tried: Tried | None = None
    # (m, 9): matrices that those of motions were chosen among
    pool: Array = field(default_factory=lambda: np.zeros((0, 9)))
    lens: Lens = STRAIGHT  # that planes show

    @classmethod
    def nothing(cls, matches: MatchSet, families: Families, parameters: Parameters) -> Estimate:
        """Return the estimate of matches that decide nothing."""
        n = len(matches)
        ranking = Ranking(None, matches, np.arange(n))
        return cls(Scene.none(), np.zeros((n, 0)), ranking, matches, families, parameters)


def estimate(matches: MatchSet, families: Families, parameters: Parameters, rng: np.random.Generator) -> Estimate:
    """Return the estimate for distinct matches; of many a part is searched, and all are scored and fitted."""
    searched, rows = matches.sample(parameters.max_searched, rng)
    problem = Problem(searched, decoys_of_matches(searched, parameters, rng), families, parameters)
    structures, scores, tried = search(problem, rng)
    structures, overlapping, scores = drop_repetitions(structures, scores, problem, rng)
    if overlapping.any():
        fitted = refine_structures(structures, searched, families, parameters)
        scene, _, _ = with_motions(fitted, problem, tried, rng)
        false = overlapped(scene, structures, overlapping, searched, families)
        if false.any():
            removed = np.asarray(held_by(structures, searched, families).any(axis=0))
            structures = structures.take(np.flatnonzero(~false))
            scores = scored_without(removed, structures, scores, problem, rng)
    if len(structures) == 0:
        nothing = Estimate.nothing(matches, families, parameters)
        return replace(nothing, ranking=Ranking(scores, matches, rows), tried=tried)
    surfaces = refine_structures(structures, matches, families, parameters)
    scene, pool, lens = with_motions(surfaces, problem, tried, rng)
    moved = moves_as_others(surfaces, scene, problem)
    if moved.any() and not moved.all():  # motions are looked for among surfaces: one at least is left
        scene, pool, lens = with_motions(surfaces.take(np.flatnonzero(~moved)), problem, tried, rng)
    planes, opacity = families.is_plane(scene), None
    rigid = not planes.all()
    if rigid:
        opacity = Opacity.of(scene.take(np.flatnonzero(planes)), searched, families, parameters)
        holding = off_surface(scene, tried.n, problem, opacity)
        probabilities = probabilities_of(scene, searched, scores.decoys, holding, problem)
        scene, pool = with_best_matrices(scene, pool, lens, opacity, probabilities, problem, rng)
        scene, opacity = with_surfaces(scene, probabilities, tried.n, problem, rng)
    false = false_motions(scene, tried.n, problem)
    if rigid or false.any():
        scene = scene.take(np.flatnonzero(~false))
        unexplained = np.where(held_by(scene, searched, families).any(axis=0), 0.0, searched.weights)
        decoys = decoys_of_unexplained(searched, unexplained, parameters, rng)
        scores = score(scores.columns, scene, decoys, problem, rng)
    if len(searched) < len(matches):
        scene = fitted_to_all(scene, matches, families, parameters)
    holding = off_surface(scene, tried.n, problem, None if false.any() else opacity)
    probabilities = probabilities_of(scene, matches, scores.decoys, holding, problem)
    if rigid and not has_rays(matches.data):
        probabilities = on_straight_lines(scene, probabilities, matches, scores.decoys, tried.n, problem)
    probabilities[:, without_support(scene, probabilities, matches, families)] = 0.0
    scene = fitted_to_all(scene, matches, families, parameters, probabilities)
    ranking = Ranking(scores, matches, rows)
    return Estimate(scene, probabilities, ranking, matches, families, parameters, tried, pool, lens)


def on_straight_lines(
    scene: Scene, probabilities: Array, matches: MatchSet, decoys: Array, n_tried: int, problem: Problem
) -> Array:
    """Return probabilities (n, k) as if the lens had no distortion, if the first motion shows some; else those given.

    Planes follow the motions that hold them. Models keep their matrices, of the pixels that were seen.
    """
    searched, _, families, parameters = problem
    planes, alone = families.is_plane(scene), scene.owners == np.arange(len(scene))
    if planes.all() or (planes & alone & ~scene.stationary).any():
        return probabilities
    first, matrices = int(np.argmin(planes)), scene.matrices.copy()
    lens, matrices[first] = lens_of_motion(families[scene.family_ids[first]], matrices[[first]], searched, parameters)
    if lens.bending == 0.0:
        return probabilities
    straight, decoys = lens.straightened(matches), lens.straight_rows(decoys)
    fitted = fitted_to_all(replace(scene, matrices=matrices), straight, families, parameters)
    fitted = fitted_to_all(fitted, straight, families, parameters, probabilities)
    problem = problem._replace(matches=lens.straightened(searched))
    return probabilities_of(fitted, straight, decoys, off_surface(fitted, n_tried, problem, None), problem)


def overlapped(scene: Scene, surfaces: Structures, overlapping: Mask, matches: MatchSet, families: Families) -> Mask:
    """Return which surfaces (k,) are planes that overlap with those of stronger motions.

    Repeated windows need not compete for keypoints. Hundreds of them, matched one window off, are a plane as large as the true one. The
    true one is the one whose motion holds more matches: a wall moves as the things before it do.
    """
    held = held_by(scene, matches, families)
    strengths = np.array([held[scene.owners == owner].any(axis=0) @ matches.weights for owner in scene.owners.tolist()])
    planes = np.flatnonzero(families.is_plane(surfaces))
    rank, false = np.full(len(surfaces), np.inf), np.zeros(len(surfaces), bool)
    rank[planes] = -strengths[families.is_plane(scene)]
    for plane in planes[np.argsort(rank[planes], kind="stable")].tolist():
        false[plane] = (overlapping[plane] & (rank < rank[plane]) & ~false).any()
    return false


def moves_as_others(surfaces: Scene, scene: Scene, problem: Problem) -> Mask:
    """Return which surfaces (k,) of static matches are no overlay, because another structure of the scene predicts most of them.

    Keypoints on whole pixels, of ORB or FAST, stand still where the world moves by less than half a pixel.
    """
    matches, _, families, parameters = problem
    moved = surfaces.stationary.copy()
    if not moved.any() or scene.stationary.all():
        return moved & False
    others = scene.take(np.flatnonzero(~scene.stationary))
    least = parameters.least_noise * matches.unit
    tolerances = parameters.tolerance_scales * np.maximum(others.noise, least)
    narrow = replace(others, tolerances=np.minimum(tolerances, others.tolerances))
    of_others = held_by(narrow, matches, families)
    # A wide structure predicts whatever moved little, unless it is a plane that itself moved by less than its noise.
    displaced = np.where(of_others, families.squared_residuals(others, matches.unmoved()), np.inf)
    hardly_moved = families.is_plane(others) & (noise_scales(displaced, 2) <= np.maximum(others.noise, least))
    hardly_moved &= others.noise <= matches.unit
    # Noise is a length, and a density of points falls with its square.
    precise = others.noise <= np.sqrt(2.0) * np.maximum(surfaces.noise, least)[:, None]
    held = held_by(surfaces, matches, families) * matches.weights
    both = (held @ of_others.T) * (precise | hardly_moved)
    both *= families.is_plane(others) | reaches_down(both, of_others, matches, parameters)
    moved &= both.max(axis=1) >= 0.5 * held.sum(axis=1)
    return moved


def reaches_down(still: Array, of_others: Mask, matches: MatchSet, parameters: Parameters) -> Mask:
    """Return whether the displacements of other structures (m,) reach down to static matches, whose weights (k, m) they predict.

    Every static match lies on the epipolar lines of a camera that only shifted. It belongs to the scene if other matches of the scene
    moved little too, at least half as many: displacements of a scene are about as dense just above the static ones' as below.
    """
    moves = np.abs(matches.data - matches.unmoved())[:, COORDINATES].max(axis=1) / matches.unit
    narrow = float(parameters.scales[-1])
    beside = of_others @ (matches.weights * ((moves > narrow) & (moves <= 3.0 * narrow)))
    return np.asarray(beside >= 0.5 * still)


def fitted_to_all(
    scene: Scene, matches: MatchSet, families: Families, parameters: Parameters, probabilities: Array | None = None
) -> Scene:
    """Return the scene with rigid motions fitted to all matches within a unit, not only to those that were searched.

    Given the probabilities (n, k) of matches, the last fit is by these, within the noise: within a unit, a crowd around the lines bends
    a matrix. Planes are fitted given it.
    """
    matrices, noise, planes = scene.matrices.copy(), scene.noise.copy(), families.is_plane(scene)
    for item in np.flatnonzero(~planes).tolist():
        weighted, limit, family = matches, matches.unit, families[scene.family_ids[item]]
        if probabilities is not None:
            shares = np.minimum(probabilities[:, scene.owners == item].sum(axis=1), 1.0)
            weighted = replace(matches, weights=matches.weights * shares)
            least = parameters.least_noise * matches.unit
            limit = min(limit, parameters.preference_cut * max(float(noise[item]), least))
        fitted, scales = refine(family, matrices[[item]], weighted, np.full(1, limit), parameters)
        matrices[item], noise[item] = fitted[0], scales[0] if probabilities is None else noise[item]
    if probabilities is not None:
        labels = memberships(probabilities)
        counts = np.bincount(labels + 1, minlength=len(scene) + 1)[1:]
        for item in np.flatnonzero(~planes).tolist():
            own = planes & (scene.owners == item) & (counts >= parameters.neighbourhoods[0])
            equations = PlaneEquations.of(matrices[item], matches.data)
            matrices[own] = equations.fitted(labels == np.flatnonzero(own)[:, None])
    return replace(scene, matrices=matrices, noise=noise)


def without_support(scene: Scene, probabilities: Array, matches: MatchSet, families: Families) -> Mask:
    """Return which models belong to a rigid motion with no more matches than its sample: a matrix fits these whatever they are."""
    labels = memberships(probabilities)
    support = np.bincount(labels + 1, matches.weights, minlength=len(scene) + 1)[1:]
    of_motion = np.bincount(scene.owners, support, minlength=len(scene))[scene.owners]
    rigid = ~families.is_plane(scene)[scene.owners]
    return np.asarray(rigid & (of_motion <= families.sample_sizes[scene.family_ids[scene.owners]]))
