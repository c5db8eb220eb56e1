"""Distances of correspondences from models, in pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._jit import jit
from ruzhash_cv._validation import as_points, as_reals, check_same_length
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY

#: Squared residuals of this size and more are infinite.
_FAR = 1e300


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
    return _distances(points1, points2, homographies, "homographies", HOMOGRAPHY)


def sampson_distance(points1: ArrayLike, points2: ArrayLike, fundamental_matrices: ArrayLike) -> NDArray[np.float64]:
    """Return Sampson distances |x2' F x1| / sqrt((F x1)_1^2 + (F x1)_2^2 + (F' x2)_1^2 + (F' x2)_2^2).

    The first-order approximation of how far both points must move, together, to satisfy the epipolar constraint
    (Hartley and Zisserman, equation 11.9, unsquared).

    Parameters
    ----------
    points1, points2
        See `transfer_error`.
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
    return _distances(points1, points2, fundamental_matrices, "fundamental_matrices", FUNDAMENTAL)


def _distances(
    points1: ArrayLike, points2: ArrayLike, matrices: ArrayLike, name: str, kind: int
) -> NDArray[np.float64]:
    first, second = as_points(points1, "points1"), as_points(points2, "points2")
    check_same_length(first, second, "`points1` and `points2`")
    stack = as_reals(matrices, name, "(3, 3) or (m, 3, 3)")
    if stack.shape[-2:] != (3, 3) or stack.ndim > 3:
        raise ValueError(f"`{name}` must have shape (3, 3) or (m, 3, 3), got {stack.shape}")
    with np.errstate(all="ignore"):  # what overflows has no inverse
        packed = pack_models(stack.reshape(-1, 3, 3), kind)
    points = np.ascontiguousarray(np.hstack([first, second]).T)
    residuals: NDArray[np.float64] = residual_kernel(points, packed, np.full(len(packed), kind, np.uint8)).T
    return residuals[:, 0] if stack.ndim == 2 else residuals


def pack_models(matrices: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
    """Return models as rows of 18 numbers for the kernels: the matrix, and a homography's inverse."""
    packed = np.zeros((len(matrices), 18))
    packed[:, :9] = matrices.reshape(-1, 9)
    if kind == HOMOGRAPHY and len(matrices):
        # The adjugate is the inverse up to scale, and exists for singular matrices too: cross products of the rows.
        one, two = [1, 2, 0], [2, 0, 1]
        b, c = matrices[:, one], matrices[:, two]
        crosses = b[..., one] * c[..., two] - b[..., two] * c[..., one]
        packed[:, 9:] = crosses.transpose(0, 2, 1).reshape(-1, 9)
    return packed


@jit
def squared_residuals(points: Any, packed: Any, kinds: Any, column: int, squared: Any) -> None:
    """Write the squared residuals of all correspondences (4, n) to one packed model; NaN or huge where there is none.

    Loops without branches over rows of coordinates: they compile to vector instructions, an order of magnitude faster than a
    function of one correspondence and one model.
    """
    if kinds[column] == HOMOGRAPHY:
        _squared_transfer_errors(points, packed, column, squared)
    else:
        _squared_sampson_distances(points, packed, column, squared)


@jit
def near_residuals(points: Any, packed: Any, kinds: Any, column: int, limit: float, near: Any, squared: Any) -> int:
    """Write the rows whose squared residual to one packed model is at most `limit`, and these; return how many they are.

    What `squared_residuals` gives, for less: few are near a homography in one image, and only these are looked at in the other.
    """
    count: Any = np.int64(0)
    if kinds[column] == HOMOGRAPHY:
        _squared_forward_errors(points, packed, column, squared)
        for row in range(points.shape[1]):
            if squared[row] <= limit:
                backward = _squared_backward_error(points, packed, column, row)
                # A comparison with NaN is false.
                larger = squared[row] if backward <= squared[row] else backward
                if larger <= limit:
                    near[count], squared[count] = row, larger
                    count += 1
    else:
        _squared_sampson_distances(points, packed, column, squared)
        for row in range(points.shape[1]):
            if squared[row] <= limit:
                near[count], squared[count] = row, squared[row]
                count += 1
    return int(count)


@jit
def _squared_transfer_errors(points: Any, packed: Any, column: int, squared: Any) -> None:
    _squared_forward_errors(points, packed, column, squared)
    for row in range(points.shape[1]):
        backward = _squared_backward_error(points, packed, column, row)
        squared[row] = squared[row] if backward <= squared[row] else backward


@jit
def _squared_forward_errors(points: Any, packed: Any, column: int, squared: Any) -> None:
    m = packed
    a, b, c, d, e, f = m[column, 0], m[column, 1], m[column, 2], m[column, 3], m[column, 4], m[column, 5]
    g, h, i = m[column, 6], m[column, 7], m[column, 8]
    for row in range(points.shape[1]):
        x, y = points[0, row], points[1, row]
        w = 1.0 / (g * x + h * y + i)
        dx, dy = (a * x + b * y + c) * w - points[2, row], (d * x + e * y + f) * w - points[3, row]
        forward = dx * dx + dy * dy
        # Comparisons with NaN are false: what has no image in the second image is far, whatever it has in the first.
        squared[row] = forward if forward < _FAR else _FAR


@jit
def _squared_backward_error(points: Any, packed: Any, column: int, row: int) -> float:
    m, x, y = packed, points[2, row], points[3, row]
    w = 1.0 / (m[column, 15] * x + m[column, 16] * y + m[column, 17])
    dx = (m[column, 9] * x + m[column, 10] * y + m[column, 11]) * w - points[0, row]
    dy = (m[column, 12] * x + m[column, 13] * y + m[column, 14]) * w - points[1, row]
    return float(dx * dx + dy * dy)


@jit
def _squared_sampson_distances(points: Any, packed: Any, column: int, squared: Any) -> None:
    m = packed
    a, b, c, d, e, f = m[column, 0], m[column, 1], m[column, 2], m[column, 3], m[column, 4], m[column, 5]
    g, h, i = m[column, 6], m[column, 7], m[column, 8]
    for row in range(points.shape[1]):
        x1, y1, x2, y2 = points[0, row], points[1, row], points[2, row], points[3, row]
        p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
        r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
        numerator = x2 * p + y2 * q + g * x1 + h * y1 + i
        # The last term: both points in the epipoles satisfy any F, 0 / 0; no evidence for the match, but no distance either.
        squared[row] = numerator * numerator / (p * p + q * q + r * r + s * s + 1e-300)


@jit
def residual_kernel(points: Any, packed: Any, kinds: Any) -> Any:
    """Return residuals (m, n) of correspondences (4, n) to packed models; infinite where there is none."""
    residuals = np.empty((len(packed), points.shape[1]))
    squared = np.empty(points.shape[1])
    for column in range(len(packed)):
        squared_residuals(points, packed, kinds, column, squared)
        for row in range(points.shape[1]):
            residuals[column, row] = np.sqrt(squared[row]) if squared[row] < _FAR else np.inf
    return residuals
