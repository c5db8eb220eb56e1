"""glue-factory's robust estimators of a homography and of a relative pose."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from gluefactory import robust_estimators
from gluefactory.geometry.wrappers import Pose
from gluefactory.robust_estimators.base_estimator import BaseEstimator

from ruzhash_cv._arrays import Array
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.opencv import find_homography


class HomographyEstimator(BaseEstimator):  # type: ignore[misc]
    """One homography of ``m_kpts0`` and ``m_kpts1``, by `find_homography`; ``ransac_th`` is its threshold in pixels.

    glue-factory finds estimators by the names of modules in its own folders. So either call `register`, or put a file there, as
    ``gluefactory/robust_estimators/homography/ruzhash.py``, that holds ``class RuzHash(HomographyEstimator): pass``.
    """

    default_conf: ClassVar[dict[str, Any]] = {"ransac_th": 3.0, "options": {"rng": 0}}
    required_data_keys: ClassVar[list[str]] = ["m_kpts0", "m_kpts1"]

    def _init(self, conf: Any) -> None:
        """There is nothing to prepare."""

    def _forward(self, data: dict[str, Any]) -> dict[str, Any]:
        points1, points2 = data["m_kpts0"], data["m_kpts1"]
        model, mask = find_homography(points1, points2, threshold=self.conf.ransac_th, rng=self.conf.options.rng)
        matrix = torch.eye(3) if model is None else torch.from_numpy(model)
        inliers = torch.from_numpy(mask[:, 0] > 0).to(points1.device)
        return {"success": model is not None, "M_0to1": matrix.to(points1), "inliers": inliers}


class RelativePoseEstimator(BaseEstimator):  # type: ignore[misc]
    """The pose of the strongest motion, by `filter_points` with cameras and `FilterResult.camera_pose`.

    It finds its tolerances itself, so ``ransac_th`` changes nothing. Put it where `HomographyEstimator` says, in the folder
    ``relative_pose``.
    """

    default_conf: ClassVar[dict[str, Any]] = {"ransac_th": 1.0, "options": {"rng": 0}}
    required_data_keys: ClassVar[list[str]] = ["m_kpts0", "m_kpts1", "camera0", "camera1"]

    def _init(self, conf: Any) -> None:
        """There is nothing to prepare."""

    def _forward(self, data: dict[str, Any]) -> dict[str, Any]:
        points1, points2 = data["m_kpts0"], data["m_kpts1"]
        cameras = _as_camera(data["camera0"]), _as_camera(data["camera1"])
        result = filter_points(points1, points2, cameras=cameras, rng=self.conf.options.rng)
        success = len(result.motions) > 0
        rotation, translation, inliers = np.eye(3), np.zeros(3), result.inlier_mask
        if success:
            pose = result.camera_pose()
            rotation, translation, inliers = pose.rotation, pose.translation, pose.inliers
        found = Pose.from_Rt(torch.from_numpy(rotation), torch.from_numpy(translation)).to(points1)
        return {"success": success, "M_0to1": found, "inliers": torch.from_numpy(inliers).to(points1.device)}


def register(name: str = "ruzhash") -> None:
    """Let glue-factory find both estimators under a name, as in ``eval.estimator=ruzhash``."""
    for kind, base in (("homography", HomographyEstimator), ("relative_pose", RelativePoseEstimator)):
        path = f"{robust_estimators.__name__}.{kind}.{name}"
        module = ModuleType(path)
        module.RuzHash = type("RuzHash", (base,), {"__module__": path})  # type: ignore[attr-defined]
        sys.modules[path] = module


def _as_camera(camera: Any) -> tuple[Array, Array]:
    """Return a camera's matrix (3, 3) and its distortion: none, k1 and k2, or k1, k2, p1 and p2, as OpenCV has them."""
    (fx, fy), (cx, cy) = (each.detach().cpu().numpy().astype(np.float64) for each in (camera.f, camera.c))
    distortion = camera.dist.detach().cpu().numpy().astype(np.float64)
    return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]]), np.pad(distortion, (0, -len(distortion) % 4))
