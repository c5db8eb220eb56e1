"""Sequential robust estimation: find a model, set its inliers aside, repeat until too few agree."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from geometry import Matrix, Points, residuals
from numpy.typing import NDArray
from verdict import Verdict

Estimate = Callable[[Points, Points], tuple[Matrix | None, NDArray[np.bool_]]]


def extract(
    points1: Points, points2: Points, estimate: Estimate, *, fewest: int, kind: str = "homography", most: int = 30
) -> Verdict:
    """Peel off models of at least `fewest` inliers; scores are the residual to the nearest model found."""
    labels = np.full(len(points1), -1)
    scores = np.full(len(points1), np.inf)
    for index in range(most):
        left = np.flatnonzero(labels < 0)
        if len(left) < fewest:
            break
        model, inliers = estimate(points1[left], points2[left])
        if model is None or inliers.sum() < fewest:
            break
        labels[left[inliers]] = index
        scores = np.minimum(scores, residuals(kind, model, points1, points2))
    return Verdict(labels >= 0, scores, labels)
