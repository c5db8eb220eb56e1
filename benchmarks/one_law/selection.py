"""Which candidates are structures: forward by gain, shares by EM, backward: what no longer brings its cost is dropped."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from one_law.candidates import MOTION, Candidates
from one_law.gains import Costs, best_candidate, first_bounds, worth_of
from one_law.mixture import Mixture, groups_of, mix, responsibilities
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.repetition import Neighbours, interleaved


class Setting(NamedTuple):
    """Matches to explain, what models cost, and the numbers."""

    matches: MatchSet
    costs: Costs
    parameters: Parameters


def select(
    candidates: Candidates, setting: Setting, *, known: Array | None = None, backward: bool = True
) -> tuple[Mixture | None, Array]:
    """Return the mixture of the structures found, and bounds of the gains less costs that each candidate had at first.

    Those of the first candidates may be `known` from before.
    """
    matches, costs, parameters = setting
    known = np.zeros(0) if known is None else known
    unknown = np.arange(len(known), len(candidates))
    at_first = np.concatenate([known, first_bounds(candidates, unknown, matches.weights, costs, parameters)])
    mixture: Mixture | None = None
    net, banned, weights = at_first.copy(), set[int](), matches.weights
    while mixture is None or len(mixture.chosen) < parameters.max_structures:
        chosen = [] if mixture is None else mixture.chosen
        net[[*banned, *chosen]] = -np.inf
        best = best_candidate(candidates, net, mixture, weights, costs, parameters)
        if best < 0:
            break
        before, mixture = mixture, mix(candidates, [*chosen, best], weights, parameters, mixture)
        if before is not None and is_repetition(candidates, mixture, setting):
            mixture = before
            banned.add(best)
            continue
        net[_of_motions(candidates, [best])] = np.inf  # what shares its motion is cheaper now
        if backward:
            kept = without_idle(candidates, mixture, weights, setting)
            dropped = set(mixture.chosen) - set(kept.chosen)
            mixture = kept
            if dropped:  # what was explained may be free again, and bounds no longer hold
                banned |= dropped
                net = np.where(_of_motions(candidates, mixture.chosen), np.inf, at_first)
        weights = without_rivals(candidates, mixture, matches)
    return mixture, at_first


def _of_motions(candidates: Candidates, items: list[int]) -> Mask:
    """Tell which candidates share a motion with some of them."""
    return np.asarray(np.isin(candidates.motions, candidates.motions[items]) & (candidates.motions >= 0))


def without_idle(candidates: Candidates, mixture: Mixture, weights: Array, setting: Setting) -> Mixture:
    """Return the mixture without structures, or motions with all their surfaces, that no longer bring their cost."""
    while len(mixture.chosen) > 1:
        groups = [group for group in groups_of(candidates, mixture.chosen) if 1 < len(group) < len(mixture.chosen)]
        asked = [[at] for at in range(len(mixture.chosen))] + groups
        told = weights, setting.costs, setting.parameters
        worth = [worth_of(candidates, mixture, places, *told) for places in asked]
        worst = int(np.argmin(worth))
        if worth[worst] >= 0.0:
            break
        kept = [item for at, item in enumerate(mixture.chosen) if at not in asked[worst]]
        mixture = mix(candidates, kept, weights, setting.parameters, mixture)
    return mixture


def share_motion(
    candidates: Candidates, mixture: Mixture, weights: Array, parameters: Parameters, first: int
) -> Mixture:
    """Return the mixture with planes, and surfaces of other motions, made surfaces of a motion where the likelihood is for it.

    Three numbers fix a plane of a known motion in place of eight, so that no more is asked for. Candidates from `first` on are tried.
    """
    for item in range(first, len(candidates)):
        number, plane = candidates.motions[item], candidates.planes[item]
        chosen = mixture.chosen
        others = [each for each in chosen if candidates.planes[each] == plane and candidates.kinds[each] != MOTION]
        if not others or item in chosen or not (candidates.motions[chosen] == number).any():
            continue
        swapped = list(dict.fromkeys(item if each in others else each for each in chosen))
        tried = mix(candidates, swapped, weights, parameters)
        if tried.log_likelihood > mixture.log_likelihood:
            mixture = tried
    return mixture


def is_repetition(candidates: Candidates, mixture: Mixture, setting: Setting) -> bool:
    """Tell whether the last structure is a repeated texture: one with a motion of its own that lies among the others' matches.

    A surface hides what is behind it. A repetition competes for keypoints with what it repeats, or is small.
    """
    matches, p, last = setting.matches, setting.parameters, mixture.chosen[-1]
    if _of_motions(candidates, mixture.chosen[:-1])[last]:
        return False
    held = responsibilities(candidates, mixture)
    kept = held.sum(axis=0) > 0.5
    own = kept & (held.argmax(axis=0) == len(held) - 1)
    others = kept & ~own
    if own.sum() < 2 or own.sum() > others.sum():
        return False
    competes = any(np.isin(numbers[own], numbers[others]).any() for numbers in matches.keypoints)
    if not (competes or own.sum() < p.small_share * others.sum()):
        return False
    return interleaved(matches.data, own, others, Neighbours(p.n_neighbours, p.interleaved_share, matches.unit))


def without_rivals(candidates: Candidates, mixture: Mixture, matches: MatchSet) -> Array:
    """Return the weights (n,) of matches that may be true beside a mixture: a keypoint has one partner.

    A match whose keypoint has a partner in an earlier structure has none, nor has one that lies in no structure.
    """
    held = responsibilities(candidates, mixture)
    order = np.where(held.sum(axis=0) > 0.5, held.argmax(axis=0), len(held))
    free = np.ones(len(matches), bool)
    for numbers in matches.keypoints:
        first = np.full(numbers.max() + 1, len(held))
        np.minimum.at(first, numbers, order)
        free &= order <= first[numbers]
    return np.where(free, matches.weights, 0.0)
