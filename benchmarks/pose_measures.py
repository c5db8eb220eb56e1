"""How far a camera pose or a model is from the truth, and the ways to a pose: from a mask, or from a fundamental matrix."""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from estimators import Mask, poselib
from geometry import Matrix, Points, residuals
from numpy.typing import NDArray
from pose_scenes import SIZE, Pair

Pose: TypeAlias = tuple[Matrix, NDArray[np.float64]] | None
THRESHOLDS = (5.0, 10.0, 20.0)  # degrees
FAR = 1e6  # baselines; OpenCV takes no point beyond 50 for one before the camera unless told


def rotation_angle(R: Matrix, true: Matrix) -> float:
    """Angle between two rotations, degrees."""
    # The arcus cosine of the trace alone loses half of the digits near 0.
    sine = np.linalg.norm(R - true) / np.sqrt(8)
    return float(np.degrees(2 * np.arcsin(min(1.0, sine))))


def direction_angle(t: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Angle between two directions, degrees, from 0 to 180; the sign counts, as the points tell it."""
    t, true = (np.ravel(v) / np.linalg.norm(v) for v in (t, true))
    return float(np.degrees(2 * np.arctan2(np.linalg.norm(t - true), np.linalg.norm(t + true))))


def pose_error(pose: Pose, pair: Pair) -> float:
    """The larger of both angles in degrees, that of the rotation where the camera stood still; 180 without a pose."""
    if pose is None or not all(np.isfinite(part).all() for part in pose):
        return 180.0
    error = rotation_angle(pose[0], pair.R)
    if not pair.t.any():
        return error
    return max(error, direction_angle(pose[1], pair.t)) if np.any(pose[1]) else 180.0


def pose_score(errors: NDArray[np.float64], threshold: float) -> NDArray[np.float64]:
    """What each pair adds to the AUC@threshold, in [0, 1]: its mean is the area under the recall's curve up to there."""
    return np.clip(1 - np.asarray(errors) / threshold, 0, 1)


def normalised(points: Points, K: Matrix) -> Points:
    """Image coordinates of a camera of focal length 1."""
    return np.ascontiguousarray((points - K[:2, 2]) / K[[0, 1], [0, 1]])


def focal(pair: Pair) -> float:
    """Mean focal length of both cameras, pixels."""
    return float(np.mean([pair.K1[0, 0], pair.K2[0, 0]]))


def poselib_pose(pair: Pair, kept: Mask, seed: int) -> Pose:
    """PoseLib's calibrated estimate at 1 px from the kept matches."""
    if kept.sum() < 5:
        return None
    cameras = [
        {
            "model": "PINHOLE",
            "width": int(SIZE[0]),
            "height": int(SIZE[1]),
            "params": [K[0, 0], K[1, 1], K[0, 2], K[1, 2]],
        }
        for K in (pair.K1, pair.K2)
    ]
    options = {"max_epipolar_error": 1.0, "seed": seed}
    pose, _ = poselib.estimate_relative_pose(pair.points1[kept], pair.points2[kept], *cameras, options)
    return pose.R, pose.t


def opencv_pose(pair: Pair, kept: Mask, seed: int) -> Pose:
    """OpenCV's `findEssentialMat` (RANSAC) at 1 px and `recoverPose` from the kept matches."""
    if kept.sum() < 5:
        return None
    cv2.setRNGSeed(seed)
    first, second = normalised(pair.points1[kept], pair.K1), normalised(pair.points2[kept], pair.K2)
    E, inliers = cv2.findEssentialMat(first, second, np.eye(3), cv2.RANSAC, 0.999, 1.0 / focal(pair))
    if E is None or E.shape != (3, 3):
        return None
    rows = inliers.ravel() > 0
    _, R, t, _, _ = cv2.recoverPose(E, first[rows], second[rows], np.eye(3), distanceThresh=FAR)
    return R, t.ravel()


def matrix_pose(F: Matrix | None, pair: Pair, kept: Mask) -> Pose:
    """The pose of a fundamental matrix with known cameras, the one of four that has the kept matches before both."""
    if F is None or not np.isfinite(F).all() or not kept.any():
        return None
    first, second = normalised(pair.points1[kept], pair.K1), normalised(pair.points2[kept], pair.K2)
    E = pair.K2.T @ F @ pair.K1
    _, R, t, _, _ = cv2.recoverPose(E / np.linalg.norm(E), first, second, np.eye(3), distanceThresh=FAR)
    return R, t.ravel()


def model_errors(kind: str, model: Matrix | None, exact1: Points, exact2: Points) -> NDArray[np.float64]:
    """Residuals in pixels of true matches free of noise; infinite without a model."""
    if model is None or not np.isfinite(model).all():
        return np.full(len(exact1), np.inf)
    return residuals(kind, model, exact1, exact2)
