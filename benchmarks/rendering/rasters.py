"""Which face is seen at each pixel: a z-buffer over convex planar faces."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.datasets.pairs import NO_FACE


def _fill(
    corners: NDArray[np.float64],
    key: NDArray[np.float64],
    face: int,
    ids: NDArray[np.uint16],
    nearest: NDArray[np.float64],
) -> None:
    """Draw a convex polygon (m, 2); a later face wins a tie, so a print can lie on a table."""
    if len(corners) < 3:
        return
    height, width = ids.shape
    following = np.roll(corners, -1, axis=0)
    side = 1.0 if sum(corners[:, 0] * following[:, 1] - following[:, 0] * corners[:, 1]) > 0 else -1.0
    top, bottom = np.ceil(corners[:, 1].min()), np.floor(corners[:, 1].max())
    rows = np.arange(max(0, int(top)), min(height - 1, int(bottom)) + 1)
    left, right = np.zeros(len(rows)), np.full(len(rows), width - 1.0)
    for (x, y), (next_x, next_y) in zip(corners, following, strict=True):
        # The inside of an edge is slope * x + offset >= 0.
        slope = -side * (next_y - y)
        offset = side * (next_x - x) * (rows - y) - slope * x
        if slope > 0:
            left = np.maximum(left, -offset / slope)
        elif slope < 0:
            right = np.minimum(right, -offset / slope)
        else:
            right[offset < 0] = -1.0
    left, right = np.ceil(left), np.floor(right)
    if not np.any(left <= right):
        return
    columns = np.arange(int(left.min()), min(width - 1, int(right.max())) + 1)
    box = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    keys = key[0] * columns + key[1] * rows[:, None] + key[2]
    seen = (left[:, None] <= columns) & (columns <= right[:, None])
    seen &= keys >= nearest[box] - 1e-6 * np.abs(nearest[box])
    nearest[box][seen] = keys[seen]
    ids[box][seen] = face


def fill_faces(
    polygons: list[NDArray[np.float64]], keys: NDArray[np.float64], size: tuple[int, int]
) -> tuple[NDArray[np.uint16], NDArray[np.float64]]:
    """Return the index of the nearest face at each pixel centre, and its key."""
    width, height = size
    ids = np.full((height, width), NO_FACE, np.uint16)
    nearest = np.full((height, width), -1e300)
    for face, (polygon, key) in enumerate(zip(polygons, keys, strict=True)):
        _fill(polygon, key, face, ids, nearest)
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
