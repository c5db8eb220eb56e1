"""One model and its inliers in OpenCV's form: what takes the place of `cv2.findHomography` and `cv2.findFundamentalMat`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._arrays import Array
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import RNG, as_pairs, check_real
from ruzhash_cv.families.distances import FAMILIES
from ruzhash_cv.filtering import filter_points

#: LMEDS, RANSAC, RHO and USAC_DEFAULT to USAC_MAGSAC, by OpenCV's numbers.
ROBUST_METHODS = (4, 8, 16, *range(32, 39))
#: A last entry of a matrix of unit norm below this is zero: the matrix cannot be scaled to make it 1.
_ZERO = 1e-12

Found: TypeAlias = tuple[Array | None, NDArray[np.uint8]]


@uninterrupted
def find_homography(
    points1: ArrayLike,
    points2: ArrayLike,
    method: int | None = None,
    ransacReprojThreshold: float | None = None,
    mask: Any = None,
    maxIters: int | None = None,
    confidence: float | None = None,
    *,
    threshold: float | None = None,
    pixel: float = 1.0,
    rng: RNG = 0,
) -> Found:
    """Find the homography of the strongest plane, in place of ``cv2.findHomography(points1, points2, cv2.RANSAC, 3.0)``.

    `filter_points` keeps every plane; this is the one of most evidence.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2) or (n, 1, 2)
        Corresponding points, pixels, of any real dtype.
    ransacReprojThreshold, threshold : float, optional
        In the points' unit, one of the two: OpenCV's name and place, or ours. On the symmetric transfer error: it holds in both images.
        None: the tolerance that the plane's own residuals ask for, up to 24 px.
    method, mask, maxIters, confidence
        Ignored: `method` may be any of OpenCV's robust ones (`cv2.RANSAC`, `cv2.USAC_MAGSAC`, ...), there is one way here, and it
        knows itself when it has sampled enough.
    pixel, rng
        See `filter_points`; normalised coordinates need `pixel`, 1 / focal length.

    Returns
    -------
    model : ndarray of float64, shape (3, 3), or None
        x2 ~ H x1 with H[2, 2] = 1 (of unit norm in the rare case that H[2, 2] is 0); None where nothing was found, as with
        fewer than 8 distinct matches.
    mask : ndarray of uint8, shape (n, 1)
        1 for every match within the threshold, or the tolerance, of `model`, also where `filter_points` labels it with another
        plane that is nearer. All 0 without a model.

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> H, mask = find_homography(points, 0.5 * points + 3.0)
    >>> np.round(H, 6) + 0.0
    array([[0.5, 0. , 3. ],
           [0. , 0.5, 3. ],
           [0. , 0. , 1. ]])
    >>> mask.shape, int(mask.sum())
    ((60, 1), 60)
    """
    given = _one_threshold(method, ransacReprojThreshold, threshold)
    first, second = as_pairs(points1, points2)
    result = filter_points(first, second, model="homography", pixel=pixel, rng=rng)
    models = [model for model in result.models if not model.stationary] or result.models
    if not models:
        return _as_opencv("homography", None, first, second, 0.0)
    return _as_opencv("homography", models[0].matrix, first, second, given or models[0].tolerance)


@uninterrupted
def find_fundamental_matrix(
    points1: ArrayLike,
    points2: ArrayLike,
    method: int | None = None,
    ransacReprojThreshold: float | None = None,
    confidence: float | None = None,
    maxIters: int | None = None,
    mask: Any = None,
    *,
    threshold: float | None = None,
    pixel: float = 1.0,
    rng: RNG = 0,
) -> Found:
    """Find the fundamental matrix of the strongest motion, in place of ``cv2.findFundamentalMat``.

    `FilterResult.motions` has every motion; this is the one of most matches, planes and what is off them together. Where that is one
    plane alone, it is one of the many matrices that fit it.

    Parameters
    ----------
    points1, points2, method, confidence, maxIters, mask, pixel, rng
        See `find_homography`; `method` may also be `cv2.FM_RANSAC` or `cv2.FM_LMEDS`.
    ransacReprojThreshold, threshold : float, optional
        As for `find_homography`, but on the Sampson distance; None: the tolerance that the motion's own residuals ask for.

    Returns
    -------
    model : ndarray of float64, shape (3, 3), or None
        x2^T F x1 = 0, of rank 2, scaled as by `find_homography`; always a single matrix.
    mask : ndarray of uint8, shape (n, 1)
        As from `find_homography`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> points1 = rng.uniform(0, 500, (80, 2))
    >>> points2 = points1 + np.column_stack([rng.uniform(5, 60, 80), np.zeros(80)])  # sideways, by many depths
    >>> F, mask = find_fundamental_matrix(points1, points2)
    >>> F.shape, mask.shape, int(mask.sum())
    ((3, 3), (80, 1), 80)
    """
    given = _one_threshold(method, ransacReprojThreshold, threshold)
    first, second = as_pairs(points1, points2)
    result = filter_points(first, second, pixel=pixel, rng=rng)
    for motion in [motion for motion in result.motions if not motion.stationary] or result.motions:
        matrix = motion.matrix if motion.kind == "fundamental" else result.plane_motion(motion.parts[0])
        if matrix is not None:
            return _as_opencv("fundamental", matrix, first, second, given or motion.tolerance)
    return _as_opencv("fundamental", None, first, second, 0.0)


def _one_threshold(method: Any, reprojection: float | None, ours: float | None) -> float | None:
    if method is not None:
        _check_method(method)
    if reprojection is not None and ours is not None:
        raise TypeError(f"`threshold` and `ransacReprojThreshold` are one, got both: {ours!r} and {reprojection!r}")
    for name, value in (("ransacReprojThreshold", reprojection), ("threshold", ours)):
        if value is not None:
            return check_real(value, name)
    return None


def _as_opencv(kind: str, matrix: Array | None, points1: Array, points2: Array, tolerance: float) -> Found:
    """Return a matrix as OpenCV scales it, and the mask (n, 1) of matches within a tolerance of it."""
    if matrix is None:
        return None, np.zeros((len(points1), 1), np.uint8)
    with np.errstate(all="ignore"):  # what overflows is no coordinate
        squared = FAMILIES[kind].squared_residuals(np.hstack([points1, points2]), matrix.reshape(1, 9))[0]
    last = matrix[2, 2] if abs(matrix[2, 2]) > _ZERO else 1.0
    return matrix / last, (np.sqrt(squared) <= tolerance).astype(np.uint8)[:, None]


def _check_method(method: Any) -> None:
    message = f"`method` must be one of OpenCV's robust methods, such as cv2.RANSAC, or None, got {method!r}"
    if isinstance(method, (bool, np.bool_)) or not isinstance(method, (int, np.integer)):
        raise TypeError(f"{message}; a threshold is the fourth argument, or `threshold=`")
    if method not in ROBUST_METHODS:
        raise ValueError(f"{message}; this is a robust estimator and has no other method")
