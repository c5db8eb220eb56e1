"""Preferences and distances between their rows, against dense NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from ruzhash_cv import embed_preferences, jaccard_distance, ruzicka_distance, tanimoto_distance
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY
from ruzhash_cv.preferences import agree
from ruzhash_cv.residuals import pack_models, residual_kernel

PREFERENCES = st.integers(1, 7).flatmap(
    lambda m: arrays(np.float32, st.tuples(st.integers(1, 6), st.just(m)), elements=st.floats(0, 1, width=32))
)


def embed_twin(residuals: np.ndarray, sigma: float, k: float, binary: bool) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        near = np.abs(residuals) <= k * sigma
        return np.where(near, 1.0 if binary else np.exp(-(residuals**2) / (2 * sigma**2)), 0.0)


def ruzicka_twin(p: np.ndarray, q: np.ndarray) -> float:
    union = np.maximum(p, q).sum()
    return float(1 - np.minimum(p, q).sum() / union) if union > 0 else 1.0


def tanimoto_twin(p: np.ndarray, q: np.ndarray) -> float:
    union = p @ p + q @ q - p @ q
    return float(1 - p @ q / union) if union > 0 else 1.0


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (600, 40), (0, 4), (4, 0)])
def test_preferences_equal_the_dense_formula(shape: tuple[int, int], binary: bool) -> None:
    residuals = np.random.default_rng(0).normal(0, 4, shape)
    rows = embed_preferences(residuals, sigma=1.5, k=2.0, binary=binary)
    assert (rows.shape, rows.dtype) == (shape, np.float32)
    np.testing.assert_allclose(rows.toarray(), embed_twin(residuals, 1.5, 2.0, binary), rtol=1e-6)


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


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("n", [0, 1, 3000])
def test_agreement_equals_the_dense_formula_with_scales_and_places(n: int, n_jobs: int) -> None:
    rng = np.random.default_rng(1)
    m = 301
    points = rng.uniform(-1, 1, (4, n))
    matrices = np.eye(3) + 0.1 * rng.normal(size=(m, 3, 3))
    kinds = np.repeat(np.array([HOMOGRAPHY, FUNDAMENTAL], np.uint8), [m - 100, 100])
    packed = np.vstack([pack_models(matrices[:-100], HOMOGRAPHY), pack_models(matrices[-100:], FUNDAMENTAL)])
    residuals = residual_kernel(points, packed, kinds).T
    reaches, sigmas, weights = rng.uniform(0.5, 2, m), rng.uniform(0.1, 0.5, m), rng.uniform(0.1, 1, m)
    votes, places, makers = rng.uniform(0, 1, n), rng.integers(0, 40, n), rng.integers(-1, 40, (m, 4))
    columns, sums = agree(points, votes, places, packed, kinds, makers, reaches, sigmas, n_jobs=n_jobs)

    allowed = (residuals <= reaches) & ~(places[:, None, None] == makers[None]).any(axis=2)
    assert n < 3000 or 0.05 < allowed.mean() < 0.95
    assert len(columns.values) == allowed.sum()
    scales = [sigmas, sigmas / 3, sigmas / 9]
    expected = np.where(allowed, np.mean([np.exp(-(residuals**2) / (2 * s**2)) for s in scales], axis=0), 0.0)
    # Single precision; the ninth powers of the kernel lose a digit.
    np.testing.assert_allclose(columns.to_rows(np.ones(m)).toarray(), expected, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(columns.to_rows(weights).toarray(), weights * expected, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(columns.row_sums(weights), expected @ weights, rtol=1e-5)
    np.testing.assert_allclose(sums, votes @ expected, rtol=1e-5)


@settings(max_examples=60, deadline=None)
@given(PREFERENCES)
def test_distances_equal_their_numpy_twins(rows: np.ndarray) -> None:
    wide = rows.astype(np.float64)
    for distance, twin in ((ruzicka_distance, ruzicka_twin), (tanimoto_distance, tanimoto_twin)):
        expected = [[twin(p, q) for q in wide] for p in wide]
        np.testing.assert_allclose(distance(rows), expected, atol=1e-6)
    expected = [[ruzicka_twin(p, q) for q in (wide > 0) * 1.0] for p in (wide > 0) * 1.0]
    np.testing.assert_allclose(jaccard_distance(rows), expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(PREFERENCES)
def test_distances_are_symmetric_bounded_and_the_same_for_sparse_rows(rows: np.ndarray) -> None:
    for distance in (ruzicka_distance, tanimoto_distance, jaccard_distance):
        full = distance(rows)
        np.testing.assert_allclose(full, full.T, atol=1e-12)
        assert full.min() >= 0
        assert full.max() <= 1 + 1e-12
        np.testing.assert_allclose(np.diag(full)[rows.any(axis=1)], 0, atol=1e-12)
        np.testing.assert_array_equal(distance(sparse.csr_array(rows), rows[:1]), distance(rows, rows[:1]))
        np.testing.assert_array_equal(distance(sparse.coo_array(rows)), full)


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
