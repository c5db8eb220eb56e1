"""Structures: the few refitted models behind the matches, each with its kind, support and tolerance.

Evidence. For a model and a radius, c of n votes agree and chance would give the share alpha. The log-likelihood ratio of
"c / n agree" against "alpha agree" is

    G = c log(c / (n alpha)) + (n - c) log((1 - c / n) / (1 - alpha))     (nats)

Two kinds of chance, and the larger counts. Decoys: the share of them within `CHANCE_RADIUS` of the model, brought down to smaller
radii by the law of its family, r^2 around a point (homography) and r along a line (fundamental matrix). And the ring just outside the
radius: mismatches may crowd around the true positions, but a structure is denser than what surrounds it. So a radius grows as long
as there is more to gain than chance would bring in, and stops where the residuals of the structure thin out: each structure has the
tolerance its own residuals ask for.

The largest G over models and radii is the next structure, of whichever family; what it explains is taken away, and so on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ruzhash_cv._jit import jit
from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.refinement import refine_one
from ruzhash_cv.residuals import model_residual, residual_kernel

#: Radii tried, pixels: steps of sqrt(2).
RADII = 0.5 * np.sqrt(2.0) ** np.arange(14)
#: Decoys this close to a model, pixels, tell its share of chance agreement.
CHANCE_RADIUS = 32.0
#: The ring behind a radius reaches this many steps further (twice the radius).
RING = 2
#: Widest radius by family, as a number of steps: 22.6 px and 8 px. Planes bend, epipolar lines do not.
WIDEST = (12, 9)
#: A structure must be this many times as dense as the ring around it.
CONTRAST = (3.0, 1.5)
#: Correspondences that fit a model whatever they are, by family.
FREE = (4.0, 7.0)


@jit
def evidence(agreeing: float, total: float, chance: float) -> float:
    """Return G in nats; 0 where no more agree than chance gives."""
    share = min(agreeing / total, 1.0 - 1e-9)
    if share <= chance:
        return 0.0
    gain = share * np.log(share / chance) + (1.0 - share) * np.log((1.0 - share) / (1.0 - chance))
    return float(total * gain)


@jit
def best_radius(
    counts: Any, total: float, kind: int, chance: float, radii: Any, chance_radius: float, widest: Any, contrast: Any
) -> Any:
    """Return the largest evidence over the radii of one model and the step it is reached at.

    `counts` are the votes between one radius and the next.
    """
    power = 2.0 if kind == HOMOGRAPHY else 1.0
    beyond = 2.0 ** (0.5 * RING * power) - 1.0
    within = 0.0
    best, best_at = 0.0, 0
    for at in range(widest[kind]):
        within += counts[at]
        around = 0.05
        for step in range(1, RING + 1):
            around += counts[at + step]
        crowd = contrast[kind] * around / beyond / total
        share = min(max(chance * (radii[at] / chance_radius) ** power, crowd), 0.9)
        if within > FREE[kind]:
            gain = evidence(within - FREE[kind], total - FREE[kind], share)
            if gain > best:
                best, best_at = gain, at
    return best, best_at


@jit
def _step_of(residual: float, radii: Any) -> int:
    if not residual <= radii[-1]:
        return len(radii)
    at = 0
    while residual > radii[at]:
        at += 1
    return at


@jit
def _chance_of(packed: Any, kinds: Any, decoys: Any, chance_radius: float) -> Any:
    """Return each model's share of decoys within the chance radius; one is added, so that it is never 0."""
    residuals = residual_kernel(decoys, packed, kinds, chance_radius)
    near = np.ones(len(packed))
    for row in range(len(decoys)):
        for column in range(len(packed)):
            near[column] += residuals[row, column] <= chance_radius
    return near / (len(decoys) + 1.0)


@jit
def _steps_of(pairs: Any, packed: Any, kinds: Any, radii: Any) -> Any:
    """Return, for each model and correspondence, the first step of the radii that holds its residual."""
    residuals = residual_kernel(pairs, packed, kinds, radii[-1])
    steps = np.empty((len(packed), len(pairs)), np.uint8)
    for row in range(len(pairs)):
        for column in range(len(packed)):
            steps[column, row] = _step_of(residuals[row, column], radii)
    return steps


@jit
def _polish(
    pairs: Any,
    decoys: Any,
    left: Any,
    total: float,
    packed: Any,
    kinds: Any,
    column: int,
    at: int,
    radii: Any,
    reach: float,
    widest: Any,
    contrast: Any,
) -> Any:
    """Refit one model, in place, within twice its radius; return its evidence and its radius's step anew."""
    weights = np.empty(len(pairs))
    for _ in range(3):
        if not refine_one(packed, kinds, column, pairs, left, 2.0 * radii[at], weights):
            break
    one = packed[column : column + 1], kinds[column : column + 1]
    counts = np.zeros(len(radii) + 1)
    steps = _steps_of(pairs, one[0], one[1], radii)
    for row in range(len(pairs)):
        counts[steps[0, row]] += left[row]
    chance = _chance_of(one[0], one[1], decoys, reach)[0]
    return best_radius(counts, total, kinds[column], chance, radii, reach, widest, contrast)


@jit
def extract_kernel(
    pairs: Any,
    votes: Any,
    decoys: Any,
    packed: Any,
    kinds: Any,
    scale: float,
    tolerance: Any,
    widest: Any,
    contrast: Any,
    fewest_nats: float,
    most: int,
) -> Any:
    """Return models (k, 18), kinds, steps and evidences of the structures, strongest first, and the votes left over.

    What lies within `tolerance` (by family) times a structure's radius is taken away before the next is looked for. Radii are
    tried up to step `widest`, and a structure is at least `contrast` times as dense as the ring around it (by family).
    """
    radii, reach = RADII * scale, CHANCE_RADIUS * scale
    steps, chances = _steps_of(pairs, packed, kinds, radii), _chance_of(packed, kinds, decoys, reach)
    left, total = votes.copy(), votes.sum()
    found, found_kinds = np.empty((most, 18)), np.empty(most, np.uint8)
    found_steps, gains = np.empty(most, np.int64), np.empty(most)
    counts = np.empty(len(radii) + 1)
    # Not a literal: numba would compile all that is called with it once for the literal and once for integers.
    n_found: Any = np.int64(0)
    best_column: Any
    best_at: Any
    while n_found < most:
        best, best_column, best_at = 0.0, np.int64(-1), np.int64(0)
        for column in range(len(packed)):
            counts[:] = 0.0
            for row in range(len(pairs)):
                counts[steps[column, row]] += left[row]
            gain, at = best_radius(counts, total, kinds[column], chances[column], radii, reach, widest, contrast)
            if gain > best:
                best, best_column, best_at = gain, column, at
        if best < fewest_nats:
            break
        found[n_found], found_kinds[n_found] = packed[best_column], kinds[best_column]
        gain, at = _polish(
            pairs, decoys, left, total, found, found_kinds, n_found, best_at, radii, reach, widest, contrast
        )
        if gain < best:
            found[n_found], gain, at = packed[best_column], best, best_at
        found_steps[n_found], gains[n_found] = at, gain
        reached = tolerance[kinds[best_column]] * radii[at]
        for row in range(len(pairs)):
            if model_residual(found, found_kinds, n_found, pairs, row, radii[-1]) <= reached:
                left[row] = 0.0
        n_found += 1
    return found[:n_found], found_kinds[:n_found], found_steps[:n_found], gains[:n_found], left


@jit
def cover_kernel(indptr: Any, columns: Any, values: Any, votes: Any, significance: Any, n_wanted: int) -> Any:
    """Choose columns greedily by their summed preference; the votes of the rows they hold are halved each time."""
    left = votes.copy()
    support = np.zeros(len(significance))
    starts = np.zeros(len(significance) + 1, np.int64)
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            support[columns[at]] += left[row] * values[at]
            starts[columns[at] + 1] += 1
    starts = np.cumsum(starts)
    holders, shares = np.empty(len(columns), np.int32), np.empty(len(columns), np.float32)
    filled = starts[:-1].copy()
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            holders[filled[columns[at]]], shares[filled[columns[at]]] = row, values[at]
            filled[columns[at]] += 1
    chosen = np.empty(n_wanted, np.int64)
    for item in range(n_wanted):
        best = int(np.argmax(support * significance))
        if not support[best] * significance[best] > 0.0:
            return chosen[:item]
        chosen[item] = best
        for held in range(starts[best], starts[best + 1]):
            row = holders[held]
            change = left[row] * min(0.5, shares[held])
            left[row] -= change
            for at in range(indptr[row], indptr[row + 1]):
                support[columns[at]] -= change * values[at]
        support[best] = -1.0
    return chosen
