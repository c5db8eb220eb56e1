"""Fundamental matrices that planes propose, and where along its line a match of a motion lies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from ruzhash_cv.families.distances import FAMILIES
from ruzhash_cv.families.normal_equations import unit_norm
from ruzhash_cv.sampling import SamplePlan, draw_samples
from ruzhash_cv.consensus import best_first
from scipy.spatial import cKDTree

from .densities import Array, along_kernel, epipolar_kernel
from .parameters import Parameters

HOMOGRAPHY, FUNDAMENTAL = FAMILIES["homography"], FAMILIES["fundamental"]
#: Half widths, px, in which keypoints are counted around lines: near, and for comparison.
NEAR, AROUND = 0.7, 9.0
#: Lines looked at.
_MOST_LINES = 100
#: Share of a motion's matches among those it is asked of, and the width in px in which others lie, for scores of matrices.
_SHARE, _WIDTH = 0.7, 54.0


def propose(matches: Any, planes: Array, held: Array, scores: Array | None, rng: np.random.Generator, parameters: Parameters) -> Array:
    """Return fundamental matrices (m, 9), refined: one of each group of matches, which are those of each plane and around it, all of
    these, and those that look best.

    `held` (k, n) is the probability that a match lies on or around each plane.
    """
    votes, px = matches.weights, 1.0 / matches.frame.scale
    groups = []
    if len(planes):
        sizes = held @ votes
        groups.append(votes * (held / np.sqrt(np.maximum(sizes, 1.0))[:, None]).sum(axis=0))
        groups += [votes * held[k] for k in np.argsort(-sizes, kind="stable")[: parameters.n_seed_planes]]
        leading = [np.argsort(-sizes, kind="stable")[:3]] + [[k] for k in np.argsort(-sizes, kind="stable")[: parameters.n_seed_planes]]
    else:
        leading = []
    if scores is not None:
        groups.append(best_first(votes, scores))
        leading.append(np.zeros(0, np.int64))
    best, weights = [], []
    for group, own in zip(groups, leading):
        group = np.where(group > 1e-3 * group.max(initial=0.0), group, 0.0)
        if np.count_nonzero(group > 0.05 * group.max(initial=0.0)) <= FUNDAMENTAL.sample_size:
            continue
        tried = _tried(matches, planes[own] if len(own) else planes[:0], group, px, rng, parameters)
        if len(tried):
            ranking = agreement(matches, tried, group, px)
            best += list(tried[np.argsort(-ranking, kind="stable")[:2]])
            weights += [group] * min(2, len(tried))
    if not best:
        return np.zeros((0, 9))
    found = _best_of_each(matches, refine_motions(matches, np.array(best), np.array(weights), parameters), np.array(weights), px)
    return _distinct(matches, found, px, parameters)


def _distinct(matches: Any, models: Array, px: float, parameters: Parameters) -> Array:
    """Return matrices less those that hold nearly the same matches as one of more agreement."""
    squared = FUNDAMENTAL.squared_residuals(matches.data, models) * (2.0 * px**2)
    held = (squared <= (3.0 * parameters.finest_scale) ** 2).astype(np.float64)
    order = np.argsort(-agreement(matches, models, matches.weights, px), kind="stable")
    common = (held * matches.weights) @ held.T
    sizes = np.diag(common)
    kept: list[int] = []
    for item in order.tolist():
        union = sizes[item] + sizes[kept] - common[item, kept]
        if not (common[item, kept] > parameters.same_motion * union).any():
            kept.append(item)
    return models[sorted(kept)]


def _tried(matches: Any, planes: Array, group: Array, px: float, rng: np.random.Generator, parameters: Parameters) -> Array:
    """Return matrices of seven matches, and of planes and two matches off each."""
    sizes, tried = (0,) if len(planes) else (50, 0), []
    if len(planes) != 1:
        samples = draw_samples(matches.data, group, parameters.n_sevens, SamplePlan(7, False, sizes, matches.unit, 1, 20, 0.5), rng)
        tried = [FUNDAMENTAL.solve(matches.data[samples.indices])[0]] if len(samples) else []
    if len(planes):
        squared = HOMOGRAPHY.squared_residuals(matches.data, planes) * px**2
        for plane, far in zip(planes, squared > 9.0):
            off = np.flatnonzero(far & (group > 0.0))
            if len(off) > 1:
                tried.append(parallaxes(plane, matches.data[off], group[off], parameters.n_parallaxes, rng))
    every = np.vstack(tried) if tried else np.zeros((0, 9))
    return every[np.isfinite(every).all(axis=1)]


def parallaxes(plane: Array, data: Array, weights: Array, n: int, rng: np.random.Generator) -> Array:
    """Return fundamental matrices [e]_x H of a homography and two matches off it: e is where the lines H x1, x2 meet."""
    matrix, ones = plane.reshape(3, 3), np.ones((len(data), 1))
    lines = np.cross(np.hstack([data[:, :2], ones]) @ matrix.T, np.hstack([data[:, 2:], ones]))
    i, j = rng.integers(len(data), size=(2, n))
    epipoles = np.cross(lines[i], lines[j])
    return unit_norm(np.cross(epipoles[:, None], matrix.T[None]).transpose(0, 2, 1).reshape(-1, 9))


@njit(cache=True, nogil=True)
def _agreement_kernel(squared: Any, weights: Any, scales: Any, share: float, width: float, out: Any) -> None:
    """Write log-likelihoods of weighed matches: Gaussian at unknown scale across the line, or anywhere."""
    wide = scales[0]
    base = (1.0 - share) / width
    for item in range(len(squared)):
        total = 0.0
        for row in range(squared.shape[1]):
            if weights[row] > 0.0 and squared[item, row] < 9.0 * wide * wide:
                term, whole = np.exp(-0.5 * squared[item, row] / (wide * wide)), 0.0
                for s in scales:
                    whole += term / (2.5066282746310002 * s)
                    cube = term * term * term
                    term = cube * cube * cube
                total += weights[row] * np.log(1.0 + share * whole / len(scales) / base)
        out[item] = total


@njit(cache=True, nogil=True)
def _weight_kernel(squared: Any, weights: Any, scales: Any, share: float, width: float, out: Any) -> None:
    """Write votes times posterior times the mean of 1 / s^2 given the residual: the weights of the next fit."""
    wide, base = scales[0], (1.0 - share) / width
    for item in range(len(squared)):
        for row in range(squared.shape[1]):
            out[item, row] = 0.0
            if squared[item, row] < 9.0 * wide * wide and weights[item, row] > 0.0:
                term, whole, precise = np.exp(-0.5 * squared[item, row] / (wide * wide)), 0.0, 0.0
                for s in scales:
                    density = share / len(scales) * term / (2.5066282746310002 * s)
                    whole += density
                    precise += density / (s * s)
                    cube = term * term * term
                    term = cube * cube * cube
                out[item, row] = weights[item, row] * precise / (whole + base)


#: Scales of distances across lines in fits, px; finer than those of the mixture, as fits have to end there.
FIT_SCALES = np.array([3.0, 1.0, 1.0 / 3.0])


def agreement(matches: Any, models: Array, weights: Array, px: float) -> Array:
    """Return how well matrices explain weighed matches, a log-likelihood."""
    squared = np.ascontiguousarray(FUNDAMENTAL.squared_residuals(matches.data, models)) * (2.0 * px**2)
    out = np.empty(len(models))
    _agreement_kernel(squared, weights, FIT_SCALES, _SHARE, _WIDTH, out)
    return out


def refine_motions(matches: Any, models: Array, weights: Array, parameters: Parameters) -> Array:
    """Return matrices fitted to matches weighed (m, n), by Gauss-Newton steps whose weights are the law's; a failed fit stays."""
    px, data = 1.0 / matches.frame.scale, matches.data
    fits = np.empty_like(weights)
    for step in range(parameters.n_fits):
        squared = np.ascontiguousarray(FUNDAMENTAL.squared_residuals(data, models)) * (2.0 * px**2)
        _weight_kernel(squared, weights, FIT_SCALES, _SHARE, _WIDTH, fits)
        fitted = FUNDAMENTAL.step(data, fits, models) if step else FUNDAMENTAL.fit(data, fits, models)
        usable = np.isfinite(fitted).all(axis=1) & (np.count_nonzero(fits, axis=1) > 8)
        models = np.where(usable[:, None], fitted, models)
    return models


def _best_of_each(matches: Any, models: Array, weights: Array, px: float) -> Array:
    """Return of the two matrices of each group the better one."""
    kept, at = [], 0
    while at < len(models):
        end = at + 1
        while end < len(models) and (weights[end] == weights[at]).all():
            end += 1
        kept.append(models[at + int(np.argmax(agreement(matches, models[at:end], weights[at], px)))])
        at = end
    return np.array(kept)


def lines_of(matches: Any, model: Array) -> tuple[Array, Array]:
    """Return squared distances across the lines of a matrix, px, and the lines' directions in the second image."""
    px = 1.0 / matches.frame.scale
    across2, directions = np.empty(len(matches.data)), np.empty((len(matches.data), 2))
    epipolar_kernel(matches.data, model, across2, directions)
    return across2 * px**2, directions


def along_lines(matches: Any, plane: Array, directions: Array) -> Array:
    """Return how far along the lines, px, matches lie from where a plane puts them."""
    along = np.empty(len(matches.data))
    along_kernel(matches.data, plane, directions, along)
    return along / matches.frame.scale


def line_crowding(matches: Any, model: Array, rows: Any) -> tuple[float, float]:
    """Return the densities, per px, of other keypoints near the lines of some matches, and around these.

    Windows in columns crowd on lines along the columns: a mismatch is there more often than anywhere. These are the decoys that
    each of the matches makes with the second points of all others.
    """
    px, data = 1.0 / matches.frame.scale, matches.data
    rows = rows[:: max(1, len(rows) // _MOST_LINES)]
    lines = np.hstack([data[rows, :2], np.ones((len(rows), 1))]) @ model.reshape(3, 3).T
    others = data[:: max(1, len(data) // 512)]
    keypoints = matches.keypoints[1]
    counts = np.zeros(3)
    _crowding_kernel(lines, data[:, 2:], keypoints, keypoints[rows], max(1, len(data) // 512), NEAR / px, AROUND / px, counts)
    near, around, total = counts
    return near / max(total, 1.0) / (2 * NEAR), around / max(total, 1.0) / (2 * AROUND)


@njit(cache=True, nogil=True)
def _crowding_kernel(lines: Any, second: Any, keypoints: Any, own: Any, stride: int, near: float, around: float, counts: Any) -> None:
    for item in range(len(lines)):
        a, b, c = lines[item]
        norm = np.sqrt(a * a + b * b) + 1e-300
        for row in range(0, len(second), stride):
            if keypoints[row] != own[item]:
                distance = abs(a * second[row, 0] + b * second[row, 1] + c) / norm
                counts[0] += distance < near
                counts[1] += distance < around
                counts[2] += 1


def neighbours(matches: Any, parameters: Parameters) -> Any:
    """Return the nearest matches (n, k) in the first image, more than are asked as some do not count."""
    k = min(3 * parameters.relief_neighbours, len(matches.data))
    return np.asarray(cKDTree(matches.data[:, :2]).query(matches.data[:, :2], k)[1]).reshape(len(matches.data), k)


def relief_density(matches: Any, near: Any, across2: Array, along: Array, flat: float, scales: Array, parameters: Parameters) -> Array:
    """Return the density (n,), per px, of each match's place along its line: as its neighbours in the first image lie, or anywhere."""
    out = np.full(len(along), flat)
    agrees = np.exp(-0.5 * across2 / scales[-1] ** 2)
    _relief_kernel(
        near, agrees, along, matches.groups, matches.keypoints, scales, parameters.relief_neighbours, parameters.relief_floor, flat, out
    )
    return out


@njit(cache=True, nogil=True)
def _relief_kernel(
    near: Any, agrees: Any, along: Any, groups: Any, keypoints: Any, scales: Any, wanted: int, floor: float, flat: float, out: Any
) -> None:
    wide = scales[0]
    for row in range(len(near)):
        density, weight, found = 0.0, 0.0, 0
        for other in near[row]:
            if found == wanted:
                break
            if groups[other] == groups[row] or keypoints[0, other] == keypoints[0, row] or keypoints[1, other] == keypoints[1, row]:
                continue
            if agrees[other] < 0.1:
                continue
            found += 1
            weight += agrees[other]
            apart = (along[other] - along[row]) ** 2
            if apart < 9.0 * wide * wide:
                term = np.exp(-0.5 * apart / (wide * wide))
                for w in scales:
                    density += agrees[other] * term / (2.5066282746310002 * w * len(scales))
                    cube = term * term * term
                    term = cube * cube * cube
        if found > 0:
            out[row] = floor * flat + (1.0 - floor) * density / weight
