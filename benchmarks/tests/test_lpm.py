"""Locality Preserving Matching, as the benchmarks run it."""

import numpy as np
import pytest
from lpm import locality_preserving_matching, neighbours


@pytest.fixture
def field():
    rng = np.random.default_rng(3)
    points1 = rng.uniform(0, 600, (400, 2))
    points2 = points1 @ np.array([[1.02, 0.05], [-0.04, 0.97]]).T + [15.0, -8.0]
    true = np.arange(400) < 280
    points2[~true] = rng.uniform(0, 600, (120, 2))
    return points1, points2, true


def test_smooth_field_is_kept_and_random_matches_are_dropped(field):
    points1, points2, true = field
    mask, cost = locality_preserving_matching(points1, points2)
    assert mask[true].mean() > 0.95
    assert mask[~true].mean() < 0.1
    assert ((cost >= 0) & (cost <= 1)).all()


def test_neighbours_leave_out_the_point_itself_even_among_twins():
    points = np.repeat(np.arange(6.0), 2)[:, None] * [10.0, 0.0]
    found = neighbours(points, np.arange(12), 3)
    assert not (found == np.arange(12)[:, None]).any()
    assert all(index ^ 1 in row for index, row in enumerate(found))  # the twin is the nearest


def test_too_few_matches_are_all_dropped():
    mask, cost = locality_preserving_matching(np.zeros((5, 2)), np.ones((5, 2)))
    assert mask.shape == (5,)
    assert not mask.any()
    assert cost.shape == (5,)
