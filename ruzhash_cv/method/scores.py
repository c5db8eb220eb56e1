"""Anomaly scores: a RuzHash forest in preference space, grown on matches, compared with decoys."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.method.matches import MatchSet
from ruzhash_cv.method.preferences import as_rows, embed, weigh
from ruzhash_cv.method.sampling import Problem
from ruzhash_cv.models.base import Models

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

    def of_all(self, matches: MatchSet, rows: Rows, problem: Problem) -> Array:
        """Return anomaly scores of all matches, of which the forest was grown on some `rows`."""
        if len(rows) == len(matches):
            return self.of_matches
        others, columns = np.setdiff1d(np.arange(len(matches)), rows), Models.join([self.columns, self.structures])
        data, groups = matches.data[others], matches.groups[others]
        agreement = weighted_preferences(columns, data, groups, problem)
        scores = np.empty(len(matches))
        scores[rows] = self.of_matches
        scores[others] = self.forest.anomaly_scores(as_rows(agreement, self.largest, problem.parameters.saturation))
        return scores


def score(columns: Models, structures: Models, decoys: Array, problem: Problem, rng: np.random.Generator) -> Scores:
    """Return anomaly scores 2^(-h / c) of matches and of decoys by a RuzHash forest of the most significant columns and structures.

    The forest scores `decoys` (N, 4) that no model was weighed against.
    """
    matches, _, _, parameters = problem
    columns = columns.take(np.sort(np.argsort(-columns.weights, kind="stable")[: parameters.n_columns]))
    structures = as_columns(structures, problem)
    groups = np.append(matches.groups, np.full(len(decoys), _NO_GROUP))
    data, n = np.vstack([matches.data, decoys]), len(matches)
    agreement = weighted_preferences(Models.join([columns, structures]), data, groups, problem)
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
    return Scores(scores, decoys, decoy_scores, columns, structures, forest, largest)


def as_columns(structures: Models, problem: Problem) -> Models:
    """Return structures as columns; they have no samples, as they were fitted to many matches."""
    sizes, family_ids = problem.families.sample_sizes, structures.family_ids
    no_samples = np.full((len(structures), int(sizes.max())), -1)
    columns = Models(structures.matrices, family_ids, samples=no_samples)
    weights = weigh(columns, problem, sizes[family_ids].astype(np.float64))[2]
    return replace(columns, weights=problem.parameters.structure_weight * weights)


def weighted_preferences(columns: Models, data: Array, groups: Rows, problem: Problem) -> NDArray[np.float32]:
    """Return the weighted preferences (m, n) of correspondences (n, 4) for columns."""
    residuals, given = problem.families.residuals(columns, data), (problem.matches.unit, problem.parameters)
    preferences = embed(residuals, *given, groups, columns.samples, np.zeros(len(data)))[0]
    weighted: NDArray[np.float32] = preferences * columns.weights.astype(np.float32)[:, None]
    return weighted
