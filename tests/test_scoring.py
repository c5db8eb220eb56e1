"""Scores are those of one RuzHash forest, grown on matches and compared with decoys."""

from __future__ import annotations

import copy
from dataclasses import replace

import naive
import numpy as np
import pytest
from stage_cases import found_in, matches_of, mismatches, problem_of
from two_views import motion

from ruzhash_cv import RuzHashForest
from ruzhash_cv.decoys import decoys_of_unexplained
from ruzhash_cv.filtering import PARAMETERS, STAGES, score_all, subsample
from ruzhash_cv.hypotheses import Columns
from ruzhash_cv.problem import Problem
from ruzhash_cv.scoring import Scores, columns_of, most_significant, score
from ruzhash_cv.search import Estimate

N_TRUE = 150
DATA = np.vstack([motion(N_TRUE, 0.7), mismatches(100)])
NO_GROUP = -2


@pytest.fixture(scope="module")
def found() -> tuple[Estimate, Problem]:
    return found_in(DATA)


def rows_of(scores: Scores, problem: Problem, data: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The rows of a forest, from their formula."""
    columns, unit = scores.columns, problem.matches.unit
    residuals = np.sqrt(problem.families.squared_residuals(columns, data))
    widths = list(unit * PARAMETERS.scales)
    preferences = naive.embed(residuals, widths, unit * PARAMETERS.preference_limit, groups, columns.sample_groups)
    agreement = columns.weights @ preferences
    assert agreement.max() <= scores.largest * (1 + 1e-6) or groups[0] == NO_GROUP
    weighted = columns.weights[:, None] * preferences
    return np.asarray(1.0 - np.exp(-PARAMETERS.saturation * weighted.T / scores.largest))


def test_scores_are_two_to_the_minus_path_length_in_one_forest_over_its_normaliser(
    found: tuple[Estimate, Problem],
) -> None:
    estimate, problem = found
    matches, columns = problem.matches, estimate.scores.columns
    # As if the first group had been in each sample: its matches have no preference, and decoys have.
    columns = replace(
        columns, sample_groups=np.hstack([columns.sample_groups[:, :6], np.zeros((len(columns), 1), int)])
    )
    unexplained, rng = np.where(np.arange(len(matches)) % 3 == 0, matches.weights, 0.0), np.random.default_rng(7)
    scores = score(columns, estimate.structures, unexplained, problem, copy.deepcopy(rng))
    np.testing.assert_array_equal(scores.decoys, decoys_of_unexplained(matches, unexplained, PARAMETERS, rng))
    forest = RuzHashForest(
        n_trees=PARAMETERS.n_trees, subsample_size=PARAMETERS.subsample_size,
        branching_factor=PARAMETERS.branching_factor, rng=rng,
    )  # fmt: skip
    lengths = forest.fit_path_lengths(rows_of(scores, problem, matches.data, matches.groups))
    c = np.log(PARAMETERS.subsample_size) / np.log(PARAMETERS.branching_factor)
    np.testing.assert_allclose(scores.of_matches, 2.0 ** (-lengths / c), rtol=2e-2)
    # Decoys are in no sample, and train no tree.
    rows = rows_of(scores, problem, scores.decoys, np.full(len(scores.decoys), NO_GROUP))
    np.testing.assert_allclose(scores.of_decoys, 2.0 ** (-forest.path_lengths(rows) / c), rtol=2e-2)


def test_decoys_have_the_scores_of_matches_that_the_forest_was_not_grown_on(found: tuple[Estimate, Problem]) -> None:
    estimate, problem = found
    scores = estimate.scores
    nowhere = np.full(len(scores.decoys), NO_GROUP)
    np.testing.assert_array_equal(scores.of_others(problem, scores.decoys, nowhere), scores.of_decoys)


def test_mismatches_and_decoys_look_worse_than_matches_of_structures(found: tuple[Estimate, Problem]) -> None:
    estimate, problem = found
    of_matches = estimate.scores.of_matches[problem.matches.where]
    good = np.quantile(of_matches[:N_TRUE], 0.95)
    assert np.median(of_matches[N_TRUE:]) > good
    assert np.median(estimate.scores.of_decoys) > good
    assert ((of_matches > 0) & (of_matches <= 1)).all()


def test_the_last_columns_are_the_structures_which_no_sample_made(found: tuple[Estimate, Problem]) -> None:
    estimate, problem = found
    columns, k = estimate.scores.columns, len(estimate.structures)
    assert 0 < k <= len(columns) <= PARAMETERS.n_columns + k
    last = columns.take(np.arange(len(columns) - k, len(columns)))
    np.testing.assert_array_equal(last.models, estimate.structures.models)
    assert (last.sample_groups == -1).all()
    # Without a sample to leave out a structure weighs no less than a column, and `structure_weight` times as much.
    np.testing.assert_array_equal(last.weights, columns_of(estimate.structures, problem).weights)
    assert (last.weights > 1.0).any()
    assert (last.weights <= PARAMETERS.structure_weight).all()


def test_columns_of_most_weight_stay_in_their_order() -> None:
    weights = np.array([0.1, 0.9, 0.5, 0.9, 0.0])
    columns = Columns(np.zeros((5, 9)), np.arange(5, dtype=np.uint8), weights, np.zeros((5, 7), int))
    assert most_significant(columns, 3).family_ids.tolist() == [1, 2, 3]
    assert most_significant(columns, 9).family_ids.tolist() == [0, 1, 2, 3, 4]


def test_matches_beyond_those_searched_are_scored_by_the_same_forest() -> None:
    every = matches_of(np.vstack([motion(700, 0.5), mismatches(300)]))
    searched, rows = subsample(every, 400, STAGES, np.random.default_rng(0))
    pixels = np.hstack([searched.data[:, :2], searched.data[:, 2:]]) / every.frame.scale
    estimate, _ = found_in(pixels)
    problem, _ = problem_of(pixels)
    scores, others = score_all(estimate, problem, every, rows), np.setdiff1d(np.arange(len(every)), rows)
    assert (len(rows), len(others)) == (400, len(every) - 400)
    np.testing.assert_array_equal(scores[rows], estimate.scores.of_matches)
    expected = estimate.scores.of_others(problem, every.data[others], every.groups[others])
    np.testing.assert_array_equal(scores[others], expected)
