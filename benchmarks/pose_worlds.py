"""Rigid worlds of points and the ways a camera moves in them.

Camera 1 stands at the origin and looks along z, x to the right and y down, in metres.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from geometry import Matrix
from numpy.typing import NDArray


@dataclass(frozen=True)
class World:
    """Points (n, 3) in the first camera's frame, the plane of each (0: none), and two steps (2, 3) by which plane 1 repeats."""

    points: NDArray[np.float64]
    plane: NDArray[np.intp]
    steps: NDArray[np.float64]


def patch(corner: object, edge1: object, edge2: object, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Points all over a parallelogram."""
    places = rng.random((count, 2))
    return np.asarray(corner) + places[:, :1] * np.asarray(edge1) + places[:, 1:] * np.asarray(edge2)


def facade(rng: np.random.Generator) -> World:
    """A wall of one window over and over, reveals and balconies off it, the ground and the side of the next house."""
    distance, yaw = rng.uniform(8, 14), np.radians(rng.uniform(-35, 35))
    along, out = np.array([np.cos(yaw), 0, np.sin(yaw)]), np.array([np.sin(yaw), 0, -np.cos(yaw)])
    step, storey = rng.uniform(1.4, 2.4), rng.uniform(2.2, 3.2)
    motif = rng.uniform(-0.4, 0.4, (12, 2)) * [step, storey]
    depth = np.where(rng.random(12) < 0.3, rng.uniform(-0.3, 0.8, 12), 0.0)
    i, j = (grid.ravel() for grid in np.mgrid[-9:10, -4:5])
    places = np.stack([i * step, j * storey], axis=1)[:, None] + motif
    wall = places[..., :1] * along + places[..., 1:] * np.array([0, 1.0, 0]) + depth[:, None] * out + [0, 0, distance]
    flat = np.tile(depth == 0, len(i))
    ground = patch([-12, 1.7, 2], [24, 0, 0], [0, 0, distance], 500, rng)
    side = patch(along * rng.choice([-4.0, 4.0]) + [0, -6, distance], out * 6, [0, 7, 0], 500, rng)
    points = np.vstack([wall.reshape(-1, 3), ground, side])
    plane = np.concatenate([np.where(flat, 1, 0), np.full(500, 2), np.full(500, 3)])
    return World(points, plane, np.array([along * step, [0, storey, 0]]))


def room(rng: np.random.Generator) -> World:
    """A room from inside: tiled back wall, two side walls, the floor, and some furniture."""
    w, d, h = rng.uniform(1.8, 3), rng.uniform(4, 7), rng.uniform(1.2, 1.6)
    n = 600
    parts = [
        patch([-w, -h, d], [2 * w, 0, 0], [0, 2 * h, 0], n, rng),
        patch([-w, h, 1], [2 * w, 0, 0], [0, 0, d], n, rng),
    ]
    parts += [patch([side * w, -h, 1.5], [0, 0, d - 1.5], [0, 2 * h, 0], n // 2, rng) for side in (-1, 1)]
    for _ in range(4):
        corner = rng.uniform([-w, 0.1 * h, 0.4 * d], [0.5 * w, 0.4 * h, 0.8 * d])
        wide, deep = rng.uniform(0.4, 1.2, 2)
        parts += [
            patch(corner, [wide, 0, 0], [0, 1, 0], n // 8, rng),
            patch(corner, [wide, 0, 0], [0, 0, deep], n // 8, rng),
        ]
    plane = np.repeat(np.arange(1, len(parts) + 1), [len(part) for part in parts])
    return World(np.vstack(parts), plane, np.array([[0.45, 0, 0], [0, 0.45, 0]]))


def objects(rng: np.random.Generator) -> World:
    """A table top that owns nearly all points, and a few things on it, which alone tell the motion from a homography."""
    tilt, distance, few = np.radians(rng.uniform(25, 65)), rng.uniform(1.2, 2.0), rng.uniform(0.05, 0.25)
    back = np.array([0, -np.sin(tilt), np.cos(tilt)])
    up = np.array([0, -np.cos(tilt), -np.sin(tilt)])
    middle = np.array([0, 0, distance])
    table = patch(middle - back - [1.4, 0, 0], [2.8, 0, 0], 2 * back, 2400, rng)
    things = []
    for _ in range(int(rng.integers(2, 6))):
        foot = middle + rng.uniform(-0.5, 0.5) * np.array([1, 0, 0]) + rng.uniform(-0.4, 0.4) * back
        places = rng.uniform([-0.12, -0.12, 0.02], [0.12, 0.12, 0.3], (300, 3))
        things.append(foot + places @ np.array([[1, 0, 0], back, up]))
    heap = rng.permutation(np.vstack(things))[: max(20, int(few * 1200))]
    plane = np.repeat([1, 0], [len(table), len(heap)])
    return World(np.vstack([table, heap]), plane, np.array([[0.25, 0, 0], 0.25 * back]))


def clutter(rng: np.random.Generator) -> World:
    """Sixty small facets at all depths, none of which dominates."""
    parts = []
    for _ in range(60):
        centre = rng.uniform(3, 9) * np.append(rng.uniform([-0.6, -0.45], [0.6, 0.45]), 1.0)
        edges = rng.normal(0, 0.35, (2, 3))
        parts.append(patch(centre - edges.sum(axis=0) / 2, edges[0], edges[1], 40, rng))
    return World(np.vstack(parts), np.repeat(np.arange(1, 61), 40), np.zeros((2, 3)))


WORLDS: dict[str, Callable[[np.random.Generator], World]] = {
    "facade": facade, "room": room, "objects": objects, "clutter": clutter,
}  # fmt: skip
MOTIONS = ("wide", "narrow", "forward", "rotation")
RIGID = tuple(WORLDS)


def turn(yaw: float, pitch: float, roll: float) -> Matrix:
    """Rotation by three angles in degrees, about y, x and z."""
    (a, b, c), (d, e, f) = np.cos(np.radians([yaw, pitch, roll])), np.sin(np.radians([yaw, pitch, roll]))
    about_y = np.array([[a, 0, d], [0, 1, 0], [-d, 0, a]])
    about_x = np.array([[1, 0, 0], [0, b, -e], [0, e, b]])
    return np.array([[c, -f, 0], [f, c, 0], [0, 0, 1]]) @ about_x @ about_y


def move(motion: str, depth: float, rng: np.random.Generator) -> tuple[Matrix, NDArray[np.float64]]:
    """R, t of the second camera; baselines are shares of the scene's median depth."""
    shake = turn(*rng.normal(0, [2, 2, 4]))
    if motion == "rotation":
        return turn(rng.choice([-1, 1]) * rng.uniform(6, 18), rng.uniform(-6, 6), rng.uniform(-6, 6)), np.zeros(3)
    if motion == "forward":
        centre = depth * rng.uniform(0.12, 0.3) * np.append(rng.normal(0, 0.1, 2), 1.0)
        return shake, -shake @ centre
    share = rng.uniform(0.2, 0.5) if motion == "wide" else rng.uniform(0.03, 0.08)
    centre = depth * share * np.array([rng.choice([-1, 1]), rng.uniform(-0.3, 0.3), rng.uniform(-0.2, 0.2)])
    R = shake @ turn(np.degrees(np.arctan2(centre[0], depth)), -np.degrees(np.arctan2(centre[1], depth)), 0)
    return R, -R @ centre
