"""What every family offers, the bundled ones and the paper's: solver, residuals, least squares; and the table of families."""

from collections.abc import Callable
from typing import NamedTuple

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from paper.algebraic import AlgebraicFundamentalMatrices, AlgebraicHomographies
from paper.problems import AlgebraicCircles, normalise_pairs
from stage_cases import given_residuals
from two_views import motion, plane

from ruzhash_cv.core.families.base import Families, Models
from ruzhash_cv.core.families.linear import unit_norm
from ruzhash_cv.core.kernels.residuals import costs_at_reaches
from ruzhash_cv.core.method.matches import Frame
from ruzhash_cv.models import Circles, FundamentalMatrices, Homographies, Lines, ModelFamily, TwoViewFamily

Array = np.ndarray
BOTH = Homographies(), FundamentalMatrices()
TABLE = Families(BOTH, (True, True))
seeds = st.integers(0, 2**32)


def algebraic_circle_residuals(data: Array, model: Array) -> Array:
    centre, radius2 = -model[:2] / 2, np.sum(model[:2] ** 2) / 4 - model[2]
    return np.abs(((data - centre) ** 2).sum(axis=1) - radius2)


def cross_product_residuals(data: Array, model: Array) -> Array:
    mapped = naive.homogeneous(data[:, :2]) @ model.reshape(3, 3).T
    return np.linalg.norm(np.cross(naive.homogeneous(data[:, 2:]), mapped)[:, :2], axis=1)


def epipolar_residuals(data: Array, model: Array) -> Array:
    first, second = naive.homogeneous(data[:, :2]), naive.homogeneous(data[:, 2:])
    return np.abs((second * (first @ model.reshape(3, 3).T)).sum(axis=1))


def on_a_line(rng: np.random.Generator, n: int) -> Array:
    return np.array([0.3, -0.2]) + rng.uniform(-1, 1, (n, 1)) * np.array([0.8, 0.6])


def on_a_circle(rng: np.random.Generator, n: int) -> Array:
    angles = rng.uniform(0, 2 * np.pi, n)
    return np.array([0.2, 0.1]) + 0.7 * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def pairs_of(make: Callable[..., Array]) -> Callable[[np.random.Generator, int], Array]:
    """Return what draws normalised matches of one model."""
    return lambda rng, n: normalise_pairs(*np.hsplit(make(n, seed=int(rng.integers(1 << 30))), 2))


class Case(NamedTuple):
    """A family, its residual as the literature writes it, and data (n, d) that one model explains exactly."""

    family: ModelFamily
    residuals: Callable[[Array, Array], Array]
    exact: Callable[[np.random.Generator, int], Array]


CASES = {
    "lines": Case(Lines(), lambda data, line: np.abs(data @ line[:2] + line[2]) / np.hypot(*line[:2]), on_a_line),
    "circles": Case(Circles(), lambda data, of: np.abs(np.linalg.norm(data - of[:2], axis=1) - of[2]), on_a_circle),
    "algebraic circles": Case(AlgebraicCircles(), algebraic_circle_residuals, on_a_circle),
    "homographies": Case(BOTH[0], lambda data, H: naive.transfer_error(data, H.reshape(3, 3)), pairs_of(plane)),
    "fundamental": Case(BOTH[1], lambda data, F: naive.sampson_distance(data, F.reshape(3, 3)), pairs_of(motion)),
    "algebraic homographies": Case(AlgebraicHomographies(), cross_product_residuals, pairs_of(plane)),
    "algebraic fundamental": Case(AlgebraicFundamentalMatrices(), epipolar_residuals, pairs_of(motion)),
}
every_family = pytest.mark.parametrize("name", CASES)
both = pytest.mark.parametrize("family", BOTH, ids=lambda family: family.name)


def noisy(name: str, seed: int, *shape: int, noise: float = 0.05) -> Array:
    """Return exact data of a shape (..., n), a model each, and some noise."""
    rng = np.random.default_rng(seed)
    data = np.stack([CASES[name].exact(rng, shape[-1]) for _ in range(int(np.prod(shape[:-1])))])
    data += noise * rng.normal(size=data.shape)
    return data.reshape(*shape, -1)


def apart(first: Array, second: Array) -> float:
    """Return how far models are apart, whatever their signs."""
    return float(np.minimum(np.abs(first - second).max(axis=1), np.abs(first + second).max(axis=1)).max())


# Residuals and solvers


@every_family
def test_squared_residuals_equal_a_plain_twin_a_row_for_each_model(name: str) -> None:
    family, residuals, _ = CASES[name]
    data, (models, _) = noisy(name, 0, 11, noise=0.1), family.solve(noisy(name, 1, 5, family.sample_size))
    assert len(models) >= 5
    expected = np.array([residuals(data, model) for model in models]) ** 2
    for points, order in ((data, slice(None)), (np.asfortranarray(data), slice(None, None, -1))):
        found = family.squared_residuals(points, models[order])
        np.testing.assert_allclose(found, expected[order], rtol=1e-6, atol=1e-12)


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
@given(seed=seeds)
def test_a_model_goes_through_its_sample_and_says_which_it_was(name: str, seed: int) -> None:
    """OpenCV's solvers work in single precision."""
    family = CASES[name].family
    samples = noisy(name, seed, 6, family.sample_size)
    models, owner = family.solve(samples)
    assert (np.diff(owner) >= 0).all()
    assert np.isfinite(models).all()
    residuals = [family.squared_residuals(samples[at], models[owner == at]) for at in np.unique(owner)]
    assert np.median([np.sqrt(squared.max(axis=1).min()) for squared in residuals]) < 1e-3


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


@both
def test_models_that_leave_a_frame_have_the_frame_s_residuals_in_pixels(family: TwoViewFamily) -> None:
    rng = np.random.default_rng(0)
    data = rng.uniform(0, 600, (30, 4))
    frame = Frame.around(data[:, :2], data[:, 2:])
    models = (np.eye(3) + 0.1 * rng.normal(size=(4, 3, 3))).reshape(-1, 9)
    inside = family.squared_residuals(frame.enter(data[:, :2], data[:, 2:]), models) / frame.scale**2
    pixels = family.to_pixels(models, *frame.transforms())
    np.testing.assert_allclose(family.squared_residuals(data, pixels), inside, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(pixels, axis=1), 1)


# Least squares


@every_family
def test_a_fit_goes_through_points_that_lie_on_one_model_and_between_noisy_ones(name: str) -> None:
    family, _, exact = CASES[name]
    clean = exact(np.random.default_rng(2), 200)
    off = clean + 0.002 * np.random.default_rng(3).normal(size=clean.shape)
    through, between = (family.fit(data, np.ones((1, 200))) for data in (clean, off))
    assert family.squared_residuals(clean, through).max() < 1e-12
    assert family.squared_residuals(clean, between).mean() < 0.25 * family.squared_residuals(off, between).mean()


@every_family
def test_each_row_of_weights_has_its_own_fit_and_weight_zero_no_say(name: str) -> None:
    family = CASES[name].family
    data, weights = noisy(name, 4, 60, noise=0.01), np.random.default_rng(5).uniform(0.1, 1.0, (3, 60))
    weights[:, 50:] = 0.0
    together = family.fit(data, weights)
    alone = np.vstack([family.fit(data[:50], row[None, :50]) for row in weights])
    assert apart(together, alone) < 1e-6
    assert apart(together[:1], together[1:2]) > 1e-6
    assert apart(family.fit(data, weights * np.array([[1e-6], [1.0], [1e6]])), together) < 1e-6


@every_family
@pytest.mark.parametrize("weight", [0.0, 1.0])
@pytest.mark.parametrize("extent", [0.0, 1.0])
def test_a_fit_to_nothing_or_one_point_or_a_line_raises_nothing(name: str, weight: float, extent: float) -> None:
    family, _, exact = CASES[name]
    sample = exact(np.random.default_rng(0), family.sample_size)
    data = np.ones((20, sample.shape[1])) + extent * np.outer(np.arange(20.0), np.ones(sample.shape[1]))
    assert family.fit(data, np.full((2, 20), weight)).shape == (2, family.solve(sample[None])[0].shape[1])


# The table of families


def models_of(*family_ids: int) -> Models:
    matrices = np.eye(3).ravel() + 0.1 * np.random.default_rng(0).normal(size=(len(family_ids), 9))
    return Models(matrices, np.array(family_ids, np.uint8))


def test_the_table_asks_each_model_s_own_family() -> None:
    models, data = models_of(0, 1, 1, 0, 1), np.random.default_rng(1).uniform(-1, 1, (30, 4))
    into = Frame.around(data[:, :2], data[:, 2:]).transforms()
    squared, pixels = TABLE.squared_residuals(models, data), TABLE.to_pixels(models, into)
    for item, family_id in enumerate(models.family_ids):
        model, family = models.matrices[[item]], TABLE[family_id]
        np.testing.assert_array_equal(squared[[item]], family.squared_residuals(data, model))
        np.testing.assert_array_equal(pixels[item].ravel(), family.to_pixels(model, *into)[0])
    assert TABLE.is_plane(models).tolist() == [True, False, False, True, False]


def test_models_are_taken_and_joined_row_by_row() -> None:
    models = models_of(0, 1, 1, 0)
    joined = Models.join([models.take(np.array([2, 0])), models.take(np.zeros(4, bool)), models.take(np.array([1, 3]))])
    assert len(joined) == 4
    for name in ("matrices", "family_ids"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(models, name)[[2, 0, 1, 3]])


def test_truncated_costs_at_reaches_equal_their_twin() -> None:
    rng = np.random.default_rng(5)
    data, weights, reaches = rng.random((43, 4)), rng.random(43), np.array([0.3, 0.1, 0.01])
    models = Models(rng.normal(size=(6, 9)), np.array([0, 1, 1, 0, 1, 0], np.uint8))
    squared, costs = TABLE.squared_residuals(models, data), np.empty((6, 3))
    expected = np.minimum(squared[:, None] / reaches[:, None] ** 2, 1.0) @ weights
    for residuals in (TABLE.residuals(models, data), given_residuals(squared)):
        costs_at_reaches(*residuals, weights, reaches, np.empty(43), costs)
        np.testing.assert_allclose(costs, expected)


def test_motions_of_a_plane_go_through_two_matches_off_it() -> None:
    rng = np.random.default_rng(7)
    data, homography = rng.random((20, 4)), rng.normal(size=9)
    models = BOTH[1].from_plane(homography, data, 6, np.random.default_rng(1))
    pairs = np.random.default_rng(1).integers(20, size=(2, 6)).T
    first, second = (np.column_stack([data[:, image : image + 2], np.ones(20)]) for image in (0, 2))
    np.testing.assert_allclose(np.linalg.norm(models, axis=1), 1.0)
    for model, pair in zip(models.reshape(-1, 3, 3), pairs, strict=True):
        assert np.abs(np.einsum("ni,ij,nj->n", second[pair], model, first[pair])).max() < 1e-12
        # F'H is antisymmetric: points and their images by the plane are on epipolar lines too.
        product = model.T @ homography.reshape(3, 3)
        np.testing.assert_allclose(product, -product.T, atol=1e-12)
    assert BOTH[1].from_plane(homography, data[:1], 10, rng).shape == (0, 9)


def test_a_zero_matrix_has_no_unit_norm() -> None:
    models = unit_norm(np.array([[0.0] * 9, [2.0] * 9]))
    assert np.isnan(models[0]).all()
    np.testing.assert_allclose(models[1], 1 / 3)
