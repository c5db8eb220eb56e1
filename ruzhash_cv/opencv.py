"""One model and its inliers in OpenCV's form, in place of `cv2.findHomography`, `findFundamentalMat` and `findEssentialMat`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Real
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv.core.families import FAMILIES, RAY_FAMILIES
from ruzhash_cv.core.families.base import Families, Models
from ruzhash_cv.core.families.linear import homogeneous
from ruzhash_cv.core.method.estimate import Estimate, estimate
from ruzhash_cv.core.method.fits import log_likelihoods, refine, refined_samples
from ruzhash_cv.core.method.matches import MatchSet, Sight, floored
from ruzhash_cv.core.method.opacity import Opacity
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.filtering import Model, families_of, scaled, with_effort
from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.foundation.interrupts import uninterrupted
from ruzhash_cv.foundation.validation import RNG, as_generator, as_pairs, as_pixels, as_reals, as_sizes, check_real
from ruzhash_cv.input.cameras import Camera, Cameras, as_seen, sight_of
from ruzhash_cv.results.pose import likeliest_pose, weights_of
from ruzhash_cv.results.reasons import (
    sign_of_exchanged_axes,
    sign_of_focal_length,
    sign_of_other_cameras,
    sign_of_units,
    warn,
)

#: LMEDS, RANSAC, RHO and USAC_DEFAULT to USAC_MAGSAC, by OpenCV's numbers.
ROBUST_METHODS = (4, 8, 16, *range(32, 39))
#: Pixels: OpenCV's own threshold where none is given.
THRESHOLD = 3.0
ESSENTIAL_THRESHOLD = 1.0
#: Of fewer distinct matches all minimal samples are tried: chance explains most of so few.
_FEW = 10
#: Planes whose homographies compete, the strongest ones.
_N_PLANES = 4

Found: TypeAlias = tuple[Array | None, NDArray[np.uint8]]
#: Cameras and settings of a call of `find_essential_matrix`.
Form: TypeAlias = "tuple[tuple[Camera, Camera], _Settings]"


@uninterrupted
def find_homography(
    points1: ArrayLike | None = None,
    points2: ArrayLike | None = None,
    method: Any = None,
    ransacReprojThreshold: float | None = None,
    mask: Any = None,
    maxIters: int | None = None,
    confidence: float | None = None,
    *,
    threshold: float | None = None,
    pixel: float | tuple[float, float] = 1.0,
    sizes: Any = None,
    rng: RNG = 0,
    srcPoints: ArrayLike | None = None,
    dstPoints: ArrayLike | None = None,
) -> Found:
    """Estimate one homography; replaces ``cv2.findHomography``.

    Motions and planes are first estimated as by `filter_points`. Candidates are the homographies of the strongest planes and of samples
    of their matches, refined within the threshold. The one with the lowest sum of squared distances in the second image, truncated at
    the threshold and weighted by the matches' probabilities, is returned.

    Parameters
    ----------
    points1, points2, srcPoints, dstPoints : array_like, shape (n, 2) or (n, 1, 2)
        Corresponding points, pixels. `srcPoints` and `dstPoints` are OpenCV's names.
    ransacReprojThreshold, threshold : float, optional
        Largest distance of an inlier in the second image, in the unit of the second points. Both names mean the same. 3 pixels by
        default, as in OpenCV. A larger one is also the scale of the search: planes with more noise are found.
    method : int or cv2.UsacParams, optional
        Any of OpenCV's robust methods (`cv2.RANSAC`, `cv2.USAC_MAGSAC`, ...), which are all the same here and the default.
        ``method=0``, a fit to all points, is refused: call ``cv2.findHomography``. Of `cv2.UsacParams`, `threshold`, `confidence` and
        `maxIterations` are read.
    mask
        Ignored, and not written into.
    maxIters, confidence
        `max_iters` and `confidence` of `filter_points`.
    pixel, sizes, rng
        See `filter_points`. Normalised coordinates need `pixel`, 1 / focal length.

    Returns
    -------
    model : ndarray of float64, shape (3, 3), or None
        x2 ~ H x1 with H[2, 2] = 1, or of unit norm if H[2, 2] is 0. None if there is no model. With fewer than 10 distinct
        matches, all samples of four are tried and refined, and the best homography is returned without a test against chance.
        Homographies whose line mapped to infinity separates their inliers are left out.
    mask : ndarray of uint8, shape (n, 1)
        1 for every match within the threshold of `model`. All 0 if there is no model.

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
    pixels = as_pixels(pixel)
    given = _Settings(ransacReprojThreshold, confidence, maxIters).checked(method, "cv2.findHomography")
    limit = given.limit(threshold, pixels[1])
    return _find("homography", first, second, limit, given.parameters(), pixels, sizes, rng)


@uninterrupted
def find_fundamental_matrix(
    points1: ArrayLike,
    points2: ArrayLike,
    method: Any = None,
    ransacReprojThreshold: float | None = None,
    confidence: float | None = None,
    maxIters: int | None = None,
    mask: Any = None,
    *,
    threshold: float | None = None,
    pixel: float | tuple[float, float] = 1.0,
    sizes: Any = None,
    rng: RNG = 0,
) -> Found:
    """Estimate one fundamental matrix; replaces ``cv2.findFundamentalMat``.

    Motions and planes are first estimated as by `filter_points`, whose `FilterResult.motions` lists all. The matrix is that of the
    motion with the most matches that is not an overlay. The threshold sets the mask; the matrix depends only on one above 3 pixels. If
    that motion is a lone plane, many matrices fit equally well. Candidates are then the matrices that the estimate refined and those of
    samples of its matches, refined within the threshold, and the likeliest is returned.

    Parameters
    ----------
    points1, points2, method, confidence, maxIters, mask, pixel, sizes, rng
        See `find_homography`. `method` may also be `cv2.FM_RANSAC` or `cv2.FM_LMEDS`, not `cv2.FM_8POINT` or `cv2.FM_7POINT`.
    ransacReprojThreshold, threshold : float, optional
        Largest Sampson distance of an inlier, otherwise as for `find_homography`.

    Returns
    -------
    model : ndarray of float64, shape (3, 3), or None
        x2^T F x1 = 0, of rank 2, with F[2, 2] = 1; always a single matrix. None if there is no model. With fewer than 10
        distinct matches, all samples of seven are tried and refined. A matrix does not prove that the images share anything:
        `FilterResult.evidence` measures that.
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
    pixels = as_pixels(pixel)
    given = _Settings(ransacReprojThreshold, confidence, maxIters).checked(method, "cv2.findFundamentalMat")
    limit = given.limit(threshold, pixels[1])
    return _find("fundamental", points1, points2, limit, given.parameters(), pixels, sizes, rng)


@uninterrupted
def find_essential_matrix(
    points1: ArrayLike,
    points2: ArrayLike,
    *args: Any,
    threshold: float | None = None,
    pixel: float | None = None,
    sizes: Any = None,
    rng: RNG = 0,
    **kwargs: Any,
) -> Found:
    """Estimate one essential matrix; replaces ``cv2.findEssentialMat`` in its three call forms.

    ``find_essential_matrix(points1, points2, K, cv2.RANSAC, 0.999, 1.0)`` is for one camera,
    ``find_essential_matrix(points1, points2, K1, distortion1, K2, distortion2, cv2.RANSAC, 0.999, 1.0)`` for two, and
    ``find_essential_matrix(points1, points2, 700.0, (320, 240), cv2.RANSAC, 0.999, 1.0)`` for a focal length and a principal point.
    The matrix is that of `FilterResult.camera_pose` for the motion with the most matches that is not an overlay. The threshold sets the
    mask; the matrix depends only on one above 3 pixels. ``cv2.recoverPose`` accepts both results.

    Parameters
    ----------
    points1, points2
        See `find_homography`. Pixels as detected, with the images' distortion. Points of a 360 degree camera may be rays (n, 3).
    args, kwargs
        ``cameraMatrix, method, prob, threshold, maxIters, mask`` or
        ``cameraMatrix1, distCoeffs1, cameraMatrix2, distCoeffs2, method, prob, threshold, mask`` or
        ``focal, pp, method, prob, threshold, maxIters, mask`` or
        ``cameraMatrix1, cameraMatrix2, dist_coeff1, dist_coeff2, params, mask`` with `cv2.UsacParams`, by position or by name, as in
        OpenCV. Any camera that `Camera.of` takes may replace a matrix, with None for its distortion. Without a camera the focal length
        is 1: the points are normalised. `prob` is a confidence; for `method`, `maxIters` and `mask` see `find_homography`.
    threshold : float, optional
        Largest Sampson distance of an inlier, in the unit of the points; by default 1 pixel, as in OpenCV.
    pixel : float, optional
        Size of a pixel in the unit of the points, see `filter_points`. Default 1; but if all matrices are the identity, the points are
        normalised, and the default is `threshold`, so that ``(points1, points2, np.eye(3), cv2.RANSAC, 0.999, 1 / f)`` needs no change.
    sizes, rng
        See `filter_points`.

    Returns
    -------
    model : ndarray of float64, shape (3, 3), or None
        x2^T E x1 = 0 for rays, of unit norm; always a single matrix. None if there is no model. With fewer than 10 distinct
        matches, all samples of five are tried and refined.
    mask : ndarray of uint8, shape (n, 1)
        As from `find_homography`.

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> import cv2
    >>> rng = np.random.default_rng(0)
    >>> K = np.array([[700.0, 0.0, 320.0], [0.0, 700.0, 240.0], [0.0, 0.0, 1.0]])
    >>> X = rng.uniform([-2, -1, 4], [2, 1, 8], (100, 3))
    >>> points1, points2 = ((Y @ K.T)[:, :2] / Y[:, 2:] for Y in (X, X + [0.5, 0.0, 0.0]))
    >>> E, mask = find_essential_matrix(points1, points2, K, cv2.RANSAC, 0.999, 1.0)
    >>> _, R, t, _ = cv2.recoverPose(E, points1, points2, K, mask=mask)
    >>> t.ravel().round(3) + 0.0
    array([1., 0., 0.])
    """
    cameras, given = _form_of(args, kwargs)(*args, **kwargs)
    size = 1.0 if pixel is None else check_real(pixel, "pixel")
    limit = given.limit(threshold, size, ESSENTIAL_THRESHOLD)
    is_normalised = all(camera.is_pinhole and np.array_equal(camera.matrix, np.eye(3)) for camera in cameras)
    if pixel is None and is_normalised and not (given.threshold is None and threshold is None):
        size = limit / ESSENTIAL_THRESHOLD  # only the threshold shows the size of a pixel
    return _find("essential", points1, points2, limit, given.parameters(), (size, size), sizes, rng, cameras)


@dataclass(frozen=True)
class _Settings:
    """What OpenCV's arguments or `cv2.UsacParams` set, None for what they do not, and the names that errors give them."""

    threshold: Any = None
    confidence: Any = None
    max_iters: Any = None
    name: str = "ransacReprojThreshold"
    effort: tuple[str, str] = ("confidence", "maxIters")

    def checked(self, method: Any, theirs: str) -> _Settings:
        """Return the settings after checking the `method` of OpenCV's function `theirs`, those of `cv2.UsacParams` if it is that."""
        if isinstance(method, cv2.UsacParams):
            names = "params.threshold", ("params.confidence", "params.maxIterations")
            return _Settings(method.threshold, method.confidence, method.maxIterations, *names)
        if method is not None:
            _check_method(method, theirs)
        return self

    def limit(self, ours: Any, pixel: float, default: float = THRESHOLD) -> float:
        """Return the threshold, which may have a second name: `ours`."""
        if self.threshold is not None and ours is not None:
            raise TypeError(f"`threshold` is given twice, as {ours!r} and as `{self.name}` {self.threshold!r}")
        for name, value in ((self.name, self.threshold), ("threshold", ours)):
            if value is not None:
                return check_real(value, name)
        return default * pixel

    def parameters(self) -> Parameters:
        """Return the numbers of the method with these bounds of the search."""
        return with_effort(self.confidence, self.max_iters, self.effort)


def _settings(method: Any, prob: Any, threshold: Any, max_iters: Any = None) -> _Settings:
    given = _Settings(threshold, prob, max_iters, "threshold", ("prob", "maxIters"))
    return given.checked(method, "cv2.findEssentialMat")


def _one_camera(
    cameraMatrix: Any, method: Any = None, prob: Any = None, threshold: Any = None, maxIters: Any = None, mask: Any = None
) -> Form:  # fmt: skip
    """OpenCV's arguments after the points: the camera of both images, and the settings."""
    return (Camera.of(cameraMatrix, "cameraMatrix"),) * 2, _settings(method, prob, threshold, maxIters)


def _two_cameras(
    cameraMatrix1: Any, distCoeffs1: Any, cameraMatrix2: Any, distCoeffs2: Any = None,
    method: Any = None, prob: Any = None, threshold: Any = None, mask: Any = None,
) -> Form:  # fmt: skip
    """The same of two cameras."""
    first = cameraMatrix1 if distCoeffs1 is None else (cameraMatrix1, distCoeffs1)
    second = cameraMatrix2 if distCoeffs2 is None else (cameraMatrix2, distCoeffs2)
    cameras = Camera.of(first, "cameraMatrix1"), Camera.of(second, "cameraMatrix2")
    return cameras, _settings(method, prob, threshold)


def _focal_length(
    focal: Any = 1.0, pp: Any = (0.0, 0.0),
    method: Any = None, prob: Any = None, threshold: Any = None, maxIters: Any = None, mask: Any = None,
) -> Form:  # fmt: skip
    """The same of a focal length and a principal point."""
    f, centre = check_real(focal, "focal"), as_reals(pp, "pp", "(2,)")
    if centre.shape != (2,):
        raise ValueError(f"`pp` must have shape (2,), got {centre.shape}")
    camera = Camera([[f, 0.0, centre[0]], [0.0, f, centre[1]], [0.0, 0.0, 1.0]])
    return (camera, camera), _settings(method, prob, threshold, maxIters)


def _usac(
    cameraMatrix1: Any, cameraMatrix2: Any, dist_coeff1: Any, dist_coeff2: Any, params: Any, mask: Any = None
) -> Form:
    """The same of two cameras and `cv2.UsacParams`."""
    return _two_cameras(cameraMatrix1, dist_coeff1, cameraMatrix2, dist_coeff2, params)


for _form in (_one_camera, _two_cameras, _focal_length, _usac):
    _form.__qualname__ = "find_essential_matrix"  # Python's errors of arguments name what was called


def _form_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[..., Form]:
    """Return which of OpenCV's forms a call has."""
    if "params" in kwargs or any(isinstance(each, cv2.UsacParams) for each in args[4:]):
        return _usac
    if not kwargs.keys().isdisjoint(("cameraMatrix1", "cameraMatrix2")):
        return _two_cameras
    if isinstance(args[0], Real) if args else "cameraMatrix" not in kwargs:
        return _focal_length
    is_matrix = len(args) > 2 and not isinstance(args[2], Real | None)
    return _two_cameras if is_matrix else _one_camera


def _find(
    kind: Model, points1: ArrayLike, points2: ArrayLike, threshold: float, parameters: Parameters,
    pixels: tuple[float, float], sizes: Any, rng: RNG, cameras: Cameras = (None, None),
) -> Found:  # fmt: skip
    """Return the best model of a kind as OpenCV scales it, and the mask (n, 1) of matches within a threshold of it."""
    first, second = as_pairs(as_seen(points1, cameras[0], "points1"), as_seen(points2, cameras[1], "points2"))
    sizes = as_sizes(sizes, points1, points2, (len(first), len(second)))
    warn(sign_of_focal_length(cameras, first, second))
    generator, sight = as_generator(rng), None if None in cameras else sight_of(first, second, cameras)
    with np.errstate(under="ignore"):  # whatever the caller's settings
        matches = MatchSet.of(first, second, max(parameters.unit * pixels[1], threshold), sight, pixels, sizes)
        matrix = find_matrix(kind, matches, threshold, parameters, generator)
    is_near = np.zeros(len(first), bool)
    if matrix is not None:
        is_near = np.sqrt(_squared_residuals(kind, matrix, first, second, pixels, sight)[0]) <= threshold
        matrix = matrix if kind == "essential" else scaled(matrix)
    warn(sign_of_units(matches, pixels))
    warn(sign_of_exchanged_axes(first[is_near], second[is_near]))
    return matrix, is_near.astype(np.uint8)[:, None]


def find_matrix(
    kind: Model, matches: MatchSet, threshold: float, parameters: Parameters, rng: np.random.Generator
) -> Array | None:
    """Return the best matrix (3, 3) of pixels, each match counted by its probability; None if nothing is found."""
    families = families_of("homography" if kind == "homography" else "auto", matches.calibrated or None)
    family_id = len(families) - 1
    # Squares must not overflow.
    reach = min(max(threshold * matches.frame.scale, 1e-300), 1e100)
    if matches.n_groups < _FEW:
        matrix = of_all_samples(matches, families, family_id, reach, parameters)
    else:
        matrix = _of_estimate(estimate(matches, families, parameters, rng), family_id, reach, rng)
    if matrix is None:
        return None
    return np.asarray(families.to_pixels(Models.of_family(matrix[None], family_id), matches.into)[0])


def _of_estimate(estimated: Estimate, family_id: int, reach: float, rng: np.random.Generator) -> Array | None:
    """Return the best matrix (9,) of a family for the matches of an estimate; overlays count only if nothing else does."""
    scene, matches, families = estimated.scene, estimated.matches, estimated.families
    if len(scene) == 0:
        return None
    labels, of_any = estimated.probabilities.argmax(axis=1), np.minimum(estimated.probabilities.sum(axis=1), 1.0)
    support = np.bincount(labels, matches.weights * of_any, minlength=len(scene))
    family, parameters = families[family_id], estimated.parameters
    # A homography may be that of static matches. They have no epipolar geometry, however many they are.
    moved, needed = support[~scene.stationary].sum(), np.inf if family.is_plane else float(family.sample_size)
    overlays = scene.stationary & ((support < moved) | (moved > needed))
    weights = matches.weights * of_any * ~overlays[labels]
    owners = np.where((of_any > 0.5) & ~overlays[labels], scene.owners[labels], -1)
    first = int(np.bincount(owners + 1, minlength=len(scene) + 1)[1:].argmax())
    if not family.is_plane and matches.calibrated:
        rows = np.flatnonzero(owners == first)
        warn(sign_of_other_cameras(estimated, first))
        return np.asarray(likeliest_pose(estimated, first, rows, matches.data, matches.into)[0].essential[0])
    if not family.is_plane and not families.is_plane(scene)[first]:
        return np.asarray(scene.matrices[first])
    if not family.is_plane:
        # The few matches off a lone plane decide, although they are no evidence of a motion.
        weights = weights_of(estimated, np.flatnonzero(~overlays))
        candidates = np.vstack([scene.matrices[scene.family_ids == family_id], estimated.pool])
        weighted, labels = replace(matches, weights=weights), np.where(of_any > 0.5, labels, -1)
        refined, _, squared = refined_samples(candidates, labels, weighted, family, parameters, rng, reach)
        opacity = Opacity.of(scene.take(np.flatnonzero(families.is_plane(scene))), matches, families, parameters)
        squared = opacity.without_slips(floored(squared, matches), matches.unit, parameters)
        # A matrix fits few matches too well: keypoints off the plane are as exact as those on it.
        squared = np.maximum(squared, scene.noise[first] ** 2)
        likelihoods = log_likelihoods(squared, weights, reach, family.codimension)
        return np.asarray(refined[likelihoods.argmax()]) if len(refined) > 0 else None
    # Samples of several planes are none: each has separate ones, and all compete for all matches.
    support = np.bincount(labels, weights, minlength=len(scene))
    strongest = np.argsort(-support, kind="stable")[:_N_PLANES]
    models = []
    for item in strongest[~overlays[strongest]].tolist():
        weighted = replace(matches, weights=matches.weights * estimated.probabilities[:, item])
        models += [refined_samples(scene.matrices[[item]], labels, weighted, family, parameters, rng, reach)[0]]
    squared = squared_transfer(np.vstack(models), matches.coordinates)
    limit = reach * matches.frame.factors[1]
    costs = np.minimum(squared, limit**2) @ weights
    costs[_across_horizon(np.vstack(models), squared <= limit**2, matches.data)] = np.inf
    return np.asarray(np.vstack(models)[costs.argmin()]) if np.isfinite(costs).any() else None


def of_all_samples(
    matches: MatchSet, families: Families, family_id: int, reach: float, parameters: Parameters
) -> Array | None:
    """Return the best matrix (9,) of all minimal samples of a few distinct matches and of their refits, which decide nothing else."""
    if matches.is_on_a_line:
        return None
    data = matches.data[np.unique(matches.groups, return_index=True)[1]]
    family = families[family_id]
    samples = np.array(list(combinations(range(len(data)), family.sample_size)), np.int64)
    models, _ = family.solve(data[samples.reshape(-1, family.sample_size)])
    if len(models) == 0:
        return None
    models = np.vstack([models, refine(family, models, matches, np.full(len(models), reach), parameters)[0]])
    squared = family.squared_residuals(data, models)
    near = squared <= reach**2
    valid = near.sum(axis=1) >= family.sample_size  # no homography fits matches that share a keypoint
    if family.is_plane:
        valid &= ~_across_horizon(models, near, data)
    return models[valid][np.minimum(squared[valid], reach**2).sum(axis=1).argmin()] if valid.any() else None


def _across_horizon(models: Array, near: Mask, data: Array) -> Mask:
    """Return which homographies (m, 9) put matches `near` (m, n) them on both sides of their horizon: no camera sees both."""
    depths = (models.reshape(-1, 3, 3)[:, 2] @ homogeneous(data)[:3]) > 0.0
    return np.asarray((near & depths).any(axis=1) & (near & ~depths).any(axis=1))


def squared_transfer(models: Array, data: Array) -> Array:
    """Return squared distances (m, n) in the second image of homographies (m, 9) to correspondences (n, 4)."""
    with np.errstate(all="ignore"):  # what overflows is no coordinate
        projected = np.column_stack([data[:, :2], np.ones(len(data))]) @ models.reshape(-1, 3, 3).swapaxes(1, 2)
        squared = np.square(projected[..., :2] / projected[..., 2:] - data[:, 2:]).sum(axis=-1)
    return np.where(np.isfinite(squared), squared, np.inf)


def _one_of(ours: ArrayLike | None, theirs: ArrayLike | None, name: str, other: str) -> ArrayLike:
    """Return the one of two names of an argument that is given."""
    if (ours is None) == (theirs is None):
        raise TypeError(f"`{name}` must be given, or `{other}`, OpenCV's name of it, and not both")
    return theirs if ours is None else ours  # type: ignore[return-value]


def _squared_residuals(
    kind: Model, matrix: Array, points1: Array, points2: Array, pixels: tuple[float, float], sight: Sight | None
) -> Array:
    """Return squared distances (1, n) from a matrix: in the second image from a homography, else Sampson distances."""
    data = np.hstack([points1, points2])
    if kind == "homography":
        return squared_transfer(matrix.reshape(1, 9), data)
    with np.errstate(all="ignore"):
        if sight is not None:
            data = np.hstack([data, sight.rays1, sight.rays2])
            return RAY_FAMILIES[kind].squared_residuals(data, matrix.reshape(1, 9))
        ratio = pixels[1] / pixels[0]  # a distance between both images needs one unit
        data[:, :2] *= ratio
        return FAMILIES[kind].squared_residuals(data, (matrix / [ratio, ratio, 1.0]).reshape(1, 9))


def _check_method(method: Any, theirs: str) -> None:
    """Raise unless a method of OpenCV's function `theirs` is robust."""
    message = f"`method` must be one of OpenCV's robust methods, such as cv2.RANSAC, or None, got {method!r}"
    if isinstance(method, (bool, np.bool_)) or not isinstance(method, (int, np.integer)):
        raise TypeError(f"{message}; a threshold is the fourth argument, or `threshold=`")
    if method not in ROBUST_METHODS:
        raise ValueError(f"{message}; for a fit to all points or to a minimal sample call {theirs}")
