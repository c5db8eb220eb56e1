"""Evidence for structures: how unlikely it is that mismatches agree with a model as many matches do, -ln NFA.

The a contrario method (Desolneux, Moisan, Morel, "Meaningful alignments", IJCV 2000; Moisan, Moulon, Monasse, "Automatic homographic
registration of a pair of images, with a contrario elimination of outliers", IPOL 2012). Of n votes c lie within a radius of a model,
where chance would put a share alpha. The number of false alarms is the number of models tried, times n for the choice of c, times
the probability of as many by chance, which by Hoeffding's bound is at most exp(-n KL(c / n || alpha)):

    -ln NFA = n KL(c / n || alpha) - ln(n * models tried)

In n KL n and c are both less by the votes of a minimal sample, which fit the model whatever they are. alpha is the larger of two
shares. Decoys tell how many mismatches lie within the largest radius, and by the law of the family, r ** codimension, within
smaller ones. The annulus around the radius tells how dense the surroundings are: mismatches may crowd around true positions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.families.protocol import ModelFamily

Steps = NDArray[np.uint8]
M = TypeVar("M", bound="Models")

#: Radii tried, in lengths: powers of sqrt 2 up to this exponent, by codimension, as epipolar lines do not bend and planes do; and as
#: far down as up.
WIDEST = {1: 2, 2: 5}
FINEST = -max(WIDEST.values())
N_RADII = 1 - 2 * FINEST
RADII = np.sqrt(2.0) ** np.arange(FINEST, FINEST + N_RADII)
#: The annulus around a radius reaches this many radii further.
ANNULUS = 2
#: A structure is so many times as dense as the annulus around it.
DENSITY_RATIO = 1.5
#: What lies within this many radii further than a structure's own belongs to it: its tolerance.
TOLERANCE = 1
#: An annulus is never quite empty, in votes.
LEAST_VOTES = 0.05
#: A guard: no more structures are looked for.
MOST_STRUCTURES = 32
_N_STEPS = N_RADII + ANNULUS + 1


@dataclass(frozen=True)
class Models:
    """Models (m, 9) of several families, and which of the families each belongs to; a subclass adds more of each."""

    models: Array
    codes: NDArray[np.uint8]

    @classmethod
    def join(cls: type[M], parts: list[M]) -> M:
        """Return the models of several sets as one."""
        return cls(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))

    def take(self: M, rows: NDArray[Any]) -> M:
        """Return some of the models."""
        return type(self)(*(each[rows] for each in vars(self).values()))

    def __len__(self) -> int:
        return len(self.models)


@dataclass(frozen=True)
class Candidates(Models):
    """Models that may be structures."""

    steps: Steps  # (m, n): index of the smallest radius that holds each correspondence
    chance: Array  # (m, n_radii): share of mismatches within each radius, by decoys

    @classmethod
    def of(cls, family: ModelFamily, code: int, models: Array, data: Array, decoys: Array, length: float) -> Candidates:
        """Return models of one family with the radii that hold correspondences and decoys, both (n, 4)."""
        n = len(data)
        squared = family.squared_residuals(np.vstack([data, decoys]), models)
        within = np.zeros(len(models), np.int64)
        _count_below(squared, n, 2.0 ** (N_RADII - 1) * _least_square(length), within)
        # One decoy more, so that chance is never nothing.
        share = (1.0 + within) / (len(decoys) + 1.0)
        chance = share[:, None] * (RADII / RADII[-1]) ** family.codimension
        return cls(models, np.full(len(models), code, np.uint8), radius_steps(squared[:, :n], length), chance)


@dataclass(frozen=True)
class Structures(Models):
    """Structures, strongest first: index of the radius, -ln NFA, votes explained, whether it stood still, noise scale once fitted."""

    steps: Rows
    evidences: Array
    votes: Array
    still: Mask
    noise: Array

    @property
    def tolerances(self) -> Array:
        """Largest residual of what belongs to each structure, in lengths."""
        tolerances: Array = RADII[self.steps] * math.sqrt(2.0) ** TOLERANCE
        return tolerances


def radius_steps(squared: Array, length: float) -> Steps:
    """Return the index of the smallest radius that holds each residual; what lies beyond all annuli has the last."""
    steps = np.empty(squared.shape, np.uint8)
    with np.errstate(over="ignore"):
        ratios = squared / _least_square(length)
    _step_kernel(ratios.view(np.int64), _N_STEPS - 1, steps)
    return steps


def _least_square(length: float) -> float:
    """Return the square of the smallest radius, a little larger, so that a residual of exactly a radius lies within it."""
    return float(RADII[0] * length * (RADII[0] * length) * (1.0 + 1e-12))


@jit
def _count_below(squared: Any, first: int, limit: float, counts: Any) -> None:
    for item in range(len(squared)):
        for row in range(np.uint64(first), np.uint64(squared.shape[1])):  # unsigned, so that it is done by vectors
            counts[item] += squared[item, row] < limit


@jit
def _step_kernel(ratios: Any, last: int, steps: Any) -> None:
    """Powers of sqrt 2 in a residual are powers of two in its square: the exponent in the bits of a double is the index."""
    for item in range(len(ratios)):
        for row in range(ratios.shape[1]):
            # Infinity and NaN have the largest exponent.
            steps[item, row] = min(max(((ratios[item, row] >> 52) & 2047) - 1022, 0), last)


def evidence(
    candidates: Candidates, counts: Array, total: float, families: Sequence[ModelFamily], n_tried: int
) -> Array:
    """Return -ln NFA (m, n_radii) of models, of which `n_tried` were tried to find these.

    `counts` (m, n_steps) are the votes between one radius and the next, `total` is the number of all votes.
    """
    samples, density, widest = _laws(tuple((family.sample_size, family.codimension) for family in families))
    gains, log_tests = np.empty(candidates.chance.shape), math.log(max(total, 1.0) * max(n_tried, 1))
    density = density / max(total, 1e-300)
    _evidence_kernel(counts, total, candidates.chance, candidates.codes, samples, density, widest, log_tests, gains)
    return gains


@cache
def _laws(families: tuple[tuple[int, int], ...]) -> tuple[Array, Array, Rows]:
    """Return what evidence asks of families, given as sizes of samples and codimensions: the sizes, densities, widest radii."""
    samples, codimensions = np.array(families).T
    # The annulus is so many times as large as what it surrounds.
    larger = math.sqrt(2.0) ** (ANNULUS * codimensions) - 1.0
    widest = np.array([WIDEST[codimension] - FINEST for codimension in codimensions.tolist()])
    return samples.astype(np.float64), DENSITY_RATIO / larger, widest


@jit
def _evidence_kernel(
    counts: Any,
    total: float,
    chance: Any,
    codes: Any,
    samples: Any,
    density: Any,
    widest: Any,
    log_tests: float,
    gains: Any,
) -> None:
    """Write -ln NFA; a family's `density` makes a share of mismatches of the votes of an annulus."""
    for item in range(len(counts)):
        family = codes[item]
        n = max(total - samples[family], 1e-9)
        within, around = -samples[family], 0.0
        for step in range(ANNULUS):
            around += counts[item, step]
        for step in range(N_RADII):
            within += counts[item, step]
            around += counts[item, step + ANNULUS] - counts[item, step]
            alpha = min(max(chance[item, step], density[family] * max(around, LEAST_VOTES)), 1.0 - 1e-9)
            share = min(within / n, 1.0 - 1e-9)
            gain = 0.0
            if share > alpha:
                gain = n * (share * np.log(share / alpha) + (1.0 - share) * np.log((1.0 - share) / (1.0 - alpha)))
            gains[item, step] = gain - log_tests if step <= widest[family] else -np.inf


def count_votes(steps: Steps, votes: Array) -> Array:
    """Return the votes (m, n_steps) of correspondences between one radius and the next, from their radius indices (m, n).

    What lies beyond all annuli is not counted: of no model are these few.
    """
    counts = np.zeros((len(steps), _N_STEPS))
    _count_kernel(steps, votes, counts)
    return counts


@jit
def _count_kernel(steps: Any, votes: Any, counts: Any) -> None:
    """Rows that have votes are listed once, and for each model those of them within its annuli: without branches to be foreseen."""
    n_voting, last = np.uint64(0), np.uint8(counts.shape[1] - 1)
    voting, near = np.empty((2, len(votes)), np.uint64)
    for row in range(np.uint64(len(votes))):
        voting[n_voting] = row
        n_voting += np.uint64(votes[row] != 0.0)
    for item in range(len(steps)):
        n_near = np.uint64(0)
        for at in range(n_voting):
            near[n_near] = voting[at]
            n_near += np.uint64(steps[item, voting[at]] < last)
        for at in range(n_near):
            counts[item, steps[item, near[at]]] += votes[near[at]]


def meaningful(candidates: Candidates, families: Sequence[ModelFamily], votes: Array, n_tried: int) -> Candidates:
    """Return the models that are no false alarm by themselves; only they can become structures."""
    gains = evidence(candidates, count_votes(candidates.steps, votes), float(votes.sum()), families, n_tried)
    return candidates.take(np.flatnonzero(gains.max(axis=1, initial=-np.inf) > 0.0))


def extract(
    candidates: Candidates,
    families: Sequence[ModelFamily],
    votes: Array,
    n_tried: int,
    total: float | None = None,
    widest: int = N_RADII - 1,
) -> tuple[Structures, Array]:
    """Return structures, and the votes that none explains.

    The next structure and its radius are those of most evidence among the votes that are left, of whichever family. What it explains is
    taken away, and so on while the expected number of false alarms is below one. Where there are more votes than are to be explained,
    `total` is their number. `widest` is the index of the largest radius.
    """
    left, total = votes.copy(), float(votes.sum()) if total is None else total
    counts = count_votes(candidates.steps, left)
    chosen: list[tuple[Any, ...]] = []
    while len(chosen) < min(MOST_STRUCTURES, len(candidates)):
        gains = evidence(candidates, counts, total, families, n_tried)[:, : widest + 1]
        best, step = divmod(int(np.argmax(gains)), gains.shape[1])
        if not gains[best, step] > 0.0:
            break
        taken = candidates.steps[best] <= step + TOLERANCE
        chosen.append((gains[best, step], best, step, left[taken].sum()))
        counts -= count_votes(candidates.steps, np.where(taken, left, 0.0))
        left[taken] = 0.0
    # Not in this order yet: what is taken away leaves the annuli of others, which gain by it.
    chosen.sort(key=lambda item: -item[0])
    evidences, rows, steps, explained = np.array(chosen, np.float64).reshape(-1, 4).T
    found = candidates.take(rows.astype(np.int64))
    still, unknown = np.zeros(len(found), bool), np.zeros(len(found))
    return Structures(found.models, found.codes, steps.astype(np.int64), evidences, explained, still, unknown), left
