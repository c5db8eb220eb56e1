"""Matches of known cameras: planes and motions in rays, of distorted images, of fisheyes and of 360 degrees."""

import copy
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from posed_views import CAMERA1, CAMERA2, POSE, WALL, angles, on_plane, towards, turned, views

from ruzhash_cv import (
    DO_NOT_RECONSTRUCT,
    NOTHING_SHARED,
    Camera,
    FilterResult,
    filter_matches,
    filter_points,
    find_essential_matrix,
)
from ruzhash_cv.core.method.parameters import PARAMETERS
from ruzhash_cv.models import sampson_distance, transfer_error
from ruzhash_cv.results.pose import squared_turns

Array, Cameras = np.ndarray, tuple[Camera, Camera]
three_seeds = pytest.mark.parametrize("seed", range(3))
BARREL = Camera(CAMERA1, [-0.35, 0.1, 0.0, 0.0]), Camera(CAMERA2, [-0.3, 0.05, 0.001, 0.0])
FISHEYE = Camera([[180.0, 0.0, 320.0], [0.0, 180.0, 320.0], [0.0, 0.0, 1.0]], [0.02, -0.002, 0.0, 0.0], fisheye=True)
ROUND = Camera.equirectangular(1280)


def all_around(n: int, rng: np.random.Generator) -> Array:
    """Points (n, 3) on and before the four walls, the floor and the ceiling of a room, with the first camera in it."""
    points = rng.uniform(-1.0, 1.0, (n, 3))
    points[np.arange(n), rng.integers(3, size=n)] = rng.choice([-1.0, 1.0], n) * rng.uniform(0.7, 1.0, n)
    return points * [4.0, 1.5, 5.0] + [0.3, 0.0, 0.5]


def pixels_of(points: Array, cameras: Cameras, pose: Any = POSE, seed: int = 0, noise: float = 0.4) -> Any:
    """Return noisy pixels of those points that both cameras see in images of 1280 pixels at most."""
    rotation, translation = pose
    first, second = cameras[0].pixels(points), cameras[1].pixels(points @ rotation.T + translation)
    seen = (np.abs(np.hstack([first, second])) < 1280.0).all(axis=1)
    rng = np.random.default_rng(seed)
    return tuple(each[seen] + rng.normal(0, noise, each[seen].shape) for each in (first, second))


def with_mismatches(pixels: tuple[Array, Array], n: int, seed: int = 0) -> tuple[Array, Array]:
    """Return matches and after them as many mismatches, points of both images paired at random."""
    rng = np.random.default_rng(seed)
    return tuple(np.vstack([each, each[rng.integers(len(each), size=n)]]) for each in pixels)  # type: ignore[return-value]


def depth(n: int, seed: int) -> Array:
    return on_plane(WALL, n, np.random.default_rng(seed), 0.5, 1.2)


@three_seeds
def test_distorted_images_have_one_motion_and_the_pose_of_the_cameras(seed: int) -> None:
    pixels = with_mismatches(pixels_of(depth(200, seed), BARREL, seed=seed), 100, seed)
    result = filter_points(*pixels, cameras=BARREL)
    assert [motion.kind for motion in result.motions] == ["essential"]
    assert result.inlier_mask[:200].mean() > 0.97 > 0.08 > result.inlier_mask[200:].mean()
    assert max(angles(result.camera_pose(), POSE)) < 1.0


@three_seeds
@pytest.mark.parametrize("cameras", [(FISHEYE, FISHEYE), (ROUND, ROUND), (FISHEYE, ROUND)])
def test_cameras_that_see_behind_themselves_have_one_motion(cameras: Cameras, seed: int) -> None:
    pose = turned(0.1, 0.3, -0.1), towards(0.6, 0.1, 0.5)
    pixels = pixels_of(all_around(500, np.random.default_rng(seed)), cameras, pose, seed)
    n = len(pixels[0])
    assert (cameras[0].rays(pixels[0])[:, 2] < 0.0).mean() > 0.1
    result = filter_points(*with_mismatches(pixels, n // 2, seed), cameras=cameras)
    assert result.motions[0].kind == "essential"
    assert result.inlier_mask[:n].mean() > 0.95 > 0.06 > result.inlier_mask[n:].mean()
    assert max(angles(result.camera_pose(), pose)) < 0.5
    # In pixels of the image, though a fisheye has 180 to 110 of them in a radian.
    assert result.motions[0].noise_scale == pytest.approx(0.4, rel=0.15)


def test_rays_of_a_360_degree_image_are_taken_as_its_pixels_are() -> None:
    pixels = with_mismatches(pixels_of(all_around(300, np.random.default_rng(0)), (ROUND, ROUND)), 100)
    rays = [7.0 * ROUND.rays(each) for each in pixels]
    rows, alone = np.stack([np.arange(len(rays[0]))] * 2, axis=1), Camera.from_rays(2.0 * np.pi / 1280.0)
    expected = filter_points(*pixels, cameras=ROUND).inlier_mask
    np.testing.assert_array_equal(filter_points(*rays, cameras=ROUND).inlier_mask, expected)
    np.testing.assert_array_equal(filter_matches(*rays, rows, cameras=ROUND), expected)
    assert (filter_points(*rays, cameras=alone).inlier_mask == expected).mean() > 0.98
    (E, mask), (theirs, their_mask) = find_essential_matrix(*rays, ROUND), find_essential_matrix(*pixels, ROUND)
    assert mask.mean() > 0.6
    np.testing.assert_array_equal(mask, their_mask)
    np.testing.assert_allclose(E, theirs, atol=1e-9)
    assert (find_essential_matrix(*rays, alone, None, alone, None)[1] == mask).mean() > 0.95


@three_seeds
@pytest.mark.parametrize("rotation", [np.eye(3), turned(0.0, 0.3, 0.0)], ids=["still", "turned"])
def test_all_exact_matches_of_a_camera_that_only_turned_are_inliers(rotation: Array, seed: int) -> None:
    """Which of them a translation has in front of both cameras would be chance."""
    first = np.random.default_rng(seed).uniform(0.0, [640.0, 480.0], (200, 2))
    camera = Camera(CAMERA1)
    pose = filter_points(first, camera.pixels(camera.rays(first) @ rotation.T), cameras=camera).camera_pose()
    assert not pose.has_baseline
    assert pose.inliers.all()
    assert np.isnan(pose.points3d).all()


@three_seeds
@pytest.mark.parametrize("zoom", [0.3, 3.0])
def test_a_camera_that_turned_and_zoomed_tells_no_baseline(zoom: float, seed: int) -> None:
    """The noise of the image with the shorter focal length makes larger angles."""
    cameras = Camera(CAMERA1), Camera(CAMERA1 * [[zoom, 1.0, 1.0], [1.0, zoom, 1.0], [1.0, 1.0, 1.0]])
    rng = np.random.default_rng(seed)
    first = rng.uniform(0.0, [640.0, 480.0], (200, 2))
    second = cameras[1].pixels(cameras[0].rays(first) @ turned(0.0, 0.1, 0.05).T)
    noisy = [each + rng.normal(0.0, 0.5, each.shape) for each in (first, second)]
    pose = filter_points(*with_mismatches((noisy[0], noisy[1]), 60, seed), cameras=cameras).camera_pose()
    assert not pose.has_baseline
    assert pose.inliers[:200].mean() > 0.85 > 0.1 > pose.inliers[200:].mean()


def test_opposite_rays_agree_with_no_rotation() -> None:
    """Though they satisfy every epipolar constraint of a camera that only turned."""
    rays = 200.0 * ROUND.rays(np.random.default_rng(0).uniform(0.0, [1279.0, 639.0], (5, 2)))
    assert np.isinf(squared_turns(np.hstack([np.zeros((5, 4)), rays, -rays]), np.eye(3))).all()


def test_points_in_space_are_where_they_were() -> None:
    points = depth(200, 0)
    pixels = with_mismatches(pixels_of(points, BARREL, noise=0.05), 50)
    pose = filter_points(*pixels, cameras=BARREL).camera_pose()
    assert pose.has_baseline
    told = pose.inliers[:200]
    assert told.mean() > 0.95
    np.testing.assert_array_equal(np.isfinite(pose.points3d).all(axis=1), pose.inliers)
    assert np.median(np.linalg.norm(pose.points3d[:200][told] - points[told], axis=1) / points[told, 2]) < 0.02
    other = points - POSE[0].T @ -POSE[1]
    cosines = (points * other).sum(axis=1) / np.linalg.norm(points, axis=1) / np.linalg.norm(other, axis=1)
    assert pose.median_angle == pytest.approx(np.degrees(np.median(np.arccos(cosines))), rel=0.05)


def without_distortion(pixels: tuple[Array, Array]) -> list[Array]:
    each = zip(pixels, BARREL, strict=True)
    return [cv2.undistortPoints(of[:, None], K.matrix, K.distortion, P=K.matrix)[:, 0] for of, K in each]


def test_the_homography_of_a_plane_is_of_pixels_without_distortion() -> None:
    pixels = pixels_of(on_plane(WALL, 150, np.random.default_rng(0)), BARREL, noise=0.1)
    (wall,) = filter_points(*pixels, cameras=BARREL).motions
    assert wall.kind == "homography"
    assert wall.fundamental is None
    assert np.median(transfer_error(*without_distortion(pixels), wall.matrix)) < 0.4


def test_an_essential_matrix_is_of_rays_and_its_fundamental_one_of_pixels_without_distortion() -> None:
    pixels = pixels_of(depth(200, 0), BARREL, noise=0.1)
    result = filter_points(*pixels, cameras=BARREL)
    rays = [camera.rays(each) for each, camera in zip(pixels, BARREL, strict=True)]
    motion = result.motions[0]
    assert motion.kind == "essential"
    assert np.median(sampson_distance(*without_distortion(pixels), motion.fundamental)) < 0.2
    np.testing.assert_allclose(np.linalg.svd(motion.matrix)[1], [np.sqrt(0.5), np.sqrt(0.5), 0.0], atol=1e-12)
    assert np.median(np.abs((rays[1] * (rays[0] @ motion.matrix.T)).sum(axis=1))) < 1e-3


@three_seeds
def test_one_known_camera_straightens_its_image(seed: int) -> None:
    cameras = BARREL[0], Camera(CAMERA2)
    pixels = with_mismatches(pixels_of(depth(200, seed), cameras, seed=seed), 100, seed)
    result = filter_points(*pixels, cameras=(cameras[0], None))
    assert result.motions[0].kind == "fundamental"
    assert result.inlier_mask[:200].mean() > 0.93 > 0.08 > result.inlier_mask[200:].mean()
    with pytest.raises(TypeError, match="`camera1` and `camera2` must be given"):
        result.camera_pose()
    assert max(angles(result.camera_pose(*cameras), POSE)) < 2.0


@pytest.mark.filterwarnings("ignore:the second camera sees more than 147 degrees")
@pytest.mark.parametrize(("centre", "width"), [(300.0, 1e-13), (0.0, 1e-300), (9e8, 600.0), (9e8, 0.0), (1e59, 1e57)])
def test_unknown_camera_of_points_of_any_spread_is_no_error(centre: float, width: float) -> None:
    points = centre + width * np.random.default_rng(0).uniform(size=(60, 2))
    filtered = filter_points(points, points, cameras=(None, CAMERA2), pixel=max(1.0, 1e-5 * width))
    assert filtered.inlier_mask.shape == (60,)


@pytest.mark.filterwarnings("ignore:a fundamental matrix")
@pytest.mark.parametrize("focal", [0.7, 1.0, 1.4])
def test_a_focal_length_that_is_only_guessed_tells_the_same_matches(focal: float) -> None:
    guessed = [matrix * [[focal, 1, 1], [1, focal, 1], [1, 1, 1]] for matrix in (CAMERA1, CAMERA2)]
    result = filter_points(*with_mismatches(views(depth(200, 0)), 100), cameras=tuple(guessed))
    assert result.inlier_mask[:200].mean() > 0.93 > 0.08 > result.inlier_mask[200:].mean()


def test_one_camera_may_have_taken_both_images() -> None:
    camera = Camera(CAMERA1)
    pixels = with_mismatches(pixels_of(depth(200, 0), (camera, camera)), 100)
    expected = filter_points(*pixels, cameras=(camera, camera))
    assert filter_points(*pixels, cameras=camera) == filter_points(*pixels, cameras=CAMERA1.tolist()) == expected
    alone = filter_points(*pixels)
    assert alone.camera_pose(CAMERA1) == alone.camera_pose(CAMERA1, CAMERA1)


def said_by(call: Callable[[], Any]) -> list[str]:
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in caught]


@pytest.mark.parametrize(
    ("factor", "angle"), [(0.1, "more than 147"), (10.0, "less than 9.5"), (1e-3, "more than 147")]
)
def test_a_focal_length_of_another_unit_is_warned_of(factor: float, angle: str) -> None:
    wrong = CAMERA1 * [[factor, 1.0, 1.0], [1.0, factor, 1.0], [1.0, 1.0, 1.0]]
    pixels = views(depth(200, 0))
    message = f"the first camera sees {angle} degrees: is its focal length, {wrong[0, 0]:g}, in pixels"
    for call in (
        lambda: filter_points(*pixels, cameras=(wrong, CAMERA2)),
        lambda: filter_points(*pixels, cameras=(wrong, None)),
        lambda: find_essential_matrix(*pixels, wrong, None, CAMERA2, None),
    ):
        assert message in said_by(call)[0]


def test_a_principal_point_of_another_image_is_warned_of() -> None:
    wrong = CAMERA1.copy()
    wrong[:2, 2] = 40_000.0
    said = said_by(lambda: filter_points(*views(depth(200, 0)), cameras=(wrong, CAMERA2)))
    assert said[0].startswith("the first camera has its principal point at (40000, 40000), far from its points")


def test_mirrored_planes_of_little_evidence_are_not_warned_of() -> None:
    """Among matches of pictures that share nothing such a plane is chance."""
    first, second = np.random.default_rng(0).uniform(0, 1000, (2, 200, 2))
    second[:14] = first[:14, ::-1] + [3.0, 5.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = filter_points(first, second)
    assert NOTHING_SHARED < result.evidence < DO_NOT_RECONSTRUCT
    assert result.inlier_mask[:14].all()


@pytest.mark.parametrize("cameras", [None, (CAMERA1, CAMERA2)])
def test_rows_and_columns_exchanged_in_one_image_are_warned_of(cameras: Any) -> None:
    for points in (on_plane(WALL, 100, np.random.default_rng(0)), depth(200, 0)):
        first, second = views(points)
        messages = said_by(lambda: filter_points(first, second[:, ::-1], cameras=cameras))  # noqa: B023
        assert re.match(r"the second image mirrors the first: .*\(row, column\)", messages[-1])


def test_a_watermark_of_one_camera_is_stationary() -> None:
    pixels = with_mismatches(pixels_of(depth(200, 0), (BARREL[0], BARREL[0])), 50)
    mark = np.random.default_rng(1).uniform([20.0, 20.0], [120.0, 60.0], (40, 2))
    marked = [np.vstack([each, mark]) for each in pixels]
    result = filter_points(*marked, cameras=BARREL[0], keep_stationary=False)
    assert [model.stationary for model in result.motions].count(True) == 1
    assert not result.inlier_mask[-40:].any()
    assert result.inlier_mask[:200].mean() > 0.93


def test_a_result_with_cameras_pickles_and_equals_itself() -> None:
    pixels = pixels_of(depth(100, 0), BARREL)
    result = filter_points(*pixels, cameras=BARREL)
    again: FilterResult = pickle.loads(pickle.dumps(result))
    assert again == copy.deepcopy(result) == result == filter_points(*pixels, cameras=BARREL)
    assert again.camera_pose() == result.camera_pose()


def test_points_that_no_ray_leads_to_are_rows_without_a_match() -> None:
    folding = Camera(CAMERA1, [-0.35, 0.0, 0.0, 0.0]), BARREL[1]
    pixels = pixels_of(depth(100, 0), folding)
    pixels[0][:3] = [[1e5, 0.0], [-1e5, 3.0], [np.nan, 1.0]]
    assert filter_points(*pixels, cameras=folding).has_match.tolist() == [False] * 3 + [True] * 97


# In OpenCV's form


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((CAMERA1, None, CAMERA2, None, cv2.RANSAC, 0.999, 1.0), {}),
        ((CAMERA1, np.zeros(5), CAMERA2, None), {"threshold": 1.0}),
        ((), {"cameraMatrix1": CAMERA1, "distCoeffs1": None, "cameraMatrix2": CAMERA2, "method": cv2.USAC_MAGSAC}),
        ((Camera(CAMERA1), None, Camera(CAMERA2)), {"rng": 0}),
    ],
)
def test_an_essential_matrix_of_two_cameras_is_found_in_opencv_s_form(args: Any, kwargs: Any) -> None:
    pixels = with_mismatches(views(depth(200, 0)), 100)
    E, mask = find_essential_matrix(*pixels, *args, **kwargs)
    assert (mask.dtype, mask.shape) == (np.uint8, (300, 1))
    assert mask[:200].mean() > 0.9 > 0.15 > mask[200:].mean()
    both = zip(pixels, (CAMERA1, CAMERA2), strict=True)
    normalised = [cv2.undistortPoints(each[:, None], K, None)[:, 0] for each, K in both]
    _, R, t, _ = cv2.recoverPose(E, *normalised, np.eye(3), mask=mask)
    assert max(angles((R, t.ravel()), POSE)) < 2.0


def test_few_matches_give_a_pose_and_opencv_s_form_has_its_matrix() -> None:
    errors = []
    for seed in range(20):
        pixels = with_mismatches(views(depth(20, seed), noise=0.3, seed=seed), 20, seed)
        rotation, translation = filter_points(*pixels, cameras=(CAMERA1, CAMERA2)).camera_pose()
        errors.append(max(angles((rotation, translation), POSE)))
        E, _ = find_essential_matrix(*pixels, CAMERA1, None, CAMERA2, None)
        np.testing.assert_allclose(np.sqrt(2.0) * E, np.cross(translation, rotation.T).T, atol=1e-9)
    assert np.quantile(errors, 0.9) < 1.5


@pytest.mark.parametrize("seed", range(2))
def test_a_pose_is_not_fitted_to_matches_behind_a_camera(seed: int) -> None:
    pixels = views(np.vstack([depth(150, seed), -depth(100, seed + 50)]), noise=0.3, seed=seed)
    pixels[1][150:, 1] += 2.0
    assert max(angles(filter_points(*pixels, cameras=(CAMERA1, CAMERA2)).camera_pose(), POSE)) < 0.2


@three_seeds
def test_distortions_are_taken_into_account_in_opencv_s_form(seed: int) -> None:
    pixels = with_mismatches(pixels_of(depth(200, seed), BARREL, seed=seed), 100, seed)
    (one, first), (two, second) = ((camera.matrix, camera.distortion) for camera in BARREL)
    _, mask = find_essential_matrix(*pixels, one, first, two, second)
    _, other = find_essential_matrix(*pixels, one, None, two, None)
    assert mask[:200].mean() > max(0.9, other[:200].mean() + 0.05)


def test_a_focal_length_and_a_principal_point_are_a_camera() -> None:
    camera = Camera([[650.0, 0.0, 330.0], [0.0, 650.0, 250.0], [0.0, 0.0, 1.0]])
    pixels = with_mismatches(pixels_of(depth(200, 0), (camera, camera)), 100)
    expected = find_essential_matrix(*pixels, camera.matrix, cv2.RANSAC, 0.999, 1.0)
    assert expected[1][:200].mean() > 0.9
    for found in (
        find_essential_matrix(*pixels, 650.0, (330.0, 250.0), cv2.RANSAC, 0.999, 1.0),
        find_essential_matrix(*pixels, focal=650, pp=(330, 250), method=cv2.LMEDS, prob=0.999, threshold=1.0),
        find_essential_matrix(*map(cv2.UMat, pixels), pp=np.array([330.0, 250.0]), focal=650.0),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


F = 1.0 / 700.0


@three_seeds
@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((np.eye(3), cv2.RANSAC, 0.999, F), {}),
        ((np.eye(3),), {"pixel": F}),
        ((), {"method": cv2.RANSAC, "prob": 0.999, "threshold": F}),
        ((np.eye(3), None, np.eye(3), None, cv2.RANSAC, 0.999, F), {}),
        ((np.eye(3), cv2.RANSAC, 0.999, F), {"pixel": F}),
    ],
)
def test_normalised_points_have_the_essential_matrix_of_the_pixels(args: Any, kwargs: Any, seed: int) -> None:
    camera = Camera([[700.0, 0.0, 320.0], [0.0, 700.0, 240.0], [0.0, 0.0, 1.0]])
    pixels = with_mismatches(pixels_of(depth(200, seed), (camera, camera), seed=seed), 100, seed)
    normalised = [cv2.undistortPoints(each[:, None], camera.matrix, None)[:, 0] for each in pixels]
    E, mask = find_essential_matrix(*normalised, *args, **kwargs)
    _, expected = find_essential_matrix(*pixels, camera, threshold=1.0)
    assert (mask == expected).mean() > 0.97
    _, R, t, _ = cv2.recoverPose(E, *normalised, np.eye(3), mask=mask)
    assert max(angles((R, t.ravel()), POSE)) < 2.0


@pytest.mark.parametrize("model", ["auto", "essential"])
def test_matches_are_filtered_without_cameras_that_do_not_fit(model: Any) -> None:
    pixels = with_mismatches(views(on_plane(WALL, 200, np.random.default_rng(0), 0.4, 1.2), noise=0.3), 100, 0)
    K1, K2 = (np.diag([2.0, 2.0, 1.0]) @ camera for camera in (CAMERA1, CAMERA2))
    with pytest.warns(UserWarning, match="filtered without cameras" if model == "auto" else "in pixels[?]$"):
        result = filter_points(*pixels, cameras=(K1, K2), model=model)
    assert (result == filter_points(*pixels)) == (model == "auto")
    if model == "auto":
        assert result.inlier_mask[:200].mean() > 0.97
        with pytest.warns(UserWarning, match="far better than these cameras"):
            assert result.camera_pose() == filter_points(*pixels).camera_pose(K1, K2)
        with pytest.warns(UserWarning, match="far better than these cameras"):
            assert result.camera_pose(image_size=(1200, 900)).camera is not None


def test_essential_matrices_are_sampled_in_the_first_round_unless_planes_are_enough() -> None:
    depths = on_plane(WALL, 200, np.random.default_rng(0), 0.4, 1.2)
    wall = filter_points(*views(on_plane(WALL, 200, np.random.default_rng(0))), cameras=(CAMERA1, CAMERA2))
    rigid = filter_points(*views(depths), cameras=(CAMERA1, CAMERA2))
    assert [result.search.rounds for result in (wall, rigid)] == [1, 1]
    assert wall.search.models <= PARAMETERS.plane_samples < rigid.search.models
    assert rigid.motions[0].kind == "essential"


def test_cameras_in_millimetres_are_warned_of_and_left_out_of_the_filter() -> None:
    points = on_plane(WALL, 200, np.random.default_rng(0), 0.4, 1.2)
    K1, K2 = (camera * [[0.006, 1.0, 1.0], [1.0, 0.006, 1.0], [1.0, 1.0, 1.0]] for camera in (CAMERA1, CAMERA2))
    with pytest.warns(UserWarning) as caught:  # noqa: PT030
        result = filter_points(*views(points, noise=0.3), cameras=(K1, K2))
    of_focal_length, of_misfit = (str(each.message) for each in caught)
    assert of_focal_length.startswith("the first camera sees more than 147 degrees")
    assert of_misfit.endswith("The matches were filtered without cameras.")
    assert result.motions[0].kind == "fundamental"


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.5])
def test_cameras_of_another_image_size_are_warned_of(factor: float) -> None:
    """Before the filter, after it, and in OpenCV's form."""
    rng = np.random.default_rng(0)
    points1, points2 = views(
        on_plane(WALL, 200, rng, 0.4, 1.2), (turned(0.1, -0.2, 0.15), towards(1.0, 0.3, 0.4)), noise=0.3
    )
    K1, K2 = (np.diag([factor, factor, 1.0]) @ camera for camera in (CAMERA1, CAMERA2))
    for call in (
        lambda: filter_points(points1, points2, cameras=(K1, K2)),
        lambda: filter_points(points1, points2).camera_pose(K1, K2),
        lambda: find_essential_matrix(points1, points2, K1, None, K2, None),
    ):
        assert [message[:20] for message in said_by(call)] == ([] if factor == 1.0 else ["a fundamental matrix"])
