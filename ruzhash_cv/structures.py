"""Structures: the few refitted models behind the matches, each with its kind, support and noise scale.

Evidence. For a model and a radius, c of n votes agree and chance would give the share alpha. The log-likelihood ratio of
"c / n agree" against "alpha agree" is

    G = c log(c / (n alpha)) + (n - c) log((1 - c / n) / (1 - alpha))     (nats)

alpha comes from decoys: the share of them within `CHANCE_RADIUS` of the model, brought down to smaller radii by the law of its
family, r^2 around a point (homography) and r along a line (fundamental matrix). The largest G over models and radii decides which
structure is next, of which family, and how tight it is; what it explains is taken away, and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._jit import jit
from ruzhash_cv.models import HOMOGRAPHY

_RING = 2


@jit
def evidence(agreeing: float, total: float, chance: float) -> float:
    """Return G in nats; 0 where no more agree than chance gives."""
    share = min(agreeing / total, 1.0 - 1e-9)
    if share <= chance:
        return 0.0
    return total * (share * np.log(share / chance) + (1.0 - share) * np.log((1.0 - share) / (1.0 - chance)))


@jit
def cover_kernel(
    indptr: Any, columns: Any, values: Any, by_column_indptr: Any, by_column_rows: Any, votes: Any, significance: Any, n_wanted: int
) -> Any:
    """Choose columns greedily by their summed preference; votes of the rows they hold are halved each time."""
    left = votes.copy()
    support = np.zeros(len(significance))
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            support[columns[at]] += left[row] * values[at]
    chosen = np.empty(n_wanted, np.int64)
    for item in range(n_wanted):
        best = -1
        for column in range(len(support)):
            if significance[column] > 0 and (best < 0 or significance[column] * support[column] > significance[best] * support[best]):
                best = column
        if best < 0 or support[best] <= 0.0:
            return chosen[:item]
        chosen[item] = best
        for at in range(by_column_indptr[best], by_column_indptr[best + 1]):
            row = by_column_rows[at]
            own = 0.0
            for k in range(indptr[row], indptr[row + 1]):
                if columns[k] == best:
                    own = values[k]
            change = 0.5 * left[row] * min(1.0, own * 2)
            left[row] -= change
            for k in range(indptr[row], indptr[row + 1]):
                support[columns[k]] -= change * values[k]
        support[best] = -1.0
    return chosen


@jit
def best_radius(residuals: Any, left: Any, total: float, kind: int, chance: float, chance_radius: float, radii: Any) -> Any:
    """Return the largest evidence over `radii` of one model and the radius it is reached at."""
    # Radii grow by a constant factor; the ring behind a radius reaches `_RING` steps further.
    counts = np.zeros(len(radii))
    for row in range(len(residuals)):
        residual = residuals[row]
        if left[row] > 0.0 and residual <= radii[-1]:
            at = 0
            while residual > radii[at]:
                at += 1
            counts[at] += left[row]
    within = np.cumsum(counts)
    best, best_at = 0.0, 0
    power = 2.0 if kind == HOMOGRAPHY else 1.0
    taken = 4.0 if kind == HOMOGRAPHY else 7.0
    widest = len(radii) - _RING - (0 if kind == HOMOGRAPHY else 3)
    for at in range(widest):
        agreeing = within[at] - taken
        around = within[at + _RING] - within[at]
        local = (around + 0.05) / ((radii[at + _RING] / radii[at]) ** power - 1.0) / total
        share = min(max(chance * (radii[at] / chance_radius) ** power, local), 0.9)
        # As many correspondences as a sample has fit whatever they are.
        gain = evidence(agreeing, total - taken, share) if agreeing > 0.0 else 0.0
        if gain > best:
            best, best_at = gain, at
    return best, best_at
