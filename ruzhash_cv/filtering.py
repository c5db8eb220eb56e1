"""The whole pipeline: correspondences in, inlier mask out."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from ruzhash_cv.core.families import FAMILIES, RAY_FAMILIES
from ruzhash_cv.core.families.base import CheckedFamily, Families, TwoViewFamily
from ruzhash_cv.core.method.estimate import Estimate, estimate
from ruzhash_cv.core.method.law import Labels, is_overlay, label, most_probable
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import PARAMETERS, Parameters
from ruzhash_cv.foundation.arrays import Array, Mask, Rows
from ruzhash_cv.foundation.interrupts import uninterrupted
from ruzhash_cv.foundation.validation import (
    RNG,
    as_generator,
    as_pixels,
    check_bool,
    check_choice,
    check_int,
    check_numbers_of,
    check_real,
    largest_coordinate,
)
from ruzhash_cv.input.cameras import Cameras, as_cameras, as_seen, sight_of
from ruzhash_cv.input.correspondences import Keypoints, Matches, look_up
from ruzhash_cv.results import reasons
from ruzhash_cv.results.result import DO_NOT_RECONSTRUCT, FilterResult, Motion, Plane, Search

#: What the bounds of the search are called.
_EFFORT = "confidence", "max_iters"
#: Samples of a family at most if a confidence is given alone.
MOST_SAMPLES = 100_000
#: What is searched for, by name.
Model: TypeAlias = Literal["auto", "homography", "fundamental", "essential"]


@dataclass(frozen=True)
class Options:
    """The caller's options; lengths are in the unit of the points, and `pixel` is the size of a pixel in each image's unit."""

    threshold: float | None = None
    false_discovery_rate: float | None = None
    pixel: tuple[float, float] = (1.0, 1.0)
    keep_stationary: bool = True
    cameras: Cameras | None = None
    sizes: tuple[Array, Array] | None = None
    ratio: float | None = None  # that the rows without a match failed
    misfit: Cameras | None = None  # cameras that do not fit the matches: poses alone are by them


def filter_matches(
    kp1: Keypoints,
    kp2: Keypoints,
    matches: Matches,
    *,
    model: Model | TwoViewFamily = "auto",
    threshold: float | None = None,
    ratio: float | None = None,
    false_discovery_rate: float | None = None,
    keep_stationary: bool = True,
    cameras: Any = None,
    sizes: Any = None,
    confidence: float | None = None,
    max_iters: int | None = None,
    rng: RNG = 0,
) -> Mask:
    """Return the inlier mask of keypoint matches: True = keep.

    `filter_points` returns the same mask, with scores, probabilities and motions.

    Parameters
    ----------
    kp1, kp2 : sequence of cv2.KeyPoint, or array_like of shape (n, 2)
        Keypoints of the two images, or their pixel positions (x, y).
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2)
        See `as_correspondences`.
    ratio : float in (0, 1], optional
        Apply Lowe's ratio test to knnMatch output first. Rows that fail it are not kept.
    model, threshold, false_discovery_rate, keep_stationary, cameras, sizes, confidence, max_iters, rng
        See `filter_points`.

    Returns
    -------
    ndarray of bool, shape (len(matches),)
        For knnMatch output, one entry per query row.

    Raises
    ------
    IndexError
        An index of `matches` points outside its keypoints.
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> moved = points + [40.0, 5.0]
    >>> moved[:20] = np.random.default_rng(1).uniform(0, 500, (20, 2))
    >>> mask = filter_matches(points, moved, np.stack([np.arange(60)] * 2, axis=1))
    >>> int(mask[:20].sum()), int(mask[20:].sum())
    (0, 40)
    """
    seen = (None, None) if cameras is None else as_cameras(cameras)
    kp1, kp2 = as_seen(kp1, seen[0], "kp1"), as_seen(kp2, seen[1], "kp2")
    pairs = look_up(kp1, kp2, matches, ratio, ("kp1", "kp2"), sizes)
    return filter_points(
        pairs.points1, pairs.points2, model=model, threshold=threshold, false_discovery_rate=false_discovery_rate,
        keep_stationary=keep_stationary, cameras=cameras, sizes=pairs.sizes, confidence=confidence, max_iters=max_iters,
        rng=rng,
    ).inlier_mask  # fmt: skip


@uninterrupted
def filter_points(
    points1: Keypoints,
    points2: Keypoints,
    matches: Matches | None = None,
    *,
    model: Model | TwoViewFamily = "auto",
    threshold: float | None = None,
    ratio: float | None = None,
    false_discovery_rate: float | None = None,
    pixel: float | tuple[float, float] = 1.0,
    keep_stationary: bool = True,
    cameras: Any = None,
    sizes: Any = None,
    confidence: float | None = None,
    max_iters: int | None = None,
    rng: RNG = 0,
) -> FilterResult:
    """Separate true correspondences from mismatches, for any number of planes and moving objects.

    Parameters
    ----------
    points1, points2 : array_like of shape (n, 2), or sequence of cv2.KeyPoint
        Points of the two images, pixels (x, y). Without `matches`, row i corresponds to row i.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2), optional
        Which points correspond, see `as_correspondences`. The result has an entry for each match, or for each query row of knnMatch
        output.
    model : {"auto", "homography", "fundamental", "essential"} or TwoViewFamily
        Planes, rigid motions, both ("auto"), or models of your family. If both cameras are given, "auto" takes essential matrices for
        rigid motions.
    threshold : float, optional
        As for RANSAC, in the unit of the second points. Every match within the threshold of a rigid motion (Sampson distance) or of a
        lone plane (symmetric transfer error) is kept, even several matches of one keypoint. Other matches get probability
        0. The models do not change, so a larger threshold keeps no fewer matches. If the points of one image spread over more than 2.2
        times as many pixels, distances are measured in the other image. None: matches with a probability above 1/2 are kept.
    ratio : float in (0, 1], optional
        Apply Lowe's ratio test first. `matches` must then be knnMatch output.
    false_discovery_rate : float in (0, 1), optional
        Expected share of mismatches among the kept matches: the most probable matches are kept as long as the mean of 1 - probability
        is at most the rate. A low rate keeps fewer than the default, a high rate more. None: those above 1/2 are kept.
    pixel : float or pair of float
        Size of a pixel in the unit of the points, such as 1 / focal length for normalised image coordinates. A pair has one size for
        each image. All lengths scale with it. Lengths of the result are in the unit of the second points.
    keep_stationary : bool
        False drops overlays of any size: watermarks, time stamps, black borders, the bonnet of a car. Static matches are an overlay
        if another structure moved and they are not its inliers, or if they are fewer than half of all matches. It is a separate
        motion, marked `stationary`. Other static matches are the scene of a camera that did not move; they are always kept.
    cameras : camera or pair, optional
        One camera for both images, or a pair with one for each: a `Camera`, a matrix (3, 3) or a `pycolmap.Camera`; in a pair also
        (matrix, distortion), or None if unknown. Points and lengths stay in pixels of the images, with their distortion. Points of a
        360 degree camera may be rays (n, 3). If both cameras are known, rigid motions have essential matrices.
    sizes : pair of array_like, optional
        Sizes of the keypoints of each image, one entry per row of its points, in any unit. Large keypoints are less exact, so their
        matches may be farther from a model, and matches of small ones only nearer. cv2.KeyPoint have their sizes with them.
    confidence : float in (0, 1), optional
        Look harder: the search does not give up before a minimal sample of the smallest structure that has evidence would have been
        drawn with this confidence, or `max_iters` are drawn, 100,000 by default. It ends earlier if the unexplained matches look like
        mismatches. None: it also ends if a round brings little.
    max_iters : int, optional
        Most minimal samples of each family, homographies and matrices of motions. `FilterResult.search` shows what was tried.
    rng : int, numpy.random.Generator or None
        The same int gives the same result.

    Returns
    -------
    FilterResult
        With fewer than 8 distinct matches, or without a model, all matches are flagged, their probabilities are 0, and `reason` says
        why. Scores still rank the matches if there is no model. Rows without a valid match (`FilterResult.has_match`) are False in the
        mask, and do not affect the others. Exact duplicates of a match share one result.

    Raises
    ------
    IndexError
        An index of `matches` points outside its keypoints.
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> result = filter_points(points, 0.5 * points + 3.0)
    >>> result.motions[0].kind, int(result.inlier_mask.sum())
    ('homography', 60)

    OpenCV's keypoints and matches, with the ratio test in the same call:

    >>> import cv2
    >>> keypoints = [cv2.KeyPoint(x, y, 1) for x, y in points.tolist()]
    >>> rows = [(cv2.DMatch(i, i, 1.0), cv2.DMatch(i, 0, 1.1 if i < 20 else 2.0)) for i in range(60)]
    >>> filter_points(keypoints, keypoints, rows, ratio=0.8)
    <FilterResult: 40 of 40 matches kept, 1 motion>
    """
    started, seen = time.perf_counter(), None if cameras is None else as_cameras(cameras)
    if seen is not None:
        points1, points2 = as_seen(points1, seen[0], "points1"), as_seen(points2, seen[1], "points2")
    pairs = look_up(points1, points2, matches, ratio, ("points1", "points2"), sizes)
    families = families_of(model, None if seen is None else None not in seen)
    if threshold is not None:
        threshold = check_real(threshold, "threshold")
    if false_discovery_rate is not None:
        false_discovery_rate = check_real(false_discovery_rate, "false_discovery_rate", above=0.0, below=1.0)
    keep_stationary = check_bool(keep_stationary, "keep_stationary")
    options = Options(threshold, false_discovery_rate, as_pixels(pixel), keep_stationary, seen, pairs.sizes, ratio)
    parameters, attempts, sign = with_effort(confidence, max_iters), [(families, options)], None
    if seen is not None and model == "auto":
        attempts.append((families_of(model), replace(options, cameras=None, misfit=seen)))
    for families, options in attempts:
        with np.errstate(under="ignore"):  # whatever the caller's settings
            result = run(pairs.points1, pairs.points2, families, parameters, options, as_generator(rng))
        if (other := _sign_of_other_cameras(result)) is None:
            break
        sign = other + (" The matches were filtered without cameras." if model == "auto" else "")
    result.seconds["total"] = time.perf_counter() - started
    if seen is not None:
        for warning in (reasons.sign_of_focal_length(seen, pairs.points1, pairs.points2), sign):
            reasons.warn(warning)
    # Unlike pictures may share a plane that mirrors by chance.
    for motion in [motion for motion in result.motions[:1] if motion.evidence >= DO_NOT_RECONSTRUCT]:
        reasons.warn(reasons.sign_of_exchanged_axes(pairs.points1[motion.mask], pairs.points2[motion.mask]))
    return result


def _sign_of_other_cameras(result: FilterResult) -> str | None:
    """Return `reasons.sign_of_other_cameras` of the first motion of a result that is not an overlay."""
    moved = [number for number, motion in enumerate(result.motions) if not motion.stationary]
    if not moved or result._estimate is None:
        return None
    return reasons.sign_of_other_cameras(result._estimate, int(result._estimate.scene.motions()[moved[0]]))


def with_effort(confidence: float | None, max_iters: int | None, names: tuple[str, str] = _EFFORT) -> Parameters:
    """Return the numbers of the method with the caller's bounds of the search, which may have other names."""
    if confidence is None and max_iters is None:
        return PARAMETERS
    if confidence is not None:
        confidence = check_real(confidence, names[0], above=0.0, below=1.0)
    most = MOST_SAMPLES if max_iters is None else check_int(max_iters, names[1])
    return replace(PARAMETERS, confidence=confidence, max_samples=most)


def run(
    points1: Array,
    points2: Array,
    families: Families,
    parameters: Parameters,
    options: Options,
    rng: np.random.Generator,
) -> FilterResult:
    """Return the result for checked points (n, 2)."""
    pixels = options.pixel
    largest = largest_coordinate(min(pixels))
    sight = None if options.cameras is None else sight_of(points1, points2, options.cameras, largest)
    matches = MatchSet.of(points1, points2, parameters.unit * pixels[1], sight, pixels, options.sizes)
    if matches.n_groups < reasons.MIN_MATCHES:
        why = reasons.why_too_few(matches, pixels, np.hstack([points1, points2]), options.ratio)
        return _result(Estimate.nothing(matches, families, parameters), options, why)
    estimated = estimate(matches, families, parameters, rng)
    tried = estimated.tried
    reason = None if len(estimated.scene) or tried is None else reasons.why_nothing(matches, pixels, tried.n_models)
    return _result(estimated, options, reason)


def _result(estimate: Estimate, options: Options, reason: str | None) -> FilterResult:
    """Return the result of an estimate: its view for all matches that were given."""
    scene, matches, families = estimate.scene, estimate.matches, estimate.families
    labels, kept = Labels.nothing(len(matches)), None
    likely, motions = labels, tuple[Motion, ...]()
    if len(scene) > 0:
        threshold = None if options.threshold is None else max(options.threshold * matches.frame.scale, 1e-300)
        likely = label(estimate.probabilities, scene, matches, families, threshold)
        # A low rate may leave a structure without a match, which is there all the same.
        order = scene.listing(likely.labels)
        labels = likely.renumbered(order, len(scene))
        estimate = replace(estimate, scene=scene.take(order), probabilities=estimate.probabilities[:, order])
        overlays = is_overlay(estimate.scene, labels.labels, matches.weights)
        if not options.keep_stationary:
            labels = labels.without(np.append(overlays, False)[labels.labels])  # -1, for none, is the last
        rate = options.false_discovery_rate if labels.keep.any() else None
        labels = labels if rate is None else most_probable(labels, rate)
        motions = _motions(estimate, overlays, labels.labels, options.threshold)
        kept = for_poses(estimate) if motions else None
        reason = reasons.why_nothing_is_kept(labels.keep, len(motions), rate)
    tried = estimate.tried
    return FilterResult(
        matches.of_given(labels.keep, False),
        estimate.ranking,  # type: ignore[arg-type]  # see `RankedWhenRead`
        matches.of_given(likely.probabilities, 0.0),
        matches.finite,
        motions=motions,
        reason=reason,
        search=Search() if tried is None else Search(tried.n_rounds, tried.n_models, str(tried.ended)),
        _estimate=kept,
        _cameras=options.misfit,
    )


def for_poses(estimate: Estimate) -> Estimate:
    """Return the parts of an estimate that `FilterResult.camera_pose` reads, so that a pickled result is small."""
    no_rows = np.zeros(0, np.int64)
    matches = replace(estimate.matches, groups=no_rows, keypoints=no_rows)
    return replace(estimate, matches=matches, tried=None)


def families_of(model: Model | TwoViewFamily, calibrated: bool | None = None) -> Families:
    """Return the families to sample, and which of them may become structures; `calibrated` is None without cameras.

    Homographies of neighbourhoods come first, whatever the model: they show which matches agree with their neighbours.
    """
    if calibrated is not None and not isinstance(model, str):
        what = type(model).__name__
        raise TypeError(f"`model` must be one of the built-in ones where `cameras` are given, got {what}")
    if not isinstance(model, str | type) and isinstance(model, TwoViewFamily):
        check_numbers_of(model, "model")
        return Families((CheckedFamily(model),), (True,))
    known = RAY_FAMILIES if calibrated else FAMILIES
    check_choice(model, "model", ("auto", *known), *(["a TwoViewFamily"] if calibrated is None else []))
    if model == "homography":
        return Families((known[model],), (True,))
    rigid = model if model != "auto" else "essential" if calibrated else "fundamental"
    return Families((known["homography"], known[rigid]), (model == "auto", True))


def _motions(estimate: Estimate, overlays: Mask, labels: Rows, threshold: float | None) -> tuple[Motion, ...]:
    """Return the motions of a scene in pixels; `labels` (n,) are those of the distinct matches."""
    scene, matches, families = estimate.scene, estimate.matches, estimate.families
    scale, n = matches.frame.scale, len(scene)
    noise, least = scene.noise / scale, estimate.parameters.least_noise * matches.unit / scale
    tolerances = estimate.parameters.tolerance_scales * np.maximum(noise, least)
    if threshold is not None:
        tolerances = np.full(n, threshold)
    kinds = [families[family_id].name for family_id in scene.family_ids]
    matrices = [
        scaled(matrix) if kind == "homography" else matrix
        for matrix, kind in zip(families.to_pixels(scene, matches.into), kinds, strict=True)
    ]

    support, of_given = np.bincount(labels + 1, minlength=n + 1)[1:], matches.of_given(labels, -1)

    def mask(items: list[int]) -> Mask:
        held = np.zeros(n + 1, bool)  # -1, for none, is the last
        held[items] = True
        return np.asarray(held[of_given])

    motions = []
    for item in scene.motions().tolist():
        members = np.flatnonzero(scene.owners == item).tolist()
        # As many matches as a minimal sample fit a plane whatever they are: they stay with the motion alone.
        planes = [
            Plane(matrices[plane], mask([plane]), float(noise[plane]), float(tolerances[plane]))
            for plane in members
            if plane != item and support[plane] > families.sample_sizes[scene.family_ids[plane]]
        ]
        motions.append(
            Motion(
                matrices[item], kinds[item], mask(members), float(noise[item]), float(tolerances[item]),
                evidence=float(scene.evidences[members].max()),
                planes=tuple(sorted(planes, key=lambda plane: -int(plane.mask.sum()))),
                stationary=bool(overlays[item]),
                fundamental=fundamental_matrix(matrices[item], kinds[item], matches),
            )
        )  # fmt: skip
    return tuple(motions)


def fundamental_matrix(matrix: Array, kind: str, matches: MatchSet) -> Array | None:
    """Return the fundamental matrix (3, 3) of pixels without distortion that a model is or makes; None for a plane."""
    if kind != "essential":
        return None if kind == "homography" else matrix
    into1, into2 = matches.into
    fundamental = into2.T @ matrix @ into1
    return np.asarray(fundamental / np.linalg.norm(fundamental))


def scaled(matrix: Array) -> Array:
    """Return a matrix (3, 3) as OpenCV scales it, with a last entry of 1; unchanged if the last entry is 0."""
    last = matrix[2, 2]
    return matrix / last if abs(last) > 1e-12 * np.abs(matrix).max() else matrix
