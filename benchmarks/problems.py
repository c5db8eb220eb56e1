"""One problem of the comparison: correspondences, the truth about them, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from geometry import Matrix, Points, apply_homography
from numpy.typing import NDArray

JUDGE_SEED = 10_000
"""Rendered problems with seeds from 0 on are for tuning, from here on for judging."""


@dataclass(frozen=True)
class Problem:
    """Correspondences with ground truth.

    `labels`: 0 = mismatch, k = structure k. `judged`: the matches that count. `kind`: what one structure is,
    "homography" or "fundamental". `models`: the true matrix of each structure, where known. `exact1`, `exact2`:
    noise-free true correspondences, for the downstream error.
    """

    name: str
    suite: str
    kind: str
    points1: Points
    points2: Points
    labels: NDArray[np.intp]
    judged: NDArray[np.bool_]
    models: tuple[Matrix, ...] = ()
    exact1: Points | None = None
    exact2: Points | None = None
    settings: dict[str, float | str] = field(default_factory=dict)

    @property
    def mismatch_rate(self) -> float:
        """Share of mismatches among the judged matches."""
        return float(np.mean(self.labels[self.judged] == 0))

    def shuffled(self, seed: int) -> Problem:
        """The same problem with its rows in another order: how a seed reaches methods that take none."""
        order = np.random.default_rng(seed).permutation(len(self.labels))
        rows = {name: getattr(self, name)[order] for name in ("points1", "points2", "labels", "judged")}
        return Problem(**{**self.__dict__, **rows})


def four_planes(n: int, seed: int = 0) -> tuple[Points, Points]:
    """What times are taken on: four quadrants, each with a homography of its own, noise of 1 px, 40 % replaced at random."""
    rng, size = np.random.default_rng(seed), 1000.0
    points1 = rng.uniform(0, size, (n, 2))
    quadrant = (points1[:, 0] > size / 2) * 2 + (points1[:, 1] > size / 2)
    points2 = np.empty_like(points1)
    for index in range(4):
        H = np.eye(3) + rng.normal(0, 1, (3, 3)) * [[0.05, 0.05, 20], [0.05, 0.05, 20], [3e-5, 3e-5, 0]]
        own = quadrant == index
        points2[own] = apply_homography(H, points1[own])
    points2 += rng.normal(0, 1, points2.shape)
    wrong = rng.random(n) < 0.4
    points2[wrong] = rng.uniform(0, size, (int(wrong.sum()), 2))
    return points1, points2
