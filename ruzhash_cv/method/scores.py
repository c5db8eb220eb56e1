"""Anomaly scores: a RuzHash forest in preference space, grown on matches, compared with decoys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.method.matches import MatchSet
from ruzhash_cv.method.preferences import as_rows, chances_of, embed
from ruzhash_cv.method.sampling import Problem
from ruzhash_cv.models.base import Models

#: The group of decoys: no correspondence's.
_NO_GROUP = -2


@dataclass(frozen=True)
class Scores:
    """Anomaly scores of matches (n,), and what scores more matches, and decoys (N, 4) that models were not weighed against."""

    of_matches: Array
    decoys: Array
    columns: Models  # models that the forest's rows are made of, without structures
    structures: Models  # those that the other columns are made of
    forest: RuzHashForest
    largest: float  # sum of a match's weighted preferences
    problem: Problem

    @cached_property
    def of_decoys(self) -> Array:
        """Scores of decoys (N,), which not every round of a search needs."""
        return self.of_others(self.decoys, np.full(len(self.decoys), _NO_GROUP))

    def of_all(self, matches: MatchSet, rows: Rows, _: Problem) -> Array:
        """Return anomaly scores of all matches, of which the forest was grown on some `rows`."""
        if len(rows) == len(matches):
            return self.of_matches
        others, scores = np.setdiff1d(np.arange(len(matches)), rows), np.empty(len(matches))
        scores[rows], scores[others] = self.of_matches, self.of_others(matches.data[others], matches.groups[others])
        return scores

    def of_others(self, data: Array, groups: Rows) -> Array:
        """Return anomaly scores of correspondences (n, 4), of duplicate groups (n,), that the forest was not grown on."""
        columns = Models.join([self.columns, self.structures])
        agreement = weighted_preferences(columns, data, groups, self.problem)
        return self.forest.anomaly_scores(as_rows(agreement, self.largest, self.problem.parameters.saturation))


def score(columns: Models, structures: Models, decoys: Array, problem: Problem, rng: np.random.Generator) -> Scores:
    """Return anomaly scores 2^(-h / c) of matches by a RuzHash forest of the most significant columns and structures.

    They are to be compared with `decoys` (N, 4) that no model was weighed against.
    """
    matches, _, _, parameters = problem
    columns = columns.take(np.sort(np.argsort(-columns.weights, kind="stable")[: parameters.n_columns]))
    structures = as_columns(structures, problem)
    agreement = weighted_preferences(Models.join([columns, structures]), matches.data, matches.groups, problem)
    largest = max(float(agreement.sum(axis=0).max(initial=0.0)), 1e-30)
    forest = RuzHashForest(
        n_trees=parameters.n_trees,
        subsample_size=parameters.subsample_size,
        branching_factor=parameters.branching_factor,
        rng=rng,
        n_jobs=1,
    )
    scores = forest.fit_anomaly_scores(as_rows(agreement, largest, parameters.saturation))
    return Scores(scores, decoys, columns, structures, forest, largest, problem)


def as_columns(structures: Models, problem: Problem) -> Models:
    """Return structures as columns; they have no samples, as they were fitted to many matches.

    The matches of a sample have preferences too: a sample's size is subtracted from the sum of these.
    """
    matches, decoys, families, parameters = problem
    no_samples = np.full((len(structures), int(families.sample_sizes.max())), -1)
    residuals = families.residuals(structures, np.vstack([matches.data, decoys]))
    _, sums, n_decoys = embed(residuals, matches.unit, parameters, matches.groups, no_samples, matches.weights)
    shares = (sums - families.sample_sizes[structures.family_ids]) / matches.weights.sum()
    chance = chances_of(structures, len(decoys), problem) * (1.0 + n_decoys)
    weights = parameters.structure_weight * np.maximum(0.0, 1.0 - chance / np.maximum(shares, 1e-12))
    return Models(structures.matrices, structures.family_ids, weights, no_samples)


def weighted_preferences(columns: Models, data: Array, groups: Rows, problem: Problem) -> NDArray[np.float32]:
    """Return the weighted preferences (m, n) of correspondences (n, 4) for columns."""
    residuals, given = problem.families.residuals(columns, data), (problem.matches.unit, problem.parameters)
    preferences = embed(residuals, *given, groups, columns.samples, np.zeros(len(data)))[0]
    weighted: NDArray[np.float32] = preferences * columns.weights.astype(np.float32)[:, None]
    return weighted
