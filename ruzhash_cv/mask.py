"""The mask: which matches to keep, by the structures, by their scores, and by what else their keypoints are matched to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.bank import Found
from ruzhash_cv.calibration import (
    adjust,
    better_rejected,
    empirical_null,
    extend_tail,
    mismatch_rate,
    tail_shares,
)
from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.places import KeypointNumbers

Array = NDArray[np.float64]

#: What looks better than all decoys but one in a thousand belongs to a structure up to so many times its tolerance, ...
SURE_LEVEL, SURE_REACH = 0.002, 3.0
#: ... if it also looks better than what was displaced as far, at this false discovery rate: mismatches may crowd around the truth.
CROWD_RATE = 0.7
#: Noise scales in a tolerance.
SIGMAS_PER_TOLERANCE = 4.0
#: Largest share of decoys that look as good as a match within a fundamental matrix: mismatches may have slid along its lines.
SLIDING_LEVEL = 0.02
#: And where one plane holds so much of the fundamental matrix that few matches tell its epipole.
PLANAR_SHARE, PLANAR_LEVEL = 0.7, 0.005
#: Where less than this share of a plane's matches lie further from it than so many pixels, these are seldom its own: kept is what at
#: most this share of decoys looks as good as.
FAR_SHARE, FAR, FAR_LEVEL = 0.07, 20.0, 0.01


@dataclass(frozen=True)
class Verdict:
    """Scores, p-values and the mask of the distinct correspondences, and their residuals to the structures in pixels."""

    keep: NDArray[np.bool_]
    scores: Array
    p: Array
    labels: NDArray[np.int64]
    residuals: Array
    tolerances: Array
    score_threshold: float
    mismatch_rate: float


def decide(
    residuals: Array,
    unit: float,
    found: Found,
    scores: Array,
    decoy_scores: Array,
    score_displaced: Callable[[], Array],
    threshold: float | None,
    false_acceptance_rate: float | None,
) -> Verdict:
    """Choose the mask; `residuals` (n, k) to the structures are in pixels."""
    ranked = np.sort(decoy_scores)
    chance = tail_shares(scores, ranked)
    null = empirical_null(chance, len(ranked))
    p = adjust(extend_tail(chance, scores, ranked), null)
    rate = mismatch_rate(p, adjust(tail_shares(ranked, ranked), null))
    tolerances = found.tolerances * unit if threshold is None else np.full(len(found.structures), threshold)
    nearest, distance = nearest_structures(residuals, tolerances, found.structures.kinds)
    within = distance <= 1.0
    levels = levels_within(nearest, distance, tolerances, unit, found.structures.kinds, found.planar_shares)
    keep, speaks = within & (chance <= levels), chance <= SURE_LEVEL
    if threshold is None:
        shell = ~within & (distance <= SURE_REACH)
        if (speaks & shell).any():
            keep |= speaks & beyond_a_crowd(scores, shell, score_displaced())
        p = np.maximum(p, better_rejected(scores, ~keep))
    if false_acceptance_rate is not None:
        speaks = p <= false_acceptance_rate
        keep = speaks if threshold is None else speaks & within
    labels = np.where(keep & (distance <= SURE_REACH), nearest, -1)
    return Verdict(keep, scores, p, labels, residuals, tolerances, float(scores[speaks].max(initial=0.0)), rate)


def nearest_structures(
    residuals: Array, tolerances: Array, kinds: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the structure each match belongs to, or is nearest to, and how many tolerances away it is."""
    with np.errstate(over="ignore"):
        distances = residuals / tolerances
    # A line is easily nearer than a point: what lies within a plane belongs to the plane.
    to_planes = np.where(kinds == HOMOGRAPHY, distances, np.inf)
    eligible = np.where((to_planes <= 1.0).any(axis=1, keepdims=True), to_planes, distances)
    # A wide structure holds what narrow ones hold: of those that do the likeliest, by normal densities of a point and of a line.
    within, free = eligible <= 1.0, np.where(kinds == HOMOGRAPHY, 2.0, 1.0)
    costs = 0.5 * (SIGMAS_PER_TOLERANCE * np.minimum(eligible, 1.0)) ** 2 + free * np.log(tolerances)
    order = np.where(within.any(axis=1, keepdims=True), np.where(within, costs, np.inf), eligible)
    nearest = np.argmin(order, axis=1)
    return nearest, distances[np.arange(len(residuals)), nearest]


def levels_within(
    nearest: NDArray[np.int64],
    distance: Array,
    tolerances: Array,
    unit: float,
    kinds: NDArray[np.uint8],
    planar_shares: Array,
) -> Array:
    """Return the largest share of decoys that may look as good as a match (n,): 1 for those of planes, but for few far off.

    `distance` (n,) to the `nearest` structure is in its tolerances, these (k,) are in pixels, of which `unit` make one of `FAR`.
    """
    levels = np.where(planar_shares >= PLANAR_SHARE, PLANAR_LEVEL, SLIDING_LEVEL)
    levels[kinds == HOMOGRAPHY] = 1.0
    levels, within = levels[nearest], distance <= 1.0
    far = within & (kinds[nearest] == HOMOGRAPHY) & (distance * tolerances[nearest] > FAR * unit)
    n_far, n_within = (np.bincount(nearest[rows], minlength=len(tolerances)) for rows in (far, within))
    levels[far & (n_far < FAR_SHARE * n_within)[nearest]] = FAR_LEVEL
    return levels


def beyond_a_crowd(scores: Array, shell: NDArray[np.bool_], displaced_scores: Array) -> NDArray[np.bool_]:
    """Tell which of the matches in a shell around the structures look better than what was displaced into it."""
    p = tail_shares(scores, np.sort(displaced_scores))
    # Benjamini and Hochberg, "Controlling the false discovery rate", JRSS B 1995; scipy's needs scipy.stats, slow to import.
    ranked = np.sort(p[shell])
    discovered = ranked[ranked <= CROWD_RATE * np.arange(1, len(ranked) + 1) / max(len(ranked), 1)]
    better: NDArray[np.bool_] = shell & (p <= discovered.max(initial=0.0))
    return better


def lost_to_rivals(
    pairs: Array,
    keypoints: KeypointNumbers,
    reach: float,
    keep: NDArray[np.bool_],
    scores: Array,
    labels: NDArray[np.int64],
    on_plane: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Return those kept whose keypoint has a better match: a point of one image has one partner in the other.

    Partners within `reach` of each other are one, and so are any within the same plane, which has room for them.
    """
    lost, kept = [np.zeros(0, np.int64)], np.flatnonzero(keep)
    for points, other in zip(keypoints, (pairs[:, 2:], pairs[:, :2]), strict=True):
        rows = kept[np.bincount(points[kept])[points[kept]] > 1]
        if len(rows) == 0:
            continue
        rows = rows[np.lexsort((scores[rows], points[rows]))]
        first = np.concatenate([[True], np.diff(points[rows]) != 0])
        best = rows[first][np.cumsum(first) - 1]
        far = np.abs(other[rows] - other[best]).max(axis=1) > reach
        lost.append(rows[far & ~(on_plane[rows] & (labels[rows] == labels[best]))])
    return np.concatenate(lost)
