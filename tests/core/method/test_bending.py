"""Lens distortion of points that were not undistorted."""

import cv2
import numpy as np
import pytest

from ruzhash_cv import filter_points
from ruzhash_cv.core.method import estimate
from ruzhash_cv.core.method.bending import STRAIGHT

SIZE = np.array([1280.0, 960.0])


def through_a_fisheye(degrees: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 300 matches of points around a camera that moved, seen under up to so many degrees, 150 mismatches, and which are true."""
    rng, half = np.random.default_rng(seed), np.radians(0.5 * degrees)

    def seen(points: np.ndarray) -> np.ndarray:
        radius = np.linalg.norm(points[:, :2], axis=1, keepdims=True)
        angles = np.arctan2(radius, points[:, 2:])
        return 0.5 * SIZE + 0.5 * SIZE[1] / half * angles / radius * points[:, :2]

    away, around = half * np.sqrt(rng.uniform(0.0, 1.0, 300)), rng.uniform(0.0, 2.0 * np.pi, 300)
    rays = np.column_stack([np.sin(away) * np.cos(around), np.sin(away) * np.sin(around), np.cos(away)])
    points, step = rays * rng.uniform(3.0, 10.0, (300, 1)), rng.normal(0.0, 1.0, 3)
    turn = cv2.Rodrigues(rng.normal(0.0, 0.1, 3))[0]
    both = seen(points), seen(points @ turn.T + 0.7 * step / np.linalg.norm(step))
    first, second = (
        np.vstack([view + rng.normal(0.0, 0.3, (300, 2)), rng.uniform([160.0, 0.0], [1120.0, 960.0], (150, 2))])
        for view in both
    )
    return first, second, np.arange(450) < 300


@pytest.mark.parametrize("model", ["auto", "fundamental"])
def test_a_fisheye_without_calibration_keeps_its_rim(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of some scenes the first matrix holds the middle alone, and nothing is straightened."""

    def recalls() -> list[float]:
        found = []
        for seed in range(8):
            first, second, true = through_a_fisheye(110.0, seed)
            mask = filter_points(first, second, model=model, rng=seed).inlier_mask
            assert mask[~true].mean() < 0.1
            found.append(mask[true].mean())
        return found

    straightened = recalls()
    monkeypatch.setattr(estimate, "lens_of_motion", lambda family, matrix, *_: (STRAIGHT, matrix))
    bent = recalls()
    assert np.median(straightened) > 0.99
    assert np.mean(straightened) > np.mean(bent) + 0.03
