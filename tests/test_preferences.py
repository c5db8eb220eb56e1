"""Preferences and distances between their rows, against dense NumPy."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from ruzhash_cv import embed_preferences, jaccard_distance, ruzicka_distance, tanimoto_distance
from ruzhash_cv.preferences import _WIDTH, CUT, N_SCALES, SATURATION, WIDEST_SCALE, as_rows, embed, embed_and_sum

PREFERENCES = st.integers(1, 7).flatmap(
    lambda m: arrays(np.float32, st.tuples(st.integers(1, 6), st.just(m)), elements=st.floats(0, 1, width=32))
)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (600, 40), (0, 4), (4, 0)])
def test_preferences_equal_the_dense_formula(shape: tuple[int, int], binary: bool) -> None:
    residuals = np.random.default_rng(0).normal(0, 4, shape)
    rows = embed_preferences(residuals, sigma=1.5, k=2.0, binary=binary)
    assert (rows.shape, rows.dtype) == (shape, np.float32)
    values = np.ones(shape) if binary else np.exp(-(residuals**2) / (2 * 1.5**2))
    np.testing.assert_allclose(rows.toarray(), np.where(np.abs(residuals) <= 2.0 * 1.5, values, 0.0), rtol=1e-6)


def test_residuals_that_are_not_numbers_agree_with_nothing() -> None:
    rows = embed_preferences([[np.nan, np.inf, -np.inf, 0.0]], sigma=1.0)
    assert rows.toarray().tolist() == [[0, 0, 0, 1]]


def test_a_residual_of_exactly_eps_still_counts() -> None:
    rows = embed_preferences([[3.0, np.nextafter(3.0, 4.0)]], sigma=1.0, k=3.0, binary=True)
    assert rows.toarray().tolist() == [[1, 0]]


def test_excluded_rows_do_not_vote_and_residuals_are_not_modified() -> None:
    residuals = np.zeros((4, 3))
    residuals.flags.writeable = False
    dense = embed_preferences(residuals, sigma=1.0, exclude=[[0, 1], [2, 3], [0, 3]]).toarray()
    assert dense.tolist() == [[0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0]]


# What the search works with: several noise scales, duplicate groups, rows for the forest


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


# Distances


@settings(max_examples=60, deadline=None)
@given(PREFERENCES)
def test_distances_equal_their_numpy_twins(rows: np.ndarray) -> None:
    wide = rows.astype(np.float64)
    for distance, twin in ((ruzicka_distance, naive.ruzicka_distance), (tanimoto_distance, naive.tanimoto_distance)):
        expected = [[twin(p, q) for q in wide] for p in wide]
        np.testing.assert_allclose(distance(rows), expected, atol=1e-6)
    expected = [[naive.ruzicka_distance(p, q) for q in (wide > 0) * 1.0] for p in (wide > 0) * 1.0]
    np.testing.assert_allclose(jaccard_distance(rows), expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(PREFERENCES)
def test_distances_are_symmetric_bounded_and_the_same_for_sparse_rows(rows: np.ndarray) -> None:
    for distance in (ruzicka_distance, tanimoto_distance, jaccard_distance):
        full = distance(rows)
        np.testing.assert_allclose(full, full.T, atol=1e-12)
        assert full.min() >= 0
        assert full.max() <= 1
        np.testing.assert_allclose(np.diag(full)[rows.any(axis=1)], 0, atol=1e-12)
        np.testing.assert_array_equal(distance(sparse.csr_array(rows), rows[:1]), distance(rows, rows[:1]))
        np.testing.assert_array_equal(distance(sparse.coo_array(rows)), full)


def test_rows_that_share_nothing_are_at_distance_one() -> None:
    rows = np.random.default_rng(0).random((40, 30)).astype(np.float32)
    first, second = rows * ([1, 0] * 15), rows * ([0, 1] * 15)
    for distance in (ruzicka_distance, tanimoto_distance, jaccard_distance):
        found = distance(first, second)
        assert found.max() <= 1.0
        np.testing.assert_allclose(found, 1.0, atol=1e-14)


def test_two_rows_of_zeros_are_at_distance_one() -> None:
    for distance in (ruzicka_distance, tanimoto_distance, jaccard_distance):
        assert distance(np.zeros((2, 3))).tolist() == [[1, 1], [1, 1]]


def test_all_three_distances_agree_on_binary_rows() -> None:
    rows = (np.random.default_rng(0).random((9, 12)) < 0.4).astype(float)
    np.testing.assert_allclose(ruzicka_distance(rows), jaccard_distance(rows), atol=1e-12)
    np.testing.assert_allclose(tanimoto_distance(rows), jaccard_distance(rows), atol=1e-12)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[0.2, 1.5]], r"`preferences` must lie in \[0, 1\], got values from 0.2\d* to 1.5"),
        ([[0.0, -0.5]], r"`preferences` must lie in \[0, 1\], got values from -0.5"),
        ([[0.0, np.nan]], r"`preferences` must lie in \[0, 1\], got values from nan"),
        ([0.0, 1.0], r"`preferences` must be a numeric array of shape \(n, m\), got float64 \(2,\)"),
        ([["a"]], "`preferences` must be a numeric array"),
    ],
)
def test_rows_that_are_no_preferences_are_named(rows: object, message: str) -> None:
    for distance in (ruzicka_distance, tanimoto_distance, jaccard_distance):
        with pytest.raises(ValueError, match=message):
            distance(rows)


def test_rows_of_unequal_width_are_named() -> None:
    with pytest.raises(ValueError, match="as many columns, got 3 and 2"):
        ruzicka_distance(np.zeros((1, 3)), np.zeros((1, 2)))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"sigma": 0.0}, ValueError, "`sigma` must be a finite number above 0, got 0.0"),
        ({"sigma": "1"}, TypeError, "`sigma` must be a number, got '1'"),
        ({"sigma": 1.0, "k": -1}, ValueError, "`k` must be a finite number above 0, got -1"),
        ({"sigma": 1.0, "binray": True}, TypeError, "binray"),
    ],
)
def test_bad_options_are_named(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        embed_preferences(np.zeros((2, 2)), **arguments)
    with pytest.raises(ValueError, match=r"`residuals` must have shape \(n, m\), got \(2,\)"):
        embed_preferences(np.zeros(2), sigma=1.0)
