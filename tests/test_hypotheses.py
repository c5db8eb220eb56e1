"""From samples to hypotheses: the weight of a model, the greedy cover against its twin, and what the pool remembers."""

from __future__ import annotations

from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stage_cases import mismatches, problem_of
from two_views import MAKE, motion, plane

from ruzhash_cv.filtering import PARAMETERS
from ruzhash_cv.hypotheses import Columns, Pool, greedy_cover, refits, sample_hypotheses, significance
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
def test_a_model_s_weight_is_the_cubed_share_of_its_support_that_is_not_chance(sample_size: float) -> None:
    """max(0, 1 - D / S)^3; how much single decoys prefer a model does not matter, only how many do."""
    problem, _ = problem_of(mismatches(90))
    total, n_decoys = problem.matches.weights.sum(), len(problem.decoys)
    pairs = np.array([(support, near) for support in (0.0, 0.1, 0.3, 0.9) for near in (0, 20, 200)])
    embedded = Embedded(np.zeros((len(pairs), 0), np.float32), pairs[:, 0] * total, pairs[:, 1])
    chance, share = 0.37 * (1 + pairs[:, 1]) / (1 + n_decoys), (embedded.sums - sample_size) / total
    expected = [(1.0 - c / s) ** 3 if s > c else 0.0 for c, s in zip(chance, share, strict=True)]
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
    assert 0 < len(columns) <= (PARAMETERS.motion_refits if family_id else PARAMETERS.plane_refits) < pool.n_models
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


def test_each_model_tried_is_counted_with_its_refits() -> None:
    assert Pool(n_models=50).n_tried(3) == 200


@pytest.mark.parametrize("name", MAKE)
def test_refits_are_of_narrower_and_narrower_radii(name: str) -> None:
    """A round's models begin with those of the round before."""
    problem, _ = problem_of(np.vstack([MAKE[name](80, 0.5), mismatches(40)]))
    family = problem.families[int(name == "fundamental")]
    asked: list[tuple[np.ndarray, float]] = []

    def refit(family: object, matches: object, models: np.ndarray, radii: np.ndarray) -> np.ndarray:
        asked.append((models, float(radii[0] / problem.matches.unit)))
        return models + 1.0

    found = refits(replace(problem, stages=replace(problem.stages, refit=refit)), family, np.zeros((2, 9)))
    np.testing.assert_allclose([radius for _, radius in asked], PARAMETERS.refit_radii)
    assert (np.diff(PARAMETERS.refit_radii) < 0).all()
    np.testing.assert_array_equal(found[:, 0], [1, 1, 2, 2, 3, 3])


def test_columns_are_taken_and_joined_row_by_row() -> None:
    columns = Columns(
        np.arange(36.0).reshape(4, 9), np.array([0, 1, 0, 1], np.uint8), np.arange(4.0), np.eye(4, 7, dtype=int)
    )
    joined = Columns.join(
        [columns.take(np.array([2, 0])), columns.take(np.zeros(4, bool)), columns.take(np.array([3]))]
    )
    for name in ("models", "family_ids", "weights", "sample_groups"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(columns, name)[[2, 0, 3]])
