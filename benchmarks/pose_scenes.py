"""Matches of known geometry without pictures: rigid scenes of points, two cameras, noise and mismatches, all from a seed.

What hides behind what is ignored.
"""

import zlib
from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
from geometry import Matrix, Points, skew
from numpy.typing import NDArray
from pose_worlds import MOTIONS, RIGID, WORLDS, World, move
from problems import Cameras, Problem, first_seed

SIZE = np.array([800, 600])
FOCAL = (600.0, 1000.0)  # pixels, uniform, each camera its own
RATES = (0.1, 0.3, 0.5, 0.7, 0.8)
MISMATCHES = ("uniform", "repeated", "crowded")
NOISE = (0.5, 1.0)  # pixels, uniform
N_MATCHES = (100, 1000)  # log-uniform
FEWEST = 30  # true matches
N_EXACT = 300
REPEATED = 0.4  # at most this share of all matches agrees with each other wrongly
SHIFTS = np.array([(1, 0), (-1, 0), (2, 0), (-2, 0), (0, 1), (0, -1), (1, 1), (-1, 1)])
CLEAR = 10.0  # pixels; a mismatch lies at least this far from the true place
WALKED, WALK_FOCAL, N_CORNERS = (0.016, 0.0, 0.28), 650.0, (500, 100)  # metres; pixels; true matches and mismatches


Projection = Callable[[NDArray[np.float64], Matrix], Points]
"""Pixels (n, 2) of points (n, 3) in a camera's frame, NaN where they are not seen."""


def camera_matrix(rng: np.random.Generator, focals: tuple[float, float] = FOCAL) -> Matrix:
    """Square pixels, the principal point in the middle."""
    focal = rng.uniform(*focals)
    return np.array([[focal, 0, SIZE[0] / 2], [0, focal, SIZE[1] / 2], [0, 0, 1]])


def project(points: NDArray[np.float64], K: Matrix) -> Points:
    """Pixels (n, 2) of points (n, 3); NaN outside the picture or nearer than 10 cm."""
    depth = np.where(points[:, 2] > 0.1, points[:, 2], np.nan)
    pixels = (points @ K.T)[:, :2] / depth[:, None]
    inside = ((pixels >= 0) & (pixels <= SIZE - 1)).all(axis=1)
    return np.where(inside[:, None], pixels, np.nan)


def exact_model(K1: Matrix, K2: Matrix, R: Matrix, t: Matrix) -> Matrix:
    """The homography of a rotation, else the fundamental matrix."""
    if not t.any():
        return K2 @ R @ np.linalg.inv(K1)
    F = np.linalg.inv(K2).T @ skew(t) @ R @ np.linalg.inv(K1)
    return F / np.linalg.norm(F)


def wrong_places(
    kind: str, world: World, seen: NDArray[np.bool_], views: tuple[Points, Points], to_second: Callable[..., Points],
    count: int, total: int, rng: np.random.Generator,
) -> tuple[Points, Points]:  # fmt: skip
    """`count` mismatches: places of both views at random, half of them whole periods off or heaped on one spot of each view."""
    rows1, rows2 = (rng.choice(np.flatnonzero(seen), count) for _ in range(2))
    wrong1, wrong2 = views[0][rows1], views[1][rows2]
    special = min(count // 2, int(REPEATED * total))
    if kind == "crowded":
        spots = [view[rng.choice(np.flatnonzero(seen))] for view in views]
        for wrong, spot in zip((wrong1, wrong2), spots, strict=True):
            wrong[:special] = spot + rng.normal(0, 25, (special, 2))
    if kind == "repeated" and world.steps.any():
        wall = rng.choice(np.flatnonzero(seen & (world.plane == 1)), 4 * special)
        shifts = rng.permutation(SHIFTS)[:3][rng.integers(0, 3, len(wall))]
        shifted = to_second(world.points[wall] + shifts @ world.steps)
        kept = np.flatnonzero(np.isfinite(shifted[:, 0]))[:special]
        wrong1[: len(kept)], wrong2[: len(kept)] = views[0][wall[kept]], shifted[kept]
        rows1[: len(kept)] = wall[kept]
    near = np.linalg.norm(wrong2 - views[1][rows1], axis=1) < CLEAR
    wrong2[near] = (wrong2[near] + SIZE / 2) % SIZE
    return wrong1, wrong2


def draw(scene: str, motion: str, seed: int, see: Projection = project, focals: tuple[float, float] = FOCAL) -> Problem:
    """One pair; cameras, noise, the number of matches and the kind of mismatches come from the seed."""
    # crc32, as str hashes differ between processes.
    rng = np.random.default_rng([zlib.crc32(f"{scene} {motion}".encode()), seed])
    rate, kind = RATES[seed % len(RATES)], MISMATCHES[seed % len(MISMATCHES)]
    noise = rng.uniform(*NOISE)
    total = int(np.exp(rng.uniform(np.log(max(N_MATCHES[0], FEWEST / (1 - rate))), np.log(N_MATCHES[1]))))
    while True:
        world, K1, K2 = WORLDS[scene](rng), camera_matrix(rng, focals), camera_matrix(rng, focals)
        views1 = see(world.points, K1)
        R, t = move(motion, float(np.median(world.points[np.isfinite(views1[:, 0]), 2])), rng)
        views = views1, see(world.points @ R.T + t, K2)
        seen = np.isfinite(views[0][:, 0]) & np.isfinite(views[1][:, 0])
        if seen.sum() >= 0.25 * len(seen) and seen.sum() > 2 * FEWEST:
            break
    rows = rng.permutation(np.flatnonzero(seen))
    n_false = round(rate * total)
    # A few points are drawn twice where a scene shows less than is asked for; the noise sets them apart.
    true = rng.choice(rows, total - n_false) if total - n_false > len(rows) else rows[: total - n_false]
    shift = lambda points: see(points @ R.T + t, K2)  # noqa: E731
    wrong = wrong_places(kind, world, seen, views, shift, n_false, total, rng)
    sides = zip(views, wrong, strict=True)
    points = [np.vstack([view[true], other]) + rng.normal(0, noise, (total, 2)) for view, other in sides]
    order, labels = rng.permutation(total), np.repeat([1, 0], [total - n_false, n_false])
    exact, cameras = rng.choice(rows, N_EXACT), Cameras(K1, K2, R, t)
    model = exact_model(K1, K2, R, t)
    return Problem(
        f"{scene} {motion} {seed}", "synthetic poses", "homography" if motion == "rotation" else "fundamental",
        points[0][order], points[1][order], labels[order], np.ones(total, bool), (model,),
        views[0][exact], views[1][exact], cameras=cameras,
    )  # fmt: skip


def given(
    half: str, per_cell: int, scenes: tuple[str, ...] = RIGID, motions: tuple[str, ...] = MOTIONS
) -> Iterator[Problem]:
    """`per_cell` pairs of every scene and motion; the halves' seeds never meet."""
    for scene, motion in product(scenes, motions):
        yield from (draw(scene, motion, first_seed(half) + index) for index in range(per_cell))


def walk(seed: int) -> Problem:
    """Two frames of a slow walk ahead along a street: corners on whole pixels, most of which move by one or two."""
    rng, (n_true, n_false) = np.random.default_rng([6, seed]), N_CORNERS
    houses = rng.uniform([3, -4, 6], [12, 1.6, 60], (6 * n_true, 3)) * [
        [rng.choice([-1, 1]), 1, 1] for _ in range(6 * n_true)
    ]
    points = np.vstack([houses, rng.uniform([-6, 1.65, 5], [6, 1.65, 40], (2 * n_true, 3))])
    K, turn = camera_matrix(rng, (WALK_FOCAL, WALK_FOCAL)), np.radians(rng.normal(0, 0.3))
    R = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    t = -R @ WALKED
    both = np.hstack([project(points, K), project(points @ R.T + t, K)])
    both = rng.permutation(both[np.isfinite(both).all(axis=1)])[:n_true]
    wrong = rng.uniform(0, SIZE, (n_false, 2))
    wrong = np.hstack([wrong, wrong + rng.normal(0, 25, wrong.shape)])
    first, second = np.hsplit(np.rint(np.vstack([both + rng.normal(0, 0.3, both.shape), wrong])), 2)
    labels, cameras = np.repeat([1, 0], [len(both), n_false]), Cameras(K, K, R, t)
    return Problem(f"{seed}", "slow walks", "fundamental", first, second, labels, labels >= 0, cameras=cameras)


def walks(half: str, per_cell: int) -> Iterator[Problem]:
    """36 `per_cell` walks."""
    return (walk(first_seed(half) + index) for index in range(36 * per_cell))
