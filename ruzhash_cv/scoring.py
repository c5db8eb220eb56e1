"""Anomaly scores: a RuzHash forest in preference space, grown on matches, compared with decoys."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.preferences import as_rows, embed, expected_preference, significance

#: The group of decoys: no correspondence's.
_NO_GROUP = -2


@dataclass(frozen=True)
class Scores:
    """Anomaly scores of matches (n,), decoys (N, 4) and their scores (N,), and what scores more matches.

    Models were not weighed against these decoys.
    """

    of_matches: Array
    decoys: Array
    of_decoys: Array
    columns: Models  # models that the forest's rows are made of, without structures
    structures: Models  # those that the other columns are made of
    forest: RuzHashForest
    largest: float  # sum of a match's weighted preferences

    def of_all(self, matches: MatchSet, rows: Rows, families: Families, parameters: Parameters) -> Array:
        """Return anomaly scores of all matches, of which the forest was grown on some `rows`."""
        if len(rows) == len(matches):
            return self.of_matches
        others, columns = np.setdiff1d(np.arange(len(matches)), rows), Models.join([self.columns, self.structures])
        data, groups = matches.data[others], matches.groups[others]
        agreement = weighted_preferences(columns, data, groups, matches.unit, families, parameters)
        scores = np.empty(len(matches))
        scores[rows] = self.of_matches
        scores[others] = self.forest.anomaly_scores(as_rows(agreement, self.largest, parameters.saturation))
        return scores


def score(
    columns: Models,
    structures: Models,
    matches: MatchSet,
    decoys: Array,
    others: Array,
    families: Families,
    parameters: Parameters,
    rng: np.random.Generator,
) -> Scores:
    """Return anomaly scores 2^(-h / c) of matches and of decoys by a RuzHash forest of the most significant columns and structures.

    Structures are weighed against `decoys` (N, 4); the forest scores `others` (N, 4), which no model was weighed against.
    """
    columns = most_significant(columns, parameters.n_columns)
    structures = as_columns(structures, matches, decoys, families, parameters)
    groups = np.append(matches.groups, np.full(len(others), _NO_GROUP))
    data, n = np.vstack([matches.data, others]), len(matches)
    every = Models.join([columns, structures])
    agreement = weighted_preferences(every, data, groups, matches.unit, families, parameters)
    largest = max(float(agreement[:, :n].sum(axis=0).max(initial=0.0)), 1e-30)
    rows = as_rows(agreement, largest, parameters.saturation)
    forest = RuzHashForest(
        n_trees=parameters.n_trees,
        subsample_size=parameters.subsample_size,
        branching_factor=parameters.branching_factor,
        rng=rng,
        n_jobs=1,
    )
    scores, decoy_scores = forest.fit_anomaly_scores(rows[:n], rows[n:])
    return Scores(scores, others, decoy_scores, columns, structures, forest, largest)


def most_significant(columns: Models, n_columns: int) -> Models:
    """Return the columns with the largest weights."""
    return columns.take(np.sort(np.argsort(-columns.weights, kind="stable")[:n_columns]))


def as_columns(
    structures: Models, matches: MatchSet, decoys: Array, families: Families, parameters: Parameters
) -> Models:
    """Return structures as columns; they have no samples, as they were fitted to many matches."""
    no_samples = np.full((len(structures), int(families.sample_sizes.max())), -1)
    squared = families.squared_residuals(structures, np.vstack([matches.data, decoys]))
    _, sums, n_decoys = embed(squared, matches.unit, parameters, matches.groups, no_samples, matches.weights)
    expected = np.array([expected_preference(family.codimension, parameters) for family in families])
    sizes, family_ids = families.sample_sizes.astype(np.float64), structures.family_ids
    weights = significance(sums, n_decoys, expected[family_ids], matches, len(decoys), sizes[family_ids])
    return Models(structures.matrices, family_ids, parameters.structure_weight * weights, no_samples)


def weighted_preferences(
    columns: Models, data: Array, groups: Rows, unit: float, families: Families, parameters: Parameters
) -> NDArray[np.float32]:
    """Return the weighted preferences (m, n) of correspondences (n, 4) for columns."""
    squared = families.squared_residuals(columns, data)
    preferences, _, _ = embed(squared, unit, parameters, groups, columns.samples, np.zeros(len(data)))
    weighted: NDArray[np.float32] = preferences * columns.weights.astype(np.float32)[:, None]
    return weighted
