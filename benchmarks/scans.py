"""Keypoints on a grid or on lines, as on printed pages: mismatches among them agree exactly with some models."""

from collections.abc import Iterator
from itertools import product

import numpy as np
from geometry import Points, apply_homography
from problems import Problem, first_seed

RATES = (0.7, 0.9, 0.95, 0.98)
WAYS = ("grid", "lines")
SIZE = np.array([1200.0, 900.0])  # pixels
SPACING = (20.0, 60.0)  # pixels, log-uniform
NOISE = (0.1, 1.0)  # pixels, log-uniform
N_MATCHES = (100, 2000)  # log-uniform


def scans(half: str, per_cell: int) -> Iterator[Problem]:
    """`per_cell` scanned pages for each share of mismatches, of each kind."""
    cells = list(product(RATES, WAYS))
    for index in range(per_cell * len(cells)):
        yield scan(*cells[index % len(cells)], first_seed(half) + index)


def scan(rate: float, way: str, seed: int) -> Problem:
    """A page scanned twice, at other scales; a mismatch joins two of its keypoints."""
    rng = np.random.default_rng([WAYS.index(way), seed])
    spacing, noise = (float(np.exp(rng.uniform(*np.log(span)))) for span in (SPACING, NOISE))
    n = int(np.exp(rng.uniform(*np.log(N_MATCHES))))
    scale, shift = rng.uniform(0.7, 1.4, 2), rng.uniform(-100.0, 100.0, 2)
    matrix = np.array([[scale[0], 0.0, shift[0]], [0.0, scale[1], shift[1]], [0.0, 0.0, 1.0]])
    true = rng.random(n) >= rate
    places = [aligned(rng, n, way, spacing) for _ in range(2)]
    places[1][true] = places[0][true]
    seen = apply_homography(matrix, places[1])
    points1, points2 = (points + rng.normal(0.0, noise, points.shape) for points in (places[0], seen))
    exact = aligned(rng, 500, way, spacing)
    return Problem(
        f"{seed} {way} {rate}", "scans", "homography", points1, points2, true.astype(np.int64), np.ones(n, bool), (matrix,),
        exact, apply_homography(matrix, exact),
    )  # fmt: skip


def aligned(rng: np.random.Generator, n: int, way: str, spacing: float) -> Points:
    """Places on a grid, or on horizontal lines."""
    points = rng.uniform(0.0, SIZE, (n, 2))
    for column in (0, 1) if way == "grid" else (1,):
        points[:, column] = np.round(points[:, column] / spacing) * spacing
    return points
