"""A family of models of one's own: planes in space.

    python examples/plane_in_space.py

Three walls of a room are measured with noise, among a quarter of stray points. A family says how many points make a model, how to
solve it and what its residual is; preferences, forest and scores come from the package.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import RuzHashForest
from ruzhash_cv.families import family_preferences, sample_models

NOISE = 0.01  # metres


class Planes:
    """Planes a x + b y + c z + d = 0 with a unit normal; the residual is the distance."""

    sample_size = 3

    def solve(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return planes (s, 4) of samples (s, 3 or more, 3): across the direction in which the points spread least."""
        centres = samples.mean(axis=1)
        _, spreads, directions = np.linalg.svd(samples - centres[:, None])
        normals = directions[:, 2]
        planes = np.hstack([normals, -np.sum(normals * centres, axis=1, keepdims=True)])
        planes[spreads[:, 1] < 1e-6] = np.nan  # three points on a line make no plane
        return planes

    def residuals(self, data: NDArray[np.float64], models: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances (n, m) of points (n, 3) from planes (m, 4)."""
        distances: NDArray[np.float64] = np.abs(data @ models[:, :3].T + models[:, 3])
        return distances


def measure_room(rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
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


if __name__ == "__main__":
    main()
