"""Repetitions: structures that are texture matched some periods off.

Texture that repeats is matched some periods off, and alike all over: such mismatches form structures of their own, as precise as
any. But they lie among the matches of the surface that they are on, where of two true surfaces the nearer one hides the other; and
they compete with them: some lead to keypoints that already have a partner. Parallax, window panes and fences lie among other
matches as well, but their keypoints are their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import jit
from ruzhash_cv.places import KeypointNumbers

#: Neighbours looked at, and the least share of them that must be a structure's own, in each image.
N_NEIGHBOURS, LEAST_SHARE = 3, 0.6
#: Pixels; what is as near as that is the same keypoint.
SAME_KEYPOINT = 2.0
#: The least share of them that end at a keypoint of a stronger structure's match, for a structure to be a repetition; one that is
#: smaller than this share of the stronger ones need not compete with them.
LEAST_CONTESTED, SMALL = 0.02, 0.125
#: One match says nothing, and at most so many tell for all.
FEWEST_OWN, MOST_ASKED = 2, 64


def tell_repetitions(
    points: NDArray[np.float64],
    distances: NDArray[np.float64],
    keypoints: KeypointNumbers,
    scale: float,
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which structures lie among the matches of stronger ones and compete with them for keypoints.

    Fundamental matrices too: one is easily made of a plane and a few mismatches.

    Parameters
    ----------
    points : ndarray, shape (4, n)
        Rows of coordinates (x1, y1, x2, y2).
    distances : ndarray, shape (n, k)
        Residuals to the structures in units of their tolerances, strongest structure first.
    keypoints : tuple of two ndarrays of int64, shape (n,)
        See `places.find_keypoints`.
    scale : float
        One pixel.

    Returns
    -------
    repeated : ndarray of bool, shape (k,)
    held, lost : ndarrays of bool, shape (n,)
        The matches of the other structures, and those that belong to repeated ones only.
    """
    n, k = distances.shape
    repeated, held, lost = np.zeros(k, bool), np.zeros(n, bool), np.zeros(n, bool)
    for structure in range(k):
        own = (distances[:, structure] <= 1.0) & ~held
        rows, around = np.flatnonzero(own), np.flatnonzero(own | held)
        small = len(rows) < SMALL * held.sum()
        if len(rows) >= FEWEST_OWN and (small or _contested_share(keypoints, own, held) >= LEAST_CONTESTED):
            # A strided slice is another layout: numba would compile the kernel once more.
            asked = np.ascontiguousarray(rows[:: 1 + len(rows) // MOST_ASKED])
            share = own_share(points, own, asked, around, SAME_KEYPOINT * scale)
            repeated[structure] = share < LEAST_SHARE
        if repeated[structure]:
            lost |= own
        else:
            held |= own
    return repeated, held, lost & ~held


def _contested_share(keypoints: KeypointNumbers, own: NDArray[np.bool_], held: NDArray[np.bool_]) -> float:
    """Return the share of a structure's `own` matches that end, in either image, at a keypoint of a match that is `held`."""
    contested = np.zeros(len(own), bool)
    for points in keypoints:
        taken = np.zeros(points.max() + 1, bool)
        taken[points[held]] = True
        contested |= taken[points]
    return float(contested[own].mean())


@jit
def own_share(points: Any, own: Any, rows: Any, around: Any, apart: float) -> float:
    """Return the share of a structure's `own` (n,) among the nearest neighbours of its `rows`; the least of both images'.

    `around` are the rows that may be neighbours.
    """
    least = 1.0
    nearest, is_own = np.empty(N_NEIGHBOURS), np.empty(N_NEIGHBOURS)
    for image in (0, 2):
        total, count = 0.0, 0
        for row in rows:
            nearest[:], is_own[:] = np.inf, 0.0
            for other in around:
                dx, dy = points[image, other] - points[image, row], points[image + 1, other] - points[image + 1, row]
                squared = dx * dx + dy * dy
                if squared <= apart * apart or not squared < nearest[N_NEIGHBOURS - 1]:
                    continue
                at = N_NEIGHBOURS - 1
                while at > 0 and squared < nearest[at - 1]:
                    nearest[at], is_own[at] = nearest[at - 1], is_own[at - 1]
                    at -= 1
                nearest[at], is_own[at] = squared, own[other]
            for item in range(N_NEIGHBOURS):
                if nearest[item] < np.inf:
                    count += 1
                    total += is_own[item]
        if count > 0:
            least = min(least, total / count)
    return least
