"""Refits close in on what is exact; the greedy cover and the radius indices equal their twins."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruzhash_cv.structures import refinement
from ruzhash_cv.structures.evidence import ANNULUS, RADII, radius_steps
from ruzhash_cv.structures.refinement import DEGREES, noise_scales, refine, refit
from ruzhash_cv.structures.search import cover
from scipy.stats import chi2
from two_views import H, motion, plane

from ruzhash_cv import filter_points
from ruzhash_cv.families import FundamentalMatrices, Homographies, TwoViewFamily

MAKE = {"homography": plane, "fundamental": motion}
FIT = {"homography": naive.fit_homography, "fundamental": naive.fit_fundamental_matrix}
DISTANCE = {"homography": naive.transfer_error, "fundamental": naive.sampson_distance}


both = pytest.mark.parametrize("family", [Homographies(), FundamentalMatrices()], ids=lambda family: family.name)


def factor_of_equations(name: str, data: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the squared factor by which the residual of the equations exceeds that of the geometry."""
    x1, x2 = naive.homogeneous(data[:, :2]), naive.homogeneous(data[:, 2:])
    if name == "homography":
        return (x1 @ matrix[2]) ** 2
    return ((x1 @ matrix.T)[:, :2] ** 2).sum(axis=1) + ((x2 @ matrix)[:, :2] ** 2).sum(axis=1)


def test_noise_scales_are_of_the_upper_median_of_what_is_finite() -> None:
    squared = np.array([
        [9.0, np.inf, 1.0, 4.0, 16.0], [np.nan, 4.0, 1.0, np.inf, 9.0], [np.inf, np.nan, np.inf, np.inf, np.inf]
    ])  # fmt: skip
    np.testing.assert_allclose(noise_scales(squared, 2) ** 2 * chi2.ppf(0.5, 2), [9.0, 4.0, 0.0])


@both
def test_a_refit_is_the_fit_by_tukey_s_biweights_within_the_radius(family: TwoViewFamily) -> None:
    data, votes = MAKE[family.name](60, 2.0), np.random.default_rng(0).uniform(0.2, 1.0, 60)
    votes[:5] = 0.0
    start = FIT[family.name](MAKE[family.name](60), np.ones(60))
    residuals = DISTANCE[family.name](data, start)
    radius = float(np.quantile(residuals, 0.7))
    weights = votes * naive.biweights(residuals, radius)
    expected = FIT[family.name](data, weights / factor_of_equations(family.name, data, start)).ravel()
    found = refit(family, data, votes, start.reshape(1, 9), np.array([radius]))[0]
    np.testing.assert_allclose(found * np.sign(found @ expected), expected, atol=1e-6)


@both
@pytest.mark.parametrize(("n", "best"), [(2.0, 2.0), (8.0, 8.0), (np.inf, 1000.0)])
def test_last_fits_have_the_weights_of_the_law_that_the_residuals_follow(
    family: TwoViewFamily, n: float, best: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has next to no votes, the far ones here, tells nothing of the law, and what is another's is left out."""
    rng, name = np.random.default_rng(0), family.name
    exact, votes = MAKE[name](2301), np.repeat([1.0, 1e-6, 1.0], [2001, 300, 20])
    tails = 1.0 if n == np.inf else np.sqrt(n / rng.chisquare(n, 2301))[:, None]
    noise = 0.5 * tails * rng.normal(size=(2301, 4)) * np.repeat([1.0, 30.0], [2001, 300])[:, None]
    data = np.vstack([exact + noise, rng.uniform(0, 600, (20, 4))])
    own = np.arange(2321) < 2301
    start = FIT[name](np.vstack([exact + 0.01 * rng.normal(size=(2301, 4)), data[2301:]]), votes * own)
    residuals, weights = DISTANCE[name](data, start), np.zeros(2321)
    weights[own] = naive.student_weights(residuals[own], votes[own], family.codimension, DEGREES)
    alone = naive.student_weights(residuals[own], votes[own], family.codimension, [best])
    np.testing.assert_array_equal(weights[own], alone)
    if name == "fundamental":
        expected = naive.step_fundamental_matrix(data, weights, start).ravel()
    else:
        expected = FIT[name](data, weights / factor_of_equations(name, data, start)).ravel()
    monkeypatch.setattr(refinement, "N_FITS", 1)
    codes, models, limits = np.zeros(1, np.uint8), start.reshape(1, 9), np.array([1e4])
    found, noise = refine((family,), codes, models, data, votes, limits, own[None])
    np.testing.assert_allclose(found[0] * np.sign(found[0] @ expected), expected, atol=1e-6)
    last = np.where(own, family.squared_residuals(data, found), np.inf)
    np.testing.assert_array_equal(noise, noise_scales(last, family.codimension))


def test_models_of_two_families_are_refined_each_as_alone() -> None:
    families = Homographies(), FundamentalMatrices()
    data = np.vstack([plane(60, 0.5), motion(60, 0.5)])
    planes, motions = families[0].fit(data[:60], np.ones((1, 60))), families[1].fit(data[60:], np.ones((1, 60)))
    starts, codes = np.vstack([motions, planes, planes]), np.array([1, 0, 0], np.uint8)
    tolerances, own = np.array([1.5, 3.0, 0.8]), np.random.default_rng(0).random((3, 120)) < 0.7
    found, noise = refine(families, codes, starts, data, np.ones(120), tolerances, own)
    for item in range(3):
        one = slice(item, item + 1)
        alone, same = refine(families, codes[one], starts[one], data, np.ones(120), tolerances[one], own[one])
        np.testing.assert_array_equal(found[one], alone)
        assert noise[item] == same[0]


@both
def test_last_fits_ask_for_votes_not_for_weights(family: TwoViewFamily) -> None:
    size, name = family.sample_size, family.name
    data = MAKE[name](size + 4, 0.3)
    start = FIT[name](data, np.ones(size + 4)).reshape(1, 9)
    data[-4:, 2:] += np.random.default_rng(0).choice([-6.0, 6.0], (4, 2))  # far out: heavy tails, and little weight
    codes, tolerances = np.zeros(1, np.uint8), np.array([50.0])
    for votes, changes in ((1.0, True), ((size + 0.9) / (size + 4), False)):
        found, _ = refine((family,), codes, start, data, np.full(size + 4, votes), tolerances)
        assert (found != start).any() == changes


def test_matches_of_one_place_do_not_take_a_model_away() -> None:
    """They are exact, and more than the others: the noise scale is zero."""
    first, rng = np.random.default_rng(0).integers(0, 500, (60, 2)).astype(float), np.random.default_rng(1)
    first[:35] = first[0]
    exact = np.hstack([first, first + [8.0, 4.0]])
    data = exact + np.repeat([0.0, 1.0], [35, 25])[:, None] * np.hstack([np.zeros((60, 2)), rng.normal(size=(60, 2))])
    start = naive.of_unit_norm(np.array([[1.0, 0.0, 8.0], [0.0, 1.0, 4.0], [0.0, 0.0, 1.0]])).reshape(1, 9)
    votes, codes = np.repeat([1 / 35, 1.0], [35, 25]), np.zeros(1, np.uint8)
    found, _ = refine((Homographies(),), codes, start, data, votes, np.array([6.0]))
    assert naive.transfer_error(exact, found.reshape(3, 3)).max() < 3.0


@both
def test_a_last_fit_is_to_what_lies_within_the_tolerance(family: TwoViewFamily) -> None:
    data = MAKE[family.name](90, 0.3)
    start = FIT[family.name](data[:70], np.ones(70)).reshape(1, 9)
    data[70:, 2:] += 40.0
    near = DISTANCE[family.name](data, start.reshape(3, 3)) <= 3.0
    codes, tolerances = np.zeros(1, np.uint8), np.array([3.0])
    found, noise = refine((family,), codes, start, data, np.ones(90), tolerances)
    alone, same = refine((family,), codes, start, data[near], np.ones(near.sum()), tolerances)
    assert 70 <= near.sum() < 90
    np.testing.assert_allclose(found, alone, atol=1e-12)
    np.testing.assert_array_equal(noise, same)
    assert 0.1 < noise[0] < 0.6


@both
def test_refits_with_closing_radii_find_the_model_among_mismatches(family: TwoViewFamily) -> None:
    exact, noisy = (MAKE[family.name](80, noise) for noise in (0.0, 0.5))
    data = np.vstack([noisy, np.random.default_rng(1).uniform(0, 600, (60, 4))])
    models = FIT[family.name](MAKE[family.name](80, 1.5), np.ones(80)).reshape(1, 9)
    for radius in (12.0, 6.0, 3.0):
        models = refit(family, data, np.ones(140), models, np.array([radius]))
    assert np.median(DISTANCE[family.name](exact, models.reshape(3, 3))) < 0.3


def test_a_model_that_too_few_agree_with_stays_as_it_was_beside_one_that_is_refitted() -> None:
    data = np.vstack([plane(40, 0.5), np.random.default_rng(0).uniform(0, 600, (30, 4))])
    elsewhere = np.array([[1.0, 0.0, 5000.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    models = np.array([naive.of_unit_norm(matrix).ravel() for matrix in (H, elsewhere)])
    found = refit(Homographies(), data, np.ones(70), models, np.array([3.0, 3.0]))
    np.testing.assert_array_equal(found[1], models[1])
    assert np.abs(found[0] - models[0]).max() > 0


@both
def test_a_minimal_sample_and_one_more_refit_nothing(family: TwoViewFamily) -> None:
    start = FIT[family.name](MAKE[family.name](60), np.ones(60)).reshape(1, 9)
    for more, changes in ((1, False), (5, True)):
        data = MAKE[family.name](family.sample_size + more, 0.5)
        found = refit(family, data, np.ones(len(data)), start, np.array([1000.0]))
        assert (found != start).any() == changes
        last, _ = refine((family,), np.zeros(1, np.uint8), start, data, np.ones(len(data)), np.array([1000.0]))
        assert (last != start).any() == changes


def test_structures_refined_by_what_is_their_own_do_not_become_one_another() -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (240, 2))
    shifts = np.repeat([[0.0, 0.0], [6.0, 2.0]], [200, 40], axis=0)
    data = np.hstack([first, first + shifts + rng.normal(0, 0.1, (240, 2))])
    shifted = [naive.of_unit_norm(np.array([[1, 0, x], [0, 1, y], [0, 0, 1.0]])).ravel() for x, y in ((0, 0), (4, 2))]
    own = np.repeat([[True, False], [False, True]], [200, 40], axis=1)
    codes, radii = np.zeros(2, np.uint8), np.array([12.0, 12.0])
    for rows, expected in ((own, [6.0, 2.0]), (None, [0.0, 0.0])):
        models, noise = refine((Homographies(),), codes, np.array(shifted), data, np.ones(240), radii, rows)
        np.testing.assert_allclose(models[1, [2, 5]] / models[1, 8], expected, atol=0.3)
        assert noise.max() < 0.2


@pytest.mark.parametrize("seed", [2, 4, 5, 6, 7])
def test_a_plane_beside_a_stronger_one_is_fitted_without_its_matches(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 600, (460, 2))
    points1[300:360] = rng.uniform(100, 250, (60, 2))
    points2 = 1.02 * points1 + [6.0, 3.0]
    points2[300:360] += [12.0, 4.0] + 0.08 * (points1[300:360] - 175.0)
    points2[:360] += rng.normal(0, 0.05, (360, 2))
    points2[360:] = rng.uniform(0, 600, (100, 2))
    models = filter_points(points1, points2).models
    assert [model.support for model in models] == [300, 60]
    assert max(model.noise_scale for model in models) < 0.1


@both
@pytest.mark.parametrize("data", [np.zeros((20, 4)), np.full((20, 4), 7.0), np.outer(np.arange(20.0), np.ones(4))])
def test_degenerate_matches_leave_a_finite_model_behind(family: TwoViewFamily, data: np.ndarray) -> None:
    model = naive.of_unit_norm(np.eye(3)).reshape(1, 9)
    assert np.isfinite(refit(family, data, np.ones(20), model, np.array([2.0]))).all()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(1, 30), m=st.integers(0, 20), wanted=st.integers(1, 25))
def test_cover_equals_its_twin(seed: int, n: int, m: int, wanted: int) -> None:
    rng = np.random.default_rng(seed)
    preferences = (rng.random((m, n)) * (rng.random((m, n)) < 0.3)).astype(np.float32)
    votes, weights = rng.uniform(0.2, 1, n), rng.random(m) * (rng.random(m) < 0.8)
    kept, sums = votes.copy(), preferences @ np.maximum(votes, rng.choice([0.0, 1.0]))
    chosen = cover(preferences, votes, weights, sums, wanted)
    assert chosen.tolist() == naive.cover(preferences.astype(np.float64), votes, weights, wanted)
    np.testing.assert_array_equal(votes, kept)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), length=st.floats(1e-3, 1e3))
def test_radius_indices_equal_their_twin(seed: int, length: float) -> None:
    """Up to the radii of the annuli around the largest."""
    radii = RADII[0] * np.sqrt(2.0) ** np.arange(len(RADII) + ANNULUS)
    residuals = length * np.random.default_rng(seed).lognormal(0.0, 2.0, (3, 40))
    np.testing.assert_array_equal(radius_steps(residuals**2, length), naive.radius_steps(residuals, length * radii))


def test_what_is_exactly_a_radius_away_lies_within_it_and_what_is_no_number_within_none() -> None:
    assert radius_steps((RADII[None] * 7.0) ** 2, 7.0)[0].tolist() == list(range(len(RADII)))
    none = radius_steps(np.array([[np.nan, np.inf, 1e300]]), 7.0)
    assert (none == len(RADII) + ANNULUS).all()
    assert radius_steps(np.zeros((1, 1)), 7.0)[0, 0] == 0
