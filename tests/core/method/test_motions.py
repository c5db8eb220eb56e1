"""Motions hold the planes that move together; what moves by itself stays by itself; and what did not move is no part of any."""

import pickle
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from posed_views import CAMERA1 as CAMERA
from posed_views import (
    CAMERA2,
    FLOOR,
    POSE,
    SIDE,
    TURN,
    WALL,
    behind,
    filtered,
    on_plane,
    pose_error,
    seen,
    things_before,
    turned,
    views,
)
from stage_cases import in_pixels, matches_of, mismatches
from two_views import plane

from ruzhash_cv import FilterResult, filter_points, find_fundamental_matrix
from ruzhash_cv.core.families.base import Models
from ruzhash_cv.core.method import motions
from ruzhash_cv.core.method.bending import STRAIGHT, Lens
from ruzhash_cv.core.method.fits import refine_structures
from ruzhash_cv.core.method.motions import held_by_motions, ranked
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.core.method.proofs import relief_gains
from ruzhash_cv.core.method.sampling import Problem, decoys_of_matches
from ruzhash_cv.core.method.scene import Scene
from ruzhash_cv.core.method.search import EXPLAINED, search
from ruzhash_cv.filtering import families_of
from ruzhash_cv.models import sampson_distance

Array = np.ndarray
three_seeds = pytest.mark.parametrize("seed", range(3))


def kinds(result: FilterResult) -> list[str]:
    return [motion.kind for motion in result.motions]


def off_wall(n: int, n_off: int, rng: np.random.Generator, low: float = 0.5, high: float = 0.9) -> Array:
    """Return points of the wall and then some nearer to the camera, in shares of their depth on the wall."""
    return np.vstack([on_plane(WALL, n, rng), on_plane(WALL, n_off, rng, low, high)])


def smaller(points: Array) -> Array:
    """Return points that fill 40 % of the first image in width and height."""
    return np.column_stack([0.4 * points[:, :2], points[:, 2]])


def bent(points: Array) -> Array:
    """Return pixels as a lens bends them that is not undistorted."""
    off = points - [320.0, 240.0]
    return points + 0.02 * off * (off**2).sum(axis=1, keepdims=True) / 400.0**2


# What is one motion


@three_seeds
def test_two_planes_and_what_is_off_them_are_one_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.vstack([on_plane(FLOOR, 80, rng), off_wall(80, 25, rng)])
    result = filtered(views(points, seed=seed), seed=seed)
    motion = result.motions[0]
    assert set(kinds(result)) == {"fundamental"}
    assert motion.mask.sum() >= 0.9 * result.inlier_mask[:185].sum()
    assert np.median(sampson_distance(*views(points, noise=0.0), motion.matrix)) < 0.5
    assert abs(np.linalg.det(motion.matrix)) < 1e-14
    assert pose_error(result) < 2.0


@pytest.mark.parametrize("seed", [0, 2])
def test_planes_that_a_lens_bends_are_one_motion_and_may_be_listed_in_parts(seed: int) -> None:
    """The planes of the motion fit its matrix, which is off by some tenths of a pixel, so that a bent wall takes several of them."""

    rng = np.random.default_rng(seed)
    walls = enumerate((WALL, FLOOR, SIDE))
    parts = [views(on_plane(plane, 150, rng), noise=0.1, seed=seed + at) for at, plane in walls]
    result = filtered(*((bent(first), bent(second)) for first, second in parts))
    (motion,) = result.motions
    assert (motion.kind, len(motion.planes) >= 3) == ("fundamental", True)
    assert motion.mask[:450].mean() > 0.97
    # Walls are not mixed: a plane has the matches of one of them.
    shares = [np.array([plane.mask[150 * at : 150 * (at + 1)].sum() for at in range(3)]) for plane in motion.planes]
    assert sum(share.max() for share in shares) > 0.9 * sum(share.sum() for share in shares)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_floor_that_a_lens_bends_is_one_motion_with_what_stands_on_it(seed: int) -> None:
    """Some matrix fits even the bend, but not the box: its points would be 11 to 18 px off their lines."""
    rng = np.random.default_rng(seed)
    box = rng.uniform([-0.4, -0.8, 5.0], [0.4, 0.2, 5.3], (25, 3))
    floor = on_plane(FLOOR, 250, rng)
    floor = floor[behind(views(floor, noise=0.0), views(box, noise=0.0))]
    given = [bent(of) for of in views(np.vstack([floor, box]), noise=0.1, seed=seed)]
    for matrix in (find_fundamental_matrix(*given, rng=seed)[0], filter_points(*given, rng=seed).motions[0].matrix):
        assert np.median(sampson_distance(*views(box, noise=0.0), matrix)) < 1.0


@three_seeds
def test_matches_near_a_plane_tell_its_motion_and_not_texture_matched_some_periods_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wall, near = on_plane(WALL, 200, rng), on_plane(WALL, 40, rng, 0.93, 0.98)
    first, second = views(np.vstack([wall, wall[:80], near]), seed=seed)
    second[200:280] = views(wall[:80] + [0.0, 1.0, 0.0], noise=0.0)[1]
    first[200:280] += rng.uniform(5, 9, (80, 2))  # other keypoints of the same texture
    result = filtered((first, second), seed=seed)
    assert result.motions[0].kind == "fundamental"
    assert pose_error(result) < 5.0


@three_seeds
def test_a_surface_far_off_a_plane_tells_the_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rays = np.column_stack([rng.uniform(0.05, 0.15, 30), rng.uniform(-0.1, 0.1, 30), np.ones(30)])
    points = np.vstack([on_plane(WALL, 200, rng), rays * rng.uniform(3.0, 4.5, (30, 1))])
    result = filtered(views(points, seed=seed), seed=seed)
    assert result.motions[0].kind == "fundamental"
    assert pose_error(result) < 5.0


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_what_noise_scatters_around_a_plane_hides_no_parallax(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.vstack([on_plane(WALL, 60, rng), on_plane(WALL, 15, rng, 0.4, 0.8)])
    result = filtered(views(points, noise=1.0, seed=seed), n_mismatches=20, seed=seed)
    assert (kinds(result), result.inlier_mask[60:75].mean() > 0.9) == (["fundamental"], True)


# What is none


@three_seeds
@pytest.mark.parametrize("threshold", [None, 2.0])
def test_a_plane_with_mismatches_has_no_rigid_motion(threshold: float | None, seed: int) -> None:
    data = np.vstack([plane(100, 0.3, seed), mismatches(60, seed)])
    result = filter_points(data[:, :2], data[:, 2:], threshold=threshold)
    assert kinds(result) == ["homography"]


def test_mismatches_that_crowd_around_places_are_hardly_ever_parallax() -> None:
    told = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        first, second = views(on_plane(WALL, 300, rng), TURN, seed)
        angle, distance = rng.uniform(0, 2 * np.pi, 40), rng.uniform(5, 6, 40)
        second[-40:] += (distance * np.array([np.cos(angle), np.sin(angle)])).T
        told.append(kinds(filtered((first, second), seed=seed)) == ["homography"])
    # A motion is told where fewer than one false alarm is expected.
    assert sum(told) >= 8


@three_seeds
def test_relief_tells_the_motion_of_a_plane_whatever_competes_for_its_keypoints(seed: int) -> None:
    """The wall's relief spans several parallel planes, and eight of its keypoints have a second match on their epipolar lines."""
    wall = on_plane(WALL, 300, np.random.default_rng(seed), 0.9, 1.1)
    first, second = views(wall, seed=seed)
    behind = views(1.5 * wall[:8], seed=seed)[1]
    result = filtered((np.vstack([first, first[:8]]), np.vstack([second, behind])), seed=seed)
    (motion,) = result.motions
    assert (motion.kind, motion.noise_scale < 1.0) == ("fundamental", True)
    assert motion.mask[:300].mean() > 0.97
    assert max(plane.noise_scale for plane in motion.planes) > 1.3 * motion.noise_scale
    assert pose_error(result) < 2.0


@three_seeds
def test_near_misses_do_not_hide_relief(seed: int) -> None:
    rng, families = np.random.default_rng(seed), families_of("auto")
    wall = np.hstack(views(on_plane(WALL, 60, rng, 0.96, 1.04), noise=0.3, seed=seed))
    wall[:9, 2:] += rng.choice([-1.0, 1.0], (9, 2)) * rng.uniform(4, 14, (9, 2))
    matches, essential = in_pixels(wall), np.cross(np.eye(3), POSE[1]).T @ POSE[0]
    F = np.linalg.inv(CAMERA2).T @ essential @ np.linalg.inv(CAMERA)
    given = [
        Models.of_family(of, family)
        for family, of in ((1, F.reshape(1, 9)), (0, families[0].fit(wall[9:], np.ones((1, 51)))))
    ]
    gains = relief_gains(*given, np.arange(60), np.ones(60), Problem(matches, mismatches(100), families, PARAMETERS))
    assert gains[0] > 2.0 * PARAMETERS.motion_cost


@three_seeds
def test_noise_of_a_plane_seen_squeezed_is_no_relief(seed: int) -> None:
    """Mapped to a picture of every fourth row it is an ellipse; matches 6 to 20 px off the plane are off it in any direction."""
    rng, size, squeeze = np.random.default_rng(seed), (300, 2), np.array([1.0, 0.25])
    first = rng.uniform(0, 1000, size)
    second = first * squeeze * np.array([1.02, 0.98]) + 20.0
    second[150:180] += rng.choice([-1, 1], (30, 2)) * rng.uniform(6, 20, (30, 2)) * squeeze
    second[180:] = rng.uniform(0, 1000, (120, 2)) * squeeze
    result = filter_points(first + rng.normal(0, 0.4, size), second + rng.normal(0, 0.4, size), rng=seed)
    assert kinds(result) == ["homography"]
    assert result.inlier_mask[:150].mean() > 0.9 > 0.1 > result.inlier_mask[150:180].mean()


@three_seeds
def test_plants_matched_some_plants_off_along_their_rows_are_no_motion(seed: int) -> None:
    rng, n_off = np.random.default_rng(seed), np.r_[np.zeros(100), np.resize([-2, -1, 1, 2], 80)]
    first = rng.integers([5, 2], [85, 20], (180, 2)) * [14.0, 40.0] + rng.normal(0, 1.5, (180, 2))
    second = np.array([1.02, 0.98]) * (first + n_off[:, None] * [14.0, 0.0]) + rng.normal(0, 0.6, (180, 2))
    result = filtered((first, second), n_mismatches=30, seed=seed)
    assert kinds(result) == ["homography"]
    assert result.inlier_mask[:100].mean() > 0.95 > 0.05 > result.inlier_mask[100:180].mean()


# Several


def test_objects_that_move_by_themselves_stay_apart() -> None:
    """The second one is sometimes found in part only: matches of both at once make most samples impure."""
    alone, other = [], (turned(-0.1, 0.05, 0.2), np.array([-0.3, 0.8, 0.1]))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cloud, thing = on_plane(WALL, 240, rng, 0.5, 1.2), smaller(on_plane(WALL, 90, rng, 0.5, 1.2))
        scene, mover = views(cloud, seed=seed), views(thing, other, seed=seed)
        visible = behind(scene, mover)
        result = filtered((scene[0][visible], scene[1][visible]), mover, n_mismatches=10, seed=seed)
        of_scene, of_mover = np.split(result.motion_labels[: visible.sum() + 90], [visible.sum()])
        assert (of_scene == 0).mean() > 0.9
        assert (of_mover != 0).mean() > 0.9
        alone.append((of_mover == 1).mean())
    assert np.median(alone) > 0.9


def test_if_the_search_explained_all_no_motion_is_looked_for_without_a_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = list[int]()
    draw = motions.draw_samples
    monkeypatch.setattr(motions, "draw_samples", lambda *given: numbers.append(given[2]) or draw(*given))
    rng = np.random.default_rng(0)
    static = views(np.vstack([on_plane(FLOOR, 120, rng), off_wall(120, 60, rng)]), seed=0)
    for ended, expected in (
        (EXPLAINED, [0]),
        ("the last round explained little more", [PARAMETERS.motion_samples] * 2),
    ):
        matches = matches_of(np.hstack([*static]))
        problem = Problem(matches, decoys_of_matches(matches, PARAMETERS, rng), families_of("auto"), PARAMETERS)
        structures, _, tried = search(problem, np.random.default_rng(0))
        surfaces = refine_structures(structures, matches, problem.families, PARAMETERS)
        tried.ended, numbers[:] = ended, []
        scene, _, _ = motions.with_motions(surfaces, problem, tried, rng)
        assert [families_of("auto").is_plane(scene)[0], numbers] == [False, expected]


def test_of_many_matches_a_part_is_searched_and_what_is_found_is_fitted_to_all() -> None:
    rng, other = np.random.default_rng(0), (turned(-0.1, 0.05, 0.2), np.array([-0.3, 0.8, 0.1]))
    cloud, thing = on_plane(WALL, 2400, rng, 0.5, 1.2), smaller(on_plane(WALL, 1000, rng, 0.5, 1.2))
    scene, mover = views(cloud, seed=0), views(thing, other, seed=1)
    visible = behind(scene, mover, 10.0)
    result = filtered((scene[0][visible], scene[1][visible]), mover, n_mismatches=150)
    of_scene, of_mover = np.split(result.motion_labels[: visible.sum() + 1000], [visible.sum()])
    assert len(result.motions) == 2
    assert (of_scene == 0).mean() > 0.95
    assert (of_mover == 1).mean() > 0.95
    assert np.median(sampson_distance(*views(cloud, noise=0.0), result.motions[0].matrix)) < 0.1
    assert pose_error(result) < 0.5


def test_a_mover_beside_a_static_scene_is_a_motion_alone() -> None:
    """A wall, a floor and things before them hold 85 % of the matches, a box that moves by itself the others."""
    alone = []
    for seed in range(5):
        rng, own = np.random.default_rng(seed), (turned(-0.05, -0.2, 0.1), np.array([-0.6, 0.5, 0.3]))
        static = np.vstack([on_plane(FLOOR, 120, rng), on_plane(WALL, 120, rng), things_before(WALL, 60, rng)])
        rays = np.column_stack([rng.uniform(0.0, 0.15, 50), rng.uniform(-0.1, 0.1, 50), np.ones(50)])
        box = rays * rng.uniform(2.5, 3.2, (50, 1))
        scene, mover = views(static, seed=seed), views(box, own, seed + 9)
        visible = behind(scene, mover)
        result = filtered((scene[0][visible], scene[1][visible]), mover, seed=seed)
        of_scene, of_box = np.split(result.motion_labels[: visible.sum() + 50], [visible.sum()])
        assert (of_scene == 0).mean() > 0.9
        assert result.motions[0].kind == "fundamental"
        other = np.bincount(of_box + 1, minlength=3)[2:].argmax() + 1
        alone.append((of_box == other).mean() > 0.7 and (of_scene == other).mean() < 0.02)
    # Fifty matches are lost where their motion is not sampled.
    assert sum(alone) >= 3


def test_a_mover_in_a_scene_without_planes_is_kept() -> None:
    """Both are found among matches alone, and scores are computed with both motions."""
    kept, boxes = [], ((500, [-0.4, -0.3], [0.0, 0.3], 5, 12), (100, [0.05, -0.1], [0.25, 0.1], 2, 4))
    for seed in range(6):
        rng, own = np.random.default_rng(seed), (turned(-0.05, -0.2, 0.1), np.array([-0.6, 0.5, 0.3]))
        scene, mover = (
            np.column_stack([rng.uniform(low, high, (n, 2)), np.ones(n)]) * rng.uniform(near, far, (n, 1))
            for n, low, high, near, far in boxes
        )
        result = filtered(views(scene, seed=seed), views(mover, own, seed + 9), seed=seed)
        kept.append(result.inlier_mask[500:600].mean())
        assert result.inlier_mask[:500].mean() > 0.95
    assert np.mean(kept) > 0.9


def test_two_things_that_move_a_little_in_a_scene_are_often_motions_of_their_own() -> None:
    """The wide plane that a search finds for one of them holds matches of the scene around it, too: six in ten scenes have both."""
    things = (600, 0.0, 0.45, 4.0, 12.0), (80, -0.2, 0.1, 3.6, 4.4), (120, 0.2, 0.1, 3.6, 4.4)
    (rotation, translation), n_found = POSE, 0
    for seed in range(16):
        rng, parts = np.random.default_rng(seed), []
        for n, x, size, near, far in things:
            rays = np.column_stack([rng.uniform(x - size, x + size, n), rng.uniform(-size, size, n), np.ones(n)])
            place, turn = np.array([4.0 * x, 0.0, 4.0]), turned(0.25 * x, 0.3 * x, 0.3 * x) @ rotation
            own = turn, (rotation - turn) @ place + translation + [0.0, 0.25 * x, 0.5 * abs(x)]
            parts.append(views(rays * rng.uniform(near, far, (n, 1)), own if x else POSE, len(parts), 0.3))
        labels = filtered(*parts, n_mismatches=200, seed=seed).motion_labels
        n_found += {np.bincount(part + 1).argmax() for part in np.split(labels[:800], [600, 680])} == {1, 2, 3}
    assert n_found >= 6


def test_a_matrix_holds_a_surface_unless_another_costs_its_matches_much_less() -> None:
    rng, noise = np.random.default_rng(0), np.array([1.0, 1.6, 3.0])[:, None]
    for n, held in ((10, [True, True, True]), (200, [True, False, False])):
        squared = np.square(noise * rng.normal(size=n))
        holds, lost, of_none = held_by_motions(squared, squared, np.zeros(n, np.int64), np.ones(n), 2, 3.0, PARAMETERS)
        assert holds.T.tolist() == [held, [False] * 3]  # no match is on the other surface
        assert ((lost > 0.0).tolist(), of_none.tolist()) == ([not each for each in held], [0.0] * 3)


@pytest.mark.parametrize("n_off", [0, 25])
def test_matrices_beside_a_lone_plane_are_refined_only_if_some_have_evidence_as_proposed(n_off: int) -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([on_plane(FLOOR, 200, rng), things_before(FLOOR, n_off, rng)])
    with mock.patch.object(motions, "lens_of_planes", side_effect=motions.lens_of_planes) as looked_at:
        result = filtered(views(points, noise=0.3), n_mismatches=80)
    assert (looked_at.called, result.motions[0].kind == "fundamental") == (n_off > 0, n_off > 0)


def test_the_likeliest_matrix_comes_first_among_those_that_miss_little() -> None:
    likelihoods, cost = np.array([3.0, 9.0, 5.0, 7.0, 1.0]), PARAMETERS.motion_cost
    lost, of_none = cost * np.array([0.0, 3.0, 1.5, 3.0, 0.0]), cost * np.array([0.0, 0.0, 1.0, 2.5, 0.5])
    assert ranked(likelihoods, lost, of_none, Lens(0.1, np.zeros(4)), PARAMETERS).tolist() == [3, 2, 0, 4, 1]
    assert ranked(likelihoods, lost, of_none, STRAIGHT, PARAMETERS).tolist() == [1, 3, 2, 0, 4]


def test_find_fundamental_matrix_returns_that_of_the_strongest_motion_also_where_it_is_a_plane() -> None:
    n_apart = 0
    for seed in range(9):
        rng = np.random.default_rng(seed)
        wall = on_plane(WALL, 300, rng)
        thing = np.column_stack([rng.uniform(-1.5, 1.5, (120, 2)), rng.uniform(3, 6, 120)])
        own = turned(-0.05, -0.2, 0.1), np.array([-0.6, 0.5, 0.3])
        points = [np.vstack(each) for each in zip(views(wall, seed=seed), views(thing, own, seed), strict=True)]
        if kinds(filter_points(*points)) == ["homography", "fundamental"]:
            n_apart += 1
            kept = find_fundamental_matrix(*points)[1].ravel() > 0
            assert kept[:300].mean() > 0.9 > 0.5 > kept[300:].mean()
    assert n_apart >= 5


def test_families_of_planes_alone_have_a_motion_for_each_structure() -> None:
    rng = np.random.default_rng(2)
    points = views(np.vstack([on_plane(WALL, 80, rng), on_plane(FLOOR, 80, rng)]))
    result = filter_points(*points, model="homography")
    assert [motion.planes for motion in result.motions] == [(), ()]


def test_motions_and_poses_are_the_same_after_a_small_pickle() -> None:
    rng = np.random.default_rng(1)
    result = filtered(views(np.vstack([on_plane(WALL, 600, rng), on_plane(FLOOR, 600, rng)])))
    pickled = pickle.dumps(result)
    copy = pickle.loads(pickled)
    assert (copy, copy.motions) == (result, result.motions)
    assert copy.camera_pose(CAMERA, CAMERA2) == result.camera_pose(CAMERA, CAMERA2)
    # Neither samples nor residuals: 17 doubles a match.
    assert len(pickled) < 10_000 + 8 * 17 * len(result.inlier_mask)


def test_some_models_of_a_scene_have_their_motions_by_new_numbers() -> None:
    given = np.zeros(3), np.zeros(3), np.arange(3.0)
    scene = replace(Scene.of(Models.of_family(np.zeros((3, 9)), 1), *given), owners=np.array([1, 1, 2]))
    for rows, owners in (([2, 1, 0], [0, 1, 1]), ([0, 2], [-1, 1]), ([False, True, True], [0, 1])):
        taken = scene.take(np.array(rows))
        assert taken.owners.tolist() == owners
        assert taken.take(np.arange(len(taken))).owners.tolist() == owners
        np.testing.assert_array_equal(taken.noise, scene.noise[rows])


# What did not move


def overlay(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    points = rng.uniform([20, 20], [160, 60], (n, 2))
    return points, points + rng.normal(0, 0.2, (n, 2))


@three_seeds
def test_an_overlay_on_a_moving_scene_is_stationary_and_in_no_motion(seed: int) -> None:
    scene = views(on_plane(WALL, 200, np.random.default_rng(seed), 0.5, 1.2), seed=seed)
    parts, options = (scene, overlay(60, seed)), {"n_mismatches": 85, "seed": seed}
    result = filtered(*parts, **options)
    assert [motion.stationary for motion in result.motions].count(True) == 1
    assert result.inlier_mask[:260].mean() > 0.97
    for motion in result.motions:
        assert motion.mask[200:260].all() if motion.stationary else not motion.mask[200:260].any()
    without = filtered(*parts, **options, keep_stationary=False)
    np.testing.assert_array_equal(without.inlier_mask[:200], result.inlier_mask[:200])
    assert not without.inlier_mask[200:260].any()


@pytest.mark.parametrize("pixel", [1.0, 1.0 / 700.0])
def test_few_matches_that_did_not_move_are_an_overlay_in_any_unit(pixel: float) -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (300, 2))
    first[60:75] = rng.uniform([0, 620], [200, 660], (15, 2))
    second = 1.05 * first + [30.0, -12.0] + rng.normal(0, 0.4, first.shape)
    second[:60] = rng.uniform(0, 600, (60, 2))
    second[60:75] = first[60:75] + rng.choice([-0.45, 0.45], (15, 2))
    result = filter_points(pixel * first, pixel * second, pixel=pixel)
    assert [(motion.stationary, motion.mask.sum()) for motion in result.motions] == [(False, 225), (True, 15)]


def test_neither_two_images_from_one_tripod_nor_small_motions_are_overlays() -> None:
    """The middle of an image that turns a little hardly moves, but what is around it moves hardly more."""
    first = seen(on_plane(WALL, 200, np.random.default_rng(0)), CAMERA, np.eye(3), np.zeros(3))
    cosine, sine = np.cos(0.01), np.sin(0.01)
    a_little = (first - [320, 240]) @ [[cosine, sine], [-sine, cosine]] + [320, 240]
    noise = np.random.default_rng(1).normal(0, 0.3, first.shape)
    for second, keep in ((first, True), (first, False), (a_little, False)):
        result = filtered((first, second + noise), keep_stationary=keep)
        assert result.inlier_mask[:200].mean() > 0.97
        assert not any(motion.stationary for motion in result.motions)


# Slips


def test_windows_some_windows_off_that_share_keypoints_with_true_ones_are_no_parallax() -> None:
    """One plane of repeated windows: slips go one way along the rows, and a third of them end at keypoints of true matches."""
    kept = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first = rng.uniform(0, [640, 480], (300, 2))
        second = first @ np.array([[1.1, 0.02], [-0.03, 1.05]]) + [30.0, 10.0] + rng.normal(0, 0.4, first.shape)
        slips = np.flatnonzero(rng.random(300) < 0.25)
        second[slips] += [66.0, 2.0] * rng.integers(1, 4, (len(slips), 1))
        partners = rng.choice(np.setdiff1d(np.arange(300), slips), len(slips), replace=False)
        shared = rng.random(len(slips)) < 0.35
        first[slips[shared]] = first[partners[shared]] - [60.0, 0.0] * rng.integers(1, 4, (int(shared.sum()), 1))
        second[slips[shared]] = second[partners[shared]]
        kept.append(filter_points(first, second).inlier_mask[slips].mean())
    assert np.mean(kept) < 0.1


# What stands still before a camera that shifted


@three_seeds
def test_static_matches_belong_to_a_shift_only_if_its_displacements_reach_down_to_them(seed: int) -> None:
    """A logo in the picture, beside matches moved by 25 to 60 px; and far points of a scene."""
    rng = np.random.default_rng(seed)
    scene, logo = rng.uniform([0, 0], [800, 600], (300, 2)), rng.uniform([600, 40], [780, 140], (40, 2))
    steps, noise = rng.uniform(0.0, 1.0, 300), rng.normal(0, 0.2, (300, 2))
    near, far = (scene + np.column_stack([by, np.zeros(300)]) + noise for by in (25.0 + 35.0 * steps, 25.0 * steps**2))
    before_logo = filtered(
        (np.vstack([scene, logo]), np.vstack([near, logo])), n_mismatches=40, seed=seed, keep_stationary=False
    )
    assert before_logo.inlier_mask[:300].mean() > 0.95
    assert before_logo.inlier_mask[300:340].mean() < 0.1
    assert filtered((scene, far), n_mismatches=40, seed=seed, keep_stationary=False).inlier_mask[:300].mean() > 0.95


@three_seeds
def test_a_card_matched_to_itself_turned_by_half_is_one_plane(seed: int) -> None:
    """Its epipole would be the middle of the card, and a match of a twin lies on the other side of it."""
    rng = np.random.default_rng(seed)
    card, middle = rng.uniform([100, 100], [700, 500], (60, 2)), np.array([400.0, 300.0])
    twins = 2.0 * middle - card[:40]
    first = np.vstack([card, card[:40] + 20.0, rng.uniform(0, 600, (40, 2))])
    second = np.vstack([card, twins - 20.0, rng.uniform(0, 600, (40, 2))]) * [0.9, 1.1] + 30.0
    result = filter_points(first + rng.normal(0, 0.4, first.shape), second)
    assert kinds(result)[0] == "homography"
    assert result.inlier_mask[:60].mean() > 0.95
    assert result.inlier_mask[60:100].mean() < 0.1
