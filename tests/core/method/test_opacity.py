"""Matches that jump over a plane contradict it; false motions lie among a stronger one, or are patches as mismatches are."""

from dataclasses import replace

import naive
import numpy as np
import pytest
from posed_views import CAMERA1, CAMERA2, turned, views
from stage_cases import in_pixels

from ruzhash_cv import filter_points
from ruzhash_cv.core.families.base import Models
from ruzhash_cv.core.method.opacity import Opacity, contradicting, false_motions, own_share, patch_size
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scene import Scene
from ruzhash_cv.filtering import families_of

Array = np.ndarray


@pytest.mark.parametrize("n", [2, 3, 5, 40, 200])
def test_the_share_of_own_neighbours_equals_its_twin(n: int) -> None:
    rng = np.random.default_rng(n)
    points, own = rng.uniform(0, 100, (n, 2)), rng.random(n) < 0.5
    own[0] = True
    around = own | (rng.random(n) < 0.7)
    for same in (0.0, 3.0):
        assert own_share(points, own, around, same) == pytest.approx(naive.own_share(points, own, around, same))


@pytest.mark.parametrize("n", [1, 3, 12, 60, 200])
def test_contradicting_matches_equal_their_twin(n: int) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        first = rng.uniform(0, 40, (n, 2)).round(int(rng.integers(0, 3)))
        data = np.hstack([first, first + rng.choice([0.0, 9.0], (n, 1)) + rng.normal(0, 2, (n, 2))])
        labels, weights = rng.integers(-1, 2, n), rng.uniform(0.3, 1, n)
        expected = naive.contradicting(data, labels, weights, 4, PARAMETERS.unit)
        assert contradicting(labels, in_pixels(data, weights), 4).tolist() == expected.tolist()


def test_a_match_contradicts_a_plane_if_it_jumps_over_its_matches_and_none_go_along() -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (300, 2))
    plane = np.hstack([first, first + 20.0])
    lone, beside = [300.0, 300.0, 420.0, 320.0], [1500.0, 300.0, 1620.0, 320.0]  # among the plane's matches, and not
    centre = rng.uniform(280, 320, (20, 2))
    hidden = (np.abs(first - 300) < 30).all(axis=1) | (np.abs(first - [400, 300]) < 30).all(axis=1)
    data = np.vstack([plane[~hidden], np.hstack([centre, centre + [120.0, 20.0]])])
    labels = np.where(np.arange(len(data)) < len(data) - 20, 0, -1)
    assert not contradicting(labels, in_pixels(data), 10).any()  # what moves before a plane
    data, labels = np.vstack([plane, lone, beside]), np.repeat([0, -1], [300, 2])
    assert contradicting(labels, in_pixels(data), 10).tolist() == [False] * 300 + [True, False]
    assert not contradicting(labels, in_pixels(data), 301).any()


@pytest.mark.parametrize(("n_false", "slipped"), [(2, False), (3, True)])
def test_matches_off_surfaces_are_slips_if_three_and_a_share_of_them_contradict_planes(
    n_false: int, slipped: bool
) -> None:
    off, contradict = np.repeat([False, True], [14, 8]), np.zeros(22, bool)
    contradict[14 : 14 + n_false] = True
    squared = np.array([np.full(22, 0.1), np.full(22, 9.0)])
    labels = np.where(off, -1, 0)
    opacity = Opacity(labels, contradict, np.zeros(22))
    assert opacity.are_slips(squared, 1.0, PARAMETERS).tolist() == [slipped, False]
    left = opacity.without_slips(squared.copy(), 1.0, PARAMETERS)
    assert np.isinf(left[0]).tolist() == (slipped & off).tolist()
    np.testing.assert_array_equal(left[1], squared[1])
    assert not opacity.are_slips(squared, 1.0, replace(PARAMETERS, slip_share=0.5)).any()
    # As many as by chance are none.
    assert not Opacity(labels, contradict, np.full(22, 0.5)).are_slips(squared, 1.0, PARAMETERS).any()


def on_a_grid(n: int, origin: Array, shift: Array) -> Array:
    """Return n * n matches (., 4) of points 10 px apart, all displaced by a shift."""
    first = origin + 10.0 * np.stack(np.meshgrid(np.arange(n), np.arange(n)), axis=-1).reshape(-1, 2)
    return np.hstack([first, first + shift])


def test_patches_have_as_many_matches_as_move_together() -> None:
    rng = np.random.default_rng(0)
    centres, targets = rng.uniform(0, 5000, (2, 200, 2))
    for size in (1, 2, 3):
        around = rng.uniform(-1, 1, (200, size, 2))
        patches = np.concatenate([centres[:, None] + around, targets[:, None] + around], axis=2).reshape(-1, 4)
        assert patch_size(patches) == pytest.approx(size, rel=0.15)
    assert patch_size(patches[:12]) == 1.0


def scene_of(shifts: list[list[float]], evidences: list[float], family_ids: list[int]) -> Scene:
    """Return a scene of motions by shifts (k, 2): homographies (0), or fundamental matrices (1) of lines along them."""
    matrices = []
    for (x, y), family_id in zip(shifts, family_ids, strict=True):
        plane, lines = [[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]], [[0.0, 0.0, y], [0.0, 0.0, -x], [-y, x, 0.0]]
        matrices.append(np.array(lines if family_id else plane).ravel())
    models, k = Models(np.array(matrices), np.array(family_ids)), len(shifts)
    return Scene.of(models, np.ones(k), np.array(evidences), np.full(k, 0.3))


@pytest.mark.parametrize("rigid", [0, 1])
def test_a_motion_is_false_if_it_is_interleaved_with_a_rigid_one_in_either_image(rigid: int) -> None:
    first = on_a_grid(20, np.zeros(2), np.array([100.0, 0.0]))
    among = on_a_grid(5, np.array([53.0, 54.0]), np.array([300.0, 305.0]))  # beside it in the second image
    beside = on_a_grid(5, np.array([400.0, 0.0]), np.array([300.0, 105.0]))
    matches = in_pixels(np.vstack([first, among, beside]))
    scene = scene_of([[100.0, 0.0], [300.0, 305.0], [300.0, 105.0]], [90.0] * 3, [rigid, 0, 0])
    problem = Problem(matches, np.zeros((0, 4)), families_of("auto"), PARAMETERS)
    assert false_motions(scene, 1000, problem).tolist() == [False, bool(rigid), False]


def test_of_a_rigid_motion_and_a_lone_plane_among_each_other_one_is_left() -> None:
    lines = on_a_grid(20, np.zeros(2), np.array([100.0, 0.0]))
    plane = on_a_grid(15, np.array([5.0, 5.0]), np.array([100.0, 7.0]))
    scene = scene_of([[100.0, 0.0], [100.0, 7.0]], [90.0] * 2, [1, 0])
    problem = Problem(in_pixels(np.vstack([lines, plane])), np.zeros((0, 4)), families_of("auto"), PARAMETERS)
    assert false_motions(scene, 1000, problem).tolist() == [True, False]


@pytest.mark.parametrize("size", [1, 3])
def test_a_motion_is_false_if_it_has_no_evidence_by_patches_of_mismatches(size: int) -> None:
    first = on_a_grid(20, np.zeros(2), np.array([100.0, 0.0]))
    beside = on_a_grid(5, np.array([400.0, 0.0]), np.array([300.0, 105.0]))
    rng = np.random.default_rng(0)
    centres, targets = rng.uniform(1000, 5000, (2, 200, 1, 2))
    around = rng.uniform(-5, 5, (200, size, 2))
    mismatches = np.concatenate([centres + around, targets + around], axis=2).reshape(-1, 4)
    problem = Problem(
        in_pixels(np.vstack([first, beside, mismatches])), np.zeros((0, 4)), families_of("auto"), PARAMETERS
    )
    for evidence, is_false in ((15.0, size == 3), (100.0, False)):
        scene = scene_of([[100.0, 0.0], [300.0, 105.0]], [500.0, evidence], [0, 0])
        assert false_motions(scene, 1000, problem).tolist() == [False, is_false]
    # Beside a rigid motion a plane has its cost.
    for evidence, is_false in ((0.9, True), (1.2, size == 3)):
        scene = scene_of([[100.0, 0.0], [300.0, 105.0]], [500.0, evidence * PARAMETERS.motion_cost], [1, 0])
        assert false_motions(scene, 1000, problem).tolist() == [False, is_false]
    # Patches as large as a structure are no measure.
    assert not false_motions(scene_of([[100.0, 0.0], [300.0, 105.0]], [15.0, 12.0], [0, 0]), 1000, problem).any()


def test_few_near_points_before_a_far_background_do_not_contradict_it() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.uniform([0, 0], [640, 480], (140, 2))
    depths = np.append(rng.uniform(2000, 5000, 120), rng.uniform(3, 8, 20))
    points = np.c_[pixels, np.ones(140)] @ np.linalg.inv(CAMERA1).T * depths[:, None]
    given = views(points, (turned(0.02, 0.05, -0.01), np.array([0.8, 0.1, 0.2])), noise=0.3)
    for cameras, least, most in (((CAMERA1, CAMERA2), 0.9, 1.0), (None, 0.0, 0.5)):
        kept = filter_points(*given, cameras=cameras).inlier_mask[120:].mean()
        assert least <= kept <= most
