"""From samples to hypotheses: the weight of a model, the greedy cover against its twin, and what the pool remembers."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import mismatches, problem_of
from two_views import motion, plane

from ruzhash_cv.filtering import PARAMETERS
from ruzhash_cv.hypotheses import Pool, greedy_cover, sample_hypotheses, significance
from ruzhash_cv.preferences import Embedded
from ruzhash_cv.problem import Problem

LINE = np.column_stack([np.linspace(0, 600, 60), np.linspace(0, 300, 60)])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), m=st.integers(0, 20), wanted=st.integers(1, 25))
def test_the_greedy_cover_equals_its_twin(seed: int, n: int, m: int, wanted: int) -> None:
    rng = np.random.default_rng(seed)
    preferences = (rng.random((m, n)) * (rng.random((m, n)) < 0.3)).astype(np.float32)
    of_matches, weights = rng.uniform(0.2, 1, n), rng.random(m) * (rng.random(m) < 0.8)
    kept, sums = of_matches.copy(), preferences @ np.maximum(of_matches, rng.choice([0.0, 1.0]))
    chosen = greedy_cover(Embedded(preferences, sums, np.zeros(m)), of_matches, weights, wanted)
    assert chosen.tolist() == naive.greedy_cover(preferences.astype(np.float64), of_matches, weights, wanted)
    np.testing.assert_array_equal(of_matches, kept)


@pytest.mark.parametrize("sample_size", [0.0, 4.0])
def test_a_model_s_weight_is_the_share_of_its_support_that_is_not_chance(sample_size: float) -> None:
    """max(0, 1 - D / S); how much single decoys prefer a model does not matter, only how many do."""
    problem, _ = problem_of(mismatches(90))
    total, n_decoys = problem.matches.weights.sum(), len(problem.decoys)
    pairs = np.array([(support, near) for support in (0.0, 0.1, 0.3, 0.9) for near in (0, 20, 200)])
    embedded = Embedded(np.zeros((len(pairs), 0), np.float32), pairs[:, 0] * total, pairs[:, 1])
    chance, share = 0.37 * (1 + pairs[:, 1]) / (1 + n_decoys), (embedded.sums - sample_size) / total
    expected = [1.0 - c / s if s > c else 0.0 for c, s in zip(chance, share, strict=True)]
    assert 0 < np.count_nonzero(expected) < len(expected)
    np.testing.assert_allclose(significance(embedded, problem, 0.37, sample_size), expected, rtol=1e-12)


def sampled(data: np.ndarray, family_id: int, proposal: np.ndarray | None = None) -> tuple[Pool, Problem]:
    problem, rng = problem_of(data)
    proposal = problem.matches.weights if proposal is None else proposal
    return sample_hypotheses(Pool(), problem, family_id, proposal, 100, rng), problem


@pytest.mark.parametrize("family_id", [0, 1])
def test_the_pool_has_the_best_models_as_columns_and_remembers_their_samples(family_id: int) -> None:
    data = np.vstack([(plane, motion)[family_id](150, 0.5), mismatches(50)])
    pool, problem = sampled(data, family_id)
    (columns,), family = pool.columns, problem.families[family_id]
    assert 0 < len(columns) <= PARAMETERS.n_refits < pool.n_models
    assert (columns.weights > 0).all()
    assert (columns.family_ids == family_id).all()
    np.testing.assert_allclose(np.linalg.norm(columns.models, axis=1), 1.0)
    # Samples are as wide as the largest; what one has less is no group's number.
    assert columns.sample_groups.shape == (len(columns), 7)
    own, others = np.split(columns.sample_groups, [family.sample_size], axis=1)
    assert np.isin(own, problem.matches.groups).all()
    assert all(len(set(row)) == family.sample_size for row in own.tolist())
    assert (others == -1).all()


def test_models_are_sampled_from_what_the_proposal_has_weight_for() -> None:
    data = np.vstack([plane(100, 0.5), mismatches(100)])
    problem, _ = problem_of(data)
    of_plane = np.isin(problem.matches.data[:, 0], problem.matches.frame.enter(data[:100, :2], data[:100, 2:])[:, 0])
    pool, _ = sampled(data, 0, np.where(of_plane, problem.matches.weights, 0.0))
    groups = pool.columns[0].sample_groups
    assert set(groups[groups >= 0]) <= set(problem.matches.groups[of_plane])


def test_rejected_samples_are_counted_by_reason() -> None:
    pool, _ = sampled(np.hstack([LINE, LINE + 3.0]), 0)
    assert (len(pool.rejected), pool.n_models) == (4, 0)
    assert pool.rejected[1] > 0
    assert pool.sampled(5, [1, 2, 3, 4]).rejected == tuple(np.add(pool.rejected, [1, 2, 3, 4]))
