"""Problems as `filter_points` makes them, for tests of single stages."""

from __future__ import annotations

import numpy as np

from ruzhash_cv.filtering import PARAMETERS, STAGES, families_of
from ruzhash_cv.matches import Frame, MatchSet
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.problem import Problem, Stages
from ruzhash_cv.search import Estimate, find_structures

Array = np.ndarray


def matches_of(data: Array, unit: float = PARAMETERS.unit) -> MatchSet:
    """Return matches (n, 4) as a set."""
    return MatchSet.of(data[:, :2], data[:, 2:], unit)


def in_pixels(data: Array, weights: Array | None = None, keypoints: Array | None = None) -> MatchSet:
    """Return matches (n, 4) as they are: in no frame, in their order, each a group of its own."""
    n = len(data)
    rows, weights = np.arange(n), np.ones(n) if weights is None else weights
    keypoints = np.tile(rows, (2, 1)) if keypoints is None else keypoints
    frame = Frame(np.zeros(2), np.zeros(2), 1.0)
    return MatchSet(data, rows, keypoints, weights, frame, PARAMETERS.unit, np.ones(n, bool), rows, frame.transforms())


def problem_of(
    data: Array, model: str = "auto", seed: int = 0, parameters: Parameters = PARAMETERS, stages: Stages = STAGES
) -> tuple[Problem, np.random.Generator]:
    """Return the problem of matches (n, 4), and the generator that is to go on with it."""
    rng = np.random.default_rng(seed)
    return Problem.of(matches_of(data, parameters.unit), families_of(model), parameters, stages, rng), rng


def found_in(
    data: Array, model: str = "auto", seed: int = 0, parameters: Parameters = PARAMETERS
) -> tuple[Estimate, Problem]:
    """Return what the search finds in matches (n, 4), and the problem that it solved."""
    problem, rng = problem_of(data, model, seed, parameters)
    return find_structures(problem, rng), problem


def mismatches(n: int, seed: int = 0) -> Array:
    """Return matches (n, 4) of points that have nothing to do with each other."""
    return np.random.default_rng(seed).uniform(0, [1280, 960, 1280, 960], (n, 4))
