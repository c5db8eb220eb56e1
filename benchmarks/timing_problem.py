"""The problem every method is timed on: four planes and 40 % uniform mismatches, of any size."""

from __future__ import annotations

import numpy as np
from geometry import Points, apply_homography

SIZE = 1000.0


def timing_problem(n: int, seed: int = 0) -> tuple[Points, Points]:
    """Points of four quadrants, each with a homography of its own, noise of 1 px, 40 % replaced at random."""
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, SIZE, (n, 2))
    quadrant = (points1[:, 0] > SIZE / 2) * 2 + (points1[:, 1] > SIZE / 2)
    points2 = np.empty_like(points1)
    for index in range(4):
        H = np.eye(3) + rng.normal(0, 1, (3, 3)) * [[0.05, 0.05, 20], [0.05, 0.05, 20], [3e-5, 3e-5, 0]]
        own = quadrant == index
        points2[own] = apply_homography(H, points1[own])
    points2 += rng.normal(0, 1, points2.shape)
    wrong = rng.random(n) < 0.4
    points2[wrong] = rng.uniform(0, SIZE, (int(wrong.sum()), 2))
    return points1, points2
