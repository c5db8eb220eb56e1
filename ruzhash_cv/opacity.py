"""Opacity: where one structure is seen no other can be.

Texture that repeats is matched some periods off, and alike all over: such mismatches form structures of their own, as precise as
any. But they lie among the matches of the surface that they are on, in both images. Of two true surfaces the nearer one hides the
other, and most of a match's neighbours in the image are of its own surface.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import jit

#: Neighbours looked at, and the least share of them that must agree with a structure, in each image.
N_NEIGHBOURS, LEAST_SHARE = 3, 0.6
#: Pixels; what is as near as that is the same keypoint.
SAME_KEYPOINT = 2.0
#: Fewer matches than this have no neighbours to speak of.
FEWEST_OWN = 2


def tell_transparent(
    points: NDArray[np.float64], distances: NDArray[np.float64], scale: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which structures lie among the matches of stronger ones.

    A neighbour speaks against a structure if a stronger one holds it and it does not agree with the weaker one: a fundamental
    matrix may lie among the matches of a plane of the same rigid scene, which it holds as well.

    Parameters
    ----------
    points : ndarray, shape (4, n)
        Rows of coordinates (x1, y1, x2, y2).
    distances : ndarray, shape (n, k)
        Residuals to the structures in units of their tolerances, strongest structure first.
    scale : float
        One pixel.

    Returns
    -------
    transparent : ndarray of bool, shape (k,)
    held, lost : ndarrays of bool, shape (n,)
        The matches of the other structures, and those that belong to transparent ones only.
    """
    n, k = distances.shape
    transparent, held, lost = np.zeros(k, bool), np.zeros(n, bool), np.zeros(n, bool)
    for structure in range(k):
        agreeing = distances[:, structure] <= 1.0
        own = agreeing & ~held
        rows, around = np.flatnonzero(own), np.flatnonzero(own | held)
        if len(rows) >= FEWEST_OWN and len(around) > len(rows):
            share = agreeing_share(points, rows, around, agreeing, SAME_KEYPOINT * scale)
            transparent[structure] = share < LEAST_SHARE
        if transparent[structure]:
            lost |= own
        else:
            held |= own
    return transparent, held, lost & ~held


@jit
def agreeing_share(points: Any, rows: Any, around: Any, agreeing: Any, apart: float) -> float:
    """Return the share of `agreeing` (n,) among the nearest of the matches `around`, over all `rows`; the least of both images'."""
    least = 1.0
    nearest, said = np.empty(N_NEIGHBOURS), np.empty(N_NEIGHBOURS)
    for image in (0, 2):
        agreed, count = 0.0, 0
        for row in rows:
            nearest[:], said[:] = np.inf, 0.0
            for other in around:
                dx, dy = points[image, other] - points[image, row], points[image + 1, other] - points[image + 1, row]
                squared = dx * dx + dy * dy
                if squared <= apart * apart or not squared < nearest[N_NEIGHBOURS - 1]:
                    continue
                at = N_NEIGHBOURS - 1
                while at > 0 and squared < nearest[at - 1]:
                    nearest[at], said[at] = nearest[at - 1], said[at - 1]
                    at -= 1
                nearest[at], said[at] = squared, agreeing[other]
            for item in range(N_NEIGHBOURS):
                if nearest[item] < np.inf:
                    count += 1
                    agreed += said[item]
        if count > 0:
            least = min(least, agreed / count)
    return least
