"""One problem of the comparison: correspondences, the truth about them, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Matrix = NDArray[np.float64]

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
