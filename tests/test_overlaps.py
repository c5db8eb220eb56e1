"""Of two planes seen in one place the one that moves with more is true."""

from __future__ import annotations

import numpy as np
import pytest
from stage_cases import mismatches
from two_views import Array, one_window_off, plane, views

from ruzhash_cv import filter_points


def shares_kept(mask: np.ndarray) -> list[float]:
    """Return the shares kept of the wall, of the things before it, and of the wall matched one window off."""
    return [float(part.mean()) for part in np.split(mask, [80, 140, 250])[:3]]


def test_of_two_planes_in_one_place_the_one_that_moves_with_more_is_true() -> None:
    """Or both stay, where they look like parts of one motion; the true one never goes."""
    n_told = 0
    for seed in range(8):
        points1, points2, _ = one_window_off(seed=seed)
        result = filter_points(points1, points2, rng=seed)
        wall, things, copy = shares_kept(result.inlier_mask)
        assert wall > 0.9
        if copy < 0.1:
            n_told += 1
            assert things > 0.9
            assert (result.inlier_probabilities[140:250] > 0.5).mean() < 0.1
    assert n_told >= 4


@pytest.mark.parametrize("seed", [3, 6])
def test_a_plane_that_goes_takes_no_other_with_it(seed: int) -> None:
    """Two planes side by side, and one all over both: the larger one drops it, so that the smaller one has its place to itself."""
    rng, first, second = np.random.default_rng(seed), [], []
    for (low, high), n, angle, scale, shift in (
        ((0, 400), 150, 0.1, 1.1, 30), ((100, 800), 120, -0.2, 0.9, -40), ((500, 800), 60, 0.25, 1.2, 10),
    ):  # fmt: skip
        first.append(rng.uniform([low, 0], [high, 480], (n, 2)))
        cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
        middle = first[-1].mean(axis=0)
        second.append((first[-1] - middle) @ [[cosine, sine], [-sine, cosine]] + middle + [shift, 0.5 * shift])
    wrong = rng.uniform([0, 0], [800, 480], (2, 40, 2))
    points2 = np.vstack([*second, wrong[1]])
    points2 += rng.normal(0, 0.4, points2.shape)
    mask = filter_points(np.vstack([*first, wrong[0]]), points2, rng=seed).inlier_mask
    np.testing.assert_allclose([part.mean() for part in np.split(mask, [150, 270, 330])[:3]], [1, 0, 1], atol=0.1)


def two_walls(seed: int) -> Array:
    """Return matches (n, 4) of two walls, a hundred each, of twelve things before them, and 60 mismatches."""
    rng = np.random.default_rng(seed)
    across = rng.uniform(-1, 1, (200, 2))
    depth = np.where(np.arange(200) < 100, 4 + 0.8 * across[:, 0], 5 - across[:, 1])
    across[:, 0] += np.where(np.arange(200) < 100, -1.1, 1.1)
    things = np.column_stack([rng.uniform(-1.5, 1.5, (12, 2)), rng.uniform(3, 4, 12)])
    points = np.vstack([np.column_stack([across, depth]), things])
    seen = np.hstack(views(points, points))
    return np.vstack([seen + 0.3 * rng.normal(size=seen.shape), rng.uniform(0, 800, (60, 4))])


@pytest.mark.parametrize("seed", [0, 5])
def test_the_motion_of_two_planes_joins_them_if_a_threshold_is_given(seed: int) -> None:
    points1, points2 = np.hsplit(two_walls(seed), 2)
    assert [model.kind for model in filter_points(points1, points2).models] == ["homography"] * 2
    result = filter_points(points1, points2, threshold=2.0)
    assert [model.kind for model in result.models] == ["fundamental", "homography", "homography"]
    assert result.models[0].noise_scale < 0.5
    assert result.inlier_mask[:212].mean() > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_no_motion_joins_one_plane(seed: int) -> None:
    data = np.vstack([plane(100, 0.3, seed), mismatches(60, seed)])
    assert [model.kind for model in filter_points(data[:, :2], data[:, 2:], threshold=2.0).models] == ["homography"]
