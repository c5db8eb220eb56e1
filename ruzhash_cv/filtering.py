"""The whole pipeline on one page: correspondences in, inlier mask out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import RNG, as_generator, as_pairs, check_choice, check_n_jobs, check_real
from ruzhash_cv.correspondences import Keypoints, Matches, as_correspondences
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.solving import FAMILIES
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.keypoints import Appearance, as_appearance
from ruzhash_cv.matchset import LENGTH, MatchSet
from ruzhash_cv.motions import SeenInPixels
from ruzhash_cv.result import FilterResult, Structure
from ruzhash_cv.structures.evidence import Structures
from ruzhash_cv.structures.motions import Motions, Seen
from ruzhash_cv.structures.refinement import refine
from ruzhash_cv.structures.search import PLANS, Families, Found, Search
from ruzhash_cv.verdict import Verdict, decide, lost_to_rivals

#: Fewer distinct correspondences than this decide nothing: 7 make a fundamental matrix, and one must agree with it.
FEWEST_MATCHES = 8
#: Correspondences the models are searched in; more are only scored.
SEARCH_SIZE = 1024


def filter_matches(
    kp1: Keypoints,
    kp2: Keypoints,
    matches: Matches,
    *,
    model: str | TwoViewFamily = "auto",
    threshold: float | None = None,
    ratio: float | None = None,
    false_acceptance_rate: float | None = None,
    keep_stationary: bool = True,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> Mask:
    """Return the inlier mask of keypoint matches: True = keep.

    Parameters
    ----------
    kp1, kp2 : sequence of cv2.KeyPoint, or array_like of shape (n, 2)
        Keypoints of the two images, or their pixel positions (x, y).
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2)
        See `as_correspondences`.
    ratio : float in (0, 1], optional
        Run Lowe's ratio test on knnMatch output first; rows that fail it are flagged.
    model, threshold, false_acceptance_rate, keep_stationary, rng, n_jobs
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
    pairs = as_correspondences(kp1, kp2, matches, ratio=ratio)
    return filter_points(
        pairs.points1,
        pairs.points2,
        model=model,
        threshold=threshold,
        false_acceptance_rate=false_acceptance_rate,
        keep_stationary=keep_stationary,
        sizes=pairs.sizes,
        angles=pairs.angles,
        rng=rng,
        n_jobs=n_jobs,
    ).inlier_mask


@uninterrupted
def filter_points(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    model: str | TwoViewFamily = "auto",
    threshold: float | None = None,
    false_acceptance_rate: float | None = None,
    pixel: float = 1.0,
    keep_stationary: bool = True,
    sizes: tuple[ArrayLike, ArrayLike] | None = None,
    angles: tuple[ArrayLike, ArrayLike] | None = None,
    match_quality: ArrayLike | None = None,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> FilterResult:
    """Tell mismatches from true correspondences, however many planes or moving objects there are.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels (x, y). Rows with NaN or infinity are flagged and do not affect the others; exact
        repetitions get one verdict.
    model : {"auto", "homography", "fundamental"} or TwoViewFamily
        Which models to look for: planes, rigid motions, each where the evidence asks for it, or those of a family of one's own.
    threshold : float, optional
        The tolerance of every structure, in the unit of the points: every kept match lies within it of one of the result's `models`,
        by symmetric transfer error for a homography and Sampson distance for a fundamental matrix. It changes nothing else. None:
        each structure gets the tolerance its own residuals ask for, between 0.75 and 24 px (homography) or 8.5 px (fundamental matrix).
    false_acceptance_rate : float in (0, 1), optional
        Share of mismatches accepted: the mask is p-value <= rate, whatever the structures (within `threshold`, where one is
        given). None: kept is what lies within the tolerance of a structure (of a fundamental matrix: if 98 % of decoys look
        worse), and up to three times as far what looks better than almost all decoys; see docs/method.md.
    pixel : float
        Size of a pixel in the unit of the points: 1 / focal length for normalised image coordinates. All lengths of the method are
        multiples of it.
    keep_stationary : bool
        Keep what did not move while the rest of the pair did: watermarks, time stamps, black borders, the bonnet of a car. Such
        matches are a structure of their own, marked `stationary`, and never part of a motion: a homography, whatever `model` is, or
        of a family of one's own. From a tripod all is kept.
    sizes, angles : tuple of two array_like, shape (n,), optional
        Sizes (any unit, above 0) and angles (degrees) of the keypoints of each match in the first and the second image. True matches
        turn and scale as their neighbours do: those that do not are seldom drawn where samples of seven are.
    match_quality : array_like, shape (n,), optional
        Lower is better: descriptor distance, or its ratio to the second best. What it tells is learnt from the pair.
    rng : int, numpy.random.Generator or None
        The same int gives the same result, whatever `n_jobs`.
    n_jobs : int or None
        Threads; None for all processors.

    Returns
    -------
    FilterResult
        Also where nothing could be decided (fewer than 8 distinct matches, nothing found): all matches are then flagged, their
        p-values are 1, and `reason` says why. Scores rank them also where nothing was found.

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
    """
    first, second = as_pairs(points1, points2)
    families, admitted = _families(model)
    if threshold is not None:
        threshold = check_real(threshold, "threshold")
    if false_acceptance_rate is not None:
        false_acceptance_rate = check_real(false_acceptance_rate, "false_acceptance_rate", above=0.0, below=1.0)
    told = sizes, angles, match_quality
    appearance = None if all(each is None for each in told) else as_appearance(*told, len(first))
    generator, jobs, clock = as_generator(rng), check_n_jobs(n_jobs), [time.perf_counter()]

    matches = MatchSet.of(first, second, check_real(pixel, "pixel"))
    if matches.n_groups < FEWEST_MATCHES:
        return _undecided(len(first), reason=_why_too_few(matches))
    appearance = appearance and appearance.take(matches.first_given())
    given = matches, appearance, families, admitted, generator, jobs
    found, scores = _searched(*given)
    clock.append(time.perf_counter())
    counts: dict[str, Any] = {"degenerate_samples": found.rejected, "n_models": found.n_models}
    if len(found.structures) == 0:
        result = _undecided(len(first), reason=_why_nothing(matches), seconds=_seconds(clock), **counts)
        result.anomaly_scores[matches.finite] = scores[matches.where]  # what looks best may be true all the same
        return result
    structures = _refined(found.structures, matches, families)
    own = verdict = _judged(structures, found, scores, matches, families)
    if threshold is not None or false_acceptance_rate is not None:
        verdict = _judged(structures, found, scores, matches, families, threshold, false_acceptance_rate)
    stationary = _stationary(structures, own, matches)
    if not keep_stationary:
        verdict = verdict.without(np.append(stationary, False)[verdict.labels])  # -1, for none, is the last
    result = _result(structures, matches, families, scores, verdict, own, stationary, threshold)
    clock.append(time.perf_counter())
    return replace(result, seconds=_seconds(clock), **counts)


def _why_too_few(matches: MatchSet) -> str:
    """Say what makes the matches too few: there are few, they are one, or the unit is no pixel."""
    reason = f"{matches.n_groups} distinct matches, at least {FEWEST_MATCHES} are needed"
    if len(matches) == 1 < len(matches.where):
        return f"{reason}: all points are the same"
    if len(matches) >= FEWEST_MATCHES:
        span = max(np.ptp(matches.data, axis=0)) / matches.frame.scale
        return f"{reason}: all points lie within {span:.3g} units; if the unit is not the pixel, give `pixel`, the size of one"
    return reason


def _why_nothing(matches: MatchSet) -> str:
    """Say why there are no structures: all points of an image are the same or on a line, or no model is better than chance."""
    for name, points in (("first", matches.data[:, :2]), ("second", matches.data[:, 2:])):
        along, off = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) / np.sqrt(len(points))
        if along < matches.length / LENGTH:
            return f"the points of the {name} image are all the same"
        if off < matches.length / LENGTH:
            return f"the points of the {name} image lie on a line"
    return "no model found that more matches agree with than chance would give"


def _searched(
    matches: MatchSet,
    appearance: Appearance | None,
    families: Families,
    admitted: Families,
    rng: np.random.Generator,
    n_jobs: int,
) -> tuple[Found, Array]:
    """Return what a search among at most `SEARCH_SIZE` matches finds, and the anomaly scores of all matches."""
    rows, searched = np.arange(len(matches)), matches
    if len(matches) > SEARCH_SIZE:
        rows = np.sort(rng.choice(len(matches), SEARCH_SIZE, replace=False))
        searched = matches.take(rows)
    search = Search(searched, families, admitted, rng, n_jobs, appearance and appearance.take(rows))
    found = search.run()
    if found.mixed.any():
        false, motions = _false_planes(found, searched, families)
        found = search.without(found, false, motions) if false.any() else found
    found = search.divided(found)
    if len(rows) == len(matches):
        return found, found.scores
    scores, others = np.empty(len(matches)), np.setdiff1d(np.arange(len(matches)), rows)
    scores[rows], scores[others] = found.scores, found.scorer.others(matches.data[others], matches.groups[others])
    return found, scores


def _false_planes(found: Found, matches: MatchSet, families: Families) -> tuple[Mask, Motions]:
    """Tell which structures are planes that cannot be, and return the rigid motions of the others.

    Two surfaces are not seen in one place. The true one is that whose motion holds more matches, those flagged counted by what speaks
    for them: a wall moves with what stands before it.
    """
    structures = _refined(found.structures, matches, families)
    verdict = _judged(structures, found, found.scores, matches, families)
    stationary, weights = _stationary(structures, verdict, matches), verdict.weigh(matches.votes)
    motions, _ = Seen(structures, families, matches, weights, verdict.labels, stationary).motions()
    rank, false = np.argmax(motions.holds, axis=0), np.zeros(len(structures), bool)
    for plane in np.argsort(rank, kind="stable"):
        false[plane] = (found.mixed[plane] & (rank < rank[plane]) & ~false).any()
    codimensions = np.array([family.codimension for family in families])
    rigid = codimensions[motions.codes] == codimensions.min()
    return false, motions.take(np.flatnonzero(rigid & (motions.holds & ~false).any(axis=1)))


def _refined(structures: Structures, matches: MatchSet, families: Families) -> Structures:
    """Return structures fitted at their own noise scales, but for what stood still.

    What is left beside a stronger structure must not become it: a fit is without what stronger ones hold that are as narrow. But
    motions hold planes.
    """
    radii, codes = structures.tolerances * matches.length, structures.codes
    codimensions, rank = _codimensions(structures, families), np.arange(len(structures))
    before = (rank[:, None] > rank) & (radii[:, None] >= radii) & (codimensions[:, None] == codimensions)
    own = None
    if before.any():
        held = squared_residuals(families, codes, structures.models, matches.data) <= (radii**2)[:, None]
        own = ~(before @ held)
    models, noise = refine(families, codes, structures.models, matches.data, matches.votes, radii, own)
    return replace(structures, models=np.where(structures.still[:, None], structures.models, models), noise=noise)


def _judged(
    structures: Structures,
    found: Found,
    scores: Array,
    matches: MatchSet,
    families: Families,
    threshold: float | None = None,
    false_acceptance_rate: float | None = None,
) -> Verdict:
    """Return the verdict on all matches, by their scores and their distances to the structures."""
    tolerances, limits = structures.tolerances * matches.length, None
    if threshold is not None:
        limits = np.full(len(structures), max(threshold * matches.frame.scale, 1e-300))  # never quite nothing
    residuals, null_residuals = (
        np.sqrt(squared_residuals(families, structures.codes, structures.models, data)).T
        for data in (matches.data, found.null)
    )
    codimensions = _codimensions(structures, families)
    verdict = decide(
        residuals, null_residuals, tolerances, codimensions, scores, found.null_scores, limits, false_acceptance_rate
    )
    if false_acceptance_rate is not None:
        return verdict
    return verdict.without(lost_to_rivals(matches, verdict, scores, codimensions))


def _codimensions(structures: Structures, families: Families) -> Rows:
    return np.array([families[code].codimension for code in structures.codes])


def _stationary(structures: Structures, verdict: Verdict, matches: MatchSet) -> Mask:
    """Tell which structures stood still while more matches moved."""
    votes = np.bincount(verdict.labels + 1, matches.votes, minlength=len(structures) + 1)[1:]
    return np.asarray(structures.still & (votes < votes[~structures.still].sum()))


def _families(model: str | TwoViewFamily) -> tuple[Families, Families]:
    """Return the families to sample, and which of them may become structures.

    Homographies of neighbourhoods come first, whatever is asked for: they tell which matches agree with their neighbours.
    """
    if not isinstance(model, str | type) and isinstance(model, TwoViewFamily):
        if model.codimension not in PLANS:
            raise ValueError(f"`model.codimension` must be one of {sorted(PLANS)}, got {model.codimension!r}")
        return (model,), (model,)
    check_choice(model, "model", ("auto", *FAMILIES), "a TwoViewFamily")
    both = FAMILIES["homography"], FAMILIES["fundamental"]
    if model == "auto":
        return both, both
    return (both[:1], both[:1]) if model == "homography" else (both, both[1:])


def _seconds(clock: list[float]) -> dict[str, float]:
    """Return the time of each stage from when it began, and the last one ended; where nothing was found there is no verdict."""
    return dict(zip(("search", "verdict"), np.diff(clock).tolist(), strict=False))


def _undecided(n: int, **told: Any) -> FilterResult:
    """Return a result that flags all of n matches."""
    return FilterResult(np.zeros(n, bool), np.ones(n), np.ones(n), np.full(n, -1, np.int64), **told)


def _result(
    structures: Structures,
    matches: MatchSet,
    families: Families,
    scores: Array,
    verdict: Verdict,
    own: Verdict,
    stationary: Mask,
    threshold: float | None,
) -> FilterResult:
    """Return structures in pixels, and the verdict for all matches that were given; what is not finite is flagged."""
    finite, where, scale = matches.finite, matches.where, matches.frame.scale
    tolerances = structures.tolerances * matches.length / scale
    if threshold is not None:
        tolerances = np.full(len(structures), threshold)
    matrices, into = np.empty_like(structures.models), matches.frame.transforms()
    for code in np.unique(structures.codes):
        own_models = structures.codes == code
        matrices[own_models] = families[code].to_pixels(structures.models[own_models], *into)
    names = [families[code].name for code in structures.codes]
    supports = np.bincount(verdict.labels[where] + 1, minlength=len(structures) + 1)[1:]
    told = supports, tolerances, structures.noise / scale, structures.evidences, stationary
    models = map(Structure, matrices.reshape(-1, 3, 3), names, *(each.tolist() for each in told))
    given = np.full(len(finite), -1)
    given[finite] = np.where(verdict.keep[where], where, -1)
    result = _undecided(
        len(finite),
        models=tuple(models),
        score_threshold=verdict.score_threshold,
        mismatch_rate=verdict.mismatch_rate,
        _seen=SeenInPixels(
            Seen(structures, families, matches, own.weigh(matches.votes), own.labels, stationary), given
        ),
    )
    result.inlier_mask[finite], result.anomaly_scores[finite] = verdict.keep[where], scores[where]
    result.p_values[finite], result.labels[finite] = verdict.p[where], verdict.labels[where]
    return result
