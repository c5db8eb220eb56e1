"""Selection: which models are structures, by how unlikely it is that as many mismatches agree with them, -ln NFA.

The a contrario method (Desolneux, Moisan, Morel, "Meaningful alignments", IJCV 2000; Moisan, Moulon, Monasse, "Automatic homographic
registration of a pair of images, with a contrario elimination of outliers", IPOL 2012). Of n matches c lie within a radius of a model,
where chance would put a share alpha. The number of false alarms is the number of models tried, times n for the choice of c, times
the probability of as many by chance, which by Hoeffding's bound is at most exp(-n KL(c / n || alpha)):

    -ln NFA = n KL(c / n || alpha) - ln(n * models tried)

Matches count by their weights. In n KL the size of a minimal sample is subtracted from n and c, because a model always fits its own
sample. alpha is the larger of two shares. Decoys are counted within the largest radius; within smaller ones their share falls as r
** codimension, unless significantly more are there. The annulus around the radius tells how dense the surroundings are: mismatches
may crowd around true positions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.parameters import Parameters

RadiusIndices = NDArray[np.uint8]

#: A guard: no more structures are looked for.
MAX_STRUCTURES = 32


@dataclass(frozen=True)
class Hypotheses(Models):
    """Models that may be structures."""

    radius_indices: RadiusIndices  # (m, n): index of the smallest radius that holds each correspondence
    background: Array  # (m, n_radii): share of mismatches within each radius, by decoys


@dataclass(frozen=True)
class Structures(Models):
    """Structures, strongest first; noise scales are 0 until models are refined."""

    radius_indices: Rows
    tolerances: Array  # largest residual of what belongs to each, in the frame
    evidences: Array  # -ln NFA
    weights: Array  # sum over the matches explained
    stationary: Mask  # whether it is what did not move
    noise: Array  # in the frame

    @classmethod
    def none(cls) -> Structures:
        """Return no structures."""
        return cls(np.zeros((0, 9)), *(np.zeros(0, kind) for kind in ("u1", "i8", "f8", "f8", "f8", "?", "f8")))


class EvidenceRules(NamedTuple):
    """What the evidence of a model depends on beside its matches; arrays have an entry for each family."""

    sample_sizes: Array
    densities: Array  # makes a share of mismatches of the weight in an annulus
    widest: Rows  # index of the largest radius
    annulus_steps: int
    min_annulus_weight: float

    @classmethod
    def of(
        cls, sample_sizes: Rows, codimensions: Rows, parameters: Parameters, limit: float = math.inf
    ) -> EvidenceRules:
        """Return the rules for families; no radius but the smallest is above `limit`, in units."""
        # The annulus is so many times as large as what it surrounds.
        larger = math.sqrt(2.0) ** (parameters.annulus_steps * codimensions) - 1.0
        exponents = {1: parameters.motion_widest_radius, 2: parameters.plane_widest_radius}
        within = int(np.searchsorted(parameters.radii, limit * (1.0 + 1e-12), side="right")) - 1
        widest = np.array([exponents[codimension] - parameters.finest_radius for codimension in codimensions.tolist()])
        densities = np.asarray(parameters.density_ratio / larger)
        return cls(
            sample_sizes.astype(np.float64),
            densities,
            np.minimum(widest, max(within, 0)),
            parameters.annulus_steps,
            parameters.min_annulus_weight,
        )


@dataclass(frozen=True)
class Radii:
    """The radii of models in the frame, and what decides among them."""

    unit: float
    families: Families
    parameters: Parameters
    rules: EvidenceRules

    @classmethod
    def of(cls, unit: float, families: Families, parameters: Parameters, threshold: float | None = None) -> Radii:
        """Return the radii for families; those of structures end at a threshold in the frame, where one is given."""
        limit = math.inf if threshold is None else threshold / unit
        rules = EvidenceRules.of(families.sample_sizes, families.codimensions, parameters, limit)
        return cls(unit, families, parameters, rules)

    @property
    def least_square(self) -> float:
        """The square of the smallest radius, a little larger, so that a residual of exactly a radius lies within it."""
        radius = float(self.parameters.radii[0])
        return radius * self.unit * (radius * self.unit) * (1.0 + 1e-12)

    def hypotheses(self, models: Models, data: Array, decoys: Array) -> Hypotheses:
        """Return models of one family with the radii that hold correspondences (n, 4) and the shares of decoys (N, 4) within these.

        Within the largest radius decoys are counted; within smaller ones they are as many as the law of the family says, or as are
        there for sure: keypoints on a grid or on lines agree with some models exactly.
        """
        n, radii, parameters = len(data), self.parameters.radii, self.parameters
        family = self.families[models.family_ids[0] if len(models) else 0]
        squared = family.squared_residuals(np.vstack([data, decoys]), models.models)
        within = np.zeros((len(models), len(radii)))
        _count_decoys(squared, n, 2.0 ** np.arange(len(radii)) * self.least_square, within)
        # One decoy more, so that the share is never 0.
        law = (1.0 + within[:, -1:]) * (radii / radii[-1]) ** family.codimension
        sure = within - parameters.background_errors * np.sqrt(within)
        background = np.maximum(law, sure) / (len(decoys) + 1.0)
        return Hypotheses(models.models, models.family_ids, self.radius_indices(squared[:, :n]), background)

    def radius_indices(self, squared: Array) -> RadiusIndices:
        """Return the index of the smallest radius that holds each residual; what lies beyond all annuli has the last."""
        indices = np.empty(squared.shape, np.uint8)
        with np.errstate(over="ignore"):
            ratios = squared / self.least_square
        _index_kernel(ratios.view(np.int64), self.parameters.n_radius_indices - 1, indices)
        return indices

    def tolerances(self, radius_indices: Rows) -> Array:
        """Return the tolerances of structures with these radii."""
        tolerances: Array = self.parameters.radii[radius_indices] * self.parameters.tolerance_ratio
        return tolerances * self.unit


class WithRadii:
    """What has the radii of the method, and by them its families and numbers."""

    radii: Radii

    @property
    def families(self) -> Families:
        """The families of models."""
        return self.radii.families

    @property
    def parameters(self) -> Parameters:
        """The numbers of the method."""
        return self.radii.parameters


@jit
def _count_decoys(squared: Any, first: int, bounds: Any, within: Any) -> None:
    """Write how many rows from the `first` on lie within each bound; those within the last are listed without a branch first."""
    near = np.empty(squared.shape[1], np.uint64)
    for item in range(len(squared)):
        n_near = np.uint64(0)
        for row in range(np.uint64(first), np.uint64(squared.shape[1])):
            near[n_near] = row
            n_near += np.uint64(squared[item, row] < bounds[-1])
        for at in range(n_near):
            step = len(bounds) - 1
            while step >= 0 and squared[item, near[at]] < bounds[step]:
                within[item, step] += 1.0
                step -= 1


@jit
def _index_kernel(ratios: Any, last: int, indices: Any) -> None:
    """Powers of sqrt 2 in a residual are powers of two in its square: the exponent in the bits of a double is the index."""
    for item in range(len(ratios)):
        for row in range(ratios.shape[1]):
            # Infinity and NaN have the largest exponent.
            indices[item, row] = min(max(((ratios[item, row] >> 52) & 2047) - 1022, 0), last)


def evidence(hypotheses: Hypotheses, counts: Array, total: float, rules: EvidenceRules, n_tried: int) -> Array:
    """Return -ln NFA (m, n_radii) of models, of which `n_tried` were tried to find these.

    `counts` (m, n_radius_indices) are the weights between one radius and the next, `total` is the sum of all weights.
    """
    gains, log_tests = np.empty(hypotheses.background.shape), math.log(max(total, 1.0) * max(n_tried, 1))
    rules = rules._replace(densities=rules.densities / max(total, 1e-300))
    _evidence_kernel(counts, total, (hypotheses.background, hypotheses.family_ids), tuple(rules), log_tests, gains)
    return gains


@jit
def _evidence_kernel(counts: Any, total: float, hypotheses: Any, rules: Any, log_tests: float, gains: Any) -> None:
    (background, family_ids), rules = hypotheses, EvidenceRules(*rules)
    for item in range(len(counts)):
        family = family_ids[item]
        n = max(total - rules.sample_sizes[family], 1e-9)
        within, around = -rules.sample_sizes[family], 0.0
        for step in range(rules.annulus_steps):
            around += counts[item, step]
        for step in range(gains.shape[1]):
            within += counts[item, step]
            around += counts[item, step + rules.annulus_steps] - counts[item, step]
            dense = rules.densities[family] * max(around, rules.min_annulus_weight)
            alpha = min(max(background[item, step], dense), 1.0 - 1e-9)
            share = min(within / n, 1.0 - 1e-9)
            gain = 0.0
            if share > alpha:
                gain = n * (share * np.log(share / alpha) + (1.0 - share) * np.log((1.0 - share) / (1.0 - alpha)))
            gains[item, step] = gain - log_tests if step <= rules.widest[family] else -np.inf


def count_weights(radius_indices: RadiusIndices, weights: Array, n_radius_indices: int) -> Array:
    """Return the weights (m, n_radius_indices) of correspondences between one radius and the next.

    What lies beyond all annuli is not counted: that is most of them for any model.
    """
    counts = np.zeros((len(radius_indices), n_radius_indices))
    _count_kernel(radius_indices, weights, counts)
    return counts


@jit
def _count_kernel(radius_indices: Any, weights: Any, counts: Any) -> None:
    """Rows that have weight are listed once, and for each model those of them within its annuli, without branches to predict."""
    n_weighted, last = np.uint64(0), np.uint8(counts.shape[1] - 1)
    weighted, near = np.empty((2, len(weights)), np.uint64)
    for row in range(np.uint64(len(weights))):
        weighted[n_weighted] = row
        n_weighted += np.uint64(weights[row] != 0.0)
    for item in range(len(radius_indices)):
        n_near = np.uint64(0)
        for at in range(n_weighted):
            near[n_near] = weighted[at]
            n_near += np.uint64(radius_indices[item, weighted[at]] < last)
        for at in range(n_near):
            counts[item, radius_indices[item, near[at]]] += weights[near[at]]


def meaningful(hypotheses: Hypotheses, weights: Array, radii: Radii, n_tried: int) -> Hypotheses:
    """Return the models that are no false alarm by themselves; only they can become structures."""
    counts = count_weights(hypotheses.radius_indices, weights, radii.parameters.n_radius_indices)
    gains = evidence(hypotheses, counts, float(weights.sum()), radii.rules, n_tried)
    return hypotheses.take(np.flatnonzero(gains.max(axis=1, initial=-np.inf) > 0.0))


class Tests(NamedTuple):
    """What evidence is corrected for: the models tried, and the weight of all matches where not all are to be explained."""

    n_tried: int
    total: float


def extract(
    hypotheses: Hypotheses, weights: Array, radii: Radii, tests: Tests, widest: int | None = None
) -> tuple[Structures, Array]:
    """Return structures, and the weights that none explains.

    The hypothesis and radius of most evidence, of whichever family, are the next structure. The matches it explains are removed, and
    the next one is chosen among the others, while the expected number of false alarms is below one. `widest` is the index of the
    largest radius.
    """
    left, n_indices = weights.copy(), radii.parameters.n_radius_indices
    counts = count_weights(hypotheses.radius_indices, left, n_indices)
    chosen: list[tuple[Any, ...]] = []
    while len(chosen) < min(MAX_STRUCTURES, len(hypotheses)):
        gains = evidence(hypotheses, counts, tests.total, radii.rules, tests.n_tried)
        gains = gains[:, : None if widest is None else widest + 1]
        best, step = divmod(int(np.argmax(gains)), gains.shape[1])
        if not gains[best, step] > 0.0:
            break
        taken = hypotheses.radius_indices[best] <= step + radii.parameters.tolerance_steps
        chosen.append((gains[best, step], best, step, left[taken].sum()))
        counts -= count_weights(hypotheses.radius_indices, np.where(taken, left, 0.0), n_indices)
        left[taken] = 0.0
    # Not in this order yet: what is taken away leaves the annuli of others, which gain by it.
    chosen.sort(key=lambda item: -item[0])
    evidences, rows, steps, explained = np.array(chosen, np.float64).reshape(-1, 4).T
    found, indices = hypotheses.take(rows.astype(np.int64)), steps.astype(np.int64)
    moved, unknown = np.zeros(len(found), bool), np.zeros(len(found))
    tolerances = radii.tolerances(indices)
    return Structures(found.models, found.family_ids, indices, tolerances, evidences, explained, moved, unknown), left


def strongest_first(structures: Structures) -> Structures:
    """Return structures in the order of their evidence."""
    return structures.take(np.argsort(-structures.evidences, kind="stable"))
