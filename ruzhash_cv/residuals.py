"""Distances of correspondences from models, in pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._jit import jit
from ruzhash_cv._validation import as_points, check_same_length
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY


def transfer_error(points1: ArrayLike, points2: ArrayLike, homographies: ArrayLike) -> NDArray[np.float64]:
    """Return symmetric transfer errors: the larger of |x2 - H x1| and |x1 - H^-1 x2| (Hartley and Zisserman, 4.2.2).

    The larger, not the sum of squares: a threshold on it holds in both images.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels.
    homographies : array_like, shape (3, 3) or (m, 3, 3)

    Returns
    -------
    ndarray of float64, shape (n,) or (n, m)
        Pixels. Infinite where a point maps to infinity or the homography has no inverse.

    Examples
    --------
    >>> transfer_error([[0.0, 0.0]], [[3.0, 4.0]], np.eye(3))
    array([5.])
    """
    return _distances(points1, points2, homographies, HOMOGRAPHY)


def sampson_distance(points1: ArrayLike, points2: ArrayLike, fundamental_matrices: ArrayLike) -> NDArray[np.float64]:
    """Return Sampson distances |x2' F x1| / sqrt((F x1)_1^2 + (F x1)_2^2 + (F' x2)_1^2 + (F' x2)_2^2).

    The first-order approximation of how far both points must move, together, to satisfy the epipolar constraint
    (Hartley and Zisserman, equation 11.9, unsquared).

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels.
    fundamental_matrices : array_like, shape (3, 3) or (m, 3, 3)

    Returns
    -------
    ndarray of float64, shape (n,) or (n, m)
        Pixels.

    Examples
    --------
    >>> sideways = [[0.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]
    >>> sampson_distance([[0.0, 0.0]], [[5.0, 0.0]], sideways)
    array([0.])
    """
    return _distances(points1, points2, fundamental_matrices, FUNDAMENTAL)


def _distances(points1: ArrayLike, points2: ArrayLike, matrices: ArrayLike, kind: int) -> NDArray[np.float64]:
    first, second = as_points(points1, "points1"), as_points(points2, "points2")
    check_same_length(first, second, "`points1` and `points2`")
    stack = np.asarray(matrices, dtype=np.float64)
    if stack.shape[-2:] != (3, 3) or stack.ndim > 3:
        raise ValueError(f"models must have shape (3, 3) or (m, 3, 3), got {stack.shape}")
    packed = pack_models(stack.reshape(-1, 3, 3), kind)
    residuals = residual_kernel(np.hstack([first, second]), packed, np.full(len(packed), kind, np.uint8), np.inf)
    return residuals[:, 0] if stack.ndim == 2 else residuals


def pack_models(matrices: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
    """Return models as rows of 18 numbers for the kernels: the matrix, and a homography's inverse."""
    packed = np.zeros((len(matrices), 18))
    packed[:, :9] = matrices.reshape(-1, 9)
    if kind == HOMOGRAPHY and len(matrices):
        # The adjugate is the inverse up to scale, and exists for singular matrices too.
        a, b, c = matrices[:, 0], matrices[:, 1], matrices[:, 2]
        adjugate = np.stack([np.cross(b, c), np.cross(c, a), np.cross(a, b)], axis=2)
        packed[:, 9:] = adjugate.reshape(-1, 9)
    return packed


@jit
def homography_residual(model: Any, x1: float, y1: float, x2: float, y2: float, limit: float) -> float:
    """Return the symmetric transfer error, or infinity as soon as it is known to exceed `limit`."""
    w = model[6] * x1 + model[7] * y1 + model[8]
    dx = (model[0] * x1 + model[1] * y1 + model[2]) / w - x2
    dy = (model[3] * x1 + model[4] * y1 + model[5]) / w - y2
    forward = dx * dx + dy * dy
    if not forward <= limit * limit:
        return np.inf
    w = model[15] * x2 + model[16] * y2 + model[17]
    dx = (model[9] * x2 + model[10] * y2 + model[11]) / w - x1
    dy = (model[12] * x2 + model[13] * y2 + model[14]) / w - y1
    backward = dx * dx + dy * dy
    if not backward <= limit * limit:
        return np.inf
    return float(np.sqrt(max(forward, backward)))


@jit
def fundamental_residual(model: Any, x1: float, y1: float, x2: float, y2: float, limit: float) -> float:
    """Return the Sampson distance, or infinity if it exceeds `limit`."""
    a = model[0] * x1 + model[1] * y1 + model[2]
    b = model[3] * x1 + model[4] * y1 + model[5]
    c = model[6] * x1 + model[7] * y1 + model[8]
    d = model[0] * x2 + model[3] * y2 + model[6]
    e = model[1] * x2 + model[4] * y2 + model[7]
    numerator = x2 * a + y2 * b + c
    denominator = a * a + b * b + d * d + e * e
    if not numerator * numerator <= limit * limit * denominator:
        return np.inf
    # An epipole in both images at once satisfies any F: no evidence for the match, but no distance either.
    return float(abs(numerator) / np.sqrt(denominator)) if denominator > 0.0 else 0.0


@jit
def residual_kernel(pairs: Any, packed: Any, kinds: Any, limit: float) -> Any:
    """Return residuals (n, m) of correspondences (n, 4) to packed models; infinite beyond `limit`."""
    n, m = len(pairs), len(packed)
    residuals = np.empty((n, m))
    for row in range(n):
        x1, y1, x2, y2 = pairs[row, 0], pairs[row, 1], pairs[row, 2], pairs[row, 3]
        for column in range(m):
            if kinds[column] == HOMOGRAPHY:
                residuals[row, column] = homography_residual(packed[column], x1, y1, x2, y2, limit)
            else:
                residuals[row, column] = fundamental_residual(packed[column], x1, y1, x2, y2, limit)
    return residuals
