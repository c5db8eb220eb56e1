"""Planes that a wide structure hides are structures of their own; what is one plane stays one, however noisy."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv import filter_points, find_homography, transfer_error

Array = np.ndarray


def beside(step: float, slope: float, seed: int, noise: float = 0.5) -> tuple[Array, Array, Array]:
    """Two planes beside each other, the right one a step nearer and sloping, as pixels of 200 matches and 60 mismatches."""
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 600, (260, 2))
    right = points1[:200, 0] > 300
    points2 = 1.05 * points1 + 10.0
    points2[:200][right] += [step, 0.0] + slope * (points1[:200][right] - 300.0)
    points2 += rng.normal(0, noise, points2.shape)
    points2[200:] = rng.uniform(0, 600, (60, 2))
    return points1, points2, right


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("step", "slope"), [(20.0, 0.0), (0.0, 0.1), (15.0, 0.05)])
def test_neighbouring_planes_have_a_label_each(step: float, slope: float, seed: int) -> None:
    points1, points2, right = beside(step, slope, seed)
    result = filter_points(points1, points2, rng=seed)
    assert len(result.models) == 2
    assert max(model.tolerance for model in result.models) < 8.0
    left = int(np.bincount(result.labels[:200][~right]).argmax())
    assert np.mean(result.labels[:200] == np.where(right, 1 - left, left)) > 0.96
    assert np.mean(result.inlier_mask[:200]) > 0.98
    matrix, _ = find_homography(points1, points2)
    exact = 1.05 * points1[:200] + 10.0
    exact[right] += [step, 0.0] + slope * (points1[:200][right] - 300.0)
    errors = transfer_error(points1[:200], exact, matrix)
    assert min(np.median(errors[right]), np.median(errors[~right])) < 0.5


@pytest.mark.parametrize("noise", [3.0, 5.0])
def test_a_noisy_plane_stays_one(noise: float) -> None:
    for seed in range(3):
        points1, points2, _ = beside(0.0, 0.0, seed, noise)
        result = filter_points(points1, points2, rng=seed)
        assert result.models[0].tolerance > 12.0
        assert len(result.models) == 1
