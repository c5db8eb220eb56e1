"""A host gets the matches of the strongest motion of a pair."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from two_views import H, motion

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.pipelines import selection

Array = NDArray[np.float64]
N = 120


def plane() -> Array:
    """Return matches of one plane, a quarter of them wrong."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (N, 2))
    mapped = np.column_stack([first, np.ones(N)]) @ H.T
    second = mapped[:, :2] / mapped[:, 2:] + 0.3 * rng.normal(size=(N, 2))
    second[: N // 4] = rng.uniform(0, 600, (N // 4, 2))
    return np.hstack([first, second])


def filtered(points: Array) -> FilterResult:
    return filter_points(points[:, :2], points[:, 2:])


@pytest.mark.parametrize(("points", "kind"), [(plane(), "homography"), (motion(N, noise=0.3, seed=0), "fundamental")])
def test_one_motion_is_the_strongest(points: Array, kind: str) -> None:
    result = filtered(points)
    assert selection.strongest_motion(result) == 0
    assert result.motions[0].kind == kind
    mask = selection.matches_of_strongest(result)
    assert mask.sum() > N / 2
    np.testing.assert_array_equal(mask, result.inlier_mask)


def test_of_several_motions_the_one_of_most_matches_is_taken() -> None:
    points = motion(N, noise=0.3, seed=0)
    points[:25, 2:] = points[:25, :2] + [-80.0, -80.0] + 0.3 * np.random.default_rng(2).normal(size=(25, 2))
    result = filtered(points)
    mask = selection.matches_of_strongest(result)
    assert result.motions[0].kind == "fundamental"
    assert mask[25:].mean() > 0.9
    assert mask[:25].mean() < 0.2


def test_what_stood_still_is_never_the_strongest_motion() -> None:
    """A watermark may hold more matches than any motion of the scene."""
    result, labels = filtered(motion(N, noise=0.3, seed=0)), np.where(np.arange(N) < 70, 0, 1)
    scene = replace(result.models[0], parts=())
    mark = replace(scene, stationary=True, support=N)
    both = replace(result, models=(mark, scene), labels=labels)
    assert selection.strongest_motion(both) == 1
    np.testing.assert_array_equal(selection.matches_of_strongest(both), labels == 1)
    alone = replace(result, models=(mark,), labels=np.zeros(N, int))
    assert not selection.matches_of_strongest(alone).any()


def test_where_nothing_is_found_nothing_is_chosen() -> None:
    result = filtered(np.random.default_rng(0).uniform(0, 600, (N, 4)))
    assert selection.strongest_motion(result) is None
    assert not selection.matches_of_strongest(result).any()
