"""Distances of given models in pixels, against twins and what they mean in the images."""

import naive
import numpy as np
import pytest
from two_views import random_fundamental_matrices, random_homographies

from ruzhash_cv.models import sampson_distance, transfer_error


@pytest.mark.parametrize(
    ("distance", "twin", "random"),
    [
        (transfer_error, naive.transfer_error, random_homographies),
        (sampson_distance, naive.sampson_distance, random_fundamental_matrices),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 1e-6, -3.0, 1e6])
def test_distances_equal_their_twins_for_models_of_any_scale(distance, twin, random, scale: float) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(0)
    points1, points2 = rng.uniform(0, 600, (2, 6, 2))
    models = random(rng, 2)
    expected = np.column_stack([twin(np.hstack([points1, points2]), model) for model in models])
    np.testing.assert_allclose(distance(points1, points2, scale * models), expected, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(distance(points1, points2, scale * models[0]), expected[:, 0], rtol=1e-6, atol=1e-7)


def test_sampson_distance_is_zero_on_epipolar_lines() -> None:
    rng = np.random.default_rng(0)
    F = random_fundamental_matrices(rng, 1)[0]
    points1 = rng.uniform(0, 500, (30, 2))
    a, b, c = F @ np.column_stack([points1, np.ones(30)]).T
    x = rng.uniform(0, 500, 30)
    assert sampson_distance(points1, np.column_stack([x, -(a * x + c) / b]), F).max() < 1e-8


def test_sampson_distance_shares_the_offset_between_two_sideways_images() -> None:
    """A vertical offset d between rectified images is undone by moving both points by d / 2: d / sqrt(2) together."""
    sideways = [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    assert sampson_distance([[10.0, 20.0]], [[90.0, 26.0]], sideways)[0] == pytest.approx(6 / np.sqrt(2))


def test_points_at_infinity_and_singular_homographies_are_infinitely_far() -> None:
    horizon = np.array([[1.0, 0, 0], [0, 1.0, 0], [-0.01, 0, 1.0]])  # x = 100 goes to infinity
    assert transfer_error([[100.0, 5.0]], [[3.0, 4.0]], horizon)[0] == np.inf
    assert transfer_error([[1.0, 5.0]], [[3.0, 4.0]], np.zeros((3, 3)))[0] == np.inf
    assert transfer_error([[3.0, 0.0]], [[3.0, 0.0]], np.diag([1.0, 0.0, 1.0]))[0] == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_points_and_models_that_are_not_finite_are_infinitely_far(bad: float) -> None:
    for function in (transfer_error, sampson_distance):
        assert function([[bad, 1.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, bad]], np.eye(3)).tolist() == [np.inf] * 2
        assert function([[1.0, 1.0]], [[1.0, 1.0]], np.full((3, 3), np.nan))[0] == np.inf
