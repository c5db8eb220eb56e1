"""Motions hold the planes that move together, and tell the pose; what moves by itself stays by itself."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from ruzhash_cv.families.solving import FAMILIES
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.structures.motions import MotionSearch
from ruzhash_cv.structures.refinement import noise_scales
from ruzhash_cv.structures.search import Search

from ruzhash_cv import FilterResult, filter_points, find_fundamental_matrix, sampson_distance

Array = np.ndarray
CAMERA1 = np.array([[800.0, 0.0, 320.0], [0.0, 800.0, 240.0], [0.0, 0.0, 1.0]])
CAMERA2 = np.array([[900.0, 0.0, 300.0], [0.0, 900.0, 250.0], [0.0, 0.0, 1.0]])
WALL, FLOOR = (0.0, 0.0, 1.0, 7.0), (0.0, 1.0, 0.35, 4.0)


def on_plane(plane: tuple[float, ...], n: int, rng: np.random.Generator) -> Array:
    """Points (n, 3) of a plane a X + b Y + c Z = d that the first camera sees."""
    rays = np.column_stack([rng.uniform(-0.35, 0.35, (n, 2)), np.ones(n)])
    return rays * (plane[3] / (rays @ np.array(plane[:3])))[:, None]


def seen(points: Array, camera: Array, rotation: Array, translation: Array) -> Array:
    moved = (points @ rotation.T + translation) @ camera.T
    return moved[:, :2] / moved[:, 2:]


def turned(*angles: float) -> Array:
    return np.asarray(cv2.Rodrigues(np.array(angles))[0])


POSE = turned(0.03, 0.12, -0.02), np.array([0.9, 0.1, 0.2]) / np.linalg.norm([0.9, 0.1, 0.2])


def views(points: Array, pose: tuple[Array, Array] = POSE, seed: int = 0, noise: float = 0.5) -> tuple[Array, Array]:
    """Return noisy pixels of points in both cameras."""
    rng = np.random.default_rng(seed)
    first, second = seen(points, CAMERA1, np.eye(3), np.zeros(3)), seen(points, CAMERA2, *pose)
    return first + rng.normal(0, noise, first.shape), second + rng.normal(0, noise, second.shape)


def filtered(*parts: tuple[Array, Array], n_mismatches: int = 60, seed: int = 0, **options: Any) -> FilterResult:
    crowd = np.random.default_rng(seed).uniform(0, 600, (2, n_mismatches, 2))
    return filter_points(*(np.vstack([part[image] for part in (*parts, crowd)]) for image in (0, 1)), **options)


def angles(pose: tuple[Array, Array], truth: tuple[Array, Array]) -> tuple[float, float]:
    """Return degrees between rotations and between translations, signs included."""
    about = np.linalg.norm(cv2.Rodrigues(pose[0] @ truth[0].T)[0])
    return float(np.degrees(about)), float(np.degrees(np.arccos(np.clip(pose[1] @ truth[1], -1, 1))))


@pytest.mark.parametrize("seed", range(3))
def test_two_planes_and_what_is_off_them_are_one_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cloud = on_plane(WALL, 25, rng) * rng.uniform(0.5, 0.9, (25, 1))
    points = np.vstack([on_plane(WALL, 80, rng), on_plane(FLOOR, 80, rng), cloud])
    result = filtered(views(points, seed=seed), seed=seed)
    motion = result.motions[0]
    assert motion.kind == "fundamental"
    planes = [item for item, model in enumerate(result.models) if model.kind == "homography"]
    assert list(motion.parts) == planes
    assert motion.support == (result.motion_labels == 0).sum() >= 0.9 * result.inlier_mask[:185].sum()
    exact = [seen(points, CAMERA1, np.eye(3), np.zeros(3)), seen(points, CAMERA2, *POSE)]
    assert np.median(sampson_distance(*exact, motion.matrix)) < 0.5
    assert abs(np.linalg.det(motion.matrix)) < 1e-14
    assert max(angles(result.camera_pose(CAMERA1, CAMERA2), POSE)) < 2.0


def test_a_plane_alone_is_a_motion_that_says_so() -> None:
    points = on_plane(WALL, 150, np.random.default_rng(0))
    result = filtered(views(points))
    assert [(motion.kind, motion.parts) for motion in result.motions] == [("homography", (0,))]
    np.testing.assert_array_equal(result.motion_labels, result.labels)
    compatible = result.plane_motion(0)
    assert compatible is not None
    # A plane has two poses; either satisfies the epipolar constraint.
    rotation, translation = result.camera_pose(CAMERA1, CAMERA2)
    essential = np.cross(translation, rotation.T).T
    posed = np.linalg.inv(CAMERA2).T @ essential @ np.linalg.inv(CAMERA1)
    exact = [seen(points, CAMERA1, np.eye(3), np.zeros(3)), seen(points, CAMERA2, *POSE)]
    for matrix in (compatible, posed):
        assert np.median(sampson_distance(*exact, matrix)) < 0.5


def test_flagged_matches_of_no_weight_tell_of_no_motion() -> None:
    searched = filtered(views(on_plane(WALL, 60, np.random.default_rng(0))), n_mismatches=5)._seen.seen
    weights = np.where(searched.labels < 0, 0.0, searched.weights)  # as where the worst of all decoys look better
    assert (weights == 0.0).any()
    motions, _ = replace(searched, weights=weights).motions()
    assert len(motions) == 1
    assert motions.holds.all()


def test_a_camera_that_only_turns_is_a_homography() -> None:
    rng = np.random.default_rng(0)
    points = on_plane(WALL, 150, rng) * rng.uniform(0.5, 1.5, (150, 1))
    pose = turned(0.02, 0.1, 0.05), np.zeros(3)
    result = filtered(views(points, pose))
    assert [motion.kind for motion in result.motions] == ["homography"]
    assert angles(result.camera_pose(CAMERA1, CAMERA2), (pose[0], np.ones(3)))[0] < 0.2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_exact_matches_of_a_camera_that_only_turned_do_not_turn_it_upside_down(noise: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = on_plane(WALL, 150, rng) * rng.uniform(0.5, 1.5, (150, 1))
    for rotation in (np.eye(3), turned(0.02, 0.1, 0.05)):
        result = filtered(views(points, (rotation, np.zeros(3)), seed, noise), seed=seed)
        assert angles(result.camera_pose(CAMERA1, CAMERA2), (rotation, np.ones(3)))[0] < 0.2


@pytest.mark.parametrize("seed", range(3))
def test_find_fundamental_matrix_returns_that_of_the_strongest_motion_also_where_it_is_a_plane(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wall, thing = on_plane(WALL, 300, rng), np.column_stack([rng.uniform(-1.5, 1.5, (120, 2)), rng.uniform(3, 6, 120)])
    own = turned(-0.05, -0.2, 0.1), np.array([-0.6, 0.5, 0.3])
    points = [np.vstack(each) for each in zip(views(wall, seed=seed), views(thing, own, seed), strict=True)]
    assert [motion.kind for motion in filter_points(*points).motions] == ["homography", "fundamental"]
    kept = find_fundamental_matrix(*points)[1].ravel() > 0
    assert kept[:300].mean() > 0.9
    assert kept[300:].mean() < 0.5


def test_mismatches_that_crowd_around_places_are_hardly_ever_parallax() -> None:
    told = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        first, second = views(on_plane(WALL, 300, rng), (turned(0.02, 0.1, 0.05), np.zeros(3)), seed)
        angle, distance = rng.uniform(0, 2 * np.pi, 40), rng.uniform(5, 6, 40)
        second[-40:] += (distance * np.array([np.cos(angle), np.sin(angle)])).T
        told.append([motion.kind for motion in filtered((first, second), seed=seed).motions] == ["homography"])
    # A motion is told where fewer than one false alarm is expected.
    assert sum(told) >= 8


@pytest.mark.parametrize("seed", range(3))
def test_matches_near_a_plane_tell_its_motion_and_not_texture_matched_some_periods_off(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wall, near = on_plane(WALL, 200, rng), on_plane(WALL, 40, rng) * rng.uniform(0.93, 0.98, (40, 1))
    first, second = views(np.vstack([wall, wall[:80], near]), seed=seed)
    second[200:280] = seen(wall[:80] + [0.0, 1.0, 0.0], CAMERA2, *POSE)
    first[200:280] += rng.uniform(5, 9, (80, 2))  # other keypoints of the same texture
    result = filtered((first, second), seed=seed)
    assert result.motions[0].kind == "fundamental"
    assert max(angles(result.camera_pose(CAMERA1, CAMERA2), POSE)) < 5.0


@pytest.mark.parametrize("seed", range(3))
def test_texture_matched_some_periods_off_is_no_motion_of_a_camera_that_only_turns(seed: int) -> None:
    rng = np.random.default_rng(seed)
    turn = turned(0.02, 0.1, 0.05), np.zeros(3)
    wall = on_plane(WALL, 250, rng)
    first, second = views(wall, turn, seed)
    periods = rng.integers(1, 4, 40)[:, None] * [0.6, 0.0, 0.0]
    second[:40] = seen(wall[:40] + periods, CAMERA2, *turn) + rng.normal(0, 0.5, (40, 2))
    assert [motion.kind for motion in filtered((first, second), seed=seed).motions] == ["homography"]


@pytest.mark.parametrize("seed", range(3))
def test_texture_of_small_periods_that_competes_for_keypoints_is_no_motion_of_a_plane(seed: int) -> None:
    rng = np.random.default_rng(seed)
    wall = on_plane(WALL, 260, rng)
    wall[200:] = wall[:60] + rng.choice([-1, 1], (60, 1)) * [0.16, 0.0, 0.0]  # 20 pixels
    first, second = views(wall, seed=seed)
    second[:40] = views(wall[200:240], seed=seed + 1)[1]
    second[40:60] = second[240:]
    assert [motion.kind for motion in filtered((first, second), seed=seed).motions] == ["homography"]


@pytest.mark.parametrize("seed", range(3))
def test_a_surface_far_off_a_plane_tells_the_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rays = np.column_stack([rng.uniform(0.05, 0.15, 30), rng.uniform(-0.1, 0.1, 30), np.ones(30)])
    result = filtered(
        views(np.vstack([on_plane(WALL, 200, rng), rays * rng.uniform(3.0, 4.5, (30, 1))]), seed=seed), seed=seed
    )
    assert result.motions[0].kind == "fundamental"
    assert max(angles(result.camera_pose(CAMERA1, CAMERA2), POSE)) < 5.0


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_of_matrices_that_all_tell_a_motion_the_one_of_least_residuals_has_it(
    order: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    cloud = on_plane(WALL, 60, rng) * rng.uniform(0.5, 0.9, (60, 1))
    seen = filtered(views(np.vstack([on_plane(WALL, 80, rng), cloud])))._seen.seen
    good = seen.motions()[0].models[0]
    rows = np.flatnonzero(seen.labels >= 0)
    # Hardly worse, so that it has the noise scale and the evidence of a motion too.
    changed = good + np.geomspace(1e-1, 1e-6, 60)[:, None] * rng.normal(0, 1, 9) * np.abs(good)
    squared = FAMILIES["fundamental"].squared_residuals(seen.matches.data[rows], np.vstack([good, changed]))
    worse = changed[np.argmax(squared[1:].mean(axis=1) < 1.3 * squared[0].mean())]
    both, noise = np.array([good, worse])[order], np.repeat(noise_scales(squared[:1], 1), 2)
    monkeypatch.setattr(MotionSearch, "_fits", lambda *_: (both, noise))
    np.testing.assert_array_equal(seen.motions()[0].models[0], good)


def test_objects_that_move_by_themselves_stay_apart() -> None:
    """The second one is sometimes found in part only: matches of both at once make most samples impure."""
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        cloud = on_plane(WALL, 120, rng) * rng.uniform(0.5, 1.2, (120, 1))
        thing = on_plane(WALL, 90, rng) * rng.uniform(0.5, 1.2, (90, 1))
        other = turned(-0.1, 0.05, 0.2), np.array([-0.3, 0.8, 0.1])
        result = filtered(views(cloud, seed=seed), views(thing, other, seed=seed), n_mismatches=10, seed=seed)
        assert len(result.motions) == 2
        assert (result.motion_labels[:120] == 0).mean() > 0.9
        assert (result.motion_labels[120:210] != 0).mean() > 0.9
        found.append((result.motion_labels[120:210] == 1).mean())
    assert np.median(found) > 0.9


def test_motions_are_the_same_after_a_pickle_and_at_every_call() -> None:
    rng = np.random.default_rng(1)
    result = filtered(views(np.vstack([on_plane(WALL, 60, rng), on_plane(FLOOR, 60, rng)])))
    copy = pickle.loads(pickle.dumps(result))
    assert copy == result
    assert copy.motions == result.motions
    np.testing.assert_array_equal(copy.motion_labels, result.motion_labels)


def test_without_structures_there_are_no_motions_and_no_pose() -> None:
    result = filter_points(np.zeros((5, 2)), np.zeros((5, 2)))
    assert result.motions == ()
    np.testing.assert_array_equal(result.motion_labels, np.full(5, -1))
    with pytest.raises(IndexError, match="there is no motion to tell a pose by: 0 of "):
        result.camera_pose(CAMERA1, CAMERA2)
    with pytest.raises(ValueError, match=r"`camera_matrix2` must have shape \(3, 3\), got \(3,\)"):
        result.camera_pose(CAMERA1, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="`camera_matrix1` must be finite and have an inverse"):
        result.camera_pose(np.zeros((3, 3)), CAMERA2)


@pytest.mark.parametrize("motion", [None, "0", 0.0, True])
def test_a_pose_of_what_is_no_index_is_an_error_that_names_the_argument(motion: Any) -> None:
    result = filtered(views(on_plane(WALL, 60, np.random.default_rng(0))))
    with pytest.raises(TypeError, match=f"`motion` must be an integer, got {motion!r}"):
        result.camera_pose(CAMERA1, CAMERA2, motion)


def test_families_of_planes_alone_have_a_motion_for_each_structure() -> None:
    rng = np.random.default_rng(2)
    points = views(np.vstack([on_plane(WALL, 80, rng), on_plane(FLOOR, 80, rng)]))
    result = filter_points(*points, model="homography")
    assert [motion.parts for motion in result.motions] == [(item,) for item in range(len(result.models))]


def test_matches_without_noise_have_motions_too() -> None:
    rng = np.random.default_rng(3)
    points = np.vstack([on_plane(WALL, 60, rng), on_plane(WALL, 40, rng) * rng.uniform(0.5, 0.9, (40, 1))])
    result = filter_points(*views(points, noise=0.0))
    assert [motion.kind for motion in result.motions] == ["fundamental"]
    assert max(angles(result.camera_pose(CAMERA1, CAMERA2), POSE)) < 0.1


# What stood still


def test_what_stood_still_has_no_votes_beside_its_own_structure() -> None:
    rng = np.random.default_rng(0)
    pair = [np.vstack(of) for of in zip(views(on_plane(WALL, 100, rng)), overlay(40, 0), strict=True)]
    matches = MatchSet.of(*pair)
    both = FAMILIES["homography"], FAMILIES["fundamental"]
    search = Search(matches, both, both, rng, 1)
    static = np.linalg.norm(pair[1] - pair[0], axis=1)[np.argsort(matches.where)] < 1.0
    assert len(search._still) == 1
    np.testing.assert_array_equal(search._votes[static], 0.0)
    np.testing.assert_array_equal(search._votes[~static], matches.votes[~static])


def overlay(n: int, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    points = rng.uniform([20, 20], [160, 60], (n, 2))
    return points, points + rng.normal(0, 0.2, (n, 2))


@pytest.mark.parametrize("seed", range(3))
def test_an_overlay_on_a_moving_scene_is_stationary_and_in_no_motion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scene = views(on_plane(WALL, 200, rng) * rng.uniform(0.5, 1.2, (200, 1)), seed=seed)
    result = filtered(scene, overlay(60, seed), n_mismatches=85, seed=seed)
    mark = result.labels[200]
    assert [model.stationary for model in result.models] == [item == mark for item in range(len(result.models))]
    assert result.inlier_mask[:260].mean() > 0.97
    assert (result.labels[200:260] == mark).all()
    for item, motion in enumerate(result.motions):
        own = result.motion_labels[200:260] == item
        assert own.all() if motion.stationary else not own.any()
    without = filtered(scene, overlay(60, seed), n_mismatches=85, seed=seed, keep_stationary=False)
    np.testing.assert_array_equal(without.inlier_mask[:200], result.inlier_mask[:200])
    assert not without.inlier_mask[200:260].any()


@pytest.mark.parametrize("pixel", [1.0, 1.0 / 700.0])
def test_few_matches_that_stood_still_are_an_overlay_in_any_unit(pixel: float) -> None:
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (300, 2))
    first[60:75] = rng.uniform([0, 620], [200, 660], (15, 2))
    second = 1.05 * first + [30.0, -12.0] + rng.normal(0, 0.4, first.shape)
    second[:60] = rng.uniform(0, 600, (60, 2))
    second[60:75] = first[60:75] + rng.choice([-0.45, 0.45], (15, 2))
    result = filter_points(pixel * first, pixel * second, pixel=pixel)
    assert [(model.stationary, model.support) for model in result.models] == [(False, 225), (True, 15)]


@pytest.mark.parametrize("model", ["homography", "fundamental"])
def test_an_overlay_is_dropped_whatever_models_are_asked_for(model: str) -> None:
    scene = views(on_plane(WALL, 200, np.random.default_rng(0)))
    result = filtered(scene, overlay(60, 0), n_mismatches=85, model=model, keep_stationary=False)
    assert result.inlier_mask[:200].mean() > 0.97
    assert not result.inlier_mask[200:260].any()


def test_of_two_images_from_one_tripod_all_is_kept() -> None:
    points = on_plane(WALL, 200, np.random.default_rng(0))
    first = seen(points, CAMERA1, np.eye(3), np.zeros(3))
    moved = first + np.random.default_rng(1).normal(0, 0.3, first.shape)
    for keep in (True, False):
        result = filtered((first, moved), keep_stationary=keep)
        assert result.inlier_mask[:200].all()
        assert not any(model.stationary for model in result.models)


def test_small_motions_are_no_overlays() -> None:
    """The middle of an image that turns a little hardly moves, but what is around it moves hardly more."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0, 600, (300, 2))
    turn = np.array([[np.cos(0.01), -np.sin(0.01)], [np.sin(0.01), np.cos(0.01)]])
    second = (first - 300) @ turn.T + 300 + rng.normal(0, 0.3, first.shape)
    result = filtered((first, second), keep_stationary=False)
    assert result.inlier_mask[:300].mean() > 0.97


@pytest.mark.parametrize("seed", [0, 2])
def test_planes_seen_through_a_lens_that_bends_lines_are_one_motion(seed: int) -> None:
    """Each plane has a matrix of its own that takes up what the lens does to it; together they are off by some tenths of a pixel."""

    def bent(points: Array) -> Array:
        off = points - [320.0, 240.0]
        return points + 0.02 * off * (off**2).sum(axis=1, keepdims=True) / 400.0**2

    rng, side = np.random.default_rng(seed), (0.9, 0.1, 0.5, 4.5)
    parts = [
        views(on_plane(plane, 150, rng), noise=0.1, seed=seed + number)
        for number, plane in enumerate((WALL, FLOOR, side))
    ]
    result = filtered(*((bent(first), bent(second)) for first, second in parts))
    assert len(result.models) == 3
    assert len(result.motions) == 1


def test_each_of_two_motions_has_a_pose_of_its_own() -> None:
    """Though of all matches, which five are drawn from, most belong to the larger one."""
    rng = np.random.default_rng(0)
    other = (
        cv2.Rodrigues(np.array([0.1, 0.1, 0.6]))[0],
        np.array([0.2, -0.9, 0.1]) / np.linalg.norm([0.2, -0.9, 0.1]),
    )
    scenes = [on_plane(WALL, n, rng) * rng.uniform(0.5, 1.2, (n, 1)) for n in (300, 100)]
    poses = POSE, other
    result = filtered(*(views(scene, pose, noise=0.3) for scene, pose in zip(scenes, poses, strict=True)))
    assert len(result.motions) >= 2
    for motion, pose in enumerate(poses):
        assert max(angles(result.camera_pose(CAMERA1, CAMERA2, motion), pose)) < 3.0


def test_a_motion_that_keeps_no_match_is_not_listed() -> None:
    matched = views(on_plane(WALL, 100, np.random.default_rng(0)))
    result = filtered(matched, threshold=1e-9)
    assert len(result.models) == 1
    assert result.motions == ()
    assert (result.motion_labels == -1).all()
    with pytest.raises(IndexError, match="no motion to tell a pose by"):
        result.camera_pose(CAMERA1, CAMERA2)


def test_motions_of_a_family_of_one_s_own_need_no_more_than_its_members() -> None:
    class Own:
        """Fundamental matrices, and no dataclass."""

        def __getattr__(self, name: str) -> Any:
            return getattr(FAMILIES["fundamental"], name)

    rng = np.random.default_rng(0)
    cloud = on_plane(WALL, 80, rng) * rng.uniform(0.5, 0.9, (80, 1))
    assert [motion.kind for motion in filtered(views(cloud), model=Own()).motions] == ["fundamental"]
