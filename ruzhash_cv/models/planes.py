"""The family of homographies: planes, and what a camera sees that only turns."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.kernels.fit import squared_errors, squared_turns
from ruzhash_cv.models.base import OF_PLANE
from ruzhash_cv.models.linear import has_rays, homogeneous, unit_norm
from ruzhash_cv.models.rounds import TRANSFORM, fits, reweighted_in_rounds
from ruzhash_cv.models.weighting import Law

#: A homography of unit norm with a smaller determinant has no inverse worth the name.
_SINGULAR = 1e-9


@dataclass(frozen=True)
class Homographies:
    """Homographies of correspondences (x1, y1, x2, y2), rows of 9; the residual is the symmetric transfer error.

    Rows with rays, see `models.linear`, have homographies of rays.

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> models, _ = Homographies().solve(np.hstack([square, 2 * square])[None])
    >>> (models / models[0, 8]).round(6).reshape(3, 3).diagonal()
    array([2., 2., 1.])
    """

    name: str = "homography"
    sample_size: int = 4
    codimension: int = 2
    is_plane: bool = True
    kernel: int = OF_PLANE

    def solve(self, samples: Array) -> tuple[Array, Rows]:
        """Return homographies (k, 9) of unit norm of samples (s, 4, d) near the unit square, and the sample (k,) of each."""
        if has_rays(samples):
            models = _through_four_rays(homogeneous(samples))
        else:
            first, second = (np.ascontiguousarray(samples[..., at : at + 2], np.float32) for at in (0, 2))
            # With nothing to solve there would be nothing to join.
            solved = list(map(cv2.getPerspectiveTransform, first, second)) or [np.zeros((0, 3))]
            models = unit_norm(np.concatenate(solved).reshape(-1, 9).astype(np.float64, copy=False))
        a, b, c, d, e, f, g, h, i = models.T
        # Of what is not finite the comparison is false.
        usable = np.flatnonzero(np.abs(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)) > _SINGULAR)
        return models[usable], usable

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared symmetric transfer errors (m, n) of correspondences (n, d); infinite if a point has no image."""
        squared = np.empty((models.shape[0], data.shape[0]))
        if has_rays(data):
            squared_turns(homogeneous(data), np.ascontiguousarray(models), squared)
        else:
            squared_errors(np.ascontiguousarray(data.T), np.ascontiguousarray(models), squared)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return the normalised direct linear transform of correspondences (Hartley and Zisserman, algorithm 4.2).

        With `models`, equations are weighted by the points' depths, so that the algebraic error becomes geometric.
        """
        start = np.tile(np.identity(3).ravel(), (len(weights), 1)) if models is None else models
        return fits(TRANSFORM, data, weights, start)

    def step(self, data: Array, weights: Array, models: Array) -> Array:
        """Return the direct linear transform with equations weighted by the points' depths under `models`."""
        return self.fit(data, weights, models)

    def reweighted(
        self, data: Array, weights: Array, models: Array, limits: Array, law: Law, n_rounds: int, excluded: Mask
    ) -> tuple[Array, Array]:
        """See `TwoViewFamily`."""
        return reweighted_in_rounds(TRANSFORM, data, weights, models, limits, law, n_rounds, excluded)

    def to_pixels(self, models: Array, into1: Array, into2: Array) -> Array:
        """Return homographies (m, 9) of undistorted pixels from homographies of the coordinates that `into1`, `into2` map to."""
        return unit_norm((np.linalg.inv(into2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))


def _through_four_rays(points: Array) -> Array:
    """Return the homographies (s, 9) of samples of rays (6, 4, s), which OpenCV does not solve: a fisheye's have no image plane.

    H = sum of w_i q_i l_i' over three points p_i and their partners q_i: l_i is the line through the other two, so that p_i goes to
    q_i. The fourth p goes to the fourth q if w_i is the ratio of what such lines in the second and in the first image are there.
    """
    with np.errstate(all="ignore"):
        (lines, own), (_, other) = _opposite_lines(*points[:3]), _opposite_lines(*points[3:])
        weights = other * own[[1, 2, 0]] * own[[2, 0, 1]]
        return unit_norm(np.einsum("uis,vis->suv", weights * points[3:, :3], lines).reshape(-1, 9))


def _opposite_lines(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Return the lines (3, 3, s) opposite to each of the first three of points (4, s), and what they are at the fourth, (3, s)."""
    j, k = [1, 2, 0], [2, 0, 1]
    lines = np.array([y[j] * z[k] - z[j] * y[k], z[j] * x[k] - x[j] * z[k], x[j] * y[k] - y[j] * x[k]])
    return lines, lines[0] * x[3] + lines[1] * y[3] + lines[2] * z[3]
