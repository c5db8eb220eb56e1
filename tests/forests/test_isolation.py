"""What both forests share: the numbers of section 4, keys and rows of trees, and what a leaf tells of a row."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from ruzhash_cv import RuzHashForest, VoronoiForest
from ruzhash_cv.forests.isolation import SCORES, combine, depth_limit, draw_rows, expected_depths, leaf_value, tree_keys


@pytest.mark.parametrize(
    ("psi", "b", "depth"),
    [
        (125, 5, 3),
        (126, 5, 4),
        (256, 2, 8),
        (257, 2, 9),
        (256, 16, 2),
        (243, 3, 5),
        (1000, 10, 3),
        (1, 2, 0),
        (2, 2, 1),
    ],
)
def test_depth_limit_is_the_smallest_d_with_b_to_the_d_at_least_psi(psi: int, b: int, depth: int) -> None:
    assert depth_limit(psi, b) == depth
    assert b**depth >= psi
    assert depth == 0 or b ** (depth - 1) < psi


@pytest.mark.parametrize("b", [2, 3, 5, 16, 256])
def test_expected_depths_follow_the_formula(b: int) -> None:
    depths = expected_depths(300, b)
    np.testing.assert_allclose(depths, [naive.expected_depth(size, b) for size in range(301)], rtol=1e-12)
    assert (np.diff(depths) >= 0).all() or b == 2


def test_expected_depths_of_tiny_nodes() -> None:
    assert expected_depths(0, 2).tolist() == [0]
    assert expected_depths(1, 16).tolist() == [0, 0]
    assert expected_depths(2, 2).tolist() == [0, 0, 1]
    assert expected_depths(3, 2)[3] == pytest.approx(2 * (math.log(2) + 0.5772156649) - 4 / 3)


@settings(max_examples=60, deadline=None)
@given(key=st.integers(0, 2**64 - 1), n=st.integers(0, 40), share=st.floats(0, 1))
def test_rows_of_a_tree_and_keys_of_trees_equal_their_twins(key: int, n: int, share: float) -> None:
    psi = int(share * n)
    assert draw_rows(np.uint64(key), n, psi).tolist() == naive.draw_rows(key, n, psi)
    keys = np.empty(5, np.uint64)
    tree_keys(np.uint64(key), keys)
    assert keys.tolist() == [naive.mix(key, tree) for tree in range(5)]


# What a leaf tells


def test_a_leaf_of_ten_below_a_node_of_forty() -> None:
    depth, credit, size, parent, normaliser = 3, 1.5, 10, 40, 9.0
    values = [leaf_value(rule, depth, credit, size, parent, normaliser) for rule in range(len(SCORES))]
    expected = {"path_length": 4.5, "mean_score": 2 ** (-4.5 / 9.0), "relative_mass": 41 / 11, "vote": 1.0}
    assert dict(zip(SCORES, values, strict=True)) == pytest.approx(expected)
    vote = SCORES.index("vote")
    assert leaf_value(vote, 9, 0.0, size, parent, normaliser) == 0.5
    assert 0 < leaf_value(vote, 10, 0.0, size, parent, normaliser) < 1e-6


@pytest.mark.parametrize("rule", range(len(SCORES)))
def test_combined_scores_lie_in_zero_to_one(rule: int) -> None:
    psi, normaliser = 64, 10.0
    leaves = [(0, 0.0, 64, 64), (6, 4.0, 30, 64), (6, 0.0, 0, 64), (3, 1.0, 5, 5)]
    means = np.array([leaf_value(rule, *leaf, normaliser) for leaf in leaves])
    scores = combine(means, rule, normaliser, psi)
    assert (scores > 0).all()
    assert (scores <= 1).all()
    assert (combine(means, rule, 0.0, 1) == 1).all()


@pytest.mark.parametrize("score", SCORES)
def test_all_scores_are_high_for_anomalies(score: str) -> None:
    rng = np.random.default_rng(0)
    rows = np.zeros((120, 40))
    rows[:100] = (np.arange(40) // 10 == np.arange(100)[:, None] // 25) * rng.uniform(0.3, 1, (100, 40))
    rows[100:] = (rng.random((20, 40)) < 0.04) * rng.random((20, 40))
    for forest in (VoronoiForest(score=score), RuzHashForest(score=score)):
        scores = forest.fit_anomaly_scores(rows)
        assert ((scores > 0) & (scores <= 1)).all()
        assert stats.mannwhitneyu(scores[100:], scores[:100]).statistic / 2000 > 0.9
