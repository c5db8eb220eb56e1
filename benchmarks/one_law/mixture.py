"""The mixture of chosen structures and mismatches: D = w_0 + sum of w_ks q_ks over structures k and scales s, by EM.

D (n,) is each match's density over that of mismatches; q are the candidates' ratios, w the mixture's shares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from one_law.candidates import Candidates
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array
from ruzhash_cv._kernels import jit


@dataclass(frozen=True)
class Mixture:
    """Chosen candidates, their shares (k, n_scales), the mismatches' share, D (n,), and the log-likelihood."""

    chosen: list[int]
    shares: Array
    rest: float
    density: Array
    log_likelihood: float


class EM(NamedTuple):
    """What EM is told: D (n,), the weights (n,) of matches and their sum, the pseudo-count of each share, and steps."""

    density: Array
    weights: Array
    total: float
    prior: float
    n_steps: int


def mix(
    candidates: Candidates, chosen: list[int], weights: Array, parameters: Parameters, start: Mixture | None = None
) -> Mixture:
    """Return the mixture of chosen candidates for matches by weight (n,); EM starts from a mixture of some of them, or evenly."""
    shares = np.zeros((len(chosen), int(candidates.ratios.n_scales.max())))
    known = {} if start is None else dict(zip(start.chosen, start.shares, strict=True))
    rest = 0.3
    for at, item in enumerate(chosen):
        n_scales = candidates.ratios.n_scales[item]
        shares[at, :n_scales] = 0.7 / len(chosen) / n_scales if start is None else 0.1 / n_scales
        if item in known:
            shares[at, :n_scales] = known[item][:n_scales] + 1e-4
    if start is not None:
        rest = max(start.rest, 0.02)
        total = rest + shares.sum()
        rest, shares = rest / total, shares / total
    em = EM(np.empty(len(weights)), weights, weights.sum(), parameters.prior_matches, parameters.n_mixture_steps)
    rest, likelihood = mixture_kernel(candidates.ratios, np.array(chosen, np.int64), em, shares, rest)
    return Mixture(list(chosen), shares, rest, em.density, likelihood)


def responsibilities(candidates: Candidates, mixture: Mixture, *, crowds: bool = False) -> Array:
    """Return the probability (k, n) that a match lies in each structure, or with `crowds` in it or around it."""
    out = np.zeros((len(mixture.chosen), len(mixture.density)))
    chosen = np.array(mixture.chosen, np.int64)
    _posterior_kernel(candidates.ratios, chosen, mixture.shares, mixture.density, crowds, out)
    return out


def groups_of(candidates: Candidates, chosen: list[int]) -> list[list[int]]:
    """Return which of the chosen share a motion, by their places; planes are alone."""
    groups: dict[Any, list[int]] = {}
    for at, item in enumerate(chosen):
        key = ("plane", item) if candidates.motions[item] < 0 else int(candidates.motions[item])
        groups.setdefault(key, []).append(at)
    return list(groups.values())


@jit
def mixture_kernel(ratios: Any, chosen: Any, em: Any, shares: Any, rest: float) -> Any:
    """Run EM; writes D (n,) and the shares, and returns the mismatches' share and the log-likelihood."""
    density, weights = em.density, em.weights
    by_density, mixed = np.empty(len(weights)), np.empty(len(weights))
    for step in range(em.n_steps + 1):
        density[:] = rest
        for at in range(len(chosen)):
            add_structure(ratios, chosen[at], shares[at], 0, mixed, density)
        if step == em.n_steps:
            break
        left = 0.0
        for row in range(len(weights)):
            by_density[row] = weights[row] / density[row]
            left += by_density[row]
        rest = rest * left + 1.0
        norm = rest
        for at in range(len(chosen)):
            k = chosen[at]
            n, begin, base = ratios.first[k + 1] - ratios.first[k], ratios.first[k], ratios.first_value[k]
            for i in range(n):
                mixed[i] = by_density[ratios.rows[begin + i]]
            for s in range(ratios.n_scales[k]):
                if shares[at, s] > 0.0:
                    own = ratios.values[base + s * n : base + (s + 1) * n]
                    shares[at, s] = shares[at, s] * product(mixed[:n], own) + em.prior
                    norm += shares[at, s]
        rest /= norm
        for at in range(len(chosen)):
            for s in range(shares.shape[1]):
                shares[at, s] /= norm
    likelihood = 0.0
    for row in range(len(weights)):
        if weights[row] > 0.0:
            likelihood += weights[row] * np.log(density[row])
    return rest, likelihood


@jit
def add_structure(ratios: Any, k: int, shares: Any, first_scale: int, mixed: Any, out: Any) -> None:
    """Add shares times ratios of one candidate, from a scale on; `mixed` is room."""
    n, begin, base = ratios.first[k + 1] - ratios.first[k], ratios.first[k], ratios.first_value[k]
    mixed[:n] = 0.0
    for s in range(first_scale, ratios.n_scales[k]):
        share, own = shares[s], ratios.values[base + s * n : base + (s + 1) * n]
        if share > 0.0:
            for i in range(n):
                mixed[i] += share * own[i]
    for i in range(n):
        out[ratios.rows[begin + i]] += mixed[i]


@jit
def product(one: Any, other: Any) -> float:
    """Return a sum of products in four parts, none of which waits for the others."""
    a = b = c = d = 0.0
    whole = len(one) // 4 * 4
    for i in range(0, whole, 4):
        a += one[i] * other[i]
        b += one[i + 1] * other[i + 1]
        c += one[i + 2] * other[i + 2]
        d += one[i + 3] * other[i + 3]
    for i in range(whole, len(one)):
        a += one[i] * other[i]
    return (a + b) + (c + d)


@jit
def _posterior_kernel(ratios: Any, chosen: Any, shares: Any, density: Any, crowds: bool, out: Any) -> None:
    mixed = np.empty(len(density))
    for at in range(len(chosen)):
        first_scale = 0 if crowds else ratios.n_crowd[chosen[at]]
        add_structure(ratios, chosen[at], shares[at], first_scale, mixed, out[at])
        for row in range(len(density)):
            out[at, row] /= density[row]
