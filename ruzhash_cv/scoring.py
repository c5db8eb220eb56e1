"""Anomaly scores: a RuzHash forest in preference space, grown on matches, compared with decoys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.hypotheses import Columns, padded
from ruzhash_cv.preferences import Kernel, expected_preference
from ruzhash_cv.problem import Problem
from ruzhash_cv.selection import Structures

#: The group of decoys: no correspondence's.
_NO_GROUP = -2


@dataclass(frozen=True)
class Scores:
    """Anomaly scores of matches (n,), decoys (N, 4) and their scores (N,), and what scores more matches.

    The models were not weighed against these decoys. The last columns are those of the structures.
    """

    of_matches: Array
    decoys: Array
    of_decoys: Array
    columns: Columns
    forest: Any
    largest: float  # sum of a match's weighted preferences

    def of_others(self, problem: Problem, data: Array, groups: Rows) -> Array:
        """Return anomaly scores of correspondences that the forest was not grown on."""
        agreement = weighted_preferences(self.columns, problem, data, groups)
        rows = problem.stages.as_rows(agreement, self.largest, problem.parameters.saturation)
        scores: Array = self.forest.anomaly_scores(rows)
        return scores


def score(
    columns: Columns, structures: Structures, unexplained: Array, problem: Problem, rng: np.random.Generator
) -> Scores:
    """Return anomaly scores 2^(-h / c) of matches and of decoys by a RuzHash forest of these columns and the structures."""
    matches, parameters = problem.matches, problem.parameters
    decoys = problem.stages.decoys_of_unexplained(matches, unexplained, parameters, rng)
    columns = Columns.join([columns, columns_of(structures, problem)])
    groups = np.append(matches.groups, np.full(len(decoys), _NO_GROUP))
    agreement = weighted_preferences(columns, problem, np.vstack([matches.data, decoys]), groups)
    n, largest = len(matches), max(float(agreement[:, : len(matches)].sum(axis=0).max(initial=0.0)), 1e-30)
    rows = problem.stages.as_rows(agreement, largest, parameters.saturation)
    forest = RuzHashForest(
        n_trees=parameters.n_trees,
        subsample_size=parameters.subsample_size,
        branching_factor=parameters.branching_factor,
        rng=rng,
        n_jobs=1,
    )
    scores, decoy_scores = forest.fit_anomaly_scores(rows[:n], rows[n:])
    return Scores(scores, decoys, decoy_scores, columns, forest, largest)


def most_significant(columns: Columns, n_columns: int) -> Columns:
    """Return the columns of most weight."""
    return columns.take(np.sort(np.argsort(-columns.weights, kind="stable")[:n_columns]))


def columns_of(structures: Structures, problem: Problem) -> Columns:
    """Return structures as columns; they have no samples, as they were fitted to many matches."""
    families, matches, n = problem.families, problem.matches, len(structures)
    expected = np.array([expected_preference(family.codimension, problem.parameters) for family in families])
    no_samples = padded(np.zeros((n, 0), np.int64), problem)
    squared = families.squared_residuals(structures, np.vstack([matches.data, problem.decoys]))
    kernel = Kernel.of(matches.unit, problem.parameters)
    embedded = problem.stages.embed(squared, kernel, matches.groups, no_samples, matches.weights)
    ids = structures.family_ids
    weights = problem.stages.significance(
        embedded, problem, expected[ids], families.sample_sizes[ids].astype(np.float64)
    )
    return Columns(structures.models, ids, problem.parameters.structure_weight * weights, no_samples)


def weighted_preferences(columns: Columns, problem: Problem, data: Array, groups: Rows) -> NDArray[np.float32]:
    """Return the weighted preferences (m, n) of correspondences (n, 4) for columns."""
    squared = problem.families.squared_residuals(columns, data)
    kernel, no_weights = Kernel.of(problem.matches.unit, problem.parameters), np.zeros(len(data))
    embedded = problem.stages.embed(squared, kernel, groups, columns.sample_groups, no_weights)
    weighted: NDArray[np.float32] = embedded.preferences * columns.weights.astype(np.float32)[:, None]
    return weighted
