"""The four poses of essential matrices beside those by singular vectors, and costs beside depths of triangulated points."""

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


def test_costs_are_those_of_rows_in_front_of_both_cameras_of_each_pose() -> None:
    reaches = np.array([3.0, 1.0, 1.0 / 3.0])
    for seed in range(5):
        data, weights, squared, essentials = drawn(40, seed)
        rotations, translations, costs = placed(essentials, data, weights, squared, reaches)
        for item, essential in enumerate(essentials):
            bounded = np.minimum(squared[item] / reaches[:, None] ** 2, 1.0).sum(axis=0)
            for pose, (rotation, translation) in enumerate(poses_of(essential)):
                mine = [
                    (turn, sign)
                    for turn in range(2)
                    for sign in range(2)
                    if np.allclose(rotations[item, turn], rotation, atol=1e-9)
                    and np.allclose((1 - 2 * sign) * translations[item], translation, atol=1e-9)
                ]
                assert len(mine) == 1, pose
                before = in_front(rotation, translation, data[:, 4:7], data[:, 7:10])
                np.testing.assert_allclose(costs[item][mine[0]], weights @ np.where(before, bounded, 3.0), rtol=1e-12)


def test_of_no_matrix_and_of_no_rows_there_are_no_costs() -> None:
    data, weights, squared, essentials = drawn(10, 0)
    reaches = np.ones(1)
    assert placed(essentials[:0], data, weights, squared[:0], reaches)[2].shape == (0, 2, 2)
    assert not placed(essentials, data[:0], weights[:0], squared[:, :0], reaches)[2].any()
