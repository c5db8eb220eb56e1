"""Which candidates are structures: forward by gain, weights by EM, backward.

The mixture of a match's density over that of mismatches is D = w_0 + sum of w_ks q_ks over structures k and scales s. A candidate gains

    max over w of sum v ln((1 - sum w) D + sum w_s q_s),  less the same with its broad scales alone,

so that mismatches that crowd around it are not counted for it, less what its own sample gains, the largest terms, less the logarithm of
the number of models tried: of as many models of mismatches the best one gains that much (a likelihood ratio has mean 1 where its null
holds, so Markov's inequality bounds the largest of m by ln m, but for the logarithm of one over the probability).

Surfaces of one motion share it. The first pays for the motion, a sample of seven; the next ones for their planes alone, three along.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

MIXED, SMALL = 0.55, 0.25

from .densities import MOTION, SURFACE, Array, Candidates
from .parameters import Parameters

#: Matches that fix a plane, a motion, a surface; and a motion or a surface whose matrix is there already.
_SAMPLES, _SHARED_SAMPLES = np.array([4, 7, 7]), np.array([4, 1, 3])
#: What few steps of EM may fall short of a gain, nats.
_SLACK = 5.0


@dataclass(frozen=True)
class Mixture:
    """Weights (k, n_scales) of chosen candidates, the rest's, the mixture D (n,), and the log-likelihood."""

    chosen: list[int]
    weights: Array
    rest: float
    density: Array
    log_likelihood: float


def prices(candidates: Candidates, items: Any, others: list[int], log_tried: tuple[float, float]) -> tuple[Any, Array]:
    """Return the sample sizes and costs of some candidates beside others; `log_tried` is for a model, and for one of a motion known."""
    motions, kinds = candidates.motions[items], candidates.kinds[items]
    shared = np.isin(motions, candidates.motions[others]) & (motions >= 0) if others else np.zeros(len(motions), bool)
    samples = np.where(shared, _SHARED_SAMPLES[kinds], _SAMPLES[kinds])
    return samples, np.where(shared, log_tried[1], log_tried[0])


def gains_of(candidates: Candidates, items: Any, samples: Any, density: Array, votes: Array, parameters: Parameters, n_steps: int) -> Array:
    """Return the log-likelihood gains of some candidates beside a mixture, less their samples' own."""
    gains = np.empty(len(items))
    _gain_kernel(
        *_flat(candidates), np.asarray(items, np.int64), samples, density, votes, votes.sum(), n_steps,
        parameters.weight_prior, gains,
    )
    return gains


def mix(candidates: Candidates, chosen: list[int], votes: Array, parameters: Parameters, start: Mixture | None = None) -> Mixture:
    """Return the mixture of chosen candidates, by EM."""
    weights = np.zeros((len(chosen), int(candidates.n_scales.max())))
    rest, known = 0.3, {} if start is None else dict(zip(start.chosen, start.weights))
    for at, item in enumerate(chosen):
        n_scales = candidates.n_scales[item]
        weights[at, :n_scales] = 0.7 / len(chosen) / n_scales if start is None else 0.1 / n_scales
        if item in known:
            weights[at, :n_scales] = known[item][:n_scales] + 1e-4
    if start is not None:
        rest = max(start.rest, 0.02)
        total = rest + weights.sum()
        rest, weights = rest / total, weights / total
    steps = parameters.n_mixture_steps
    density = np.empty(len(votes))
    rest, likelihood = _mixture_kernel(
        *_flat(candidates), np.array(chosen, np.int64), votes, votes.sum(), weights, rest, steps, parameters.weight_prior, density
    )
    return Mixture(list(chosen), weights, rest, density, likelihood)


def select(
    candidates: Candidates, all_votes: Array, matches: Any, log_tried: tuple[float, float], parameters: Parameters, *, backward: bool = True,
    known: Array | None = None,
) -> tuple[Mixture | None, Array]:
    """Return the mixture of the structures found, and bounds of the gains less costs that each candidate had at first.

    Those of the first candidates may be `known` from before.
    """
    known = np.zeros(0) if known is None else known
    unknown = np.arange(len(known), len(candidates))
    mixture, banned = None, set()
    samples, costs = prices(candidates, unknown, [], log_tried)
    votes = all_votes
    bounds = gains_of(candidates, unknown, samples, np.ones(len(votes)), votes, parameters, 2) - costs + _SLACK
    net = np.concatenate([known, bounds])
    at_first = net.copy()
    while mixture is None or len(mixture.chosen) < parameters.max_structures:
        chosen = [] if mixture is None else mixture.chosen
        best = _best(candidates, net, chosen, banned, mixture, votes, log_tried, parameters)
        if best < 0:
            break
        before, mixture = mixture, mix(candidates, [*chosen, best], votes, parameters, mixture)
        if before is not None and is_repetition(candidates, mixture, matches, parameters):
            mixture = before
            banned.add(best)
            continue
        known = candidates.motions[best] >= 0
        if known:  # what shares its motion is cheaper now
            net[candidates.motions == candidates.motions[best]] = np.inf
        if backward:
            n_before = len(mixture.chosen)
            mixture = _without_idle(candidates, mixture, banned, votes, log_tried, parameters)
            if len(mixture.chosen) < n_before:  # what was explained may be free again
                net = np.where(np.isin(candidates.motions, candidates.motions[mixture.chosen]) & (candidates.motions >= 0), np.inf, at_first)
        votes = without_rivals(candidates, mixture, all_votes, matches.keypoints)
    return mixture, at_first


def share_motions(
    candidates: Candidates, mixture: Mixture, votes: Array, parameters: Parameters, first: int
) -> tuple[Mixture, float]:
    """Return the mixture with planes, and surfaces of other motions, made surfaces of a motion where the likelihood is for it, and its value.

    Three numbers fix a plane of a known motion in place of eight, so that no more is asked for. Candidates from `first` on are tried.
    """
    for item in range(first, len(candidates)):
        number, plane = candidates.motions[item], candidates.planes[item]
        others = [each for each in mixture.chosen if candidates.planes[each] == plane and candidates.kinds[each] != MOTION]
        if not others or item in mixture.chosen or not (candidates.motions[mixture.chosen] == number).any():
            continue
        tried = mix(candidates, list(dict.fromkeys(item if each in others else each for each in mixture.chosen)), votes, parameters)
        if tried.log_likelihood > mixture.log_likelihood:
            mixture = tried
    return mixture, mixture.log_likelihood


def is_repetition(candidates: Candidates, mixture: Mixture, matches: Any, parameters: Parameters) -> bool:
    """Tell whether the last structure is a repeated texture: one with a motion of its own that lies among the others' matches.

    A surface hides what is behind it. A repetition competes for keypoints with what it repeats, or is small.
    """
    last = mixture.chosen[-1]
    if candidates.motions[last] >= 0 and candidates.motions[last] in candidates.motions[mixture.chosen[:-1]]:
        return False
    held = responsibilities(candidates, mixture, len(matches.data))
    kept = held.sum(axis=0) > 0.5
    own = kept & (held.argmax(axis=0) == len(held) - 1)
    others = kept & ~own
    if own.sum() < 2 or own.sum() > others.sum():
        return False
    competes = any(np.isin(numbers[own], numbers[others]).any() for numbers in matches.keypoints)
    if not (competes or own.sum() < SMALL * others.sum()):
        return False
    around, sides = np.flatnonzero(own | others), (matches.data[:, :2], matches.data[:, 2:])
    least = MIXED * others.sum() / len(around)
    return any(_foreign_share(points, np.flatnonzero(own), around, own, matches.unit) > least for points in sides)


@njit(cache=True, nogil=True)
def _foreign_share(points: Any, rows: Any, around: Any, own: Any, same: float) -> float:
    """Return the share of others among the three nearest neighbours, of those `around`, of each of some rows; not those at the same place."""
    foreign = counted = 0
    for row in rows:
        nearest, which = np.full(3, np.inf), np.full(3, -1)
        for other in around:
            dx, dy = points[other, 0] - points[row, 0], points[other, 1] - points[row, 1]
            apart = dx * dx + dy * dy
            if same * same < apart < nearest[2]:
                at = 2
                while at > 0 and nearest[at - 1] > apart:
                    nearest[at], which[at] = nearest[at - 1], which[at - 1]
                    at -= 1
                nearest[at], which[at] = apart, other
        for other in which:
            if other >= 0:
                counted += 1
                foreign += not own[other]
    return foreign / max(counted, 1)


def without_rivals(candidates: Candidates, mixture: Mixture, votes: Array, keypoints: Any) -> Array:
    """Return the votes (n,) of matches that may be true beside a mixture: a keypoint has one partner.

    A match whose keypoint has a partner in an earlier structure has none, nor has one that lies in no structure.
    """
    held = responsibilities(candidates, mixture, len(votes))
    order = np.where(held.sum(axis=0) > 0.5, held.argmax(axis=0), len(held))
    free = np.ones(len(votes), bool)
    for numbers in keypoints:
        first = np.full(numbers.max() + 1, len(held))
        np.minimum.at(first, numbers, order)
        free &= order <= first[numbers]
    return np.where(free, votes, 0.0)


def _best(candidates, net, chosen, banned, mixture, votes, log_tried, parameters) -> int:
    """Return the candidate of most gain, -1 if none pays; `net` (m,) are bounds of gains less costs, and those looked at become exact."""
    density = np.ones(len(votes)) if mixture is None else mixture.density
    net[list(banned | set(chosen))] = -np.inf
    samples, costs = prices(candidates, np.arange(len(net)), chosen, log_tried)
    return int(
        _best_kernel(
            *_flat(candidates), samples, costs, density, votes, votes.sum(), parameters.n_gain_steps, parameters.weight_prior, net
        )
    )


def groups_of(candidates: Candidates, chosen: list[int]) -> list[list[int]]:
    """Return which of the chosen share a motion, by their places; planes are alone."""
    groups: dict[Any, list[int]] = {}
    for at, item in enumerate(chosen):
        groups.setdefault(("plane", item) if candidates.motions[item] < 0 else int(candidates.motions[item]), []).append(at)
    return list(groups.values())


def _without_idle(candidates, mixture, banned, votes, log_tried, parameters) -> Mixture:
    """Return the mixture without structures, or motions with all their surfaces, that no longer bring their cost."""
    while len(mixture.chosen) > 1:
        groups = groups_of(candidates, mixture.chosen)
        asked = [[at] for at in range(len(mixture.chosen))] + [group for group in groups if 1 < len(group) < len(mixture.chosen)]
        worth = [worth_of(candidates, mixture, places, votes, log_tried, parameters) for places in asked]
        worst = int(np.argmin(worth))
        if worth[worst] >= 0.0:
            break
        gone = {mixture.chosen[at] for at in asked[worst]}
        banned |= gone
        mixture = mix(candidates, [item for item in mixture.chosen if item not in gone], votes, parameters, mixture)
    return mixture


def worth_of(candidates, mixture, places, votes, log_tried, parameters) -> float:
    """Return what some structures bring beside the others, less what they cost."""
    flat, chosen = _flat(candidates), np.array(mixture.chosen, np.int64)
    gone = np.zeros(len(chosen), bool)
    gone[places] = True
    loss = _loss_kernel(*flat, chosen, gone, votes, votes.sum(), mixture.weights, mixture.rest, parameters.weight_prior)
    loss = mixture.log_likelihood - loss
    return float(loss - price_of(candidates, mixture, places, votes, log_tried))


def price_of(candidates, mixture, places, votes, log_tried) -> float:
    """Return what some structures cost: the logarithms of the models tried, and their samples' own gains."""
    flat, chosen = _flat(candidates), np.array(mixture.chosen, np.int64)
    gone = np.zeros(len(chosen), bool)
    gone[places] = True
    others = [item for at, item in enumerate(mixture.chosen) if not gone[at]]
    ordered = sorted(places, key=lambda at: (candidates.kinds[mixture.chosen[at]] != SURFACE, -mixture.weights[at].sum()))
    price = 0.0
    for rank, at in enumerate(ordered):
        item = mixture.chosen[at]
        sample, cost = prices(candidates, np.array([item]), others, log_tried)
        held = gone if rank == 0 else np.arange(len(chosen)) == at
        price += cost[0] + _own_kernel(*flat, chosen, held, votes, mixture.weights, mixture.density, int(sample[0]))
        others.append(item)
    return float(price)


def responsibilities(candidates: Candidates, mixture: Mixture, n: int, *, broad: bool = False) -> Array:
    """Return the probability (k, n) that a match lies in each structure, or (`broad`) near it."""
    out = np.zeros((len(mixture.chosen), n))
    _posterior_kernel(*_flat(candidates), np.array(mixture.chosen, np.int64), mixture.weights, mixture.density, broad, out)
    return out


def _flat(candidates: Candidates) -> tuple[Any, ...]:
    return candidates.n_scales, candidates.n_broad, candidates.first, candidates.first_ratio, candidates.rows, candidates.ratios


#: Sums in any order, so that vectors add them up; NaN and infinity stay what they are.
_VECTORS = {"reassoc", "contract"}


@njit(cache=True, nogil=True, fastmath=_VECTORS)
def _fit_one(q: Any, used: int, density: Any, votes: Any, total: float, prior: float, steps: int, w: Any, whole: Any) -> float:
    """EM for the weights of the first `used` scales beside a mixture; writes the new mixture and returns what is left for the old one."""
    n, rest = len(density), 1.0
    for step in range(steps + 1):
        rest = 1.0
        for s in range(used):
            rest -= w[s]
        for at in range(n):
            whole[at] = rest * density[at]
        for s in range(used):
            weight, own = w[s], q[s]
            for at in range(n):
                whole[at] += weight * own[at]
        if step == steps:
            break
        for at in range(n):
            whole[at] = votes[at] / whole[at]
        held = 0.0
        for s in range(used):
            total_s, own = 0.0, q[s]
            for at in range(n):
                total_s += whole[at] * own[at]
            w[s] = (w[s] * total_s + prior) / (total + prior * (used + 1))
            held += w[s]
        if held > 0.999:
            for s in range(used):
                w[s] *= 0.999 / held
    return rest


@njit(cache=True, nogil=True)
def _best_kernel(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, samples: Any, costs: Any, density: Any, votes: Any,
    total: float, steps: int, prior: float, net: Any,
) -> int:
    """Gains only fall, so the candidate of the largest bound is looked at anew, until it is one that was."""
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
        gain = _gain(
            n_scales[best], n_broad[best], all_rows[first[best] : first[best + 1]], ratios[first_ratio[best] : first_ratio[best + 1]], samples[best],
            density, votes, total, steps, prior,
        )
        net[best] = gain - costs[best]


@njit(cache=True, nogil=True)
def _gain_kernel(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, items: Any, samples: Any, density: Any, votes: Any,
    total: float, steps: int, prior: float, gains: Any,
) -> None:
    for index in range(len(items)):
        k = items[index]
        gains[index] = _gain(
            n_scales[k], n_broad[k], all_rows[first[k] : first[k + 1]], ratios[first_ratio[k] : first_ratio[k + 1]], samples[index], density, votes,
            total, steps, prior,
        )


@njit(cache=True, nogil=True, fastmath=_VECTORS)
def _gain(S: int, nb: int, rows: Any, flat: Any, sample: int, density: Any, votes: Any, total: float, steps: int, prior: float) -> float:
    """Return what a candidate gains beside a mixture: with all its scales, less with its broad ones, less its sample's own."""
    n = len(rows)
    q = flat.reshape((S, n))
    w, wb = np.empty(S), np.empty(S)
    for s in range(S):
        w[s] = 0.05 / nb if s < nb else 0.2 / (S - nb)
        wb[s] = 0.05 / nb
    near, own, whole, around = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for at in range(n):
        near[at], own[at] = density[rows[at]], votes[rows[at]]
    rest = _fit_one(q, S, near, own, total, prior, steps, w, whole)
    rest_broad = _fit_one(q, nb, near, own, total, prior, min(steps, 3), wb, around)
    top = np.zeros(sample)
    gain, far = 0.0, total
    for at in range(n):
        far -= own[at]
        if own[at] == 0.0:
            continue
        term = own[at] * np.log(whole[at] / around[at])
        gain += term
        if term > top[0]:  # the least of the largest
            i = 1
            while i < sample and top[i] < term:
                top[i - 1] = top[i]
                i += 1
            top[i - 1] = term
    return gain + far * np.log(rest / rest_broad) - top.sum()


@njit(cache=True, nogil=True, fastmath=_VECTORS)
def _mixture_kernel(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, chosen: Any, votes: Any, total: float, weights: Any,
    rest: float, steps: int, prior: float, density: Any,
) -> tuple[float, float]:
    """EM; writes D (n,) and the weights, and returns the rest's weight and the log-likelihood."""
    share, mixed = np.empty(len(votes)), np.empty(len(votes))
    for step in range(steps + 1):
        density[:] = rest
        for at in range(len(chosen)):
            k = chosen[at]
            rows = all_rows[first[k] : first[k + 1]]
            n = len(rows)
            q = ratios[first_ratio[k] : first_ratio[k + 1]].reshape((n_scales[k], n))
            mixed[:n] = 0.0
            for s in range(n_scales[k]):
                weight = weights[at, s]
                if weight > 0.0:
                    for i in range(n):
                        mixed[i] += weight * q[s, i]
            for i in range(n):
                density[rows[i]] += mixed[i]
        if step == steps:
            break
        left = 0.0
        for row in range(len(votes)):
            share[row] = votes[row] / density[row]
            left += share[row]
        rest = rest * left + 1.0
        norm = rest
        for at in range(len(chosen)):
            k = chosen[at]
            rows = all_rows[first[k] : first[k + 1]]
            n = len(rows)
            q = ratios[first_ratio[k] : first_ratio[k + 1]].reshape((n_scales[k], n))
            for i in range(n):
                mixed[i] = share[rows[i]]
            for s in range(n_scales[k]):
                if weights[at, s] > 0.0:
                    held = 0.0
                    for i in range(n):
                        held += mixed[i] * q[s, i]
                    weights[at, s] = weights[at, s] * held + prior
                    norm += weights[at, s]
        rest /= norm
        for at in range(len(chosen)):
            for s in range(weights.shape[1]):
                weights[at, s] /= norm
    likelihood = 0.0
    for row in range(len(votes)):
        if votes[row] > 0.0:
            likelihood += votes[row] * np.log(density[row])
    return rest, likelihood


@njit(cache=True, nogil=True)
def _loss_kernel(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, chosen: Any, gone: Any, votes: Any, total: float,
    weights: Any, rest: float, prior: float,
) -> float:
    """Return the log-likelihood without the narrow scales of some structures."""
    left = weights.copy()
    for at in range(len(chosen)):
        if gone[at]:
            for s in range(n_broad[chosen[at]], left.shape[1]):
                left[at, s] = 0.0
    norm = left.sum() + rest
    left /= norm
    density = np.empty(len(votes))
    return _mixture_kernel(
        n_scales, n_broad, first, first_ratio, all_rows, ratios, chosen, votes, total, left, rest / norm, 4, prior, density
    )[1]


@njit(cache=True, nogil=True)
def _own_kernel(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, chosen: Any, held: Any, votes: Any, weights: Any,
    density: Any, sample: int,
) -> float:
    """Return the largest terms of what structures gain together beside the others."""
    own = np.zeros(len(votes))
    for at in range(len(chosen)):
        if held[at]:
            _add_narrow(n_scales, n_broad, first, first_ratio, all_rows, ratios, chosen[at], weights[at], False, own)
    top = np.zeros(sample)
    for row in range(len(votes)):
        if own[row] > 0.0:
            term = votes[row] * np.log(density[row] / max(density[row] - own[row], 1e-12 * density[row]))
            if term > top[0]:
                i = 1
                while i < sample and top[i] < term:
                    top[i - 1] = top[i]
                    i += 1
                top[i - 1] = term
    return top.sum()


@njit(cache=True, nogil=True)
def _add_narrow(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, k: int, weights: Any, broad: bool, out: Any
) -> None:
    """Add weights times ratios of one candidate, of its narrow scales or of all."""
    n = first[k + 1] - first[k]
    for s in range(0 if broad else n_broad[k], n_scales[k]):
        if weights[s] > 0.0:
            for i in range(n):
                out[all_rows[first[k] + i]] += weights[s] * ratios[first_ratio[k] + s * n + i]


@njit(cache=True, nogil=True)
def _posterior_kernel(
    n_scales: Any, n_broad: Any, first: Any, first_ratio: Any, all_rows: Any, ratios: Any, chosen: Any, weights: Any, density: Any, broad: bool, out: Any
) -> None:
    for at in range(len(chosen)):
        _add_narrow(n_scales, n_broad, first, first_ratio, all_rows, ratios, chosen[at], weights[at], broad, out[at])
        out[at] /= density
