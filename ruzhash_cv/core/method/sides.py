"""Sides of epipoles: which matches a motion cannot have, although they lie on its epipolar lines.

Seen along its epipolar line, a point that both cameras see stays on one side of the epipole (Chum, Werner, Matas, "Epipolar geometry
estimation via RANSAC benefits from the oriented epipolar constraint", ICPR 2004). A symmetric thing matched to itself, turned by half,
lies on the other side.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.families.base import Families, Models
from ruzhash_cv.core.families.linear import homogeneous
from ruzhash_cv.core.kernels.rays import remove_beyond
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.foundation.arrays import Array


def on_one_side(
    squared: Array, models: Models, matches: MatchSet, families: Families, data: Array | None = None
) -> Array:
    """Return squared residuals (m, n) of models, which become infinite for rows beyond the epipole of a motion.

    Matches within a unit show by their weights which side is right. The rows are the matches, or others: `data` (n, d).
    """
    bent = np.flatnonzero(~families.is_plane(models))
    if families.motion_id is None or len(bent) == 0 or len(matches) == 0:
        return squared
    points, matrices = matches.points, np.ascontiguousarray(models.matrices[bent])
    squared, others = squared.copy(), points
    voting = removed = squared[bent]
    if data is not None and data is not matches.data:
        others, voting = homogeneous(data), families[families.motion_id].squared_residuals(matches.data, matrices)
    remove_beyond(points, matches.weights, voting, matches.unit**2, matrices, matches.image, others, removed)
    squared[bent] = removed
    return squared
