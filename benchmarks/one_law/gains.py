"""What a candidate gains beside a mixture D, and what structures of a mixture bring and cost.

A candidate gains

    max over w of sum v ln((1 - sum w) D + sum w_s q_s),  less the same with its crowd's scales alone,

so that mismatches that crowd around it do not count for it; less what its own sample gains, the largest terms; less the logarithm of
the number of models tried. Of as many models of mismatches the best one gains about that much: a likelihood ratio has mean 1 where
its null holds, so Markov's inequality bounds the largest of m by ln m.

Surfaces of one motion share it. The first pays for the motion, a sample of seven; the next ones for their planes alone, three along.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from one_law.candidates import SURFACE, Candidates
from one_law.mixture import EM, Mixture, add_structure, mixture_kernel, product
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit

#: Matches that fix a plane, a motion, a surface; and a motion or a surface whose matrix is known already.
_SAMPLES, _SHARED_SAMPLES = np.array([4, 7, 7]), np.array([4, 1, 3])
_MOST = 0.999  # share of all structures in a mixture


class Costs(NamedTuple):
    """Logarithms of the number of models tried, and of that for a surface of a known motion, in nats."""

    model: float
    surface: float


def prices(candidates: Candidates, items: Rows, others: list[int], costs: Costs) -> tuple[Rows, Array]:
    """Return the sample sizes and costs of some candidates beside others."""
    motions, kinds = candidates.motions[items], candidates.kinds[items]
    shared = np.isin(motions, candidates.motions[others]) & (motions >= 0)
    samples = np.where(shared, _SHARED_SAMPLES[kinds], _SAMPLES[kinds])
    return samples, np.where(shared, costs.surface, costs.model)


def em_of(density: Array, weights: Array, n_steps: int, parameters: Parameters) -> EM:
    """Return what EM is told."""
    return EM(density, weights, float(weights.sum()), parameters.prior_matches, n_steps)


def first_bounds(candidates: Candidates, items: Rows, weights: Array, costs: Costs, parameters: Parameters) -> Array:
    """Return bounds of gains less costs of some candidates, none being chosen yet."""
    samples, own_costs = prices(candidates, items, [], costs)
    gains, em = np.empty(len(items)), em_of(np.ones(len(weights)), weights, parameters.n_bound_steps, parameters)
    _gain_kernel(candidates.ratios, items, samples, em, parameters.n_crowd_steps, gains)
    return gains - own_costs + parameters.bound_slack


def best_candidate(
    candidates: Candidates, net: Array, mixture: Mixture | None, weights: Array, costs: Costs, parameters: Parameters
) -> int:
    """Return the candidate of most gain, -1 if none pays.

    `net` (m,) are bounds of gains less costs. Those looked at become exact.
    """
    density = np.ones(len(weights)) if mixture is None else mixture.density
    chosen = [] if mixture is None else mixture.chosen
    samples, own_costs = prices(candidates, np.arange(len(net)), chosen, costs)
    em = em_of(density, weights, parameters.n_gain_steps, parameters)
    return int(_best_kernel(candidates.ratios, (samples, own_costs), em, parameters.n_crowd_steps, net))


def worth_of(
    candidates: Candidates, mixture: Mixture, places: list[int], weights: Array, costs: Costs, parameters: Parameters
) -> float:
    """Return what some structures of a mixture, by their places, bring beside the others, less what they cost."""
    chosen, gone = np.array(mixture.chosen, np.int64), _mask(len(mixture.chosen), places)
    em = em_of(np.empty(len(weights)), weights, parameters.n_loss_steps, parameters)
    without = _loss_kernel(candidates.ratios, chosen, gone, em, mixture.shares, mixture.rest)
    return float(mixture.log_likelihood - without - price_of(candidates, mixture, places, weights, costs))


def price_of(candidates: Candidates, mixture: Mixture, places: list[int], weights: Array, costs: Costs) -> float:
    """Return what some structures cost: the logarithms of the models tried, and their samples' own gains."""
    chosen, gone = np.array(mixture.chosen, np.int64), _mask(len(mixture.chosen), places)
    others, price = [item for item, own in zip(mixture.chosen, gone, strict=True) if not own], 0.0
    kinds, sizes = candidates.kinds[mixture.chosen], mixture.shares.sum(axis=1)
    ordered = sorted(places, key=lambda at: (kinds[at] != SURFACE, -sizes[at]))
    em = EM(mixture.density, weights, 0.0, 0.0, 0)
    for rank, at in enumerate(ordered):
        item = mixture.chosen[at]
        sample, cost = prices(candidates, np.array([item]), others, costs)
        held = gone if rank == 0 else _mask(len(chosen), [at])
        own = _own_kernel(candidates.ratios, chosen, held, em, mixture.shares, int(sample[0]))
        price += float(cost[0]) + own
        others.append(item)
    return price


def _mask(n: int, places: list[int]) -> Mask:
    mask = np.zeros(n, bool)
    mask[places] = True
    return mask


@jit
def _best_kernel(ratios: Any, price: Any, em: Any, n_crowd_steps: int, net: Any) -> int:
    """Gains only fall, so the candidate of the largest bound is looked at anew, until it is one that was."""
    samples, costs = price
    fresh = np.zeros(len(net), np.bool_)
    while True:
        best = 0
        for item in range(1, len(net)):
            if net[item] > net[best]:
                best = item
        if not net[best] > 0.0:
            return -1
        if fresh[best]:
            return best
        fresh[best] = True
        net[best] = _gain(ratios, best, samples[best], em, n_crowd_steps) - costs[best]


@jit
def _gain_kernel(ratios: Any, items: Any, samples: Any, em: Any, n_crowd_steps: int, gains: Any) -> None:
    for index in range(len(items)):
        gains[index] = _gain(ratios, items[index], samples[index], em, n_crowd_steps)


@jit
def _gain(ratios: Any, k: int, sample: int, em: Any, n_crowd_steps: int) -> Any:
    """Return what a candidate gains beside a mixture: with all its scales, less with its crowd's, less its sample's own."""
    n_scales, n_crowd, rows = ratios.n_scales[k], ratios.n_crowd[k], ratios.rows[ratios.first[k] : ratios.first[k + 1]]
    n = len(rows)
    q = ratios.values[ratios.first_value[k] : ratios.first_value[k + 1]].reshape((n_scales, n))
    shares, crowd_shares = np.empty(n_scales), np.full(n_crowd, 0.05 / n_crowd)
    for s in range(n_scales):
        shares[s] = 0.05 / n_crowd if s < n_crowd else 0.2 / (n_scales - n_crowd)
    density, own, whole, around = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        density[i], own[i] = em.density[rows[i]], em.weights[rows[i]]
    near = EM(density, own, em.total, em.prior, em.n_steps)
    rest = _fit_shares(q, near, shares, whole)
    crowd = EM(density, own, em.total, em.prior, min(em.n_steps, n_crowd_steps))
    rest_of_crowd = _fit_shares(q, crowd, crowd_shares, around)
    top, gain, far = np.zeros(sample), 0.0, em.total
    for i in range(n):
        far -= own[i]
        if own[i] > 0.0:
            term = own[i] * np.log(whole[i] / around[i])
            gain += term
            _keep_largest(term, top)
    return gain + far * np.log(rest / rest_of_crowd) - top.sum()


@jit
def _keep_largest(term: float, top: Any) -> None:
    """Put a term among the largest ones, least first, if it is one."""
    if term > top[0]:
        i = 1
        while i < len(top) and top[i] < term:
            top[i - 1] = top[i]
            i += 1
        top[i - 1] = term


@jit
def _fit_shares(q: Any, em: Any, shares: Any, whole: Any) -> float:
    """Run EM for the shares of a candidate's first scales beside a mixture; writes the new mixture, returns the old one's share."""
    n, rest = len(em.density), 1.0
    for step in range(em.n_steps + 1):
        rest = 1.0
        for s in range(len(shares)):
            rest -= shares[s]
        for i in range(n):
            whole[i] = rest * em.density[i]
        for s in range(len(shares)):
            share, own = shares[s], q[s]
            for i in range(n):
                whole[i] += share * own[i]
        if step == em.n_steps:
            break
        for i in range(n):
            whole[i] = em.weights[i] / whole[i]
        held = 0.0
        for s in range(len(shares)):
            shares[s] = (shares[s] * product(whole, q[s]) + em.prior) / (em.total + em.prior * (len(shares) + 1))
            held += shares[s]
        if held > _MOST:
            for s in range(len(shares)):
                shares[s] *= _MOST / held
    return rest


@jit
def _loss_kernel(ratios: Any, chosen: Any, gone: Any, em: Any, shares: Any, rest: float) -> Any:
    """Return the log-likelihood without the true matches of some structures."""
    left = shares.copy()
    for at in range(len(chosen)):
        if gone[at]:
            left[at, ratios.n_crowd[chosen[at]] :] = 0.0
    norm = left.sum() + rest
    left /= norm
    return mixture_kernel(ratios, chosen, em, left, rest / norm)[1]


@jit
def _own_kernel(ratios: Any, chosen: Any, held: Any, em: Any, shares: Any, sample: int) -> Any:
    """Return the sum of the largest terms of what structures gain together beside the others."""
    own, mixed, top = np.zeros(len(em.density)), np.empty(len(em.density)), np.zeros(sample)
    for at in range(len(chosen)):
        if held[at]:
            add_structure(ratios, chosen[at], shares[at], ratios.n_crowd[chosen[at]], mixed, own)
    for row in range(len(own)):
        if own[row] > 0.0:
            without = max(em.density[row] - own[row], 1e-12 * em.density[row])
            _keep_largest(em.weights[row] * np.log(em.density[row] / without), top)
    return top.sum()
