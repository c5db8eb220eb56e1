"""Repeated texture: structures that are interleaved with others and compete with them for keypoints.

A repeated texture yields a second plane interleaved with the true one. Its matches lie among the matches of the surface they are on,
where of two true surfaces the nearer one hides the other. And they compete with them: some lead to keypoints that already have a
partner. A structure that does both is dropped. Parallax, window panes and fences are interleaved as well, but their keypoints are their
own. Overlapping planes that do not compete are decided by their motions, see `estimate`.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.families.epipolar import PARALLAX_SIZE
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.opacity import interleaved
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import Problem, decoys_of_unexplained
from ruzhash_cv.core.method.scene import Structures, held_by
from ruzhash_cv.core.method.scores import Scores, score
from ruzhash_cv.foundation.arrays import Array, Mask


def find_repetitions(matches: MatchSet, within: Mask, planes: Mask, parameters: Parameters) -> tuple[Mask, Mask]:
    """Return which structures are interleaved with stronger ones and compete with them for keypoints, and which planes overlap.

    `within` (k, n) says which matches structures hold, strongest first, `planes` (k,) which of these may overlap. Returns which
    structures are repetitions (k,), and which planes overlap (k, k): the smaller of the two is interleaved with the larger.
    """
    data, stronger = matches.coordinates, np.tri(len(planes), k=-1)
    members, sizes, near = _within_bounds(data, within)
    near_others = _are_enough((near * stronger).sum(axis=2), sizes, stronger @ sizes, parameters)
    repeated, held = np.zeros(len(planes), bool), np.zeros(len(data), bool)
    for structure in range(len(planes)) if near_others.any() else ():
        left = within[structure] & ~held
        if near_others[structure] or repeated.any():
            repeated[structure] = are_repeated(matches, left, held, parameters)
        held |= left & ~repeated[structure]
    if repeated.any():
        members, sizes, near = _within_bounds(data, within & ~repeated[:, None])
    enough = _are_enough(near, sizes[:, None], sizes, parameters)
    pairs = enough & (sizes[:, None] <= sizes) & np.outer(planes, planes)
    overlapping = np.zeros_like(pairs)
    for smaller, larger in np.argwhere(pairs & ~np.eye(len(planes), dtype=bool)).tolist():
        overlapping[smaller, larger] = interleaved(data, members[smaller], members[larger], matches.unit, parameters)
    return repeated, np.asarray(overlapping | overlapping.T)


def competing(members: Mask, matches: MatchSet, parameters: Parameters) -> Mask:
    """Return which structures (k, k) with matches `members` (k, n) compete.

    Many matches of the smaller end at keypoints of the larger. They are copies of one object, or the smaller repeats a texture.
    """
    k, counts = len(members), members.sum(axis=1)
    shared, sizes = np.zeros((k, k)), np.minimum(counts, counts[:, None])
    for numbers in matches.keypoints:
        ends = np.zeros((k, numbers.max(initial=0) + 1))
        rows, columns = np.nonzero(members)
        ends[rows, numbers[columns]] = 1.0
        shared = np.maximum(shared, ends[:, numbers] @ members.T)
    many = (shared > PARALLAX_SIZE) & (shared >= parameters.taken_share * sizes)
    return np.asarray((many | many.T) & ~np.eye(k, dtype=bool))


def _within_bounds(data: Array, within: Mask) -> tuple[Mask, Array, Array]:
    """Return matches (k, n) by the first structure that holds each, how many (k,), and how many (2, k, k) are within others' bounds."""
    members = within & (np.cumsum(within, axis=0) == 1)
    places = np.ascontiguousarray(data.T)[:, None]
    low = np.where(members, places, np.inf).min(axis=2, keepdims=True)
    high = np.where(members, places, -np.inf).max(axis=2, keepdims=True)
    inside = ((low <= places) & (places <= high)).reshape(2, 2, *members.shape).all(axis=1)
    return members, members.sum(axis=1), inside @ members.T.astype(np.float64)


def _are_enough(n_near: Array, n_own: Array, n_others: Array, parameters: Parameters) -> Mask:
    """Return whether in an image so many others are within the bounds of several matches that neighbours decide."""
    least = parameters.interleaved_share**2 * n_others / np.maximum(n_own + n_others, 1)
    return np.asarray(((n_own > 1) & (n_near > least * (n_near + n_own))).any(axis=0))


def are_repeated(matches: MatchSet, members: Mask, others: Mask, parameters: Parameters) -> bool:
    """Return whether matches `members` (n,) are interleaved with `others` and share keypoints with them."""
    numbered = matches.keypoints
    shared = (np.bincount(numbers[others], minlength=numbers.max() + 1)[numbers[members]].any() for numbers in numbered)
    return any(shared) and interleaved(matches.coordinates, members, others, matches.unit, parameters)


def drop_repetitions(
    structures: Structures, scores: Scores, problem: Problem, rng: np.random.Generator
) -> tuple[Structures, Mask, Scores]:
    """Return structures without repeated texture, which of these are overlapping planes (k, k), and scores without either's columns."""
    matches, _, families, parameters = problem
    if len(structures) < 2:
        return structures, np.zeros((len(structures), len(structures)), bool), scores
    within = held_by(structures, matches, families)
    planes = families.is_plane(structures) & ~structures.stationary & (families.motion_id is not None)
    repeated, overlapping = find_repetitions(matches, within, planes, parameters)
    if repeated.any():
        structures = structures.take(np.flatnonzero(~repeated))
        scores = scored_without(np.asarray(within.any(axis=0)), structures, scores, problem, rng)
    return structures, overlapping[~repeated][:, ~repeated], scores


def scored_without(
    removed: Mask, structures: Structures, scores: Scores, problem: Problem, rng: np.random.Generator
) -> Scores:
    """Return scores of `structures`, without the columns that agree with matches `removed` (n,) and not held by these.

    A column agrees with these if the matches near it that are removed weigh more than those that are held.
    """
    matches, _, families, parameters = problem
    held, columns = held_by(structures, matches, families).any(axis=0), scores.columns
    near = families.squared_residuals(columns, matches.data) <= (parameters.refit_radii[1] * matches.unit) ** 2
    fair = near @ (matches.weights * held) >= near @ (matches.weights * (removed & ~held))
    columns = columns.take(np.flatnonzero(fair))
    decoys = decoys_of_unexplained(matches, np.where(held, 0.0, matches.weights), parameters, rng)
    return score(columns, structures, decoys, problem, rng)
