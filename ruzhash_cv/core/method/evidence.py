"""Evidence: which models are structures, by how unlikely it is that as many mismatches agree with them, -ln NFA.

The a contrario method (Desolneux, Moisan, Morel, "Meaningful alignments", IJCV 2000; Moisan, Moulon, Monasse, "Automatic homographic
registration of a pair of images, with a contrario elimination of outliers", IPOL 2012). Of n matches c lie within a radius of a model,
where chance would put a share alpha. The number of false alarms is the number of models tried, times n for the choice of c, times
the probability of as many by chance, which by Hoeffding's bound is at most exp(-n KL(c / n || alpha)):

    -ln NFA = n KL(c / n || alpha) - ln(n * models tried)

A structure counts each keypoint once, because at most one match of it is right: several copies of one object are as evident as one.
In n KL the size of a minimal sample is subtracted from n and c, because a model always fits its sample. alpha is the larger of two
shares. Decoys are counted within the largest radius; within smaller ones their share falls as r ** codimension, unless significantly
more are there. The annulus around the radius shows how dense the surroundings are: mismatches may crowd around true positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.base import Models
from ruzhash_cv.core.kernels.residuals import write_candidates
from ruzhash_cv.core.kernels.weigh import extract as extract_structures
from ruzhash_cv.core.kernels.weigh import joint_evidence, write_counts, write_evidence
from ruzhash_cv.core.method.fits import refit
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scene import Structures
from ruzhash_cv.foundation.arrays import Array, Rows

#: A guard: no more structures are looked for.
MAX_STRUCTURES = 32
#: Radii tried from a wide structure's to the largest of narrow ones, a third of it.
_N_NARROWER = 3


@dataclass(frozen=True)
class Candidates(Models):
    """Models that may become structures."""

    radius_indices: NDArray[np.uint8]  # (m, n): index of the smallest radius that holds each match
    background: Array  # (m, n_radii): share of mismatches within each radius, by decoys
    further: ClassVar[str] = "Bd"


#: What the evidence of a model depends on beside its matches. Entries for each family: sizes of minimal samples, densities (which make
#: a share of mismatches of the weight in an annulus), and indices of the largest radius; then steps and the least weight of an annulus.
Rules: TypeAlias = tuple[Array, Array, Rows, int, float]


@lru_cache(64)
def rules_of(sample_sizes: tuple[int, ...], codimensions: tuple[int, ...], parameters: Parameters) -> Rules:
    """Return the rules for families."""
    # The annulus is so many times as large as what it surrounds.
    larger = math.sqrt(2.0) ** (parameters.annulus_steps * np.array(codimensions)) - 1.0
    exponents = {1: parameters.motion_widest_radius, 2: parameters.plane_widest_radius}
    widest = np.array([exponents[codimension] - parameters.finest_radius for codimension in codimensions])
    densities, sizes = np.asarray(parameters.density_ratio / larger), np.array(sample_sizes, np.float64)
    annulus = parameters.annulus_steps, parameters.min_annulus_weight
    return sizes, densities, widest, *annulus


def _rules(problem: Problem) -> Rules:
    families = problem.families
    sizes, codimensions = (tuple(column.tolist()) for column in (families.sample_sizes, families.codimensions))
    return rules_of(sizes, codimensions, problem.parameters)


@lru_cache(64)
def _laws(codimensions: tuple[int, ...], parameters: Parameters) -> Array:
    """Return the shares (k, n_radii) of the decoys within the largest radius that are within each, for families."""
    return np.asarray((parameters.radii / parameters.radii[-1]) ** np.array(codimensions)[:, None])


def candidates(models: Models, data: Array, problem: Problem) -> Candidates:
    """Return models with the radii that hold correspondences (n, 4) and the shares of decoys within these.

    Within the largest radius decoys are counted; within smaller ones they are as many as the law of the family says, or as are
    there for sure: keypoints on a grid or on lines agree with some models exactly.
    """
    matches, decoys, families, parameters = problem
    (m, n), n_all = (len(models), len(data)), len(data) + len(decoys)
    indices, background = np.empty((m, n), np.uint8), np.empty((m, len(parameters.radii)))
    laws = _laws(tuple(families.codimensions.tolist()), parameters)
    # A little larger, so that a residual of exactly a radius lies within it.
    least = float(parameters.radii[0] * matches.unit) ** 2 * (1.0 + 1e-12)
    write_candidates(
        *families.residuals(models, np.vstack([data, decoys])), least, laws,
        models.family_ids, parameters.background_errors,
        np.empty((2, n_all), np.int64), np.empty(n_all), np.empty(parameters.n_radius_indices), indices, background,
    )  # fmt: skip
    return Candidates(models.matrices, models.family_ids, indices, background)


def evidence(models: Candidates, counts: Array, total: float, rules: Rules, n_tried: int) -> Array:
    """Return -ln NFA (m, n_radii) of models, of which `n_tried` were tried to find these.

    `counts` (m, n_radius_indices) are the weights between one radius and the next, `total` is the sum of all weights.
    """
    gains = np.empty(models.background.shape)
    write_evidence(
        counts, total, models.background, models.family_ids, *_by_total(rules, total), _log_tests(total, n_tried), gains
    )
    return gains


def _by_total(rules: Rules, total: float) -> Rules:
    """Return rules with densities as multiples of the weight in an annulus, of all weights."""
    return rules[0], rules[1] / max(total, 1e-300), *rules[2:]


def _log_tests(total: float, n_tried: int) -> float:
    return math.log(max(total, 1.0) * max(n_tried, 1))


def count_weights(indices: NDArray[np.uint8], weights: Array, keypoints: Rows, n_radius_indices: int) -> Array:
    """Return the weights (m, n_radius_indices) of correspondences between one radius and the next, at most 1 for each keypoint.

    Correspondences beyond all annuli are not counted: most are, for any model.
    """
    counts = np.empty((len(indices), n_radius_indices))
    write_counts(indices, weights, keypoints, *_room(keypoints), counts)
    return counts


def _room(keypoints: Rows) -> tuple[Rows, Array, Array]:
    """Return what kernels list rows in, what they count the keypoints of both images in, and what they weigh rows in."""
    n = keypoints.shape[1]
    return np.empty((4, n), np.int64), np.zeros((2, keypoints.max(initial=0) + 1)), np.empty(n)


def evidence_of(models: Candidates, weights: Array, problem: Problem, n_tried: int, total: float) -> Array:
    """Return -ln NFA (m, n_radii) of candidates among matches with weights (n,); `total` is the weight of all matches."""
    rows = models.radius_indices, weights, problem.matches.keypoints
    counts = count_weights(*rows, problem.parameters.n_radius_indices)
    return evidence(models, counts, total, _rules(problem), n_tried)


def meaningful(models: Candidates, problem: Problem, n_tried: int) -> Candidates:
    """Return the candidates that are no false alarm by themselves; only they can become structures."""
    weights = problem.matches.shares
    gains = evidence_of(models, weights, problem, n_tried, float(weights.sum()))
    return models.take(np.flatnonzero(gains.max(axis=1, initial=-np.inf) > 0.0))


def extract(
    models: Candidates,
    weights: Array,
    problem: Problem,
    n_tried: int,
    total: float | None = None,
    widest: int | None = None,
    by_planes: bool = False,
) -> tuple[Structures, Array]:
    """Return structures, strongest first, and the weights that none explains.

    The candidate and radius of most evidence, of whichever family, are the next structure. The matches it explains are removed, and
    the next one is chosen among the others, while the expected number of false alarms is below one. Then wide structures give way to
    narrow ones, see `chosen_structures`, and motions to planes if they are to be explained `by_planes`. `total` is the weight of all
    matches, if not all are to be explained, `widest` the index of the largest radius.
    """
    parameters, left = problem.parameters, np.where(weights > 0.0, problem.matches.shares, 0.0)
    total, n_radii = float(left.sum()) if total is None else total, len(parameters.radii)
    n_radii = n_radii if widest is None else widest + 1
    given = left
    chosen, left = chosen_structures(models, given, total, n_radii, problem, n_tried)
    if by_planes:
        chosen, left = planes_in_place_of_motions(chosen, left, models, given, total, problem, n_tried)
    # Not in this order yet: what is taken away leaves the annuli of others, which gain by it.
    chosen = chosen[np.argsort(-chosen[:, 0], kind="stable")]
    evidences, support = np.ascontiguousarray(chosen.T[[0, 3]])
    taken, indices = chosen.T[1:3].astype(np.int64)
    tolerances = parameters.radii[indices] * parameters.tolerance_ratio * problem.matches.unit
    columns = tolerances, evidences, np.zeros(len(taken), bool), support
    structures = Structures(models.matrices[taken], models.family_ids[taken], *columns)
    return structures, np.where(left > 0.0, weights, 0.0)


def chosen_structures(
    models: Candidates, weights: Array, total: float, n_radii: int, problem: Problem, n_tried: int
) -> tuple[Array, Array]:
    """Return the evidence, candidate, radius and support (k, 4) of structures, and the weights that none explains.

    The radius of most evidence is no noise scale: one wide plane may hold the matches of several narrow ones. A structure wider than a
    unit gives way to structures of at most a third of its radius among its matches that have more evidence together.
    """
    parameters, keypoints, (m, n) = problem.parameters, problem.matches.keypoints, models.radius_indices.shape
    if m == 0:
        return np.empty((0, 4)), weights
    unit_radius = -parameters.finest_radius
    n_levels = 2 + max(n_radii - 1 - unit_radius, 0) // _N_NARROWER
    of_levels, parts = np.empty((n_levels, 2, n)), np.empty((n_levels, n, 4))
    of_levels[0, 0] = weights
    n_chosen = extract_structures(
        models.radius_indices, models.background, models.family_ids, total, *_by_total(_rules(problem), total),
        _log_tests(total, n_tried), n_radii, parameters.tolerance_steps, unit_radius, _N_NARROWER, keypoints,
        *_room(keypoints), np.empty((m, parameters.n_radius_indices)), np.empty(len(parameters.radii)), np.empty(m),
        np.empty(m, np.int64), np.empty(n, np.int64), of_levels, np.empty((n_levels, MAX_STRUCTURES, 4)), parts,
    )  # fmt: skip
    return parts[0, :n_chosen], of_levels[0, 1]


def planes_in_place_of_motions(
    chosen: Array, left: Array, models: Candidates, weights: Array, total: float, problem: Problem, n_tried: int
) -> tuple[Array, Array]:
    """Return what `chosen_structures` has chosen and left, with planes in place of motions that these explain as well.

    The planes hold nearly all of a motion's matches and have more evidence together: some matrix fits any two planes.
    """
    parameters, rows = problem.parameters, np.flatnonzero(problem.families.is_plane(models))
    rules, planes, remaining, parts = _rules(problem), models.take(rows), weights.copy(), [chosen[:0]]
    for structure in chosen:
        item, radius = structure[1:3].astype(int).tolist()
        held = models.radius_indices[item] <= radius + parameters.tolerance_steps
        mine, remaining = np.where(held, remaining, 0.0), np.where(held, 0.0, remaining)
        parts.append(structure[None].copy())
        if item in rows:
            continue
        apart, beside = chosen_structures(planes, mine, total, len(parameters.radii), problem, n_tried)
        apart[:, 1] = rows[apart[:, 1].astype(int)]
        motion, together = (
            joint_evidence(
                models.radius_indices, models.background, models.family_ids, rules[0], each, 0, len(each),
                parameters.tolerance_steps, total, _log_tests(total, n_tried), mine.copy(),
                np.empty((len(models), parameters.n_radius_indices)),
            ) for each in (parts[-1], apart)
        )  # fmt: skip
        if together > motion and beside.sum() <= (1.0 - parameters.planes_share) * mine.sum():
            parts[-1], left = apart, left + beside
    return np.concatenate(parts), left


def select(tried: Candidates, weights: Array, problem: Problem, n_tried: int) -> tuple[Structures, Array, Candidates]:
    """Return structures, the weights that none explains, and the candidates: those given, and refits of a first selection."""
    first, _ = extract(tried, weights, problem, n_tried)
    for family_id in np.unique(first.family_ids):
        chosen = first.take(np.flatnonzero(first.family_ids == family_id))
        fitted = refit(problem.families[family_id], problem.matches, chosen.matrices, chosen.tolerances)
        given = candidates(Models(fitted, chosen.family_ids), problem.matches.data, problem)
        tried = Candidates.join([tried, meaningful(given, problem, n_tried)])
    return *extract(tried, weights, problem, n_tried), tried
