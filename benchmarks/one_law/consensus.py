"""The one model with most matches within a threshold, of all that were tried."""

from __future__ import annotations

from typing import Any

import numpy as np

from .densities import Array

#: Models that are refitted, and to what lies within so many thresholds in turn.
N_BEST, REACHES = 10, (2.0, 1.5, 1.0, 1.0)


def largest_consensus(family: Any, data: Array, models: Array, threshold: float) -> tuple[Array | None, int]:
    """Return the model (9,) of most correspondences (n, 4) within a threshold, refitted within it, and how many these are.

    The best few are refitted by least squares to what lies within the threshold, by steps where the family has them.
    """
    if len(models) == 0:
        return None, 0
    counts = np.count_nonzero(family.squared_residuals(data, models) <= threshold**2, axis=1)
    best = models[np.argsort(-counts, kind="stable")[:N_BEST]]
    tried, fitted = [best], best
    for step, reach in enumerate(REACHES):
        ratios = family.squared_residuals(data, fitted) / (reach * threshold) ** 2
        weights = np.ascontiguousarray(np.where(ratios <= 1.0, 1.0 - ratios + 0.05, 0.0))
        fit = getattr(family, "step", family.fit) if step else family.fit
        new = fit(data, weights, fitted)
        usable = np.isfinite(new).all(axis=1) & (np.count_nonzero(weights, axis=1) > family.sample_size)
        fitted = np.where(usable[:, None], new, fitted)
        tried.append(fitted)
    every = np.vstack(tried)
    counts = np.count_nonzero(family.squared_residuals(data, every) <= threshold**2, axis=1)
    at = int(np.argmax(counts))
    return every[at], int(counts[at])
