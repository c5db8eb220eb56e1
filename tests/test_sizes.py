"""Sizes of keypoints: matches of large ones may lie farther from a model, of small ones only nearer; without sizes nothing changes."""

from collections.abc import Callable
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from posed_views import CAMERA1, CAMERA2, FLOOR, WALL, on_plane, views

import ruzhash_cv as rc

#: A keypoint of this size has three times the noise of one of size 1.
LARGE = 9.8
N_TRUE, N_FALSE = 320, 80


class Scene(NamedTuple):
    """Points of a wall and a floor, and mismatches: a third of the keypoints is large, a quarter of the small ones near misses."""

    points1: np.ndarray
    points2: np.ndarray
    sizes: np.ndarray
    large: np.ndarray
    near: np.ndarray

    def filtered(self, **options: Any) -> rc.FilterResult:
        return rc.filter_points(self.points1, self.points2, **options)


def scene(seed: int = 0) -> Scene:
    rng, n = np.random.default_rng(seed), N_TRUE + N_FALSE
    true = np.arange(n) < N_TRUE
    large = rng.random(n) < 1 / 3
    near = true & ~large & (rng.random(n) < 1 / 4)
    seen = views(np.vstack([on_plane(WALL, N_TRUE // 2, rng), on_plane(FLOOR, N_TRUE // 2, rng)]), noise=0.0)
    first, second = (np.vstack([view, rng.uniform(0, 600, (N_FALSE, 2))]) for view in seen)
    noise = np.where(large, 2.1, 0.7)[:, None]
    distance, angle = rng.uniform(6, 20, n) * near, rng.uniform(0, 2 * np.pi, n)
    second = second + (distance * np.array([np.cos(angle), np.sin(angle)])).T
    first, second = (view + noise * rng.normal(size=view.shape) for view in (first, second))
    return Scene(first, second, np.where(large, LARGE, 1.0), large & true, near)


def keypoints(points: np.ndarray, sizes: np.ndarray) -> list[cv2.KeyPoint]:
    return [cv2.KeyPoint(*row) for row in np.column_stack([points, sizes]).tolist()]


def same(one: rc.FilterResult, other: rc.FilterResult) -> bool:
    names = "inlier_mask", "anomaly_scores", "inlier_probabilities", "motion_labels"
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_large_keypoints_are_kept_and_near_misses_of_small_ones_are_not() -> None:
    """Without sizes, large keypoints make the noise of all so wide that near misses are kept."""
    rows = []
    for seed in range(6):
        given = scene(seed)
        results = given.filtered(), given.filtered(sizes=(given.sizes, given.sizes))
        rows.append([result.inlier_mask[of].mean() for of in (given.large, given.near) for result in results])
    large, large_by_size, near, near_by_size = np.mean(rows, axis=0)
    assert min(large, large_by_size) > 0.98
    assert near > 0.6
    assert near_by_size < 0.15


def test_sizes_have_any_unit_in_each_image_and_are_none_if_all_are_equal() -> None:
    given = scene()
    expected = given.filtered(sizes=(given.sizes, given.sizes))
    assert same(given.filtered(sizes=(0.25 * given.sizes, 8 * given.sizes)), expected)
    for size in (0.3, 1.0, 31.0):
        assert same(given.filtered(sizes=np.full((2, N_TRUE + N_FALSE), size)), given.filtered())


def test_keypoints_have_their_sizes_with_them() -> None:
    given = scene()
    both = [np.round(points).astype(float) for points in given[:2]]  # OpenCV's points are in single precision
    kp1, kp2 = (keypoints(points, given.sizes) for points in both)
    indices, sizes = np.stack([np.arange(len(kp1))] * 2, axis=1), (given.sizes.astype(np.float32),) * 2
    expected = rc.filter_points(*both, sizes=sizes)
    assert not same(expected, rc.filter_points(*both))
    assert same(rc.filter_points(kp1, kp2), expected)
    assert same(rc.filter_points(kp1, kp2, indices), expected)
    np.testing.assert_array_equal(rc.filter_matches(kp1, kp2, indices), expected.inlier_mask)
    np.testing.assert_array_equal(rc.filter_matches(*both, indices, sizes=sizes), expected.inlier_mask)
    pairs = rc.as_correspondences(kp1, kp2, indices)
    assert same(rc.filter_points(pairs.points1, pairs.points2, sizes=pairs.sizes), expected)
    ones = np.ones(len(kp2))
    assert same(rc.filter_points(both[0], kp2), rc.filter_points(*both, sizes=(ones, sizes[1])))
    # Sizes that are given come before those of the keypoints.
    assert same(rc.filter_points(kp1, kp2, sizes=(ones, ones)), rc.filter_points(*both))


@pytest.mark.parametrize("size", [0.0, -1.0, np.nan, np.inf])
def test_keypoints_of_which_one_has_no_size_have_none(size: float) -> None:
    given = scene()
    both = [np.round(points).astype(float) for points in given[:2]]
    kp1, kp2 = (keypoints(points, np.append(size, given.sizes[1:])) for points in both)
    assert same(rc.filter_points(kp1, kp2), rc.filter_points(*both))


def test_rows_without_a_match_change_nothing() -> None:
    given = scene()
    sizes, rows = (given.sizes, given.sizes), np.tile(np.append(np.arange(N_TRUE + N_FALSE), 0)[:, None], 2)
    masked = np.ma.array(rows, mask=[[False] * 2] * (len(rows) - 1) + [[True] * 2])
    mask = rc.filter_matches(given.points1, given.points2, masked, sizes=sizes)
    np.testing.assert_array_equal(mask, np.append(given.filtered(sizes=sizes).inlier_mask, False))
    assert rc.as_correspondences(keypoints(given.points1, given.sizes), given.points2, masked).sizes[0][-1] == 1.0


@pytest.mark.parametrize("find", [rc.find_homography, rc.find_fundamental_matrix, rc.find_essential_matrix])
def test_the_order_of_matches_and_duplicates_change_nothing(find: Callable[..., Any]) -> None:
    given, cameras = scene(), (CAMERA1, None, CAMERA2, None) if find is rc.find_essential_matrix else ()
    order = np.append(np.random.default_rng(0).permutation(N_TRUE + N_FALSE), [5, 5, 9])
    once = given.filtered(sizes=(given.sizes, given.sizes))
    again = rc.filter_points(given.points1[order], given.points2[order], sizes=(given.sizes[order],) * 2)
    np.testing.assert_array_equal(once.inlier_probabilities[order], again.inlier_probabilities)
    model, mask = find(given.points1, given.points2, *cameras, sizes=(given.sizes, given.sizes))
    other, repeated = find(given.points1[order], given.points2[order], *cameras, sizes=(given.sizes[order],) * 2)
    np.testing.assert_array_equal(model, other)
    np.testing.assert_array_equal(mask[order], repeated)
    without, _ = find(given.points1, given.points2, *cameras)
    assert not np.array_equal(model, without)


def test_of_duplicates_of_unlike_sizes_the_smallest_counts() -> None:
    given = scene()
    points1, points2 = (np.vstack([points, points[:40]]) for points in given[:2])
    expected = given.filtered(sizes=(given.sizes, given.sizes)).inlier_probabilities
    for sizes in (np.append(given.sizes, np.full(40, 50.0)), np.append(given.sizes, given.sizes[:40])):
        found = rc.filter_points(points1, points2, sizes=(sizes, sizes)).inlier_probabilities
        np.testing.assert_array_equal(found, np.append(expected, expected[:40]))


@pytest.mark.parametrize("extreme", [1e-320, 1e-200, 1e200, 1e308])
def test_extreme_sizes_overflow_nothing(extreme: float) -> None:
    given = scene()
    sizes = np.where(np.arange(N_TRUE + N_FALSE) % 7 == 0, extreme, given.sizes)
    with np.errstate(all="raise", under="ignore"):
        assert np.isfinite(given.filtered(sizes=(sizes, sizes)).inlier_probabilities).all()
