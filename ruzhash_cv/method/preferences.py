"""Preference space: how well each correspondence agrees with each model, and which models cover the correspondences best.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import ZERO, jit
from ruzhash_cv.method.matches import MatchSet
from ruzhash_cv.method.parameters import Parameters
from ruzhash_cv.models.base import TwoViewFamily

#: Numbers in a vector of the processor; rows of a forest are a multiple of it wide.
_WIDTH = 8


#: Residuals of so many models at once: many more leave the processor's cache, and memory for much fewer is given back each time.
_MODELS_AT_ONCE = 320


def embed(
    squared: Array,
    unit: float,
    parameters: Parameters,
    groups: Rows,
    samples: Rows,
    weights: Array,
    into: tuple[NDArray[np.float32], Array, Array] | None = None,
) -> tuple[NDArray[np.float32], Array, Array]:
    """Return preferences (m, n), their weighted sums (m,) and how many decoys (m,) have any, from squared residuals (m, n + N).

    Residuals are those of n correspondences, with `weights` (n,), and N decoys. A preference is the mean of exp(-r^2 / (2 s^2)) over
    several noise scales s, so that the noise need not be known, and 0 beyond a limit. A correspondence has no preference for a model if
    its duplicate group, `groups` (n,), has a member in the model's sample, `samples` (m, s), where -1 is no group.
    """
    m, n, sigma = len(squared), len(weights), parameters.widest_scale * unit
    written = into or (np.empty((m, n), np.float32), np.empty(m), np.empty(m))
    kernel = (parameters.preference_cut * sigma) ** 2, 0.5 / (sigma * sigma), parameters.n_scales
    _embed_kernel(squared, kernel, groups, samples, weights, np.empty(n, np.uint64), np.empty((2, n)), written)
    return written


def weigh(
    matrices: Array, samples: Rows, family: TwoViewFamily, matches: MatchSet, decoys: Array, parameters: Parameters
) -> tuple[NDArray[np.float32], Array, Array]:
    """Return preferences (m, n) of matches for models (m, 9) of one family, their weighted sums (m,), and significances (m,)."""
    data, m = np.vstack([matches.data, decoys]), len(matrices)
    preferences, sums, n_decoys = np.empty((m, len(matches)), np.float32), np.empty(m), np.empty(m)
    for begin in range(0, m, _MODELS_AT_ONCE):
        part = slice(begin, begin + _MODELS_AT_ONCE)
        into = preferences[part], sums[part], n_decoys[part]
        squared = family.squared_residuals(data, matrices[part])
        embed(squared, matches.unit, parameters, matches.groups, samples[part], matches.weights, into)
    expected = expected_preference(family.codimension, parameters)
    return preferences, sums, significance(sums, n_decoys, expected, matches, len(decoys))


def significance(
    sums: Array,
    n_decoys: Array,
    expected: Array | float,
    matches: MatchSet,
    n_all_decoys: int,
    sample_sizes: Array | float = 0.0,
) -> Array:
    """Return weights of models, max(0, 1 - D / S), S and D being the mean preferences of matches and of mismatches.

    S counts matches by their weights, less `sample_sizes`, if these have preferences too. D is the share of decoys that have a
    preference at all, one more of them so that it is never 0, times the `expected` preference of these.
    """
    chance = expected * (1.0 + n_decoys) / (n_all_decoys + 1.0)
    share = (sums - sample_sizes) / matches.weights.sum()
    return np.asarray(np.maximum(0.0, 1.0 - chance / np.maximum(share, 1e-12)))


def greedy_cover(
    preferences: NDArray[np.float32], sums: Array, weights: Array, match_weights: Array, n_wanted: int
) -> Rows:
    """Choose models greedily by their weighted sum of preferences; what one prefers fully counts half for the next.

    The `sums` are those by these weights of matches or larger ones.
    """
    chosen = np.empty(min(n_wanted, len(preferences)), np.int64)
    # A little more, so that by rounding too none is less than a sum is.
    bounds = sums * weights * (1.0 + 1e-9)
    heap = np.argsort(-bounds, kind="stable")
    queue = bounds, np.full(len(preferences), -1), heap
    return chosen[: _cover_kernel(preferences, weights, match_weights.copy(), *queue, chosen)]


@lru_cache(64)
def expected_preference(codimension: int, parameters: Parameters) -> float:
    """Return the mean preference of what has one by chance: shares of it within r of a model grow as r ** codimension."""
    r = parameters.preference_limit * ((np.arange(1000) + 0.5) / 1000) ** (1.0 / codimension)
    return float(np.exp(-0.5 * (r / parameters.scales[:, None]) ** 2).mean())


def as_rows(agreement: NDArray[np.float32], largest: float, saturation: float) -> NDArray[np.float32]:
    """Return rows (n, m), or some zeros wider, for a forest: p = 1 - exp(-s a / Lambda) of weighted preferences a (m, n).

    A row passes a node of the forest with probability 1 - prod(1 - p_i) = 1 - exp(-s sum(a_i) / Lambda), which separates rows of much
    agreement from rows of some. Of plain preferences it is nearly 1 for both. Lambda is the `largest` sum of a match, s the
    `saturation`: about so many components of its row are above their thresholds.
    """
    passing = agreement * np.float32(-saturation / largest)
    m, n = passing.shape
    # A component of zeros passes nowhere, and what is left over of whole vectors would take as long as these.
    rows = np.zeros((n, -(-m // _WIDTH) * _WIDTH), np.float32)
    np.negative(np.expm1(passing, out=passing).T, out=rows[:, :m])
    return rows


@jit
def _embed_kernel(
    squared: Any, kernel: Any, groups: Any, sample_groups: Any, weights: Any, near: Any, room: Any, written: Any
) -> None:
    """Write preferences, their sums, and the counts of decoys.

    Each noise scale is a third of the one before. `kernel`: a limit of squared residuals, 1 / (2 s^2) of the widest scale s, and how
    many scales there are.
    Residuals within the limit are gathered without a branch first: they are few, and exponentials take most of the time.
    """
    (limit, falloff, n_scales), (preferences, sums, n_decoys) = kernel, written
    n = np.uint64(len(weights))  # unsigned: a signed index costs a test for negative ones
    values, terms = room[0], room[1]
    for item in range(len(squared)):
        n_near, beyond, total = np.uint64(0), np.uint64(0), 0.0
        for row in range(n):
            preferences[item, row], near[n_near], values[n_near] = 0.0, row, squared[item, row]
            n_near += np.uint64(squared[item, row] <= limit)
        for row in range(n, np.uint64(squared.shape[1])):
            beyond += np.uint64(squared[item, row] <= limit)
        for at in range(n_near):
            # exp(x), x <= 0, to eight digits, by plain arithmetic, which the compiler makes vectors of: the sixteenth power of
            # exp(x / 16), the first eight terms of its series.
            z = -falloff / 16.0 * values[at]
            z = 1.0 + z * (1.0 + z / 2 * (1.0 + z / 3 * (1.0 + z / 4 * (1.0 + z / 5 * (1.0 + z / 6 * (1.0 + z / 7))))))
            z = z * z * (z * z)
            values[at] = terms[at] = z * z * (z * z)
        for _ in range(n_scales - 1):
            for at in range(n_near):
                # Each scale's term is the ninth power of the one before: one exponential for all.
                cubed = terms[at] * terms[at] * terms[at]
                terms[at] = cubed * cubed * cubed
                values[at] += terms[at]
        for at in range(n_near):
            row, n_made = near[at], ZERO
            for member in range(sample_groups.shape[1]):
                n_made += groups[row] == sample_groups[item, member]
            if n_made == 0:
                preferences[item, row] = values[at] / n_scales
                total += weights[row] * preferences[item, row]
        sums[item], n_decoys[item] = total, beyond


@jit
def _cover_kernel(preferences: Any, weights: Any, left: Any, bounds: Any, computed: Any, heap: Any, chosen: Any) -> Any:
    """A model's sum only ever falls: what was last known of it bounds it, and only the largest bounds are summed again.

    The queue is the bounds, after how many choices each was computed, and a heap of models by these.
    """
    n_chosen = ZERO
    while n_chosen < len(chosen) and bounds[heap[0]] > 0.0:
        best = heap[0]
        if computed[best] == n_chosen:
            chosen[n_chosen], bounds[best] = best, -1.0
            n_chosen += 1
            for row in range(len(left)):
                left[row] /= 1.0 + preferences[best, row]
        else:
            # Four sums, none of which waits for the others.
            a = b = c = d = 0.0
            for row in range(0, len(left) - 3, 4):
                a += left[row] * preferences[best, row]
                b += left[row + 1] * preferences[best, row + 1]
                c += left[row + 2] * preferences[best, row + 2]
                d += left[row + 3] * preferences[best, row + 3]
            for row in range(len(left) // 4 * 4, len(left)):
                a += left[row] * preferences[best, row]
            bounds[best], computed[best] = ((a + b) + (c + d)) * weights[best], n_chosen
        at, child = ZERO, ZERO + 1
        while child < len(heap):
            one = heap[child]
            if child + 1 < len(heap):
                other = heap[child + 1]
                if bounds[other] > bounds[one] or (bounds[other] == bounds[one] and other < one):
                    child, one = child + 1, other
            if bounds[one] < bounds[best] or (bounds[one] == bounds[best] and best < one):
                break
            heap[at], at, child = one, child, 2 * child + 1
        heap[at] = best
    return n_chosen
