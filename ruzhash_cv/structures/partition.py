"""Partition: planes a few pixels from each other may lie within one structure, wider than the widest noise scale.

It has more evidence than each of them. Patches of its matches, each a match and its nearest, are fitted, and refitted narrowly. Parts
are found among these as structures are, those of most -ln NFA first, with radii that are smaller than the structure's by sqrt 2 or 2
at least. It gives way to parts that have more -ln NFA together. As alpha is the density around a radius too, a curved surface and
much noise are seldom divided: next to a part of it there is more of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.preferences import WIDEST_SCALE
from ruzhash_cv.structures.evidence import (
    RADII,
    Candidates,
    Structures,
    count_votes,
    evidence,
    extract,
    radius_steps,
)
from ruzhash_cv.structures.refinement import refit

Array = NDArray[np.float64]

#: Patches: how many, and the matches in each.
N_PATCHES, PATCH_SIZE = 32, 20


def divided(
    structures: Structures,
    families: Sequence[TwoViewFamily],
    data: Array,
    votes: Array,
    decoys: Array,
    length: float,
    n_tried: int,
) -> Structures:
    """Return structures with wide planes replaced by the narrower ones that explain their matches better; strongest first."""
    wide = (RADII[structures.steps] > WIDEST_SCALE) & ~structures.still
    if not wide.any():
        return structures
    squared = squared_residuals(families, structures.codes, structures.models, data)
    distances = np.sqrt(squared) / (structures.tolerances * length)[:, None]
    nearest = np.where(distances.min(axis=0) <= 1.0, distances.argmin(axis=0), -1)
    parts = []
    for item, code in enumerate(structures.codes):
        whole, family, rows = structures.take(np.array([item])), families[code], np.flatnonzero(nearest == item)
        if wide[item] and family.locally_affine and len(rows) >= 2 * PATCH_SIZE:
            chance = Candidates.of(family, int(code), whole.models, data[:0], decoys, length).chance
            models = np.vstack([whole.models, _patches(family, data[rows], votes[rows], length)])
            steps = radius_steps(family.squared_residuals(data[rows], models), length)
            found = Candidates(
                models, np.full(len(models), code, np.uint8), steps, np.repeat(chance, len(models), axis=0)
            )
            whole = _better(whole, found, families, votes[rows], float(votes.sum()), n_tried)
        parts.append(whole)
    structures = Structures.join(parts)
    return structures.take(np.argsort(-structures.evidences, kind="stable"))


def _patches(family: TwoViewFamily, data: Array, votes: Array, length: float) -> Array:
    """Return models (m, 9) of patches, fitted to them and then narrowly to all."""
    seeds = np.linspace(0, len(data) - 1, min(N_PATCHES, len(data))).astype(np.int64)
    near = np.asarray(cKDTree(data).query(data[seeds], PATCH_SIZE)[1])
    weights = np.zeros((len(seeds), len(data)))
    np.put_along_axis(weights, near, votes[near], axis=1)
    models = family.fit(data, weights)
    models = models[np.isfinite(models).all(axis=1)]
    return refit(family, data, votes, models, np.full(len(models), length))


def _better(
    whole: Structures, found: Candidates, families: Sequence[TwoViewFamily], votes: Array, total: float, n_tried: int
) -> Structures:
    """Return a structure, the first candidate, or the narrower ones that have more evidence together."""
    step = int(whole.steps[0])
    gains = evidence(found, count_votes(found.steps, votes), total, families, n_tried)
    best, most = whole, float(gains[0, step])
    patches = found.take(np.flatnonzero(gains[:, :step].max(axis=1) > 0.0))
    for widest in (step - 1, step - 2):
        parts, _ = extract(patches, families, votes, n_tried, total, widest)
        if len(parts) > 1 and parts.evidences.sum() > most:
            best, most = parts, float(parts.evidences.sum())
    return best
