"""One model and its inliers in OpenCV's form: what takes the place of `cv2.findHomography` and `cv2.findFundamentalMat`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import RNG, as_generator, as_pairs, check_real
from ruzhash_cv.consensus import Consensus, largest_consensus, models_tried, precise
from ruzhash_cv.families.base import Models
from ruzhash_cv.families.distances import FAMILIES
from ruzhash_cv.filtering import PARAMETERS, STAGES, Model, families_of, subsample
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.problem import Problem
from ruzhash_cv.reasons import MIN_MATCHES
from ruzhash_cv.search import Estimate, find_structures, held_by

#: LMEDS, RANSAC, RHO and USAC_DEFAULT to USAC_MAGSAC, by OpenCV's numbers.
ROBUST_METHODS = (4, 8, 16, *range(32, 39))
#: Pixels: OpenCV's own threshold where none is given.
THRESHOLD = 3.0
#: A last entry of a matrix of unit norm below this is zero: the matrix cannot be scaled to make it 1.
_ZERO = 1e-12

Found: TypeAlias = tuple[Array | None, NDArray[np.uint8]]


@uninterrupted
def find_homography(
    points1: ArrayLike | None = None,
    points2: ArrayLike | None = None,
    method: int | None = None,
    ransacReprojThreshold: float | None = None,
    mask: Any = None,
    maxIters: int | None = None,
    confidence: float | None = None,
    *,
    threshold: float | None = None,
    pixel: float = 1.0,
    rng: RNG = 0,
    srcPoints: ArrayLike | None = None,
    dstPoints: ArrayLike | None = None,
) -> Found:
    """Find the homography that most matches agree with, in place of ``cv2.findHomography(points1, points2, cv2.RANSAC, 3.0)``.

    Of all homographies that the search tries, refitted, some have nearly the most matches within the threshold. The likeliest of these
    is returned. `filter_points` finds every plane.

    Parameters
    ----------
    points1, points2, srcPoints, dstPoints : array_like, shape (n, 2) or (n, 1, 2)
        Corresponding points, pixels, of any real dtype, under our names or under OpenCV's.
    ransacReprojThreshold, threshold : float, optional
        In the points' unit, under OpenCV's name or under ours; by default 3 pixels, as in OpenCV. It bounds the symmetric transfer
        error, so it holds in both images.
    method, mask, maxIters, confidence
        Ignored. `method` may be any of OpenCV's robust ones (`cv2.RANSAC`, `cv2.USAC_MAGSAC`, ...). There is one method here, and
        it decides by itself how much it samples.
    pixel, rng
        See `filter_points`; normalised coordinates need `pixel`, 1 / focal length.

    Returns
    -------
    model : ndarray of float64, shape (3, 3), or None
        x2 ~ H x1 with H[2, 2] = 1 (of unit norm in the rare case that H[2, 2] is 0); None where nothing was found, as with
        fewer than 8 distinct matches.
    mask : ndarray of uint8, shape (n, 1)
        1 for every match within the threshold of `model`. All 0 without a model.

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
    first = _one_of(points1, srcPoints, "points1", "srcPoints")
    second = _one_of(points2, dstPoints, "points2", "dstPoints")
    pixel = check_real(pixel, "pixel")
    limit = _one_threshold(method, ransacReprojThreshold, threshold, pixel)
    return _find("homography", first, second, limit, pixel, rng)


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
    """Find the fundamental matrix that most matches agree with, in place of ``cv2.findFundamentalMat``.

    As `find_homography` finds its model; `FilterResult.motions` has every motion. Of a scene that is one plane it is one of the many
    matrices that fit it.

    Parameters
    ----------
    points1, points2, method, confidence, maxIters, mask, pixel, rng
        See `find_homography`; `method` may also be `cv2.FM_RANSAC` or `cv2.FM_LMEDS`.
    ransacReprojThreshold, threshold : float, optional
        As for `find_homography`, but on the Sampson distance.

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
    pixel = check_real(pixel, "pixel")
    limit = _one_threshold(method, ransacReprojThreshold, threshold, pixel)
    return _find("fundamental", points1, points2, limit, pixel, rng)


def _find(kind: Model, points1: ArrayLike, points2: ArrayLike, threshold: float, pixel: float, rng: RNG) -> Found:
    """Return the model of a kind that most matches agree with, and their mask."""
    (first, second), generator = as_pairs(points1, points2), as_generator(rng)
    with np.errstate(under="ignore"):  # whatever the caller's settings
        matches = MatchSet.of(first, second, PARAMETERS.unit * pixel)
        matrix = find_matrix(kind, matches, threshold, PARAMETERS, generator)
    return _as_opencv(kind, matrix, first, second, threshold)


def find_matrix(
    kind: Model, matches: MatchSet, threshold: float, parameters: Parameters, rng: np.random.Generator
) -> Array | None:
    """Return the matrix (3, 3) of pixels; None for too few matches, and where no structure is found."""
    if matches.n_groups < MIN_MATCHES:
        return None
    searched, rows = subsample(matches, parameters.max_searched, STAGES, rng)
    problem, estimate = _search(kind, searched, parameters, rng)
    if len(estimate.structures) == 0:
        return None
    families = problem.families
    family_id, limit = len(families) - 1, max(threshold * matches.frame.scale, 1e-300)
    tried = models_tried(estimate, problem, family_id, rng)
    if len(tried) == 0:
        return None
    repeats = np.bincount(matches.where, minlength=len(matches))
    moving = ~_overlaid(estimate, replace(problem, matches=matches))

    def consensus(of: Rows) -> Consensus:
        return Consensus(families[family_id], matches.take(of), repeats[of], limit, parameters)

    largest = largest_consensus(consensus(rows[moving[rows]]), tried, rng)
    model = precise(consensus(np.flatnonzero(moving)), largest, problem.radii, family_id)
    found = Models(model[None], np.array([family_id], np.uint8))
    return np.asarray(families.to_pixels(found, matches.into)[0])


def _search(
    kind: Model, matches: MatchSet, parameters: Parameters, rng: np.random.Generator
) -> tuple[Problem, Estimate]:
    """Return what is searched, and what was found; where motions alone are not found, planes may still propose one."""
    for model in (kind,) if kind == "homography" else (kind, "auto"):
        problem = Problem.of(matches, families_of(model), parameters, STAGES, rng)
        estimate = find_structures(problem, rng)
        if len(estimate.structures) > 0:
            break
    return problem, estimate


def _overlaid(estimate: Estimate, problem: Problem) -> NDArray[np.bool_]:
    """Tell which matches (n,) are an overlay: they did not move, and structures that did explain more."""
    structures, stationary = estimate.structures, estimate.structures.stationary
    if not structures.weights[stationary].sum() < structures.weights[~stationary].sum():
        return np.zeros(len(problem.matches), bool)
    return np.asarray(held_by(structures.take(np.flatnonzero(stationary)), problem).any(axis=0))


def _one_of(ours: ArrayLike | None, theirs: ArrayLike | None, name: str, other: str) -> ArrayLike:
    """Return the one of two names of an argument that is given."""
    if (ours is None) == (theirs is None):
        raise TypeError(f"`{name}` must be given, or `{other}`, OpenCV's name of it, and not both")
    return theirs if ours is None else ours  # type: ignore[return-value]


def _one_threshold(method: Any, reprojection: float | None, ours: float | None, pixel: float) -> float:
    if method is not None:
        _check_method(method)
    if reprojection is not None and ours is not None:
        raise TypeError(f"`threshold` and `ransacReprojThreshold` are one, got both: {ours!r} and {reprojection!r}")
    for name, value in (("ransacReprojThreshold", reprojection), ("threshold", ours)):
        if value is not None:
            return check_real(value, name)
    return THRESHOLD * pixel


def _as_opencv(kind: Model, matrix: Array | None, points1: Array, points2: Array, threshold: float) -> Found:
    """Return a matrix as OpenCV scales it, and the mask (n, 1) of matches within a threshold of it."""
    if matrix is None:
        return None, np.zeros((len(points1), 1), np.uint8)
    with np.errstate(all="ignore"):  # what overflows is no coordinate
        squared = FAMILIES[kind].squared_residuals(np.hstack([points1, points2]), matrix.reshape(1, 9))[0]
    last = matrix[2, 2] if abs(matrix[2, 2]) > _ZERO else 1.0
    return matrix / last, (np.sqrt(squared) <= threshold).astype(np.uint8)[:, None]


def _check_method(method: Any) -> None:
    message = f"`method` must be one of OpenCV's robust methods, such as cv2.RANSAC, or None, got {method!r}"
    if isinstance(method, (bool, np.bool_)) or not isinstance(method, (int, np.integer)):
        raise TypeError(f"{message}; a threshold is the fourth argument, or `threshold=`")
    if method not in ROBUST_METHODS:
        raise ValueError(f"{message}; this is a robust estimator and has no other method")
