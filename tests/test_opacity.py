"""Structures that lie among the matches of stronger ones are no surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv import filter_points
from ruzhash_cv.opacity import N_NEIGHBOURS, own_share, tell_transparent


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


def two(apart: bool, n: int = 200, n_weaker: int = 60, n_wrong: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two planes beside each other, or one with some of its matches a period off; mismatches come last."""
    rng = np.random.default_rng(5)
    points1 = rng.uniform(0, 500, (n + n_wrong, 2))
    points2 = points1 * 1.1 + 20.0 + rng.normal(0, 0.3, points1.shape)
    weaker = points1[:n, 0] < np.sort(points1[:n, 0])[n_weaker] if apart else np.arange(n) < n_weaker
    points2[:n][weaker] += [70.0, 0.0]
    points2[n:] = rng.uniform(0, 550, (n_wrong, 2))
    return points1, points2, np.append(weaker, np.zeros(n_wrong, bool))


def test_a_plane_beside_another_stays() -> None:
    points1, points2, weaker = two(apart=True)
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[weaker].mean() > 0.95
    assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.95


def test_matches_one_period_off_are_no_plane() -> None:
    points1, points2, weaker = two(apart=False)
    result = filter_points(points1, points2)
    assert len(result.models) == 1
    assert not result.inlier_mask[weaker].any()
    assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.95
    # Nor do they look better than other mismatches.
    assert np.median(result.p_values[weaker]) > 0.1


def test_a_plane_in_the_midst_of_another_stays() -> None:
    """What is in front hides what is behind."""
    rng = np.random.default_rng(1)
    points1 = rng.uniform(0, 500, (400, 2))
    inside = (np.abs(points1 - 250) < 90).all(axis=1)
    points2 = points1 + np.where(inside[:, None], [35.0, -20.0], [5.0, 5.0]) + rng.normal(0, 0.3, (400, 2))
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[inside].mean() > 0.9


def test_a_fundamental_matrix_among_the_matches_of_a_plane_goes() -> None:
    """Whether or not it holds the plane's matches too: it is easily made of a plane and a few mismatches."""
    points = np.random.default_rng(2).uniform(0, 100, (4, 90))
    for to_the_plane in (5.0, 0.5):
        distances = np.full((90, 2), 0.5)
        distances[60:, 0], distances[:60, 1] = 5.0, to_the_plane
        transparent, held, lost = tell_transparent(points, distances, 1.0)
        assert transparent.tolist() == [False, True]
        np.testing.assert_array_equal(held, np.arange(90) < 60)
        np.testing.assert_array_equal(lost, np.arange(90) >= 60)


def test_too_few_matches_are_not_judged() -> None:
    points = np.random.default_rng(3).uniform(0, 100, (4, 30))
    distances = np.full((30, 2), 5.0)
    distances[:29, 0], distances[29, 1] = 0.5, 0.5
    assert not tell_transparent(points, distances, 1.0)[0].any()
    assert not tell_transparent(points, np.full((30, 2), 5.0), 1.0)[0].any()
