"""Models of uniform samples, the paper's preferences and distances between their rows, against dense NumPy."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from ruzhash_cv import paper
from ruzhash_cv.models import Circles, FundamentalMatrices, Homographies, Lines, ModelFamily

PREFERENCES = st.integers(1, 7).flatmap(
    lambda m: arrays(np.float32, st.tuples(st.integers(1, 6), st.just(m)), elements=st.floats(0, 1, width=32))
)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (600, 40), (0, 4), (4, 0)])
def test_preferences_equal_the_dense_formula(shape: tuple[int, int], binary: bool) -> None:
    residuals = np.random.default_rng(0).normal(0, 4, shape)
    rows = paper.embed_preferences(residuals, sigma=1.5, k=2.0, binary=binary)
    assert (rows.shape, rows.dtype) == (shape, np.float32)
    values = np.ones(shape) if binary else np.exp(-(residuals**2) / (2 * 1.5**2))
    np.testing.assert_allclose(rows.toarray(), np.where(np.abs(residuals) <= 2.0 * 1.5, values, 0.0), rtol=1e-6)


def test_residuals_that_are_not_numbers_agree_with_nothing() -> None:
    for wide in (1.0, 1e300):
        rows = paper.embed_preferences([[np.nan, np.inf, -np.inf, 0.0]], sigma=wide, k=wide)
        assert rows.toarray().tolist() == [[0, 0, 0, 1]]


def test_a_residual_of_exactly_eps_still_counts() -> None:
    rows = paper.embed_preferences([[3.0, np.nextafter(3.0, 4.0)]], sigma=1.0, k=3.0, binary=True)
    assert rows.toarray().tolist() == [[1, 0]]


def test_preferences_in_blocks_equal_preferences_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.random.default_rng(0).random((30, 2))
    models, _ = paper.sample_models(data, Lines(), n_models=47)
    whole = paper.embed_preferences(np.sqrt(Lines().squared_residuals(data, models)).T, sigma=0.05, k=2.0)
    monkeypatch.setattr("ruzhash_cv.paper.preferences._RESIDUALS_AT_ONCE", 100)
    parts = paper.family_preferences(data, Lines(), models, sigma=0.05, k=2.0)
    np.testing.assert_array_equal(parts.toarray(), whole.toarray())


# Distances


@settings(max_examples=60, deadline=None)
@given(PREFERENCES)
def test_distances_equal_their_numpy_twins(rows: np.ndarray) -> None:
    wide = rows.astype(np.float64)
    for name in ("ruzicka_distance", "tanimoto_distance"):
        expected = [[getattr(naive, name)(p, q) for q in wide] for p in wide]
        np.testing.assert_allclose(getattr(paper, name)(rows), expected, atol=1e-6)
    expected = [[naive.ruzicka_distance(p, q) for q in (wide > 0) * 1.0] for p in (wide > 0) * 1.0]
    np.testing.assert_allclose(paper.jaccard_distance(rows), expected, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(PREFERENCES)
def test_distances_are_symmetric_bounded_and_the_same_for_sparse_rows(rows: np.ndarray) -> None:
    for distance in (paper.ruzicka_distance, paper.tanimoto_distance, paper.jaccard_distance):
        full = distance(rows)
        np.testing.assert_allclose(full, full.T, atol=1e-12)
        assert full.min() >= 0
        assert full.max() <= 1
        np.testing.assert_allclose(np.diag(full)[rows.any(axis=1)], 0, atol=1e-12)
        np.testing.assert_array_equal(distance(sparse.csr_array(rows), rows[:1]), distance(rows, rows[:1]))
        np.testing.assert_array_equal(distance(sparse.coo_array(rows)), full)


def test_repeated_entries_of_a_sparse_row_are_summed() -> None:
    twice = sparse.csr_array((np.array([0.25, 0.25]), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))
    assert paper.ruzicka_distance(twice, [[0.5, 0.0]]).item() == 0.0


# Models of uniform samples


@pytest.mark.parametrize("family", [Lines(), Circles(), Homographies(), FundamentalMatrices()])
def test_degenerate_samples_are_dropped_and_counted(family: ModelFamily) -> None:
    d = 2 if family.sample_size < 4 else 4
    models, n_degenerate = paper.sample_models(np.ones((20, d)), family, n_models=10)
    assert np.isfinite(models).all()
    assert len(models) == 0 or family.name == "fundamental"
    assert n_degenerate + len(models) >= 10
    few, _ = paper.sample_models(np.ones((family.sample_size - 1, d)), family, n_models=10)
    assert len(few) == 0
    assert paper.family_preferences(np.ones((3, d)), family, few, sigma=1.0).shape == (3, 0)


def test_samples_are_uniform_without_repetition() -> None:
    data = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2])
    drawn: list[np.ndarray] = []

    class Recorder(Lines):
        """Three points a sample; its models are the first of them."""

        def solve(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            drawn.append(samples[..., 0])
            return samples[:, 0], np.arange(len(samples))

    models, n_degenerate = paper.sample_models(data, Recorder(sample_size=3), n_models=6000)
    rows = np.sort(np.vstack(drawn), axis=1)
    assert (np.diff(rows, axis=1) > 0).all()
    assert (len(models), n_degenerate) == (6000, 0)
    # Binomial(6000, 1/20) for each of the 20 triples, five standard deviations.
    counts = np.unique(rows, axis=0, return_counts=True)[1]
    assert len(counts) == 20
    assert np.abs(counts - 300).max() < 5 * np.sqrt(300 * 0.95)
