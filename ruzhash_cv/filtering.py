"""The whole pipeline on one page: correspondences in, inlier mask out."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

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
from ruzhash_cv.models.base import CheckedFamily, Families, Models, TwoViewFamily
from ruzhash_cv.models.distances import FAMILIES, RAY_FAMILIES
from ruzhash_cv.motions import MotionProblem, fundamental_matrix
from ruzhash_cv.overlaps import join_motions, resolve_overlaps
from ruzhash_cv.parameters import PARAMETERS, Parameters
from ruzhash_cv.reasons import MIN_MATCHES, why_nothing, why_nothing_is_kept, why_too_few
from ruzhash_cv.result import FilterResult, Structure
from ruzhash_cv.sampling import REJECTIONS, decoys_of_matches
from ruzhash_cv.scoring import Scores
from ruzhash_cv.search import Tried, search

#: What there is in place of a keyword of earlier versions.
_RATE = "`false_discovery_rate` is the share of wrong matches among those kept"


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
    """Tell mismatches from true correspondences, however many planes or moving objects there are.

    Parameters
    ----------
    points1, points2 : array_like of shape (n, 2), or sequence of cv2.KeyPoint
        Points of the two images, pixels (x, y). Without `matches` they correspond row by row.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2), optional
        Which of the points correspond, see `as_correspondences`. The result has one entry for each match, or for each query row of
        knnMatch output.
    model : {"auto", "homography", "fundamental", "essential"} or TwoViewFamily
        Models to look for: planes, rigid motions, or both ("auto"), each where it has more evidence; or those of a family of your own.
        Where both cameras are given, "auto" takes essential matrices for rigid motions.
    threshold : float, optional
        As RANSAC's, but for all structures, in the unit of the points: no structure is searched for with a larger radius, and every
        match within it of one of the result's `models` is kept, by symmetric transfer error for a homography and Sampson distance for
        a fundamental matrix, also several of one keypoint. What lies beyond has probability 0. None: each structure gets a
        tolerance of its own from its residuals, between 0.75 and 24 px (homography) or 8.5 px (fundamental matrix).
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
    families = families_of(model, seen)
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
    if matches.n_groups < MIN_MATCHES:
        return _flagged(matches.finite, why_too_few(matches, options.pixel))
    threshold = None if options.threshold is None else max(options.threshold * matches.frame.scale, 1e-300)
    if threshold is not None:
        parameters = replace(parameters, limit=threshold / matches.unit)
    searched, rows = subsample(matches, parameters.max_searched, rng)
    decoys = decoys_of_matches(searched, parameters, rng)
    given = searched, decoys, families, parameters
    structures, discarded, scores, tried = search(*given, rng)
    structures, overlapping, scores = drop_repetitions(structures, discarded, scores, *given, rng)
    structures, scores = resolve_overlaps(structures, overlapping, discarded, scores, *given, tried.n, rng)
    # A threshold wider than all radii changes no structure.
    narrow = threshold if threshold is not None and threshold < parameters.radii[-1] * matches.unit else None
    if narrow is not None and len(structures) > 1:
        structures = join_motions(structures, scores, searched, families, parameters)
    structures = divide(structures, *given, tried.n)
    anomaly_scores = score_all(scores, matches, rows, families, parameters)
    search_seconds = time.perf_counter() - started
    if len(structures) == 0:
        result = _flagged(matches.finite, why_nothing(matches, options.pixel))
        result.anomaly_scores[matches.finite] = anomaly_scores[matches.where]  # the best may be true all the same
        return _with_statistics(result, tried, {"search": search_seconds})
    structures = refine_structures(structures, matches, families, parameters)
    if narrow is not None:
        structures = with_most_matches(structures, tried, matches, families, narrow, rng)
    if is_calibrated(families) and contradicted(structures, matches, families, parameters, RAY_FAMILIES["fundamental"]):
        families = replace(families, members=(families[0], RAY_FAMILIES["fundamental"]))
        return run(points1, points2, families, replace(parameters, limit=math.inf), options, rng)
    result = _labelled(structures, anomaly_scores, matches, searched, scores, families, parameters, options)
    seconds = {"search": search_seconds, "labelling": time.perf_counter() - started - search_seconds}
    return _with_statistics(result, tried, seconds)


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


def families_of(model: Model | TwoViewFamily, cameras: Cameras | None = None) -> Families:
    """Return the families to sample, and which of them may become structures.

    Homographies of neighbourhoods come first, whatever is asked for: they tell which matches agree with their neighbours.
    """
    if cameras is not None:
        return families_of_rays(model, calibrated=None not in cameras)
    if not isinstance(model, str | type) and isinstance(model, TwoViewFamily):
        if model.codimension not in (1, 2):
            raise ValueError(f"`model.codimension` must be one of [1, 2], got {model.codimension!r}")
        return Families((CheckedFamily(model),), (True,))
    check_choice(model, "model", ("auto", *FAMILIES), "a TwoViewFamily")
    both = FAMILIES["homography"], FAMILIES["fundamental"]
    return Families(both[:1], (True,)) if model == "homography" else Families(both, (model == "auto", True))


def families_of_rays(model: Model | TwoViewFamily, *, calibrated: bool) -> Families:
    """Return the families for matches with rays, as `families_of`."""
    if not isinstance(model, str):
        raise TypeError(
            f"`model` must be one of the built-in ones where `cameras` are given, got {type(model).__name__}"
        )
    known = [name for name in RAY_FAMILIES if calibrated or name != "essential"]
    check_choice(model, "model", ("auto", *known))
    planes, rigid = RAY_FAMILIES["homography"], RAY_FAMILIES["essential" if calibrated else "fundamental"]
    if model == "homography":
        return Families((planes,), (True,))
    return Families((planes, rigid if model == "auto" else RAY_FAMILIES[model]), (model == "auto", True))


def is_calibrated(families: Families) -> bool:
    """Tell whether rigid motions are those of known cameras."""
    return families.motion_id is not None and families[families.motion_id] is RAY_FAMILIES["essential"]


def subsample(matches: MatchSet, most: int, rng: np.random.Generator) -> tuple[MatchSet, Rows]:
    """Return at most so many matches, drawn at random, and their rows."""
    if len(matches) <= most:
        return matches, np.arange(len(matches))
    rows = np.sort(rng.choice(len(matches), most, replace=False))
    return matches.take(rows), rows


def score_all(scores: Scores, matches: MatchSet, rows: Rows, families: Families, parameters: Parameters) -> Array:
    """Return the anomaly scores of all matches; those searched are its `rows`."""
    if len(rows) == len(matches):
        return scores.of_matches
    of_all, others = np.empty(len(matches)), np.setdiff1d(np.arange(len(matches)), rows)
    of_all[rows] = scores.of_matches
    of_all[others] = scores.of_others(matches, others, families, parameters)
    return of_all


def _labelled(
    structures: Models,
    scores: Array,
    matches: MatchSet,
    searched: MatchSet,
    null: Scores,
    families: Families,
    parameters: Parameters,
    options: Options,
) -> FilterResult:
    """Return the result of the structures, without those that hold no match."""
    given = structures, matches, scores, searched, null, families, parameters
    own = labelling = label_matches(*given)
    if options.threshold is not None or options.false_discovery_rate is not None:
        tolerance = None if options.threshold is None else max(options.threshold * matches.frame.scale, 1e-300)
        labelling = label_matches(*given, Choice(tolerance, options.false_discovery_rate))
    overlays = is_overlay(structures, own, matches)
    # A low rate may leave a structure without a match, which is there all the same.
    kept = np.isin(np.arange(len(structures)), (own if options.threshold is None else labelling).labels)
    structures, overlays = structures.take(np.flatnonzero(kept)), overlays[kept]
    own, labelling = own.of_structures(kept), labelling.of_structures(kept)
    if not options.keep_stationary:
        labelling = labelling.without(np.append(overlays, False)[labelling.labels])  # -1, for none, is the last
    weights = own.match_weights(matches.weights, scores)
    motions = MotionProblem(structures, families, parameters, matches, weights, own.labels, overlays)
    return _in_pixels(motions, labelling, scores, options)


def _in_pixels(motions: MotionProblem, labelling: Labelling, scores: Array, options: Options) -> FilterResult:
    """Return structures in pixels, and the labelling of all matches that were given; what is not finite is flagged."""
    structures, matches, families = motions.structures, motions.matches, motions.families
    finite, where, scale = matches.finite, matches.where, matches.frame.scale
    tolerances = structures.tolerances / scale
    if options.threshold is not None:
        tolerances = np.full(len(structures), options.threshold)
    matrices = families.to_pixels(structures, matches.into)
    names = [families[family_id].name for family_id in structures.family_ids]
    supports = np.bincount(labelling.labels[where] + 1, minlength=len(structures) + 1)[1:]
    told = supports, tolerances, structures.noise / scale, structures.evidences, motions.stationary
    fundamentals = (fundamental_matrix(*each, matches) for each in zip(matrices, names, strict=True))
    models = map(Structure, matrices, names, *(each.tolist() for each in told), fundamentals)
    distinct = np.full(len(finite), -1)
    distinct[finite] = np.where(labelling.keep[where], where, -1)
    result = _flagged(
        finite,
        why_nothing_is_kept(labelling.keep, len(structures), options.false_discovery_rate),
        models=tuple(models),
        _motion_problem=motions if len(structures) > 0 else None,
        _distinct=distinct,
    )
    result.inlier_mask[finite], result.anomaly_scores[finite] = labelling.keep[where], scores[where]
    result.inlier_probabilities[finite], result.labels[finite] = labelling.probabilities[where], labelling.labels[where]
    return result


def _flagged(has_match: Mask, reason: str | None, **found: Any) -> FilterResult:
    """Return a result that keeps none of the rows."""
    n = len(has_match)
    nothing = np.zeros(n, bool), np.ones(n), np.zeros(n), np.full(n, -1, np.int64)
    return FilterResult(*nothing, has_match, reason=reason, **found)


def _with_statistics(result: FilterResult, tried: Tried, seconds: dict[str, float]) -> FilterResult:
    rejected = dict(zip(REJECTIONS, tried.rejected.tolist(), strict=True))
    return replace(result, degenerate_samples=rejected, n_models=tried.n_models, seconds=seconds)
