"""Which face is seen at each pixel: a z-buffer over convex planar faces."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.datasets.pairs import NO_FACE


@numba.njit(nogil=True, error_model="numpy", cache=True)
def _fill(
    corners: NDArray[np.float64],
    starts: NDArray[np.int64],
    keys: NDArray[np.float64],
    ids: NDArray[np.uint16],
    nearest: NDArray[np.float64],
) -> None:
    """Draw polygons given as half-plane chains; a later face wins a tie, so a print can lie on a table."""
    height, width = ids.shape
    for face in range(len(starts) - 1):
        first, last = starts[face], starts[face + 1]
        if last - first < 3:
            continue
        area = 0.0
        top, bottom = np.inf, -np.inf
        for i in range(first, last):
            j = i + 1 if i + 1 < last else first
            area += corners[i, 0] * corners[j, 1] - corners[j, 0] * corners[i, 1]
            top = min(top, corners[i, 1])
            bottom = max(bottom, corners[i, 1])
        side = 1.0 if area > 0 else -1.0
        for y in range(max(0, int(np.ceil(top))), min(height - 1, int(np.floor(bottom))) + 1):
            left, right = 0.0, width - 1.0
            for i in range(first, last):
                j = i + 1 if i + 1 < last else first
                # The inside of an edge is slope * x + offset >= 0.
                slope = -side * (corners[j, 1] - corners[i, 1])
                offset = side * (corners[j, 0] - corners[i, 0]) * (y - corners[i, 1]) - slope * corners[i, 0]
                if slope > 0:
                    left = max(left, -offset / slope)
                elif slope < 0:
                    right = min(right, -offset / slope)
                elif offset < 0:
                    right = -1.0
            for x in range(int(np.ceil(left)), int(np.floor(right)) + 1):
                key = keys[face, 0] * x + keys[face, 1] * y + keys[face, 2]
                if key >= nearest[y, x] - 1e-6 * abs(nearest[y, x]):
                    nearest[y, x] = key
                    ids[y, x] = face


def fill_faces(
    polygons: list[NDArray[np.float64]], keys: NDArray[np.float64], size: tuple[int, int]
) -> tuple[NDArray[np.uint16], NDArray[np.float64]]:
    """Return the index of the nearest face at each pixel centre, and its key."""
    width, height = size
    ids = np.full((height, width), NO_FACE, np.uint16)
    nearest = np.full((height, width), -1e300)
    starts = np.cumsum([0, *(len(polygon) for polygon in polygons)]).astype(np.int64)
    corners = np.concatenate([*polygons, np.zeros((0, 2))]) if polygons else np.zeros((0, 2))
    _fill(np.ascontiguousarray(corners), starts, np.ascontiguousarray(keys, dtype=np.float64), ids, nearest)
    nearest[ids == NO_FACE] = -np.inf
    return ids, nearest


def clip_polygon(polygon: NDArray[np.float64], line: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """Return the part of a convex polygon (m, 2) where ``line @ (x, y, 1) >= least``."""
    height = polygon @ line[:2] + line[2] - least
    kept: list[NDArray[np.float64]] = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if height[i] >= 0:
            kept.append(polygon[i])
        if (height[i] >= 0) != (height[j] >= 0):
            share = height[i] / (height[i] - height[j])
            kept.append(polygon[i] + share * (polygon[j] - polygon[i]))
    return np.array(kept).reshape(-1, 2)
