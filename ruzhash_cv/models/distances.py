"""Residuals of given models, in pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv.core.families import FAMILIES
from ruzhash_cv.core.families.base import TwoViewFamily
from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.foundation.validation import as_pairs, as_reals


def transfer_error(points1: ArrayLike, points2: ArrayLike, homographies: ArrayLike) -> Array:
    """Return symmetric transfer errors: the larger of ``|x2 - H x1|`` and ``|x1 - H^-1 x2|`` (Hartley and Zisserman, 4.2.2).

    It is the larger one, not the sum of squares, so that a threshold on it holds in both images.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels.
    homographies : array_like, shape (3, 3) or (m, 3, 3)

    Returns
    -------
    ndarray of float64, shape (n,) or (n, m)
        Pixels. Infinite if a point maps to infinity or the homography has no inverse.

    Examples
    --------
    >>> transfer_error([[0.0, 0.0]], [[3.0, 4.0]], np.eye(3))
    array([5.])
    """
    return _distances(points1, points2, homographies, "homographies", FAMILIES["homography"])


def sampson_distance(points1: ArrayLike, points2: ArrayLike, fundamental_matrices: ArrayLike) -> Array:
    """Return Sampson distances ``|x2' F x1| / sqrt((F x1)_1^2 + (F x1)_2^2 + (F' x2)_1^2 + (F' x2)_2^2)``, in pixels.

    The first-order approximation of how far both points must move, together, to satisfy the epipolar constraint
    (Hartley and Zisserman, equation 11.9, unsquared).

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels.
    fundamental_matrices : array_like, shape (3, 3) or (m, 3, 3)
        ``x2' F x1 = 0``.

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
    return _distances(points1, points2, fundamental_matrices, "fundamental_matrices", FAMILIES["fundamental"])


def _distances(points1: ArrayLike, points2: ArrayLike, matrices: ArrayLike, name: str, family: TwoViewFamily) -> Array:
    first, second = as_pairs(points1, points2)
    stack = as_reals(matrices, name, "(3, 3) or (m, 3, 3)")
    if stack.shape[-2:] != (3, 3) or stack.ndim > 3:
        raise ValueError(f"`{name}` must have shape (3, 3) or (m, 3, 3), got {stack.shape}")
    with np.errstate(all="ignore"):  # what overflows has no inverse
        squared = family.squared_residuals(np.hstack([first, second]), np.array(stack.reshape(-1, 9), order="C"))
    residuals: Array = np.sqrt(squared).T
    return residuals[:, 0] if stack.ndim == 2 else residuals
