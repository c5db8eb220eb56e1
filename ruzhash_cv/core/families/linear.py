"""What all families of two views share: points and rays in homogeneous coordinates, and matrices of unit norm.

A point is three homogeneous coordinates: (x, y, 1) of a pixel, a ray if the cameras are known. Rows of such correspondences have ten
columns: the four coordinates, the ray of the first image and the ray of the second. A ray is as long as an angle of one radian is there
in the unit of the coordinates, so that residuals are lengths in the images in every direction, also behind a fisheye.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv.core.kernels.fit import write_unit_norm
from ruzhash_cv.foundation.arrays import COORDINATES, RAYS1, RAYS2, Array

_N_COORDINATES: int = COORDINATES.stop


def check_models(models: Array) -> None:
    """Raise unless models are rows of 9: kernels do not check their indices."""
    if models.ndim != 2 or models.shape[1] != 9:
        raise ValueError(f"models must have shape (m, 9), got {models.shape}")


def has_rays(data: Array) -> bool:
    """Return whether rows (..., 10) hold rays, beside the four coordinates."""
    n_columns: int = data.shape[-1]
    if n_columns not in (_N_COORDINATES, RAYS2.stop):  # kernels do not check their indices
        raise ValueError(f"correspondences have 4 columns, or 10 with rays, got {n_columns}")
    return n_columns > _N_COORDINATES


def homogeneous(data: Array) -> Array:
    """Return both points of correspondences (n, 4) or (n, 10) as rows (6, n) of coordinates, of samples (s, k, d) as (6, k, s)."""
    if has_rays(data):
        return np.ascontiguousarray(data.T[RAYS1.start : RAYS2.stop])
    points = np.ones((6, *data.T.shape[1:]))
    points[[0, 1, 3, 4]] = data.T
    return points


def in_columns(data: Array) -> Array:
    """Return points (4, n), or rays (6, n), of correspondences (n, 4) or (n, 10)."""
    return homogeneous(data) if has_rays(data) else np.ascontiguousarray(data.T)


def cross_matrix(vector: Array) -> Array:
    """Return [v]_x (3, 3), the matrix of cross products with a vector."""
    x, y, z = vector.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def crossed(first: Array, second: Array) -> Array:
    """Return cross products (3, n)."""
    (x, y, z), (u, v, w) = first, second
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def directions(rays: Array) -> Array:
    """Return rays of length 1."""
    return np.asarray(rays / np.linalg.norm(rays, axis=-1, keepdims=True))


def unit_norm(models: Array) -> Array:
    """Return models (m, 9) divided by their Euclidean norms; a zero model becomes NaN."""
    models = np.ascontiguousarray(models)
    scaled = np.empty(models.shape)
    write_unit_norm(models, scaled)
    return scaled


def carried(models: Array, into1: Array, into2: Array) -> Array:
    """Return A2' M A1 (m, 9) of unit norm: a bilinear form of points, for the points that A1, A2 (3, 3) brought to the models'."""
    return unit_norm((into2.swapaxes(-1, -2) @ models.reshape(-1, 3, 3) @ into1).reshape(-1, 9))
