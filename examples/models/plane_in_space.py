"""
A family of models of one's own
===============================

Three walls of a room are measured with noise, among a quarter of stray points. A family says how many points make a model, how to
solve it and to fit it, and what its residual is. Preferences, forest and scores come from the package.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.paper import RuzHashForest, family_preferences, sample_models

NOISE = 0.01  # metres

Array = NDArray[np.float64]


class Planes:
    """Planes a x + b y + c z + d = 0 with a unit normal; the residual is the distance."""

    name = "plane"
    sample_size = 3
    codimension = 1

    def solve(self, samples: Array) -> tuple[Array, NDArray[np.int64]]:
        """Return planes (k, 4) through the points of each sample (s, 3, 3), and the sample (k,) of each."""
        normals = np.cross(samples[:, 1] - samples[:, 0], samples[:, 2] - samples[:, 0])
        lengths = np.linalg.norm(normals, axis=1)
        usable = np.flatnonzero(lengths > 1e-9)  # three points on a line make no plane
        normals = normals[usable] / lengths[usable, None]
        return np.hstack([normals, -np.sum(normals * samples[usable, 0], axis=1, keepdims=True)]), usable

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared distances (m, n) of points (n, 3) from planes (m, 4)."""
        squared: Array = (models[:, :3] @ data.T + models[:, 3:]) ** 2
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return planes (m, 4) of least weighted squared distances: across the direction in which the points spread least."""
        centres = weights @ data / weights.sum(axis=1, keepdims=True)
        centred = data[None] - centres[:, None]
        normals = np.linalg.eigh(np.einsum("mn,mni,mnj->mij", weights, centred, centred))[1][:, :, 0]
        return np.hstack([normals, -np.sum(normals * centres, axis=1, keepdims=True)])


def measure_room(rng: np.random.Generator) -> tuple[Array, NDArray[np.bool_]]:
    """Return points (800, 3) on three walls of a unit cube and anywhere in it, and which are strays."""
    walls = rng.random((3, 200, 3))
    for axis in range(3):
        walls[axis, :, axis] = NOISE * rng.normal(size=200)
    strays = rng.random((200, 3))
    return np.vstack([walls.reshape(-1, 3), strays]), np.arange(800) >= 600


def main() -> None:
    points, stray = measure_room(np.random.default_rng(0))
    models, n_degenerate = sample_models(points, Planes(), n_models=3000)
    preferences = family_preferences(points, Planes(), models, sigma=NOISE)
    scores = RuzHashForest(n_trees=500).fit_anomaly_scores(preferences)
    flagged = np.argsort(-scores)[: int(stray.sum())]
    print(f"{len(points)} points, {len(models)} planes, {n_degenerate} degenerate samples")
    print(f"mean score: walls {scores[~stray].mean():.3f}, strays {scores[stray].mean():.3f}")
    print(f"{int(stray[flagged].sum())} of the {len(flagged)} points with the highest scores are strays")
    draw(points, scores)


def draw(points: Array, scores: Array) -> None:
    """Show the points in space, dark on walls, light where they agree with no plane."""
    plt.figure(figsize=(6, 5), layout="constrained")
    axes: Any = plt.axes(projection="3d")
    plt.colorbar(axes.scatter(*points.T, c=scores, s=6, cmap="plasma"), shrink=0.6, label="anomaly score")
    plt.show()


if __name__ == "__main__":
    main()
