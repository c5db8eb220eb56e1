"""The law: how probable it is that a match belongs to each of the structures found, by the distances of all matches to them.

A match of a structure has one of several noise scales s. A mismatch may crowd around a structure, as repeated corners and edges make it
do, or lie anywhere. With r the distance to the structure and c the coordinates of the second point that it predicts, the densities are

    match of a structure          N(r; 0, s^2 I_c), s at most the structure's tolerance
    mismatch around it            the same, s beyond any tolerance that structures of the family have
    mismatch anywhere             as many as decoys within the widest s

Each scale is three times the one before. EM finds the shares of all of these among the matches (Dempster, Laird, Rubin, "Maximum
likelihood from incomplete data via the EM algorithm", JRSS B 1977), and Bayes' rule the probability of each for a match.

A line leaves a coordinate of the second point unchecked. There the anomaly score tells more. Among the decoys within the line's
tolerance let p be the share that scores at least as well: p is uniform among mismatches and has the density a p^(a - 1) among true
matches, where EM finds a (Pounds and Morris, "Estimating the occurrence of false positives and false negatives in microarray
studies by approximating and partitioning the empirical distribution of p-values", Bioinformatics 2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.parameters import Parameters

#: A guard: steps of EM, after which shares hardly change.
_N_STEPS = 20
#: A pseudo-count of each share, in matches, so that none is 0.
_PRIOR = 0.1
#: Scales beyond which a density is 0: exp(-40) is less than rounding.
_NEGLIGIBLE = 9.0
#: Units beyond which a tolerance is everything.
_WIDEST = 1e9
#: Scales of mismatches around a structure.
_N_CROWDS = 2


class Limits(NamedTuple):
    """Tolerances (k,) of structures in the unit of the distances, and the codimensions of their families."""

    tolerances: Array
    codimensions: Rows


class ScoreLaw(NamedTuple):
    """What anomaly scores tell near a structure: the sorted scores of decoys there, and the exponent a."""

    ranked: Array
    exponent: float

    @classmethod
    def of(cls, of_decoys: Array, of_matches: Array, weights: Array) -> ScoreLaw:
        """Return the law of scores of decoys (N,) and of matches (n,) with weights (n,), all of them near a structure."""
        ranked = np.sort(of_decoys)
        logs = np.log(tail_shares(of_matches, ranked))
        exponent, share = 0.5, 0.5
        for _ in range(_N_STEPS):
            ratios = share * exponent * np.exp((exponent - 1.0) * logs)
            true = weights * ratios / (ratios + 1.0 - share)
            share = (true.sum() + _PRIOR) / (weights.sum() + 2.0 * _PRIOR)
            # As if one more true match had p = 1 / e.
            exponent = min(float((true.sum() + 1.0) / (1.0 - (true * logs).sum())), 1.0)
        return cls(ranked, exponent)

    def ratios(self, scores: Array) -> Array:
        """Return the ratios (n,) of the densities of scores among true matches to those among mismatches."""
        found: Array = self.exponent * tail_shares(scores, self.ranked) ** (self.exponent - 1.0)
        return found


def tail_shares(scores: Array, ranked: Array) -> Array:
    """Return, for each score, how often a mismatch scores as well: (1 + #) / (1 + N), # of the N `ranked` decoys having at most it."""
    as_good = np.searchsorted(ranked, scores, side="right")
    return np.asarray((1.0 + as_good) / (1.0 + len(ranked)), dtype=np.float64)


@dataclass(frozen=True)
class Components:
    """Densities beside that of mismatches anywhere, as functions of the distance to a structure.

    Of each (m,): its structure, its scale, its ratio to the density anywhere at distance 0, and whether it is that of true matches.
    """

    structures: Rows
    scales: Array
    heights: Array
    true: Mask

    @classmethod
    def of(cls, limits: Limits, decoys: Array, unit: float, parameters: Parameters) -> Components:
        """Return the components of structures from distances (N, k) of decoys; `unit` is that of the parameters' lengths."""
        found: list[tuple[int, float, float, bool]] = []
        for item, (tolerance, codimension) in enumerate(zip(*map(np.ndarray.tolist, limits), strict=True)):
            scales = _scales(tolerance, codimension, unit, parameters)
            volume = 2.0 * scales[-1] if codimension == 1 else np.pi * scales[-1] ** 2
            # One decoy more, so that the share is never 0.
            within = 1.0 + np.count_nonzero(decoys[:, item] <= scales[-1])
            anywhere = within / (1.0 + len(decoys)) / volume
            for place, scale in enumerate(scales):
                height = (2.0 * np.pi * scale**2) ** (-0.5 * codimension) / anywhere
                found.append((item, scale, height, place < len(scales) - _N_CROWDS))
        structures, widths, heights, true = np.array(found, np.float64).reshape(-1, 4).T.copy()
        return cls(structures.astype(np.int64), widths, heights, true > 0.0)

    def ratios(self, distances: Array, told: Array) -> Array:
        """Return the ratios (m, n) of densities to that anywhere, from distances (n, k).

        `told` (n, k) are ratios of what else is known of matches, among true ones of each structure over mismatches.
        """
        ratios = np.empty((len(self.structures), len(distances)))
        _ratio_kernel(distances, told, (self.structures, self.scales, self.heights, self.true), ratios)
        return ratios

    def shares(self, ratios: Array, weights: Array) -> Array:
        """Return the shares (m + 1,) of components among matches with ratios (m, n), the last that of mismatches anywhere."""
        n = len(ratios)
        shares = np.full(n + 1, 0.7 / max(n, 1))
        shares[-1] = 0.3
        _share_kernel(ratios, weights, _N_STEPS, _PRIOR, shares)
        return shares

    def probabilities(self, ratios: Array, shares: Array, n_structures: int) -> Array:
        """Return the probabilities (n, k) that matches with ratios (m, n) belong to each structure."""
        found = np.zeros((ratios.shape[1], n_structures))
        _probability_kernel(ratios, shares, (self.structures, self.true), found)
        return found


def _scales(tolerance: float, codimension: int, unit: float, parameters: Parameters) -> list[float]:
    """Return scales of a structure's matches, one at least, and those of mismatches around it."""
    finest = unit * parameters.finest_scale
    # A tolerance that is one of the scales is no less than it by rounding. Beyond the last bound squares would overflow.
    widest_true = min(tolerance * (1.0 + 1e-9), _WIDEST * unit)
    widest = max(widest_true, unit * parameters.widest_tolerance(codimension))
    n_true = 1
    while finest * 3.0**n_true <= widest_true:
        n_true += 1
    crowd = finest * 3.0**n_true
    while crowd <= widest:
        crowd *= 3.0
    scales = [finest * 3.0**step for step in range(n_true)]
    return scales + [crowd * 3.0**step for step in range(_N_CROWDS)]


@jit
def _ratio_kernel(distances: Any, told: Any, components: Any, ratios: Any) -> None:
    structures, scales, heights, true = components
    for item in range(len(structures)):
        structure = structures[item]
        for row in range(len(distances)):
            z, ratio = distances[row, structure] / scales[item], 0.0
            if z < _NEGLIGIBLE:
                ratio = heights[item] * np.exp(-0.5 * z * z)
            ratios[item, row] = ratio * told[row, structure] if true[item] else ratio


@jit
def _share_kernel(ratios: Any, weights: Any, n_steps: int, prior: float, shares: Any) -> None:
    m, counts = len(ratios), np.empty(len(shares))
    for _ in range(n_steps):
        counts[:] = prior
        for row in range(len(weights)):
            density = shares[m]
            for item in range(m):
                density += shares[item] * ratios[item, row]
            by_density = weights[row] / density
            counts[m] += shares[m] * by_density
            for item in range(m):
                counts[item] += shares[item] * ratios[item, row] * by_density
        shares[:] = counts / counts.sum()


@jit
def _probability_kernel(ratios: Any, shares: Any, components: Any, found: Any) -> None:
    structures, true = components
    m = len(ratios)
    for row in range(len(found)):
        density = shares[m]
        for item in range(m):
            term = shares[item] * ratios[item, row]
            density += term
            if true[item]:
                found[row, structures[item]] += term
        found[row] /= density
