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
#: The least share of a structure's matches that end at a keypoint of a stronger structure's match, for it to compete with these; one
#: smaller than the second share of the stronger ones need not.
LEAST_CONTESTED, SMALL = 0.02, 0.125


def tell_repetitions(
    data: Array, distances: Array, keypoints: NDArray[np.int64], same: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which structures are interleaved with stronger ones and compete with them for keypoints.

    Parameters
    ----------
    data : ndarray, shape (n, 4)
        Correspondences.
    distances : ndarray, shape (n, k)
        Residuals to the structures in units of their tolerances, strongest structure first.
    keypoints : ndarray of int64, shape (2, n)
        Of each image, the number of the keypoint that each match ends at.
    same : float
        Neighbours as near as that are the same keypoint and do not count.

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
        small = own.sum() < SMALL * held.sum()
        if own.sum() > 1 and (small or _contested_share(keypoints, own, held) >= LEAST_CONTESTED):
            shares = [own_share(data[:, image : image + 2], own, own | held, same) for image in (0, 2)]
            repeated[structure] = min(shares) < LEAST_OWN
        if repeated[structure]:
            lost |= own
        else:
            held |= own
    return repeated, held, lost & ~held


def _contested_share(keypoints: NDArray[np.int64], own: NDArray[np.bool_], held: NDArray[np.bool_]) -> float:
    """Return the share of a structure's `own` matches that end, in either image, at a keypoint of a match that is `held`."""
    contested = np.zeros(len(own), bool)
    for numbers in keypoints:
        taken = np.zeros(numbers.max() + 1, bool)
        taken[numbers[held]] = True
        contested |= taken[numbers]
    return float(contested[own].mean())


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
