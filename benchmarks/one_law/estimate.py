"""From homographies that were tried to structures: planes, the motions that they propose, and surfaces of these."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from one_law.candidates import MOTION, PLANE, Candidates, Names
from one_law.gains import Costs, worth_of
from one_law.law import HOMOGRAPHY, Law, Surroundings
from one_law.lines import neighbours
from one_law.mixture import Mixture, groups_of, mix, responsibilities
from one_law.parameters import Parameters
from one_law.proposals import propose, refine_motions
from one_law.selection import Setting, select, share_motion, without_rivals
from ruzhash_cv._arrays import Array
from ruzhash_cv.matches import MatchSet


@dataclass(frozen=True)
class Estimate:
    """What was found.

    The candidates and their mixture, None where nothing was found; homographies and fundamental matrices that they are of; the plane
    that relief is seen from, -1 for none; the gain of all structures less their costs, in nats; and the probability (k, n) of each
    match to lie in each structure.
    """

    candidates: Candidates
    mixture: Mixture | None
    planes: Array
    motions: Array
    reference: int
    evidence: float
    probabilities: Array
    parameters: Parameters


def estimate_structures(
    matches: MatchSet, planes: Array, n_tried: int, scores: Array, rng: np.random.Generator, parameters: Parameters
) -> Estimate:
    """Choose structures among homographies (m, 9) that were tried and the motions they propose; `scores` (n,) are the forest's."""
    law = Law.of(matches, parameters)
    costs = Costs(math.log(max(n_tried, 1)), math.log(parameters.n_surface_models))
    setting = Setting(matches, costs, parameters)
    parts, known, shown, held = [], np.zeros(0), list[int](), np.zeros((0, len(matches)))
    if len(planes):
        candidates, planes, mixture, known = _select_planes(law, planes, setting)
        parts = [candidates]
        if mixture is not None:
            shown = mixture.chosen
            held = np.minimum(responsibilities(candidates, mixture, crowds=True), 1.0)
    motions = propose(matches, planes[shown], held, scores, rng, parameters)
    strongest = np.argsort(-known, kind="stable")[: parameters.n_seed_planes].tolist()
    shown = list(dict.fromkeys([*shown, *strongest]))
    near = neighbours(matches, parameters) if len(motions) else None
    around = Surroundings(planes, shown, shown[0] if shown else -1, near)
    for number, model in enumerate(motions):
        parts += law.motion(model, number, around)
    candidates = Candidates.join(parts) if parts else none_found()
    mixture = select(candidates, setting, known=known)[0] if parts else None
    if mixture is None:
        nobody = np.zeros((0, len(matches)))
        return Estimate(candidates, None, planes, motions, around.reference, 0.0, nobody, parameters)
    candidates, mixture, motions = _shared(law, candidates, mixture, motions, around)
    groups = groups_of(candidates, mixture.chosen)
    evidence = sum(worth_of(candidates, mixture, group, matches.weights, costs, parameters) for group in groups)
    found = responsibilities(candidates, mixture)
    return Estimate(candidates, mixture, planes, motions, around.reference, evidence, found, parameters)


def none_found() -> Candidates:
    """Return no candidates."""
    return Candidates.of(Names(PLANE, -1, -1), np.zeros((0, 0), bool), 1, 1)


def _select_planes(law: Law, planes: Array, setting: Setting) -> tuple[Candidates, Array, Mixture | None, Array]:
    """Return candidates and planes, those chosen fitted and chosen again, and bounds of their gains."""
    candidates = law.planes(planes, np.arange(len(planes)))
    mixture, known = select(candidates, setting, backward=False)
    if mixture is None:
        return candidates, planes, None, known
    fitted = fit_planes(law, planes, candidates, mixture, list(range(len(mixture.chosen))))
    numbers = len(planes) + np.arange(len(fitted))
    candidates, planes = Candidates.join([candidates, law.planes(fitted, numbers)]), np.vstack([planes, fitted])
    mixture, known = select(candidates, setting, backward=False, known=known)
    return candidates, planes, mixture, known


def fit_planes(law: Law, planes: Array, candidates: Candidates, mixture: Mixture, places: list[int]) -> Array:
    """Return planes of a mixture, by their places, fitted to their matches; a failed fit stays.

    The weight of a match is its posterior times the mean of 1 / s^2 given its residual.
    """
    scales, weights = law.plane_scales, np.zeros((len(places), len(law.matches)))
    for row, at in enumerate(places):
        item = mixture.chosen[at]
        rows, precise = candidates.rows_of(item), mixture.shares[at, 1 : len(scales)] / scales[1:] ** 2
        weights[row, rows] = (precise @ candidates.values_of(item)[1:]) / mixture.density[rows]
    own = planes[candidates.planes[[mixture.chosen[at] for at in places]]]
    fitted = HOMOGRAPHY.fit(law.matches.data, weights * law.matches.weights, own)
    return np.where(np.isfinite(fitted).all(axis=1, keepdims=True), fitted, own)


def _shared(
    law: Law, candidates: Candidates, mixture: Mixture, motions: Array, around: Surroundings
) -> tuple[Candidates, Mixture, Array]:
    """Return the mixture with planes made surfaces of the motions found, where the likelihood is for it.

    A motion is tried as it is, and fitted to all matches that structures hold: one of a few surfaces is of these alone.
    """
    matches, parameters, chosen = law.matches, law.parameters, mixture.chosen
    shown = [int(k) for k in dict.fromkeys(candidates.planes[chosen].tolist()) if k >= 0]
    active = [int(k) for k in dict.fromkeys(candidates.motions[chosen].tolist()) if k >= 0]
    if not active or not shown:
        return candidates, mixture, motions
    held = np.minimum(responsibilities(candidates, mixture).sum(axis=0), 1.0)
    fitted = refine_motions(matches, motions[active], np.tile(held * matches.weights, (len(active), 1)), parameters)
    weights = without_rivals(candidates, mixture, matches)
    mixture = mix(candidates, chosen, weights, parameters)
    around = around._replace(shown=shown)
    for number, model in zip(active, fitted, strict=True):
        surfaces = law.motion(motions[number], number, around, alone=False, flat_too=True)
        joined = Candidates.join([candidates, *surfaces])
        start = mix(joined, mixture.chosen, weights, parameters)
        tried = [(share_motion(joined, start, weights, parameters, len(candidates)), joined, motions)]
        joined = Candidates.join([candidates, *law.motion(model, len(motions), around, flat_too=True)])
        start = mix(joined, _of_new_motion(candidates, mixture, number, shown), weights, parameters)
        shared = share_motion(joined, start, weights, parameters, len(candidates) + 1)
        tried.append((shared, joined, np.vstack([motions, model[None]])))
        best = max(tried, key=lambda each: each[0].log_likelihood)
        if best[0].log_likelihood > mixture.log_likelihood:
            mixture, candidates, motions = best
    return candidates, mixture, motions


def _of_new_motion(candidates: Candidates, mixture: Mixture, number: int, shown: list[int]) -> list[int]:
    """Return the chosen, those of a motion replaced by those of the motion and its surfaces that come next."""
    first, found = len(candidates), []
    for item in mixture.chosen:
        replaced = item
        if candidates.motions[item] == number:
            alone = candidates.kinds[item] == MOTION
            replaced = first if alone else first + 1 + shown.index(int(candidates.planes[item]))
        found.append(replaced)
    return list(dict.fromkeys(found))
