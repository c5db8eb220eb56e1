"""Structures within a threshold: the model of most matches, of all that were tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from one_law.candidates import PLANE
from one_law.estimate import Estimate
from one_law.law import FUNDAMENTAL, HOMOGRAPHY
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.families.base import TwoViewFamily
from ruzhash_cv.matches import MatchSet


def largest_consensus(
    family: TwoViewFamily, data: Array, models: Array, threshold: float, parameters: Parameters
) -> tuple[Array, int]:
    """Return the model (9,) of most correspondences (n, 4) within a threshold, and how many these are.

    The best few of the models (m, 9) are refitted to what lies within the threshold, nearer matches weighing more.
    """
    best = models[np.argsort(-_counts(family, data, models, threshold), kind="stable")[: parameters.n_consensus]]
    tried, fitted = [best], best
    for step, reach in enumerate(parameters.consensus_reaches):
        ratios = family.squared_residuals(data, fitted) / (reach * threshold) ** 2
        weights = np.ascontiguousarray(np.where(ratios <= 1.0, 1.0 - ratios + 0.05, 0.0))
        new = (family.step if step else family.fit)(data, weights, fitted)
        usable = np.isfinite(new).all(axis=1) & (np.count_nonzero(weights, axis=1) > family.sample_size)
        fitted = np.where(usable[:, None], new, fitted)
        tried.append(fitted)
    every = np.vstack(tried)
    counts = _counts(family, data, every, threshold)
    return every[np.argmax(counts)], int(counts.max())


def _counts(family: TwoViewFamily, data: Array, models: Array, threshold: float) -> Rows:
    return np.asarray(np.count_nonzero(family.squared_residuals(data, models) <= threshold**2, axis=1))


def within_threshold(estimate: Estimate, matches: MatchSet, threshold: float) -> tuple[Estimate, Array]:
    """Return an estimate whose motions hold as many matches as they can within a threshold, px, and the distances (k, n) in px.

    As RANSAC's users mean it, all that lies within the threshold of a structure belongs to it: of a plane by transfer error, of a
    motion by Sampson's distance.
    """
    chosen, scale = [] if estimate.mixture is None else estimate.mixture.chosen, matches.frame.scale
    names, motions = estimate.candidates, estimate.motions.copy()
    numbers = np.unique(names.motions[chosen])
    for number in numbers[numbers >= 0]:
        told = threshold * scale, estimate.parameters
        motions[number] = largest_consensus(FUNDAMENTAL, matches.data, motions[[number]], *told)[0]
    distances = np.empty((len(chosen), len(matches)))
    for at, item in enumerate(chosen):
        family, model = FUNDAMENTAL, motions[names.motions[item]]
        if names.kinds[item] == PLANE:
            family, model = HOMOGRAPHY, estimate.planes[names.planes[item]]
        distances[at] = np.sqrt(family.squared_residuals(matches.data, model[None])[0]) / scale
    return replace(estimate, motions=motions), distances
