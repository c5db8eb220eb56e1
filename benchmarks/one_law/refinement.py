"""The last fits: structures fitted to all matches by posteriors, once or more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from one_law.candidates import MOTION, PLANE, SURFACE, Candidates
from one_law.estimate import Estimate, fit_planes
from one_law.law import Law, Surroundings
from one_law.lines import neighbours
from one_law.mixture import Mixture, mix, responsibilities
from one_law.proposals import refine_motions
from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv.matches import MatchSet


def refine(estimate: Estimate, matches: MatchSet) -> Estimate:
    """Return structures fitted to all matches, where the likelihood grows, and their probabilities (k, n) for all of them.

    A plane is fitted by posterior times precision. The matrix of a motion is fitted to all that its surfaces hold.
    """
    if estimate.mixture is None:
        return replace(estimate, probabilities=np.zeros((0, len(matches))))
    law = Law.of(matches, estimate.parameters)
    kinds = estimate.candidates.kinds[estimate.mixture.chosen]
    near = neighbours(matches, estimate.parameters) if (kinds == MOTION).any() else None
    candidates = _candidates(estimate, law, near)
    everyone = list(range(len(candidates)))
    mixture = mix(candidates, everyone, matches.weights, estimate.parameters)
    best = replace(estimate, candidates=candidates, mixture=mixture)
    planes, motions = _fitted(best, mixture, law)
    candidates = _candidates(replace(best, planes=planes, motions=motions), law, near)
    fitted = mix(candidates, everyone, matches.weights, estimate.parameters, mixture)
    if fitted.log_likelihood > mixture.log_likelihood:
        mixture = fitted
        best = replace(best, candidates=candidates, mixture=fitted, planes=planes, motions=motions)
    return replace(best, probabilities=responsibilities(best.candidates, mixture))


def _candidates(estimate: Estimate, law: Law, near: Rows | None) -> Candidates:
    """Return the chosen structures of an estimate as candidates for all matches: planes first, then motion by motion."""
    old, chosen = estimate.candidates, [] if estimate.mixture is None else estimate.mixture.chosen
    kinds, plane_of, motion_of = (each[chosen] for each in (old.kinds, old.planes, old.motions))
    flat = plane_of[kinds == PLANE]
    parts = [law.planes(estimate.planes[[number]], np.array([number])) for number in flat]
    for number in dict.fromkeys(motion_of[motion_of >= 0].tolist()):
        own = motion_of == number
        surfaces = plane_of[own & (kinds == SURFACE)].tolist()
        around = Surroundings(estimate.planes, surfaces, estimate.reference, near)
        alone = bool((own & (kinds == MOTION)).any())
        parts += law.motion(estimate.motions[number], number, around, alone=alone, flat_too=True)
    return Candidates.join(parts)


def _fitted(estimate: Estimate, mixture: Mixture, law: Law) -> tuple[Array, Array]:
    """Return the planes and motions of an estimate, those of its mixture fitted."""
    candidates, matches = estimate.candidates, law.matches
    planes, motions = estimate.planes.copy(), estimate.motions.copy()
    flat = np.flatnonzero(candidates.kinds == PLANE)
    if len(flat):
        planes[candidates.planes[flat]] = fit_planes(law, planes, candidates, mixture, flat.tolist())
    numbers = list(dict.fromkeys(candidates.motions[candidates.motions >= 0].tolist()))
    if numbers:
        held = responsibilities(candidates, mixture)
        weights = np.array([held[candidates.motions == number].sum(axis=0) for number in numbers]) * matches.weights
        motions[numbers] = refine_motions(matches, motions[numbers], weights, estimate.parameters)
    return planes, motions
