"""Minimal sample sets from neighbourhoods, and decoys: correspondences known to be mismatches, made of points of different matches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv._arrays import COORDINATES, POINT2, RAYS2, Array, Rows
from ruzhash_cv._kernels import ZERO, draw_key, jit, mix, uniform
from ruzhash_cv.method.matches import MatchSet
from ruzhash_cv.method.parameters import Parameters
from ruzhash_cv.models.base import Families, TwoViewFamily

#: A guard on the time: degenerate draws after which a sample is given up.
_MOST_DEGENERATE = 20
#: So many rows are enough to fit a structure and estimate its noise.
_FEW_ROWS = 256
#: Why a sample makes no model: two of its points are too close together in an image (or fewer matches nearby have weight than a sample
#: needs), three are on a line, their orientation differs between the images, or the solver finds no model.
REJECTIONS = ("repeated", "collinear", "flipped", "unsolved")
_REPEATED, _COLLINEAR, _FLIPPED, _GOOD = 0, 1, 2, 3
_ONE, _TWO = np.uint64(1), np.uint64(2)


class Problem(NamedTuple):
    """What a search is given: the matches searched, decoys (N, 4) that models are weighed against, the families and the numbers."""

    matches: MatchSet
    decoys: Array
    families: Families
    parameters: Parameters


def draw_samples(
    data: Array,
    weights: Array,
    n_samples: int,
    family: TwoViewFamily,
    min_spread: float,
    parameters: Parameters,
    rng: np.random.Generator,
    neighbourhoods: tuple[int, ...] | None = None,
) -> tuple[Rows, Rows]:
    """Draw samples of correspondences in proportion to `weights` (n,), from neighbourhoods of several sizes in turn.

    A sample is a first match and others among its nearest in (x1, y1, x2, y2), because a true match has true neighbours more often
    than a mismatch has. Points of a sample are at least `min_spread` apart in both images. Of a plane, the sample is the most nearly
    affine of several: the one whose triangles have the most equal ratios of areas between the images. These ratios are nearly equal on
    a plane, and differ among mismatches. Only rows that have weight are drawn, and only these count as neighbours.

    Returns the samples (m, sample_size), fewer where draws are degenerate too often, and how many draws (3,) were degenerate, for each
    of `REJECTIONS` but the last.
    """
    sizes_wanted = parameters.neighbourhoods if neighbourhoods is None else neighbourhoods
    rows, size, verdicts = np.flatnonzero(weights > 0.0), family.sample_size, np.zeros(4, np.int64)
    if len(rows) < size or n_samples == 0:
        return np.zeros((0, size), np.int64), verdicts[:3]
    coordinates, shares = np.ascontiguousarray(data[rows, COORDINATES]), weights[rows]
    cumulative, nearest = np.cumsum(shares), np.zeros((1, 1), np.int64)
    if max(sizes_wanted) > 0:
        n_seeds = -(-n_samples // len(sizes_wanted))
        # Stratified: as many seeds from each part of the matches as its weight asks for.
        at = (np.arange(n_seeds) + rng.random(n_seeds)) / n_seeds
        seeds = np.minimum(np.searchsorted(cumulative, at * cumulative[-1], side="right"), len(rows) - 1)
        nearest = nearest_rows(coordinates, seeds, max(sizes_wanted) + 1)
    sizes = np.array([min(wanted, nearest.shape[1] - 1) for wanted in sizes_wanted], np.int64)
    starts = np.searchsorted(cumulative, np.arange(len(rows)) * (cumulative[-1] / len(rows)), side="right")
    starts, key = np.minimum(starts, len(rows) - 1), draw_key(rng)
    n_candidates = parameters.n_candidates if family.is_plane else 1
    samples, given = np.empty((n_samples, size), np.int64), (coordinates, shares, cumulative, starts, nearest, sizes)
    rules = float(min_spread), parameters.min_height * min_spread, n_candidates, family.is_plane
    n_drawn = _draw_kernel(*given, *rules, key, np.empty(size, np.int64), np.empty((size, 4)), samples, verdicts)
    return rows[samples[:n_drawn]], verdicts[:3]


def draw_decoys(data: Array, n_decoys: int, distance: float, rng: np.random.Generator) -> Array:
    """Pair the first point of one correspondence with the second point of another, `n_decoys` times.

    A pairing is refused if its two points' partners are within `distance` of where it would put them: it could be true. Fewer
    come back if most are.
    """
    if len(data) == 0:
        return np.zeros((0, data.shape[1]))
    i, j = rng.integers(len(data), size=(2, 2 * n_decoys))
    x1, y1, x2, y2 = (np.abs(data.take(i, axis=0) - data.take(j, axis=0)) >= distance).T[COORDINATES]
    far = np.flatnonzero((x1 | y1) & (x2 | y2))[:n_decoys]
    decoys: Array = data.take(i[far], axis=0)
    others = data.take(j[far], axis=0)
    for second in (POINT2, RAYS2):
        decoys[:, second] = others[:, second]
    return decoys


def decoys_of_matches(matches: MatchSet, parameters: Parameters, rng: np.random.Generator) -> Array:
    """Return decoys (N, 4) made of all matches: models are weighed against these."""
    return draw_decoys(matches.data, parameters.n_decoys, parameters.widest_scale * matches.unit, rng)


def decoys_of_unexplained(
    matches: MatchSet, unexplained: Array, parameters: Parameters, rng: np.random.Generator
) -> Array:
    """Return decoys (N, 4) made of matches that no structure explains, so that their points are distributed as mismatches.

    Few such matches may be true ones that were missed. So the fewer they are, the more decoys are made of all matches.
    """
    n_decoys, distance = parameters.n_decoys, parameters.widest_scale * matches.unit
    beyond = matches.data[unexplained > 0.0]
    n_beyond = round(n_decoys * len(beyond) / (len(beyond) + parameters.prior_matches))
    first = draw_decoys(beyond, n_beyond, distance, rng)
    return np.vstack([first, draw_decoys(matches.data, n_decoys - len(first), distance, rng)])


def drawn_alike(labels: Rows, most: int, rng: np.random.Generator) -> Rows:
    """Return at most about `most` rows drawn at random: the same share of each label (n,), from -1 on, but of none fewer than a few.

    All rows are returned where they are no more.
    """
    if len(labels) <= most:
        return np.arange(len(labels))
    counts = np.bincount(labels + 1)
    wanted = np.maximum(counts * most // len(labels), _FEW_ROWS)
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    places = np.arange(len(labels)) - (np.cumsum(counts) - counts)[labels[order] + 1]
    return np.sort(order[places < wanted[labels[order] + 1]])


def nearest_rows(data: Array, rows: Rows, k: int) -> Rows:
    """Return the k nearest of some rows, shape (len(rows), k), nearest first: first itself, or one equal to it."""
    k = min(k, len(data))
    from scipy.spatial import cKDTree  # an import of .2 s

    # Medians of a few thousand points take longer than the search saves.
    tree = cKDTree(data, balanced_tree=False, compact_nodes=False)
    neighbours = np.asarray(tree.query(data[rows], k)[1], np.int64).reshape(len(rows), k)
    # Itself stands for a neighbour whose squared distance overflows.
    return np.where(neighbours < len(data), neighbours, rows[:, None])


@jit
def _draw_kernel(
    data: Any,
    weights: Any,
    cumulative: Any,
    starts: Any,
    nearest: Any,
    sizes: Any,
    min_spread: float,
    height: float,
    n_candidates: int,
    affine: bool,
    key: Any,
    taken: Any,
    points: Any,
    samples: Any,
    verdicts: Any,
) -> Any:
    """Write samples, as many from each size of neighbourhood, count verdicts, and return how many samples there are.

    Each seed is used with all sizes, and the next one where a draw fails. `starts` say where to look for a share of the cumulative
    weight, `nearest` (n_seeds, k + 1) are the nearest rows of seeds, each beginning with itself, `sizes` alternate.
    """
    size, n_drawn = samples.shape[1], ZERO
    for slot in range(len(samples)):
        stream = mix(key, np.uint64(slot))
        counter = np.uint64(0)
        k = sizes[slot % len(sizes)]
        n_good, n_failed, least = ZERO, ZERO, np.inf
        while n_good < n_candidates and n_failed < _MOST_DEGENERATE:
            near = nearest[(slot // len(sizes) + n_failed) % len(nearest)]
            filled, largest = ZERO, 0.0
            if k > 0:
                taken[0], filled = near[0], 1
                for item in range(1, k + 1):
                    if weights[near[item]] > largest:
                        largest = weights[near[item]]
            for _ in range(8 * size):
                if filled == size:
                    break
                accept = True
                if k > 0:
                    row = near[1 + np.int64(uniform(stream, counter) * k)]
                    # Of the largest weight any is accepted, whatever is drawn.
                    accept = weights[row] == largest or uniform(stream, counter + _ONE) * largest < weights[row]
                else:
                    drawn = uniform(stream, counter)
                    wanted, row = drawn * cumulative[-1], starts[np.int64(drawn * len(starts))]
                    while row > 0 and cumulative[row - 1] > wanted:
                        row -= 1
                    while row < len(cumulative) - 1 and cumulative[row] <= wanted:
                        row += 1
                counter += _TWO
                for earlier in range(filled):
                    accept = accept and taken[earlier] != row
                if accept:
                    taken[filled] = row
                    filled += 1
            deviation = -1.0 - _REPEATED
            if filled == size:
                for item in range(size):
                    for part in range(4):  # row by row would take twice as long
                        points[item, part] = data[taken[item], part]
                deviation = _deviation_of(points, affine, min_spread, height)
            if deviation < 0.0:
                verdicts[np.int64(-1.0 - deviation)] += 1
                n_failed += 1
                continue
            verdicts[_GOOD] += 1
            n_good += 1
            if n_good == 1 or deviation < least:
                least = deviation
                for item in range(size):
                    samples[n_drawn, item] = taken[item]
        if n_good > 0:
            n_drawn += 1
    return n_drawn


@jit
def _deviation_of(points: Any, affine: bool, min_spread: float, height: float) -> float:
    """Return how far a sample is from affine, 1 if it need not be, or a verdict v as -1 - v.

    It is the largest ratio of a triangle's areas in both images over the smallest. Then no triangle may be lower than `height`, and
    every one turns the same way in both images, or every one the other way. Two points may not be too close in an image, nor all of
    more than four too close to a line.
    """
    size = len(points)
    for i in range(size):
        for j in range(i):
            for x in range(0, 4, 2):
                dx, dy = points[i, x] - points[j, x], points[i, x + 1] - points[j, x + 1]
                if abs(dx) < min_spread and abs(dy) < min_spread:
                    return -1.0 - _REPEATED
    if size > 4:
        for image in range(0, 4, 2):
            mx = my = xx = xy = yy = 0.0
            for i in range(size):
                mx += points[i, image] / size
                my += points[i, image + 1] / size
            for i in range(size):
                dx, dy = points[i, image] - mx, points[i, image + 1] - my
                xx += dx * dx / size
                xy += dx * dy / size
                yy += dy * dy / size
            if 0.5 * (xx + yy) - np.sqrt(0.25 * (xx - yy) * (xx - yy) + xy * xy) < height * height:
                return -1.0 - _COLLINEAR
    if not affine:
        return 1.0
    n, n_turned, smallest, largest = ZERO, ZERO, np.inf, 0.0
    for a in range(size):
        for b in range(a):
            for c in range(b):
                ratio = 1.0
                for x in range(0, 4, 2):
                    ux, uy = points[b, x] - points[a, x], points[b, x + 1] - points[a, x + 1]
                    vx, vy = points[c, x] - points[a, x], points[c, x + 1] - points[a, x + 1]
                    cross, longest, other = ux * vy - uy * vx, ux * ux + uy * uy, vx * vx + vy * vy
                    longest = longest if longest > other else other
                    other = (ux - vx) * (ux - vx) + (uy - vy) * (uy - vy)
                    longest = longest if longest > other else other
                    if cross * cross < height * height * longest or cross == 0.0:
                        return -1.0 - _COLLINEAR
                    ratio = cross if x == 0 else ratio / cross
                n += 1
                n_turned += 1 if ratio < 0.0 else 0
                if 0 < n_turned < n:
                    return -1.0 - _FLIPPED
                ratio = abs(ratio)
                smallest = ratio if ratio < smallest else smallest
                largest = ratio if ratio > largest else largest
    return largest / smallest
