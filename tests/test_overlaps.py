"""Of two planes seen in one place the one that moves with more is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stage_cases import found_in
from two_views import one_window_off

from ruzhash_cv import filter_points
from ruzhash_cv.overlaps import resolve_overlaps
from ruzhash_cv.problem import Problem
from ruzhash_cv.search import Estimate, held_by


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
            assert (result.p_values[140:250] < 0.01).mean() < 0.1
    assert n_told >= 4


@pytest.fixture(scope="module")
def overlapping() -> tuple[Estimate, Problem]:
    """What the search finds where a wall and its copy one window off overlap."""
    found, problem = found_in(np.hstack(one_window_off(seed=0)[:2]))
    assert found.overlapping.any()
    return found, problem


def test_the_false_plane_goes_and_the_motion_of_the_true_one_joins(overlapping: tuple[Estimate, Problem]) -> None:
    found, problem = overlapping
    kept = resolve_overlaps(found, problem, np.random.default_rng(0))
    alone = resolve_overlaps(found, problem, np.random.default_rng(0), join_motions=False)
    assert [each.structures.family_ids.tolist() for each in (found, alone, kept)] == [[0, 0], [0], [0, 1]]
    of_copy = held_by(alone.structures, problem)[:, problem.matches.where][:, 140:250].any(axis=0)
    assert of_copy.mean() < 0.2


def test_planes_that_do_not_overlap_are_left_alone(overlapping: tuple[Estimate, Problem]) -> None:
    found, problem = overlapping
    apart = replace(found, overlapping=np.zeros_like(found.overlapping))
    assert resolve_overlaps(apart, problem, np.random.default_rng(0)) is apart


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
