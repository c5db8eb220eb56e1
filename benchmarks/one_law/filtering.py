"""The whole prototype on one page: points in, probabilities, mask and labels out.

The homographies, and the scores of the forest, are those of the package's search, which chooses by -ln NFA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from one_law.consensus import within_threshold
from one_law.estimate import Estimate, estimate_structures
from one_law.lines import lines_of
from one_law.mixture import groups_of
from one_law.parameters import Parameters
from one_law.refinement import refine
from ruzhash_cv import filtering
from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.problem import Problem
from ruzhash_cv.reasons import MIN_MATCHES
from ruzhash_cv.search import find_structures
from ruzhash_cv.selection import Hypotheses

PARAMETERS = Parameters()


@dataclass(frozen=True)
class Result:
    """What is said of n given matches.

    The mask, the probabilities that each is true, its structure (a plane, a surface, or a motion alone) and its motion (a plane is one
    of its own), -1 for none; and the kind of the motion of most matches, "homography", "fundamental" or "", with its noise in px.
    """

    inlier_mask: Mask
    inlier_probabilities: Array
    labels: Rows
    motion_labels: Rows
    first_kind: str = ""
    first_noise: float = float("nan")


def filter_points(points1: Array, points2: Array, seed: int = 0, threshold: float | None = None) -> Result:
    """Tell mismatches from true matches (n, 2) by the law; with a threshold, px, by the distance to the structures found."""
    parameters, defaults, stages = PARAMETERS, filtering.PARAMETERS, filtering.STAGES
    if threshold is not None:
        parameters = parameters.within(threshold)
    rng, nothing = np.random.default_rng(seed), np.full(len(points1), -1)
    matches = MatchSet.of(points1, points2, defaults.unit)
    if matches.n_groups < MIN_MATCHES:
        return Result(nothing >= 0, np.zeros(len(points1)), nothing, nothing)
    searched, _ = filtering.subsample(matches, defaults.max_searched, stages, rng)
    problem = Problem.of(searched, filtering.families_of("auto"), defaults, stages, rng)
    search = find_structures(problem, rng)
    hypotheses = Hypotheses.join(list(search.pool.hypotheses))
    planes = np.ascontiguousarray(hypotheses.models[problem.families.is_plane(hypotheses)])
    estimate = estimate_structures(searched, planes, search.pool.n_models, search.scores.of_matches, rng, parameters)
    return _of_all(refine(estimate, matches), matches, threshold)


def _of_all(estimate: Estimate, matches: MatchSet, threshold: float | None) -> Result:
    """Return the result for all matches that were given."""
    n, finite, where = len(matches.finite), matches.finite, matches.where
    mask, probabilities, labels, motion_labels = np.zeros(n, bool), np.zeros(n), np.full(n, -1), np.full(n, -1)
    if estimate.mixture is None:
        return Result(mask, probabilities, labels, motion_labels)
    chosen = estimate.mixture.chosen
    likely = np.minimum(estimate.probabilities.sum(axis=0), 1.0)
    keep, own = likely > 0.5, estimate.probabilities.argmax(axis=0)
    if threshold is not None:
        estimate, distances = within_threshold(estimate, matches, threshold)
        keep, own = (distances <= threshold).any(axis=0), distances.argmin(axis=0)
    groups = groups_of(estimate.candidates, chosen)
    motion_of = np.empty(len(own), np.int64)
    for number, places in enumerate(groups):
        motion_of[np.isin(own, places)] = number
    mask[finite], probabilities[finite] = keep[where], likely[where]
    labels[finite], motion_labels[finite] = np.where(keep, own, -1)[where], np.where(keep, motion_of, -1)[where]
    held = [matches.weights[keep & (motion_of == number)].sum() for number in range(len(groups))]
    first = int(np.argmax(held))
    told = _kind_and_noise(estimate, matches, groups[first][0], keep & (motion_of == first))
    return Result(mask, probabilities, labels, motion_labels, *told)


def _kind_and_noise(estimate: Estimate, matches: MatchSet, place: int, own: Mask) -> tuple[str, float]:
    """Return what a structure is, by its place, and a robust standard deviation of one coordinate of its matches, px."""
    assert estimate.mixture is not None
    number = estimate.candidates.motions[estimate.mixture.chosen[place]]
    if number < 0 or not own.any():
        return "homography", float("nan")
    across = np.sqrt(lines_of(matches, estimate.motions[number])[0][own])
    return "fundamental", float(1.4826 * np.median(across) / np.sqrt(2.0))
