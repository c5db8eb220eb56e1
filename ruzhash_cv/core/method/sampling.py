"""Minimal sample sets from neighbourhoods, and decoys: correspondences known to be mismatches, made of points of different matches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ruzhash_cv.core.families.base import Families, TwoViewFamily
from ruzhash_cv.core.kernels.draw import draw, nearest_of_rows, pair_up
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.foundation.arrays import Array, Rows

#: So many rows are enough to fit a structure and estimate its noise.
_FEW_ROWS = 256
#: Why a sample makes no model: two of its points are too close together in an image (or fewer matches nearby have weight than a sample
#: needs), three are on a line, their orientation differs between the images, or the solver finds no model.
REJECTIONS = ("repeated", "collinear", "flipped", "unsolved")


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
    sizes, size = parameters.neighbourhoods if neighbourhoods is None else neighbourhoods, family.sample_size
    samples, verdicts = np.empty((n_samples, size), np.int64), np.zeros(4, np.int64)
    if n_samples == 0 or np.count_nonzero(weights > 0.0) < size:
        return samples[:0], verdicts[:3]
    n, k = len(data), max(sizes) + 1
    # Stratified: as many seeds from each part of the matches as its weight asks for.
    offsets = rng.random(-(-n_samples // len(sizes)) if k > 1 else 0)
    room = np.empty((3, n), np.int64), np.empty((3, n + k)), np.empty((n, 4))
    nearest = np.empty((max(len(offsets), 1), k), np.int64)
    n_candidates = parameters.n_candidates if family.is_plane else 1
    seed = rng.integers(0, 1 << 64, dtype=np.uint64)
    rules = float(min_spread), parameters.min_height * min_spread, n_candidates, family.is_plane, seed
    n_drawn = draw(data, weights, offsets, np.array(sizes), *rules, *room, nearest, samples, verdicts)
    return samples[:n_drawn], verdicts[:3]


def draw_decoys(data: Array, n_decoys: int, distance: float, rng: np.random.Generator) -> Array:
    """Pair the first point of one correspondence with the second point of another, `n_decoys` times.

    A pairing is refused if its two points' partners are within `distance` of where it would put them, or if it is a match: it could be
    true. If most are refused, as among all pairs of a few points, second points are anywhere between two of these. Fewer may come back.
    """
    if len(data) == 0:
        return np.zeros((0, data.shape[1]))
    decoys = np.empty((n_decoys, data.shape[1]))
    decoys = decoys[: pair_up(data, rng.integers(len(data), size=(2, 2 * n_decoys)), distance, decoys)]
    if len(decoys) < n_decoys // 2:
        rows, share = rng.integers(len(data), size=(3, 2 * n_decoys)), rng.random((2 * n_decoys, 1))
        one, other, another = data[rows]
        between = share * other + (1.0 - share) * another
        between[:, :2], between[:, 4:7] = one[:, :2], one[:, 4:7]
        apart = np.flatnonzero(np.abs(other - another)[:, 2:4].max(axis=1) >= distance)
        decoys = np.vstack([decoys, between[apart[: n_decoys - len(decoys)]]])
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
    nearest = np.empty((len(rows), k), np.int64)
    nearest_of_rows(data, rows, np.empty(len(data) + k), np.empty(len(data), np.int64), nearest)
    return nearest
