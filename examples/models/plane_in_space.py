"""
A family of models of one's own
===============================

Three walls of a room are measured with noise, among a quarter of stray points. A family has a name, two numbers and three methods;
`find_structures` finds all of its models, without their number and without a threshold.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import find_structures

NOISE = 0.01  # metres

Array = NDArray[np.float64]


class Planes:
    """Planes a x + b y + c z + d = 0 with a unit normal; the residual is the distance."""

    name = "plane"
    sample_size = 3  # points that make a model
    codimension = 1  # equations that a point on a model satisfies

    def solve(self, samples: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return models (k, 4), the planes through the points of each sample (s, 3, 3), and their owners (k,), a sample each."""
        normals = np.cross(samples[:, 1] - samples[:, 0], samples[:, 2] - samples[:, 0])
        lengths = np.linalg.norm(normals, axis=1)
        owners = np.flatnonzero(lengths > 1e-9)  # three points on a line make no plane
        normals = normals[owners] / lengths[owners, None]
        return np.hstack([normals, -np.sum(normals * samples[owners, 0], axis=1, keepdims=True)]), owners

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared distances (m, n) of points (n, 3) from planes (m, 4)."""
        squared: Array = (models[:, :3] @ data.T + models[:, 3:]) ** 2
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return planes (m, 4) with the least squared distances of points (n, 3), weighted by (m, n).

        `models` (m, 4) are estimates, for families whose fit needs a start.
        """
        centres = weights @ data / weights.sum(axis=1, keepdims=True)
        centred = data[None] - centres[:, None]
        normals = np.linalg.eigh(np.einsum("mn,mni,mnj->mij", weights, centred, centred))[1][:, :, 0]
        return np.hstack([normals, -np.sum(normals * centres, axis=1, keepdims=True)])


def measure_room(rng: np.random.Generator) -> tuple[Array, NDArray[np.int64]]:
    """Return points (800, 3) on three walls of a unit cube and anywhere in it, and the wall of each, -1 for strays."""
    walls = rng.random((3, 200, 3))
    for axis in range(3):
        walls[axis, :, axis] = NOISE * rng.normal(size=200)
    return np.vstack([walls.reshape(-1, 3), rng.random((200, 3))]), np.repeat([0, 1, 2, -1], 200)


def main() -> None:
    points, walls = measure_room(np.random.default_rng(0))
    found = find_structures(points, Planes())
    print(found)
    for model, mask, noise in zip(found.models, found.masks, found.noise_scales, strict=True):
        of_wall = np.bincount(walls[mask] + 1, minlength=4)[1:].max()
        print(f"plane {np.round(model, 2) + 0.0}: {mask.sum()} points, {of_wall} of one wall, noise {noise:.3f}")
    strays = walls < 0
    print(f"{int((found.labels[strays] < 0).sum())} of {int(strays.sum())} strays are on no plane")
    draw(points, found.labels)


def draw(points: Array, labels: NDArray[np.int64]) -> None:
    """Show the points in space, in the colour of their plane, grey if they are on none."""
    plt.figure(figsize=(6, 5), layout="constrained")
    axes: Any = plt.axes(projection="3d")
    axes.scatter(*points.T, c=np.array([*plt.get_cmap("tab10").colors, (0.8, 0.8, 0.8)])[labels], s=6)
    axes.set_title("a colour for each plane, strays grey")
    plt.show()


if __name__ == "__main__":
    main()
