"""Camera pose of a rigid motion: from its matrix, its matches and the cameras' intrinsics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import scipy

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.families.distances import FAMILIES
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.sampling import SamplePlan, draw_samples

Pose = tuple[Array, Array]

#: Samples of five matches, which an essential matrix needs.
FIVE, N_FIVES = 5, 50
_SEED = 0
#: Points further than this, in baselines, do not count for OpenCV's choice among the four poses of an essential matrix.
FARTHEST = 1e9


@dataclass(frozen=True)
class Views:
    """Points (n, 2) of all matches in two images, weights (n,), the rows of the motion's `own` matches, and the camera matrices."""

    points1: Array
    points2: Array
    weights: Array
    own: Rows
    cameras: tuple[Array, Array]

    @cached_property
    def rays(self) -> tuple[Array, Array]:
        """Homogeneous points (n, 3) in units of the focal length."""
        first, second = (np.hstack([points, np.ones((len(points), 1))]) for points in (self.points1, self.points2))
        return first @ np.linalg.inv(self.cameras[0]).T, second @ np.linalg.inv(self.cameras[1]).T

    @cached_property
    def flat(self) -> tuple[Array, Array]:
        """Points (n, 2) in units of the focal length."""
        first, second = (np.ascontiguousarray(rays[:, :2] / rays[:, 2:]) for rays in self.rays)
        return first, second

    @property
    def own_flat(self) -> tuple[Array, Array]:
        """Those of the motion's own matches."""
        return self.flat[0][self.own], self.flat[1][self.own]


def camera_pose(models: dict[str, Array], views: Views, noise: float, parameters: Parameters) -> Pose:
    """Return rotation (3, 3) and unit translation (3,) of x2 ~ K2 (R X + t), from a motion's models and its matches.

    OpenCV takes them from the essential matrix, and from the homography of a plane, as few matches off it leave the matrix uncertain.
    And it solves samples of five of all matches, as a plane may have hidden the others. From each of these the Sampson distance is made
    least over the five numbers a pose has, with the Cauchy weights of the `noise` scale. The pose of least truncated squares (MSAC)
    among all matches, by their weights, is taken.
    """
    (camera1, camera2), (rays1, rays2) = views.cameras, views.rays
    # Normals of epipolar lines in pixels.
    into1, into2 = np.linalg.inv(camera1)[:2, :2], np.linalg.inv(camera2)[:2, :2]

    def distances(change: Array, rotation: Array, translation: Array, rows: Any) -> Array:
        turned, moved = _changed(change, rotation, translation)
        essential = np.cross(moved, turned.T).T
        lines1, lines2 = rays2[rows] @ essential, rays1[rows] @ essential.T
        squares = ((lines1[:, :2] @ into1) ** 2).sum(axis=1) + ((lines2[:, :2] @ into2) ** 2).sum(axis=1)
        return np.asarray((rays2[rows] * lines2).sum(axis=1) / np.sqrt(np.maximum(squares, 1e-300)))

    poses: list[Pose] = []
    for kind, matrix in models.items():
        start = _from_fundamental if kind == "fundamental" else _from_homography
        poses += start(matrix, views)
    scale = max(noise, 1e-3)
    limit = parameters.inlier_scales * scale
    poses += _from_samples_of_five(views, scale, limit, parameters)
    fitted = []
    for pose in poses:
        fit = scipy.optimize.least_squares(
            distances, np.zeros(5), loss="cauchy", f_scale=scale, max_nfev=30, args=(*pose, views.own)
        )
        fitted.append(_changed(fit.x, *pose))
    squares = [distances(np.zeros(5), *pose, slice(None)) ** 2 for pose in fitted]
    rotation, translation = fitted[int(np.argmin(np.minimum(squares, limit**2) @ views.weights))]
    # The distance is the same for the opposite translation.
    return _in_front(np.cross(translation, rotation.T).T, *views.own_flat)


def _from_fundamental(matrix: Array, views: Views) -> list[Pose]:
    essential = views.cameras[1].T @ matrix @ views.cameras[0]
    return [_in_front(essential / np.linalg.norm(essential), *views.own_flat)]


def _from_samples_of_five(views: Views, noise: float, limit: float, parameters: Parameters) -> list[Pose]:
    """Return the pose of the essential matrix that all correspondences agree with most, of those of samples of five."""
    points, rng = np.hstack([views.points1, views.points2]), np.random.default_rng(_SEED)
    plan = SamplePlan.uniform(FIVE, noise, parameters)
    samples = draw_samples(points, views.weights, N_FIVES, plan, rng).indices
    rays1, rays2 = views.flat
    solved = (cv2.findEssentialMat(rays1[rows], rays2[rows], np.eye(3))[0] for rows in samples)
    essentials = np.vstack([np.zeros((0, 3)), *(stack for stack in solved if stack is not None)]).reshape(-1, 3, 3)
    essentials = essentials[np.isfinite(essentials).all(axis=(1, 2))]
    if len(essentials) == 0:
        return []
    models = np.linalg.inv(views.cameras[1]).T @ essentials @ np.linalg.inv(views.cameras[0])
    squared = FAMILIES["fundamental"].squared_residuals(points, models.reshape(-1, 9))
    best = np.argmin(np.minimum(squared, limit**2) @ views.weights)
    return [_in_front(essentials[best], *views.own_flat)]


def _in_front(essential: Array, rays1: Array, rays2: Array) -> Pose:
    """Return the pose of an essential matrix that has most points in front of both cameras.

    Of a camera that did not move all points are infinitely far, on either side by rounding alone. Then it is the one of the two
    rotations, half a turn about the baseline apart, that leaves the cameras looking at the same points.
    """
    # Of a camera that hardly moves all points are far, and still tell which way it turned.
    n_in_front, rotation, translation, *_ = cv2.recoverPose(essential, rays1, rays2, np.eye(3), distanceThresh=FARTHEST)
    if 2 * n_in_front < len(rays1):
        first, second = (cv2.convertPointsToHomogeneous(rays)[:, 0] for rays in (rays1, rays2))
        lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
        half_turn = 2.0 * translation @ translation.T - np.eye(3)
        cosines = [((first @ each.T * second).sum(axis=1) / lengths).sum() for each in (rotation, half_turn @ rotation)]
        rotation = rotation if cosines[0] >= cosines[1] else half_turn @ rotation
    return np.asarray(rotation, np.float64), np.asarray(translation[:, 0], np.float64)


def _from_homography(matrix: Array, views: Views) -> list[Pose]:
    """Return the poses, two as a rule, of which the plane is in front of both cameras."""
    homography = np.linalg.inv(views.cameras[1]) @ matrix @ views.cameras[0]
    # Of either sign; the one that keeps points in front of the camera has a positive determinant.
    homography *= np.sign(np.linalg.det(homography))
    _, rotations, translations, normals = cv2.decomposeHomographyMat(homography, np.eye(3))
    single = (rays[:, None].astype(np.float32) for rays in views.own_flat)
    seen = cv2.filterHomographyDecompByVisibleRefpoints(rotations, normals, *single)
    chosen = range(len(rotations)) if seen is None else seen.ravel().astype(int).tolist()
    poses: list[Pose] = []
    for rotation, translation in ((np.asarray(rotations[i]), np.asarray(translations[i])[:, 0]) for i in chosen):
        size = np.linalg.norm(translation)
        poses.append((rotation, translation / size if size > 0.0 else np.eye(3)[0]))
    return poses


def _changed(change: Array, rotation: Array, translation: Array) -> Pose:
    """Return a pose turned by a rotation vector, the first three numbers, its translation moved along two directions across it."""
    moved = translation + change[3:] @ np.linalg.svd(translation[None])[2][1:]
    return cv2.Rodrigues(change[:3])[0] @ rotation, moved / np.linalg.norm(moved)
