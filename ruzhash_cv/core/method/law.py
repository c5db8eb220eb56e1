"""Labels: how probable it is that a match belongs to each surface and motion of the scene, and which matches to keep.

A mismatch may lie anywhere, or crowd around a structure, as repeated corners and edges make it do. With r the residual of a match to a
structure, a its residual across the epipolar lines of the motion that the structure belongs to, and s, w the noise scales of the motion
and of the structure, the densities are

    match of a motion's surface   N(a; s^2) N(b; w^2), b^2 = r^2 - a^2: across the epipolar line by noise, along it by w
                                  or by `relief_scale`
    match of another structure    N(r; w^2 I_c), c the coordinates of the second point that the structure predicts
    mismatch around a structure   N(r; v^2 I_c)
    mismatch anywhere             as many as decoys within the widest v

Scales are s, w and 3 s, 3 w for matches, v and 3 v for mismatches. Those of a match grow with the size of its keypoints, see
`matches.noise_factors`; without sizes, matches have a third, `tail_scale`. v is 9 times the geometric mean of w and s, and at least the
widest noise scale, because repeated corners and edges are some pixels apart, however precise the keypoints are. EM estimates the shares
of all of these among the matches (Dempster, Laird, Rubin, "Maximum likelihood from incomplete data via the EM algorithm", JRSS B 1977),
and Bayes' rule the probability of each for a match.

A line leaves a coordinate of the second point unchecked. So matches off all surfaces belong to a motion only if they have evidence
together, see `proofs.off_surface`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.base import Families
from ruzhash_cv.core.kernels.weigh import estimate_shares, write_probabilities
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import Problem
from ruzhash_cv.core.method.scene import Scene
from ruzhash_cv.core.method.sides import on_one_side
from ruzhash_cv.foundation.arrays import Array, Mask, Rows

#: More probable than not: what a kept match is at least. Single precision tells it from 1/2, too.
MORE_THAN_HALF = 0.5 + 2.0**-20
#: A guard: steps of EM, after which shares hardly change, and the pseudo-count of each share, in matches, so that none is 0.
_N_STEPS, _PRIOR = 20, 0.1

#: Matches whose probabilities are computed together: few enough to stay in the processor's cache.
_BLOCK = 512

#: Of each component of the mixture: structure, motion, scales across and along, height, and coordinates: 0 if it is of mismatches.
Components: TypeAlias = tuple[Rows, Rows, Array, Array, Array, Rows]


@dataclass(frozen=True)
class Labels:
    """Mask, probabilities and labels (-1 = none) of the distinct correspondences."""

    keep: Mask
    probabilities: Array
    labels: Rows

    @classmethod
    def nothing(cls, n: int) -> Labels:
        """Return labels that keep none of n matches."""
        return cls(np.zeros(n, bool), np.zeros(n), np.full(n, -1))

    def without(self, rows: NDArray[Any]) -> Labels:
        """Return labels with some matches, by number or mask, no longer kept, of probability 0."""
        keep, probabilities, labels = self.keep.copy(), self.probabilities.copy(), self.labels.copy()
        keep[rows], probabilities[rows], labels[rows] = False, 0.0, -1
        return Labels(keep, probabilities, labels)

    def renumbered(self, order: Rows, n: int) -> Labels:
        """Return labels of the models of a scene of `n` in a new `order` (m,); a model left out labels nothing."""
        numbers = np.full(n + 1, -1)
        numbers[order] = np.arange(len(order))
        return replace(self, labels=numbers[self.labels])


def label(probabilities: Array, scene: Scene, matches: MatchSet, families: Families, threshold: float | None) -> Labels:
    """Return the labels of matches with probabilities (n, k) of each model of a scene: kept if more probable than not.

    A `threshold` in the frame takes the place of the probabilities: every match within it of a motion, or of a surface of no motion, is
    kept, and no other.
    """
    of_any = np.minimum(probabilities.sum(axis=1), 1.0)
    labels = probabilities.argmax(axis=1)
    keep = of_any > 0.5
    if threshold is not None:
        motions = scene.motions()
        distances = np.sqrt(families.squared_residuals(scene.take(motions), matches.data)).T
        keep = distances.min(axis=1) <= threshold
        of_any = np.where(keep, np.maximum(of_any, MORE_THAN_HALF), 0.0)
        # Matches that the law gives to nothing belong to the nearest motion.
        nearest = motions[distances.argmin(axis=1)]
        within = np.take_along_axis(distances, np.searchsorted(motions, scene.owners[labels])[:, None], axis=1)[:, 0]
        labels = np.where((probabilities.max(axis=1) > 0.0) & (within <= threshold), labels, nearest)
    return Labels(keep, of_any, np.where(keep, labels, -1))


def most_probable(labels: Labels, false_discovery_rate: float) -> Labels:
    """Return labels that keep as many of the most probable matches as have a mean of 1 - probability of at most the rate."""
    probabilities = labels.probabilities
    ranked = np.sort(probabilities)[::-1]
    rates = np.cumsum(1.0 - ranked) / np.arange(1, len(ranked) + 1)
    # Matches that are as probable are kept or removed together; what is impossible is removed.
    last = np.append(ranked[1:] != ranked[:-1], True) & (rates <= false_discovery_rate) & (ranked > 0.0)
    keep = probabilities >= ranked[last].min(initial=np.inf)
    return replace(labels, keep=keep, labels=np.where(keep, labels.labels, -1))


def probabilities_of(scene: Scene, matches: MatchSet, decoys: Array, holding: Mask, problem: Problem) -> Array:
    """Return the probabilities (n, k) that matches belong to each model of a scene, by the densities of `decoys` (N, 4) around them.

    `holding` (k,) says which models may hold matches. Shares are estimated among the matches of the `problem`, which were searched.
    """
    searched, _, families, parameters = problem
    of_matches, of_decoys = (
        on_one_side(families.squared_residuals(scene, data), scene, searched, families, data)
        for data in (matches.data, decoys)
    )
    of_searched = of_matches
    if searched is not matches:
        of_searched = on_one_side(families.squared_residuals(scene, searched.data), scene, searched, families)
    has_tail = bool((matches.noise_factors == 1.0).all())
    components = components_of(scene, of_decoys, holding, has_tail, searched.unit, families, parameters)
    shares = shares_of(of_searched, components, searched.weights, searched.noise_factors)
    return by_shares(of_matches, components, shares, matches.noise_factors)


def components_of(
    scene: Scene,
    decoys: Array,
    holding: Mask,
    has_tail: bool,
    unit: float,
    families: Families,
    parameters: Parameters,
) -> Components:
    """Return the components (m,) of the mixture but mismatches anywhere, from squared distances (k, N) of decoys.

    Of each: its structure, the motion of this (-1 for none), the scales across and along, the ratio of its density at distance 0 to
    the density of mismatches anywhere, and the number of coordinates of matches, 0 for mismatches. Matches have a tail unless the
    sizes of their keypoints explain it.
    """
    components: list[tuple[int, int, float, float, float, int]] = []
    least = parameters.least_noise * unit
    for item, codimension in enumerate(families.codimensions[scene.family_ids].tolist()):
        motion = int(scene.owners[item]) if scene.owners[item] != item else -1
        along = max(float(scene.noise[item]), least)
        across = max(float(scene.noise[motion]), least) if motion >= 0 else along
        along = max(along, across)
        crowd = max(9.0 * math.sqrt(across * along), parameters.widest_scale * unit)
        widest = max(3.0 * crowd, unit * parameters.widest_tolerance(codimension))
        volume = 2.0 * widest if codimension == 1 else math.pi * widest**2
        # One decoy more, so that the share is never 0.
        anywhere = (1.0 + np.count_nonzero(decoys[item] <= widest**2)) / (1.0 + decoys.shape[1]) / volume
        # Matches of a structure as wide as the widest noise scale are not wider.
        ratios = (1.0, 3.0, parameters.tail_scale) if has_tail else (1.0, 3.0)
        widest_scale = max(along, parameters.widest_scale * unit)
        wide = [min(ratio * along, widest_scale) for ratio in ratios]
        of_matches = [(ratio * across if motion >= 0 else w, w) for ratio, w in zip(ratios, wide, strict=True)]
        if motion >= 0:
            of_matches.append((across, parameters.relief_scale * unit))
        of_mismatches = [(crowd, crowd), (3.0 * crowd, 3.0 * crowd)]
        laws = [(True, *scales) for scales in of_matches if holding[item]] + [
            (False, *scales) for scales in of_mismatches
        ]
        for true, one, other in laws:
            peak = 1.0 / (2.0 * math.pi * one * other) if codimension == 2 else 1.0 / (math.sqrt(2.0 * math.pi) * other)
            components.append((item, motion if true else -1, one, other, peak / anywhere, codimension if true else 0))
    table = np.array(components, np.float64).reshape(-1, 6).T.copy()
    return table[0].astype(np.int64), table[1].astype(np.int64), table[2], table[3], table[4], table[5].astype(np.int64)


def shares_of(squares: Array, components: Components, weights: Array, noise_factors: Array) -> Array:
    """Return the shares (m + 1,) of components among matches with squared distances (k, n), the last that of mismatches anywhere."""
    n, m = len(weights), len(components[0])
    shares = np.append(np.full(m, 0.7 / max(m, 1)), 0.3)
    room = np.empty(m, np.int64), np.empty(n * m + 1, np.int64), np.empty(n * m + 1), np.empty((2, n))
    if n == 0:
        return np.full(m + 1, 1.0 / (m + 1))
    steps = _precisions(noise_factors), _N_STEPS, _PRIOR
    estimate_shares(squares, weights, *_inverse(components), *steps, *room, shares)
    return shares


def by_shares(squares: Array, components: Components, shares: Array, noise_factors: Array) -> Array:
    """Return the probabilities (n, k) of structures for matches with squared distances (k, n), by Bayes' rule."""
    probabilities = np.empty(squares.shape[::-1])
    given, room = (_precisions(noise_factors), shares), np.empty((2, _BLOCK))
    write_probabilities(squares, *_inverse(components), *given, room, probabilities)
    return probabilities


def _precisions(noise_factors: Array) -> Array:
    """Return the powers 0 to 2 (3, n) of how precise each match is."""
    return np.asarray(noise_factors ** -np.arange(3.0)[:, None])


def _inverse(components: Components) -> tuple[Rows, Rows, Array, Array, Array, Rows]:
    """Return what kernels take of components: inverse squares for scales, and a structure for its motion if it has none."""
    structures, motions, across, along, heights, powers = components
    motions, across = np.where(motions >= 0, motions, structures), np.where(motions >= 0, across, along)
    return structures, motions, 1.0 / np.square(across), 1.0 / np.square(along), heights, powers


def tail_shares(scores: Array, ranked: Array) -> Array:
    """Return, for each score, how often a mismatch scores as well: (1 + #) / (1 + N), # of the N `ranked` decoys having at most it."""
    as_good = np.searchsorted(ranked, scores, side="right")
    return np.asarray((1.0 + as_good) / (1.0 + len(ranked)), dtype=np.float64)


def is_overlay(scene: Scene, labels: Rows, weights: Array) -> Mask:
    """Return which structures are static while others moved, or fewer than half of all matches: a watermark, a border, a bonnet.

    Static matches that another structure predicts are not a structure, see `estimate.moves_as_others`.
    """
    support = np.bincount(labels + 1, weights, minlength=len(scene) + 1)[1:]
    others_moved = (support[~scene.stationary] > 0.0).any()
    return np.asarray(scene.stationary & (others_moved | (2.0 * support < weights.sum())))
