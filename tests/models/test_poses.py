"""The best pose of essential matrices beside those by singular vectors, and depths of triangulated points."""

from __future__ import annotations

import cv2
import numpy as np

from ruzhash_cv.models.epipolar import as_essential
from ruzhash_cv.models.poses import placed

Array = np.ndarray


def poses_of(essential: Array) -> list[tuple[Array, Array]]:
    """The four poses of an essential matrix (Hartley and Zisserman, result 9.19)."""
    left, _, right = np.linalg.svd(essential.reshape(3, 3))
    left, right = left * np.sign(np.linalg.det(left)), right * np.sign(np.linalg.det(right))
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return [(left @ turn @ right, sign * left[:, 2]) for turn in (quarter, quarter.T) for sign in (1.0, -1.0)]


def in_front(rotation: Array, translation: Array, first: Array, second: Array) -> Array:
    """Whether depths along both rays, by least squares, are above 0."""
    depths = [
        np.linalg.lstsq(np.column_stack([rotation @ x1, -x2]), -translation, rcond=None)[0]
        for x1, x2 in zip(first, second, strict=True)
    ]
    return (np.array(depths) > 0.0).all(axis=1)


def drawn(n: int, seed: int) -> tuple[Array, ...]:
    """Rows with rays of any lengths, half of them wrong, weights, squared residuals, some infinite, and essential matrices (8, 9)."""
    rng = np.random.default_rng(seed)
    points, rotation = rng.normal(0.0, 4.0, (n, 3)), cv2.Rodrigues(rng.normal(0.0, 0.4, 3))[0]
    baseline = rng.normal(size=3)
    first, second = points * rng.uniform(0.1, 9.0, (n, 1)), points @ rotation.T + baseline
    second[::2] = rng.normal(size=second[::2].shape)
    essentials = np.cross(baseline, rotation.T).T.ravel() + 0.3 * rng.normal(size=(8, 9))
    squared = rng.exponential(2.0, (8, n)) * rng.choice([1.0, 0.0, np.inf, np.nan], (8, n), p=[0.7, 0.1, 0.1, 0.1])
    squared = np.fmin(squared, np.inf)
    return np.hstack([rng.random((n, 4)), first, second]), rng.random(n), squared, as_essential(essentials)


def test_the_pose_is_that_of_most_weight_in_front_of_both_cameras() -> None:
    for seed in range(10):
        data, weights, squared, essentials = drawn(40, seed)
        rotations, translations, before = placed(essentials, data, weights, squared, 2.0)
        gains = weights * np.maximum(0.0, 1.0 - squared / 4.0)
        for item, essential in enumerate(essentials):
            poses = poses_of(essential)
            masks = [in_front(*pose, data[:, 4:7], data[:, 7:10]) for pose in poses]
            best = int(np.argmax([mask @ gains[item] for mask in masks]))
            np.testing.assert_allclose(rotations[item], poses[best][0], atol=1e-9)
            np.testing.assert_allclose(translations[item], poses[best][1], atol=1e-9)
            np.testing.assert_array_equal(before[item], masks[best])


def test_without_matrices_or_rows_there_are_poses_of_none() -> None:
    data, weights, squared, essentials = drawn(10, 0)
    assert len(placed(essentials[:0], data, weights, squared[:0], 1.0)[0]) == 0
    rotations, _, before = placed(essentials, data[:0], weights[:0], squared[:, :0], 1.0)
    np.testing.assert_allclose(np.linalg.det(rotations), 1.0)
    assert before.shape == (8, 0)
