"""What did not move while the rest did, such as a watermark or a black border: a structure found before all others."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv._arrays import COORDINATES, Array
from ruzhash_cv.models.base import Models
from ruzhash_cv.problem import Problem
from ruzhash_cv.selection import Structures, Tests, extract


@dataclass(frozen=True)
class Stationary:
    """What did not move, as a structure if it is one, and the weights (n,) of the matches beside it."""

    structure: Structures
    others: Array


def find_stationary(problem: Problem) -> Stationary:
    """Return the matches that did not move as a structure, if they are more than chance and their surroundings give."""
    matches, family, parameters = problem.matches, problem.families[0], problem.parameters
    unmoved, scale = matches.unmoved(), float(parameters.scales[-1])
    # Weights of a minimal sample are no evidence, and what is stationary moved by no more than the narrowest noise scale.
    near = np.abs(matches.data - unmoved)[:, COORDINATES].max(axis=1) <= scale * matches.unit
    widest = int(np.sum(scale >= parameters.radii)) - 1
    if widest < 0 or matches.weights[near].sum() <= family.sample_size:
        return Stationary(Structures.none(), matches.weights)
    models = family.fit(unmoved, np.ones((1, len(matches))))
    tried = problem.radii.hypotheses(Models(models, np.zeros(1, np.uint8)), matches.data, problem.decoys)
    tests = Tests(1, float(matches.weights.sum()))
    found, others = extract(tried, matches.weights, problem.radii, tests, widest)
    return Stationary(replace(found, stationary=np.ones(len(found), bool)), others)
