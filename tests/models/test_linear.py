"""Sums and eigenvectors behind the fits of two views."""

from __future__ import annotations

import naive
import numpy as np
import pytest

from ruzhash_cv.models.linear import least_vectors, quadratic_forms, unit_norm


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


def test_forms_of_rays_are_whitened() -> None:
    rays, weights = 700.0 * np.random.default_rng(0).normal(size=(6, 30)), np.random.default_rng(1).random((2, 30))
    forms, _, _ = quadratic_forms(rays, weights, np.eye(6))
    data = np.hstack([np.zeros((30, 4)), rays.T])
    for form, each in zip(forms, weights, strict=True):
        np.testing.assert_allclose(form, naive.whitened_form(data, each), atol=1e-8)
