"""Preference space: how well each correspondence agrees with each model, and which models cover the correspondences best.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.base import Models, Residuals
from ruzhash_cv.core.kernels.residuals import choose_models, write_preferences, write_rows
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.foundation.arrays import Array, Rows

#: Numbers in a vector of the processor; rows of a forest are a multiple of it wide.
_WIDTH = 8


@dataclass(frozen=True)
class Columns(Models):
    """Models that the rows of a forest are made of."""

    weights: Array  # significances
    samples: Rows  # (m, s): duplicate groups of the sample that each was solved from, -1 for none
    further: ClassVar[str] = "dq"


def embed(
    residuals: Residuals,
    unit: float,
    parameters: Parameters,
    groups: Rows,
    samples: Rows,
    weights: Array,
) -> tuple[NDArray[np.float32], Array]:
    """Return preferences (m, n) of correspondences for models, from their residuals, and sums (m,) of these by `weights` (n,).

    A preference is the mean of exp(-r^2 / (2 s^2)) over several noise scales s, so that the noise need not be known, and 0 beyond a
    limit. A correspondence has no preference for a model if its duplicate group, `groups` (n,), has a member in the model's sample,
    `samples` (m, s), where -1 is no group. They are computed in single precision.
    """
    kinds, points, models = residuals
    with np.errstate(over="ignore"):  # a table of a user's family may hold anything
        points = points.astype(np.float32)
    m, n, sigma = len(kinds), len(weights), parameters.widest_scale * unit
    # One more than there are, which the last one beyond the limit is gathered to.
    preferences, sums, room = np.empty((m, n), np.float32), np.empty(m), np.empty((2, n + 1), np.float32)
    law = limit_of(unit, parameters), 0.5 / (sigma * sigma), parameters.n_scales
    given, near = (kinds, points, models, *law, groups, samples, weights), np.empty(n + 1, np.int64)
    write_preferences(*given, near, room, preferences, sums)
    return preferences, sums


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


def best_models(models: Models, samples: Rows, proposal: Array, n_wanted: int, problem: Problem) -> Columns:
    """Return models that are chosen greedily by their weighted sums of preferences, with samples and their significances as weights.

    What a model prefers fully counts half for the next. Only matches with a `proposal` weight (n,) count. The significance is max(0, 1
    - D / S), S being the mean preference of matches, by their weights, and D that of mismatches, by decoys. Decoys are compared only
    with models that may be chosen.
    """
    matches, decoys, families, parameters = problem
    m, residuals = len(models), families.residuals(models, matches.data)
    given = matches.unit, parameters, matches.groups, samples, matches.weights
    preferences, sums = embed(residuals, *given)
    by_decoys = *families.residuals(models, decoys), limit_of(matches.unit, parameters)
    of_models = chances_of(models, len(decoys), problem), matches.weights.sum(), preferences, sums
    room = np.empty(len(decoys)), np.empty((2, m)), np.empty((3, m), np.int64)
    left, weights = np.where(proposal > 0.0, matches.weights, 0.0), np.empty(m)
    chosen = np.empty(min(n_wanted, m), np.int64)
    best = chosen[: choose_models(*by_decoys, *of_models, left, *room, weights, chosen)]
    return Columns(models.matrices[best], models.family_ids[best], weights[best], samples[best])


@lru_cache(64)
def expected_preference(codimension: int, parameters: Parameters) -> float:
    """Return the mean preference of what has one by chance: shares of it within r of a model grow as r ** codimension."""
    r = parameters.preference_limit * ((np.arange(1000) + 0.5) / 1000) ** (1.0 / codimension)
    return float(np.exp(-0.5 * (r / parameters.scales[:, None]) ** 2).mean())


def as_rows(
    preferences: NDArray[np.float32], weights: Array, saturation: float, largest: float = 0.0
) -> tuple[NDArray[np.float32], float]:
    """Return rows (n, m), or some zeros wider, for a forest, p = 1 - exp(-s w g / Lambda) of preferences g (m, n), and Lambda.

    A row passes a node of the forest with probability 1 - prod(1 - p_i) = 1 - exp(-s sum(w_i g_i) / Lambda), which separates rows of
    much agreement from rows of some. Of plain preferences it is nearly 1 for both. Lambda is the largest sum of a row, unless it is
    given, s the `saturation`: about so many components of that row are above their thresholds.
    """
    m, n = preferences.shape
    # A component of zeros passes nowhere, and what is left over of whole vectors would take as long as these.
    rows = np.zeros((n, -(-m // _WIDTH) * _WIDTH), np.float32)
    return rows, write_rows(preferences, weights, saturation, largest, np.empty(n), rows)
