"""Sums and eigenvectors behind the fits of two views."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from two_views import plane

from ruzhash_cv.models.linear import homogeneous, least_vectors, quadratic_forms, unit_norm


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 9), m=st.integers(0, 4))
def test_least_vectors_equal_their_twin(seed: int, n: int, m: int) -> None:
    factors = np.random.default_rng(seed).normal(size=(m, n + 5, n))
    grams = factors.transpose(0, 2, 1) @ factors
    for gram, found in zip(grams, least_vectors(np.tril(grams)), strict=True):
        twin, values = naive.least_vector(gram), np.linalg.eigvalsh(gram)
        assert np.linalg.norm(found) == pytest.approx(1)
        # Inverse iteration shrinks what is left of the next eigenvector by the ratio of their values, and stops in the end.
        if n == 1 or values[1] > 1.5 * values[0]:
            assert found @ gram @ found <= values[0] * (1 + 1e-3)
        if n == 1 or values[1] > 3 * values[0]:
            assert abs(found @ twin) > 1 - 1e-6


def test_least_vectors_of_degenerate_matrices_are_unit_vectors_and_of_no_numbers_none() -> None:
    for matrix in (np.eye(9), np.diag([1.0, 0, 0]), np.full((4, 4), 1.0)):
        vector = least_vectors(matrix[None])[0]
        assert np.linalg.norm(vector) == pytest.approx(1)
        assert vector @ matrix @ vector <= np.linalg.eigvalsh(matrix)[0] + 1e-9
    assert np.isnan(least_vectors(np.full((2, 9, 9), np.nan))).all()


def test_a_zero_matrix_has_no_unit_norm() -> None:
    models = unit_norm(np.array([[0.0] * 9, [2.0] * 9]))
    assert np.isnan(models[0]).all()
    np.testing.assert_allclose(models[1], 1 / 3)


def test_points_are_normalised_to_root_mean_square_distance_root_two() -> None:
    data, weights = plane(25), np.random.default_rng(0).uniform(0, 1, (2, 25))
    forms, into1, into2 = quadratic_forms(homogeneous(data), weights, np.eye(6), False)
    for row in range(2):
        np.testing.assert_allclose(into1[row], naive.normaliser(data[:, :2], weights[row]))
        np.testing.assert_allclose(into2[row], naive.normaliser(data[:, 2:], weights[row]))
        first, second = naive.apply(into1[row], data[:, :2]), naive.apply(into2[row], data[:, 2:])
        equations = np.einsum("ni,nj->nij", naive.homogeneous(second), naive.homogeneous(first)).reshape(-1, 9)
        np.testing.assert_allclose(forms[row], (equations * weights[row][:, None]).T @ equations, atol=1e-8)
