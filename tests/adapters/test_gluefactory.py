"""Found and called as glue-factory finds and calls its robust estimators."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from posed_views import CAMERA1, CAMERA2, FLOOR, POSE, WALL, angles, on_plane, seen
from two_views import plane

pytest.importorskip("torch")
pytest.importorskip("omegaconf")

import torch
from gluefactory.geometry.wrappers import Camera, Pose
from gluefactory.robust_estimators import load_estimator

from ruzhash_cv.adapters import gluefactory

DISTORTION = np.array([-0.2, 0.05, 0.001, -0.0005])


def as_camera(matrix: np.ndarray, distortion: np.ndarray) -> Camera:
    numbers = [640.0, 480.0, matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2], *distortion]
    return Camera(torch.tensor(numbers, dtype=torch.float32))


def posed(distortion: np.ndarray) -> dict[str, Any]:
    """Return matches of a room seen by two cameras, 40 mismatches after them, and the cameras."""
    rng = np.random.default_rng(0)
    points = np.vstack([on_plane(WALL, 100, rng), on_plane(FLOOR, 100, rng), on_plane(WALL, 60, rng, 0.4, 0.9)])
    found: dict[str, Any] = {}
    for side, (matrix, pose) in enumerate(((CAMERA1, (np.eye(3), np.zeros(3))), (CAMERA2, POSE))):
        pixels = seen(points, matrix, *pose)
        if len(distortion):
            normalised = (pixels - matrix[:2, 2]) / matrix[[0, 1], [0, 1]]
            rays = np.column_stack([normalised, np.ones(len(pixels))])
            full = np.pad(distortion, (0, 4 - len(distortion)))
            pixels = cv2.projectPoints(rays, np.zeros(3), np.zeros(3), matrix, full)[0][:, 0]
        pixels = np.vstack([pixels + rng.normal(0, 0.5, pixels.shape), rng.uniform(0, 480, (40, 2))])
        found[f"m_kpts{side}"] = torch.from_numpy(pixels).float()
        found[f"camera{side}"] = as_camera(matrix, distortion)
    return found


@pytest.mark.parametrize("distortion", [DISTORTION[:0], DISTORTION[:2], DISTORTION])
def test_the_relative_pose_is_right_with_and_without_distortion(distortion: np.ndarray) -> None:
    gluefactory.register()
    estimator = load_estimator("relative_pose", "ruzhash")({"name": "ruzhash", "ransac_th": 1.0})
    data = posed(distortion)
    found = estimator(data)
    assert found["success"]
    assert isinstance(found["M_0to1"], Pose)
    assert found["M_0to1"].R.dtype == torch.float32
    assert max(angles((found["M_0to1"].R.double().numpy(), found["M_0to1"].t.double().numpy()), POSE)) < 1.5
    inliers = found["inliers"]
    assert (inliers.dtype, inliers.shape) == (torch.bool, (300,))
    assert inliers[:260].float().mean() > 0.95
    assert inliers[260:].float().mean() < 0.3


def test_the_homography_is_right() -> None:
    gluefactory.register("ours")
    estimator = load_estimator("homography", "ours")({"name": "ours", "ransac_th": 2.0})
    pairs = np.vstack([plane(60, 0.3), np.random.default_rng(0).uniform(0, 600, (30, 4))])
    data = {"m_kpts0": torch.from_numpy(pairs[:, :2]).float(), "m_kpts1": torch.from_numpy(pairs[:, 2:]).float()}
    found = estimator(data)
    assert found["success"]
    assert (found["M_0to1"].shape, found["M_0to1"].dtype) == ((3, 3), torch.float32)
    expected = cv2.findHomography(pairs[:60, :2], pairs[:60, 2:])[0]
    corners = np.array([[[100.0, 100.0], [500.0, 100.0], [500.0, 400.0]]])
    moved = [cv2.perspectiveTransform(corners, matrix) for matrix in (expected, found["M_0to1"].double().numpy())]
    assert np.abs(moved[0] - moved[1]).max() < 1.0
    assert found["inliers"][:60].float().mean() > 0.9
    assert found["inliers"].dtype == torch.bool


@pytest.mark.parametrize("n", [0, 3])
def test_without_a_model_success_is_false_and_the_matrix_is_the_identity(n: int) -> None:
    gluefactory.register()
    data = {name: values[:n] if name.startswith("m_") else values for name, values in posed(DISTORTION).items()}
    for kind in ("homography", "relative_pose"):
        found = load_estimator(kind, "ruzhash")({"name": "ruzhash"})(data)
        assert found["success"] is False
        matrix = found["M_0to1"] if kind == "homography" else found["M_0to1"].R
        assert torch.equal(matrix, torch.eye(3))
        assert found["inliers"].tolist() == [False] * n


def test_the_recipe_finds_a_pose(recipe: Any) -> None:
    data = posed(DISTORTION)
    held = {
        "points0": data["m_kpts0"],
        "points1": data["m_kpts1"],
        "camera0": data["camera0"],
        "camera1": data["camera1"],
    }
    held["load_estimator"] = load_estimator
    exec(recipe("adapters import gluefactory"), held)
    assert held["found"]["success"]
