"""Which kept matches are written for a host: those of the strongest motion."""

from dataclasses import replace

import numpy as np
from two_views import motion

from ruzhash_cv import filter_points
from ruzhash_cv.pipelines.runs import chosen_matches, strongest_motion

N = 120


def test_static_matches_are_never_the_strongest_motion() -> None:
    """A watermark may hold more matches than any motion of the scene."""
    points, labels = motion(N, noise=0.3, seed=0), np.where(np.arange(N) < 70, 0, 1)
    result = filter_points(points[:, :2], points[:, 2:])
    scene = replace(result.motions[0], planes=(), mask=labels == 1)
    mark = replace(scene, stationary=True, mask=labels == 0)
    both = replace(result, motions=(mark, scene))
    assert strongest_motion(both) == 1
    np.testing.assert_array_equal(chosen_matches(both, only_strongest=True), labels == 1)
    alone = replace(result, motions=(mark,))
    assert strongest_motion(alone) is None
    assert not chosen_matches(alone, only_strongest=True).any()
    np.testing.assert_array_equal(chosen_matches(alone, only_strongest=False), result.inlier_mask)
