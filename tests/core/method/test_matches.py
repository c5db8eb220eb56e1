"""Frames, duplicate groups and weights, against plain twins and cases whose answer is known; the set of distinct matches."""

from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv.core.method.matches import Frame, MatchSet, _least_crowded, duplicate_groups, floored, match_weights
from ruzhash_cv.foundation.validation import LARGEST_COORDINATE

seeds = st.integers(0, 2**32)
EXTENT = st.sampled_from([0.0, 1.0, 5.0, 30.0, 1e6])
#: The method's unit of length in the points' own.
UNIT = 3.0


# Frames


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.full((5, 2), 7.0), np.full((5, 2), 1e7)])
def test_frames_of_no_extent_have_scale_one(points: np.ndarray) -> None:
    frame = Frame.around(points, points)
    assert frame.scale == 1.0
    assert (frame.enter(points, points) == 0).all()


def test_coordinates_far_out_leave_the_frame_where_it_was() -> None:
    points = np.random.default_rng(0).uniform(0, 600, (101, 2))
    near, far = Frame.around(points, points), Frame.around(np.vstack([points, [[1e11, 1e11]]]), points)
    assert np.abs(far.enter(points, points) - near.enter(points, points)).max() < 0.05


def test_a_frame_of_points_most_of_which_are_one_has_their_mean_distance() -> None:
    points = np.vstack([np.full((7, 2), 5.0), [[5.0, 45.0], [45.0, 5.0], [45.0, 45.0]]])
    np.testing.assert_allclose(Frame.around(points, points).scale, 1 / 8)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=st.integers(2, 20), size=st.sampled_from([1e-3, 1.0, 1e5]))
def test_in_a_frame_points_have_a_median_of_zero_and_about_unit_size(seed: int, n: int, size: float) -> None:
    points1, points2 = np.random.default_rng(seed).normal(3.0, size, (2, n, 2))
    frame = Frame.around(points1, points2)
    data, (into1, into2) = frame.enter(points1, points2), frame.transforms()
    np.testing.assert_allclose(np.median(data, axis=0), 0.0, atol=1e-9)
    assert np.median(np.abs(data), axis=0).reshape(2, 2).mean(axis=1).max() == pytest.approx(1.0)
    # The matrices do what entering does.
    np.testing.assert_allclose(np.hstack([naive.apply(into1, points1), naive.apply(into2, points2)]), data, atol=1e-9)


def test_copies_of_one_object_have_its_scale() -> None:
    """They are spread over more, but their keypoints are as dense."""
    points = np.random.default_rng(0).uniform(0, 100, (400, 2))
    assert Frame.around(points, 4.0 * points).factors != (1.0, 1.0)
    assert Frame.around(points, 4.0 * points, counts=(25, 400)).factors == (1.0, 1.0)


# Duplicate groups


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(0, 60), extents=st.tuples(*[EXTENT] * 4), again=st.booleans(), whole=st.booleans())
def test_duplicate_groups_equal_their_twin(seed: int, n: int, extents: Any, again: bool, whole: bool) -> None:
    """Whole numbers: distances of exactly the radius, and on the bounds of cells."""
    rng = np.random.default_rng(seed)
    data = rng.uniform(-1, 1, (n, 4)) * extents
    if again:
        data[n // 2 :] = data[rng.integers(0, max(n, 1), n - n // 2)] if n else 0
    data = np.round(data) if whole else data
    data = data[np.argsort(data[:, 0], kind="stable")]
    np.testing.assert_array_equal(duplicate_groups(data, 3.0), naive.duplicate_groups(data, 3.0))


@pytest.mark.parametrize(
    ("data", "radius", "groups"),
    [
        ([[-1e12, 0, 0, 0], [0, 0, 0, 0], [1e12, 0, 0, 0], [1e12, 0, 0, 0], [2e12, 0, 0, 0]], 1e-300, [0, 1, 2, 2, 3]),
        ([[0, 0, 0, 0], [0, 1, 50, 0], [1, 0, 0, 1]], 3.0, [0, 1, 0]),  # near in one image only
        ([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1e-9]], 1e-12, [0, 0, 1]),
    ],
)
def test_matches_within_the_radius_in_both_images_are_one_group(data: list, radius: float, groups: list) -> None:
    assert duplicate_groups(np.array(data, float), radius).tolist() == groups


@pytest.mark.parametrize("column", [0, 1, 2, 3])
def test_groups_of_matches_that_crowd_in_one_coordinate_equal_their_twin(column: int) -> None:
    """All are within two radii in each of the others."""
    data = np.random.default_rng(column).uniform(0, 2.0, (2600, 4))
    data[:, column] *= 100.0
    data = data[np.argsort(data[:, 0], kind="stable")]
    np.testing.assert_array_equal(duplicate_groups(data, 1.5), naive.duplicate_groups(data, 1.5))


def test_dense_matches_are_grouped_in_cells_of_the_two_least_crowded_coordinates() -> None:
    """As dense as 10^6 matches of an image: thousands lie within the radius in each coordinate."""
    data = np.random.default_rng(0).uniform(0, [30.0, 300.0, 30.0, 300.0], (20_000, 4))
    assert _least_crowded(data, 3.0) in {(1, 3), (3, 1)}


# Weights


def test_a_group_has_the_weight_of_one_match_and_so_has_a_keypoint() -> None:
    """Three matches are one group, at one of two keypoints; a fourth pairs one of these with another position."""
    points1 = np.array([[0.0, 0], [1, 0], [1, 0], [1, 0], [200, 0]])
    points2 = np.array([[50.0, 50], [50, 50], [51, 50], [90, 90], [300, 0]])
    matches = MatchSet.of(points1, points2, UNIT)
    groups = matches.groups[matches.where]
    assert len(set(groups[:3])) == 1
    assert len(set(groups)) == matches.n_groups == 3
    np.testing.assert_allclose(matches.weights[matches.where], [1 / 3, 1 / 5, 1 / 5, 3 / 5, 1])


@settings(max_examples=60, deadline=None)
@given(seed=seeds, n=st.integers(1, 30))
def test_weights_equal_their_twin_and_no_group_or_keypoint_has_more_than_one(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    groups = np.unique(rng.integers(0, n, n), return_inverse=True)[1]
    keypoints = rng.integers(0, max(1, n // 2), (2, n))
    weights = match_weights(groups, keypoints)
    np.testing.assert_allclose(weights, naive.match_weights(groups, keypoints))
    assert max(np.bincount(numbers, weights).max() for numbers in (groups, *keypoints)) <= 1 + 1e-12


# The set


def repeated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return points of a third of which are repetitions, one is not finite, and one is no coordinate."""
    points1, points2 = rng.integers(0, 300, (2, 30, 2)).astype(float)
    again = rng.integers(0, 30, 10)
    points1, points2 = np.vstack([points1, points1[again]]), np.vstack([points2, points2[again]])
    points1[3, 0], points2[5, 1] = np.nan, 2 * LARGEST_COORDINATE
    return points1, points2


def test_the_set_holds_every_finite_match_once_and_says_where() -> None:
    points1, points2 = repeated(np.random.default_rng(0))
    matches = MatchSet.of(points1, points2, UNIT)
    assert matches.finite.tolist() == [row not in (3, 5) for row in range(40)]
    entered = matches.frame.enter(points1[matches.finite], points2[matches.finite])
    np.testing.assert_array_equal(matches.data[matches.where], entered)
    assert len(matches) == len(np.unique(np.hstack([points1, points2])[matches.finite], axis=0))


def test_matches_that_end_at_the_same_position_share_a_keypoint() -> None:
    pairs = np.array([[1.0, 2, 8, 9], [1, 2, 3, 4], [1, 3, 3, 4], [2, 1, 8, 9]])
    matches = MatchSet.of(pairs[:, :2], pairs[:, 2:], UNIT)
    for image, numbers in enumerate(matches.keypoints):
        points = matches.data[:, 2 * image : 2 * image + 2]
        np.testing.assert_array_equal(numbers[:, None] == numbers, (points[:, None] == points).all(axis=2))


def test_static_matches_have_the_positions_of_the_first_points() -> None:
    points1, points2 = np.random.default_rng(0).uniform(0, 600, (2, 50, 2))
    matches = MatchSet.of(points1, points2, UNIT)
    np.testing.assert_allclose(matches.unmoved()[matches.where], matches.frame.enter(points1, points1), atol=1e-12)


def test_some_of_the_matches_have_the_weights_they_have_among_themselves() -> None:
    matches = MatchSet.of(*repeated(np.random.default_rng(1)), UNIT)
    rows = np.arange(0, len(matches), 3)
    part = matches.take(rows)
    np.testing.assert_array_equal(part.data, matches.data[rows])
    np.testing.assert_allclose(part.weights, naive.match_weights(matches.groups[rows], matches.keypoints[:, rows]))


@pytest.mark.parametrize("n", [0, 1])
def test_few_matches_are_a_set_too(n: int) -> None:
    matches = MatchSet.of(np.ones((n, 2)), np.ones((n, 2)), UNIT)
    assert (len(matches), matches.n_groups, matches.data.shape, matches.keypoints.shape) == (n, n, (n, 4), (2, n))
    assert len(MatchSet.of(np.full((4, 2), np.inf), np.ones((4, 2)), UNIT)) == 0


@pytest.mark.parametrize(("shift", "pixel"), [(0.0, 1.0), (0.5, 1.0), (0.0, 1.0 / 700.0)])
def test_noise_is_at_least_that_of_rounding_if_a_tenth_of_the_matches_lie_on_whole_pixels(
    shift: float, pixel: float
) -> None:
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 500, (2, 100, 2))
    for n, is_rounded in ((5, False), (20, True), (100, True)):
        points[:, :n] = np.round(points[:, :n]) + shift
        matches = MatchSet.of(*(points * pixel), 3.0 * pixel, pixels=(pixel, pixel))
        assert matches.rounding == pytest.approx(matches.frame.scale * pixel / np.sqrt(12.0) if is_rounded else 0.0)
        squared = np.array([[0.0, 1e6, np.inf]])
        np.testing.assert_array_equal(floored(squared, matches), [[matches.rounding**2, 1e6, np.inf]])
    assert MatchSet.of(points[0, :0], points[1, :0], 3.0).rounding == 0.0
