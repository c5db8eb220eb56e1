"""Of two planes seen in one place the one that moves with more is true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stage_cases import found_in, mismatches
from two_views import Array, one_window_off, plane, views

from ruzhash_cv import filter_points
from ruzhash_cv.overlaps import join_motions, resolve_overlaps
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
            assert (result.inlier_probabilities[140:250] > 0.5).mean() < 0.1
    assert n_told >= 4


@pytest.fixture(scope="module")
def overlapping() -> tuple[Estimate, Problem]:
    """What the search finds where a wall and its copy one window off overlap."""
    found, problem = found_in(np.hstack(one_window_off(seed=9)[:2]))
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
def test_the_motion_of_two_planes_joins_them(seed: int) -> None:
    found, problem = found_in(two_walls(seed))
    assert found.structures.family_ids.tolist() == [0, 0]
    joined = join_motions(found, problem).structures
    assert joined.family_ids.tolist() == [1, 0, 0]
    assert joined.evidences.tolist() == sorted(joined.evidences, reverse=True)
    assert joined.noise[0] < 0.5 * problem.matches.frame.scale
    np.testing.assert_allclose(problem.radii.tolerances(joined.radius_indices), joined.tolerances)
    within = problem.families.in_tolerances(joined, joined.tolerances, problem.matches.data)[0] <= 1.0
    assert within[problem.matches.where][:212].mean() > 0.95
    assert joined.weights[0] == problem.matches.weights[within].sum()


@pytest.mark.parametrize("seed", range(3))
def test_no_motion_joins_one_plane(seed: int) -> None:
    found, problem = found_in(np.vstack([plane(100, 0.3, seed), mismatches(60, seed)]))
    assert join_motions(found, problem).structures.family_ids.tolist() == [0]


def test_a_motion_that_is_a_structure_does_not_join_again() -> None:
    found, problem = found_in(two_walls(0))
    once = join_motions(found, problem)
    assert len(join_motions(once, problem).structures) == len(once.structures)
