"""Poses of motions against those that the cameras had, and what has none."""

from __future__ import annotations

import numpy as np
import pytest
from posed_views import (
    CAMERA1,
    CAMERA2,
    POSE,
    TURN,
    WALL,
    angles,
    filtered,
    on_plane,
    pose_error,
    towards,
    turned,
    views,
)

from ruzhash_cv import filter_points, sampson_distance


@pytest.mark.parametrize("seed", range(3))
def test_the_pose_of_a_rigid_scene_is_that_of_the_camera(seed: int) -> None:
    result = filtered(views(on_plane(WALL, 150, np.random.default_rng(seed), 0.5, 1.2), seed=seed), seed=seed)
    rotation, translation = result.camera_pose(CAMERA1, CAMERA2)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1.0)
    assert np.linalg.norm(translation) == pytest.approx(1.0)
    assert pose_error(result) < 1.0
    # Motions may be counted from the last.
    np.testing.assert_array_equal(result.camera_pose(CAMERA1, CAMERA2, -len(result.motions)).rotation, rotation)


def test_either_pose_of_a_plane_satisfies_the_epipolar_constraint() -> None:
    points = on_plane(WALL, 150, np.random.default_rng(0))
    rotation, translation = filtered(views(points)).camera_pose(CAMERA1, CAMERA2)
    essential = np.cross(translation, rotation.T).T
    matrix = np.linalg.inv(CAMERA2).T @ essential @ np.linalg.inv(CAMERA1)
    assert np.median(sampson_distance(*views(points, noise=0.0), matrix)) < 0.5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.5])
def test_a_camera_that_only_turned_is_not_turned_upside_down(noise: float, seed: int) -> None:
    points = on_plane(WALL, 150, np.random.default_rng(seed), 0.5, 1.5)
    for rotation in (np.eye(3), TURN[0]):
        result = filtered(views(points, (rotation, np.zeros(3)), seed, noise), seed=seed)
        assert angles(result.camera_pose(CAMERA1, CAMERA2), (rotation, np.ones(3)))[0] < 0.2


def test_of_many_matches_a_part_is_searched_and_the_pose_is_fitted_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    result = filtered(views(on_plane(WALL, 3000, np.random.default_rng(0), 0.5, 1.2)), n_mismatches=500)
    whole = result.camera_pose(CAMERA1, CAMERA2)
    monkeypatch.setattr("ruzhash_cv.pose.MOST_SEARCHED", 600)
    part = result.camera_pose(CAMERA1, CAMERA2)
    # About one standard error of a pose from 3,000 matches with a noise of half a pixel.
    np.testing.assert_allclose(part.rotation, whole.rotation, atol=4e-4)
    np.testing.assert_allclose(part.translation, whole.translation, atol=2e-3)
    assert (part.inliers == whole.inliers).mean() > 0.998
    assert np.isfinite(part.points3d[part.inliers]).all()


def test_each_of_two_motions_has_a_pose_of_its_own() -> None:
    """Though of all matches, which five are drawn from, most belong to the larger one."""
    rng, poses = np.random.default_rng(0), (POSE, (turned(0.1, 0.1, 0.6), towards(0.2, -0.9, 0.1)))
    scenes = [on_plane(WALL, n, rng, 0.5, 1.2) for n in (300, 150)]
    result = filtered(*(views(scene, pose, noise=0.3) for scene, pose in zip(scenes, poses, strict=True)))
    assert len(result.motions) >= 2
    for motion, pose in enumerate(poses):
        assert pose_error(result, pose, motion) < 3.0


def test_without_motions_there_is_no_pose() -> None:
    nothing = filter_points(np.zeros((5, 2)), np.zeros((5, 2)))
    none_kept = filtered(views(on_plane(WALL, 100, np.random.default_rng(0))), threshold=1e-9)
    for result in (nothing, none_kept):
        with pytest.raises(IndexError, match="there is no motion to tell a pose by: 0 of "):
            result.camera_pose(CAMERA1, CAMERA2)
