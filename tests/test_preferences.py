"""Preferences of several noise scales, duplicate groups and rows for the forest, against dense NumPy."""

from __future__ import annotations

import naive
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv.preferences import _WIDTH, CUT, N_SCALES, SATURATION, WIDEST_SCALE, as_rows, embed, embed_and_sum


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.integers(0, 6), n=st.integers(0, 30), length=st.floats(1e-3, 1e3))
def test_embedding_equals_its_twin(seed: int, m: int, n: int, length: float) -> None:
    rng = np.random.default_rng(seed)
    residuals = length * WIDEST_SCALE * CUT * rng.uniform(0.0, 1.3, (m, n)) ** 2
    residuals[rng.random((m, n)) < 0.1] = np.inf
    residuals[rng.random((m, n)) < 0.1] = np.nan
    groups, members = rng.integers(0, 12, n), rng.integers(-1, 12, (m, 4))
    widest = WIDEST_SCALE * length
    expected = naive.embed(residuals, [widest / 3.0**scale for scale in range(N_SCALES)], CUT * widest, groups, members)
    # Single precision; the powers of the kernel lose a digit.
    np.testing.assert_allclose(embed(residuals**2, length, groups, members), expected, rtol=1e-5, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.integers(0, 5), n=st.integers(0, 20), n_others=st.integers(0, 20))
def test_sums_are_by_votes_and_of_others_those_with_a_preference_are_counted(
    seed: int, m: int, n: int, n_others: int
) -> None:
    rng = np.random.default_rng(seed)
    squared, members = 90.0 * rng.random((m, n + n_others)), rng.integers(-1, 12, (m, 4))
    groups, votes = rng.integers(0, 12, n), rng.random(n)
    all_groups = np.append(groups, np.full(n_others, -2))
    expected = embed(squared, 1.0, all_groups, members)
    preferences, sums, counts = embed_and_sum(squared, 1.0, groups, members, votes)
    np.testing.assert_array_equal(preferences, expected[:, :n])
    np.testing.assert_allclose(sums, preferences @ votes)
    np.testing.assert_array_equal(counts, (expected[:, n:] > 0).sum(axis=1))


def test_groups_beyond_the_residuals_are_left_alone() -> None:
    squared, nobody = np.zeros((3, 5)), np.full((3, 1), -1)
    many = embed(squared, 1.0, np.arange(900), nobody)
    np.testing.assert_array_equal(many, embed(squared, 1.0, np.arange(5), nobody))


def test_nearer_is_never_preferred_less_and_nothing_beyond_the_cut() -> None:
    residuals = np.linspace(0.0, 2.0 * CUT * WIDEST_SCALE, 500)
    nobody, groups = np.full((1, 1), -1), np.arange(500)
    preferences = embed(residuals[None] ** 2, 1.0, groups, nobody)[0]
    assert preferences[0] == 1.0
    assert (np.diff(preferences) <= 0).all()
    np.testing.assert_array_equal(preferences > 0, residuals <= CUT * WIDEST_SCALE)


def test_all_of_a_sample_s_duplicate_groups_have_no_preference_for_its_model() -> None:
    groups = np.array([0, 0, 1, 2, 2, 3])
    preferences = embed(np.zeros((2, 6)), 1.0, groups, np.array([[0, 1], [2, -1]]))
    assert (preferences > 0).tolist() == [
        [False, False, False, True, True, True],
        [True, True, True, False, False, True],
    ]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), m=st.integers(1, _WIDTH), n=st.integers(1, 12))
def test_a_row_passes_a_node_with_a_probability_that_tells_its_agreement(seed: int, m: int, n: int) -> None:
    """1 - prod(1 - p) = 1 - exp(-c sum(w g) / Lambda), Lambda being the sum of the row that agrees most."""
    rng = np.random.default_rng(seed)
    preferences, weights = rng.random((m, n)).astype(np.float32), rng.uniform(0.0, 1.0, m)
    agreement = weights @ preferences
    rows = as_rows(preferences * weights.astype(np.float32)[:, None], agreement.max())
    assert rows.shape == (n, _WIDTH)
    passing = 1.0 - np.prod(1.0 - rows.astype(np.float64), axis=1)
    np.testing.assert_allclose(passing, 1.0 - np.exp(-SATURATION * agreement / agreement.max()), rtol=1e-4)
