"""Anomaly scores: a RuzHash forest in preference space, grown on matches, compared with decoys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ruzhash_cv.core.families.base import Models
from ruzhash_cv.core.forests.ruzhash import RuzHashForest
from ruzhash_cv.core.kernels.residuals import count_within
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.preferences import Columns, as_rows, chances_of, embed, limit_of
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.foundation.arrays import Array, Rows, cached

#: The group of decoys: no correspondence's.
_NO_GROUP = -2


class Grown(NamedTuple):
    """What the rows of a grown forest are made of, the largest sum of a match's weighted preferences, and scores of matches (n,)."""

    columns: Columns
    largest: float
    of_matches: Array


@dataclass(frozen=True)
class Scores:
    """Anomaly scores of matches, to be compared with `decoys` (N, 4) that no model was weighed against.

    The forest grows when scores are first read: not every round of a search needs them, and a mask never does.
    """

    columns: Columns  # models that the forest's rows are made of, without structures
    structures: Models
    decoys: Array
    problem: Problem
    forest: RuzHashForest

    @property
    def of_matches(self) -> Array:
        """Scores 2^(-h / c) of matches (n,)."""
        return self.grown.of_matches

    @cached
    def of_decoys(self) -> Array:
        """Scores of decoys (N,)."""
        return self.of_others(self.decoys, np.full(len(self.decoys), _NO_GROUP))

    @cached
    def grown(self) -> Grown:
        """Grow the forest on the matches."""
        (matches, _, families, parameters), columns, structures = self.problem, self.columns, self.structures
        # Structures have no samples, as they were fitted to many matches.
        no_samples = np.full((len(structures), int(families.sample_sizes.max())), -1)
        others = Columns(structures.matrices, structures.family_ids, np.zeros(len(structures)), no_samples)
        every = Columns.join([columns, others])
        residuals, groups = families.residuals(every, matches.data), matches.groups
        preferences, sums = embed(residuals, matches.unit, parameters, groups, every.samples, matches.weights)
        of_structures = weights_of_structures(structures, sums[len(columns) :], self.problem)
        every = replace(every, weights=np.concatenate([columns.weights, of_structures]))
        rows, largest = as_rows(preferences, every.weights, parameters.saturation)
        return Grown(every, largest, self.forest.fit_anomaly_scores(rows))

    def of_all(self, matches: MatchSet, rows: Rows, _: Problem) -> Array:
        """Return anomaly scores of all matches, of which the forest was grown on some `rows`."""
        if len(rows) == len(matches):
            return self.of_matches
        others, scores = np.setdiff1d(np.arange(len(matches)), rows), np.empty(len(matches))
        scores[rows], scores[others] = self.of_matches, self.of_others(matches.data[others], matches.groups[others])
        return scores

    def of_others(self, data: Array, groups: Rows) -> Array:
        """Return anomaly scores of correspondences (n, 4), of duplicate groups (n,), that the forest was not grown on."""
        matches, _, families, parameters = self.problem
        columns, largest, _ = self.grown
        residuals, no_weights = families.residuals(columns, data), np.zeros(len(data))
        preferences, _ = embed(residuals, matches.unit, parameters, groups, columns.samples, no_weights)
        rows, _ = as_rows(preferences, columns.weights, parameters.saturation, largest)
        return self.forest.anomaly_scores(rows)


def score(columns: Columns, structures: Models, decoys: Array, problem: Problem, rng: np.random.Generator) -> Scores:
    """Return the anomaly scores by a RuzHash forest of the most significant columns and structures."""
    parameters = problem.parameters
    columns = columns.take(np.sort(np.argsort(-columns.weights, kind="stable")[: parameters.n_columns]))
    forest = RuzHashForest(
        n_trees=parameters.n_trees,
        subsample_size=parameters.subsample_size,
        branching_factor=parameters.branching_factor,
        rng=rng,
        n_jobs=1,
    )
    return Scores(columns, structures, decoys, problem, forest.draw())


def weights_of_structures(structures: Models, sums: Array, problem: Problem) -> Array:
    """Return the weights (k,) of structures as columns, by sums (k,) of preferences: significances, `structure_weight` times.

    The matches of a sample have preferences too: a sample's size is subtracted from a sum.
    """
    matches, decoys, families, parameters = problem
    n_near, room = np.empty(len(structures), np.int64), np.empty(len(decoys))
    count_within(*families.residuals(structures, decoys), limit_of(matches.unit, parameters), room, n_near)
    shares = (sums - families.sample_sizes[structures.family_ids]) / matches.weights.sum()
    chance = chances_of(structures, len(decoys), problem) * (1.0 + n_near)
    return np.asarray(parameters.structure_weight * np.maximum(0.0, 1.0 - chance / np.maximum(shares, 1e-12)))
