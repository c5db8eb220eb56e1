"""One model for one threshold: of all models tried the one with the largest consensus set, as RANSAC's users expect.

Local optimisation (Chum, Matas, Kittler, "Locally optimized RANSAC", DAGM 2003): the models of the largest consensus sets are refitted
to what lies within the threshold, and the best of them to random samples of these matches, larger than minimal ones, while that brings
more matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.families.base import Models, TwoViewFamily
from ruzhash_cv.hypotheses import Columns, refits
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.motions import parallax
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.problem import Problem
from ruzhash_cv.refinement import refine
from ruzhash_cv.sampling import SamplePlan, draw_samples
from ruzhash_cv.scoring import most_significant
from ruzhash_cv.search import Estimate

#: Refits of a model, and samples in turn that a model is optimised by, at most.
N_REFITS, MAX_ROUNDS = 3, 5
#: Two consensus sets are one if they share this much of the smaller one.
SAME = 0.9
#: A more precise model may lose so few of its matches.
KEEPS = 0.99


@dataclass(frozen=True)
class Consensus:
    """What models of one family are counted by: matches, and the threshold in the frame."""

    family: TwoViewFamily
    matches: MatchSet
    threshold: float
    parameters: Parameters

    def within(self, models: Array) -> Mask:
        """Tell which matches (m, n) lie within the threshold of models."""
        return np.asarray(self.family.squared_residuals(self.matches.data, models) <= self.threshold**2)

    def counts(self, models: Array) -> Array:
        """Return how many matches (m,) lie within the threshold of models."""
        return np.asarray(np.count_nonzero(self.within(models), axis=1))

    def largest(self, models: Array) -> Array:
        """Return those of the models (m, 9) that have most matches, the first one first: as many as a round refits."""
        order = np.argsort(-self.counts(models), kind="stable")
        return models[order[: self.parameters.motion_refits]]

    def refitted(self, models: Array) -> Array:
        """Return models, and these refitted to what lies within the threshold, several times."""
        found = [models]
        for _ in range(N_REFITS):
            weights = self.within(found[-1]).astype(np.float64)
            fitted = self.family.fit(self.matches.data, weights, found[-1])
            usable = np.isfinite(fitted).all(axis=1) & (weights.sum(axis=1) > self.family.sample_size)
            found.append(np.where(usable[:, None], fitted, found[-1]))
        return np.vstack(found)


def largest_consensus(consensus: Consensus, models: Array, rng: np.random.Generator) -> Array | None:
    """Return the model (9,) of most matches within the threshold, locally optimised, of models (m, 9) and what they lead to."""
    models = models[np.isfinite(models).all(axis=1)]
    if len(models) == 0:
        return None
    found = consensus.refitted(consensus.largest(models))
    seeds = _different(consensus, consensus.largest(found))
    best = np.vstack([_optimised(consensus, seed, rng) for seed in seeds])
    return np.asarray(consensus.largest(best)[0])


def _different(consensus: Consensus, models: Array) -> Array:
    """Return the first few models whose consensus sets are not the same."""
    chosen: list[int] = []
    within = consensus.within(models)
    for item, own in enumerate(within):
        shared = [(own & within[other]).sum() < SAME * own.sum() for other in chosen]
        if all(shared) and len(chosen) < consensus.parameters.n_optimised:
            chosen.append(item)
    return models[chosen]


def _optimised(consensus: Consensus, model: Array, rng: np.random.Generator) -> Array:
    """Return a model after local optimisation (1, 9)."""
    size, n_samples = 2 * consensus.family.sample_size, consensus.parameters.motion_samples
    best, n_best = model[None], int(consensus.counts(model[None])[0])
    for _ in range(MAX_ROUNDS):
        rows = np.flatnonzero(consensus.within(best)[0])
        if len(rows) <= consensus.family.sample_size:
            break
        weights = np.zeros((n_samples, len(consensus.matches)))
        drawn = rows[rng.random((n_samples, len(rows))).argsort(axis=1)[:, :size]]
        np.put_along_axis(weights, drawn, 1.0, axis=1)
        fitted = consensus.family.fit(consensus.matches.data, weights)
        fitted = fitted[np.isfinite(fitted).all(axis=1)]
        if len(fitted) == 0:
            break
        tried = consensus.largest(consensus.refitted(consensus.largest(fitted)))[:1]
        n_tried = int(consensus.counts(tried)[0])
        if n_tried <= n_best:
            break
        best, n_best = tried, n_tried
    return best


def models_tried(estimate: Estimate, problem: Problem, family_id: int, rng: np.random.Generator) -> Array:
    """Return the models (m, 9) of a family that the search tried and kept, and as many samples of all matches as its first round drew.

    Of a motion also matrices of the strongest planes and two matches off each, see `motions`.
    """
    pool, matches, family, parameters = estimate.pool, problem.matches, problem.families[family_id], problem.parameters
    found = [each.models[each.family_ids == family_id] for each in (*pool.columns, *pool.hypotheses)]
    n_samples = parameters.plane_samples if family.is_plane else parameters.motion_samples
    plan = replace(SamplePlan.of(family, matches.unit, parameters), neighbourhoods=(0,))
    samples = draw_samples(matches.data, matches.weights, n_samples, plan, rng)
    found.append(family.solve(matches.data[samples.indices])[0])
    if not family.is_plane:
        columns = Columns.join(list(pool.columns))
        columns = columns.take(np.flatnonzero(problem.families.is_plane(columns)))
        columns = most_significant(columns, parameters.n_optimised)
        for plane in refits(problem, problem.families[0], columns.models)[-len(columns) :] if len(columns) else ():
            squared = problem.families[0].squared_residuals(matches.data, plane[None])[0]
            off = matches.data[squared > matches.unit**2]
            found.append(parallax(plane, off, parameters.n_parallaxes, rng))
    return np.vstack(found)


def precise(consensus: Consensus, model: Array, problem: Problem, family_id: int) -> Array:
    """Return a model refitted at the noise scale of what lies within the threshold, if it keeps its matches; else itself."""
    given = Models(model[None], np.array([family_id], np.uint8))
    fitted, _ = refine(given, consensus.matches, np.array([consensus.threshold]), problem.radii)
    tried = np.vstack([consensus.refitted(model[None]), fitted])
    counts = consensus.counts(tried)
    return np.asarray(fitted[0] if counts[-1] >= KEEPS * counts.max() else tried[int(np.argmax(counts))])
