"""What every family has to offer, the bundled ones and the paper's: solver, residuals, least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruzhash_cv.families.two_view import squared_residuals
from two_views import motion, plane

from ruzhash_cv.families import FundamentalMatrices, Homographies, ModelFamily
from ruzhash_cv.paper import AlgebraicFundamentalMatrices, AlgebraicHomographies, Circles, Lines, normalise_pairs

Array = np.ndarray


def line_residuals(data: Array, model: Array) -> Array:
    a, b, c = model
    return np.abs(a * data[:, 0] + b * data[:, 1] + c) / np.hypot(a, b)


def circle_residuals(data: Array, model: Array) -> Array:
    centre, radius2 = -model[:2] / 2, np.sum(model[:2] ** 2) / 4 - model[2]
    return np.abs(((data - centre) ** 2).sum(axis=1) - radius2)


def cross_product_residuals(data: Array, model: Array) -> Array:
    mapped = naive.homogeneous(data[:, :2]) @ model.reshape(3, 3).T
    return np.linalg.norm(np.cross(naive.homogeneous(data[:, 2:]), mapped)[:, :2], axis=1)


def epipolar_residuals(data: Array, model: Array) -> Array:
    lines = naive.homogeneous(data[:, :2]) @ model.reshape(3, 3).T
    return np.abs((naive.homogeneous(data[:, 2:]) * lines).sum(axis=1))


def on_a_line(rng: np.random.Generator, n: int) -> Array:
    return np.array([0.3, -0.2]) + rng.uniform(-1, 1, (n, 1)) * np.array([0.8, 0.6])


def on_a_circle(rng: np.random.Generator, n: int) -> Array:
    angles = rng.uniform(0, 2 * np.pi, n)
    return np.array([0.2, 0.1]) + 0.7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def on_a_plane(rng: np.random.Generator, n: int) -> Array:
    pairs = plane(n, seed=int(rng.integers(1 << 30)))
    return normalise_pairs(pairs[:, :2], pairs[:, 2:])


def in_motion(rng: np.random.Generator, n: int) -> Array:
    pairs = motion(n, seed=int(rng.integers(1 << 30)))
    return normalise_pairs(pairs[:, :2], pairs[:, 2:])


class Case(NamedTuple):
    """A family, its residual as the literature writes it, and data (n, d) that one model explains exactly."""

    family: ModelFamily
    residuals: Callable[[Array, Array], Array]
    exact: Callable[[np.random.Generator, int], Array]


CASES = {
    "lines": Case(Lines(), line_residuals, on_a_line),
    "circles": Case(Circles(), circle_residuals, on_a_circle),
    "homographies": Case(
        Homographies(), lambda data, model: naive.transfer_error(data, model.reshape(3, 3)), on_a_plane
    ),
    "fundamental": Case(
        FundamentalMatrices(), lambda data, model: naive.sampson_distance(data, model.reshape(3, 3)), in_motion
    ),
    "algebraic homographies": Case(AlgebraicHomographies(), cross_product_residuals, on_a_plane),
    "algebraic fundamental": Case(AlgebraicFundamentalMatrices(), epipolar_residuals, in_motion),
}
every_family = pytest.mark.parametrize("name", CASES)


def same_models(first: Array, second: Array, tolerance: float) -> bool:
    """Tell whether models are equal up to their signs."""
    apart = np.minimum(np.abs(first - second).max(axis=1), np.abs(first + second).max(axis=1))
    return bool((apart < tolerance).all())


@every_family
def test_squared_residuals_equal_a_plain_twin_a_row_for_each_model(name: str) -> None:
    family, residuals, exact = CASES[name]
    rng = np.random.default_rng(0)
    data = exact(rng, 11) + 0.1 * rng.normal(size=exact(rng, 11).shape)
    samples = np.stack([exact(rng, family.sample_size) for _ in range(5)])
    models, _ = family.solve(samples + 0.05 * rng.normal(size=samples.shape))
    assert len(models) >= 5
    expected = np.array([residuals(data, model) for model in models]) ** 2
    np.testing.assert_allclose(family.squared_residuals(data, models), expected, rtol=1e-6, atol=1e-12)
    backwards = family.squared_residuals(np.asfortranarray(data), models[::-1])
    np.testing.assert_allclose(backwards, expected[::-1], rtol=1e-6, atol=1e-12)


@every_family
def test_nothing_has_no_residuals_and_no_models(name: str) -> None:
    family, _, exact = CASES[name]
    data = exact(np.random.default_rng(0), family.sample_size)
    models, owner = family.solve(data[None])
    none, of_none = family.solve(np.zeros((0, *data.shape)))
    assert (len(none), len(of_none), none.shape[1]) == (0, 0, models.shape[1])
    assert family.squared_residuals(data, none).shape == (0, len(data))
    assert family.squared_residuals(data[:0], models).shape == (len(models), 0)
    assert owner.tolist() == [0] * len(models)


@every_family
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_model_goes_through_its_sample_and_says_which_it_was(name: str, seed: int) -> None:
    """OpenCV's solvers work in single precision."""
    family, _, exact = CASES[name]
    rng = np.random.default_rng(seed)
    samples = np.stack([exact(rng, family.sample_size) for _ in range(6)])
    samples += 0.05 * rng.normal(size=samples.shape)
    models, owner = family.solve(samples)
    assert (np.diff(owner) >= 0).all()
    assert np.isfinite(models).all()
    residuals = [family.squared_residuals(samples[at], models[owner == at]) for at in np.unique(owner)]
    through = [float(np.sqrt(squared.max(axis=1).min())) for squared in residuals]
    assert np.median(through) < 1e-3


@every_family
def test_degenerate_samples_give_no_model_that_is_not_finite(name: str) -> None:
    family, _, exact = CASES[name]
    good = exact(np.random.default_rng(3), family.sample_size)
    samples = np.stack([np.zeros_like(good), good, np.ones_like(good), np.outer(np.arange(len(good)), good[0])])
    models, owner = family.solve(samples)
    assert np.isfinite(models).all()
    assert 1 in owner
    if family.sample_size < 7:
        assert set(owner) <= {1, 3}


# Least squares


@every_family
def test_a_fit_goes_through_points_that_lie_on_one_model(name: str) -> None:
    family, _, exact = CASES[name]
    data = exact(np.random.default_rng(1), family.sample_size + 20)
    fitted = family.fit(data, np.ones((1, len(data))))
    assert family.squared_residuals(data, fitted).max() < 1e-12


@every_family
def test_a_fit_lies_between_noisy_points(name: str) -> None:
    family, _, exact = CASES[name]
    rng = np.random.default_rng(2)
    clean = exact(rng, 200)
    noisy = clean + 0.002 * rng.normal(size=clean.shape)
    fitted = family.fit(noisy, np.ones((1, 200)))
    assert np.sqrt(family.squared_residuals(clean, fitted).mean()) < 0.5 * np.sqrt(
        family.squared_residuals(noisy, fitted).mean()
    )


@every_family
def test_each_row_of_weights_has_its_own_fit_and_weight_zero_no_say(name: str) -> None:
    family, _, exact = CASES[name]
    rng = np.random.default_rng(4)
    data = exact(rng, 60) + 0.01 * rng.normal(size=exact(rng, 60).shape)
    weights = rng.uniform(0.1, 1.0, (3, 60))
    weights[:, 50:] = 0.0
    together = family.fit(data, weights)
    alone = np.vstack([family.fit(data[:50], row[None, :50]) for row in weights])
    assert same_models(together, alone, 1e-6)
    assert not same_models(together[:1], together[1:2], 1e-6)
    scaled = np.ascontiguousarray(weights) * np.array([[1e-6], [1.0], [1e6]])
    assert same_models(family.fit(data, scaled), together, 1e-6)


@every_family
@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("extent", [0.0, 1.0])
def test_a_fit_to_nothing_or_to_one_point_or_to_a_line_of_them_raises_nothing(
    name: str, weight: float, extent: float
) -> None:
    family, _, exact = CASES[name]
    d = exact(np.random.default_rng(0), 1).shape[1]
    data = np.ones((20, d)) + extent * np.outer(np.arange(20.0), np.ones(d))
    fitted = family.fit(data, np.full((2, 20), weight))
    models, _ = family.solve(exact(np.random.default_rng(0), family.sample_size)[None])
    assert fitted.shape == (2, models.shape[1])


def test_models_of_several_families_have_each_their_own_residuals() -> None:
    rng = np.random.default_rng(0)
    data, matrices = rng.uniform(-1, 1, (30, 4)), np.eye(3).ravel() + 0.1 * rng.normal(size=(5, 9))
    families, codes = (Homographies(), FundamentalMatrices()), np.array([0, 1, 1, 0, 1], np.uint8)
    found = squared_residuals(families, codes, matrices, data)
    expected = [
        families[code].squared_residuals(data, model[None])[0] for code, model in zip(codes, matrices, strict=True)
    ]
    np.testing.assert_array_equal(found, expected)


def test_a_residual_that_is_no_number_becomes_infinite() -> None:
    class Nowhere(Lines):
        def squared_residuals(self, data: Array, models: Array) -> Array:
            return np.full((len(models), len(data)), np.nan)

    found = squared_residuals((Nowhere(), Lines()), np.array([0, 1], np.uint8), np.eye(3)[:2], np.ones((4, 2)))
    assert found.tolist() == [[np.inf] * 4, [1.0] * 4]
