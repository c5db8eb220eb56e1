"""Matches of one plane and of one motion, in pixels, exact or noisy."""

import numpy as np
from naive import apply
from numpy.typing import NDArray

Array = NDArray[np.float64]

H = np.array([[0.9, 0.1, 20], [-0.05, 1.1, 5], [1e-4, 2e-4, 1]])


def plane(n: int, noise: float = 0.0, seed: int = 0) -> Array:
    """Return matches (n, 4) that `H` maps."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0, 600, (n, 2))
    return np.hstack([points, apply(H, points)]) + noise * rng.normal(size=(n, 4))


def motion(n: int, noise: float = 0.0, seed: int = 0) -> Array:
    """Return matches (n, 4) of points in space seen from two places."""
    rng = np.random.default_rng(seed)
    points = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 6, n)])
    return np.hstack(views(points, points)) + noise * rng.normal(size=(n, 4))


#: Matches of one model, by the name of its family.
MAKE = {"homography": plane, "fundamental": motion}


def views(first: Array, second: Array) -> list[Array]:
    """Return pixels (n, 2) of points in space (n, 3) from each of two places."""
    turn = np.array([[np.cos(0.2), 0, np.sin(0.2)], [0, 1, 0], [-np.sin(0.2), 0, np.cos(0.2)]])
    return [900 * view[:, :2] / view[:, 2:] + [400, 300] for view in (first, second @ turn.T + [-0.8, 0.1, 0.2])]


def one_window_off(n_off: int = 110, seed: int = 0) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return matches of a wall and things before it, more of the wall that are one window off, mismatches, and which are true."""
    rng = np.random.default_rng(seed)
    wall = rng.uniform(-1, 1, (80 + n_off, 2))
    wall = np.column_stack([wall, 5 + 0.5 * wall[:, 0]])
    things = np.column_stack([rng.uniform(-1, 1, (60, 2)), rng.uniform(3, 4.2, 60)])
    points = np.vstack([wall[:80], things, wall[80:]])
    off = np.where(np.arange(140 + n_off) < 140, 0.0, 1.0)[:, None] * [0.0, 0.3, 0.0]
    points1, points2 = (np.vstack([view, rng.uniform(0, 700, (80, 2))]) for view in views(points, points + off))
    return points1, points2 + rng.normal(0, 0.5, points2.shape), np.arange(len(points1)) < 140


def random_homographies(rng: np.random.Generator, m: int) -> Array:
    """Return homographies (m, 3, 3) of pixels."""
    matrices = np.eye(3) + 0.2 * rng.normal(size=(m, 3, 3))
    matrices[:, :2, 2] *= 100
    matrices[:, 2, :2] *= 1e-3
    return matrices


def random_fundamental_matrices(rng: np.random.Generator, m: int) -> Array:
    """Return matrices (m, 3, 3) of rank 2."""
    u, s, v = np.linalg.svd(rng.normal(size=(m, 3, 3)))
    s[:, 2] = 0.0
    return (u * s[:, None]) @ v


def shifted_along_lines(seed: int, contested: bool) -> tuple[np.ndarray, np.ndarray]:
    """A plane of 100 matches, 110 off it in one direction, by whole periods if some compete, and 60 mismatches."""
    rng = np.random.default_rng(seed)
    points, steps = rng.uniform(0, 500, (210, 2)), rng.integers(1, 6, 110) if contested else rng.uniform(1, 6, 110)
    periods = steps * rng.choice([-25, 25], 110)
    points1 = points.copy()
    if contested:
        points[100:120] = points[:20]
    points1[100:] = points[100:] - np.stack([periods, np.zeros(110)], axis=1)
    points2 = points @ [[1.05, 0.1], [-0.05, 0.95]] + [20, 10] + rng.normal(0, 1.0, points.shape)
    if contested:
        points2[100:120] = points2[:20]
    wrong1, wrong2 = rng.uniform(0, 500, (2, 60, 2))
    return np.vstack([points1, wrong1]), np.vstack([points2, wrong2])


def two_planes(apart: bool, n_contested: int = 0) -> tuple[Array, NDArray[np.bool_]]:
    """Return matches of two planes beside each other, or of one and some of its own a period off, and which are the weaker one's.

    Of 200 matches 60 are the weaker one's; 40 mismatches come last. `n_contested` of the stronger one end at second points of these.
    """
    rng = np.random.default_rng(5)
    points1 = rng.uniform(0, 500, (240, 2))
    points2 = points1 * 1.1 + 20.0 + rng.normal(0, 0.3, points1.shape)
    weaker = points1[:200, 0] < np.sort(points1[:200, 0])[60] if apart else np.arange(200) < 60
    points2[:200][weaker] += [70.0, 0.0]
    points2[200:] = rng.uniform(0, 550, (40, 2))
    taken, rivals = np.flatnonzero(weaker)[:n_contested], np.flatnonzero(~weaker)[:n_contested]
    points2[rivals], points1[rivals] = points2[taken], (points2[taken] - 20.0) / 1.1
    return np.hstack([points1, points2]), np.append(weaker, np.zeros(40, bool))


def beside(step: float, slope: float, seed: int, noise: float = 0.5) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return pixels of 200 matches of two planes and 60 mismatches, and which are the right one's, a step nearer and sloping."""
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 600, (260, 2))
    right = points1[:200, 0] > 300
    points2 = 1.05 * points1 + 10.0
    points2[:200][right] += [step, 0.0] + slope * (points1[:200][right] - 300.0)
    points2 += rng.normal(0, noise, points2.shape)
    points2[200:] = rng.uniform(0, 600, (60, 2))
    return points1, points2, right


def strips(width: int, shift: list[int], n_contested: int = 0) -> tuple[Array, NDArray[np.bool_]]:
    """Return 300 matches of two planes in strips, some of which compete, and 100 mismatches, and which are in odd strips."""
    rng = np.random.default_rng(0)
    first = rng.uniform(0, [640, 480], (400, 2))
    odd = first[:, 1] // width % 2 == 1
    second = first * 1.05 + [20, 10] + odd[:, None] * shift + rng.normal(0, 0.5, first.shape)
    taken, rivals = np.flatnonzero(odd[:300])[:n_contested], np.flatnonzero(~odd[:300])[:n_contested]
    second[rivals], first[rivals] = second[taken], (second[taken] - [20, 10]) / 1.05
    second[300:] = rng.uniform(0, [640, 480], (100, 2))
    return np.hstack([first, second]), odd


def copies_of_one(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return matches of an image of a label to an image with n copies, and the copy of each match; n for mismatches."""
    rng = np.random.default_rng(seed)
    label, columns, copies = rng.uniform(0, 300, (120, 2)), int(np.ceil(np.sqrt(n))), np.repeat(np.arange(n + 1), 40)
    rows = np.concatenate([rng.choice(120, 40, replace=False) for _ in range(n + 1)])
    scale, angle = rng.uniform(0.45, 0.55, n + 1), np.radians(rng.uniform(-8, 8, n + 1))
    turns = (scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])).transpose(2, 0, 1)
    places = 200.0 * np.column_stack(np.divmod(copies, columns))
    points2 = places + np.einsum("nij,nj->ni", turns[copies], label[rows] - 150.0) + rng.normal(0, 0.6, (len(rows), 2))
    points2[copies == n] = rng.uniform(-100, 200 * columns - 100, (40, 2))
    return label[rows], points2, copies
