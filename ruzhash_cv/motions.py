"""Motions: one fundamental matrix for the planes that move together, and for the few matches off them that tell the pose.

Planes are found first, and may hide the motion, because a few matches off a plane are no structure. So it is searched for with small
radii, among the matches that the mask keeps and, with little weight, the flagged ones. Matrices are tried

    of seven matches, drawn as often from a small structure as from a large one,
    [e]_x H of a plane's homography H and two matches off it: the epipole e is where the lines H x1, x2 of the two meet.

Each structure first gets the matrix that fits its own matches best, whose noise scale is the least a motion could have there.
Structures are parts of one motion if its matrix fits each about as well as that.

A plane is a motion by itself, because nothing else is seen or the camera only turned, unless matches off it tell more: they are all
displaced towards one epipole. Mismatches crowd around a plane in any direction: of those a distance d off, 2 / pi asin(sqrt 2 r /
d) come within r (Sampson) of an epipolar line. Surfaces are connected, so matches near a plane are used first, and those further
off only where the first tell of no motion at all. Those further off may be repeated texture, which moves as a second plane would.
Their neighbours tell: a surface hides what is behind it, so that its matches are each other's neighbours, while those of texture
are the plane's matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.competition import interleaved
from ruzhash_cv.evidence import candidates, count_weights, evidence, rules_of
from ruzhash_cv.fits import EXACT, fits_as_well, noise_scales, refine
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models, MotionFamily
from ruzhash_cv.models.epipolar import PARALLAX_SIZE
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.sampling import decoys_of_matches, draw_samples, drawn_alike

_SEED = 0
#: A guard on the time: of more matches a random part is searched, and what is found is fitted to all.
MOST_SEARCHED = 16_384


@dataclass(frozen=True)
class MotionProblem:
    """What motions are searched in.

    `weights` (n,) are those of matches, less of those flagged; `labels` (n,) are structures, -1 = none; `stationary` (k,) tells which
    structures are no part of a motion.
    """

    structures: Models
    families: Families
    parameters: Parameters
    matches: MatchSet
    weights: Array
    labels: Rows
    stationary: Mask

    def part(self, rng: np.random.Generator) -> MotionProblem:
        """Return the problem with at most about `MOST_SEARCHED` matches, drawn at random, of each structure alike."""
        rows = drawn_alike(self.labels, MOST_SEARCHED, rng)
        if len(rows) == len(self.matches):
            return self
        part = self.matches.take(rows)
        # Fewer are duplicates of each other than among all; those that are flagged have less weight, as before.
        weights = part.weights * (self.weights / self.matches.weights)[rows]
        return replace(self, matches=part, weights=weights, labels=self.labels[rows])


@dataclass(frozen=True)
class _Rigid:
    """The family of motions, and of each structure the matrix (k, 9) that fits it best, NaN for none, and its noise scale (k,).

    That is the least a motion could have there.
    """

    problem: MotionProblem
    family_id: int
    decoys: Array
    is_plane: Mask
    least_noise: Array
    own_models: Array

    @property
    def family(self) -> MotionFamily:
        """The family of motions; one of a user's own is alone, so that it is never asked about planes."""
        return cast(MotionFamily, self.problem.families[self.family_id])


def find_motions(problem: MotionProblem) -> tuple[Models, Rows]:
    """Return the motions, those of most weight first, and which of them each match belongs to, -1 for none."""
    found: list[Models] = []
    if problem.families.motion_id is not None:
        rng = np.random.default_rng(_SEED)
        rigid = _fit_structures(problem.part(rng), problem.families.motion_id, rng)
        near = problem.parameters.preference_limit * problem.matches.unit
        found = _rigid_motions(rigid, near, rng) or _rigid_motions(rigid, np.inf, rng)
        if rigid.problem is not problem:
            found = _fitted_to_all(replace(rigid, problem=problem), found)
    single = ~np.any([motion.holds[0] for motion in found], axis=0) & np.ones(len(problem.structures), bool)
    found += [_alone(problem, structure) for structure in np.flatnonzero(single).tolist()]
    motions = Models.join(found)
    member = np.argmax(motions.holds, axis=0)
    nearest = problem.families.nearest(motions, motions.tolerances, problem.matches.data)
    labels = np.where(problem.labels < 0, nearest, member[problem.labels])
    weights = np.bincount(labels + 1, problem.weights, minlength=len(found) + 1)[1:]
    order = np.argsort(-weights, kind="stable")
    return motions.take(order), np.append(np.argsort(order), -1)[labels]


def motion_matrix(problem: MotionProblem, structure: int) -> Array | None:
    """Return the matrix (3, 3) of pixels that fits a structure's matches best; those of one plane leave it free in part."""
    family_id = problem.families.motion_id
    if family_id is None:
        return None
    rng = np.random.default_rng(_SEED)
    model = _fit_structures(problem.part(rng), family_id, rng).own_models[[structure]]
    if not np.isfinite(model).all():
        return None
    found = Models.of_family(model, family_id)
    matrix = problem.families.to_pixels(found, problem.matches.into)[0]
    return fundamental_matrix(matrix, problem.families[family_id].name, problem.matches)


def fundamental_matrix(matrix: Array, kind: str, matches: MatchSet) -> Array | None:
    """Return the fundamental matrix (3, 3) of pixels without distortion that a model is or makes; None for a plane."""
    if kind != "essential":
        return None if kind == "homography" else matrix
    into1, into2 = matches.into
    found = into2.T @ matrix @ into1
    return np.asarray(found / np.linalg.norm(found))


def _fit_structures(problem: MotionProblem, family_id: int, rng: np.random.Generator) -> _Rigid:
    """Return the family of motions with the matrices of single structures."""
    structures, unit = problem.structures, problem.matches.unit
    decoys = decoys_of_matches(problem.matches, problem.parameters, rng)
    least, own_models = np.maximum(structures.noise, EXACT * unit), np.full((len(structures), 9), np.nan)
    rigid = _Rigid(problem, family_id, decoys, problem.families.is_plane(structures), least, own_models)
    size = rigid.family.sample_size
    for structure in range(len(structures)):
        rows = np.flatnonzero(problem.labels == structure)
        models, noise = _fits(rigid, structure, rows, rows, rng)
        if len(models) == 0:
            continue
        best = np.argmin(noise)
        own_models[structure] = models[best]
        if len(rows) > 2 * size:
            # So many degrees of freedom went into the fit.
            spread = np.sqrt(len(rows) / (len(rows) - size))
            least[structure] = np.clip(noise[best] * spread, EXACT * unit, least[structure])
    return rigid


def _rigid_motions(rigid: _Rigid, reach: float, rng: np.random.Generator) -> list[Models]:
    """Return the motions that have a matrix, as told by what is off a plane by at most `reach`; the strongest structures first."""
    found: list[Models] = []
    free = ~rigid.problem.stationary
    for structure in range(len(free)):
        motion = _motion_of(rigid, structure, free, reach, rng) if free[structure] else None
        if motion is not None:
            found.append(motion)
            free &= ~motion.holds[0]
    return found


def _motion_of(rigid: _Rigid, seed: int, free: Mask, reach: float, rng: np.random.Generator) -> Models | None:
    """Return the motion of a structure and of which of the `free` ones it holds, None if nothing tells of one."""
    problem, plane = rigid.problem, rigid.is_plane[seed]
    data, parameters, unit = problem.matches.data, problem.parameters, problem.matches.unit
    rows = np.flatnonzero(np.append(free, True)[problem.labels])
    asked = rows[_distances(problem, seed, rows) <= reach] if plane else rows
    off = asked[_off(rigid, seed, asked)]
    models, noise = _fits(rigid, seed, asked, rows, rng)
    gains = _evidence_off(rigid, models, seed, off)
    holds = _held(rigid, models, rows) & free
    told = (gains.max(axis=1, initial=-np.inf) > 0.0) & holds[:, seed]
    if not told.any():
        return None
    # Of several the one of least squares, cut at the inliers' limit, has it (MSAC; Torr and Zisserman, CVIU 2000): -ln NFA, which
    # accepts them, does not tell apart what lies within its smallest radius.
    limit = parameters.preference_cut * max(noise[told].min(), EXACT * unit)
    squared = rigid.family.squared_residuals(data[rows], models)
    best = [int(np.argmin(np.where(told, np.minimum(squared, limit**2) @ problem.weights[rows], np.inf)))]
    if plane and _repeats(rigid, rows, holds[best[0]], squared[best[0]] <= limit**2, reach < np.inf):
        # The relief of planes tells without them: what is on one and yet off it.
        relief = off[np.append(holds[best[0]], False)[problem.labels[off]]]
        if not _evidence_off(rigid, models[best], seed, relief).max() > 0.0:
            return None
    tolerance = _tolerance(rigid, models[best], rows)
    evidences = gains[best].max(axis=1) + problem.structures.evidences[[seed]] * plane
    motion = Models.of_family(models[best], rigid.family_id)
    return replace(motion, noise=noise[best], tolerances=tolerance, evidences=evidences, holds=holds[best])


def _fitted_to_all(rigid: _Rigid, motions: list[Models]) -> list[Models]:
    """Return motions that were found among a part of the matches, each fitted to all that were free when it was found."""
    problem, unit, free = rigid.problem, rigid.problem.matches.unit, ~rigid.problem.stationary
    found = []
    for motion in motions:
        seed, rows = int(np.argmax(motion.holds[0])), np.flatnonzero(np.append(free, True)[problem.labels])
        own = replace(problem.matches, data=problem.matches.data[rows], weights=problem.weights[rows])
        models, noise = refine(motion, own, np.array([unit]), problem.families, problem.parameters)
        gains = _evidence_off(rigid, models, seed, rows[_off(rigid, seed, rows)])
        evidences = gains.max(axis=1) + problem.structures.evidences[[seed]] * rigid.is_plane[seed]
        tolerances = _tolerance(rigid, models, rows)
        found.append(replace(motion, matrices=models, noise=noise, tolerances=tolerances, evidences=evidences))
        free &= ~motion.holds[0]
    return found


def _repeats(rigid: _Rigid, rows: Rows, holds: Mask, own: Mask, near: bool) -> bool:
    """Tell whether a motion's `own` matches off its planes are repeated texture: whether they are interleaved with those of the planes.

    What is `near` a plane may be so and be on a ledge or a frame. If it is texture, it competes with the plane for keypoints too, with
    more of them than the two that any epipole fits.
    """
    problem = rigid.problem
    on = np.append(holds, False)[problem.labels[rows]]
    planes = [_off(rigid, plane, rows) for plane in np.flatnonzero(holds & rigid.is_plane).tolist()]
    off = own & ~on & np.all(planes, axis=0)
    competes = np.any([np.isin(numbers[off], numbers[on]) for numbers in problem.matches.keypoints[:, rows]], axis=0)
    told = (not near or competes.sum() > PARALLAX_SIZE) and off.any()
    data, unit = problem.matches.coordinates[rows], problem.matches.unit
    return bool(told and interleaved(data, off, on, unit, problem.parameters))


def _alone(problem: MotionProblem, structure: int) -> Models:
    """Return a structure as a motion by itself."""
    own, numbers = problem.structures.take(np.array([structure])), np.arange(len(problem.structures))
    alone = Models(own.matrices, own.family_ids, noise=own.noise, tolerances=own.tolerances, evidences=own.evidences)
    return replace(alone, holds=numbers[None] == structure)


def _off(rigid: _Rigid, seed: int, rows: Rows) -> Mask:
    """Tell which matches are off a plane, and not by noise of what is on it; all, if it is none."""
    if not rigid.is_plane[seed]:
        return np.ones(len(rows), bool)
    scales, unit = rigid.problem.parameters.preference_cut, rigid.problem.matches.unit
    return np.asarray(_distances(rigid.problem, seed, rows) > max(scales * rigid.least_noise[seed], unit))


def _distances(problem: MotionProblem, seed: int, rows: Rows) -> Array:
    structure = problem.structures.take(np.array([seed]))
    return np.asarray(np.sqrt(problem.families.squared_residuals(structure, problem.matches.data[rows])[0]))


def _fits(rigid: _Rigid, seed: int, rows: Rows, all_rows: Rows, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the best matrices (m, 9) of some matches, refined among all of them, and their noise scales (m,)."""
    problem, parameters, unit = rigid.problem, rigid.problem.parameters, rigid.problem.matches.unit
    weights, data, labels = problem.weights[rows], problem.matches.data[rows], problem.labels[rows]
    # Of the matches flagged all may have no weight.
    held = np.bincount(labels + 1, weights, minlength=2)[labels + 1]
    balanced = weights / np.sqrt(np.maximum(held, 1e-300))
    samples, _ = draw_samples(data, balanced, parameters.motion_samples, rigid.family, unit, parameters, rng, (0,))
    models = [rigid.family.solve(data[samples])[0], rigid.own_models[[seed]]]
    if rigid.is_plane[seed]:
        off = data[_off(rigid, seed, rows)]
        models.append(rigid.family.from_plane(problem.structures.matrices[seed], off, parameters.motion_samples, rng))
    else:
        models.append(problem.structures.matrices[[seed]])
    tried = np.vstack(models)
    tried = tried[np.isfinite(tried).all(axis=1)]
    cut = parameters.preference_cut
    scales = np.append(np.minimum(rigid.least_noise, unit / cut), unit / cut)[labels]
    agreement = np.maximum(0.0, 1.0 - rigid.family.squared_residuals(data, tried) / (cut * scales) ** 2) @ balanced
    tried = tried[np.argsort(-agreement, kind="stable")[: parameters.n_refits]]
    own = replace(problem.matches, data=problem.matches.data[all_rows], weights=problem.weights[all_rows])
    found = Models.of_family(tried, rigid.family_id)
    return refine(found, own, np.full(len(tried), unit), problem.families, parameters)


def _evidence(rigid: _Rigid, models: Array, rows: Rows, n_free: int, background: Array | float = 0.0) -> Array:
    """Return -ln NFA (m, n_radii) of matrices among some matches, of which they fit `n_free` whatever these are.

    Chance puts at least the share `background` (n_radii,) of matches within the radii. The matrices that are refined count as tried.
    The others were only ranked.
    """
    problem, parameters, weights = rigid.problem, rigid.problem.parameters, rigid.problem.weights[rows]
    given, data = Models.of_family(models, rigid.family_id), problem.matches.data[rows]
    found = candidates(given, data, rigid.decoys, problem.matches.unit, problem.families, parameters)
    found = replace(
        found, background=np.maximum(found.background, background), family_ids=np.zeros_like(found.family_ids)
    )
    rules = rules_of((n_free,), (rigid.family.codimension,), parameters)
    counts = count_weights(found.radius_indices, weights, parameters.n_radius_indices)
    gains = evidence(found, counts, float(weights.sum()), rules, parameters.n_refits)
    gains[:, parameters.radii > 1.0 + 1e-9] = -np.inf
    return gains


def _evidence_off(rigid: _Rigid, models: Array, seed: int, off: Rows) -> Array:
    """Return -ln NFA (m, n_radii) of matrices among the matches that are off a plane; of what is no plane among all of them."""
    if not rigid.is_plane[seed]:
        return _evidence(rigid, models, off, rigid.family.sample_size)
    return _evidence(rigid, models, off, rigid.family.parallax_size, _by_direction(rigid.problem, seed, off))


def _tolerance(rigid: _Rigid, model: Array, rows: Rows) -> Array:
    """Return the tolerance (1,) of a motion's matrix (1, 9), from the radius of most evidence."""
    parameters = rigid.problem.parameters
    step = int(np.argmax(_evidence(rigid, model, rows, rigid.family.sample_size)))
    return np.asarray(parameters.radii[[step + parameters.tolerance_steps]] * rigid.problem.matches.unit)


def _by_direction(problem: MotionProblem, seed: int, rows: Rows) -> Array:
    """Return the share (n_radii,) of matches within the radii of epipolar lines if they were off a plane in any direction.

    A match of the plane has the line go through its place, and both images share the distance to it.
    """
    weights = problem.weights[rows]
    ratios = np.sqrt(2.0) * problem.parameters.radii[:, None] * problem.matches.unit / _distances(problem, seed, rows)
    shares = 2.0 / np.pi * np.arcsin(np.minimum(1.0, ratios))
    return np.asarray(shares @ weights / max(weights.sum(), 1e-300))


def _held(rigid: _Rigid, models: Array, rows: Rows) -> Mask:
    """Tell which structures (m, k) matrices fit about as well as the best matrix of each does.

    That is with at most twice its noise, or with twice the smallest radius: a lens that is not undistorted bends the lines of each
    plane differently, and a matrix of its own adapts to that.
    """
    problem = rigid.problem
    squared, labels = rigid.family.squared_residuals(problem.matches.data[rows], models), problem.labels[rows]
    held = np.zeros((len(models), len(problem.structures)), bool)
    for structure in np.unique(labels[labels >= 0]):
        noise = noise_scales(squared[:, labels == structure], rigid.family.codimension)
        held[:, structure] = fits_as_well(noise, rigid.least_noise[structure], problem.matches.unit, problem.parameters)
    return held
