"""Structures that lie among the matches of stronger ones and compete with them for keypoints are no surfaces."""

import numpy as np
import pytest
from result_rows import kinds
from two_views import copies_of_one, shifted_along_lines, strips, two_planes

from ruzhash_cv import filter_points


@pytest.mark.parametrize("n", [4, 8, 12])
def test_each_copy_of_one_object_is_a_lone_plane(n: int) -> None:
    for seed in range(3):
        points1, points2, copies = copies_of_one(n, seed)
        result = filter_points(points1, points2, rng=seed)
        assert kinds(result) == ["homography"] * n
        shares = [np.bincount(copies[motion.mask], minlength=n).max() / motion.mask.sum() for motion in result.motions]
        assert min(shares) > 0.9
        assert result.inlier_mask[copies < n].mean() > 0.9


@pytest.mark.parametrize("n_contested", [0, 10])
def test_a_plane_beside_another_stays(n_contested: int) -> None:
    pairs, weaker = two_planes(apart=True, n_contested=n_contested)
    result = filter_points(pairs[:, :2], pairs[:, 2:])
    assert kinds(result).count("homography") == 2
    assert result.inlier_mask[weaker].mean() > 0.8
    assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.9


def test_matches_one_period_off_are_no_plane() -> None:
    pairs, weaker = two_planes(apart=False, n_contested=20)
    dropped = []
    for seed in range(4):
        result = filter_points(pairs[:, :2], pairs[:, 2:], rng=seed)
        dropped.append(kinds(result).count("homography") == 1 and result.inlier_mask[weaker].mean() < 0.1)
        assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.95
    # Two planes fit one fundamental matrix, so that texture may come back as parallax.
    assert sum(dropped) >= 2


def test_surface_seen_through_a_fence_with_separate_keypoints_is_kept() -> None:
    """Parallax along lines is a motion; window panes are a second plane."""
    parallax = filter_points(*shifted_along_lines(0, contested=False))
    assert [motion.kind for motion in parallax.motions] == ["fundamental"]
    assert parallax.inlier_mask[:210].mean() > 0.8
    pairs, weaker = two_planes(apart=False)
    panes = filter_points(pairs[:, :2], pairs[:, 2:])
    assert kinds(panes).count("homography") == 2
    assert panes.inlier_mask[weaker].mean() > 0.9


def test_strips_narrower_than_the_distance_of_matches_stay() -> None:
    pairs, odd = strips(30, [25, 4])
    mask = filter_points(pairs[:, :2], pairs[:, 2:]).inlier_mask[:300]
    assert min(mask[odd[:300]].mean(), mask[~odd[:300]].mean()) > 0.9


def test_a_plane_in_the_midst_of_another_stays() -> None:
    """What is in front hides what is behind."""
    rng = np.random.default_rng(1)
    points1 = rng.uniform(0, 500, (400, 2))
    inside = (np.abs(points1 - 250) < 90).all(axis=1)
    points2 = points1 + np.where(inside[:, None], [35.0, -20.0], [5.0, 5.0]) + rng.normal(0, 0.3, (400, 2))
    result = filter_points(points1, points2)
    assert kinds(result).count("homography") == 2
    assert result.inlier_mask[inside].mean() > 0.9


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
