"""Drawn things that move before a static background: planar things moved by hand in a room, and solids without planes.

A thing hides everything behind its outline in both images.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product

import cv2
import numpy as np
from adelaide import inside_hull
from geometry import Matrix, Points
from numpy.typing import NDArray
from pose_scenes import CLEAR, SIZE, camera_matrix, project, wrong_places
from pose_worlds import World, clutter, move, room
from problems import Problem, first_seed

RATES = (0.1, 0.3, 0.5)  # mismatches among all matches
DEPTH = (0.42, 0.55)  # of a thing, in medians of the background's depth
STEP = (0.1, 0.5)  # in widths of the thing
FOLD = (0.5, 1.2)  # slope of both planes of a folded thing
TILT = 20.0  # degrees, standard deviation of a thing's first pose
BEND = (0.5, 3.0)  # pixels by which an uncorrected lens bends the image's upper edge
WELL_MATCHED, BADLY_MATCHED, SHARE_BADLY_MATCHED = (
    (0.0, 0.1),
    (0.2, 0.5),
    0.25,
)  # mismatches per match of a thing; share of things
POOL = 6  # points drawn for each match of a thing
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Kind:
    """Backgrounds, and ranges: things, planes of a thing (0: solid), matches of the background and of a thing, width, turn, noise."""

    worlds: tuple[Callable[[np.random.Generator], World], ...]
    mismatches: tuple[str, ...]
    things: tuple[int, ...]
    planes: tuple[int, ...]
    matches: tuple[tuple[int, int], tuple[int, int]]
    width: tuple[int, int]
    turn: tuple[int, int]
    noise: tuple[float, float]


def cloud(rng: np.random.Generator) -> World:
    """A background without planes."""
    return World(rng.uniform([-4, -3, 5], [4, 3, 11], (4000, 3)), np.zeros(4000, np.intp), np.zeros((2, 3)))


BY_HAND = Kind(
    (room, clutter), ("repeated", "crowded"), (2, 3), (1, 2), ((100, 1000), (60, 800)), (120, 260), (5, 40), (0.3, 1.5)
)
SOLIDS = Kind((cloud,), ("uniform",), (1, 2, 3), (0,), ((100, 400), (25, 120)), (100, 180), (5, 20), (0.3, 1.0))


@dataclass(frozen=True)
class Stage:
    """A background and its things in both images, who owns each point (0: the background), and which are seen in both."""

    world: World
    views: tuple[Points, Points]
    owner: Rows
    seen: NDArray[np.bool_]
    to_second: Callable[[Points], Points]


def log_uniform(limits: tuple[float, float], rng: np.random.Generator) -> float:
    """A random number between two limits."""
    return float(np.exp(rng.uniform(*np.log(limits))))


def turned(points: Points, degrees: float, rng: np.random.Generator) -> Points:
    """Points (n, 3) turned about a random axis through the origin."""
    axis = rng.normal(size=3)
    return points @ cv2.Rodrigues(axis / np.linalg.norm(axis) * np.radians(degrees))[0].T


def thing(planes: int, n: int, rng: np.random.Generator) -> tuple[Points, Points]:
    """Points (n, 3) of a thing of width 1 around the origin, and their outward normals, 0 for a solid."""
    points, normals = rng.uniform(-0.5, 0.5, (n, 3)), np.zeros((n, 3))
    if planes:
        slope = np.sign(points[:, 0]) * rng.uniform(*FOLD) * (planes > 1)
        points[:, 2] = slope * points[:, 0]
        normals = np.column_stack([slope, np.zeros(n), -np.ones(n)])
    posed = turned(np.vstack([points, normals]), rng.normal(0, TILT), rng)
    return posed[:n], posed[n:]


def before_and_after(kind: Kind, n: int, depth: float, K: Matrix, rng: np.random.Generator) -> NDArray[np.float64]:
    """Points of a thing in the first camera's frame and their normals before and after its motion, (2, 2, n, 3)."""
    width, angle = rng.uniform(*kind.width) * depth / K[0, 0], rng.uniform(*kind.turn)
    centre = np.linalg.solve(K, [*rng.uniform(0.2 * SIZE, 0.8 * SIZE), 1.0]) * depth
    step = turned(np.array([0, 0, rng.uniform(*STEP) * width]), rng.uniform(0, 180), rng)
    points, normals = thing(int(rng.choice(kind.planes)), n, rng)
    after = turned(np.vstack([points, normals]), angle, rng)
    return np.array([[centre + width * points, normals], [centre + step + width * after[:n], after[n:]]])


def seen_from(K: Matrix, R: Matrix, t: NDArray[np.float64], points: Points) -> Points:
    """Pixels in the second camera of points in the first camera's frame."""
    return project(points @ R.T + t, K)


def seen_in_both(views: tuple[Points, Points], owner: Rows, facing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Points that no thing hides in either image; things are numbered from the nearest, 0 is the background."""
    seen = facing & np.isfinite(np.hstack(views)).all(axis=1)
    for number, view in product(range(1, owner.max() + 1), views):
        outline = view[(owner == number) & np.isfinite(view[:, 0])]
        behind = np.flatnonzero(seen & ((owner > number) | (owner == 0)))
        if len(outline) and len(behind):
            seen[behind[inside_hull(view[behind], outline)]] = False
    return seen


def bent(points: Points, pixels: float) -> Points:
    """Points as a lens shows them that bends the image's upper edge by so many pixels."""
    offset = points - SIZE / 2
    return points + offset * (offset**2).sum(axis=1, keepdims=True) * pixels / ((SIZE[0] / 2) ** 2 * SIZE[1] / 2)


def on_things(
    kept: list[Rows], views: tuple[Points, Points], most: int, rng: np.random.Generator
) -> tuple[Points, Points]:
    """At most so many mismatches between two places of one thing: few on most things, many where texture repeats."""
    pairs = np.zeros((0, 2), np.intp)
    for rows in kept:
        share = rng.uniform(*(BADLY_MATCHED if rng.random() < SHARE_BADLY_MATCHED else WELL_MATCHED))
        pairs = np.vstack([pairs, rng.choice(rows, (int(share * len(rows)), 2))])
    far = np.linalg.norm(views[1][pairs[:, 0]] - views[1][pairs[:, 1]], axis=1) > CLEAR
    pairs = rng.permutation(pairs[far])[:most]
    return views[0][pairs[:, 0]], views[1][pairs[:, 1]]


def stage(kind: Kind, counts: list[int], rng: np.random.Generator) -> Stage:
    """A scene that shows the background and each thing in both images with as many matches as asked for."""
    while True:
        world, K = kind.worlds[rng.integers(len(kind.worlds))](rng), camera_matrix(rng)
        median = float(np.median(world.points[np.isfinite(project(world.points, K)[:, 0]), 2]))
        R, t = move(str(rng.choice(["narrow", "forward"])), median, rng)
        depths = np.sort(median * rng.uniform(*DEPTH, len(counts) - 1))
        parts = [before_and_after(kind, POOL * n, z, K, rng) for n, z in zip(counts[1:], depths, strict=True)]
        still = np.stack([world.points, np.zeros_like(world.points)])
        scene = np.concatenate([np.stack([still, still]), *parts], axis=2)
        owner = np.repeat(np.arange(len(counts)), [len(world.points), *(part.shape[2] for part in parts)])
        eyes = np.stack([np.zeros(3), -R.T @ t])
        facing = ((scene[:, 1] * (scene[:, 0] - eyes[:, None])).sum(axis=2) <= 0).all(axis=0)
        to_second = partial(seen_from, K, R, t)
        views = project(scene[0, 0], K), to_second(scene[1, 0])
        seen = seen_in_both(views, owner, facing)
        if (np.bincount(owner[seen], minlength=len(counts)) >= counts).all():
            return Stage(world, views, owner, seen, to_second)


def mismatches_of(
    way: str, scene: Stage, kept: list[Rows], count: int, rng: np.random.Generator
) -> tuple[Points, Points]:
    """`count` mismatches: uniform, or few on things and the others crowded or repeated in the background."""
    if way == "uniform":
        return rng.uniform(0, SIZE, (count, 2)), rng.uniform(0, SIZE, (count, 2))
    own, still = on_things(kept[1:], scene.views, count, rng), len(scene.world.points)
    views, total = (scene.views[0][:still], scene.views[1][:still]), sum(map(len, kept)) + count
    n_others = count - len(own[0])
    others = wrong_places(way, scene.world, scene.seen[:still], views, scene.to_second, n_others, total, rng)
    return np.vstack([own[0], others[0]]), np.vstack([own[1], others[1]])


def draw(kind: Kind, title: str, seed: int, is_bent: bool = False) -> Problem:
    """One problem; label 1 is the background, each further label a thing."""
    rng = np.random.default_rng([kind.turn[1], seed])
    n_things, rate = kind.things[seed % len(kind.things)], RATES[seed // len(kind.things) % len(RATES)]
    noise = log_uniform(kind.noise, rng)
    bend, way = rng.choice([-1, 1]) * rng.uniform(*BEND) * is_bent, str(rng.choice(kind.mismatches))
    counts = [int(log_uniform(kind.matches[min(part, 1)], rng)) for part in range(n_things + 1)]
    scene = stage(kind, counts, rng)
    parts = [np.flatnonzero(scene.seen & (scene.owner == part)) for part in range(n_things + 1)]
    kept = [rng.choice(rows, n, replace=False) for rows, n in zip(parts, counts, strict=True)]
    true = np.concatenate(kept)
    n_wrong = round(rate / (1 - rate) * len(true))
    wrong = mismatches_of(way, scene, kept, n_wrong, rng)
    order = rng.permutation(len(true) + n_wrong)
    labels = np.concatenate([scene.owner[true] + 1, np.zeros(n_wrong, np.intp)])[order]
    exact = [bent(np.vstack([view[true], of])[order], bend) for view, of in zip(scene.views, wrong, strict=True)]
    points1, points2 = (view + rng.normal(0, noise, view.shape) for view in exact)
    settings = {"bend": float(bend), "noise": noise, "rate": rate}
    judged = np.ones(len(labels), bool)
    return Problem(str(seed), title, "fundamental", points1, points2, labels, judged, settings=settings)


def by_hand(half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` scenes for each mismatch rate and number of things, through a corrected and through a bent lens."""
    for index, is_bent in product(range(6 * per_cell), (False, True)):
        title = "moved by hand, bent lens" if is_bent else "moved by hand"
        yield draw(BY_HAND, title, first_seed(half) + index, is_bent)


def solids(half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` scenes for each mismatch rate and number of solids."""
    for index in range(9 * per_cell):
        yield draw(SOLIDS, "solids", first_seed(half) + index)
