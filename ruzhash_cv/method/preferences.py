"""Preference space: how well each correspondence agrees with each model, and which models cover the correspondences best.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.kernels.fit import write_preferences
from ruzhash_cv.kernels.weigh import cover
from ruzhash_cv.method.matches import MatchSet
from ruzhash_cv.method.parameters import Parameters
from ruzhash_cv.method.sampling import Problem
from ruzhash_cv.models.base import Models, Residuals

#: Numbers in a vector of the processor; rows of a forest are a multiple of it wide.
_WIDTH = 8


def embed(
    residuals: Residuals, unit: float, parameters: Parameters, groups: Rows, samples: Rows, weights: Array
) -> tuple[NDArray[np.float32], Array, Array]:
    """Return preferences (m, n) for models, their weighted sums (m,) and how many decoys (m,) have any.

    `residuals` are those of n correspondences, with `weights` (n,), and of decoys behind them. A preference is the mean of
    exp(-r^2 / (2 s^2)) over several noise scales s, so that the noise need not be known, and 0 beyond a limit. A correspondence has no
    preference for a model if its duplicate group, `groups` (n,), has a member in the model's sample, `samples` (m, s), where -1 is no
    group.
    """
    (m, n_all), n, sigma = (len(residuals[0]), residuals[1].shape[1]), len(weights), parameters.widest_scale * unit
    preferences, sums, n_decoys = np.empty((m, n), np.float32), np.empty(m), np.empty(m)
    kernel = (parameters.preference_cut * sigma) ** 2, 0.5 / (sigma * sigma), parameters.n_scales
    room = np.empty(n, np.int64), np.empty((2, n_all))
    write_preferences(*residuals, *kernel, groups, samples, weights, *room, preferences, sums, n_decoys)
    return preferences, sums, n_decoys


def weigh(
    models: Models, problem: Problem, sample_sizes: Array | float = 0.0
) -> tuple[NDArray[np.float32], Array, Array]:
    """Return preferences (m, n) of matches for models with samples, their weighted sums (m,), and significances (m,).

    Of each sum `sample_sizes` are subtracted, if the matches of samples have preferences too.
    """
    matches, decoys, families, parameters = problem
    residuals, given = families.residuals(models, np.vstack([matches.data, decoys])), (matches.unit, parameters)
    preferences, sums, n_decoys = embed(residuals, *given, matches.groups, models.samples, matches.weights)
    expected = np.array([expected_preference(int(codimension), parameters) for codimension in families.codimensions])
    chance = expected[models.family_ids], matches, len(decoys)
    return preferences, sums, significance(sums, n_decoys, *chance, sample_sizes)


def significance(
    sums: Array,
    n_decoys: Array,
    expected: Array | float,
    matches: MatchSet,
    n_all_decoys: int,
    sample_sizes: Array | float,
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
