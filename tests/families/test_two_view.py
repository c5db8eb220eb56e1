"""Sums and eigenvectors behind the fits, and the fits of two views, against singular value decompositions."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruzhash_cv.families.two_view import least_vectors, unit_norm, weighted_products
from ruzhash_cv.matchset import Frame
from scipy.optimize import least_squares
from two_views import motion, plane, random_fundamental_matrices, random_homographies

from ruzhash_cv.families import FundamentalMatrices, Homographies, TwoViewFamily

Array = np.ndarray
MAKE = {"homography": plane, "fundamental": motion}
TWINS = {"homography": naive.fit_homography, "fundamental": naive.fit_fundamental_matrix}
RANDOM = {"homography": random_homographies, "fundamental": random_fundamental_matrices}
both = pytest.mark.parametrize("family", [Homographies(), FundamentalMatrices()], ids=lambda family: family.name)


def apart(first: Array, second: Array) -> float:
    """Return how far two models are apart, whatever their signs."""
    return min(np.abs(first.ravel() - second.ravel()).max(), np.abs(first.ravel() + second.ravel()).max())


# Eigenvectors


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


def test_least_vectors_of_degenerate_matrices_are_unit_vectors() -> None:
    for matrix in (np.eye(9), np.diag([1.0, 0, 0]), np.full((4, 4), 1.0)):
        vector = least_vectors(matrix[None])[0]
        assert np.linalg.norm(vector) == pytest.approx(1)
        assert vector @ matrix @ vector <= np.linalg.eigvalsh(matrix)[0] + 1e-9


def test_least_vectors_of_what_is_no_number_are_none() -> None:
    assert np.isnan(least_vectors(np.full((2, 9, 9), np.nan))).all()


def test_a_zero_matrix_has_no_unit_norm() -> None:
    models = unit_norm(np.array([[0.0] * 9, [2.0] * 9]))
    assert np.isnan(models[0]).all()
    np.testing.assert_allclose(models[1], 1 / 3)


# Fits


@pytest.mark.parametrize("family", [Homographies(), FundamentalMatrices()], ids=lambda family: family.name)
def test_a_fit_to_nothing_is_no_number(family: TwoViewFamily) -> None:
    found = family.fit(plane(20, 1.0), np.vstack([np.zeros(20), np.ones(20)]))
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()


def test_points_are_normalised_to_root_mean_square_distance_root_two() -> None:
    data, weights = plane(25), np.random.default_rng(0).uniform(0, 1, (2, 25))
    sums, into1, into2 = weighted_products(data, weights)
    for row in range(2):
        np.testing.assert_allclose(into1[row], naive.normaliser(data[:, :2], weights[row]))
        np.testing.assert_allclose(into2[row], naive.normaliser(data[:, 2:], weights[row]))
        (x, y), (u, v) = naive.apply(into1[row], data[:, :2]).T, naive.apply(into2[row], data[:, 2:]).T
        expected = np.einsum("n,in,jn->ij", weights[row], monomials(u, v), monomials(x, y))
        np.testing.assert_allclose(sums[row], expected, atol=1e-8)


def monomials(x: Array, y: Array) -> Array:
    return np.array([x * x, x * y, y * y, x, y, np.ones_like(x)])


@both
@pytest.mark.parametrize("noise", [0.0, 0.5])
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32), weighted=st.booleans())
def test_fits_equal_their_twins_in_pixels(family: TwoViewFamily, noise: float, seed: int, weighted: bool) -> None:
    data = MAKE[family.name](40, noise, seed)
    weights = np.random.default_rng(seed).uniform(0.1, 1, 40) if weighted else np.ones(40)
    fitted = family.fit(data, weights[None])
    assert apart(fitted, TWINS[family.name](data, weights)) < 1e-6
    # A correspondence of weight 0 has no say.
    outside = np.vstack([data, np.full((1, 4), 1e4)])
    assert apart(family.fit(outside, np.append(weights, 0.0)[None]), fitted) < 1e-8


@both
def test_fundamental_matrices_have_rank_two_and_models_unit_norm(family: TwoViewFamily) -> None:
    fitted = family.fit(MAKE[family.name](30, 1.0), np.random.default_rng(0).uniform(0, 1, (4, 30)))
    np.testing.assert_allclose(np.linalg.norm(fitted, axis=1), 1)
    if family.name == "fundamental":
        assert np.abs(np.linalg.det(fitted.reshape(-1, 3, 3))).max() < 1e-14


def factor_of_equations(family: TwoViewFamily, data: Array, model: Array) -> Array:
    """Return the squared factor by which the residual of the equations exceeds that of the geometry."""
    matrix, x1, x2 = model.reshape(3, 3), naive.homogeneous(data[:, :2]), naive.homogeneous(data[:, 2:])
    if family.name == "homography":
        return (x1 @ matrix[2]) ** 2
    return ((x1 @ matrix.T)[:, :2] ** 2).sum(axis=1) + ((x2 @ matrix)[:, :2] ** 2).sum(axis=1)


@both
def test_a_model_to_begin_with_makes_the_equations_residuals_geometric(family: TwoViewFamily) -> None:
    data = MAKE[family.name](60, 2.0)
    weights = np.random.default_rng(0).uniform(0.1, 1.0, (2, 60))
    models = family.fit(MAKE[family.name](60), np.ones((2, 60)))
    expected = [
        TWINS[family.name](data, row / factor_of_equations(family, data, model))
        for row, model in zip(weights, models, strict=True)
    ]
    found = family.fit(data, weights, models)
    assert max(apart(*pair) for pair in zip(found, expected, strict=True)) < 1e-6


def test_steps_of_a_fundamental_matrix_end_at_least_sampson_distances() -> None:
    family, data = FundamentalMatrices(), MAKE["fundamental"](60, 2.0)
    weights = np.random.default_rng(0).uniform(0.1, 1.0, (1, 60))
    model = family.fit(data, weights)
    for _ in range(8):
        model = family.step(data, weights, model)
    left, values, right = np.linalg.svd(model[0].reshape(3, 3))

    def distances(change: Array) -> Array:
        """Turned singular vectors and another ratio of singular values: all seven degrees of freedom of rank 2."""
        one, two = (cv2.Rodrigues(part)[0] for part in (change[:3], change[3:6]))
        turned = one @ left @ np.diag([1.0, values[1] / values[0] + change[6], 0.0]) @ right @ two
        return np.sqrt(weights[0] * family.squared_residuals(data, turned.reshape(1, 9))[0])

    least = least_squares(distances, np.zeros(7), x_scale=1e-3, xtol=1e-15, ftol=1e-15)
    assert 0.0 <= (distances(np.zeros(7)) ** 2).sum() / (2.0 * least.cost) - 1.0 < 1e-6


@both
def test_a_fit_that_begins_with_a_model_lowers_the_geometric_error(family: TwoViewFamily) -> None:
    """Where depths or gradients differ: a plane seen at a slant, a motion forward."""
    gains = []
    for seed in range(20):
        exact, noisy = (MAKE[family.name](80, noise, seed) for noise in (0.0, 1.5))
        first = family.fit(noisy, np.ones((1, 80)))
        second = family.fit(noisy, np.ones((1, 80)), first)
        errors = [family.squared_residuals(exact, model).mean() for model in (first, second)]
        gains.append(errors[1] / errors[0])
    assert np.median(gains) < 1.02


# Frames


@both
def test_models_that_leave_a_frame_have_the_frame_s_residuals_in_pixels(family: TwoViewFamily) -> None:
    rng = np.random.default_rng(0)
    data = rng.uniform(0, 600, (30, 4))
    frame = Frame.around(data[:, :2], data[:, 2:])
    models = (np.eye(3) + 0.1 * rng.normal(size=(4, 3, 3))).reshape(-1, 9)
    inside = family.squared_residuals(frame.enter(data[:, :2], data[:, 2:]), models) / frame.scale**2
    in_pixels = family.to_pixels(models, *frame.transforms())
    np.testing.assert_allclose(family.squared_residuals(data, in_pixels), inside, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(in_pixels, axis=1), 1)


@both
def test_residuals_of_swapped_images_are_those_of_the_inverse_or_the_transpose(family: TwoViewFamily) -> None:
    rng = np.random.default_rng(0)
    swapped: Callable[[Array], Array] = np.linalg.inv if family.name == "homography" else np.transpose
    for matrix in RANDOM[family.name](rng, 20):
        data = rng.uniform(0, 600, (6, 4))
        there = family.squared_residuals(data, matrix.reshape(1, 9))
        back = family.squared_residuals(data[:, [2, 3, 0, 1]], np.ascontiguousarray(swapped(matrix)).reshape(1, 9))
        # What is left of inv(inv(H)) and of cancellation near the horizon.
        np.testing.assert_allclose(back, there, rtol=1e-5)
