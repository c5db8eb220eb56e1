"""One model and its inliers in OpenCV's form: what takes the place of `cv2.findHomography` and `cv2.findFundamentalMat`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._core.validation import RNG, as_pairs
from ruzhash_cv.families.solving import FAMILIES
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.result import Structure
from ruzhash_cv.structures.search import refit

#: The last refits of a model: as many, with the biweight's radius at so many of its noise scales. Over 168 rendered scenes of each
#: kind the distance from the truth falls by 11 % (planes) and 18 % (rigid scenes) against the structure as found, with a threshold
#: of 3 px by 28 % and 15 %. Plain least squares on the inliers, on half of these scenes: 15 %, 11 %, 4 %, 0 %; this refit there:
#: 15 %, 20 %, 22 %, 13 %.
POLISH_ROUNDS, POLISH_RADIUS = 3, 5.0
#: LMEDS, RANSAC, RHO and USAC_DEFAULT to USAC_MAGSAC, by OpenCV's numbers.
ROBUST_METHODS = (4, 8, 16, *range(32, 39))
#: A last entry of a matrix of unit norm below this is zero: the matrix cannot be scaled to make it 1.
_ZERO = 1e-12

Array = NDArray[np.float64]
Found: TypeAlias = tuple[Array | None, NDArray[np.uint8]]


def find_homography(
    points1: ArrayLike,
    points2: ArrayLike,
    method: int | None = None,
    threshold: float | None = None,
    *,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> Found:
    """Find the homography of the strongest plane, in place of ``cv2.findHomography(points1, points2, cv2.RANSAC, 3.0)``.

    `filter_points` keeps every plane; this is the one of most evidence, refitted.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2) or (n, 1, 2)
        Corresponding points, pixels, of any real dtype.
    method : int, optional
        Makes no difference: OpenCV's robust methods (`cv2.RANSAC`, `cv2.LMEDS`, `cv2.RHO`, `cv2.USAC_MAGSAC`, ...) may stand
        here so that the arguments of an OpenCV call need no change. OpenCV's further ones (`mask`, `maxIters`, `confidence`)
        have no counterpart; leave them out.
    threshold : float, optional
        Pixels, OpenCV's `ransacReprojThreshold`, but on the symmetric transfer error: it holds in both images. None: the
        tolerance that the plane's own residuals ask for, up to 34 px, which may take neighbouring planes of a rough scene for one;
        where one precise plane is wanted, give 3.0.
    rng, n_jobs
        See `filter_points`.

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
    return _strongest("homography", points1, points2, method, threshold=threshold, rng=rng, n_jobs=n_jobs)


def find_fundamental_matrix(
    points1: ArrayLike,
    points2: ArrayLike,
    method: int | None = None,
    threshold: float | None = None,
    *,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> Found:
    """Find the fundamental matrix of the strongest motion, in place of ``cv2.findFundamentalMat``.

    `filter_points` keeps every motion; this is the one of most evidence, refitted.

    Parameters
    ----------
    points1, points2, method, rng, n_jobs
        See `find_homography`; `method` may also be `cv2.FM_RANSAC` or `cv2.FM_LMEDS`.
    threshold : float, optional
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
    return _strongest("fundamental", points1, points2, method, threshold=threshold, rng=rng, n_jobs=n_jobs)


def _strongest(kind: str, points1: ArrayLike, points2: ArrayLike, method: int | None, **options: Any) -> Found:
    first, second = as_pairs(points1, points2)
    if method is not None:
        _check_method(method)
    result = filter_points(first, second, model=kind, **options)
    if not result.models:
        return None, np.zeros((len(first), 1), np.uint8)
    matrix = result.models[0].matrix.ravel()
    with np.errstate(all="ignore"):  # what overflows is no coordinate
        residuals = np.sqrt(FAMILIES[kind].squared_residuals(np.hstack([first, second]), matrix[None])[0])
    last = matrix[8] if abs(matrix[8]) > _ZERO else 1.0
    mask = (residuals <= result.models[0].tolerance).astype(np.uint8)
    return matrix.reshape(3, 3) / last, mask[:, None]


def _check_method(method: Any) -> None:
    message = f"`method` must be one of OpenCV's robust methods, such as cv2.RANSAC, or None, got {method!r}"
    if isinstance(method, (bool, np.bool_)) or not isinstance(method, (int, np.integer)):
        raise TypeError(f"{message}; a threshold is the fourth argument, or `threshold=`")
    if method not in ROBUST_METHODS:
        raise ValueError(f"{message}; this is a robust estimator and has no other method")
