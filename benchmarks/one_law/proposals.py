"""Fundamental matrices that planes and scores propose, refined on the matches that propose them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from one_law.densities import ninth_power
from one_law.law import FUNDAMENTAL, HOMOGRAPHY
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array
from ruzhash_cv._kernels import jit
from ruzhash_cv.families.normal_equations import unit_norm
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.sampling import SamplePlan, draw_samples
from ruzhash_cv.search import best_first

_ROOT = 2.5066282746310002
_N_LEADING = 3  # planes that propose for the group of all
#: Shares of a group's largest weight: below the first a match is none of it, above the second it counts as a member.
_LEAST, _FEW = 1e-3, 0.05


class Group(NamedTuple):
    """Matches by weight (n,), and the planes (k, 9) that propose motions of them."""

    weights: Array
    planes: Array


class FitLaw(NamedTuple):
    """What a proposed matrix is judged and fitted by: scales across lines, px, widest first, and the densities' factors.

    A match has the density `share` times the mean over scales of N(r; 0, s^2), plus `rest` per px.
    """

    scales: Array
    share: float
    rest: float

    @classmethod
    def of(cls, parameters: Parameters) -> FitLaw:
        """Return the law of fits."""
        share = parameters.fit_share
        return cls(np.array(parameters.fit_scales), share, (1.0 - share) / parameters.fit_width)


def propose(
    matches: MatchSet, planes: Array, held: Array, scores: Array, rng: np.random.Generator, parameters: Parameters
) -> Array:
    """Return fundamental matrices (m, 9): the better of each group of matches, no two of nearly the same matches.

    `held` (k, n) is the probability that a match lies on or around each plane, `scores` (n,) are the forest's.
    """
    best, weights = [], []
    for group in groups_of_matches(matches, planes, held, scores, parameters):
        own = np.where(group.weights > _LEAST * group.weights.max(initial=0.0), group.weights, 0.0)
        if np.count_nonzero(own > _FEW * own.max(initial=0.0)) <= FUNDAMENTAL.sample_size:
            continue
        tried = _tried(matches, Group(own, group.planes), rng, parameters)
        if len(tried):
            order = np.argsort(-agreement(matches, tried, own, parameters), kind="stable")[: parameters.n_refined]
            best.append(tried[order])
            weights.append(own)
    if not best:
        return np.zeros((0, 9))
    sizes = [len(models) for models in best]
    refined = refine_motions(matches, np.vstack(best), np.repeat(weights, sizes, axis=0), parameters)
    found = []
    for models, own in zip(np.split(refined, np.cumsum(sizes)[:-1]), weights, strict=True):
        found.append(models[int(np.argmax(agreement(matches, models, own, parameters)))])
    return _distinct(matches, np.array(found), parameters)


def groups_of_matches(
    matches: MatchSet, planes: Array, held: Array, scores: Array, parameters: Parameters
) -> list[Group]:
    """Return the matches of all planes and around them, those of each of the strongest ones, and those that score best."""
    found = []
    if len(planes):
        sizes = held @ matches.weights
        order = np.argsort(-sizes, kind="stable")
        shares = (held / np.sqrt(np.maximum(sizes, 1.0))[:, None]).sum(axis=0)
        found.append(Group(matches.weights * shares, planes[order[:_N_LEADING]]))
        found += [Group(matches.weights * held[k], planes[[k]]) for k in order[: parameters.n_seed_planes]]
    return [*found, Group(best_first(matches.weights, scores), planes[:0])]


def _tried(matches: MatchSet, group: Group, rng: np.random.Generator, parameters: Parameters) -> Array:
    """Return matrices of seven matches, and of planes and two matches off each."""
    p, tried, planes = parameters, [], group.planes
    if len(planes) != 1:
        sizes = (0,) if len(planes) else (p.seven_neighbourhood, 0)
        plan = SamplePlan(7, False, sizes, matches.unit, 1, 20, 0.5)
        samples = draw_samples(matches.data, group.weights, p.n_sevens, plan, rng)
        tried = [FUNDAMENTAL.solve(matches.data[samples.indices])[0]] if len(samples) else []
    if len(planes):
        squared = HOMOGRAPHY.squared_residuals(matches.data, planes) / matches.frame.scale**2
        for plane, far in zip(planes, squared > p.off_plane**2, strict=True):
            off = np.flatnonzero(far & (group.weights > 0.0))
            if len(off) > 1:
                tried.append(parallaxes(plane, matches.data[off], p.n_parallaxes, rng))
    every = np.vstack(tried) if tried else np.zeros((0, 9))
    return np.ascontiguousarray(every[np.isfinite(every).all(axis=1)])


def parallaxes(plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
    """Return matrices (n, 9) [e]_x H of a homography and two matches off it: e is where the lines through H x1 and x2 meet."""
    matrix, ones = plane.reshape(3, 3), np.ones((len(data), 1))
    lines = np.cross(np.hstack([data[:, :2], ones]) @ matrix.T, np.hstack([data[:, 2:], ones]))
    i, j = rng.integers(len(data), size=(2, n))
    epipoles = np.cross(lines[i], lines[j])
    return unit_norm(np.cross(epipoles[:, None], matrix.T[None]).transpose(0, 2, 1).reshape(-1, 9))


def _distinct(matches: MatchSet, models: Array, parameters: Parameters) -> Array:
    """Return matrices less those that hold nearly the same matches as one of more agreement."""
    held = (_squared(matches, models) <= (3.0 * parameters.finest_scale) ** 2).astype(np.float64)
    order = np.argsort(-agreement(matches, models, matches.weights, parameters), kind="stable")
    common = (held * matches.weights) @ held.T
    sizes, kept = np.diag(common), list[int]()
    for item in order.tolist():
        union = sizes[item] + sizes[kept] - common[item, kept]
        if not (common[item, kept] > parameters.same_motion * union).any():
            kept.append(item)
    return models[sorted(kept)]


def _squared(matches: MatchSet, models: Array) -> Array:
    """Return squared distances (m, n) in px across lines, in both images together: twice Sampson's."""
    px = 1.0 / matches.frame.scale
    return np.ascontiguousarray(FUNDAMENTAL.squared_residuals(matches.data, models)) * (2.0 * px**2)


def agreement(matches: MatchSet, models: Array, weights: Array, parameters: Parameters) -> Array:
    """Return the log-likelihoods (m,) of matrices for weighed matches."""
    out = np.empty(len(models))
    _agreement_kernel(_squared(matches, models), weights, FitLaw.of(parameters), out)
    return out


def refine_motions(matches: MatchSet, models: Array, weights: Array, parameters: Parameters) -> Array:
    """Return matrices fitted to matches weighed (m, n), by Gauss-Newton steps reweighted by the law; a failed fit stays."""
    fits, law = np.empty_like(weights), FitLaw.of(parameters)
    for step in range(parameters.n_fits):
        _weight_kernel(_squared(matches, models), weights, law, fits)
        fit = FUNDAMENTAL.step if step else FUNDAMENTAL.fit
        fitted = fit(matches.data, fits, models)
        usable = np.isfinite(fitted).all(axis=1) & (np.count_nonzero(fits, axis=1) > FUNDAMENTAL.sample_size + 1)
        models = np.where(usable[:, None], fitted, models)
    return models


@jit
def _agreement_kernel(squared: Any, weights: Any, law: Any, out: Any) -> None:
    wide = law.scales[0]
    for item in range(len(squared)):
        total = 0.0
        for row in range(squared.shape[1]):
            if weights[row] > 0.0 and squared[item, row] < 9.0 * wide * wide:
                term, whole = np.exp(-0.5 * squared[item, row] / (wide * wide)), 0.0
                for scale in law.scales:
                    whole += term / (_ROOT * scale)
                    term = ninth_power(term)
                total += weights[row] * np.log(1.0 + law.share * whole / len(law.scales) / law.rest)
        out[item] = total


@jit
def _weight_kernel(squared: Any, weights: Any, law: Any, out: Any) -> None:
    """Write weights times the posterior of a match times the mean of 1 / s^2 given its residual."""
    wide = law.scales[0]
    for item in range(len(squared)):
        for row in range(squared.shape[1]):
            out[item, row] = 0.0
            if squared[item, row] < 9.0 * wide * wide and weights[item, row] > 0.0:
                term, whole, precise = np.exp(-0.5 * squared[item, row] / (wide * wide)), 0.0, 0.0
                for scale in law.scales:
                    density = law.share / len(law.scales) * term / (_ROOT * scale)
                    whole += density
                    precise += density / (scale * scale)
                    term = ninth_power(term)
                out[item, row] = weights[item, row] * precise / (whole + law.rest)
