"""What keypoints tell besides their places: trust in matches that turn and scale as their neighbours do."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ruzhash_cv import as_correspondences, filter_matches, filter_points
from ruzhash_cv.keypoints import LEAST_TRUST, Appearance, true_shares, trust

Array = np.ndarray


def turned_plane(n: int, n_mismatches: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Correspondences (n, 4) of a plane turned by 40 degrees and twice as large; angles (n, 2), radians, and octaves (n, 2)."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(-1, 1, (n, 2))
    turn = np.radians(40.0)
    second = 2.0 * first @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    angles, octaves = rng.uniform(-np.pi, np.pi, n), rng.uniform(0, 4, n)
    seen = [
        np.column_stack([angles, angles + turn + rng.normal(0, 0.05, n)]),
        np.column_stack([octaves, octaves + 1.0]),
    ]
    wrong = slice(n - n_mismatches, n)
    second[wrong] = rng.uniform(-2, 2, (n_mismatches, 2))
    seen[0][wrong], seen[1][wrong] = rng.uniform(-np.pi, np.pi, (n_mismatches, 2)), rng.uniform(0, 4, (n_mismatches, 2))
    return np.hstack([first, second]), *seen


@pytest.mark.parametrize("given", ["angles", "octaves", "both"])
def test_matches_that_turn_or_scale_as_their_neighbours_are_trusted(given: str) -> None:
    data, angles, octaves = turned_plane(200, 80)
    keypoints = Appearance(angles if given != "octaves" else None, octaves if given != "angles" else None, None)
    found = trust(data, keypoints, np.random.default_rng(0))
    assert np.median(found[:120]) > 0.8
    assert np.median(found[120:]) < 0.3
    assert found.min() >= LEAST_TRUST
    assert found.max() <= 1.0


def test_angles_are_the_same_a_full_turn_further() -> None:
    data, angles, _ = turned_plane(150, 50)
    further = angles + 2.0 * np.pi * np.random.default_rng(0).integers(-2, 3, angles.shape)
    found = [trust(data, Appearance(of, None, None), np.random.default_rng(0)) for of in (angles, further)]
    np.testing.assert_allclose(*found, atol=1e-9)


def test_what_quality_means_is_learnt_from_the_pair() -> None:
    data, _, _ = turned_plane(200, 80)
    wrong = np.arange(200) >= 120
    telling = np.random.default_rng(1).uniform(0, 1, 200) + 0.8 * wrong
    found = trust(data, Appearance(None, None, telling), np.random.default_rng(0))
    assert found[~wrong].mean() > found[wrong].mean() + 0.15
    assert (np.diff(found[np.argsort(telling)]) <= 1e-12).all()


def test_shares_rise_with_the_statistic_and_fall_to_nothing_where_matches_are_like_decoys() -> None:
    rng = np.random.default_rng(0)
    null = rng.normal(0, 1, 2000)
    mixed = np.concatenate([rng.normal(0, 1, 300), rng.normal(4, 1, 300)])
    shares = true_shares(mixed, null)
    assert (np.diff(shares[np.argsort(mixed)]) >= 0).all()
    assert shares[300:].mean() > 0.9
    assert shares[:300].mean() < 0.2
    assert true_shares(null[:600], null).mean() < 0.1


def test_keypoints_give_their_sizes_and_angles_where_they_vary() -> None:
    held = [cv2.KeyPoint(float(x), 0.0, 2.0 + x, 10.0 * x) for x in range(5)]
    bare = [cv2.KeyPoint(float(x), 0.0, 7.0, -1) for x in range(5)]
    matches = [cv2.DMatch(4 - x, x, 0.0) for x in range(5)]
    pairs = as_correspondences(held, held, matches)
    np.testing.assert_array_equal(pairs.angles[0], [40, 30, 20, 10, 0])
    np.testing.assert_array_equal(pairs.sizes[1], [2, 3, 4, 5, 6])
    for other in (bare, cv2.KeyPoint.convert(held)):
        pairs = as_correspondences(held, other, matches)
        assert pairs.angles is None
        assert pairs.sizes is None


def test_wrong_sizes_angles_and_qualities_are_named() -> None:
    points, column = np.random.default_rng(0).uniform(0, 500, (20, 2)), np.ones(20)
    with pytest.raises(
        ValueError, match=r"`sizes` must be two arrays, of the first and of the second image, got ndarray"
    ):
        filter_points(points, points, sizes=column)
    with pytest.raises(ValueError, match=r"`angles\[1\]` must have one entry per match, 20, got 3"):
        filter_points(points, points, angles=(column, np.ones(3)))
    with pytest.raises(ValueError, match=r"`sizes\[0\]` must be finite and at least"):
        filter_points(points, points, sizes=(0.0 * column, column))
    with pytest.raises(ValueError, match="`match_quality` must have one entry per match, 20, got 19"):
        filter_points(points, points, match_quality=np.ones(19))


def test_matches_of_keypoints_are_filtered_as_points_with_their_sizes_and_angles() -> None:
    data, angles, octaves = turned_plane(300, 150)
    pixels, sizes = 300.0 + 150.0 * data, 2.0**octaves
    kps = [
        [
            cv2.KeyPoint(*map(float, row), float(size), float(np.degrees(angle) % 360))
            for row, size, angle in zip(*of, strict=True)
        ]
        for of in ((pixels[:, :2], sizes[:, 0], angles[:, 0]), (pixels[:, 2:], sizes[:, 1], angles[:, 1]))
    ]
    matches = [cv2.DMatch(row, row, 0.0) for row in range(300)]
    pairs = as_correspondences(*kps, matches)
    expected = filter_points(pairs.points1, pairs.points2, sizes=pairs.sizes, angles=pairs.angles).inlier_mask
    np.testing.assert_array_equal(filter_matches(*kps, matches), expected)
    assert expected[:150].mean() > 0.95
