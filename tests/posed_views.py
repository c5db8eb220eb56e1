"""Points in space seen by two cameras of known poses: on planes, off them, in motion by themselves."""

from typing import Any

import cv2
import numpy as np
from scipy.spatial.distance import cdist

from ruzhash_cv import CameraPose, FilterResult, filter_points

Array = np.ndarray
Pose = tuple[Array, Array]

CAMERA1 = np.array([[800.0, 0.0, 320.0], [0.0, 800.0, 240.0], [0.0, 0.0, 1.0]])
CAMERA2 = np.array([[900.0, 0.0, 300.0], [0.0, 900.0, 250.0], [0.0, 0.0, 1.0]])
#: Planes a X + b Y + c Z = d.
WALL, FLOOR, SIDE = (0.0, 0.0, 1.0, 7.0), (0.0, 1.0, 0.35, 4.0), (0.9, 0.1, 0.5, 4.5)


def turned(*angles: float) -> Array:
    return np.asarray(cv2.Rodrigues(np.array(angles))[0])


def towards(*direction: float) -> Array:
    return np.array(direction) / np.linalg.norm(direction)


POSE = turned(0.03, 0.12, -0.02), towards(0.9, 0.1, 0.2)
#: The pose of a camera that only turns.
TURN = turned(0.02, 0.1, 0.05), np.zeros(3)


def on_plane(plane: tuple[float, ...], n: int, rng: np.random.Generator, *depths: float) -> Array:
    """Points (n, 3) of a plane that the first camera sees, or at `depths`, from one to another, in shares of the plane's."""
    rays = np.column_stack([rng.uniform(-0.35, 0.35, (n, 2)), np.ones(n)])
    points = rays * (plane[3] / (rays @ np.array(plane[:3])))[:, None]
    return points * rng.uniform(*depths, (n, 1)) if depths else points


def things_before(plane: tuple[float, ...], n: int, rng: np.random.Generator, size: int = 5) -> Array:
    """Points (n, 3) of things of a few points each, at .5 to .9 of a plane's depth."""
    middles = np.column_stack([rng.uniform(-0.3, 0.3, (n // size, 2)), np.ones(n // size)])
    rays = middles.repeat(size, axis=0)
    rays[:, :2] += rng.uniform(-0.03, 0.03, (len(rays), 2))
    depths = rng.uniform(0.5, 0.9, n // size).repeat(size) + rng.uniform(-0.02, 0.02, len(rays))
    return rays * (depths * plane[3] / (rays @ np.array(plane[:3])))[:, None]


def seen(points: Array, camera: Array, rotation: Array, translation: Array) -> Array:
    moved = (points @ rotation.T + translation) @ camera.T
    return moved[:, :2] / moved[:, 2:]


def views(points: Array, pose: Pose = POSE, seed: int = 0, noise: float = 0.5) -> Pose:
    """Return noisy pixels of points in both cameras."""
    rng = np.random.default_rng(seed)
    first, second = seen(points, CAMERA1, np.eye(3), np.zeros(3)), seen(points, CAMERA2, *pose)
    return first + rng.normal(0, noise, first.shape), second + rng.normal(0, noise, second.shape)


def behind(back: Pose, front: Pose, reach: float = 25.0) -> Array:
    """Return which matches of what is opaque are seen: those that have none of the `front` within a reach, px, in both images."""
    return np.logical_and(*(cdist(one, other).min(axis=1) > reach for one, other in zip(back, front, strict=True)))


def filtered(*parts: tuple[Array, Array], n_mismatches: int = 60, seed: int = 0, **options: Any) -> FilterResult:
    """Return the result for matches and, after them, mismatches."""
    crowd = np.random.default_rng(seed).uniform(0, 600, (2, n_mismatches, 2))
    return filter_points(*(np.vstack([part[image] for part in (*parts, crowd)]) for image in (0, 1)), **options)


def angles(pose: Pose | CameraPose, truth: Pose) -> tuple[float, float]:
    """Return degrees between rotations and between translations, signs included."""
    rotation, translation = pose
    about = np.linalg.norm(cv2.Rodrigues(rotation @ truth[0].T)[0])
    return float(np.degrees(about)), float(np.degrees(np.arccos(np.clip(translation @ truth[1], -1, 1))))


def pose_error(result: FilterResult, truth: Pose = POSE, motion: int = 0) -> float:
    """Return the larger angle between the pose that a motion tells and the true one."""
    return max(angles(result.camera_pose(CAMERA1, CAMERA2, motion), truth))
