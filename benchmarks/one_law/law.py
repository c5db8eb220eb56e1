"""The law: from models to candidates with density ratios, for one set of matches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from one_law.candidates import MOTION, PLANE, SURFACE, Candidates, Names
from one_law.densities import Lines, Scales, write_motion, write_planes, write_surfaces
from one_law.lines import Along, Relief, along_lines, line_crowding, lines_of, relief_density
from one_law.parameters import Parameters
from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.families.distances import FAMILIES
from ruzhash_cv.matches import MatchSet

HOMOGRAPHY, FUNDAMENTAL = FAMILIES["homography"], FAMILIES["fundamental"]
_FARTHEST = 1e12  # squared residual in the frame: further away is no place


class Surroundings(NamedTuple):
    """What surfaces of motions are made of: homographies (k, 9), those that may be surfaces, and what tells relief.

    Relief is seen from the plane `reference`, -1 for none, and by the matches `near` (n, k) each one in the first image.
    """

    planes: Array
    shown: list[int]
    reference: int
    near: Rows | None


@dataclass(frozen=True)
class Law:
    """Matches, the area that their second points cover, px^2, and the numbers."""

    matches: MatchSet
    area: float
    parameters: Parameters

    @classmethod
    def of(cls, matches: MatchSet, parameters: Parameters) -> Law:
        """Return the law of some matches."""
        px = 1.0 / matches.frame.scale
        return cls(matches, float(np.prod(np.ptp(matches.data[:, 2:], axis=0) * px + 1.0)), parameters)

    @property
    def limit(self) -> float:
        """Largest squared residual, px^2, of what belongs to a structure."""
        threshold = self.parameters.threshold
        return math.inf if threshold is None else threshold**2

    def scales(self, n: int, finest: float) -> Array:
        """Return noise scales, px, widest first."""
        return finest * self.parameters.scale_ratio ** np.arange(n - 1, -1, -1.0)

    @property
    def plane_scales(self) -> Array:
        """Scales of planes; the first is the crowd's."""
        return self.scales(self.parameters.n_plane_scales + 1, self.parameters.finest_scale)

    @property
    def motion_scales(self) -> Scales:
        """Scales of motions and of surfaces with depth; the first one across is the crowd's."""
        p = self.parameters
        across = self.scales(p.n_motion_scales + 1, p.finest_scale)
        return Scales(across, self.scales(p.n_relief_scales, p.finest_scale * p.scale_ratio))

    def squared(self, models: Array) -> Array:
        """Return squared transfer errors (m, n), px^2."""
        squared = HOMOGRAPHY.squared_residuals(self.matches.data, models)
        return np.asarray(np.minimum(squared, _FARTHEST) / self.matches.frame.scale**2)

    def planes(self, models: Array, numbers: Rows) -> Candidates:
        """Return planes as candidates, by their numbers (m,)."""
        scales, squared = self.plane_scales, self.squared(models)
        near = self._within(squared, scales)
        found = Candidates.of(Names(PLANE, numbers, -1), near, len(scales), 1)
        write_planes(squared, 1.0 / self.area, scales, self.limit, found.ratios)
        return found

    def motion(
        self, model: Array, number: int, around: Surroundings, *, alone: bool = True, flat_too: bool = False
    ) -> list[Candidates]:
        """Return a motion, if it may be a structure `alone`, and its surfaces, as candidates.

        `flat_too`: the surfaces may be as near to their planes as planes are, and what crowds around them does so as around planes.
        """
        across, directions = lines_of(self.matches, model)
        found, crowd = [], 1.0
        if alone or not flat_too:
            per_px, crowd = self._background(across, model, around)
        if alone:
            found.append(self._alone(Names(MOTION, -1, number), across, directions, per_px, around))
        if around.shown:
            along = np.array([along_lines(self.matches, around.planes[k], directions) for k in around.shown]) ** 2
            names = Names(SURFACE, around.shown, number)
            surfaces = self._flat_surfaces if flat_too else self._deep_surfaces
            found.append(surfaces(names, Lines(across, along), crowd, around.planes[around.shown]))
        return found

    def _alone(self, names: Names, across: Array, directions: Array, per_px: float, around: Surroundings) -> Candidates:
        """Return a motion whose matches lie along their lines as their neighbours do."""
        p, scales, usual = self.parameters, self.motion_scales, 1.0 / math.sqrt(self.area)
        along = np.ones(len(across))
        if around.reference >= 0 and around.near is not None:
            places = along_lines(self.matches, around.planes[around.reference], directions)
            given = Along(places, np.exp(-0.5 * across / scales.along[-1] ** 2), scales.along)
            relief = Relief(p.relief_neighbours, p.relief_agreement, p.relief_floor, usual)
            along = relief_density(self.matches, around.near, given, relief) / usual
        found = Candidates.of(names, self._within(across, scales.across)[None], len(scales.across), 1)
        write_motion(across, per_px, along, scales.across, 2.0 * self.limit, found.ratios)
        return found

    def _deep_surfaces(self, names: Names, lines: Lines, crowd: float, planes: Array) -> Candidates:
        """Return surfaces with depth; what crowds around them does so across the lines."""
        scales = self.motion_scales
        near = self._within(lines.across, scales.across) & self._within(lines.along, scales.along)
        n_along = len(scales.along)
        found = Candidates.of(names, near, len(scales.across) * n_along, n_along)
        write_surfaces(lines, crowd / self.area, scales, 2.0 * self.limit, 0, found.ratios)
        return found

    def _flat_surfaces(self, names: Names, lines: Lines, crowd: float, planes: Array) -> Candidates:
        """Return surfaces that may be flat; what crowds around them does so as around planes."""
        p, squared, scales = self.parameters, self.squared(planes), self.plane_scales
        own = Scales(self.motion_scales.across[1:], self.scales(p.n_relief_scales + 1, p.finest_scale))
        n_scales = 1 + len(own.across) * len(own.along)
        found = Candidates.of(names, self._within(squared, scales), n_scales, 1)
        background = 1.0 / self.area
        write_surfaces(lines, background, own, 2.0 * self.limit, 1, found.ratios)
        for k in range(len(planes)):
            near = squared[k, found.rows_of(k)]
            density = np.exp(-0.5 * near / scales[0] ** 2) / (2.0 * np.pi * scales[0] ** 2 * background)
            found.values_of(k)[0] = density
        return found

    def _within(self, squared: Array, scales: Array) -> Mask:
        """Tell which squared residuals are not beyond the widest scale's end."""
        return np.asarray(squared < (self.parameters.cut * scales[0]) ** 2)

    def _background(self, across: Array, model: Array, around: Surroundings) -> tuple[float, float]:
        """Return the density of mismatches across lines, per px, and how much larger it is near lines than around them."""
        m, p, usual = self.matches, self.parameters, 1.0 / math.sqrt(self.area)
        rows = np.flatnonzero((across < 4.0 * p.finest_scale**2) & (m.weights > 0.0))
        if len(rows) < p.fewest_lines:
            return usual, 1.0
        if around.reference >= 0:
            off = HOMOGRAPHY.squared_residuals(m.data[rows], around.planes[[around.reference]])[0] / m.frame.scale**2
            far = off > p.far_off_plane**2
            rows = rows[far] if far.sum() >= p.fewest_lines else rows
        near, wider = line_crowding(m, model, rows, p)
        return max(near, usual), max(1.0, near / max(wider, usual))
