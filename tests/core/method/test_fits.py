"""Refits close in on what is exact, last fits follow the law of the residuals, and wide planes give way to what they hide."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from scipy.stats import chi2, f
from stage_cases import in_pixels
from two_views import MAKE, H, beside, motion, plane

from ruzhash_cv import filter_points
from ruzhash_cv.core.families.weighting import TUKEY, Law, reweighted, student
from ruzhash_cv.core.method.fits import core_scale, noise_scales, ranking_costs, refine, refit
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.models import FundamentalMatrices, Homographies, TwoViewFamily, transfer_error
from ruzhash_cv.results.printing import table

BOTH = Homographies(), FundamentalMatrices()
both = pytest.mark.parametrize("family", BOTH, ids=lambda family: family.name)


def refined(
    family: Any, models: Any, data: Any, weights: Any, limits: Any, excluded: Any = None, **changed: int
) -> Any:
    given = in_pixels(data, weights), np.array(limits), replace(PARAMETERS, **changed), excluded
    return refine(family, models.reshape(-1, 9), *given)


def refitted(family: TwoViewFamily, data: Any, models: Any, radius: float) -> np.ndarray:
    return refit(family, in_pixels(data), models.reshape(-1, 9), np.full(models.size // 9, radius))


def fitted_to(name: str, n: int) -> np.ndarray:
    """Return the model (3, 3) of so many exact matches."""
    return naive.FITS[name](MAKE[name](n), np.ones(n))


def same(found: np.ndarray, expected: np.ndarray) -> None:
    """Hold that a model is another one, whatever its sign."""
    np.testing.assert_allclose(found * np.sign(found @ expected.ravel()), expected.ravel(), atol=1e-6)


# Refits


@both
def test_a_refit_is_the_fit_by_tukey_s_biweights_within_the_radius(family: TwoViewFamily) -> None:
    name = family.name
    data, start = MAKE[name](60, 2.0), fitted_to(name, 60)
    residuals = naive.RESIDUALS[name](data, start)
    radius = float(np.quantile(residuals, 0.7))
    biweights = np.where(residuals < radius, (1.0 - (residuals / radius) ** 2) ** 2, 0.0)
    weights = biweights / naive.factor_of_equations(name, data, start)
    same(refitted(family, data, start, radius)[0], naive.FITS[name](data, weights))


def test_a_model_that_too_few_agree_with_stays_as_it_was_beside_one_that_is_refitted() -> None:
    data = np.vstack([plane(40, 0.5), np.random.default_rng(0).uniform(0, 600, (30, 4))])
    elsewhere = np.array([[1.0, 0.0, 5000.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    models = np.array([naive.of_unit_norm(matrix).ravel() for matrix in (H, elsewhere)])
    found = refitted(Homographies(), data, models, 3.0)
    np.testing.assert_array_equal(found[1], models[1])
    assert np.abs(found[0] - models[0]).max() > 0


@both
@pytest.mark.parametrize(("more", "changes"), [(1, False), (2, True)])
def test_a_minimal_sample_and_one_more_refit_nothing(family: TwoViewFamily, more: int, changes: bool) -> None:
    n = family.sample_size + more
    start, data = fitted_to(family.name, 60).reshape(1, 9), MAKE[family.name](n, 0.5)
    assert (refitted(family, data, start, 1000.0) != start).any() == changes
    assert (refined(family, start, data, np.ones(n), [1000.0])[0] != start).any() == changes
    of_any_family = reweighted(family, data, np.ones(n), start, np.array([1000.0]), TUKEY, 1, np.zeros((0, 0), bool))
    assert (of_any_family[0] != start).any() == changes


@both
@pytest.mark.parametrize("data", [np.zeros((20, 4)), np.full((20, 4), 7.0), np.outer(np.arange(20.0), np.ones(4))])
def test_degenerate_matches_leave_a_finite_model_behind(family: TwoViewFamily, data: np.ndarray) -> None:
    assert np.isfinite(refitted(family, data, naive.of_unit_norm(np.eye(3)), 2.0)).all()


# Last fits


@both
def test_last_fits_have_the_weights_of_the_law(family: TwoViewFamily) -> None:
    rng, name = np.random.default_rng(0), family.name
    exact, of_matches = MAKE[name](2301), np.repeat([1.0, 1e-6, 1.0], [2001, 300, 20])
    tails = np.sqrt(4.0 / rng.chisquare(4.0, 2301))[:, None]
    noise = 0.5 * tails * rng.normal(size=(2301, 4)) * np.repeat([1.0, 30.0], [2001, 300])[:, None]
    data = np.vstack([exact + noise, rng.uniform(0, 600, (20, 4))])
    own = np.arange(2321) < 2301
    start = naive.FITS[name](np.vstack([exact + 0.01 * rng.normal(size=(2301, 4)), data[2301:]]), of_matches * own)
    residuals, weights = naive.RESIDUALS[name](data, start)[own], np.zeros(2321)
    weights[own] = naive.student_weights(residuals, of_matches[own], family.codimension, PARAMETERS.student_degrees)
    if family.is_plane:
        expected = naive.FITS[name](data, weights / naive.factor_of_equations(name, data, start))
    else:
        expected = naive.step_fundamental_matrix(data, weights, start)
    fitted, noise = refined(family, start, data, of_matches, [1e4], ~own[None], n_scales=1)
    same(fitted[0], expected)
    last = np.where(own, family.squared_residuals(data, fitted), np.inf)
    np.testing.assert_array_equal(noise, noise_scales(last, family.codimension))


@both
def test_models_are_refined_each_as_alone(family: TwoViewFamily) -> None:
    data, ones = np.vstack([plane(60, 0.5), motion(60, 0.5)]), np.ones(120)
    models = family.fit(data, (np.arange(120) // 60 == np.array([[0], [1], [1]])).astype(float))
    tolerances, excluded = [1.5, 3.0, 0.8], np.random.default_rng(0).random((3, 120)) > 0.7
    together, noise = refined(family, models, data, ones, tolerances, excluded)
    for item, tolerance in enumerate(tolerances):
        alone, scale = refined(family, models[[item]], data, ones, [tolerance], excluded[[item]])
        np.testing.assert_array_equal(together[[item]], alone)
        assert noise[item] == scale[0]


@both
@pytest.mark.parametrize("degrees", [1.0, 3.0, 4.0, 30.0])
def test_medians_of_student_s_law_are_scipy_s(family: TwoViewFamily, degrees: float) -> None:
    codimension = family.codimension
    median, of_student = chi2.ppf(0.5, codimension), f.ppf(0.5, codimension, degrees)
    expected = degrees * median / (codimension * of_student), median, 0.0
    assert student(codimension, degrees) == pytest.approx(expected, rel=1e-12)


@both
@pytest.mark.parametrize(
    "of",
    [
        lambda codimension: TUKEY,
        lambda codimension: student(codimension, 4.0),
        lambda codimension: student(codimension, 4.0)._replace(floor=1.0),
    ],
)
def test_the_kernel_of_a_family_does_as_fits_of_any_family_do(family: TwoViewFamily, of: Callable[[int], Law]) -> None:
    """With matches left out, a radius of 0, and a model that nothing agrees with."""
    law = of(family.codimension)
    rng, data = np.random.default_rng(0), np.vstack([plane(60, 0.5), motion(60, 0.5), np.full((9, 4), 7.0)])
    models = np.repeat(family.fit(data, (np.arange(129) // 60 == np.array([[0], [1]])).astype(float)), 3, axis=0)
    models[5] = rng.normal(size=9)
    limits, excluded = np.array([3.0, 8.0, 0.0, 3.0, 8.0, 1e-3]), rng.random((6, 129)) > 0.7
    for left_out in (excluded, np.zeros((0, 0), bool)):
        given = data, rng.uniform(0.2, 1.0, 129), models, limits, law, 3 if law.width else 1, left_out
        for fused, plain in zip(family.reweighted(*given), reweighted(family, *given), strict=True):
            np.testing.assert_allclose(fused, plain, atol=1e-9)


def test_matches_of_one_place_do_not_take_a_model_away() -> None:
    """They are exact, and more than the others: the noise scale is zero."""
    first, rng = np.random.default_rng(0).integers(0, 500, (60, 2)).astype(float), np.random.default_rng(1)
    first[:35] = first[0]
    exact = np.hstack([first, first + [8.0, 4.0]])
    data = exact + np.repeat([0.0, 1.0], [35, 25])[:, None] * np.hstack([np.zeros((60, 2)), rng.normal(size=(60, 2))])
    start = naive.of_unit_norm(np.array([[1.0, 0.0, 8.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]]))
    found, _ = refined(BOTH[0], start, data, np.repeat([1 / 35, 1.0], [35, 25]), [6.0])
    assert naive.transfer_error(exact, found.reshape(3, 3)).max() < 3.0


@both
def test_a_last_fit_is_to_what_lies_within_the_tolerance(family: TwoViewFamily) -> None:
    data = MAKE[family.name](90, 0.3)
    start = naive.FITS[family.name](data[:70], np.ones(70))
    data[70:, 2:] += 40.0
    near = naive.RESIDUALS[family.name](data, start) <= 3.0
    found, noise = refined(family, start, data, np.ones(90), [3.0])
    alone, same_noise = refined(family, start, data[near], np.ones(near.sum()), [3.0])
    assert 70 <= near.sum() < 90
    np.testing.assert_allclose(found, alone, atol=1e-12)
    np.testing.assert_array_equal(noise, same_noise)
    assert 0.1 < noise[0] < 0.6


@pytest.mark.parametrize("seed", [2, 4, 5, 6, 7])
def test_a_plane_beside_a_stronger_one_is_fitted_without_its_matches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 600, (460, 2))
    points1[300:360] = rng.uniform(100, 250, (60, 2))
    points2 = 1.02 * points1 + [6.0, 3.0]
    points2[300:360] += [12.0, 4.0] + 0.08 * (points1[300:360] - 175.0)
    points2[:360] += rng.normal(0, 0.05, (360, 2))
    points2[360:] = rng.uniform(0, 600, (100, 2))
    planes = [row for row in table(filter_points(points1, points2)) if row.kind == "homography"]
    assert [row.n_matches for row in planes] == [300, 60]
    assert max(row.structure.noise_scale for row in planes) < 0.1


# Division


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("step", "slope"), [(20.0, 0.0), (0.0, 0.1), (15.0, 0.05)])
def test_neighbouring_planes_have_a_label_each(step: float, slope: float, seed: int) -> None:
    points1, points2, right = beside(step, slope, seed)
    result = filter_points(points1, points2, rng=seed)
    planes = [row.structure for row in table(result) if row.kind == "homography"]
    assert len(planes) == 2
    assert max(row.structure.tolerance for row in table(result)) < 8.0
    if np.mean(planes[0].mask[:200][right]) > 0.5:
        right = ~right
    assert np.mean(np.where(right, planes[1].mask[:200], planes[0].mask[:200])) > 0.96
    errors = transfer_error(*(points[:200] for points in beside(step, slope, seed, noise=0.0)[:2]), planes[0].matrix)
    assert min(np.median(errors[right]), np.median(errors[~right])) < 0.5


@pytest.mark.parametrize("noise", [3.0, 5.0])
def test_a_noisy_plane_stays_one(noise: float) -> None:
    for seed in range(3):
        (model,) = filter_points(*beside(0.0, 0.0, seed, noise)[:2], rng=seed).motions
        assert model.tolerance > 12.0


# Ranks


def test_costs_are_sums_of_squares_cut_at_three_reaches() -> None:
    squared, weights = np.random.default_rng(0).exponential(4.0, (3, 20)), np.random.default_rng(1).random(20)
    squared[0, :3] = np.inf
    cut = [np.minimum(squared / reach**2, 1.0) @ weights for reach in (3.0, 1.0, 1.0 / 3.0)]
    np.testing.assert_allclose(ranking_costs(squared, weights, 3.0, PARAMETERS), np.sum(cut, axis=0))


def test_a_precise_model_ranks_before_a_wide_one_that_holds_as_many() -> None:
    precise, wide = np.full(20, 0.01), np.full(20, 0.5)
    precise[15:] = 100.0
    wide[15:] = 4.0
    costs = ranking_costs(np.array([precise, wide]), np.ones(20), 3.0, PARAMETERS)
    assert costs[0] < costs[1]
    assert np.minimum(precise, 9.0).sum() > np.minimum(wide, 9.0).sum()  # by squares alone it would not


def test_a_plane_in_a_crowd_has_the_noise_of_its_core() -> None:
    rng = np.random.default_rng(0)
    core, crowd = (np.square(scale * rng.normal(size=(150, 2))).sum(axis=1) for scale in (0.2, 5.0))
    assert 0.1 < core_scale(np.concatenate([core, crowd]), 2.0, PARAMETERS) < 0.4
    for alone in (core, crowd):
        assert core_scale(alone, 2.0, PARAMETERS) == 2.0
