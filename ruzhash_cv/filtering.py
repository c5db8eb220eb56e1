"""The whole pipeline on one page: correspondences in, inlier mask out."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._core.validation import (
    RNG,
    as_generator,
    as_points,
    check_choice,
    check_n_jobs,
    check_real,
    check_same_length,
)
from ruzhash_cv.correspondences import Keypoints, Matches, as_correspondences
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.solving import FAMILIES
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.result import FilterResult, Structure
from ruzhash_cv.structures.evidence import Structures
from ruzhash_cv.structures.search import Search, refit
from ruzhash_cv.verdict import Verdict, decide, lost_to_rivals

#: Fewer distinct correspondences than this decide nothing: 7 make a fundamental matrix, and one must agree with it.
FEWEST_MATCHES = 8
#: Correspondences the models are searched in; more are only scored.
SEARCH_SIZE = 1024

Array = NDArray[np.float64]


def filter_matches(
    kp1: Keypoints,
    kp2: Keypoints,
    matches: Matches,
    *,
    model: str | TwoViewFamily = "auto",
    threshold: float | None = None,
    ratio: float | None = None,
    false_acceptance_rate: float | None = None,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> NDArray[np.bool_]:
    """Return the inlier mask of keypoint matches: True = keep.

    Parameters
    ----------
    kp1, kp2 : sequence of cv2.KeyPoint, or array_like of shape (n, 2)
        Keypoints of the two images, or their pixel positions (x, y).
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2)
        See `as_correspondences`.
    ratio : float in (0, 1], optional
        Run Lowe's ratio test on knnMatch output first; rows that fail it are flagged.
    model, threshold, false_acceptance_rate, rng, n_jobs
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
        rng=rng,
        n_jobs=n_jobs,
    ).inlier_mask


def filter_points(
    points1: ArrayLike,
    points2: ArrayLike,
    *,
    model: str | TwoViewFamily = "auto",
    threshold: float | None = None,
    false_acceptance_rate: float | None = None,
    pixel: float = 1.0,
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
        each structure gets the tolerance its own residuals ask for, between 0.75 and 34 px (homography) or 8.5 px (fundamental matrix).
    false_acceptance_rate : float in (0, 1), optional
        Share of mismatches accepted: the mask is p-value <= rate, whatever the structures (within `threshold`, where one is
        given). None: kept is what lies within the tolerance of a structure (of a fundamental matrix: if 98 % of decoys look
        worse) and, without a `threshold`, up to three times as far what looks better than almost every decoy and almost every match
        further off; see docs/method.md.
    pixel : float
        Size of a pixel in the unit of the points: 1 / focal length for normalised image coordinates. All lengths of the method are
        multiples of it.
    rng : int, numpy.random.Generator or None
        The same int gives the same result, whatever `n_jobs`.
    n_jobs : int or None
        Threads; None for all processors.

    Returns
    -------
    FilterResult
        Also where nothing could be decided (fewer than 8 distinct matches, nothing found): all matches are then flagged and
        `reason` says why.

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
    first, second = as_points(points1, "points1"), as_points(points2, "points2")
    check_same_length(first, second, "`points1` and `points2`")
    families, admitted = _families(model)
    if threshold is not None:
        threshold = check_real(threshold, "threshold")
    if false_acceptance_rate is not None:
        false_acceptance_rate = check_real(false_acceptance_rate, "false_acceptance_rate", above=0.0, below=1.0)
    generator, jobs, clock = as_generator(rng), check_n_jobs(n_jobs), _Clock()

    matches = MatchSet.of(first, second, check_real(pixel, "pixel"))
    if matches.n_groups < FEWEST_MATCHES:
        reason = f"{matches.n_groups} distinct matches, at least {FEWEST_MATCHES} are needed"
        return _undecided(len(first), reason, clock)
    searched, rows = matches, np.arange(len(matches))
    if len(matches) > SEARCH_SIZE:
        rows = np.sort(generator.choice(len(matches), SEARCH_SIZE, replace=False))
        searched = matches.take(rows)
    found = Search(searched, families, admitted, generator, jobs).run()
    clock.stop("search")
    if len(found.structures) == 0:
        reason = "no model found that more matches agree with than chance would give"
        return replace(
            _undecided(len(first), reason, clock), degenerate_samples=found.rejected, n_models=found.n_models
        )
    structures, scores, null_scores = found.structures, found.scores, found.null_scores
    if searched is not matches:
        structures = _refitted(structures, matches, families)
        scores, others = np.empty(len(matches)), np.setdiff1d(np.arange(len(matches)), rows)
        scores[rows], scores[others] = found.scores, found.scorer.others(matches.data[others], matches.groups[others])
    clock.stop("forest")
    scale = matches.frame.scale
    tolerances = (
        structures.tolerances * matches.length / scale if threshold is None else np.full(len(structures), threshold)
    )
    residuals, null_residuals = (
        np.sqrt(squared_residuals(families, structures.codes, structures.models, data)).T / scale
        for data in (matches.data, found.null)
    )
    codimensions = np.array([families[code].codimension for code in structures.codes])
    verdict = decide(
        residuals, null_residuals, tolerances, codimensions, scores, null_scores, threshold, false_acceptance_rate
    )
    if false_acceptance_rate is None:
        lost = lost_to_rivals(matches, verdict, scores, codimensions)
        verdict.keep[lost], verdict.labels[lost] = False, -1
    described = _describe(structures, matches, families, verdict, residuals, tolerances)
    result = _spread(matches, verdict, scores, described)
    clock.stop("structures")
    return replace(result, degenerate_samples=found.rejected, n_models=found.n_models, seconds=clock.seconds)


def _families(model: str | TwoViewFamily) -> tuple[tuple[TwoViewFamily, ...], tuple[TwoViewFamily, ...]]:
    """Return the families to sample, and which of them may become structures.

    Homographies of neighbourhoods come first, whatever is asked for: they tell which matches agree with their neighbours.
    """
    if not isinstance(model, str) and all(hasattr(model, member) for member in ("solve", "fit", "to_pixels")):
        return (model,), (model,)
    check_choice(model, "model", ("auto", *FAMILIES))
    both = FAMILIES["homography"], FAMILIES["fundamental"]
    if model == "auto":
        return both, both
    return (both[:1], both[:1]) if model == "homography" else (both, both[1:])


class _Clock:
    """Seconds since the last stop, by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def stop(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._since
        self._since = now


def _undecided(n: int, reason: str, clock: _Clock) -> FilterResult:
    return FilterResult(
        np.zeros(n, bool), np.ones(n), np.ones(n), np.full(n, -1, np.int64), reason=reason, seconds=clock.seconds
    )


def _refitted(structures: Structures, matches: MatchSet, families: tuple[TwoViewFamily, ...]) -> Structures:
    """Return structures fitted to all correspondences, where they were found in some of them."""
    models = structures.models.copy()
    for code, family in enumerate(families):
        own = structures.codes == code
        radii = structures.tolerances[own] * matches.length
        models[own] = refit(family, matches.data, matches.votes, models[own], radii)
    return replace(structures, models=models)


def _describe(
    structures: Structures,
    matches: MatchSet,
    families: tuple[TwoViewFamily, ...],
    verdict: Verdict,
    residuals: Array,
    tolerances: Array,
) -> tuple[Structure, ...]:
    """Return the structures in pixels; supports count all the matches that were given."""
    described = []
    labels = verdict.labels[matches.where]
    for item, (code, model) in enumerate(zip(structures.codes, structures.models, strict=True)):
        family = families[code]
        held = residuals[verdict.labels == item, item]
        described.append(
            Structure(
                family.to_pixels(model[None], *matches.frame.transforms()).reshape(3, 3),
                family.name,
                int((labels == item).sum()),
                float(tolerances[item]),
                1.4826 * float(np.sort(held)[len(held) // 2]) if len(held) else 0.0,
                float(structures.evidences[item]),
            )
        )
    return tuple(described)


def _spread(matches: MatchSet, verdict: Verdict, scores: Array, described: tuple[Structure, ...]) -> FilterResult:
    """Return the verdict on the distinct correspondences for all that were given; what is not finite is flagged."""
    finite, where, n = matches.finite, matches.where, len(matches.finite)
    result = FilterResult(
        np.zeros(n, bool), np.ones(n), np.ones(n), np.full(n, -1, np.int64), described,
        verdict.score_threshold, verdict.mismatch_rate,
    )  # fmt: skip
    result.inlier_mask[finite], result.anomaly_scores[finite] = verdict.keep[where], scores[where]
    result.p_values[finite], result.labels[finite] = verdict.p[where], verdict.labels[where]
    return result
