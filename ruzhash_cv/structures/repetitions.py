"""Repetitions: structures that are texture matched some periods off.

A repeated texture yields a second plane interleaved with the true one. Its matches lie among the matches of the surface they are on,
where of two true surfaces the nearer one hides the other. And they compete with them: some lead to keypoints that already have a
partner. We drop a structure that does both. Parallax, window panes and fences are interleaved as well, but their keypoints are
their own.

A plane and a second one that is shifted have a fundamental matrix in common, whose lines run in the direction of the shift. So a
texture repeated in one direction looks like a motion. It is none if what it holds beside a plane is a repetition.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Neighbours looked at. Matches lie among others if these are so often among their neighbours as this share of what chance would give.
N_NEIGHBOURS, MIXED = 3, 0.55
#: A structure smaller than this share of the stronger ones need not compete with them for keypoints.
SMALL = 0.125


def tell_repetitions(
    data: Array, distances: Array, keypoints: NDArray[np.int64], same: float
) -> tuple[Mask, Mask, Mask]:
    """Tell which structures are interleaved with stronger ones and compete with them for keypoints.

    `distances` (n, k) are residuals of correspondences `data` (n, 4) to the structures, strongest first, in units of their tolerances.
    `keypoints` (2, n) number the keypoint of each image that each ends at. Neighbours as near as `same` are the same keypoint and do
    not count.

    Returns which structures are repetitions (k,), and of the matches (n,) those that the other structures hold, and those that belong
    to repetitions only.
    """
    n, k = distances.shape
    repeated, held, lost = np.zeros(k, bool), np.zeros(n, bool), np.zeros(n, bool)
    for structure in range(k):
        own = (distances[:, structure] <= 1.0) & ~held
        small = bool(own.sum() < SMALL * held.sum())
        gone = repeated_beside(data, own, held, keypoints, same, small=small)
        repeated[structure] = gone.any()
        lost |= gone
        held |= own & ~gone
    return repeated, held, lost & ~held


def repeated_beside(
    data: Array, own: Mask, others: Mask, keypoints: NDArray[np.int64], same: float, *, small: bool = False
) -> Mask:
    """Return matches `own` (n,) if they lie among `others` in an image and compete with them, or are `small`; else none."""
    competes = small or any(np.isin(numbers[own], numbers[others]).any() for numbers in keypoints)
    return own & (own.sum() > 1 and competes and lie_among(data, own, others, same))


def lie_among(data: Array, own: Mask, others: Mask, same: float) -> bool:
    """Tell whether in one of the images `others` are among the neighbours of matches `own` (n,) nearly as often as by chance."""
    shares = [own_share(data[:, image : image + 2], own, own | others, same) for image in (0, 2)]
    return bool(1.0 - min(shares) > MIXED * others.sum() / (own | others).sum())


def own_share(points: Array, own: Mask, around: Mask, same: float) -> float:
    """Return the share of a structure's `own` matches among the nearest neighbours of these, of the matches `around`."""
    among = np.flatnonzero(around)
    # More neighbours than are needed: some are the same keypoint.
    wanted = min(4 * N_NEIGHBOURS, len(among))
    apart, which = cKDTree(points[among]).query(points[own], wanted)
    apart, which = (np.asarray(part).reshape(-1, wanted) for part in (apart, which))
    others = apart > same
    others &= np.cumsum(others, axis=1) <= N_NEIGHBOURS
    return float(own[among[which[others]]].mean()) if others.any() else 1.0
