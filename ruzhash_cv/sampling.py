"""Minimal sample sets: uniform or from neighbourhoods, degenerate ones rejected and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from ruzhash_cv._jit import jit
from ruzhash_cv._random import below, draw_key, mix, uniform
from ruzhash_cv._validation import (
    RNG,
    as_generator,
    as_points,
    as_vector,
    check_int,
    check_real,
    check_same_length,
)
from ruzhash_cv.places import PLACE_RADIUS

#: Up to so many distances are all looked at, which takes less time than a tree does.
FEW_DISTANCES = 45_000
_ATTEMPTS = 20
#: Why a sample makes no model; the last is the solver's verdict.
REJECTIONS = ("repeated", "collinear", "flipped", "unsolved")
_REASONS = REJECTIONS[:3]
_REPEATED, _COLLINEAR, _FLIPPED, _GOOD = 0, 1, 2, 3


@dataclass(frozen=True)
class MinimalSamples:
    """Minimal sample sets and what was rejected on the way.

    Attributes
    ----------
    indices : ndarray of int64, shape (m, sample_size)
        Row numbers of the correspondences of each sample.
    rejected : dict of str to int
        How many draws were degenerate: ``"repeated"`` (two points too close together in an image, or fewer nearby that have weight
        than a sample needs), ``"collinear"``, ``"flipped"`` (the orientation of the points is not the same in both images).
    """

    indices: NDArray[np.int64]
    rejected: dict[str, int]

    def __len__(self) -> int:
        return len(self.indices)


def draw_samples(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    sample_size: int,
    n_samples: int,
    neighbourhoods: Sequence[int] | None = (10, 30, 0),
    weights: ArrayLike | None = None,
    min_spread: float = PLACE_RADIUS,
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
    first, second = as_points(points1, "points1", finite=True), as_points(points2, "points2", finite=True)
    check_same_length(first, second, "`points1` and `points2`")
    check_int(sample_size, "sample_size", at_least=2)
    check_int(n_samples, "n_samples", at_least=0)
    if neighbourhoods is not None and not hasattr(neighbourhoods, "__len__"):
        raise TypeError(f"`neighbourhoods` must be a sequence of int or None, got {neighbourhoods!r}")
    sizes = [
        check_int(size, "neighbourhoods", at_least=0) for size in (() if neighbourhoods is None else neighbourhoods)
    ]
    sizes = sizes or [0]
    generator = as_generator(rng)
    pairs = np.hstack([first, second])
    shares = np.ones(len(pairs)) if weights is None else as_vector(weights, "weights", least=0.0)
    check_same_length(pairs, shares, "`points1` and `weights`")
    if len(shares) and (largest := shares.max()) > 0:
        shares = shares / largest  # only their ratios count, and their sum must be finite
    min_spread = check_real(min_spread, "min_spread", inclusive=True)
    check_int(n_candidates, "n_candidates")
    return draw_from(Neighbours(pairs), sample_size, n_samples, sizes, shares, min_spread, n_candidates, generator)


class Neighbours:
    """Correspondences (n, 4) and who is near whom in (x1, y1, x2, y2)."""

    def __init__(self, pairs: NDArray[np.float64]) -> None:
        self.pairs = pairs
        self._tree: cKDTree | None = None

    def of(self, rows: NDArray[np.int64], k: int) -> NDArray[np.int64]:
        """Return each row's k nearest, shape (len(rows), k): first itself, or one equal to it."""
        k = min(k, len(self.pairs))
        if len(rows) * len(self.pairs) <= FEW_DISTANCES:
            squares = cdist(self.pairs[rows], self.pairs, "sqeuclidean")
            found = np.argsort(squares, axis=1)[:, :k]
            if squares.max() < np.inf:
                return found
            known = np.take_along_axis(squares, found, axis=1) < np.inf
        else:
            self._tree = self._tree or cKDTree(self.pairs)
            found = np.asarray(self._tree.query(self.pairs[rows], k)[1], np.int64).reshape(len(rows), k)
            known = found < len(self.pairs)
        # Itself stands for a neighbour whose squared distance overflows.
        return np.where(known, found, rows[:, None])


def draw_from(
    neighbours: Neighbours,
    sample_size: int,
    n_samples: int,
    sizes: Sequence[int],
    weights: NDArray[np.float64],
    min_spread: float,
    n_candidates: int,
    rng: np.random.Generator,
) -> MinimalSamples:
    """Draw samples from clean arrays; `draw_samples` explains the arguments."""
    key, pairs = draw_key(rng), neighbours.pairs
    if len(pairs) < sample_size or n_samples == 0 or weights.sum() <= 0:
        return MinimalSamples(np.zeros((0, sample_size), np.int64), dict.fromkeys(_REASONS, 0))
    cumulative = np.cumsum(weights)
    nearest: NDArray[np.int64] = np.zeros((1, 1), np.int64)
    if max(sizes) > 0:
        n_seeds = -(-n_samples // len(sizes))
        # Stratified: as many seeds from each part of the matches as its weight asks for.
        shares = (np.arange(n_seeds) + rng.random(n_seeds)) / n_seeds
        seeds = np.minimum(np.searchsorted(cumulative, shares * cumulative[-1], side="right"), len(pairs) - 1)
        # A strided slice is another layout: numba would compile the kernel once more.
        nearest = np.ascontiguousarray(neighbours.of(seeds, max(sizes) + 1))
    samples, counts = _draw_kernel(
        pairs,
        cumulative,
        weights,
        float(weights.max()),
        nearest,
        np.array([min(size, nearest.shape[1] - 1) for size in sizes], np.int64),
        sample_size,
        n_samples,
        n_candidates if sample_size == 4 else 1,
        min_spread,
        key,
    )
    return MinimalSamples(samples, {reason: int(count) for reason, count in zip(_REASONS, counts[:3], strict=True)})


@jit
def _draw_kernel(
    pairs: Any,
    cumulative: Any,
    weights: Any,
    largest_weight: float,
    nearest: Any,
    sizes: Any,
    sample_size: int,
    n_samples: int,
    n_candidates: int,
    min_spread: float,
    key: Any,
) -> Any:
    """Draw samples, as many from each size of neighbourhood; one seed serves all sizes, and the next one where it fails.

    `nearest` (n_seeds, k + 1) begins with the seeds themselves. Of `n_candidates` good draws the one that bends least is kept.
    """
    samples, drawn = np.empty((n_samples, sample_size), np.int64), np.empty(sample_size, np.int64)
    counts = np.zeros(4, np.int64)
    n_drawn: Any = np.int64(0)
    for slot in range(n_samples):
        stream = mix(key, np.uint64(slot))
        counter = np.uint64(0)
        size = sizes[slot % len(sizes)]
        n_good, n_failed, least = 0, 0, np.inf
        while n_good < n_candidates and n_failed < _ATTEMPTS:
            seed = (slot // len(sizes) + n_failed) % len(nearest)
            filled: Any = np.int64(0)
            if size > 0:
                drawn[0] = nearest[seed, 0]
                filled += 1
            for _ in range(8 * sample_size):
                if filled == sample_size:
                    break
                if size > 0:
                    row = nearest[seed, 1 + below(stream, counter, size)]
                    accept = uniform(stream, counter + np.uint64(1)) * largest_weight < weights[row]
                else:
                    row, accept = _search(cumulative, uniform(stream, counter)), True
                counter += np.uint64(2)
                for earlier in range(filled):
                    accept = accept and drawn[earlier] != row
                if accept:
                    drawn[filled] = row
                    filled += 1
            verdict, bend = _REPEATED, np.inf
            if filled == sample_size:
                verdict, bend = _judge_sample(pairs, drawn, min_spread)
            counts[verdict] += 1
            if verdict != _GOOD:
                n_failed += 1
                continue
            n_good += 1
            # The first one where all bend beyond all numbers.
            if n_good == 1 or bend < least:
                least, samples[n_drawn] = bend, drawn
        n_drawn += min(n_good, 1)
    return samples[:n_drawn], counts


@jit
def _search(cumulative: Any, share: float) -> int:
    """Return the first row whose cumulative weight exceeds `share` of the total."""
    wanted = share * cumulative[len(cumulative) - 1]
    low, high = 0, len(cumulative) - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > wanted:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def _judge_sample(pairs: Any, sample: Any, min_spread: float) -> Any:
    """Return whether a sample is degenerate and how much its map bends; that of any but a quadrilateral does not."""
    size = len(sample)
    for i in range(size):
        for j in range(i):
            a, b = sample[i], sample[j]
            for image in (0, 2):
                spread = max(abs(pairs[a, image] - pairs[b, image]), abs(pairs[a, image + 1] - pairs[b, image + 1]))
                if spread < min_spread:
                    return _REPEATED, np.inf
    if size == 4:
        return _judge_quadrilateral(pairs, sample, min_spread)
    for image in (0, 2):
        if size > 2 and _thickness(pairs, sample, image) < 0.5 * min_spread:
            return _COLLINEAR, np.inf
    return _GOOD, 0.0


@jit
def _judge_quadrilateral(pairs: Any, sample: Any, min_spread: float) -> Any:
    """No three points on a line, and every triple turns the same way in both images, or every one the other way.

    How much the map bends is the largest ratio of a triple's areas in the two images divided by the smallest: 1 if it is affine.
    """
    turned, smallest, largest = 0, np.inf, 0.0
    for left_out in range(4):
        a, b, c = sample[left_out - 1], sample[left_out - 2], sample[left_out - 3]
        ratio = 1.0
        for image in (0, 2):
            ux, uy = pairs[b, image] - pairs[a, image], pairs[b, image + 1] - pairs[a, image + 1]
            vx, vy = pairs[c, image] - pairs[a, image], pairs[c, image + 1] - pairs[a, image + 1]
            longest = max(ux * ux + uy * uy, vx * vx + vy * vy, (ux - vx) ** 2 + (uy - vy) ** 2)
            cross = ux * vy - uy * vx
            if cross * cross < (0.5 * min_spread) ** 2 * longest or cross == 0.0:
                return _COLLINEAR, np.inf
            ratio = cross if image == 0 else ratio / cross
        turned += ratio < 0
        if 0 < turned <= left_out:
            return _FLIPPED, np.inf
        smallest, largest = min(smallest, abs(ratio)), max(largest, abs(ratio))
    return _GOOD, largest / smallest


@jit
def _thickness(pairs: Any, sample: Any, image: int) -> float:
    """Return the standard deviation of the sample's points across their main direction."""
    size = len(sample)
    mx = my = 0.0
    for item in range(size):
        mx += pairs[sample[item], image] / size
        my += pairs[sample[item], image + 1] / size
    xx = xy = yy = 0.0
    for item in range(size):
        dx, dy = pairs[sample[item], image] - mx, pairs[sample[item], image + 1] - my
        xx += dx * dx / size
        xy += dx * dy / size
        yy += dy * dy / size
    smallest = 0.5 * (xx + yy) - np.sqrt(0.25 * (xx - yy) ** 2 + xy * xy)
    return float(np.sqrt(max(smallest, 0.0)))
