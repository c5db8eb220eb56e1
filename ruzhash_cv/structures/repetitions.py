"""Repetitions: structures that are texture matched some periods off.

A repeated texture yields a second plane interleaved with the true one. Its matches lie among the matches of the surface they are on,
where of two true surfaces the nearer one hides the other. And they compete with them: some lead to keypoints that already have a
partner. We drop a structure that does both. Parallax, window panes and fences are interleaved as well, but their keypoints are
their own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Array = NDArray[np.float64]

#: Neighbours looked at, and the least share of them that must be a structure's own, in each image.
N_NEIGHBOURS, LEAST_OWN = 3, 0.6
#: A structure smaller than this share of the stronger ones need not compete with them for keypoints.
SMALL = 0.125


def tell_repetitions(
    data: Array, distances: Array, keypoints: NDArray[np.int64], same: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which structures are interleaved with stronger ones and compete with them for keypoints.

    `distances` (n, k) are residuals of correspondences `data` (n, 4) to the structures, strongest first, in units of their tolerances.
    `keypoints` (2, n) number the keypoint of each image that each ends at. Neighbours as near as `same` are the same keypoint and do
    not count.

    Returns which structures are repetitions (k,), and of the matches (n,) those that the other structures hold, and those that belong
    to repetitions only.
    """
    n, k = distances.shape
    repeated, held, lost = np.zeros(k, bool), np.zeros(n, bool), np.zeros(n, bool)
    # By the keypoint of each image: whether what is held ends there.
    taken = np.zeros((2, keypoints.max(initial=-1) + 1), bool)
    for structure in range(k):
        own = (distances[:, structure] <= 1.0) & ~held
        small = own.sum() < SMALL * held.sum()
        competes = taken[0].take(keypoints[0, own]).any() or taken[1].take(keypoints[1, own]).any()
        if own.sum() > 1 and (small or competes):
            shares = [own_share(data[:, image : image + 2], own, own | held, same) for image in (0, 2)]
            repeated[structure] = min(shares) < LEAST_OWN
        if repeated[structure]:
            lost |= own
        else:
            held |= own
            for image in range(2):
                taken[image, keypoints[image, own]] = True
    return repeated, held, lost & ~held


def own_share(points: Array, own: NDArray[np.bool_], around: NDArray[np.bool_], same: float) -> float:
    """Return the share of a structure's `own` matches among the nearest neighbours of these, of the matches `around`."""
    among = np.flatnonzero(around)
    # More neighbours than are needed: some are the same keypoint.
    wanted = min(4 * N_NEIGHBOURS, len(among))
    apart, which = cKDTree(points[among]).query(points[own], wanted)
    apart, which = (np.asarray(part).reshape(-1, wanted) for part in (apart, which))
    others = apart > same
    others &= np.cumsum(others, axis=1) <= N_NEIGHBOURS
    return float(own[among[which[others]]].mean()) if others.any() else 1.0
