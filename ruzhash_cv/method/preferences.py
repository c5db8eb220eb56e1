"""Preference space: how well each correspondence agrees with each model, and which models cover the correspondences best.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.kernels.fit import choose_models, write_preferences
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
    kernel = limit_of(unit, parameters), 0.5 / (sigma * sigma), parameters.n_scales
    room = np.empty(n, np.int64), np.empty((2, n_all))
    write_preferences(*residuals, *kernel, groups, samples, weights, *room, preferences, sums, n_decoys)
    return preferences, sums, n_decoys


def limit_of(unit: float, parameters: Parameters) -> float:
    """Return the square of the residual at which preferences end."""
    return (parameters.preference_cut * (parameters.widest_scale * unit)) ** 2


def chances_of(models: Models, n_decoys: int, problem: Problem) -> Array:
    """Return the mean preferences (m,) of mismatches for models, for each decoy that has any, one more of which there always is.

    It is the `expected_preference` of the model's family over all of `n_decoys` and one more.
    """
    families, parameters = problem.families, problem.parameters
    expected = [expected_preference(codimension, parameters) for codimension in families.codimensions.tolist()]
    return np.array(expected)[models.family_ids] / (n_decoys + 1.0)


def best_models(models: Models, proposal: Array, n_wanted: int, problem: Problem) -> Models:
    """Return models with samples that are chosen greedily by their weighted sums of preferences, and their significances as weights.

    What a model prefers fully counts half for the next. Only matches with a `proposal` weight (n,) count. The significance is max(0, 1
    - D / S), S being the mean preference of matches, by their weights, and D that of mismatches, by decoys. Decoys are compared only
    with models that may be chosen.
    """
    matches, decoys, families, parameters = problem
    m, given = len(models), (matches.groups, models.samples, matches.weights)
    preferences, sums, _ = embed(families.residuals(models, matches.data), matches.unit, parameters, *given)
    by_decoys = *families.residuals(models, decoys), limit_of(matches.unit, parameters)
    of_models = chances_of(models, len(decoys), problem), matches.weights.sum(), preferences, sums
    room = np.empty(len(decoys)), np.empty((2, m)), np.empty((3, m), np.int64)
    left, weights, chosen = (
        np.where(proposal > 0.0, matches.weights, 0.0),
        np.empty(m),
        np.empty(min(n_wanted, m), np.int64),
    )
    best = chosen[: choose_models(*by_decoys, *of_models, left, *room, weights, chosen)]
    return Models(models.matrices[best], models.family_ids[best], weights[best], models.samples[best])


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
