"""Circles of points in the plane, with the paper's algebraic residual."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ruzhash_cv._arrays import Array, Rows


@dataclass(frozen=True)
class AlgebraicCircles:
    """Circles x^2 + y^2 + d x + e y + f = 0; the residual is algebraic, the equation's left-hand side.

    It equals ``abs(distance from the centre - radius) * (distance from the centre + radius)``, unit squared.

    Examples
    --------
    >>> circle, _ = AlgebraicCircles().solve(np.array([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]))
    >>> AlgebraicCircles().squared_residuals(np.array([[2.0, 0.0]]), circle).round(6)
    array([[9.]])
    """

    name: str = "circle"
    sample_size: int = 3
    codimension: int = 1

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return circles (k, 3) through the points of each sample (s, 3, 2), and the sample (k,) of each."""
        system = np.concatenate([samples, np.ones_like(samples[..., :1])], axis=2)
        squares = -np.sum(samples**2, axis=2)[..., None]
        usable = np.linalg.matrix_rank(system) == 3
        return (np.linalg.pinv(system[usable]) @ squares[usable])[..., 0], np.flatnonzero(usable)

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared algebraic residuals (m, n) of points (n, 2) to circles (m, 3)."""
        squares = np.sum(data**2, axis=1)
        squared: Array = (squares + models[:, :2] @ data.T + models[:, 2:]) ** 2
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return circles (m, 3) of least weighted squared residuals."""
        system, squares = np.hstack([data, np.ones((len(data), 1))]), -np.sum(data**2, axis=1)
        circles = np.full((len(weights), 3), np.nan)
        for circle, roots in zip(circles, np.sqrt(weights), strict=True):
            fitted, _, rank, _ = np.linalg.lstsq(roots[:, None] * system, roots * squares, rcond=None)
            if rank == 3:
                circle[:] = fitted
        return circles
