"""From models that were tried to structures, labels and probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from ruzhash_cv.families.distances import FAMILIES

from .consensus import largest_consensus
from .densities import MOTION, PLANE, SURFACE, Array, Candidates, within, write_motions, write_planes, write_surfaces
from .motions import along_lines, line_crowding, lines_of, neighbours, propose, refine_motions, relief_density
from .parameters import Parameters
from .selection import Mixture, groups_of, mix, responsibilities, select, share_motions, without_rivals, worth_of

HOMOGRAPHY, FUNDAMENTAL = FAMILIES["homography"], FAMILIES["fundamental"]


@dataclass(frozen=True)
class Estimate:
    """What was found: candidates, their mixture, and the models they are of."""

    candidates: Candidates
    mixture: Mixture | None
    planes: Array
    motions: Array
    evidence: float
    probabilities: Array  # (k, n)
    reference: int = -1

    @property
    def inlier_probabilities(self) -> Array:
        return self.probabilities.sum(axis=0)


@dataclass(frozen=True)
class Law:
    """Scales, widest first, and backgrounds of a set of matches."""

    matches: Any
    parameters: Parameters
    odds: Array  # (n,): how much more a match looks like a mismatch than like a true one
    area: float  # px^2

    @classmethod
    def of(cls, matches: Any, odds: Array, parameters: Parameters) -> Law:
        px = 1.0 / matches.frame.scale
        return cls(matches, parameters, odds, float(np.prod(np.ptp(matches.data[:, 2:], axis=0) * px + 1.0)))

    def scales(self, n: int, finest: float) -> Array:
        p = self.parameters
        return finest * p.scale_ratio ** np.arange(n - 1, -1, -1.0)

    @property
    def limit(self) -> float:
        """Largest squared residual, px^2, of what belongs to a structure."""
        threshold = self.parameters.threshold
        return math.inf if threshold is None else threshold**2

    def squared(self, models: Array) -> Array:
        """Return squared transfer errors (m, n), px^2."""
        return np.minimum(HOMOGRAPHY.squared_residuals(self.matches.data, models), 1e12) / self.matches.frame.scale**2

    def planes(self, models: Array, first: int) -> Candidates:
        """Return planes as candidates."""
        scales, squared = self.scales(self.parameters.n_plane_scales + 1, self.parameters.finest_scale), self.squared(models)
        found = Candidates.of(PLANE, first + np.arange(len(models)), -1, within(squared, scales), len(scales), 1)
        write_planes(squared, self.odds / self.area, scales, self.limit, found.first, found.first_ratio, found.rows, found.ratios)
        return found

    def motion(self, model: Array, number: int, planes: Array, shown: list[int], near: Any, *, alone: bool = True, reference: int = -1, flat_too: bool = False) -> list[Candidates]:
        """Return a motion, if it may be a structure `alone`, and its surfaces, those of planes `shown`, as candidates.

        `reference` is the plane that relief is seen from. `flat_too`: the surfaces may be as near to their planes as planes are.
        """
        p, m = self.parameters, self.matches
        across2, directions = lines_of(m, model)
        across = self.scales(p.n_motion_scales + 1, p.finest_scale)
        along = self.scales(p.n_relief_scales, p.finest_scale * p.scale_ratio)
        found, crowd = [], 1.0
        if alone or not flat_too:
            flat, crowd = self._background(across2, model, planes[reference] if reference >= 0 else None)
        if alone:
            relief = np.ones(len(across2))
            if reference >= 0:
                usual, t = 1.0 / math.sqrt(self.area), along_lines(m, planes[reference], directions)
                relief = relief_density(m, near, across2, t, usual, along, p) / usual
            own = Candidates.of(MOTION, -1, number, within(across2, across)[None], len(across), 1)
            write_motions(
                across2[None], (flat * self.odds)[None], relief[None], across, 2.0 * self.limit, own.first, own.first_ratio, own.rows, own.ratios
            )
            found.append(own)
        if shown:
            along2 = np.array([along_lines(m, planes[k], directions) for k in shown]) ** 2
            found.append((self._flat_surfaces if flat_too else self._surfaces)(across2, along2, number, planes, shown, across, along, crowd))
        return found

    def _surfaces(self, across2, along2, number, planes, shown, across, along, crowd) -> Candidates:
        """Return surfaces with depth; what crowds around them does so across the lines."""
        near = within(across2, across) & within(along2, along)
        found = Candidates.of(SURFACE, shown, number, near, len(across) * len(along), len(along))
        write_surfaces(
            across2, along2, self.odds * crowd / self.area, across, along, 2.0 * self.limit, found.first, found.first_ratio, found.rows, found.ratios, 0
        )
        if self.limit < math.inf:
            self._crowd_anywhere(found, across2, along2, across, along, crowd)
        return found

    def _crowd_anywhere(self, found, across2, along2, across, along, crowd) -> None:
        """Write the broad scales anew without a limit."""
        full = Candidates.of(SURFACE, found.planes, found.motions, within(across2, across) & within(along2, along), len(along), len(along))
        write_surfaces(
            across2, along2, self.odds * crowd / self.area, across[:1], along, math.inf, full.first, full.first_ratio, full.rows, full.ratios, 0
        )
        for k in range(len(found)):
            size = full.first_ratio[k + 1] - full.first_ratio[k]
            found.ratios[found.first_ratio[k] : found.first_ratio[k] + size] = full.ratios[full.first_ratio[k] : full.first_ratio[k + 1]]

    def _flat_surfaces(self, across2, along2, number, planes, shown, across, along, crowd) -> Candidates:
        """Return surfaces that may be flat; what crowds around them does so as around planes."""
        p, squared = self.parameters, self.squared(planes[shown])
        scales, deep = self.scales(p.n_plane_scales + 1, p.finest_scale), self.scales(p.n_relief_scales + 1, p.finest_scale)
        found = Candidates.of(SURFACE, shown, number, within(squared, scales), 1 + (len(across) - 1) * len(deep), 1)
        background = self.odds / self.area
        write_surfaces(
            across2, along2, background, across[1:], deep, 2.0 * self.limit, found.first, found.first_ratio, found.rows, found.ratios, 1
        )
        for k in range(len(shown)):
            rows = found.rows[found.first[k] : found.first[k + 1]]
            around = np.exp(-0.5 * squared[k, rows] / scales[0] ** 2) / (2.0 * np.pi * scales[0] ** 2 * background[rows])
            found.ratios[found.first_ratio[k] : found.first_ratio[k] + len(rows)] = around
        return found

    def _background(self, across2: Array, model: Array, plane: Array | None) -> tuple[float, float]:
        """Return the density of mismatches across lines, per px, and how much larger it is near lines than around them."""
        m, usual = self.matches, 1.0 / math.sqrt(self.area)
        rows = np.flatnonzero((across2 < 4.0 * self.parameters.finest_scale**2) & (m.weights > 0.0))
        if len(rows) < 5:
            return usual, 1.0
        if plane is not None:
            far = HOMOGRAPHY.squared_residuals(m.data[rows], plane[None])[0] / m.frame.scale**2 > 27.0**2
            rows = rows[far] if far.sum() >= 5 else rows
        near, around = line_crowding(m, model, rows)
        return max(near, usual), max(1.0, near / max(around, usual))


def estimate_structures(
    matches: Any, planes: Array, n_tried: int, scores: Array | None, null_scores: Array | None, rng: np.random.Generator, parameters: Parameters,
    motions: Array | None = None,
) -> Estimate:
    """Choose structures among planes that were tried and the motions they propose."""
    votes, n = matches.weights, len(matches.data)
    law = Law.of(matches, np.ones(n), parameters)
    log_tried = math.log(max(n_tried, 1)), math.log(8.0)
    parts, mixture, shown, known, held = [], None, [], np.zeros(0), np.zeros((0, n))
    if len(planes):
        parts.append(law.planes(planes, 0))
        mixture, known = select(parts[0], votes, matches, log_tried, parameters, backward=False)
    for _ in range(parameters.n_plane_rounds if mixture is not None else 0):
        fitted = fit_planes(law, planes, parts[0], mixture, keep=True)
        parts = [Candidates.join([parts[0], law.planes(fitted, len(planes))])]
        planes = np.vstack([planes, fitted])
        mixture, known = select(parts[0], votes, matches, log_tried, parameters, backward=False, known=known)
    if mixture is not None:
        shown = list(mixture.chosen)
        held = np.minimum(responsibilities(parts[0], mixture, n, broad=True), 1.0)
    found = propose(matches, planes[shown], held, scores, rng, parameters)
    if len(planes):
        shown = list(dict.fromkeys([*shown, *np.argsort(-known, kind="stable")[: parameters.n_seed_planes].tolist()]))
    if motions is not None and len(motions):
        found = np.vstack([found, motions])
    near = neighbours(matches, parameters) if len(found) else None
    for number, model in enumerate(found):
        parts += law.motion(model, number, planes, shown, near, reference=shown[0] if shown else -1)
    if not parts:
        return Estimate(_none(), None, planes, found, 0.0, np.zeros((0, n)))
    candidates = Candidates.join(parts)
    mixture, _ = select(candidates, votes, matches, log_tried, parameters, known=known)
    if mixture is None:
        return Estimate(candidates, None, planes, found, 0.0, np.zeros((0, n)))
    if parameters.share_motions:
        candidates, mixture, found = _shared(law, candidates, mixture, planes, found, shown[0] if shown else -1, near)
    evidence = sum(worth_of(candidates, mixture, g, votes, log_tried, parameters) for g in groups_of(candidates, mixture.chosen))
    return Estimate(candidates, mixture, planes, found, evidence, responsibilities(candidates, mixture, n), shown[0] if shown else -1)


def within_threshold(estimate: Estimate, matches: Any, threshold: float) -> tuple[Estimate, Array]:
    """Return an estimate whose motions hold as many matches as they can within a threshold, px, and the distances (k, n) in px.

    As RANSAC's users mean it, all that lies within the threshold of a structure belongs to it: of a plane by transfer error, of a
    motion by Sampson's distance.
    """
    chosen, scale = estimate.mixture.chosen, matches.frame.scale
    planes, motions = estimate.planes.copy(), estimate.motions.copy()
    kinds, plane_of, motion_of = (each[chosen] for each in (estimate.candidates.kinds, estimate.candidates.planes, estimate.candidates.motions))
    for number in np.unique(motion_of[motion_of >= 0]):
        fitted, _ = largest_consensus(FUNDAMENTAL, matches.data, motions[[number]], threshold * scale)
        motions[number] = fitted
    distances = np.empty((len(chosen), len(matches.data)))
    for at in range(len(chosen)):
        family, model = (HOMOGRAPHY, planes[plane_of[at]]) if kinds[at] == PLANE else (FUNDAMENTAL, motions[motion_of[at]])
        distances[at] = np.sqrt(family.squared_residuals(matches.data, model[None])[0]) / scale
    return replace(estimate, planes=planes, motions=motions), distances


def _shared(
    law: Law, candidates: Candidates, mixture: Mixture, planes: Array, motions: Array, reference: int, near: Any
) -> tuple[Candidates, Mixture, Array]:
    """Return the mixture with planes made surfaces of the motions found, where the likelihood is for it.

    A motion is tried as it is, and fitted to all matches that structures hold: one of a few surfaces is of these alone.
    """
    m, p = law.matches, law.parameters
    shown = [int(k) for k in dict.fromkeys(candidates.planes[mixture.chosen].tolist()) if k >= 0]
    active = [int(k) for k in dict.fromkeys(candidates.motions[mixture.chosen].tolist()) if k >= 0]
    if not active or not shown:
        return candidates, mixture, motions
    held = np.minimum(responsibilities(candidates, mixture, len(m.data)).sum(axis=0), 1.0)
    fitted = refine_motions(m, motions[active], np.tile(held * m.weights, (len(active), 1)), p)
    votes = without_rivals(candidates, mixture, m.weights, m.keypoints)
    mixture = mix(candidates, mixture.chosen, votes, p)
    worth = mixture.log_likelihood
    for number, model in zip(active, fitted):
        best = None
        for matrix, new in ((motions[number], number), (model, len(motions))):
            parts = [candidates, *law.motion(matrix, new, planes, shown, near, alone=new != number, reference=reference, flat_too=True)]
            joined = Candidates.join(parts)
            own = {int(k): len(candidates) + (new != number) + at for at, k in enumerate(shown)}
            chosen = list(mixture.chosen)
            if new != number:
                swap = {item: (len(candidates) if candidates.kinds[item] == MOTION else own[int(candidates.planes[item])]) for item in chosen
                        if candidates.motions[item] == number}  # fmt: skip
                chosen = list(dict.fromkeys(swap.get(item, item) for item in chosen))
            start = mix(joined, chosen, votes, p)
            shared, value = share_motions(joined, start, votes, p, len(candidates) + (new != number))
            if value > worth and (best is None or value > best[0]):
                best = value, joined, shared, np.vstack([motions, matrix[None]]) if new != number else motions
        if best is not None:
            worth, candidates, mixture, motions = best
    return candidates, mixture, motions


def refine(estimate: Estimate, matches: Any, parameters: Parameters, rounds: int = 1) -> Estimate:
    """Return structures fitted to all matches, each weighed by its posterior and by the precision it is seen with.

    The matrix of a motion is fitted to all that its surfaces hold. Fits, backgrounds and weights alternate.
    """
    mixture, old = estimate.mixture, estimate.candidates
    if mixture is None:
        return estimate
    law = Law.of(matches, np.ones(len(matches.data)), parameters)
    kinds, plane_of, motion_of = (each[mixture.chosen] for each in (old.kinds, old.planes, old.motions))
    planes, motions = estimate.planes.copy(), estimate.motions.copy()
    near = neighbours(matches, parameters) if (kinds == MOTION).any() else None
    best = None
    for step in range(rounds + 1):
        parts, places = [], []
        for at in np.flatnonzero(kinds == PLANE):
            parts.append(law.planes(planes[plane_of[[at]]], int(plane_of[at])))
            places.append([at])
        for number in dict.fromkeys(motion_of[motion_of >= 0].tolist()):
            own = np.flatnonzero(motion_of == number)
            alone, surfaces = own[kinds[own] == MOTION], own[kinds[own] == SURFACE]
            parts += law.motion(
                motions[number], number, planes, plane_of[surfaces].tolist(), near, alone=len(alone) > 0, reference=estimate.reference, flat_too=True
            )
            places.append(np.concatenate([alone, surfaces]))
        candidates, order = Candidates.join(parts), np.concatenate(places)
        votes = matches.weights
        start = None if best is None else Mixture(list(range(len(order))), best[1].weights, best[1].rest, best[1].density, 0.0)
        fitted = mix(candidates, list(range(len(order))), votes, parameters, start)
        if best is not None and not fitted.log_likelihood > best[1].log_likelihood:
            break
        best = candidates, fitted, planes.copy(), motions.copy()
        if step == rounds:
            break
        flat = np.flatnonzero(candidates.kinds == PLANE)
        if len(flat):
            planes[candidates.planes[flat]] = fit_planes(law, planes, candidates, fitted, flat.tolist(), keep=True)
        numbers = list(dict.fromkeys(candidates.motions[candidates.motions >= 0].tolist()))
        if numbers:
            held = responsibilities(candidates, fitted, len(matches.data))
            weights = np.array([held[candidates.motions == number].sum(axis=0) for number in numbers]) * votes
            motions[numbers] = refine_motions(matches, motions[numbers], weights, parameters)
    candidates, fitted, planes, motions = best
    probabilities = responsibilities(candidates, fitted, len(matches.data))
    return Estimate(candidates, fitted, planes, motions, estimate.evidence, probabilities, estimate.reference)


def fit_planes(law: Law, planes: Array, candidates: Candidates, mixture: Mixture, places: list[int] | None = None, *, keep: bool = False) -> Array:
    """Return planes fitted to their matches, each weighed by its posterior and the precision it is seen with."""
    p, m = law.parameters, law.matches
    scales = law.scales(p.n_plane_scales + 1, p.finest_scale)
    places = list(range(len(mixture.chosen))) if places is None else places
    weights = np.zeros((len(places), len(m.data)))
    for row, at in enumerate(places):
        item = mixture.chosen[at]
        rows = candidates.rows[candidates.first[item] : candidates.first[item + 1]]
        ratios = candidates.ratios[candidates.first_ratio[item] : candidates.first_ratio[item + 1]].reshape(-1, len(rows))
        weights[row, rows] = ((mixture.weights[at, 1 : len(scales)] / scales[1:] ** 2) @ ratios[1:]) / mixture.density[rows]
    own = planes[candidates.planes[[mixture.chosen[at] for at in places]]]
    fitted = HOMOGRAPHY.fit(m.data, weights * m.weights, own)
    usable = np.isfinite(fitted).all(axis=1)
    return np.where(usable[:, None], fitted, own) if keep else fitted[usable]


def _none() -> Candidates:
    return Candidates.of(PLANE, -1, -1, np.zeros((0, 0), bool), 4, 1)
