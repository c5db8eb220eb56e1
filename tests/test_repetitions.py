"""Structures that lie among the matches of stronger ones are no surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv import filter_points
from ruzhash_cv.repetitions import N_NEIGHBOURS, own_share, tell_repetitions


def share_twin(points: np.ndarray, own: np.ndarray, rows: np.ndarray, around: np.ndarray, apart: float) -> float:
    shares = []
    for image in (points[:2].T, points[2:].T):
        said: list[bool] = []
        for row in rows:
            lengths = np.linalg.norm(image[around] - image[row], axis=1)
            far = around[lengths > apart][np.argsort(lengths[lengths > apart])][:N_NEIGHBOURS]
            said += list(own[far])
        shares.append(np.mean(said) if said else 1.0)
    return min(1.0, *shares)


@pytest.mark.parametrize("n", [2, 3, 5, 40, 200])
def test_the_share_equals_its_twin(n: int) -> None:
    rng = np.random.default_rng(n)
    points, own = rng.uniform(0, 100, (4, n)), rng.random(n) < 0.5
    around = np.flatnonzero(own | (rng.random(n) < 0.7))
    for apart in (0.0, 10.0):
        twin = share_twin(points, own, np.flatnonzero(own), around, apart)
        assert own_share(points, own, np.flatnonzero(own), around, apart) == pytest.approx(twin)


def two(
    apart: bool, n: int = 200, n_weaker: int = 60, n_wrong: int = 40, n_contested: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two planes beside each other, or one with some of its matches a period off; mismatches come last.

    Of the stronger plane `n_contested` matches end at second points of the weaker one's.
    """
    rng = np.random.default_rng(5)
    points1 = rng.uniform(0, 500, (n + n_wrong, 2))
    points2 = points1 * 1.1 + 20.0 + rng.normal(0, 0.3, points1.shape)
    weaker = points1[:n, 0] < np.sort(points1[:n, 0])[n_weaker] if apart else np.arange(n) < n_weaker
    points2[:n][weaker] += [70.0, 0.0]
    points2[n:] = rng.uniform(0, 550, (n_wrong, 2))
    taken, rivals = np.flatnonzero(weaker)[:n_contested], np.flatnonzero(~weaker)[:n_contested]
    points2[rivals], points1[rivals] = points2[taken], (points2[taken] - 20.0) / 1.1
    return points1, points2, np.append(weaker, np.zeros(n_wrong, bool))


def test_a_plane_beside_another_stays() -> None:
    for n_contested in (0, 10):
        points1, points2, weaker = two(apart=True, n_contested=n_contested)
        result = filter_points(points1, points2)
        assert len(result.models) == 2
        assert result.inlier_mask[weaker].mean() > 0.8
        assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.9


@pytest.mark.parametrize(("n_weaker", "n_contested"), [(60, 10), (20, 0)])
def test_matches_one_period_off_are_no_plane(n_weaker: int, n_contested: int) -> None:
    for seed in range(4):
        points1, points2, weaker = two(apart=False, n_weaker=n_weaker, n_contested=n_contested)
        result = filter_points(points1, points2, rng=seed)
        assert len(result.models) == 1
        assert not result.inlier_mask[weaker].any()
        assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.95


def test_a_plane_seen_through_another_stays_where_they_share_no_keypoint() -> None:
    """A fence, the panes of a wall, parallax."""
    points1, points2, weaker = two(apart=False)
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[weaker].mean() > 0.9


def test_strips_narrower_than_the_distance_of_matches_stay() -> None:
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, [640, 480], (400, 2))
    strip = points1[:, 1] // 30 % 2 == 1
    points2 = points1 * 1.05 + [20, 10] + strip[:, None] * [25, 4] + rng.normal(0, 0.5, points1.shape)
    points2[300:] = rng.uniform(0, [640, 480], (100, 2))
    mask = filter_points(points1, points2).inlier_mask[:300]
    assert min(mask[strip[:300]].mean(), mask[~strip[:300]].mean()) > 0.9


def test_a_plane_and_its_repetitions_are_no_rigid_motion() -> None:
    """Matches some periods off along one direction and a plane satisfy one fundamental matrix: mostly seen through, 3 of 12 by luck."""
    seen_through = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        points1 = rng.uniform(0, 500, (330, 2))
        points2 = 1.2 * points1 + rng.normal(0, 0.3, points1.shape)
        points2[150:250] += rng.integers(1, 3, (100, 1)) * [45.0, 10.0]
        points2[250:] = rng.uniform(0, 500, (80, 2))
        points2[:20], points1[:20] = points2[150:170], points2[150:170] / 1.2
        result = filter_points(points1, points2, rng=seed)
        if {found.kind for found in result.models} == {"homography"}:
            seen_through += 1
            assert result.inlier_mask[:150].mean() > 0.9
            assert result.inlier_mask[150:].mean() < 0.1
    assert seen_through >= 7


def test_a_plane_in_the_midst_of_another_stays() -> None:
    """What is in front hides what is behind."""
    rng = np.random.default_rng(1)
    points1 = rng.uniform(0, 500, (400, 2))
    inside = (np.abs(points1 - 250) < 90).all(axis=1)
    points2 = points1 + np.where(inside[:, None], [35.0, -20.0], [5.0, 5.0]) + rng.normal(0, 0.3, (400, 2))
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[inside].mean() > 0.9


def test_any_number_of_matches_is_judged_by_one_kernel() -> None:
    filter_points(*two(apart=True, n=600, n_weaker=200, n_contested=20)[:2])
    filter_points(*two(apart=True, n_contested=10)[:2])
    assert len(own_share.signatures) == 1  # type: ignore[attr-defined]


NOT_SHARED = (np.arange(90), np.arange(90))


@pytest.mark.parametrize("to_the_plane", [5.0, 0.5])
def test_what_a_few_mismatches_and_a_plane_make_goes(to_the_plane: float) -> None:
    """Whether or not it holds the plane's matches too."""
    points = np.random.default_rng(2).uniform(0, 100, (4, 90))
    distances = np.full((90, 2), 0.5)
    distances[82:, 0], distances[:82, 1] = 5.0, to_the_plane
    repeated, held, lost = tell_repetitions(points, distances, NOT_SHARED, 1.0)
    assert repeated.tolist() == [False, True]
    np.testing.assert_array_equal(held, np.arange(90) < 82)
    np.testing.assert_array_equal(lost, np.arange(90) >= 82)


@pytest.mark.parametrize("image", [0, 1])
def test_a_structure_that_competes_for_keypoints_goes(image: int) -> None:
    points = np.random.default_rng(2).uniform(0, 100, (4, 90))
    distances = np.full((90, 2), 5.0)
    distances[:60, 0] = distances[60:, 1] = 0.5
    assert not tell_repetitions(points, distances, NOT_SHARED, 1.0)[0].any()
    shared = [np.arange(90), np.arange(90)]
    shared[image] = np.append(np.arange(89), 3)
    assert tell_repetitions(points, distances, (shared[0], shared[1]), 1.0)[0].tolist() == [False, True]
    # Of some of many matches the keypoints' numbers exceed theirs.
    assert tell_repetitions(points, distances, (shared[0] + 500, shared[1] + 900), 1.0)[0].tolist() == [False, True]


def test_one_match_is_not_judged() -> None:
    points = np.random.default_rng(3).uniform(0, 100, (4, 90))
    distances = np.full((90, 2), 5.0)
    distances[:89, 0], distances[89, 1] = 0.5, 0.5
    assert not tell_repetitions(points, distances, NOT_SHARED, 1.0)[0].any()
    assert not tell_repetitions(points, np.full((90, 2), 5.0), NOT_SHARED, 1.0)[0].any()
