"""Places: what counts as one vote, however often it was matched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import jit

#: Of each image, the number of the keypoint that each correspondence ends at.
KeypointNumbers: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]

#: Two correspondences within this many pixels in both images are one vote.
PLACE_RADIUS = 3.0


def find_places(pairs: NDArray[np.float64], radius: float) -> NDArray[np.int64]:
    """Return the place of each correspondence: those within `radius` of the same leader, in both images, share one.

    Leaders are taken greedily in row order, so each place has one vote whatever the number of repeated keypoints.
    """
    if radius <= 0 or len(pairs) == 0:
        return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    # Candidates are looked up in strips as wide as the radius, sorted along another axis. Not by a fixed number of neighbours:
    # a keypoint may be repeated any number of times.
    across, along = np.argsort(pairs.std(axis=0))[:-3:-1]
    with np.errstate(over="ignore"):  # one strip for all that is too far out to be counted
        strip = np.floor(pairs[:, across] / (radius * (1.0 + 1e-9)))
    order = np.lexsort((pairs[:, along], strip))
    begins = np.ones(len(order), bool)
    np.not_equal(strip[order][1:], strip[order][:-1], out=begins[1:])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.cumsum(begins) - 1
    strips, starts = strip[order][begins], np.append(np.flatnonzero(begins), len(order))
    places: NDArray[np.int64] = _follow_leaders(pairs[order], order, strips, starts, rank, int(along), radius)
    return places


def find_keypoints(pairs: NDArray[np.float64]) -> KeypointNumbers:
    """Return, for each image, the keypoint that each correspondence ends at: those at exactly the same position share one."""
    first, second = (_distinct_points(pairs[:, image], pairs[:, image + 1]) for image in (0, 2))
    return first, second


def _distinct_points(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.lexsort((x, y))
    x, y = x[order], y[order]
    numbers, points = np.zeros(len(order), np.int64), np.empty(len(order), np.int64)
    np.cumsum((x[1:] != x[:-1]) | (y[1:] != y[:-1]), out=numbers[1:])
    points[order] = numbers
    return points


def votes_of(places: NDArray[np.int64], keypoints: Sequence[NDArray[np.int64]] = ()) -> NDArray[np.float64]:
    """Return the votes of correspondences: one for each place, shared by those there.

    Given the `keypoints` of the images, none of them has more than one vote either: a keypoint matched to several places is right
    about one of them at most.
    """
    votes: NDArray[np.float64] = 1.0 / np.bincount(places)[places]
    most = np.ones(len(places))
    for points in keypoints:
        np.maximum(most, np.bincount(points, votes)[points], out=most)
    return votes / most


@jit
def _follow_leaders(
    sorted_pairs: Any, order: Any, strips: Any, starts: Any, rank: Any, along: int, radius: float
) -> Any:
    """Return the place of each correspondence.

    `sorted_pairs` are those of ``strips[k]`` at ``starts[k] : starts[k + 1]``, by the coordinate `along`; `order` tells which they
    are, and `rank` (n,) the strip of each correspondence.
    """
    n = len(order)
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    place = np.full(n, -1, np.int64)
    n_places = 0
    # Wider than the radius by more than rounding.
    reach = radius * (1.0 + 1e-9)
    for row in range(n):
        if place[row] >= 0:
            continue
        # A leader is its own place's first row: joining anything else would chain places together.
        leader = sorted_pairs[position[row]]
        own = rank[row]
        for strip in range(max(own - 1, 0), min(own + 2, len(strips))):
            if abs(strips[strip] - strips[own]) > 1.0:
                continue
            low, high = starts[strip], starts[strip + 1]
            while low < high:
                middle = (low + high) // 2
                if sorted_pairs[middle, along] < leader[along] - reach:
                    low = middle + 1
                else:
                    high = middle
            while low < starts[strip + 1] and sorted_pairs[low, along] <= leader[along] + reach:
                if place[order[low]] < 0:
                    near = True
                    for item in range(4):
                        near = near and abs(sorted_pairs[low, item] - leader[item]) <= radius
                    if near:
                        place[order[low]] = n_places
                low += 1
        place[row] = n_places
        n_places += 1
    return place
