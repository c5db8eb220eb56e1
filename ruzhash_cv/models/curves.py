"""Lines and circles of points in the plane, by their distances."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ruzhash_cv.foundation.arrays import Array, Rows


@dataclass(frozen=True)
class Lines:
    """Lines in the plane, rows (a, b, c) of a x + b y + c = 0 with a^2 + b^2 = 1; the residual is the distance.

    Examples
    --------
    >>> lines, _ = Lines().solve(np.array([[[0.0, 0.0], [1.0, 0.0]]]))
    >>> Lines().squared_residuals(np.array([[5.0, 2.0]]), lines)
    array([[4.]])
    """

    name: str = "line"
    sample_size: int = 2
    codimension: int = 1

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
        """Return lines (m, 3) with the least weighted squared distances, along the direction of largest spread."""
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
    """Circles in the plane, rows (x, y, r) of a centre and a radius; the residual is the distance from the circle.

    Examples
    --------
    >>> circle, _ = Circles().solve(np.array([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]))
    >>> Circles().squared_residuals(np.array([[3.0, 0.0]]), circle).round(6)
    array([[4.]])
    """

    name: str = "circle"
    sample_size: int = 3
    codimension: int = 1

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return circles (k, 3) through the points of each sample (s, 3, 2), and the sample (k,) of each."""
        circles = _least_squares(samples, np.ones(samples.shape[:2]))
        usable = np.isfinite(circles).all(axis=1)
        return circles[usable], np.flatnonzero(usable)

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared distances (m, n) of points (n, 2) from circles (m, 3), in the points' unit."""
        away = np.hypot(data[:, 0] - models[:, :1], data[:, 1] - models[:, 1:2])
        squared: Array = (away - models[:, 2:]) ** 2
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return circles (m, 3) of least weighted squares of x^2 + y^2 + d x + e y + f (Kasa, 1976).

        Such fits shrink short noisy arcs. `models`, if given, get one Gauss-Newton step on the weighted squared distances.
        """
        if models is None:
            return _least_squares(np.broadcast_to(data, (len(weights), *data.shape)), weights)
        towards = data - models[:, None, :2]
        away = np.maximum(np.hypot(towards[..., 0], towards[..., 1]), 1e-300)
        slopes = np.concatenate([towards / away[..., None], np.ones((*away.shape, 1))], axis=2)
        normal = np.einsum("mn,mni,mnj->mij", weights, slopes, slopes)
        steps = np.einsum("mn,mni->mi", weights * (away - models[:, 2:]), slopes)
        fitted, usable = np.full_like(models, np.nan), np.linalg.cond(normal) < 1e12
        fitted[usable] = models[usable] + np.linalg.solve(normal[usable], steps[usable, :, None])[..., 0]
        fitted[:, 2] = np.abs(fitted[:, 2])
        return fitted


def _least_squares(points: Array, weights: Array) -> Array:
    """Return circles (m, 3) fitted to points (m, n, 2) with weights (m, n); NaN if they are on a line."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        shares = (weights / weights.sum(axis=1, keepdims=True))[:, :, None]
        centres = (shares * points).sum(axis=1, keepdims=True)
        centred = points - centres
        squares = (centred**2).sum(axis=2, keepdims=True)
        spread = (shares * squares).sum(axis=1, keepdims=True)
        scatter = np.einsum("mni,mnj->mij", shares * centred, centred)
        moments = np.einsum("mni,mnj->mi", shares * centred, squares - spread)
        determinant = scatter[:, 0, 0] * scatter[:, 1, 1] - scatter[:, 0, 1] ** 2
        usable = determinant > 1e-14 * spread[:, 0, 0] ** 2
        circles = np.full((len(points), 3), np.nan)
        offsets = 0.5 * np.linalg.solve(scatter[usable], moments[usable, :, None])[:, :, 0]
        circles[usable, :2] = centres[usable, 0] + offsets
        circles[usable, 2] = np.sqrt(spread[usable, 0, 0] + (offsets**2).sum(axis=1))
    return circles
