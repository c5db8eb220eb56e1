"""What every method under comparison returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """A method's answer: `mask` True = keep; `scores` high = mismatch; `labels` -1 = mismatch, else the structure."""

    mask: NDArray[np.bool_]
    scores: NDArray[np.float64] | None = None
    labels: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class Peer:
    """A method with a fixed setting.

    `tuned` marks a threshold chosen because it is the best for AdelaideRMF; everything else is a default.
    """

    name: str
    run: Callable[[Points, Points, int], Verdict]
    tuned: bool = False

    def __call__(self, points1: Points, points2: Points, rng_seed: int) -> Verdict:
        return self.run(points1, points2, rng_seed)
