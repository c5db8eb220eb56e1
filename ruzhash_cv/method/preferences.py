"""Preference space: how well each correspondence agrees with each model, and which models cover the correspondences best.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.kernels.weigh import cover, write_preferences
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
    write_preferences(squared, *kernel, groups, samples, weights, np.empty(n, np.int64), np.empty((2, n)), *written)
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
    return chosen[: cover(preferences, weights, match_weights.copy(), *queue, chosen)]


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
