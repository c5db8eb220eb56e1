"""Labelling: which matches to keep, the structure of each, and its p-value by comparison with decoys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._validation import as_vector
from ruzhash_cv.families.base import Families
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.problem import Problem
from ruzhash_cv.scoring import Scores
from ruzhash_cv.selection import Structures


@dataclass(frozen=True)
class Labelling:
    """Mask, p-values and labels (-1 = none) of the distinct correspondences, and what a result says of all of them."""

    keep: Mask
    p: Array
    labels: Rows
    score_threshold: float
    mismatch_rate: float

    def match_weights(self, weights: Array) -> Array:
        """Return weights of matches; those not kept count by 1 - p."""
        return weights * np.where(self.keep, 1.0, 1.0 - self.p)

    def without(self, rows: NDArray[Any]) -> Labelling:
        """Return the labelling with some matches, by number or mask, no longer kept."""
        keep, labels = self.keep.copy(), self.labels.copy()
        keep[rows], labels[rows] = False, -1
        return replace(self, keep=keep, labels=labels)

    def of_structures(self, kept: Mask) -> Labelling:
        """Return the labelling with labels of those structures that are `kept` (k,), numbered anew."""
        numbers = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
        return replace(self, labels=numbers[self.labels])


class Agreement(NamedTuple):
    """How correspondences agree with structures: residuals (n, k) and anomaly scores (n,) of one forest."""

    residuals: Array
    scores: Array

    @classmethod
    def of(cls, structures: Structures, families: Families, data: Array, scores: Array) -> Agreement:
        """Return the agreement of correspondences (n, 4)."""
        return cls(np.sqrt(families.squared_residuals(structures, data)).T, scores)


class Limits(NamedTuple):
    """Tolerances (k,) of structures in the unit of the residuals, and the codimensions of their families."""

    tolerances: Array
    codimensions: Rows


class Choice(NamedTuple):
    """What a caller asks of the mask: one tolerance in place of the structures' own, and the share of mismatches accepted."""

    tolerance: float | None = None
    false_acceptance_rate: float | None = None


#: The structures' own tolerances, and no rate.
OWN_CHOICE = Choice()


def label_matches(
    structures: Structures,
    matches: MatchSet,
    scores: Array,
    null: Scores,
    problem: Problem,
    choice: Choice = OWN_CHOICE,
) -> Labelling:
    """Return the labelling of matches by their scores (n,) and their distances to structures, compared with the decoys of `null`."""
    families, parameters = problem.families, problem.parameters
    limits = Limits(structures.tolerances, families.codimensions[structures.family_ids])
    own = Agreement.of(structures, families, matches.data, scores)
    decoys = Agreement.of(structures, families, null.decoys, null.of_decoys)
    labelling = label(own, decoys, limits, parameters, choice)
    if choice != OWN_CHOICE:
        return labelling
    planes = families.is_plane(structures)
    return labelling.without(problem.stages.one_to_one(matches, labelling, scores, planes, parameters))


def is_overlay(structures: Structures, labelling: Labelling, matches: MatchSet) -> Mask:
    """Tell which structures did not move while more matches did: a watermark, a border, the bonnet of the car."""
    weights = np.bincount(labelling.labels + 1, matches.weights, minlength=len(structures) + 1)[1:]
    return np.asarray(structures.stationary & (weights < weights[~structures.stationary].sum()))


def label(
    matches: Agreement, decoys: Agreement, limits: Limits, parameters: Parameters, choice: Choice = OWN_CHOICE
) -> Labelling:
    """Choose the mask.

    A match is kept if few decoys score as well, and fewer the further off it is:

        share of decoys that score as well <= 0.02 ** (coordinates unchecked)  within the tolerance of a structure
                                           <= 0.002                            up to three tolerances away, if denser than further off

    With a tolerance chosen by the caller a match is kept within it, whatever its score, and so are
    several matches of one keypoint. With a false acceptance rate the mask is
    p-value <= rate.
    """
    reach, significant = parameters.reach, 2.0 / (1.0 + parameters.n_decoys)
    nearest, distance = nearest_structures(matches.residuals, limits)
    decoy_distance = nearest_structures(decoys.residuals, limits)[1]
    ranks, decoy_ranks = rank_scores(matches.scores, distance, decoys.scores, decoy_distance)
    ranked = np.sort(decoy_ranks)
    chance = tail_shares(ranks, ranked)
    shift = empirical_null(chance, len(ranked), parameters)
    p = adjust(chance, shift)
    rate = mismatch_rate(p, adjust(tail_shares(ranked, ranked), shift), parameters.middle_p)
    sure = np.maximum(chance, better_rejected(ranks, distance > reach)) <= significant
    sure &= stands_out(nearest, distance, limits.codimensions, parameters)[nearest]
    # 1 for homographies and less for fundamental matrices, whose lines pass near everything.
    levels = parameters.line_decoy_share ** (2 - limits.codimensions)
    keep = np.where(distance <= 1.0, chance <= levels[nearest], sure & (distance <= reach))
    p = np.maximum(p, better_rejected(ranks, ~keep))
    if choice.tolerance is not None:
        chosen = np.full_like(limits.tolerances, choice.tolerance)
        nearest, distance = nearest_structures(matches.residuals, limits._replace(tolerances=chosen))
        keep = distance <= 1.0
    if choice.false_acceptance_rate is not None:
        sure = p <= choice.false_acceptance_rate
        keep = sure if choice.tolerance is None else sure & (distance <= 1.0)
    labels = np.where(keep & (distance <= reach), nearest, -1)
    return Labelling(keep, p, labels, float(matches.scores[sure].max(initial=0.0)), rate)


def rank_scores(scores: Array, distances: Array, decoy_scores: Array, decoy_distances: Array) -> tuple[Array, Array]:
    """Return numbers that rank matches and decoys by score, and equal scores by the distance to the nearest structure.

    Many mismatches agree with nothing, and share the largest score.
    """
    both = np.concatenate([scores, decoy_scores]), np.concatenate([distances, decoy_distances])
    order = np.lexsort(both[::-1])
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(both[0][order]) != 0) | (both[1][order][1:] != both[1][order][:-1])
    ranks = np.empty(len(order))
    ranks[order] = np.cumsum(new)
    return ranks[: len(scores)], ranks[len(scores) :]


def nearest_structures(residuals: Array, limits: Limits) -> tuple[Rows, Array]:
    """Return the structure each match belongs to, or is nearest to, and how many tolerances away it is."""
    with np.errstate(over="ignore", invalid="ignore"):
        distances = residuals / limits.tolerances
    # A line is easily nearer than a point: what lies within a plane belongs to the plane.
    most = np.where(distances <= 1.0, limits.codimensions, 0).max(axis=1, keepdims=True)
    eligible = np.where(limits.codimensions >= most, distances, np.inf)
    # A wide structure holds what narrow ones hold: of those that do the narrowest. Ranks below 0 come before any distance.
    narrowest = np.argsort(np.argsort(limits.tolerances)) - len(limits.tolerances)
    nearest = np.argmin(np.where(eligible <= 1.0, narrowest, eligible), axis=1)
    return nearest, distances[np.arange(len(residuals)), nearest]


def stands_out(nearest: Rows, distance: Array, codimensions: Rows, parameters: Parameters) -> Mask:
    """Tell which structures' surroundings, from 1 to 3 tolerances away, are denser than as large an area further off.

    Mismatches that crowd around a plane score well near it, but are no denser there than further off.
    """
    reach = parameters.reach
    further = (2.0 * reach**codimensions - 1.0) ** (1.0 / codimensions)
    near, far = (distance > 1.0) & (distance <= reach), (distance > reach) & (distance <= further[nearest])
    n_near, n_far = (np.bincount(nearest[rows], minlength=len(codimensions)) for rows in (near, far))
    return np.asarray(n_near > parameters.density_ratio * n_far)


def break_one_to_one(
    matches: MatchSet, labelling: Labelling, scores: Array, planes: Mask, parameters: Parameters
) -> Rows:
    """Return those kept whose keypoint has a better match: a point of one image has one partner in the other.

    Partners so near each other that one model may be preferred by both do not compete, nor do partners on one plane. `planes` (k,)
    tells which structures are planes.
    """
    beaten, kept = [np.zeros(0, np.int64)], np.flatnonzero(labelling.keep)
    on_plane, apart = planes[labelling.labels], parameters.preference_limit * matches.unit
    for numbers, other in zip(matches.keypoints, (matches.coordinates[:, 2:], matches.coordinates[:, :2]), strict=True):
        rows = kept[np.bincount(numbers[kept])[numbers[kept]] > 1]
        if len(rows) == 0:
            continue
        rows = rows[np.lexsort((scores[rows], numbers[rows]))]
        first = np.concatenate([[True], np.diff(numbers[rows]) != 0])
        best = rows[first][np.cumsum(first) - 1]
        far = np.abs(other[rows] - other[best]).max(axis=1) > apart
        beaten.append(rows[far & ~(on_plane[rows] & (labelling.labels[rows] == labelling.labels[best]))])
    return np.concatenate(beaten)


def p_values(scores: ArrayLike, decoy_scores: ArrayLike) -> Array:
    """Return, for each score, the probability that a mismatch looks at least as good: (1 + #) / (1 + N).

    # of the N decoys have an anomaly score at most as high. Without decoys every p-value is 1.

    Parameters
    ----------
    scores : array_like, shape (n,)
        Anomaly scores of matches; finite.
    decoy_scores : array_like, shape (N,)
        Anomaly scores of decoys from the same forest; finite.

    Returns
    -------
    ndarray of float64, shape (n,)
        In (0, 1].

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> p_values(np.array([0.2, 0.8]), np.array([0.5, 0.7, 0.9]))
    array([0.25, 0.75])
    """
    own, others = as_vector(scores, "scores"), as_vector(decoy_scores, "decoy_scores")
    return tail_shares(own, np.sort(others))


def tail_shares(scores: Array, ranked: Array) -> Array:
    """Return `p_values` of clean arrays; `ranked` are the decoys' scores in ascending order."""
    as_good = np.searchsorted(ranked, scores, side="right")
    return np.asarray((1.0 + as_good) / (1.0 + len(ranked)), dtype=np.float64)


def empirical_null(p: Array, n_decoys: int, parameters: Parameters) -> float:
    """Return the shift of the distribution of mismatches' p-values: Phi^-1(p) + shift is standard normal.

    It is 0 where mismatches are like decoys. Those of real matchers score a little better, because they join points that look alike
    and lie near each other. Large p-values are theirs alone, so that the distribution can be told from these (Efron, "Large-scale
    simultaneous hypothesis testing: the choice of a null hypothesis", JASA 2004): the shift is fitted to the share of p-values above
    0.05 that are at most 0.5. n matches count as n N / (n + N): the `n_decoys` N that p-values come from are a sample too.
    """
    above, middle, prior = parameters.max_inlier_p, parameters.middle_p, parameters.prior_matches
    n = int(np.count_nonzero(p > above))
    n_middle = np.count_nonzero((p > above) & (p <= middle))
    counted = n_decoys / max(n_decoys + n, 1)
    shifts, expected = _shifted_laws(above, middle)
    share = (counted * n_middle + prior * expected[0]) / (counted * n + prior)
    # Not even by rounding is it less than the decoys' own.
    return float(np.interp(share, expected, shifts)) if share > expected[0] * (1.0 + 1e-9) else 0.0


@cache
def _shifted_laws(inliers: float, middle: float) -> tuple[Array, Array]:
    """Return shifts, and of p-values so shifted the share of those above the first bound that are at most the second."""
    shifts = np.linspace(0.0, 3.0, 301)
    below, up_to = ndtr(ndtri(inliers) + shifts), ndtr(ndtri(middle) + shifts)
    return shifts, (up_to - below) / (1.0 - below)


def adjust(p: Array, shift: float) -> Array:
    """Return p-values under a distribution shifted as by `empirical_null`."""
    return p if shift == 0.0 else np.asarray(ndtr(ndtri(p) + shift))


def better_rejected(scores: Array, rejected: Mask) -> Array:
    """Return, for each match, the share of the rejected ones that score better.

    Mismatches crowd around true positions, because of repeated corners and edges, and decoys do not. Rejected matches are mismatches,
    so a p-value is no smaller than the share of them that scores better.
    """
    ranked: Array = np.sort(scores[rejected])
    better = np.searchsorted(ranked, scores, side="left")
    return np.asarray(better / max(1, len(ranked)), dtype=np.float64)


def mismatch_rate(p: Array, decoy_p: Array, middle: float) -> float:
    """Return the share of mismatches among matches, from how many p-values are larger than `middle`, 0.5.

    Hardly any of these are inliers': their share is the mismatches', times the share of mismatches that lie there (Storey, "A direct
    approach to false discovery rates", JRSS B 2002). That is a half where p-values are uniform; where many mismatches agree with
    nothing and share the largest p-value it is more, as the decoys' own, `decoy_p`, tell.
    """
    if len(p) == 0:
        return 0.0
    share = float(np.mean(decoy_p > middle)) if len(decoy_p) > 0 else 0.0
    return min(1.0, float(np.mean(p > middle)) / max(share, 1.0 - middle))
