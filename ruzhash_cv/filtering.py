"""The whole pipeline on one page: correspondences in, inlier mask out."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._validation import (
    RNG,
    as_generator,
    as_points,
    check_choice,
    check_n_jobs,
    check_real,
    check_same_length,
)
from ruzhash_cv.bank import Found, coordinate_rows
from ruzhash_cv.correspondences import Keypoints, Matches, as_correspondences
from ruzhash_cv.mask import SURE_REACH, Verdict, decide, lost_to_rivals
from ruzhash_cv.models import HOMOGRAPHY, KINDS, Frame
from ruzhash_cv.places import PLACE_RADIUS, KeypointNumbers, find_keypoints, find_places, votes_of
from ruzhash_cv.result import FilterResult, Structure
from ruzhash_cv.scoring import Scorer, displace, draw_null
from ruzhash_cv.search import REACH, Search
from ruzhash_cv.selection import WITHIN_THRESHOLD, Limits

#: Fewer distinct correspondences than this decide nothing: 7 make a fundamental matrix, and one must agree with it.
FEWEST_MATCHES = 8
#: Pixels; anything larger is no coordinate, and beyond it a fundamental matrix of doubles is not exact to a pixel.
LARGEST_COORDINATE = 1e9
#: Correspondences the models are searched in; more are only scored.
SEARCH_SIZE = 1024

Array = NDArray[np.float64]


def filter_matches(
    kp1: Keypoints,
    kp2: Keypoints,
    matches: Matches,
    *,
    model: str = "auto",
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
    model: str = "auto",
    threshold: float | None = None,
    false_acceptance_rate: float | None = None,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> FilterResult:
    """Tell mismatches from true correspondences, however many planes or moving objects there are.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels (x, y). Rows with NaN or infinity are flagged and do not affect the others; exact
        repetitions get one verdict.
    model : {"auto", "homography", "fundamental"}
        Which models to look for: planes, rigid motions, or each where the evidence asks for it.
    threshold : float, optional
        Pixels. Every kept match lies within it of one of the result's `models`: symmetric transfer error for a homography,
        Sampson distance for a fundamental matrix. None: each structure gets the tolerance its own residuals ask for,
        between 0.75 and 34 px (homography) or 0.6 and 10 px (fundamental matrix). Samples are embedded at the noise scales
        sigma = 1, 3 and 9 px at once and cut off at eps = 27 px; a threshold T makes these, and every other length in pixels,
        T / 3 times as large.
    false_acceptance_rate : float in (0, 1), optional
        Share of mismatches accepted: the mask is p-value <= rate, whatever the structures (within `threshold`, where one is
        given). None: kept is what lies within the tolerance of a structure (of a fundamental matrix: if 98 % of decoys look
        worse; the few beyond 20 px of a plane: if 99 % do) and, without a `threshold`, up to three times as far what looks
        better than almost every decoy and than most of what was displaced as far; see docs/method.md.
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
    check_choice(model, "model", ("auto", *KINDS))
    if threshold is not None:
        threshold = check_real(threshold, "threshold")
    if false_acceptance_rate is not None:
        false_acceptance_rate = check_real(false_acceptance_rate, "false_acceptance_rate", above=0.0, below=1.0)
    generator, jobs = as_generator(rng), check_n_jobs(n_jobs)
    families = KINDS if model == "auto" else (model,)

    clock = _Clock()
    problem = _Problem.of(first, second, threshold)
    if problem.n_places < FEWEST_MATCHES:
        return _undecided(len(first), _too_few(problem.n_places, threshold), clock)
    limits = Limits() if threshold is None else WITHIN_THRESHOLD
    search, found = _search(problem, families, limits, generator, jobs)
    clock.stop("search")
    if len(found.structures) == 0:
        return replace(
            _undecided(len(first), "no model found that more matches agree with than chance would give", clock),
            degenerate_samples=found.rejected,
            n_models=found.n_models,
        )
    points = coordinate_rows(problem.pairs)
    residuals = found.residuals(points)
    scorer = Scorer(search, found)
    scores = scorer.fit(points, residuals, problem.places)
    decoy_scores = scorer.score(draw_null(search, found, problem.pairs, residuals))
    clock.stop("forest")
    verdict = decide(
        residuals / problem.frame.scale,
        problem.unit,
        found,
        scores,
        decoy_scores,
        lambda: scorer.score(displace(search, found, problem.pairs, residuals, SURE_REACH)),
        threshold,
        false_acceptance_rate,
    )
    if false_acceptance_rate is None:
        on_plane = found.structures.kinds[verdict.labels] == HOMOGRAPHY
        reach = REACH * problem.length
        lost = lost_to_rivals(problem.pairs, problem.keypoints, reach, verdict.keep, scores, verdict.labels, on_plane)
        verdict.keep[lost], verdict.labels[lost] = False, -1
    result = _report(verdict, found, problem)
    clock.stop("structures")
    return replace(result, seconds=clock.seconds)


@dataclass(frozen=True)
class _Problem:
    """Distinct correspondences (n, 4) in the frame; and for each row that is `finite` which of them it is, `where`.

    A length in pixels times `unit` is what it is with the threshold asked for, and times `length` that in the frame.
    """

    pairs: Array
    places: NDArray[np.int64]
    keypoints: KeypointNumbers
    frame: Frame
    unit: float
    length: float
    finite: NDArray[np.bool_]
    where: NDArray[np.int64]

    @classmethod
    def of(cls, points1: Array, points2: Array, threshold: float | None) -> _Problem:
        """Return the problem of corresponding points in pixels."""
        pixels = np.hstack([points1, points2])
        # Coordinates beyond any image would overflow in squares; they are flagged as infinite ones are.
        finite = np.asarray((np.abs(pixels) < LARGEST_COORDINATE).all(axis=1))
        # Distinct and in their own order before anything is computed: neither repetitions nor the order given change a bit.
        pixels, where = _distinct(pixels[finite])
        frame = Frame.around(pixels[:, :2], pixels[:, 2:])
        pairs = frame.enter(pixels[:, :2], pixels[:, 2:])
        # A threshold of 3 px, RANSAC's default, is the unit in which all lengths are chosen.
        unit = 1.0 if threshold is None else threshold / 3.0
        # In the frame a shorter or longer one is nothing or everything, and squares and quotients must not overflow.
        length = min(max(frame.scale * unit, 1e-12), 1e12)
        places = find_places(pairs, PLACE_RADIUS * length)
        return cls(pairs, places, find_keypoints(pairs), frame, unit, length, finite, where)

    @property
    def n_places(self) -> int:
        """Number of distinct places, each with one vote."""
        return int(self.places.max(initial=-1)) + 1


def _search(
    problem: _Problem, families: tuple[str, ...], limits: Limits, rng: np.random.Generator, n_jobs: int
) -> tuple[Search, Found]:
    """Search in all correspondences, or in a subset of many, and fit what is found to all."""
    n = len(problem.pairs)
    chosen = np.arange(n) if n <= SEARCH_SIZE else np.sort(rng.choice(n, SEARCH_SIZE, replace=False))
    first, second = (points[chosen] for points in problem.keypoints)
    search = Search(
        problem.pairs[chosen], problem.places[chosen], (first, second), problem.length, families, rng, n_jobs, limits
    )
    found = search.run()
    if len(chosen) < n:
        search.polish(found, coordinate_rows(problem.pairs), votes_of(problem.places, problem.keypoints))
    return search, found


class _Clock:
    """Seconds since the last stop, by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def stop(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self._since
        self._since = now


def _distinct(pairs: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return distinct rows, and for each row the distinct one it equals."""
    if len(pairs) == 0:
        return pairs, np.zeros(0, np.int64)
    order = np.lexsort(pairs.T)
    new = np.concatenate([[True], (np.diff(pairs[order], axis=0) != 0).any(axis=1)])
    where = np.empty(len(pairs), np.int64)
    where[order] = np.cumsum(new) - 1
    return np.ascontiguousarray(pairs[order[new]]), where


def _too_few(n_places: int, threshold: float | None) -> str:
    reason = f"{n_places} distinct matches, at least {FEWEST_MATCHES} are needed"
    if threshold is None:
        return reason
    return f"{reason}; with a threshold of {threshold:g} px those within as much of each other in both images are one"


def _undecided(n: int, reason: str, clock: _Clock) -> FilterResult:
    return FilterResult(
        np.zeros(n, bool), np.ones(n), np.ones(n), np.full(n, -1, np.int64), reason=reason, seconds=clock.seconds
    )


def _report(verdict: Verdict, found: Found, problem: _Problem) -> FilterResult:
    """Spread the verdict on the distinct correspondences over all matches, and describe the structures in pixels."""
    finite, where, n = problem.finite, problem.where, len(problem.finite)
    mask, scores, p, labels = np.zeros(n, bool), np.ones(n), np.ones(n), np.full(n, -1, np.int64)
    mask[finite], scores[finite] = verdict.keep[where], verdict.scores[where]
    p[finite], labels[finite] = verdict.p[where], verdict.labels[where]
    structures, kinds = [], found.structures.kinds
    matrices = found.structures.packed[:, :9].copy().reshape(-1, 3, 3)
    for code, kind in enumerate(KINDS):
        if (own := kinds == code).any():
            matrices[own] = problem.frame.leave(matrices[own], kind)
    for item in range(len(matrices)):
        held = np.sort(verdict.residuals[verdict.labels == item, item])
        noise = 1.4826 * float(held[len(held) // 2]) if len(held) else 0.0
        structures.append(
            Structure(
                matrices[item],
                KINDS[kinds[item]],
                int((labels == item).sum()),
                float(verdict.tolerances[item]),
                noise,
                float(found.evidences[item]),
            )
        )
    return FilterResult(
        mask, scores, p, labels, tuple(structures), verdict.score_threshold, verdict.mismatch_rate,
        found.rejected, found.n_models,
    )  # fmt: skip
