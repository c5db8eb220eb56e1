"""Cameras: pixels to unit rays and back, and how many pixels a small angle is at each point.

A camera is a projection to plane coordinates and a matrix that makes pixels of these: x / z and y / z, distorted as in OpenCV; a
fisheye's, theta_d (cos phi, sin phi); the longitude and the latitude of a 360 degree image; or what pycolmap makes of a ray.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv.core.kernels.lenses import distort, undistort
from ruzhash_cv.core.method.matches import Sight
from ruzhash_cv.foundation.arrays import Array, Record
from ruzhash_cv.foundation.validation import (
    LARGEST_COORDINATE,
    as_array,
    as_matrix,
    as_points,
    as_reals,
    check_bool,
    check_int,
    check_real,
)

Cameras: TypeAlias = "tuple[Camera | None, Camera | None]"

#: Numbers of distortion that OpenCV's models have, by `fisheye`.
_N_DISTORTION = {False: (0, 4, 5, 8, 12, 14), True: (0, 4)}
#: Newton steps at most, and the error in focal lengths at which they end, or above which a point has no ray.
_STEPS, _EXACT, _LARGEST_ERROR = 20, 1e-10, 1e-4
#: Radians by which rays are moved for a numeric derivative.
_DELTA = 1e-5
#: Least width of an image whose camera is unknown, in distances from the origin: a matrix of less has no exact inverse.
_LEAST_WIDTH = 2e-6
#: COLMAP's guess of a focal length, in image widths.
_GUESSED_FOCAL_LENGTH = 1.2
#: How many of k1, k2, p1, p2, ... are the last parameters of pycolmap's models that are OpenCV's, with or without _FISHEYE.
_COLMAP = {"SIMPLE_PINHOLE": 0, "PINHOLE": 0, "SIMPLE": 0, "FISHEYE": 0, "SIMPLE_RADIAL": 1, "RADIAL": 2, "OPENCV": 4}
_COLMAP |= {"FULL_OPENCV": 8}


@dataclass(frozen=True, eq=False, init=False)
class Camera(Record):
    """A calibrated camera.

    Attributes
    ----------
    matrix : array_like, shape (3, 3)
        Intrinsics, pixels. For a 360 degree image, it maps longitude and latitude to pixels.
    distortion : array_like of 0, 4, 5, 8, 12 or 14 numbers, or None
        Coefficients of `cv2.calibrateCamera`, or with `fisheye` the four of `cv2.fisheye.calibrate`. None: no distortion.
    fisheye : bool
        The model of `cv2.fisheye`: r = f (theta + k1 theta^3 + ...). Rays may be more than 90 degrees off the axis.

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> camera = Camera([[700.0, 0.0, 320.0], [0.0, 700.0, 240.0], [0.0, 0.0, 1.0]], [-0.2, 0.05, 0.0, 0.0])
    >>> rays = camera.rays([[320.0, 240.0], [600.0, 100.0]])
    >>> rays[0]
    array([0., 0., 1.])
    >>> camera.pixels(rays).round(6)
    array([[320., 240.],
           [600., 100.]])
    """

    matrix: Array
    distortion: Array
    fisheye: bool
    _spherical: bool
    _colmap: Any

    def __init__(
        self,
        matrix: ArrayLike,
        distortion: ArrayLike | None = None,
        fisheye: bool = False,
        *,
        _spherical: bool = False,
        _colmap: Any = None,
    ) -> None:
        intrinsics = as_matrix(matrix, "matrix").copy()
        if not (intrinsics[0, 0] > 0.0 and intrinsics[1, 1] > 0.0):
            lengths = f"{intrinsics[0, 0]:g} and {intrinsics[1, 1]:g}"
            raise ValueError(f"`matrix` must have positive focal lengths, got {lengths}")
        if intrinsics[1, 0] != 0.0 or intrinsics[2].tolist() != [0.0, 0.0, 1.0]:
            form = "[[fx, s, cx], [0, fy, cy], [0, 0, 1]]"
            raise ValueError(f"`matrix` must be {form}, as in OpenCV, got {intrinsics.tolist()}")
        fisheye = check_bool(fisheye, "fisheye")
        numbers = np.zeros(0) if distortion is None else as_reals(distortion, "distortion", "(n,)").copy()
        allowed = _N_DISTORTION[fisheye]
        if numbers.size not in allowed or numbers.size != max(numbers.shape, default=0):
            words = ", ".join(map(str, allowed[:-1]))
            raise ValueError(f"`distortion` must hold {words} or {allowed[-1]} numbers, got shape {numbers.shape}")
        if not np.isfinite(numbers).all():
            raise ValueError(f"`distortion` must be finite, got {numbers.ravel().tolist()}")
        for array in (intrinsics, numbers):
            array.flags.writeable = False
        vars(self).update(matrix=intrinsics, distortion=numbers.reshape(-1), fisheye=fisheye)
        vars(self).update(_spherical=_spherical, _colmap=_colmap)

    def __repr__(self) -> str:
        kind = ", is_spherical=True" if self._spherical else "" if self._colmap is None else f", colmap={self._colmap}"
        return f"Camera(matrix={self.matrix!r}, distortion={self.distortion!r}, fisheye={self.fisheye}{kind})"

    @classmethod
    def from_focal_length(cls, focal_length: float | None, image_size: Any) -> Camera:
        """Return a camera without distortion, with its principal point in the middle of the image.

        Parameters
        ----------
        focal_length : float or None
            Pixels. None: 1.2 times the longer side, COLMAP's guess.
        image_size : sequence of two ints
            Width and height, pixels.
        """
        size = as_array(image_size, "image_size", "(2,)")
        if size.shape != (2,):
            raise ValueError(f"`image_size` must be (width, height), got shape {size.shape}")
        width, height = (check_int(each, "image_size") for each in size.tolist())
        if focal_length is None:
            focal_length = _GUESSED_FOCAL_LENGTH * max(width, height)
        f = check_real(focal_length, "focal_length")
        return cls(np.array([[f, 0.0, 0.5 * (width - 1)], [0.0, f, 0.5 * (height - 1)], [0.0, 0.0, 1.0]]))

    @classmethod
    def equirectangular(cls, width: int) -> Camera:
        """Return the camera of a 360 degree image whose columns are longitudes and whose rows are latitudes.

        The middle of the image looks along z, with x to the right and y down. Points are pixels (n, 2) or rays (n, 3).

        Parameters
        ----------
        width : int
            Width of the image, 360 degrees, in pixels; the height is half of it.
        """
        width = check_int(width, "width", at_least=4)
        f = width / (2.0 * np.pi)
        matrix = np.array([[f, 0.0, 0.5 * (width - 1)], [0.0, f, 0.5 * (0.5 * width - 1)], [0.0, 0.0, 1.0]])
        return cls(matrix, _spherical=True)

    @classmethod
    def from_rays(cls, pixel: float) -> Camera:
        """Return a camera whose points are rays (n, 3) of any positive length; `pixel` is the size of a pixel in radians."""
        # The matrix of a smaller pixel has no inverse in doubles.
        f = 1.0 / check_real(pixel, "pixel", above=1e-15, below=1.0)
        return cls(np.diag([f, f, 1.0]), _spherical=True)

    @classmethod
    def from_colmap(cls, camera: Any) -> Camera:
        """Return the camera of a `pycolmap.Camera`, of any of its models.

        Its points are in COLMAP's convention: the middle of the first pixel is (0.5, 0.5), not (0, 0) as in OpenCV.
        """
        model, parameters = camera.model.name, np.asarray(camera.params, np.float64)
        if model == "EQUIRECTANGULAR":
            wide, high = 0.5 * camera.width, 0.5 * camera.height
            matrix = np.array([[wide / np.pi, 0.0, wide], [0.0, 2.0 * high / np.pi, high], [0.0, 0.0, 1.0]])
            return cls(matrix, _spherical=True)
        matrix = np.asarray(camera.calibration_matrix())
        n = _COLMAP.get(model.removesuffix("_FISHEYE"))
        if n is None:
            return cls(matrix, _colmap=camera)
        distortion = np.zeros(max(n, 4))
        distortion[:n] = parameters[len(parameters) - n :]
        return cls(matrix, distortion if n > 0 else None, model.endswith("FISHEYE"))

    @classmethod
    def of(cls, value: Any, name: str = "camera") -> Camera:
        """Return a camera from a Camera, a `pycolmap.Camera`, a matrix (3, 3), or (matrix, distortion)."""
        if isinstance(value, Camera):
            return value
        try:
            if hasattr(value, "model") and hasattr(value, "params"):
                return cls.from_colmap(value)
            if isinstance(value, (tuple, list)) and len(value) == 2:
                return cls(*value)
            return cls(value)
        except (TypeError, ValueError) as error:
            raise type(error)(f"`{name}` is no camera: {error}") from None

    @property
    def is_spherical(self) -> bool:
        """Whether its points are longitudes and latitudes, or rays."""
        return self._spherical

    @property
    def is_pinhole(self) -> bool:
        """Whether straight lines stay straight in its images: it has no distortion and is no fisheye or 360 degree camera."""
        return not (self.distortion.any() or self.is_wide)

    @property
    def is_wide(self) -> bool:
        """Whether it may see 180 degrees and more: a fisheye, a 360 degree camera or a lens of pycolmap's other models."""
        return self.fisheye or self._spherical or self._colmap is not None

    def rays(self, points: Any) -> Array:
        """Return the unit rays (n, 3) of pixels (n, 2); NaN if a point has no ray, for example beyond the valid radius."""
        return self._rays(as_points(points, "points"))

    def _rays(self, pixels: Array) -> Array:
        if self._colmap is not None:
            return _of_length_one(_homogeneous(self._colmap.cam_from_img(pixels)))
        with np.errstate(all="ignore"):
            plane = (pixels - self.matrix[:2, 2]) @ np.linalg.inv(self.matrix[:2, :2]).T
            if self._spherical:
                longitude, latitude = np.where(np.abs(plane) > [np.pi, 0.5 * np.pi + 1e-9], np.nan, plane).T
                level = np.cos(latitude)
                return np.column_stack([level * np.sin(longitude), np.sin(latitude), level * np.cos(longitude)])
            if self.fisheye:
                distorted = np.linalg.norm(plane, axis=1)
                theta = self._undistorted_angles(distorted)
                across = plane * (np.sin(theta) / np.maximum(distorted, 1e-300))[:, None]
                return np.column_stack([across, np.cos(theta)])
            return _of_length_one(_homogeneous(self._undistorted(plane)))

    def pixels(self, rays: Any) -> Array:
        """Return the pixels (n, 2) of rays (n, 3) of any length; NaN if a ray has no pixel, for example behind a pinhole camera."""
        return self._pixels(as_rays(rays, "rays"))

    def _pixels(self, rays: Array) -> Array:
        x, y, z = rays.T
        if self._colmap is not None:
            pixels = np.full((len(rays), 2), np.nan)
            pixels[z > 0.0] = self._colmap.img_from_cam(np.ascontiguousarray(rays[z > 0.0]))
            return pixels
        across = np.hypot(x, y)
        with np.errstate(all="ignore"):
            if self._spherical:
                plane = np.column_stack([np.arctan2(x, z), np.arctan2(y, np.hypot(x, z))])
            elif self.fisheye:
                distorted, _ = self._distorted_angles(np.arctan2(across, z))
                plane = rays[:, :2] * (distorted / np.maximum(across, 1e-300))[:, None]
            else:
                plane, slopes = self._jacobian(rays[:, :2] / np.where(z > 0.0, z, np.nan)[:, None])
                # Beyond the fold of a distortion the image comes back.
                plane[~((np.linalg.det(slopes) > 0.0) & (np.trace(slopes, axis1=1, axis2=2) > 0.0))] = np.nan
            return np.asarray(plane @ self.matrix[:2, :2].T + self.matrix[:2, 2])

    def _pixels_per_radian(self, rays: Array) -> Array:
        """Return pixels per radian (n,) at unit rays (n, 3): the square root of pixels per solid angle."""
        area = self.matrix[0, 0] * self.matrix[1, 1]
        across, z = np.hypot(rays[:, 0], rays[:, 1]), rays[:, 2]
        if self._spherical:  # the same all over: what stretches near the poles is no detail
            return np.full(len(rays), np.sqrt(area))
        with np.errstate(all="ignore"):
            if self._colmap is not None:
                return self._numeric_pixels_per_radian(rays)
            if self.fisheye:
                theta = np.arctan2(across, z)
                distorted, slope = self._distorted_angles(theta)
                ratio = np.where(across > 1e-12, distorted / np.maximum(np.sin(theta), 1e-12), 1.0)
                return np.asarray(np.sqrt(area * ratio * slope))
            is_straight = not self.distortion.any()
            determinants = 1.0 if is_straight else np.linalg.det(self._jacobian(rays[:, :2] / z[:, None])[1])
            return np.asarray(np.sqrt(area * determinants * (1.0 + (across / z) ** 2) ** 1.5))

    def _numeric_pixels_per_radian(self, rays: Array) -> Array:
        axis = np.eye(3)[np.abs(rays).argmin(axis=1)]
        one = _of_length_one(np.cross(rays, axis))
        other = np.cross(rays, one)
        first, second = (
            (self.pixels(rays + _DELTA * step) - self.pixels(rays - _DELTA * step)) / (2.0 * _DELTA)
            for step in (one, other)
        )
        return np.asarray(np.sqrt(np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0])))

    def _jacobian(self, plane: Array) -> tuple[Array, Array]:
        """Return distorted plane coordinates (n, 2) and their derivatives (n, 2, 2)."""
        if not self.distortion.any():
            return plane, np.tile(np.eye(2), (len(plane), 1, 1))
        distorted, slopes = np.empty_like(plane), np.empty((len(plane), 2, 2))
        distort(np.ascontiguousarray(plane), *self._lens(), distorted, slopes)
        return distorted, slopes

    def _undistorted(self, plane: Array) -> Array:
        """Return plane coordinates without distortion, NaN if there are none."""
        if not self.distortion.any():
            return plane
        (numbers, tilt), undistorted = self._lens(), np.empty_like(plane)
        level = np.linalg.inv(tilt.reshape(3, 3)).ravel()
        undistort(np.ascontiguousarray(plane), numbers, tilt, level, _STEPS, _EXACT, _LARGEST_ERROR, undistorted)
        return undistorted

    def _lens(self) -> tuple[Array, Array]:
        """Return twelve numbers of distortion, and the homography (9,) of a sensor tilted by two more."""
        numbers = np.zeros(14)
        numbers[: len(self.distortion)] = self.distortion
        (cos_x, cos_y), (sin_x, sin_y) = np.cos(numbers[12:]), np.sin(numbers[12:])
        about_x = np.array([[1.0, 0.0, 0.0], [0.0, cos_x, sin_x], [0.0, -sin_x, cos_x]])
        turned = np.array([[cos_y, 0.0, -sin_y], [0.0, 1.0, 0.0], [sin_y, 0.0, cos_y]]) @ about_x
        x, y, z = turned[:, 2]
        return numbers[:12].copy(), (np.array([[z, 0.0, -x], [0.0, z, -y], [0.0, 0.0, 1.0]]) @ turned).ravel()

    def _distorted_angles(self, theta: Array) -> tuple[Array, Array]:
        """Return theta_d = theta (1 + k1 theta^2 + ...) of a fisheye, and its derivative."""
        k, squared = (*self.distortion, 0.0, 0.0, 0.0, 0.0)[:4], theta * theta
        series, slope = np.ones_like(theta), np.ones_like(theta)
        power = np.ones_like(theta)
        for order, factor in enumerate(k, 1):
            power = power * squared
            series, slope = series + factor * power, slope + (2 * order + 1) * factor * power
        return theta * series, slope

    def _undistorted_angles(self, distorted: Array) -> Array:
        """Return theta of theta_d, NaN if there is none between 0 and 180 degrees."""
        theta = np.minimum(distorted, np.pi)
        for _ in range(_STEPS):
            angles, slope = self._distorted_angles(theta)
            theta = np.clip(theta - (angles - distorted) / np.maximum(slope, 1e-3), 0.0, np.pi)
        angles, slope = self._distorted_angles(theta)
        return np.where((np.abs(angles - distorted) < _LARGEST_ERROR) & (slope > 0.0), theta, np.nan)


def sight_of(points1: Array, points2: Array, cameras: Cameras, largest: float = LARGEST_COORDINATE) -> Sight:
    """Return what cameras add to points (n, 2). An unknown one is taken for a pinhole as wide as its points, see `as_wide_as`."""
    rays, into = [], []
    for number, (camera, points) in enumerate(zip(cameras, (points1, points2), strict=True), 1):
        known = as_wide_as(points, largest) if camera is None else camera
        directions = known._rays(points)
        _check_folds(directions, points, f"points{number}")
        with np.errstate(all="ignore"):
            rays.append(directions * known._pixels_per_radian(directions)[:, None])
        into.append(np.eye(3) if known.is_spherical else np.asarray(np.linalg.inv(known.matrix), np.float64))
    return Sight(rays[0], rays[1], into[0], into[1], None not in cameras)


def as_cameras(value: Any) -> Cameras:
    """Return two cameras, None for the one of them that is not known; what is not a pair is the camera of both images."""
    is_pair = isinstance(value, (tuple, list)) and (
        len(value) != 3 or as_array(value[0], "cameras[0]", "(3,)").ndim != 1
    )
    if is_pair and len(value) != 2:
        raise ValueError(f"`cameras` must be a camera, or a pair with one for each image, got {len(value)}")
    if not is_pair:
        return (Camera.of(value, "cameras"),) * 2
    if [len(getattr(each, "shape", ())) for each in value] == [2, 1]:
        raise ValueError(
            "`cameras` must be a camera, or a pair with one for each image, got a matrix and its distortion: "
            "give `Camera(matrix, distortion)`, the camera of both images"
        )
    first, second = (None if each is None else Camera.of(each, f"cameras[{at}]") for at, each in enumerate(value))
    if first is None and second is None:
        raise ValueError("`cameras` must hold a camera, got None for both images")
    return first, second


def as_both_cameras(camera1: Any, camera2: Any) -> tuple[Camera, Camera]:
    """Return two cameras of which the first has to be given; it is the second one's too if that is None."""
    first = Camera.of(camera1, "camera1")
    return first, first if camera2 is None else Camera.of(camera2, "camera2")


def as_wide_as(points: Array, largest: float) -> Camera:
    """Return a pinhole whose image just holds the points (n, 2) of coordinates below `largest`, of COLMAP's guess of a focal length."""
    given = points[(np.abs(points) < largest).all(axis=1)]
    low, high = (given.min(axis=0), given.max(axis=0)) if len(given) > 0 else (np.zeros(2), np.ones(2))
    x, y = np.clip(0.5 * (low + high), -LARGEST_COORDINATE, LARGEST_COORDINATE)
    least = max(_LEAST_WIDTH * max(abs(x), abs(y)), 1e-12)
    f = _GUESSED_FOCAL_LENGTH * np.clip(float((high - low).max()) or 1.0, least, LARGEST_COORDINATE)
    return Camera(np.array([[f, 0.0, x], [0.0, f, y], [0.0, 0.0, 1.0]]))


def as_seen(value: Any, camera: Camera | None, name: str) -> Any:
    """Return rays (n, 3) as pixels of a 360 degree camera, and anything else as it is."""
    if camera is None or not camera.is_spherical:
        return value
    array = as_array(value, name, "(n, 2) or (n, 3)")
    return camera._pixels(as_rays(array, name)) if array.ndim == 2 and array.shape[1] == 3 else value


def _check_folds(rays: Array, points: Array, name: str) -> None:
    """Raise if most points have no ray: single ones beyond the fold of a distortion are rows without a match."""
    given = np.isfinite(points).all(axis=1)
    n_without = int(np.count_nonzero(given & np.isnan(rays).any(axis=1)))
    if 2 * n_without > given.sum():
        raise ValueError(
            f"`cameras` must see `{name}`, got a camera that has no ray for {n_without} of {int(given.sum())} points: its distortion "
            "folds, or belongs to another image"
        )


def as_rays(value: Any, name: str) -> Array:
    """Return directions (n, 3) as unit rays; NaN may stay."""
    rays = as_reals(value, name, "(n, 3)")
    if rays.ndim != 2 or rays.shape[1] != 3:
        raise ValueError(f"`{name}` must have shape (n, 3), got {rays.shape}")
    empty = ~rays.any(axis=1)
    if empty.any():
        row = int(np.argmax(empty))
        raise ValueError(f"`{name}` must be rays of a length above 0, got {rays[row]} in row {row}")
    return _of_length_one(rays)


def _homogeneous(plane: Array) -> Array:
    return np.column_stack([plane, np.ones(len(plane))])


def _of_length_one(rays: Array) -> Array:
    with np.errstate(all="ignore"):
        scaled = rays / np.abs(rays).max(axis=1, keepdims=True)  # their squares do not overflow
        return np.asarray(scaled / np.linalg.norm(scaled, axis=1, keepdims=True))
