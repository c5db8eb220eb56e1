"""The whole pipeline on one page: correspondences in, inlier mask out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import (
    RNG,
    as_generator,
    as_pairs,
    check_bool,
    check_choice,
    check_real,
    largest_coordinate,
    without_keywords,
)
from ruzhash_cv.calibration import contradicted
from ruzhash_cv.cameras import Cameras, Sight, as_cameras, as_seen
from ruzhash_cv.competition import drop_repetitions
from ruzhash_cv.consensus import with_most_matches
from ruzhash_cv.correspondences import Keypoints, Matches, as_correspondences, look_up
from ruzhash_cv.evidence import divide
from ruzhash_cv.fits import refine_structures
from ruzhash_cv.labelling import Choice, Labelling, is_overlay, label_matches
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import CheckedFamily, Families, TwoViewFamily
from ruzhash_cv.models.distances import FAMILIES, RAY_FAMILIES
from ruzhash_cv.motions import MotionProblem, fundamental_matrix
from ruzhash_cv.overlaps import join_motions, resolve_overlaps
from ruzhash_cv.parameters import PARAMETERS, Parameters
from ruzhash_cv.reasons import MIN_MATCHES, why_nothing, why_nothing_is_kept, why_too_few
from ruzhash_cv.result import FilterResult, Structure
from ruzhash_cv.sampling import REJECTIONS, decoys_of_matches
from ruzhash_cv.search import Tried, search

#: What there is in place of a keyword of earlier versions.
_RATE = "`false_discovery_rate` is the share of wrong matches among those kept"


T = TypeVar("T", bound=np.generic)
#: What is searched for, by name.
Model: TypeAlias = Literal["auto", "homography", "fundamental", "essential"]


@dataclass(frozen=True)
class Options:
    """What a caller asks of the result; lengths are in the points' unit."""

    threshold: float | None = None
    false_discovery_rate: float | None = None
    pixel: float = 1.0
    keep_stationary: bool = True
    cameras: Cameras | None = None


@without_keywords(false_acceptance_rate=_RATE)
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
    rng: RNG = 0,
) -> Mask:
    """Return the inlier mask of keypoint matches: True = keep.

    It is the mask of the result that `filter_points` returns for the same arguments.

    Parameters
    ----------
    kp1, kp2 : sequence of cv2.KeyPoint, or array_like of shape (n, 2)
        Keypoints of the two images, or their pixel positions (x, y).
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2)
        See `as_correspondences`.
    ratio : float in (0, 1], optional
        Run Lowe's ratio test on knnMatch output first; rows that fail it are flagged.
    model, threshold, false_discovery_rate, keep_stationary, cameras, rng
        See `filter_points`.

    Returns
    -------
    ndarray of bool, shape (len(matches),)
        For knnMatch output, one entry per query row.

    Raises
    ------
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
    pairs = as_correspondences(as_seen(kp1, seen[0], "kp1"), as_seen(kp2, seen[1], "kp2"), matches, ratio=ratio)
    return filter_points(
        pairs.points1,
        pairs.points2,
        model=model,
        threshold=threshold,
        false_discovery_rate=false_discovery_rate,
        keep_stationary=keep_stationary,
        cameras=cameras,
        rng=rng,
    ).inlier_mask


@without_keywords(false_acceptance_rate=_RATE)
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
    pixel: float = 1.0,
    keep_stationary: bool = True,
    cameras: Any = None,
    rng: RNG = 0,
) -> FilterResult:
    """Separate mismatches from true correspondences, however many planes or moving objects there are.

    Parameters
    ----------
    points1, points2 : array_like of shape (n, 2), or sequence of cv2.KeyPoint
        Points of the two images, pixels (x, y). Without `matches` they correspond row by row.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2), optional
        Which of the points correspond, see `as_correspondences`. The result has one entry for each match, or for each query row of
        knnMatch output.
    model : {"auto", "homography", "fundamental", "essential"} or TwoViewFamily
        Models to look for: planes, rigid motions, or both ("auto"), each where it has more evidence; or those of your family.
        Where both cameras are given, "auto" takes essential matrices for rigid motions.
    threshold : float, optional
        As RANSAC's, but for all structures, in the unit of the points: no structure is searched for with a larger radius, and every
        match within it of one of the result's `models` is kept, by symmetric transfer error for a homography and Sampson distance for
        a fundamental matrix, also several of one keypoint. Matches beyond have probability 0. None: each structure gets a
        tolerance from its residuals, between 0.75 and 24 px (homography) or 8.5 px (fundamental matrix).
    ratio : float in (0, 1], optional
        Run Lowe's ratio test on the `matches` first, which must then be knnMatch output.
    false_discovery_rate : float in (0, 1), optional
        Share of wrong matches to expect among those kept: the most probable ones are kept, while the mean of 1 - probability is at
        most this. A low rate keeps fewer than the default, a high one more. None: a match is kept if its probability is above 1/2.
    pixel : float
        Size of a pixel in the unit of the points: 1 / focal length for normalised image coordinates. All lengths of the method are
        multiples of it.
    keep_stationary : bool
        Keep matches that did not move while more others did: watermarks, time stamps, black borders, the bonnet of a car. They are a
        structure of their own, marked `stationary`, and part of no motion. Its model is a homography, unless you gave a family
        of your own. If the camera did not move, its matches are kept in any case.
    cameras : pair, optional
        The cameras of both images, each a `Camera` or what `Camera.of` makes one of: a matrix (3, 3), (matrix, distortion), a
        `pycolmap.Camera`. Distorted points, of a fisheye too, are then taken as they are, and rigid motions have essential matrices.
        Points of a 360 degree camera may be rays (n, 3). Lengths stay in pixels of the images. None for one of them: it is not known,
        and rigid motions have fundamental matrices.
    rng : int, numpy.random.Generator or None
        The same int gives the same result.

    Returns
    -------
    FilterResult
        Also where nothing could be decided (fewer than 8 distinct matches, nothing found): all matches are then flagged, their
        probabilities are 0, and `reason` says why. Scores rank them also where nothing was found. Rows without a match to test are not
        in the mask, do not affect the others, and are not counted as flagged; see `FilterResult.has_match`. Matches that are
        exact repetitions share one result.

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    >>> result = filter_points(points, 0.5 * points + 3.0)
    >>> result.models[0].kind, int(result.inlier_mask.sum())
    ('homography', 60)

    Keypoints and matches as OpenCV has them, with the ratio test in the same call:

    >>> import cv2
    >>> keypoints = [cv2.KeyPoint(x, y, 1) for x, y in points.tolist()]
    >>> rows = [(cv2.DMatch(i, i, 1.0), cv2.DMatch(i, 0, 1.1 if i < 20 else 2.0)) for i in range(60)]
    >>> filter_points(keypoints, keypoints, rows, ratio=0.8)
    <FilterResult: 40 of 40 matches kept, 1 structure>
    """
    seen = None if cameras is None else as_cameras(cameras)
    if seen is not None:
        points1, points2 = as_seen(points1, seen[0], "points1"), as_seen(points2, seen[1], "points2")
    first, second = _as_points(points1, points2, matches, ratio)
    families = families_of(model, None if seen is None else None not in seen)
    if threshold is not None:
        threshold = check_real(threshold, "threshold")
    if false_discovery_rate is not None:
        false_discovery_rate = check_real(false_discovery_rate, "false_discovery_rate", above=0.0, below=1.0)
    pixel, keep_stationary = check_real(pixel, "pixel"), check_bool(keep_stationary, "keep_stationary")
    options = Options(threshold, false_discovery_rate, pixel, keep_stationary, seen)
    with np.errstate(under="ignore"):  # whatever the caller's settings
        return run(first, second, families, PARAMETERS, options, as_generator(rng))


def run(
    points1: Array,
    points2: Array,
    families: Families,
    parameters: Parameters,
    options: Options,
    rng: np.random.Generator,
) -> FilterResult:
    """Return the result for checked points (n, 2): the method on one page."""
    started, largest = time.perf_counter(), largest_coordinate(options.pixel)
    sight = None if options.cameras is None else Sight.of(points1, points2, options.cameras, largest)
    matches = MatchSet.of(points1, points2, parameters.unit * options.pixel, sight, largest)
    nothing = Labelling.nothing(len(matches))
    if matches.n_groups < MIN_MATCHES:
        return _result(matches, np.ones(len(matches)), nothing, why_too_few(matches, options.pixel))
    threshold = None if options.threshold is None else max(options.threshold * matches.frame.scale, 1e-300)
    parameters = replace(parameters, limit=math.inf if threshold is None else threshold / matches.unit)
    searched, rows = matches.sample(parameters.max_searched, rng)
    given = searched, decoys_of_matches(searched, parameters, rng), families, parameters
    structures, discarded, scores, tried = search(*given, rng)
    structures, overlapping, scores = drop_repetitions(structures, discarded, scores, *given, rng)
    structures, scores = resolve_overlaps(structures, overlapping, discarded, scores, *given, tried.n, rng)
    # A threshold wider than all radii changes no structure.
    narrow = threshold if parameters.limit < parameters.radii[-1] else None
    if narrow is not None and len(structures) > 1:
        structures = join_motions(structures, scores, searched, families, parameters)
    structures = divide(structures, *given, tried.n)
    anomaly_scores = scores.of_all(matches, rows, families, parameters)
    seconds = {"search": time.perf_counter() - started}
    if len(structures) == 0:
        return _result(matches, anomaly_scores, nothing, why_nothing(matches, options.pixel), tried, seconds)
    structures = refine_structures(structures, matches, families, parameters)
    if narrow is not None:
        structures = with_most_matches(structures, tried, matches, families, narrow, rng)
    if contradicted(structures, matches, families, parameters):
        families = replace(families, members=(families[0], FAMILIES["fundamental"]))
        return run(points1, points2, families, parameters, options, rng)
    labelled = structures, matches, anomaly_scores, searched, scores, families, parameters
    default = labelling = label_matches(*labelled)
    if threshold is not None or options.false_discovery_rate is not None:
        labelling = label_matches(*labelled, Choice(threshold, options.false_discovery_rate))
    overlays = is_overlay(structures, default, matches)
    # A low rate may leave a structure without a match, which is there all the same.
    kept = np.isin(np.arange(len(structures)), (default if threshold is None else labelling).labels)
    structures, overlays = structures.take(np.flatnonzero(kept)), overlays[kept]
    default, labelling = default.of_structures(kept), labelling.of_structures(kept)
    if not options.keep_stationary:
        labelling = labelling.without(np.append(overlays, False)[labelling.labels])  # -1, for none, is the last
    weights = default.match_weights(matches.weights, anomaly_scores)
    motions = MotionProblem(structures, families, parameters, matches, weights, default.labels, overlays)
    seconds["labelling"] = time.perf_counter() - started - seconds["search"]
    reason = why_nothing_is_kept(labelling.keep, len(structures), options.false_discovery_rate)
    result = _result(matches, anomaly_scores, labelling, reason, tried, seconds)
    return replace(
        result,
        models=_in_pixels(motions, result.labels, options.threshold),
        _motion_problem=motions if len(structures) > 0 else None,
        _distinct=_of_given(np.where(labelling.keep, np.arange(len(matches)), -1), matches, -1),
    )


def _as_points(
    points1: Keypoints, points2: Keypoints, matches: Matches | None, ratio: float | None
) -> tuple[Array, Array]:
    """Return corresponding points (n, 2), NaN in rows without a match."""
    if matches is not None:
        pairs = look_up(points1, points2, matches, ratio, ("points1", "points2"))
        return pairs.points1, pairs.points2
    if ratio is not None:
        raise ValueError("`ratio` needs `matches` that are knnMatch output with k >= 2, got None")
    return as_pairs(points1, points2)


def families_of(model: Model | TwoViewFamily, calibrated: bool | None = None) -> Families:
    """Return the families to sample, and which of them may become structures; `calibrated` is None without cameras.

    Homographies of neighbourhoods come first, whatever the model: they show which matches agree with their neighbours.
    """
    if calibrated is not None and not isinstance(model, str):
        what = type(model).__name__
        raise TypeError(f"`model` must be one of the built-in ones where `cameras` are given, got {what}")
    if not isinstance(model, str | type) and isinstance(model, TwoViewFamily):
        if model.codimension not in (1, 2):
            raise ValueError(f"`model.codimension` must be one of [1, 2], got {model.codimension!r}")
        return Families((CheckedFamily(model),), (True,))
    known = RAY_FAMILIES if calibrated else FAMILIES
    check_choice(model, "model", ("auto", *known), *(["a TwoViewFamily"] if calibrated is None else []))
    if model == "homography":
        return Families((known[model],), (True,))
    rigid = model if model != "auto" else "essential" if calibrated else "fundamental"
    return Families((known["homography"], known[rigid]), (model == "auto", True))


def _in_pixels(motions: MotionProblem, labels: Rows, threshold: float | None) -> tuple[Structure, ...]:
    """Return structures in pixels; `labels` (n,) are those of all matches given."""
    structures, matches, families = motions.structures, motions.matches, motions.families
    scale, n = matches.frame.scale, len(structures)
    tolerances = structures.tolerances / scale if threshold is None else np.full(n, threshold)
    matrices = families.to_pixels(structures, matches.into)
    names = [families[family_id].name for family_id in structures.family_ids]
    support = np.bincount(labels + 1, minlength=n + 1)[1:]
    columns = support, tolerances, structures.noise / scale, structures.evidences, motions.stationary
    fundamentals = (fundamental_matrix(*pair, matches) for pair in zip(matrices, names, strict=True))
    return tuple(map(Structure, matrices, names, *(column.tolist() for column in columns), fundamentals))


def _result(
    matches: MatchSet,
    scores: Array,
    labelling: Labelling,
    reason: str | None,
    tried: Tried | None = None,
    seconds: dict[str, float] | None = None,
) -> FilterResult:
    """Return a result for all matches that were given; rows that are not finite are flagged."""
    return FilterResult(
        _of_given(labelling.keep, matches, False),
        _of_given(scores, matches, 1.0),
        _of_given(labelling.probabilities, matches, 0.0),
        _of_given(labelling.labels, matches, -1),
        matches.finite,
        degenerate_samples=dict(zip(REJECTIONS, tried.rejected.tolist() if tried else [0] * 4, strict=True)),
        n_models=tried.n_models if tried else 0,
        reason=reason,
        seconds=seconds or {},
    )


def _of_given(values: NDArray[T], matches: MatchSet, nothing: float) -> NDArray[T]:
    """Return values (n,) of distinct matches for all rows given, `nothing` for those without a match."""
    given = np.full(len(matches.finite), nothing, values.dtype)
    given[matches.finite] = values[matches.where]
    return given
