"""Locality Preserving Matching, written from the paper.

J. Ma, J. Zhao, J. Jiang, H. Zhou, X. Guo, "Locality Preserving Matching", IJCV 127, 2019.

The neighbourhood sizes are 4 to 10 in steps of 2: of those tried on AdelaideRMF (4 to 8, 6 to 10, 6 alone) the best
for LPM at its usual thresholds of 0.8 and 0.5.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

Points = NDArray[np.float64]


def neighbours(points: Points, pool: NDArray[np.intp], k: int) -> NDArray[np.intp]:
    """Indices (n, k) of each point's k nearest among `pool`, itself left out."""
    _, found = KDTree(points[pool]).query(points, k=min(k + 1, len(pool)))
    found = pool[found.reshape(len(points), -1)]
    # A point outside the pool has no self to drop: it loses its farthest neighbour instead.
    is_self = found == np.arange(len(points))[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    # Duplicates may rank before the point itself: a stable sort moves only the self entry to the end.
    order = np.argsort(is_self, axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)[:, :-1]


def topology_agrees(motion: Points, near: NDArray[np.intp], tau: float) -> NDArray[np.bool_]:
    """Whether each neighbour moves as the match does: length ratio times cosine of the angle at least `tau`."""
    length = np.linalg.norm(motion, axis=1)
    shorter = np.minimum(length[:, None], length[near])
    longer = np.maximum(length[:, None], length[near])
    product = length[:, None] * length[near]
    cosine = np.einsum("id,ikd->ik", motion, motion[near])
    with np.errstate(divide="ignore", invalid="ignore"):
        similarity = shorter / longer * (cosine / product)
    return np.where(longer > 0, np.nan_to_num(similarity), 1.0) >= tau


def costs(
    points1: Points, points2: Points, pool: NDArray[np.intp], scales: tuple[int, ...], tau: float
) -> NDArray[np.float64]:
    """Cost in [0, 1] of each match, averaged over the neighbourhood sizes.

    At one size K a neighbour costs 1 when it is a neighbour in one image only, or moves differently.
    """
    motion = points2 - points1
    near1, near2 = (neighbours(points, pool, max(scales)) for points in (points1, points2))
    total = np.zeros(len(points1))
    for k in scales:
        first, second = near1[:, :k], near2[:, :k]
        shared = (first[:, :, None] == second[:, None, :]).any(axis=2)
        good = shared & topology_agrees(motion, first, tau)
        total += 1.0 - good.sum(axis=1) / k
    return total / len(scales)


def locality_preserving_matching(
    points1: Points,
    points2: Points,
    *,
    scales: tuple[int, ...] = (10, 8, 6, 4),
    thresholds: tuple[float, ...] = (0.8, 0.5),
    tau: float = 0.2,
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Keep matches whose neighbourhoods survive from one image to the other; the mask (n,) and the last round's cost in [0, 1].

    `scales` are the neighbourhood sizes that are averaged over, `thresholds` the highest costs kept (the paper's lambda): each round
    looks for neighbours among what the last one kept. `tau` is the least agreement of two motions, in [-1, 1].
    """
    pool = np.arange(len(points1))
    cost = np.ones(len(points1))
    for threshold in thresholds:
        if len(pool) < max(scales) + 2:
            return np.zeros(len(points1), dtype=bool), cost
        cost = costs(points1, points2, pool, scales, tau)
        pool = np.flatnonzero(cost <= threshold)
    return cost <= thresholds[-1], cost
