"""The verdict: which matches to keep, and the p-value of each, by comparison with decoys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._validation import as_vector
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.preferences import CUT, WIDEST_SCALE
from ruzhash_cv.sampling import PRIOR_MATCHES
from ruzhash_cv.structures.evidence import DENSITY_RATIO
from ruzhash_cv.structures.search import N_DECOYS

#: Coordinates of a match's second point: a model that tells both spares it none.
EQUATIONS = 2
#: The largest share of decoys that may look as good as a match on a model: this to the number of equations that the match is spared, 0
#: for homographies and 1 for fundamental matrices, whose lines pass near everything.
ON_A_LINE = 0.02
#: What looks better than all decoys but one, and than the same share of the matches further off, is kept up to so many tolerances away.
SURE, REACH = 2.0 / (1.0 + N_DECOYS), 3.0
#: Partners of one keypoint are rivals if no model could have preferences of both: if they are further apart than so many lengths.
RIVALS_APART = CUT * WIDEST_SCALE
#: p-values above the first of these are hardly ever inliers'; how many of them are at most the second tells the mismatches' own law.
INLIERS, MIDDLE = 0.05, 0.5


@dataclass(frozen=True)
class Verdict:
    """Mask, p-values and labels of the distinct correspondences, and what they rest on."""

    keep: Mask
    p: Array
    labels: Rows
    score_threshold: float
    mismatch_rate: float

    def weigh(self, votes: Array) -> Array:
        """Return votes times what speaks for matches: nothing speaks against those kept, p-values against the others."""
        return votes * np.where(self.keep, 1.0, 1.0 - self.p)

    def without(self, rows: NDArray[Any]) -> Verdict:
        """Return the verdict with some matches, by number or mask, no longer kept."""
        keep, labels = self.keep.copy(), self.labels.copy()
        keep[rows], labels[rows] = False, -1
        return replace(self, keep=keep, labels=labels)


def decide(
    residuals: Array,
    null_residuals: Array,
    tolerances: Array,
    codimensions: Rows,
    scores: Array,
    null_scores: Array,
    limits: Array | None = None,
    false_acceptance_rate: float | None = None,
) -> Verdict:
    """Choose the mask.

    A match is kept if decoys seldom look as good, and the further off it is the seldomer:

        share of decoys as good <= 0.02 ** (equations spared)      within the tolerance of a structure
                                <= 0.002                           up to three tolerances away, if denser than further off

    Residuals of matches (n, k) and of decoys (N, k) to the structures are in the unit of the tolerances (k,); scores (n,) and (N,) are
    from one forest. With `limits` (k,) these are the tolerances of the mask, and nothing is kept beyond; with a
    `false_acceptance_rate` the mask is p-value <= rate. All else is as without.
    """
    nearest, distance = nearest_structures(residuals, tolerances, codimensions)
    null_distance = nearest_structures(null_residuals, tolerances, codimensions)[1]
    looks, null_looks = ranked_looks(scores, distance, null_scores, null_distance)
    ranked = np.sort(null_looks)
    chance = tail_shares(looks, ranked)
    law = empirical_null(chance, len(ranked))
    p = adjust(chance, law)
    rate = mismatch_rate(p, adjust(tail_shares(ranked, ranked), law))
    speaks = np.maximum(chance, better_rejected(looks, distance > REACH)) <= SURE
    speaks &= stands_out(nearest, distance, codimensions)[nearest]
    levels = ON_A_LINE ** (EQUATIONS - codimensions)
    keep = np.where(distance <= 1.0, chance <= levels[nearest], speaks & (distance <= REACH))
    p = np.maximum(p, better_rejected(looks, ~keep))
    if limits is not None:
        nearest, distance = nearest_structures(residuals, limits, codimensions)
        keep = (distance <= 1.0) & (chance <= levels[nearest])
    if false_acceptance_rate is not None:
        speaks = p <= false_acceptance_rate
        keep = speaks if limits is None else speaks & (distance <= 1.0)
    labels = np.where(keep & (distance <= REACH), nearest, -1)
    return Verdict(keep, p, labels, float(scores[speaks].max(initial=0.0)), rate)


def ranked_looks(scores: Array, distances: Array, null_scores: Array, null_distances: Array) -> tuple[Array, Array]:
    """Return numbers that rank matches and decoys by score, and equal scores by the distance to the nearest structure.

    Many mismatches agree with nothing, and share the largest score.
    """
    both = np.concatenate([scores, null_scores]), np.concatenate([distances, null_distances])
    order = np.lexsort(both[::-1])
    new = np.ones(len(order), bool)
    new[1:] = (np.diff(both[0][order]) != 0) | (both[1][order][1:] != both[1][order][:-1])
    ranks = np.empty(len(order))
    ranks[order] = np.cumsum(new)
    return ranks[: len(scores)], ranks[len(scores) :]


def nearest_structures(residuals: Array, tolerances: Array, codimensions: Rows) -> tuple[Rows, Array]:
    """Return the structure each match belongs to, or is nearest to, and how many tolerances away it is."""
    with np.errstate(over="ignore", invalid="ignore"):
        distances = residuals / tolerances
    # A line is easily nearer than a point: what lies within a plane belongs to the plane.
    most = np.where(distances <= 1.0, codimensions, 0).max(axis=1, keepdims=True)
    eligible = np.where(codimensions >= most, distances, np.inf)
    # A wide structure holds what narrow ones hold: of those that do the narrowest. Ranks below 0 come before any distance.
    narrowest = np.argsort(np.argsort(tolerances)) - len(tolerances)
    nearest = np.argmin(np.where(eligible <= 1.0, narrowest, eligible), axis=1)
    return nearest, distances[np.arange(len(residuals)), nearest]


def stands_out(nearest: Rows, distance: Array, codimensions: Rows) -> Mask:
    """Tell whose surroundings, from 1 to 3 tolerances away, are denser than as large an area further off, as structures are.

    Mismatches that crowd around a plane look good near it, and are no denser there than further off.
    """
    further = (2.0 * REACH**codimensions - 1.0) ** (1.0 / codimensions)
    near, far = (distance > 1.0) & (distance <= REACH), (distance > REACH) & (distance <= further[nearest])
    n_near, n_far = (np.bincount(nearest[rows], minlength=len(codimensions)) for rows in (near, far))
    return np.asarray(n_near > DENSITY_RATIO * n_far)


def lost_to_rivals(matches: MatchSet, verdict: Verdict, scores: Array, codimensions: Rows) -> Rows:
    """Return those kept whose keypoint has a better match: a point of one image has one partner in the other.

    Partners near each other are one, and so are any within the same plane, which has room for them.
    """
    lost, kept = [np.zeros(0, np.int64)], np.flatnonzero(verdict.keep)
    on_plane = codimensions[verdict.labels] == EQUATIONS
    for numbers, other in zip(matches.keypoints, (matches.data[:, 2:], matches.data[:, :2]), strict=True):
        rows = kept[np.bincount(numbers[kept])[numbers[kept]] > 1]
        if len(rows) == 0:
            continue
        rows = rows[np.lexsort((scores[rows], numbers[rows]))]
        first = np.concatenate([[True], np.diff(numbers[rows]) != 0])
        best = rows[first][np.cumsum(first) - 1]
        far = np.abs(other[rows] - other[best]).max(axis=1) > RIVALS_APART * matches.length
        lost.append(rows[far & ~(on_plane[rows] & (verdict.labels[rows] == verdict.labels[best]))])
    return np.concatenate(lost)


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


def empirical_null(p: Array, n_decoys: int) -> float:
    """Return the shift of the law of mismatches' p-values: Phi^-1(p) + shift is standard normal.

    0 where they are like decoys. Mismatches of real matchers look a little better: they join what looks alike and lies near each
    other. Large p-values are theirs alone, and tell the law by which the small ones follow (Efron, "Large-scale simultaneous
    hypothesis testing: the choice of a null hypothesis", JASA 2004). Fitted to the share of p-values above 0.05 that are at most 0.5.
    n matches speak for n N / (n + N) of them: the `n_decoys` N that p-values come from are a sample too.
    """
    n = int(np.count_nonzero(p > INLIERS))
    n_middle = np.count_nonzero((p > INLIERS) & (p <= MIDDLE))
    speaks = n_decoys / max(n_decoys + n, 1)
    shifts, expected = _shifted_laws(INLIERS, MIDDLE)
    share = (speaks * n_middle + PRIOR_MATCHES * expected[0]) / (speaks * n + PRIOR_MATCHES)
    # Not even by rounding is it less than the decoys' own.
    return float(np.interp(share, expected, shifts)) if share > expected[0] * (1.0 + 1e-9) else 0.0


@cache
def _shifted_laws(inliers: float, middle: float) -> tuple[Array, Array]:
    """Return shifts, and of p-values so shifted the share of those above the first bound that are at most the second."""
    shifts = np.linspace(0.0, 3.0, 301)
    below, up_to = ndtr(ndtri(inliers) + shifts), ndtr(ndtri(middle) + shifts)
    return shifts, (up_to - below) / (1.0 - below)


def adjust(p: Array, shift: float) -> Array:
    """Return p-values under a law from `empirical_null`."""
    return p if shift == 0.0 else np.asarray(ndtr(ndtri(p) + shift))


def better_rejected(scores: Array, rejected: Mask) -> Array:
    """Return, for each match, the share of the rejected ones that look better than it.

    Mismatches crowd around true positions, as repeated corners and edges have them, and decoys do not. What was rejected is known
    to look as it does: a p-value is no smaller than the share of it.
    """
    ranked: Array = np.sort(scores[rejected])
    better = np.searchsorted(ranked, scores, side="left")
    return np.asarray(better / max(1, len(ranked)), dtype=np.float64)


def mismatch_rate(p: Array, decoy_p: Array) -> float:
    """Return the share of mismatches among matches, from how many p-values are larger than 0.5.

    Hardly any of these are inliers': their share is the mismatches', times the share of mismatches that lie there (Storey, "A direct
    approach to false discovery rates", JRSS B 2002). That is a half where p-values are uniform; where many mismatches agree with
    nothing and share the largest p-value it is more, as the decoys' own, `decoy_p`, tell.
    """
    if len(p) == 0:
        return 0.0
    share = float(np.mean(decoy_p > MIDDLE)) if len(decoy_p) > 0 else 0.0
    return min(1.0, float(np.mean(p > MIDDLE)) / max(share, 1.0 - MIDDLE))
