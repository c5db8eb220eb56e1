"""Minimal sample sets from neighbourhoods, degenerate ones rejected and counted; and decoys, known mismatches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ruzhash_cv._arrays import Array, Record, Rows
from ruzhash_cv._kernels import below, draw_key, jit, mix, uniform, uninterrupted
from ruzhash_cv._validation import RNG, as_generator, as_pairs, as_vector, check_int, check_real, check_same_length
from ruzhash_cv.matchset import LENGTH

#: A sample that should be nearly affine is the most nearly affine one of so many draws.
N_DRAWS = 4
#: A sample is given up after so many degenerate draws, each around another seed.
MOST_DEGENERATE = 20
#: Points of a sample that lie so near to a line, in least distances of two of them, are collinear.
FLATTEST = 0.5
#: What few mismatches tell of all of them counts against what so many decoys, or matches of any kind, would.
PRIOR_MATCHES = 40
#: Up to so many distances are all looked at, which takes less time than a tree does; the result is the same.
_FEW_DISTANCES = 1_500_000
#: Why a sample makes no model; the last is the solver's verdict.
REJECTIONS = ("repeated", "collinear", "flipped", "unsolved")
_REPEATED, _COLLINEAR, _FLIPPED, _GOOD = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class MinimalSamples(Record):
    """Minimal sample sets and what was rejected on the way.

    Attributes
    ----------
    indices : ndarray of int64, shape (m, sample_size)
        Row numbers of the correspondences of each sample.
    rejected : dict of str to int
        How many draws were degenerate: ``"repeated"`` (two points too close together in an image, or fewer nearby that have weight
        than a sample needs), ``"collinear"``, ``"flipped"`` (the orientation of the points is not the same in both images).
    """

    indices: Rows
    rejected: dict[str, int]

    def __len__(self) -> int:
        return len(self.indices)


@uninterrupted
def draw_samples(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    sample_size: int,
    n_samples: int,
    neighbourhoods: Sequence[int] | None = (10, 30, 0),
    weights: ArrayLike | None = None,
    min_spread: float = LENGTH,
    n_candidates: int = 1,
    rng: RNG = 0,
) -> MinimalSamples:
    """Draw minimal sample sets.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels; finite.
    sample_size : int
        4 for homographies, 7 for fundamental matrices.
    n_samples : int
        Samples wanted; fewer come back where the draws are too often degenerate.
    neighbourhoods : sequence of int, or None
        Sizes of the neighbourhoods to draw from, in turn: a seed, and the rest among its nearest correspondences in
        (x1, y1, x2, y2), where a true match has true neighbours more often than a mismatch has. 0 is the whole set.
        None is (0,): uniform samples, as RANSAC draws them.
    weights : array_like, shape (n,), optional
        How often each correspondence is drawn, relative to the others. Default: equally often.
    min_spread : float
        Points of a sample are at least this many pixels apart in both images.
    n_candidates : int
        Each sample of 4 is the most nearly affine one of so many draws from the same neighbourhood: the one whose four triangles
        have the most equal ratios of areas between the images. Of a plane these ratios are alike, of mismatches they are not.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    MinimalSamples

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(0, 100, (50, 2))
    >>> draw_samples(points, points + 5, sample_size=4, n_samples=100).indices.shape
    (100, 4)
    """
    pairs = np.hstack(as_pairs(points1, points2, finite=True))
    check_int(sample_size, "sample_size", at_least=2)
    check_int(n_samples, "n_samples", at_least=0)
    if neighbourhoods is not None and not hasattr(neighbourhoods, "__len__"):
        raise TypeError(f"`neighbourhoods` must be a sequence of int or None, got {neighbourhoods!r}")
    asked = () if neighbourhoods is None else neighbourhoods
    sizes = [check_int(size, "neighbourhoods", at_least=0) for size in asked] or [0]
    generator = as_generator(rng)
    shares = np.ones(len(pairs)) if weights is None else as_vector(weights, "weights", least=0.0)
    check_same_length(pairs, shares, "`points1` and `weights`")
    if len(shares) and (largest := shares.max()) > 0:
        shares = shares / largest  # only their ratios count, and their sum must be finite
    min_spread = check_real(min_spread, "min_spread", inclusive=True)
    check_int(n_candidates, "n_candidates")
    affine = sample_size == 4
    return draw_from(pairs, sample_size, n_samples, sizes, shares, min_spread, n_candidates, affine, generator)


def draw_from(
    data: Array,
    sample_size: int,
    n_samples: int,
    sizes: Sequence[int],
    weights: Array,
    min_spread: float,
    n_draws: int,
    affine: bool,
    rng: np.random.Generator,
) -> MinimalSamples:
    """Draw samples from clean arrays; `draw_samples` explains the arguments.

    Only rows that have weight are drawn, and are neighbours: what is weighed out makes room. Each sample is the best of `n_draws`
    that are not degenerate, where samples should be nearly `affine`.
    """
    rows, counts = np.flatnonzero(weights > 0.0), np.zeros(4, np.int64)
    if len(rows) < sample_size or n_samples == 0:
        return MinimalSamples(np.zeros((0, sample_size), np.int64), dict.fromkeys(REJECTIONS[:3], 0))
    own, shares = np.ascontiguousarray(data[rows]), weights[rows]
    cumulative, nearest = np.cumsum(shares), np.zeros((1, 1), np.int64)
    if max(sizes) > 0:
        n_seeds = -(-n_samples // len(sizes))
        # Stratified: as many seeds from each part of the matches as its weight asks for.
        at = (np.arange(n_seeds) + rng.random(n_seeds)) / n_seeds
        seeds = np.minimum(np.searchsorted(cumulative, at * cumulative[-1], side="right"), len(rows) - 1)
        nearest = nearest_rows(own, seeds, max(sizes) + 1)
    limits = np.array([min(size, nearest.shape[1] - 1) for size in sizes], np.int64)
    samples, n_draws = np.empty((n_samples, sample_size), np.int64), n_draws if affine else 1
    # Where to look for a share of the weight.
    guide = np.searchsorted(cumulative, np.arange(len(rows)) * (cumulative[-1] / len(rows)), side="right")
    guide, key = np.minimum(guide, len(rows) - 1), draw_key(rng)
    n_drawn = _draw_kernel(
        own, cumulative, guide, shares, nearest, limits, affine, n_draws, min_spread, key, counts, samples
    )
    rejected = dict(zip(REJECTIONS[:3], counts[:3].tolist(), strict=True))
    return MinimalSamples(rows[samples[:n_drawn]], rejected)


def nearest_rows(data: Array, rows: Rows, k: int) -> Rows:
    """Return the k nearest of some rows, shape (len(rows), k), nearest first: first itself, or one equal to it."""
    k = min(k, len(data))
    if len(rows) * len(data) > _FEW_DISTANCES:
        found = np.asarray(cKDTree(data).query(data[rows], k)[1], np.int64).reshape(len(rows), k)
        # Itself stands for a neighbour whose squared distance overflows.
        return np.where(found < len(data), found, rows[:, None])
    squares = cdist(data[rows], data, "sqeuclidean")
    nearest: Rows = np.argpartition(squares, k - 1, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(squares, nearest, axis=1), axis=1, kind="stable")
    return np.ascontiguousarray(np.take_along_axis(nearest, order, axis=1))


def draw_decoys(data: Array, n_decoys: int, distance: float, rng: np.random.Generator) -> Array:
    """Pair the first point of one correspondence with the second point of another, `n_decoys` times.

    A pairing is refused when its two points' own partners are within `distance` of where it would put them: it could be true. Fewer
    come back where most are.
    """
    if len(data) == 0:
        return np.zeros((0, 4))
    i, j = rng.integers(len(data), size=(2, 2 * n_decoys))
    x1, y1, x2, y2 = (np.abs(data.take(i, axis=0) - data.take(j, axis=0)) >= distance).T
    far = np.flatnonzero((x1 | y1) & (x2 | y2))[:n_decoys]
    decoys: Array = data.take(i[far], axis=0)
    decoys[:, 2:] = data.take(j[far], axis=0)[:, 2:]
    return decoys


@jit
def _draw_kernel(
    pairs: Any, cumulative: Any, guide: Any, weights: Any, nearest: Any, sizes: Any, affine: bool, n_draws: int,
    min_spread: float, key: Any, counts: Any, samples: Any,
) -> int:  # fmt: skip
    """Write samples, as many from each size of neighbourhood, count verdicts, and return how many samples there are.

    One seed serves all sizes, and the next one where it fails. `nearest` (n_seeds, k + 1) begins with the seeds themselves.
    """
    size, n_drawn = samples.shape[1], 0
    drawn, points = np.empty(size, np.int64), np.empty((size, 4))
    for slot in range(len(samples)):
        stream = mix(key, np.uint64(slot))
        counter = np.uint64(0)
        k = sizes[slot % len(sizes)]
        n_good, n_failed, least = 0, 0, np.inf
        while n_good < n_draws and n_failed < MOST_DEGENERATE:
            around = nearest[(slot // len(sizes) + n_failed) % len(nearest)]
            filled, largest = 0, 0.0
            if k > 0:
                drawn[0] = around[0]
                filled = 1
                for item in range(1, k + 1):
                    largest = max(largest, weights[around[item]])
            for _ in range(8 * size):
                if filled == size:
                    break
                if k > 0:
                    row = around[1 + below(stream, counter, k)]
                    # Of the largest weight any is accepted, whatever is drawn.
                    weight = weights[row]
                    accept = weight == largest or uniform(stream, counter + np.uint64(1)) * largest < weight
                else:
                    row, accept = _weighted(cumulative, guide, stream, counter), True
                counter += np.uint64(2)
                for earlier in range(filled):
                    accept = accept and drawn[earlier] != row
                if accept:
                    drawn[filled] = row
                    filled += 1
            verdict, bend = _REPEATED, np.inf
            if filled == size:
                for item in range(size):
                    for part in range(4):  # row by row would take twice as long
                        points[item, part] = pairs[drawn[item], part]
                verdict = _spread_of(points, min_spread)
                if verdict == _GOOD and affine:
                    verdict, bend = _bend_of(points, min_spread)
            counts[verdict] += 1
            if verdict != _GOOD:
                n_failed += 1
                continue
            n_good += 1
            if n_good == 1 or bend < least:
                least = bend
                for item in range(size):
                    samples[n_drawn, item] = drawn[item]
        if n_good > 0:
            n_drawn += 1
    return n_drawn


@jit
def _weighted(cumulative: Any, guide: Any, stream: Any, counter: Any) -> int:
    """Draw a row by its weight: the first whose cumulative weight is more than a share, near where the `guide` says."""
    wanted = uniform(stream, counter) * cumulative[-1]
    row = guide[below(stream, counter, len(guide))]
    while row > 0 and cumulative[row - 1] > wanted:
        row -= 1
    while row < len(cumulative) - 1 and cumulative[row] <= wanted:
        row += 1
    return int(row)


@jit
def _spread_of(points: Any, min_spread: float) -> int:
    """Tell whether two points of a sample are too close in one of the images, or all of more than four too close to a line."""
    size = len(points)
    for i in range(size):
        for j in range(i):
            for image in (0, 2):
                dx, dy = abs(points[i, image] - points[j, image]), abs(points[i, image + 1] - points[j, image + 1])
                if dx < min_spread and dy < min_spread:
                    return _REPEATED
    if size > 4:
        for image in (0, 2):
            mx = my = xx = xy = yy = 0.0
            for i in range(size):
                mx += points[i, image] / size
                my += points[i, image + 1] / size
            for i in range(size):
                dx, dy = points[i, image] - mx, points[i, image + 1] - my
                xx += dx * dx / size
                xy += dx * dy / size
                yy += dy * dy / size
            least = 0.5 * (xx + yy) - np.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
            if least < (FLATTEST * min_spread) ** 2:
                return _COLLINEAR
    return _GOOD


@jit
def _bend_of(points: Any, min_spread: float) -> Any:
    """Tell how far a sample is from affine: the largest ratio of a triangle's areas in the two images over the smallest.

    No three points may lie on a line, and every triangle turns the same way in both images, or every one the other way.
    """
    turned, n, smallest, largest = 0, 0, np.inf, 0.0
    for a in range(len(points)):
        for b in range(a):
            for c in range(b):
                ratio = 1.0
                for x, y in ((0, 1), (2, 3)):
                    ux, uy = points[b, x] - points[a, x], points[b, y] - points[a, y]
                    vx, vy = points[c, x] - points[a, x], points[c, y] - points[a, y]
                    longest = max(ux * ux + uy * uy, vx * vx + vy * vy, (ux - vx) ** 2 + (uy - vy) ** 2)
                    cross = ux * vy - uy * vx
                    if cross * cross < (FLATTEST * min_spread) ** 2 * longest or cross == 0.0:
                        return _COLLINEAR, np.inf
                    ratio = cross if x == 0 else ratio / cross
                turned += ratio < 0
                n += 1
                if 0 < turned < n:
                    return _FLIPPED, np.inf
                smallest, largest = min(smallest, abs(ratio)), max(largest, abs(ratio))
    return _GOOD, largest / smallest
