"""The family of homographies: planes, and what a camera sees that only turns."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from ruzhash_cv.core.families.base import OF_PLANE, residuals_of_kind
from ruzhash_cv.core.families.linear import has_rays, homogeneous, unit_norm
from ruzhash_cv.core.families.rounds import TRANSFORM, fits, reweighted_in_rounds
from ruzhash_cv.core.families.weighting import Law
from ruzhash_cv.core.kernels.rays import solve_four
from ruzhash_cv.foundation.arrays import RAYS1, RAYS2, Array, Mask, Rows

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
            # OpenCV does not solve these: a fisheye's have no image plane.
            models = np.empty((len(samples), 9))
            solve_four(np.ascontiguousarray(samples[..., RAYS1.start : RAYS2.stop]), models)
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
        return residuals_of_kind(OF_PLANE, data, models)

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


def squared_noise(data: Array, plane: Array) -> Array:
    """Return squared Sampson distances (n,) of correspondences (n, d) to a homography (9,), infinite if a point has no image.

    Points that are off by s in both images have transfer errors of covariance s^2 (I + A A'), with A the derivative of the map: an
    ellipse if it stretches (Hartley and Zisserman, section 4.2.6). The Sampson distance weights an error by the inverse.
    """
    matrix, points = plane.reshape(3, 3), homogeneous(data)
    first, second = points[:3], points[3:]
    with np.errstate(all="ignore"):
        mapped = matrix @ first
        if has_rays(data):
            # Slopes S across both rays, where a length is an angle; a ray is as long as a radian is.
            one, two = first / _lengths(first), second / _lengths(second)
            along, ahead = (two * mapped).sum(axis=0), matrix @ one
            sizes = np.where(np.sign(np.linalg.det(matrix)) * along > 0.0, _lengths(second) / _lengths(mapped), np.nan)
            errors, area = (mapped - along * two) * sizes, np.cross(matrix[[1, 2, 0]], matrix[[2, 0, 1]]) @ one
            sloped, area = matrix.T @ errors, (two * area).sum(axis=0) * sizes**2
            sloped = (sloped - one * (one * sloped).sum(axis=0)) * sizes
            spread = np.square(matrix).sum() - np.square([ahead, matrix.T @ two]).sum(axis=(0, 1))
            spread = (spread + np.square((two * ahead).sum(axis=0))) * sizes**2
        else:
            places = mapped[:2] / mapped[2]
            errors = places - second[:2]
            slopes = (matrix[:2, :2, None] - places[:, None] * matrix[2, :2, None]) / mapped[2]
            sloped, spread = (slopes * errors[:, None]).sum(axis=0), np.square(slopes).sum(axis=(0, 1))
            area = slopes[0, 0] * slopes[1, 1] - slopes[0, 1] * slopes[1, 0]
        # Of errors e: e' (I + S S')^-1 e, from S' e, the sum of squares of S, and its determinant.
        squared = (1.0 + spread) * np.square(errors).sum(axis=0) - np.square(sloped).sum(axis=0)
        squared /= 1.0 + spread + area**2
    return np.where(np.isfinite(squared), squared, np.inf)


def _lengths(vectors: Array) -> Array:
    """Return the lengths (n,) of vectors (3, n)."""
    return np.asarray(np.sqrt(np.square(vectors).sum(axis=0)))
