"""Structures: the few refitted models behind the matches, each with its kind and tolerance.

Evidence. For a model and a radius, c of n votes agree and chance would give the share alpha. The log-likelihood ratio of
"c / n agree" against "alpha agree" is

    G = c log(c / (n alpha)) + (n - c) log((1 - c / n) / (1 - alpha))     (nats)

where n and c are both less by the votes that any model of the family fits (`FREE`). Three kinds of chance, and the largest counts.
Decoys: the share of them within `CHANCE_RADIUS` of the model, brought down to smaller radii by the law of its family, r^2 around a
point (homography) and r along a line (fundamental matrix). The ring just outside the radius: mismatches may crowd around the true
positions, but a structure is several times as dense as what surrounds it (`CONTRASTS`). And for a plane the crowd, all that lies
further out but within `CHANCE_RADIUS`, by the same law: a crowd has dense spots too small for the rings around them to tell. Where no
model at all stands out like that, less is asked of all.

The largest G over models and radii is the next structure, of whichever family; what it explains is taken away, and so on. Its radius
is that of the largest G by the first of the contrasts, where there is any: it grows as long as there is more to gain than chance would
bring in, and stops where the residuals of the structure thin out. So each structure has the tolerance its own residuals ask for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ruzhash_cv._jit import jit
from ruzhash_cv.models import HOMOGRAPHY
from ruzhash_cv.refinement import refine_one
from ruzhash_cv.residuals import near_residuals

Contrast = tuple[tuple[float, float], tuple[float, float]]

#: Radii tried, pixels: steps of sqrt(2).
N_RADII = 14
RADII = 0.5 * np.sqrt(2.0) ** np.arange(N_RADII)
#: Decoys as close to a model as the radius of this step, larger than any tried, tell its share of chance agreement; but no further than
#: so far in the frame.
CHANCE_STEP, WIDEST_CHANCE = 12, 0.5
CHANCE_RADIUS = float(RADII[CHANCE_STEP])
#: The ring behind a radius reaches this many steps further (twice the radius).
RING = 2
#: Squared residuals in units of the smallest radius squared: none of the radii holds more.
_BEYOND = 2.0 ** (N_RADII - 1)
#: Number of radii tried, by family: up to 22.6 px and 8 px. Planes bend, epipolar lines do not.
WIDEST = (12, 9)
#: A structure must be so many times as dense as the ring around it and as the crowd, both by family; where none is, the next of these.
CONTRASTS: tuple[Contrast, ...] = (((3.0, 1.5), (1.0, 0.0)), ((1.5, 1.5), (1.0, 0.0)), ((1.5, 1.5), (0.0, 0.0)))
#: By family: what lies within this many radii of a structure belongs to it.
TOLERANCE = (1.5, 1.25)
#: A structure is refitted within this many of its radii.
REFIT = 1.5
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
def best_radius(counts: Any, total: float, kind: int, chance: float, widest: Any, contrast: Any) -> Any:
    """Return the largest evidence over the radii of one model and the step it is reached at.

    `counts` are the votes between one radius and the next. `contrast` (2, 2): how many times as dense as the ring and as the crowd, by
    family.
    """
    power = 2.0 if kind == HOMOGRAPHY else 1.0
    ring_size = 2.0 ** (0.5 * RING * power) - 1.0
    within, nearby = 0.0, 0.0
    for step in range(CHANCE_STEP + 1):
        nearby += counts[step]
    best, best_at = 0.0, 0
    for at in range(widest[kind]):
        within += counts[at]
        around = 0.05
        for step in range(1, RING + 1):
            around += counts[at + step]
        crowd_size = 2.0 ** (0.5 * (CHANCE_STEP - at) * power) - 1.0
        surrounding = (
            max(contrast[0, kind] * around / ring_size, contrast[1, kind] * (nearby - within) / crowd_size) / total
        )
        share = min(max(chance * (RADII[at] / CHANCE_RADIUS) ** power, surrounding), 0.9)
        if within > FREE[kind]:
            gain = evidence(within - FREE[kind], total - FREE[kind], share)
            if gain > best:
                best, best_at = gain, at
    return best, best_at


@jit
def count_votes(points: Any, votes: Any, packed: Any, kinds: Any, column: int, smallest: float, steps: Any) -> Any:
    """Write the step of the radii that holds each correspondence's residual, and return the votes of each step.

    The radii are `smallest` times powers of sqrt(2): the step is an exponent of two. What lies beyond all has the last step, whose
    votes nobody counts.
    """
    near, squared = np.empty(points.shape[1], np.int64), np.empty(points.shape[1])
    counts = np.zeros(N_RADII + 1)
    steps[:] = N_RADII
    # A little larger, so that a residual of exactly a radius lies within it.
    unit = 1.0 / (smallest * smallest * (1.0 + 1e-12))
    for item in range(near_residuals(points, packed, kinds, column, _BEYOND / unit, near, squared)):
        row, ratio = near[item], squared[item] * unit
        if ratio < _BEYOND:
            step = max(0, math.frexp(ratio)[1])
            steps[row] = step
            counts[step] += votes[row]
    return counts


@jit
def _chance_of(decoys: Any, packed: Any, kinds: Any, column: int, scale: float) -> Any:
    """Return the share of decoys (4, N) within `CHANCE_RADIUS` of a model; one is added, so that it is never 0.

    Where that is more than `WIDEST_CHANCE` in the frame the image ends before it does: then from a smaller radius, by the family's
    law, and it may be more than 1.
    """
    n = decoys.shape[1]
    near, squared = np.empty(n, np.int64), np.empty(n)
    wide = CHANCE_RADIUS * scale
    reach = min(wide, WIDEST_CHANCE)
    share = (1.0 + near_residuals(decoys, packed, kinds, column, reach * reach, near, squared)) / (n + 1.0)
    return share * (wide / reach) ** (2.0 if kinds[column] == HOMOGRAPHY else 1.0)


@jit
def extract_kernel(
    points: Any,
    votes: Any,
    decoys: Any,
    packed: Any,
    kinds: Any,
    scale: float,
    tolerance: Any,
    widest: Any,
    contrasts: Any,
    fewest_nats: float,
    most: int,
) -> Any:
    """Return models (k, 18), kinds, steps and evidences of the structures, in the order found, and the votes left over.

    `points` (4, n) and `decoys` (4, N) are rows of coordinates. What lies within `tolerance` (by family) times a structure's radius
    is taken away before the next is looked for. The first `widest` radii (by family) are tried. `contrasts` (levels, 2, 2) are those
    with the ring and with the crowd (by family); the next level is taken as long as there is no structure.
    """
    n, m = points.shape[1], len(packed)
    smallest, left, total = RADII[0] * scale, votes.copy(), votes.sum()
    steps, counts, chances = np.empty((m, n), np.uint8), np.empty((m, N_RADII + 1)), np.empty(m)
    for column in range(m):
        counts[column] = count_votes(points, left, packed, kinds, column, smallest, steps[column])
        chances[column] = _chance_of(decoys, packed, kinds, column, scale)
    found, found_kinds = np.empty((most, 18)), np.empty(most, np.uint8)
    found_steps, gains = np.empty(most, np.int64), np.empty(most)
    near, squared = np.empty(n, np.int64), np.empty(n)
    # Not a literal: numba would compile all that is called with it once for the literal and once for integers.
    n_found: Any = np.int64(0)
    level: Any = np.int64(0)
    while n_found < most:
        best, gain = _strongest(counts, total, kinds, chances, widest, contrasts[level])
        if gain < fewest_nats:
            level += 1
            if n_found > 0 or level == len(contrasts):
                break
            continue
        found[n_found], found_kinds[n_found] = packed[best], kinds[best]
        _polish(
            points, left, total, decoys, found, found_kinds, n_found, found_steps, gains, scale, widest, contrasts, level
        )  # fmt: skip
        reached = tolerance[kinds[best]] * smallest * np.sqrt(2.0) ** found_steps[n_found]
        for item in range(near_residuals(points, found, found_kinds, n_found, reached * reached, near, squared)):
            row = near[item]
            if left[row] > 0.0:
                for column in range(m):
                    counts[column, steps[column, row]] -= left[row]
                left[row] = 0.0
        n_found += 1
    return found[:n_found], found_kinds[:n_found], found_steps[:n_found], gains[:n_found], left


@jit
def _strongest(counts: Any, total: float, kinds: Any, chances: Any, widest: Any, contrast: Any) -> Any:
    """Return the model of largest evidence, and its evidence."""
    best: Any = np.int64(0)
    best_gain = 0.0
    for column in range(len(counts)):
        gain, _ = best_radius(counts[column], total, kinds[column], chances[column], widest, contrast)
        if gain > best_gain:
            best, best_gain = column, gain
    return best, best_gain


@jit
def _polish(
    points: Any,
    left: Any,
    total: float,
    decoys: Any,
    found: Any,
    kinds: Any,
    item: int,
    steps: Any,
    gains: Any,
    scale: float,
    widest: Any,
    contrasts: Any,
    level: int,
) -> None:
    """Write the step and the evidence of one structure; refit it, in place, and take the fit if its evidence is no less."""
    n, before = points.shape[1], found[item].copy()
    near, weights = np.empty(n, np.int64), np.empty(n)
    gains[item], steps[item] = _weigh(points, left, total, decoys, found, kinds, item, scale, widest, contrasts, level)
    for _ in range(3):
        radius = REFIT * RADII[steps[item]] * scale
        if not refine_one(points, left, found, kinds, item, radius, near, weights):
            break
    gain, at = _weigh(points, left, total, decoys, found, kinds, item, scale, widest, contrasts, level)
    if gain < gains[item]:
        found[item] = before
    else:
        gains[item], steps[item] = gain, at


@jit
def _weigh(
    points: Any,
    left: Any,
    total: float,
    decoys: Any,
    found: Any,
    kinds: Any,
    item: int,
    scale: float,
    widest: Any,
    contrasts: Any,
    level: int,
) -> Any:
    """Return a structure's largest evidence over the radii, and the step of its radius: by the first contrasts, if these leave any."""
    counts = count_votes(points, left, found, kinds, item, RADII[0] * scale, np.empty(points.shape[1], np.uint8))
    chance = _chance_of(decoys, found, kinds, item, scale)
    gain, at = best_radius(counts, total, kinds[item], chance, widest, contrasts[level])
    if level > 0:
        first, closer = best_radius(counts, total, kinds[item], chance, widest, contrasts[0])
        if first > 0.0:
            at = closer
    return gain, at


@jit
def _summed(starts: Any, rows: Any, values: Any, votes: Any, column: int) -> float:
    """Return the votes of the rows a model holds, times their preferences for it."""
    total = 0.0
    for at in range(starts[column], starts[column + 1]):
        total += votes[rows[at]] * values[at]
    return total


@jit
def cover_kernel(
    starts: Any, rows: Any, values: Any, votes: Any, support: Any, significance: Any, n_wanted: int
) -> Any:
    """Choose models greedily by their summed preference; the votes of the rows they hold are halved each time.

    Column i of the preferences is ``values[starts[i]:starts[i + 1]]`` on those ``rows``, and ``support[i]`` its sum times `votes`. A
    model's sum only ever falls, so what was last known of it is a bound: only those with the largest bounds are summed anew.
    """
    m = len(significance)
    left, bounds, fresh = votes.copy(), support * significance, np.zeros(m, np.int64)
    chosen = np.empty(min(n_wanted, m), np.int64)
    for item in range(len(chosen)):
        while True:
            best = int(np.argmax(bounds))
            if fresh[best] == item:
                break
            bounds[best], fresh[best] = _summed(starts, rows, values, left, best) * significance[best], item
        if not bounds[best] > 0.0:
            return chosen[:item]
        chosen[item], bounds[best] = best, -1.0
        for at in range(starts[best], starts[best + 1]):
            left[rows[at]] *= 1.0 - min(0.5, values[at])
    return chosen
