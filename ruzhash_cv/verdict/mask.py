"""The mask: which matches to keep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.verdict.calibration import adjust, better_rejected, empirical_null, mismatch_rate, tail_shares

Array = NDArray[np.float64]

#: Coordinates of a match's second point: a model that tells both spares it none.
EQUATIONS = 2
#: The largest share of decoys that may look as good as a match on a model: this to the number of equations that the match is spared, 0
#: for homographies and 1 for fundamental matrices, whose lines pass near everything.
ON_A_LINE = 0.02
#: What looks better than all but this share of decoys, and of the matches further off, is kept up to so many tolerances away.
SURE, REACH = 0.002, 3.0
#: Partners of one keypoint that are further apart than so many lengths are rivals.
RIVALS_APART = 9.0
#: Noise scales in a tolerance.
SIGMAS_PER_TOLERANCE = 4.0


@dataclass(frozen=True)
class Verdict:
    """Mask, p-values and labels of the distinct correspondences, and what they rest on."""

    keep: NDArray[np.bool_]
    p: Array
    labels: NDArray[np.int64]
    score_threshold: float
    mismatch_rate: float


def decide(
    residuals: Array,
    null_residuals: Array,
    tolerances: Array,
    codimensions: NDArray[np.int64],
    scores: Array,
    null_scores: Array,
    threshold: float | None,
    false_acceptance_rate: float | None,
) -> Verdict:
    """Choose the mask.

    A match is kept if decoys seldom look as good, and the further off it is the seldomer:

        share of decoys as good <= 0.02 ** (equations spared)      within the tolerance of a structure
                                <= 0.002                           up to three tolerances away

    Parameters
    ----------
    residuals, null_residuals : ndarrays, shapes (n, k) and (N, k)
        Of matches and of decoys to the structures, in the unit of the tolerances.
    tolerances, codimensions : ndarrays, shape (k,)
    scores, null_scores : ndarrays, shapes (n,) and (N,)
        Anomaly scores of matches and of decoys.
    threshold : float or None
        Where given, it is every structure's tolerance, and nothing is kept beyond.
    false_acceptance_rate : float or None
        Where given, the mask is p-value <= rate.
    """
    nearest, distance = nearest_structures(residuals, tolerances, codimensions)
    null_distance = nearest_structures(null_residuals, tolerances, codimensions)[1]
    looks, null_looks = ranked_looks(scores, distance, null_scores, null_distance)
    ranked = np.sort(null_looks)
    chance = tail_shares(looks, ranked)
    law = empirical_null(chance, len(ranked))
    p = adjust(chance, law)
    rate = mismatch_rate(p, adjust(tail_shares(ranked, ranked), law))
    within, reach = distance <= 1.0, REACH if threshold is None else 1.0
    speaks = np.maximum(chance, better_rejected(looks, distance > REACH)) <= SURE
    level = ON_A_LINE ** (EQUATIONS - codimensions)[nearest]
    keep = np.where(within, chance <= level, speaks & (distance <= reach))
    if threshold is None:
        p = np.maximum(p, better_rejected(looks, ~keep))
    if false_acceptance_rate is not None:
        speaks = p <= false_acceptance_rate
        keep = speaks if threshold is None else speaks & within
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


def nearest_structures(
    residuals: Array, tolerances: Array, codimensions: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Array]:
    """Return the structure each match belongs to, or is nearest to, and how many tolerances away it is."""
    with np.errstate(over="ignore", invalid="ignore"):
        distances = residuals / tolerances
    # A line is easily nearer than a point: what lies within a plane belongs to the plane.
    most = np.where(distances <= 1.0, codimensions, 0).max(axis=1, keepdims=True)
    eligible = np.where(codimensions >= most, distances, np.inf)
    # A wide structure holds what narrow ones hold: of those that do the likeliest, by normal densities of a point and of a line.
    within = eligible <= 1.0
    costs = 0.5 * (SIGMAS_PER_TOLERANCE * np.minimum(eligible, 1.0)) ** 2 + codimensions * np.log(tolerances)
    order = np.where(within.any(axis=1, keepdims=True), np.where(within, costs, np.inf), eligible)
    nearest = np.argmin(order, axis=1)
    return nearest, distances[np.arange(len(residuals)), nearest]


def lost_to_rivals(
    matches: MatchSet, verdict: Verdict, scores: Array, codimensions: NDArray[np.int64]
) -> NDArray[np.int64]:
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
