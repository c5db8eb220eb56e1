"""Poses of motions against those that the cameras had, and what has none."""

import copy
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from posed_views import CAMERA1 as CAMERA
from posed_views import (
    CAMERA2,
    POSE,
    TURN,
    WALL,
    angles,
    behind,
    filtered,
    on_plane,
    pose_error,
    seen,
    towards,
    turned,
    views,
)

from ruzhash_cv import filter_points, find_fundamental_matrix
from ruzhash_cv.models import sampson_distance
from ruzhash_cv.results.pose import CameraPose


@pytest.mark.parametrize("seed", range(3))
def test_the_pose_of_a_rigid_scene_is_that_of_the_camera(seed: int) -> None:
    result = filtered(views(on_plane(WALL, 150, np.random.default_rng(seed), 0.5, 1.2), seed=seed), seed=seed)
    rotation, translation = result.camera_pose(CAMERA, CAMERA2)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert (np.linalg.det(rotation), np.linalg.norm(translation)) == pytest.approx((1.0, 1.0))
    assert pose_error(result) < 1.0
    # Motions may be counted from the last.
    np.testing.assert_array_equal(result.camera_pose(CAMERA, CAMERA2, -len(result.motions)).rotation, rotation)


def test_a_pose_is_of_a_motion_and_not_of_the_few_matches_kept() -> None:
    pixels = views(on_plane(WALL, 150, np.random.default_rng(0), 0.5, 1.2))
    pose = filter_points(*pixels).camera_pose(CAMERA, CAMERA2)
    for options in ({"threshold": 0.01}, {"false_discovery_rate": 1e-9}):
        result = filter_points(*pixels, **options)
        few = result.camera_pose(CAMERA, CAMERA2)
        assert np.count_nonzero(result.inlier_mask) < 5
        assert few.has_baseline
        assert not (few.inliers & ~result.inlier_mask).any()
        np.testing.assert_allclose(few.rotation, pose.rotation, atol=0.01)


def test_a_pose_prints_its_angles_and_how_sure_they_are() -> None:
    points = np.random.default_rng(0).uniform([-2, -1, 4], [2, 1, 8], (60, 3))
    moved, turned = (filter_points(*views(points, pose)).camera_pose(CAMERA, CAMERA2) for pose in (POSE, TURN))
    assert re.fullmatch(
        r"<CameraPose: \d+ inliers, turned by 7.\d+ \+- 0.\d+ degrees, "
        r"moved along \(0.9\d+, 0.\d+, 0.2\d+\) \+- 0.\d+ degrees>",
        repr(moved),
    )
    assert repr(turned).endswith(" degrees, without a baseline>")


def test_overlays_alone_have_no_pose() -> None:
    rng = np.random.default_rng(0)
    mark, others = rng.uniform(0, 600, (40, 2)), rng.uniform(0, 600, (2, 60, 2))
    result = filter_points(*(np.vstack([mark, each]) for each in others))
    assert [motion.stationary for motion in result.motions] == [True]
    with pytest.raises(IndexError, match="all motions are overlays, give `motion`"):
        result.camera_pose(CAMERA)
    assert not result.camera_pose(CAMERA, motion=0).has_baseline


def test_a_pose_is_indexed_as_it_unpacks() -> None:
    points = np.random.default_rng(0).uniform([-2, -1, 4], [2, 1, 8], (60, 3))
    pose = filter_points(*views(points)).camera_pose(CAMERA, CAMERA2)
    rotation, translation = pose
    assert pose[0] is rotation is pose.rotation
    assert pose[1] is pose[-1] is translation is pose.translation
    with pytest.raises(IndexError):
        pose[2]


def test_either_pose_of_a_plane_satisfies_the_epipolar_constraint() -> None:
    points = on_plane(WALL, 150, np.random.default_rng(0))
    rotation, translation = filtered(views(points)).camera_pose(CAMERA, CAMERA2)
    matrix = np.linalg.inv(CAMERA2).T @ np.cross(translation, rotation.T).T @ np.linalg.inv(CAMERA)
    assert np.median(sampson_distance(*views(points, noise=0.0), matrix)) < 0.5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.5])
def test_a_camera_that_only_turned_is_not_turned_upside_down(noise: float, seed: int) -> None:
    points = on_plane(WALL, 150, np.random.default_rng(seed), 0.5, 1.5)
    for rotation in (np.eye(3), TURN[0]):
        result = filtered(views(points, (rotation, np.zeros(3)), seed, noise), seed=seed)
        assert angles(result.camera_pose(CAMERA, CAMERA2), (rotation, np.ones(3)))[0] < 0.2


def test_of_many_matches_a_part_is_searched_and_the_pose_is_fitted_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    result = filtered(views(on_plane(WALL, 3000, np.random.default_rng(0), 0.5, 1.2)), n_mismatches=500)
    whole = result.camera_pose(CAMERA, CAMERA2)
    monkeypatch.setattr("ruzhash_cv.results.pose._MOST_SEARCHED", 600)
    part = result.camera_pose(CAMERA, CAMERA2)
    # About one standard error of a pose from 3,000 matches with a noise of half a pixel.
    np.testing.assert_allclose(part.rotation, whole.rotation, atol=4e-4)
    np.testing.assert_allclose(part.translation, whole.translation, atol=2e-3)
    assert (part.inliers == whole.inliers).mean() > 0.998
    assert np.isfinite(part.points3d[part.inliers]).all()


def test_each_of_two_motions_has_a_pose_of_its_own() -> None:
    """Though of all matches, which five are drawn from, most belong to the larger one."""
    rng, poses = np.random.default_rng(0), (POSE, (turned(0.1, 0.1, 0.6), towards(0.2, -0.9, 0.1)))
    scene, thing = on_plane(WALL, 400, rng, 0.5, 1.2), on_plane(WALL, 150, rng, 0.5, 1.2) * [0.5, 0.5, 1.0]
    first, mover = (views(points, pose, noise=0.3) for points, pose in zip((scene, thing), poses, strict=True))
    visible = behind(first, mover, 15.0)
    result = filtered((first[0][visible], first[1][visible]), mover)
    assert len(result.motions) >= 2
    for motion, pose in enumerate(poses):
        assert pose_error(result, pose, motion) < 3.0


def test_the_pose_of_a_motion_without_matches_has_no_baseline() -> None:
    """An overlay that was dropped stays among the motions."""
    mark = np.random.default_rng(1).uniform([20.0, 20.0], [120.0, 60.0], (40, 2))
    pixels = views(on_plane(WALL, 150, np.random.default_rng(0), 0.5, 1.2))
    result = filter_points(*(np.vstack([each, mark]) for each in pixels), keep_stationary=False)
    (overlay,) = (index for index, motion in enumerate(result.motions) if motion.stationary)
    pose = result.camera_pose(CAMERA, CAMERA, overlay)
    assert not pose.has_baseline
    assert not pose.inliers.any()
    assert np.isnan(pose.median_angle)


def test_a_pose_without_an_angle_equals_its_copy() -> None:
    pose = CameraPose(np.eye(3), np.ones(3), False, np.zeros(2, bool), np.full((2, 3), np.nan), float("nan"))
    assert pickle.loads(pickle.dumps(pose)) == copy.deepcopy(pose) == pose
    assert pose != replace(pose, median_angle=1.0)


@pytest.mark.parametrize("seed", range(3))
def test_a_motion_beside_a_larger_still_background_has_its_pose(seed: int) -> None:
    """With any translation and no rotation the background's matches agree."""
    rng, camera = np.random.default_rng(seed), np.array([[1200.0, 0.0, 640.0], [0.0, 1200.0, 480.0], [0.0, 0.0, 1.0]])
    rotation, centre = turned(0.0, np.radians(12.0), 0.0), np.array([0.0, 0.0, 3.0])
    pose = rotation, centre - rotation @ centre
    points = rng.uniform(-0.5, 0.5, (120, 3)) + centre
    still = rng.uniform([0.0, 0.0], [1280.0, 960.0], (1200, 2))
    still = still[np.linalg.norm(still - [640.0, 480.0], axis=1) > 300.0][:300]
    pixels = [np.vstack([seen(points, camera, *each), still]) for each in ((np.eye(3), np.zeros(3)), pose)]
    noisy = [each + rng.normal(0.0, 0.3, each.shape) for each in pixels]
    crowded = [np.vstack([each, rng.uniform([0.0, 0.0], [1280.0, 960.0], (80, 2))]) for each in noisy]
    result = filter_points(*crowded, cameras=(camera, camera))
    motion = int(np.bincount(result.motion_labels[:120] + 1)[1:].argmax())
    assert max(angles(result.camera_pose(motion=motion), (rotation, towards(*pose[1])))) < 5.0


def test_a_mover_near_the_epipolar_lines_does_not_bend_the_pose() -> None:
    """A lorry ahead, of nearly the camera's speed: its matches lie 2.7 px off the scene's epipolar lines, and join its motion."""
    camera, errors = np.array([[900.0, 0.0, 640.0], [0.0, 900.0, 360.0], [0.0, 0.0, 1.0]]), []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        rotation = turned(*(np.radians(0.4) * towards(*rng.normal(size=3))))
        pose = rotation, -rotation @ np.array([0.0, 0.0, 1.2])
        rays = np.column_stack([rng.uniform([-0.7, -0.4], [0.7, 0.4], (150, 2)), np.ones(150)])
        scene, lorry = rays * rng.uniform(6, 50, (150, 1)), rng.uniform([-1.3, -2, 9], [1.3, 1.2, 9.4], (60, 3))
        first = seen(np.vstack([scene, lorry]), camera, np.eye(3), np.zeros(3))
        second = seen(np.vstack([scene, lorry + [0.05, 0.0, 1.15]]), camera, *pose)
        crowd = rng.uniform([0, 0], [1280, 720], (2, 60, 2))
        noisy = [each + rng.normal(0, 0.3, each.shape) for each in (first, second)]
        pixels = [np.vstack(each) for each in zip(noisy, crowd, strict=True)]
        result = filter_points(*pixels, cameras=camera)
        errors.append(max(angles(result.camera_pose(), (rotation, towards(*pose[1])))))
    assert max(errors) < 0.5


@pytest.mark.parametrize("n", [120, 300])
def test_the_pose_is_of_what_moved_however_much_stands_still(n: int) -> None:
    """A robot sees its own body, which is motion 0 if it has more matches than the room."""
    rng = np.random.default_rng(0)
    body = rng.uniform([0, 400], [640, 480], (n, 2))
    room = views(on_plane(WALL, 150, rng, 0.4, 1.0), noise=0.3)
    first, second = (np.vstack([part, body]) for part in room)
    result = filter_points(first, second)
    assert [motion.stationary for motion in result.motions] == ([True, False] if n > 150 else [False, True])
    moving = int(n > 150)
    assert max(angles(result.camera_pose(CAMERA, CAMERA2), POSE)) < 1.0
    np.testing.assert_array_equal(
        result.camera_pose(CAMERA, CAMERA2).rotation, result.camera_pose(CAMERA, CAMERA2, moving).rotation
    )
    F, mask = find_fundamental_matrix(first, second)
    assert F is not None
    assert mask[:150].mean() > 0.9
    assert np.median(sampson_distance(*views(on_plane(WALL, 150, rng, 0.4, 1.0), noise=0.0), F)) < 1.0


def test_a_result_of_static_matches_alone_has_their_pose() -> None:
    body = np.random.default_rng(0).uniform(0, 480, (100, 2))
    result = filter_points(body, body)
    assert not result.camera_pose(CAMERA).has_baseline


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_near", [40, 60])
def test_few_near_points_before_far_ones_show_the_baseline(n_near: int, seed: int) -> None:
    """Mountains and a fence: noise puts half of the far points behind the cameras."""
    rng = np.random.default_rng(seed)
    points = np.vstack([on_plane(WALL, 200, rng, 300.0, 700.0), on_plane(WALL, n_near, rng, 0.6, 2.0)])
    result = filtered(views(points, seed=seed, noise=0.3), seed=seed, cameras=(CAMERA, CAMERA2))
    pose = result.camera_pose()
    assert pose.has_baseline
    assert max(angles(pose, POSE)) < 2.0
    assert np.isfinite(pose.points3d[200 : 200 + n_near]).all(axis=1).mean() > 0.9


@pytest.mark.parametrize("seed", range(4))
def test_mismatches_before_a_camera_that_turned_show_no_baseline(seed: int) -> None:
    rng = np.random.default_rng(seed)
    far = views(on_plane(WALL, 200, rng), TURN, seed, 0.3)
    crowd = far[0][:40], far[1][:40] + rng.normal(0, 20.0, (40, 2))
    result = filtered(far, crowd, seed=seed, cameras=(CAMERA, CAMERA2))
    assert not result.camera_pose().has_baseline


def test_corners_on_whole_pixels_do_not_bend_the_pose_of_a_slow_walk() -> None:
    """Many of them move by exactly nothing along one axis: some pose far off explains these exactly."""
    errors, camera = [], np.array([[525.0, 0.0, 320.0], [0.0, 525.0, 240.0], [0.0, 0.0, 1.0]])
    for seed in range(1, 9):
        rng = np.random.default_rng(seed)
        points = np.column_stack([rng.choice([-1, 1], 1500) * rng.uniform(3, 12, 1500), rng.uniform(-4, 1.6, 1500)])
        points = np.column_stack([points, rng.uniform(6, 60, 1500)])
        step = np.eye(3), np.array([0.02, 0.0, -0.35])
        first, second = seen(points, camera, np.eye(3), np.zeros(3)), seen(points, camera, *step)
        within = np.flatnonzero((np.abs(np.hstack([first, second]) - [320, 240] * 2) < [320, 240] * 2).all(axis=1))[
            :400
        ]
        first, second = (np.round(each[within] + rng.normal(0, 0.3, (len(within), 2))) for each in (first, second))
        pose = filter_points(first, second, rng=seed).camera_pose(camera)
        errors.append(angles(pose, (step[0], step[1] / np.linalg.norm(step[1])))[1])
    assert max(errors) < 10.0, errors
