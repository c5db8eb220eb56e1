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
    residuals: NDArray[np.float64] = residual_kernel(
        np.hstack([first, second]), packed, np.full(len(packed), kind, np.uint8), np.inf
    )
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
def model_residual(packed: Any, kinds: Any, column: int, pairs: Any, row: int, limit: float) -> float:
    """Return the residual of one of `pairs` (n, 4) to one of the packed models; infinite beyond `limit`.

    Indices go in, not rows: a view of a row costs more than the residual.
    """
    x1, y1, x2, y2 = pairs[row, 0], pairs[row, 1], pairs[row, 2], pairs[row, 3]
    if kinds[column] == HOMOGRAPHY:
        return _homography_residual(packed, column, x1, y1, x2, y2, limit)
    return _fundamental_residual(packed, column, x1, y1, x2, y2, limit)


@jit
def _homography_residual(packed: Any, column: int, x1: float, y1: float, x2: float, y2: float, limit: float) -> float:
    """Return the symmetric transfer error, or infinity as soon as it is known to exceed `limit`."""
    w = 1.0 / (packed[column, 6] * x1 + packed[column, 7] * y1 + packed[column, 8])
    dx = (packed[column, 0] * x1 + packed[column, 1] * y1 + packed[column, 2]) * w - x2
    dy = (packed[column, 3] * x1 + packed[column, 4] * y1 + packed[column, 5]) * w - y2
    forward = dx * dx + dy * dy
    if not forward <= limit * limit:
        return np.inf
    w = 1.0 / (packed[column, 15] * x2 + packed[column, 16] * y2 + packed[column, 17])
    dx = (packed[column, 9] * x2 + packed[column, 10] * y2 + packed[column, 11]) * w - x1
    dy = (packed[column, 12] * x2 + packed[column, 13] * y2 + packed[column, 14]) * w - y1
    backward = dx * dx + dy * dy
    if not backward <= limit * limit:
        return np.inf
    return float(np.sqrt(max(forward, backward)))


@jit
def _fundamental_residual(packed: Any, column: int, x1: float, y1: float, x2: float, y2: float, limit: float) -> float:
    """Return the Sampson distance, or infinity if it exceeds `limit`."""
    a = packed[column, 0] * x1 + packed[column, 1] * y1 + packed[column, 2]
    b = packed[column, 3] * x1 + packed[column, 4] * y1 + packed[column, 5]
    c = packed[column, 6] * x1 + packed[column, 7] * y1 + packed[column, 8]
    d = packed[column, 0] * x2 + packed[column, 3] * y2 + packed[column, 6]
    e = packed[column, 1] * x2 + packed[column, 4] * y2 + packed[column, 7]
    numerator = x2 * a + y2 * b + c
    denominator = a * a + b * b + d * d + e * e
    if not numerator * numerator <= limit * limit * denominator:
        return np.inf
    # An epipole in both images at once satisfies any F: no evidence for the match, but no distance either.
    return float(abs(numerator) / np.sqrt(denominator)) if denominator > 0.0 else 0.0


@jit
def residual_kernel(pairs: Any, packed: Any, kinds: Any, limit: float) -> Any:
    """Return residuals (n, m) of correspondences (n, 4) to packed models; infinite beyond `limit`.

    The first pass has no branches and runs down columns of coefficients, so that it compiles to vector instructions; most pairs
    end there. The second finishes the few that are within the limit.
    """
    residuals = np.empty((len(pairs), len(packed)))
    begin = 0
    while begin < len(packed):
        end = begin
        while end < len(packed) and kinds[end] == kinds[begin]:
            end += 1
        columns = np.ascontiguousarray(packed[begin:end, :9].T)
        for row in range(len(pairs)):
            if kinds[begin] == HOMOGRAPHY:
                _forward_errors(columns, pairs, row, residuals[row, begin:end])
            else:
                _sampson_errors(columns, pairs, row, residuals[row, begin:end])
            for k in range(begin, end):
                if residuals[row, k] <= 1.0001 * limit * limit:
                    residuals[row, k] = model_residual(packed, kinds, k, pairs, row, limit)
                else:
                    residuals[row, k] = np.inf
        begin = end
    return residuals


@jit
def _forward_errors(c: Any, pairs: Any, row: int, squared: Any) -> None:
    """Write |x2 - H x1|^2 for all homographies, coefficients in the rows of `c`."""
    x1, y1, x2, y2 = pairs[row, 0], pairs[row, 1], pairs[row, 2], pairs[row, 3]
    c0, c1, c2, c3, c4, c5, c6, c7, c8 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]
    for k in range(len(squared)):
        w = 1.0 / (c6[k] * x1 + c7[k] * y1 + c8[k])
        dx = (c0[k] * x1 + c1[k] * y1 + c2[k]) * w - x2
        dy = (c3[k] * x1 + c4[k] * y1 + c5[k]) * w - y2
        squared[k] = dx * dx + dy * dy


@jit
def _sampson_errors(c: Any, pairs: Any, row: int, squared: Any) -> None:
    """Write squared Sampson distances to all fundamental matrices, coefficients in the rows of `c`."""
    x1, y1, x2, y2 = pairs[row, 0], pairs[row, 1], pairs[row, 2], pairs[row, 3]
    c0, c1, c2, c3, c4, c5, c6, c7, c8 = c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]
    for k in range(len(squared)):
        a = c0[k] * x1 + c1[k] * y1 + c2[k]
        b = c3[k] * x1 + c4[k] * y1 + c5[k]
        d = c0[k] * x2 + c3[k] * y2 + c6[k]
        e = c1[k] * x2 + c4[k] * y2 + c7[k]
        f = x2 * a + y2 * b + c6[k] * x1 + c7[k] * y1 + c8[k]
        squared[k] = f * f / (a * a + b * b + d * d + e * e + 1e-300)
