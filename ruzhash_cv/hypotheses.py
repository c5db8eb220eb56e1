"""From samples to hypotheses: models of minimal samples, weighed against decoys; the best that cover the matches; refits of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.base import Models, TwoViewFamily
from ruzhash_cv.preferences import Embedded, Kernel, expected_preference
from ruzhash_cv.problem import Problem
from ruzhash_cv.sampling import REJECTIONS
from ruzhash_cv.selection import Hypotheses, meaningful

#: Residuals of so many models at once: many more leave the processor's cache, and memory for much fewer is given back each time.
_MODELS_AT_ONCE = 320


@dataclass(frozen=True)
class Columns(Models):
    """Models that the forest's rows are made of: weights (m,), and the duplicate groups (m, s) of each model's sample, -1 for none."""

    weights: Array
    sample_groups: Rows


@dataclass(frozen=True)
class Pool:
    """What has been sampled so far: columns, hypotheses, how many models, and how many samples were rejected, by reason."""

    columns: tuple[Columns, ...] = ()
    hypotheses: tuple[Hypotheses, ...] = ()
    n_models: int = 0
    rejected: tuple[int, ...] = (0,) * len(REJECTIONS)

    def n_tried(self, n_refits: int) -> int:
        """Return how many models could have become structures: each sampled one, and its refits."""
        return self.n_models * (1 + n_refits)

    def sampled(self, n_models: int, rejected: list[int]) -> Pool:
        """Return the pool with more models sampled."""
        total = tuple(old + new for old, new in zip(self.rejected, rejected, strict=True))
        return Pool(self.columns, self.hypotheses, self.n_models + n_models, total)

    def with_columns(self, columns: Columns) -> Pool:
        """Return the pool with more columns."""
        return Pool((*self.columns, columns), self.hypotheses, self.n_models, self.rejected)

    def with_hypotheses(self, problem: Problem, models: Models) -> Pool:
        """Return the pool with those models that are no false alarm by themselves."""
        matches, radii = problem.matches, problem.radii
        n_tried = self.n_tried(len(problem.parameters.refit_radii))
        found = radii.hypotheses(models, matches.data, problem.decoys)
        found = meaningful(found, matches.weights, radii, n_tried)
        return Pool(self.columns, (*self.hypotheses, found), self.n_models, self.rejected)


def sample_hypotheses(
    pool: Pool, problem: Problem, family_id: int, proposal: Array, n_samples: int, rng: np.random.Generator
) -> Pool:
    """Return the pool with the best of models sampled by `proposal` weights (n,), and with refits of these."""
    matches, family, parameters = problem.matches, problem.families[family_id], problem.parameters
    samples = problem.stages.draw_samples(matches, proposal, n_samples, family, parameters, rng)
    models, owner = family.solve(matches.data[samples.indices])
    n_unsolved = int(np.count_nonzero(np.bincount(owner, minlength=len(samples)) == 0))
    pool = pool.sampled(len(models), [*samples.rejected.values(), n_unsolved])
    sample_groups = matches.groups[samples.indices[owner]]
    embedded = _embed_all(problem, family, models, sample_groups)
    weights = problem.stages.significance(embedded, problem, expected_preference(family.codimension, parameters))
    chosen = greedy_cover(embedded, np.where(proposal > 0.0, matches.weights, 0.0), weights, parameters.n_refits)
    family_ids = np.full(len(chosen), family_id, np.uint8)
    columns = Columns(models[chosen], family_ids, weights[chosen], padded(sample_groups[chosen], problem))
    fits = refits(problem, family, columns.models) if problem.families.structural[family_id] else np.zeros((0, 9))
    found = Models(fits, np.full(len(fits), family_id, np.uint8))
    return pool.with_columns(columns).with_hypotheses(problem, found)


def refits(problem: Problem, family: TwoViewFamily, models: Array) -> Array:
    """Return models refitted with narrower and narrower radii: the fits by every radius."""
    fitted, found = models, []
    for radius in problem.parameters.refit_radii:
        radii = np.full(len(models), radius * problem.matches.unit)
        fitted = problem.stages.refit(family, problem.matches, fitted, radii)
        found.append(fitted)
    return np.vstack(found)


def padded(sample_groups: Rows, problem: Problem) -> Rows:
    """Return groups of samples, filled up with -1 to the size of the largest samples."""
    size = int(problem.families.sample_sizes.max())
    return np.hstack([sample_groups, np.full((len(sample_groups), size - sample_groups.shape[1]), -1)])


def _embed_all(problem: Problem, family: TwoViewFamily, models: Array, sample_groups: Rows) -> Embedded:
    """Return the preferences of matches for models of one family, and what decoys make of these."""
    matches, data = problem.matches, np.vstack([problem.matches.data, problem.decoys])
    embedded, kernel = Embedded.empty(len(models), len(matches)), Kernel.of(matches.unit, problem.parameters)
    for begin in range(0, len(models), _MODELS_AT_ONCE):
        own = slice(begin, begin + _MODELS_AT_ONCE)
        squared, into = family.squared_residuals(data, models[own]), embedded.of_models(own)
        problem.stages.embed(squared, kernel, matches.groups, sample_groups[own], matches.weights, into)
    return embedded


def significance(embedded: Embedded, problem: Problem, expected: Any, sample_sizes: Any = 0.0) -> Array:
    """Return weights of models, max(0, 1 - D / S), S and D being the mean preferences of matches and of mismatches.

    S counts matches by their weights, less `sample_sizes`, where these have preferences too. D is the share of decoys that have a
    preference at all, one more of them so that it is never 0, times the `expected_preference` of these.
    """
    chance = expected * (1.0 + embedded.n_decoys) / (len(problem.decoys) + 1.0)
    share = (embedded.sums - sample_sizes) / problem.matches.weights.sum()
    return np.asarray(np.maximum(0.0, 1.0 - chance / np.maximum(share, 1e-12)))


def greedy_cover(embedded: Embedded, match_weights: Array, weights: Array, n_wanted: int) -> Rows:
    """Choose models greedily by their weighted sum of preferences; what one prefers fully counts half for the next.

    The sums of `embedded` are those by these weights of matches or larger ones.
    """
    preferences, m = embedded.preferences, len(embedded.preferences)
    chosen = np.empty(min(n_wanted, m), np.int64)
    # A little more, so that by rounding too none is less than a sum is.
    bounds = embedded.sums * weights * (1.0 + 1e-9)
    heap = np.argsort(-bounds, kind="stable")
    queue = bounds, np.full(m, -1), heap
    return chosen[: _cover_kernel(preferences, weights, match_weights.copy(), queue, chosen)]


@jit
def _cover_kernel(preferences: Any, weights: Any, left: Any, queue: Any, chosen: Any) -> int:
    """A model's sum only ever falls: what was last known of it bounds it, and only the largest bounds are summed anew.

    The `queue` is the bounds, after how many choices each was computed, and a heap of models by these.
    """
    bounds, computed, heap = queue
    n_chosen = 0
    while n_chosen < len(chosen) and bounds[heap[0]] > 0.0:
        best = heap[0]
        own = preferences[best]
        if computed[best] == n_chosen:
            chosen[n_chosen], bounds[best] = best, -1.0
            n_chosen += 1
            for row in range(len(left)):
                left[row] /= 1.0 + own[row]
        else:
            bounds[best], computed[best] = _product(left, own) * weights[best], n_chosen
        at, child = 0, 1
        while child < len(heap):
            if child + 1 < len(heap) and _comes_before(bounds, heap[child + 1], heap[child]):
                child += 1
            if not _comes_before(bounds, heap[child], best):
                break
            heap[at], at, child = heap[child], child, 2 * child + 1
        heap[at] = best
    return n_chosen


@jit
def _comes_before(bounds: Any, one: int, other: int) -> Any:
    return bounds[one] > bounds[other] or (bounds[one] == bounds[other] and one < other)


@jit
def _product(left: Any, own: NDArray[Any]) -> float:
    """Return a sum of products in four parts, none of which waits for the others."""
    a = b = c = d = 0.0
    whole = np.uint64(len(left) // 4 * 4)
    for row in range(np.uint64(0), whole, np.uint64(4)):
        a += left[row] * own[row]
        b += left[row + np.uint64(1)] * own[row + np.uint64(1)]
        c += left[row + np.uint64(2)] * own[row + np.uint64(2)]
        d += left[row + np.uint64(3)] * own[row + np.uint64(3)]
    for row in range(whole, np.uint64(len(left))):
        a += left[row] * own[row]
    return (a + b) + (c + d)
