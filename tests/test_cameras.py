"""Cameras: pixels to rays and back by OpenCV's and COLMAP's own projections, and what is no camera."""

import pickle
from functools import partial

import cv2
import numpy as np
import pytest

from ruzhash_cv import Camera

Array = np.ndarray
MATRIX = np.array([[700.0, 0.0, 320.0], [0.0, 710.0, 240.0], [0.0, 0.0, 1.0]])
DISTORTIONS = (
    (),
    (-0.3, 0.1, 0.001, -0.002),
    (0.1, 0.02, 0.0, 0.001, -0.01),
    (-0.2, 0.05, 0.0, 0.0, 0.0, 0.01, 0.02, 0.003),
    (-0.2, 0.05, 0.0, 0.0, 0.0, 0.01, 0.02, 0.003, 0.001, 0.001, 0.0, 0.002),
    (-0.2, 0.05, 0.0, 0.0, 0.0, 0.01, 0.02, 0.003, 0.001, 0.001, 0.0, 0.0, 0.01, 0.02),
)
WIDE = np.array([[200.0, 0.0, 320.0], [0.0, 200.0, 240.0], [0.0, 0.0, 1.0]])
FISHEYE = Camera(WIDE, [0.05, 0.01, -0.005, 0.001], fisheye=True)
CAMERAS = (*(Camera(MATRIX, distortion) for distortion in DISTORTIONS), FISHEYE, Camera.equirectangular(640))
STILL = np.zeros(3)


def pixels(n: int = 300) -> Array:
    return np.random.default_rng(0).uniform(0, [639, 319], (n, 2))


@pytest.mark.parametrize("camera", CAMERAS, ids=lambda camera: f"{len(camera.distortion)} {camera.fisheye}")
def test_rays_are_of_length_one_and_lead_back_to_their_pixels(camera: Camera) -> None:
    rays = camera.rays(pixels())
    np.testing.assert_allclose(np.linalg.norm(rays, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(camera.pixels(3.0 * rays), pixels(), atol=1e-5)


@pytest.mark.parametrize("distortion", DISTORTIONS)
def test_rays_are_those_that_opencv_projects_to_the_pixels(distortion: tuple[float, ...]) -> None:
    rays = Camera(MATRIX, distortion).rays(pixels())
    projected, _ = cv2.projectPoints(rays[:, None], STILL, STILL, MATRIX, np.array(distortion))
    np.testing.assert_allclose(projected[:, 0], pixels(), atol=1e-5)


def test_a_fisheye_is_that_of_opencv_and_sees_further() -> None:
    rays = FISHEYE.rays(pixels())
    before = rays[:, 2] > 0.1
    projected, _ = cv2.fisheye.projectPoints(rays[before][:, None], STILL, STILL, FISHEYE.matrix, FISHEYE.distortion)
    np.testing.assert_allclose(projected[:, 0], pixels()[before], atol=1e-6)
    assert (FISHEYE.rays([[0.0, 0.0], [320.0, 240.0]])[:, 2] < 0.0).tolist() == [True, False]


@pytest.mark.parametrize("camera", CAMERAS[:-1], ids=lambda camera: f"{len(camera.distortion)} {camera.fisheye}")
def test_pixels_per_radian_are_what_small_turns_of_a_ray_make(camera: Camera) -> None:
    rays = camera.rays(pixels(50))
    areas = []
    for ray in rays:
        steps = 1e-5 * np.linalg.svd(ray[None])[2][1:]
        moved = [(camera.pixels([ray + step]) - camera.pixels([ray - step]))[0] / 2e-5 for step in steps]
        areas.append(abs(np.linalg.det(moved)))
    np.testing.assert_allclose(camera._pixels_per_radian(rays), np.sqrt(areas), rtol=1e-6)


def test_a_pinhole_has_its_focal_length_of_pixels_per_radian_on_the_axis() -> None:
    assert Camera.from_focal_length(800.0, (640, 480))._pixels_per_radian(np.array([[0.0, 0.0, 1.0]])) == pytest.approx(
        800.0
    )
    assert Camera.from_rays(0.001)._pixels_per_radian(np.array([[1.0, 2.0, -2.0]]) / 3.0) == pytest.approx(1000.0)


def test_a_focal_length_that_nothing_tells_is_colmap_s_guess() -> None:
    camera = Camera.from_focal_length(None, (640, 480))
    np.testing.assert_array_equal(camera.matrix, [[768.0, 0.0, 319.5], [0.0, 768.0, 239.5], [0.0, 0.0, 1.0]])


def test_directions_of_a_360_degree_image() -> None:
    rays = Camera.equirectangular(400).rays([[199.5, 99.5], [299.5, 99.5], [99.5, 99.5], [199.5, 199.5]])
    np.testing.assert_allclose(rays, [[0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, 1, 0]], atol=1e-12)


def test_beyond_the_fold_of_a_distortion_there_are_no_rays() -> None:
    """x (1 - x^2) is largest, .385, at x = .577."""
    camera = Camera(np.diag([100.0, 100.0, 1.0]), [-1.0, 0.0, 0.0, 0.0])
    rays = camera.rays([[38.0, 0.0], [39.0, 0.0], [np.nan, 0.0]])
    assert np.isfinite(rays).all(axis=1).tolist() == [True, False, False]
    assert np.isnan(camera.pixels([[0.7, 0.0, 1.0], [0.0, 0.0, -1.0]])).all()


def test_every_model_of_colmap_leads_to_its_own_pixels() -> None:
    pycolmap = pytest.importorskip("pycolmap")
    rng = np.random.default_rng(0)
    for name in set(pycolmap.CameraModelId.__members__) - {"INVALID"}:
        theirs = pycolmap.Camera.create_from_model_name(0, name, 500.0, 640, 320)
        parameters = np.array(theirs.params)
        if name != "EQUIRECTANGULAR":
            extra = list(theirs.extra_params_idxs())
            parameters[extra] = 0.02 * rng.normal(size=len(extra))
            parameters[extra] = {"FOV": [0.5], "EUCM": [0.5, 1.0]}.get(name, parameters[extra])
        theirs.params = parameters
        camera = Camera.from_colmap(theirs)
        rays = camera.rays(pixels())
        np.testing.assert_allclose(camera.pixels(rays), pixels(), atol=1e-4, err_msg=name)
        if name != "EQUIRECTANGULAR":
            np.testing.assert_allclose(theirs.img_from_cam(rays), pixels(), atol=1e-4, err_msg=name)


@pytest.mark.parametrize("length", [5e-324, 1e-200, 1e200, 1e300])
def test_rays_are_of_any_length(length: float) -> None:
    assert Camera(MATRIX).pixels([[0.0, 0.0, length]]).tolist() == [[320.0, 240.0]]


def test_invalid_colmap_camera_is_rejected() -> None:
    pycolmap = pytest.importorskip("pycolmap")
    for focal, distortion, message in ((-700.0, 0.0, "`matrix` must have"), (700.0, np.nan, "`dis")):
        parameters = [focal, 320.0, 240.0, distortion]
        theirs = pycolmap.Camera(model="SIMPLE_RADIAL", width=640, height=480, params=parameters)
        with pytest.raises(ValueError, match=f"`camera1` is no camera: {message}"):
            Camera.of(theirs, "camera1")


def test_a_camera_is_made_of_what_stands_for_one() -> None:
    plain = Camera(MATRIX)
    assert Camera.of(plain) is plain
    assert Camera.of(MATRIX.tolist()) == plain
    assert Camera.of((MATRIX, None)) == plain
    assert Camera.of((MATRIX, [[-0.2, 0.0, 0.0, 0.0]])) == Camera(MATRIX, [-0.2, 0.0, 0.0, 0.0])
    assert pickle.loads(pickle.dumps(FISHEYE)) == FISHEYE
    assert plain.is_pinhole
    assert not FISHEYE.is_pinhole


def test_cameras_that_differ_by_their_kind_alone_print_as_what_they_are() -> None:
    for round_one in (Camera.equirectangular(4096), Camera.from_rays(1 / 700)):
        assert round_one != Camera(round_one.matrix)
        assert repr(round_one) == repr(Camera(round_one.matrix))[:-1] + ", is_spherical=True)"


def test_a_camera_of_colmap_prints_its_model_and_its_numbers() -> None:
    make = partial(pytest.importorskip("pycolmap").Camera, model="FOV", width=640, height=480)
    first, second = (Camera.of(make(params=[700.0, 700.0, 320.0, 240.0, omega])) for omega in (0.5, 0.6))
    assert "FOV" in repr(first)
    assert len({repr(each) for each in (first, second, Camera(first.matrix))}) == 3


def test_a_camera_does_not_change_with_what_it_was_made_of() -> None:
    matrix = MATRIX.copy()
    camera = Camera(matrix)
    matrix[0, 0] = 1.0
    assert camera.matrix[0, 0] == 700.0
    with pytest.raises(ValueError, match="read-only"):
        camera.matrix[0, 0] = 1.0
