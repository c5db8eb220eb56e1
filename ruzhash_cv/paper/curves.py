"""Lines and circles of points in the plane."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ruzhash_cv._arrays import Array, Rows


@dataclass(frozen=True)
class Lines:
    """Lines in the plane: a x + b y + c = 0 with a^2 + b^2 = 1; the residual is the distance.

    Examples
    --------
    >>> lines, _ = Lines().solve(np.array([[[0.0, 0.0], [1.0, 0.0]]]))
    >>> Lines().squared_residuals(np.array([[5.0, 2.0]]), lines)
    array([[4.]])
    """

    name: str = "line"
    sample_size: int = 2
    codimension: int = 1
    locally_affine: bool = False

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return lines (k, 3) through the points of each sample (s, 2, 2), and the sample (k,) of each."""
        across = (samples[:, 1] - samples[:, 0])[:, ::-1] * [1.0, -1.0]
        with np.errstate(divide="ignore", invalid="ignore"):
            normals = across / np.hypot(across[:, :1], across[:, 1:])
        lines = np.hstack([normals, -np.sum(normals * samples.mean(axis=1), axis=1, keepdims=True)])
        usable = np.isfinite(lines).all(axis=1)
        return lines[usable], np.flatnonzero(usable)

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared distances (m, n) of points (n, 2) from lines (m, 3), in the points' unit."""
        squared: Array = (models[:, :2] @ data.T + models[:, 2:]) ** 2
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return lines (m, 3) of least weighted squared distances: across the direction in which the points spread most."""
        total = weights.sum(axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            centres = weights @ data / total
        centred = data[None] - centres[:, None]
        scatter = np.einsum("mn,mni,mnj->mij", weights, centred, centred)
        normals = np.full(centres.shape, np.nan)
        usable = np.isfinite(scatter).all(axis=(1, 2)) & (np.trace(scatter, axis1=1, axis2=2) > 0)
        normals[usable] = np.linalg.eigh(scatter[usable])[1][:, :, 0]
        return np.hstack([normals, -np.sum(normals * centres, axis=1, keepdims=True)])


@dataclass(frozen=True)
class Circles:
    """Circles x^2 + y^2 + d x + e y + f = 0; the residual is algebraic, the equation's left-hand side.

    It equals ``abs(distance from the centre - radius) * (distance from the centre + radius)``, unit squared.

    Examples
    --------
    >>> circle, _ = Circles().solve(np.array([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]))
    >>> Circles().squared_residuals(np.array([[2.0, 0.0]]), circle).round(6)
    array([[9.]])
    """

    name: str = "circle"
    sample_size: int = 3
    codimension: int = 1
    locally_affine: bool = False

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
