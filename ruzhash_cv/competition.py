"""Repeated texture: structures that are interleaved with others and compete with them for keypoints.

A repeated texture yields a second plane interleaved with the true one. Its matches lie among the matches of the surface they are on,
where of two true surfaces the nearer one hides the other. And they compete with them: some lead to keypoints that already have a
partner. A structure that does both is dropped. Parallax, window panes and fences are interleaved as well, but their keypoints are their
own. Overlapping planes that do not compete are decided by their motions, see `estimate`.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.evidence import held_by
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.sampling import decoys_of_unexplained
from ruzhash_cv.scoring import Scores, score

#: A guard on the time: neighbours of which the first that is no duplicate is the nearest.
_MOST_ASKED = 4


def find_repetitions(matches: MatchSet, within: Mask, planes: Mask, parameters: Parameters) -> tuple[Mask, Mask]:
    """Return which structures are interleaved with stronger ones and compete with them for keypoints, and which planes overlap.

    `within` (k, n) says which matches structures hold, strongest first, `planes` (k,) which of these may overlap. Returns which
    structures are repetitions (k,), and which planes overlap (k, k): the smaller of the two is interleaved with the larger.
    """
    data, stronger = matches.coordinates, np.tri(len(planes), k=-1)
    own, sizes, near = _within_bounds(data, within)
    near_others = _are_enough((near * stronger).sum(axis=2), sizes, stronger @ sizes, parameters)
    repeated, held = np.zeros(len(planes), bool), np.zeros(len(data), bool)
    for structure in range(len(planes)) if near_others.any() else ():
        left = within[structure] & ~held
        if near_others[structure] or repeated.any():
            small = bool(left.sum() < parameters.small_share * held.sum())
            repeated[structure] = repeated_beside(matches, left, held, parameters, small=small).any()
        held |= left & ~repeated[structure]
    if repeated.any():
        own, sizes, near = _within_bounds(data, within & ~repeated[:, None])
    enough = _are_enough(near, sizes[:, None], sizes, parameters)
    pairs = enough & (sizes[:, None] <= sizes) & np.outer(planes, planes)
    overlapping = np.zeros_like(pairs)
    for smaller, larger in np.argwhere(pairs & ~np.eye(len(planes), dtype=bool)).tolist():
        overlapping[smaller, larger] = interleaved(data, own[smaller], own[larger], matches.unit, parameters)
    return repeated, np.asarray(overlapping | overlapping.T)


def _within_bounds(data: Array, within: Mask) -> tuple[Mask, Array, Array]:
    """Return matches (k, n) by the first structure that holds each, how many (k,), and how many (2, k, k) are within others' bounds."""
    own = within & (np.cumsum(within, axis=0) == 1)
    places = np.ascontiguousarray(data.T)[:, None]
    low = np.where(own, places, np.inf).min(axis=2, keepdims=True)
    high = np.where(own, places, -np.inf).max(axis=2, keepdims=True)
    inside = ((low <= places) & (places <= high)).reshape(2, 2, *own.shape).all(axis=1)
    return own, own.sum(axis=1), inside @ own.T.astype(np.float64)


def _are_enough(n_near: Array, n_own: Array, n_others: Array, parameters: Parameters) -> Mask:
    """Return whether in an image so many others are within the bounds of several matches that neighbours decide."""
    least = parameters.interleaved_share**2 * n_others / np.maximum(n_own + n_others, 1)
    return np.asarray(((n_own > 1) & (n_near > least * (n_near + n_own))).any(axis=0))


def repeated_beside(matches: MatchSet, own: Mask, others: Mask, parameters: Parameters, *, small: bool = False) -> Mask:
    """Return matches `own` (n,) if they are interleaved with `others` and compete with them, or are `small`; else none."""
    numbered = matches.keypoints
    shared = (np.bincount(numbers[others], minlength=numbers.max() + 1)[numbers[own]].any() for numbers in numbered)
    competes = small or any(shared)
    return own & (competes and interleaved(matches.coordinates, own, others, matches.unit, parameters))


def interleaved(data: Array, own: Mask, others: Mask, unit: float, parameters: Parameters) -> bool:
    """Return whether in one of the images `others` are the nearest neighbours of matches `own` (n,) nearly as often as by chance.

    Points within a `unit` of each other are the same keypoint. With fewer than two matches the answer is no.
    """
    around = own | others
    least = parameters.interleaved_share * others.sum() / max(around.sum(), 1)
    images = (data[:, :2], data[:, 2:]) if own.sum() > 1 else ()
    return any(1.0 - own_share(points, own, around, unit) > least for points in images)


def own_share(points: Array, own: Mask, around: Mask, same: float) -> float:
    """Return the share of a structure's `own` matches among the nearest neighbours of these, of the matches `around`.

    A neighbour no further than `same` is the same keypoint.
    """
    among = np.flatnonzero(around)
    # More neighbours than are needed: some are the same keypoint.
    wanted = min(_MOST_ASKED, len(among))
    apart, which = cKDTree(points[among]).query(points[own], wanted)
    apart, which = (np.asarray(part).reshape(-1, wanted) for part in (apart, which))
    others = apart > same
    others &= np.cumsum(others, axis=1) == 1
    return float(own[among[which[others]]].mean()) if others.any() else 1.0


def drop_repetitions(
    structures: Models,
    scores: Scores,
    matches: MatchSet,
    decoys: Array,
    families: Families,
    parameters: Parameters,
    rng: np.random.Generator,
) -> tuple[Models, Mask, Scores]:
    """Return structures without repeated texture, which of these are overlapping planes (k, k), and scores without either's columns."""
    if len(structures) == 0:
        return structures, np.zeros((0, 0), bool), scores
    within = held_by(structures, matches, families)
    planes = families.is_plane(structures) & ~structures.stationary & (families.motion_id is not None)
    repeated, overlapping = find_repetitions(matches, within, planes, parameters)
    if repeated.any():
        removed = np.asarray(within.any(axis=0))
        structures = structures.take(np.flatnonzero(~repeated))
        scores = scored_without(removed, structures, scores, matches, decoys, families, parameters, rng)
    return structures, overlapping[~repeated][:, ~repeated], scores


def scored_without(
    removed: Mask,
    structures: Models,
    scores: Scores,
    matches: MatchSet,
    decoys: Array,
    families: Families,
    parameters: Parameters,
    rng: np.random.Generator,
) -> Scores:
    """Return scores of `structures`, without the columns that agree with matches `removed` (n,) and not held by these.

    A column agrees with these if the matches near it that are removed weigh more than those that are held.
    """
    held, columns = held_by(structures, matches, families).any(axis=0), scores.columns
    near = families.squared_residuals(columns, matches.data) <= (parameters.refit_radii[1] * matches.unit) ** 2
    fair = near @ (matches.weights * held) >= near @ (matches.weights * (removed & ~held))
    unexplained = np.where(held, 0.0, matches.weights)
    others = decoys_of_unexplained(matches, unexplained, parameters, rng)
    columns = columns.take(np.flatnonzero(fair))
    return score(columns, structures, matches, decoys, others, families, parameters, rng)
