"""Lens distortion of points that were not undistorted: one radial coefficient k of both images, estimated from planes.

By the division model (Fitzgibbon, "Simultaneous linear estimation of multiple view geometry and lens distortion", CVPR 2001) a point p,
relative to the centre of distortion, is p / (1 + k |p|^2) without distortion. Each plane shows k by itself, however it moved, because
straight lines on it are bent. Objects that moved apart show no distortion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv.core.families.base import Families, TwoViewFamily
from ruzhash_cv.core.families.linear import has_rays
from ruzhash_cv.core.families.weighting import student
from ruzhash_cv.core.method.fits import refine
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.scene import Scene
from ruzhash_cv.foundation.arrays import COORDINATES, Array, Rows

#: A guard: wider lenses are fisheyes.
_MOST = 0.1


@dataclass(frozen=True)
class Lens:
    """A radial distortion k of both images about a centre (4,), the same pixel of both; k is 0 if none is evident."""

    bending: float
    centre: Array

    def straightened(self, matches: MatchSet) -> MatchSet:
        """Return matches without distortion."""
        data, off = matches.data.copy(), matches.data[:, COORDINATES] - self.centre
        data[:, COORDINATES] = self.centre + off / (1.0 + self.bending * _squares(off))
        return replace(matches, data=data)

    def bent_residuals(
        self,
        models: Array,
        squared: Array,
        family: TwoViewFamily,
        matches: MatchSet,
        limit: float,
        parameters: Parameters,
    ) -> Array:
        """Return squared residuals (m, n) of matrices (m, 9) refined without distortion; `squared` (m, n) if there is none."""
        if self.bending == 0.0 or len(models) == 0:
            return squared
        straight = self.straightened(matches)
        refined, _ = refine(family, models, straight, np.full(len(models), limit), parameters)
        return np.where(np.isfinite(squared), family.squared_residuals(straight.data, refined), np.inf)


#: A lens without distortion.
STRAIGHT = Lens(0.0, np.zeros(4))


def lens_of_planes(
    surfaces: Scene, labels: Rows, matches: MatchSet, families: Families, parameters: Parameters
) -> Lens:
    """Return the lens that planes with matches by `labels` (n,) show together.

    It is distorted if k gains more than `motion_cost`, and the logarithm of `held_ratio` for each match, and moves no point by more
    than a tenth of its distance from the centre.

    A Gauss-Newton step of all homographies, k and k times the centre: `slopes` and `curvature` are those of half the sum of squares, by
    these three alone. The sum falls by slopes' curvature^-1 slopes, and n matches of two coordinates gain n times the logarithm of how
    many times it falls. The first guess of the centre is the middle of all points, the same pixel of both images.
    """
    if has_rays(matches.data):
        return STRAIGHT
    both = np.vstack(matches.frame.leave(matches.data[:, COORDINATES]))
    middle = 0.5 * (both.min(axis=0) + both.max(axis=0))[None]
    centre = matches.frame.enter(middle, middle)[0]
    off, law = matches.data[:, COORDINATES] - centre, student(2, parameters.student_degrees)
    squares = _squares(off)
    # How far points move (n, 4, 3) for a unit of k, and of k times the centre.
    along, across = off[:, ::2].repeat(2, axis=1), off[:, 1::2].repeat(2, axis=1)
    moved = np.stack([-squares * off, 2.0 * along * off, 2.0 * across * off], axis=2)
    moved[:, ::2, 1] += squares[:, ::2]
    moved[:, 1::2, 2] += squares[:, 1::2]
    slopes, curvature, before, count = np.zeros(3), np.zeros((3, 3)), 0.0, 0.0
    for item in np.flatnonzero(families.is_plane(surfaces) & ~surfaces.stationary).tolist():
        rows = np.flatnonzero(labels == item)
        if len(rows) < parameters.neighbourhoods[1]:
            continue
        matrix, ones = surfaces.matrices[item].reshape(3, 3), np.ones((len(rows), 1))
        first, second = np.hstack([matches.data[rows, :2], ones]), matches.data[rows, 2:4]
        mapped = first @ matrix.T
        depths, seen = mapped[:, 2:], mapped[:, :2] / mapped[:, 2:]
        # Derivatives (2 n, 9) of the transferred points by the entries of H, and (2 n, 3) of the residuals by the lens.
        ahead, zeros = first / depths, np.zeros_like(first)
        upper = np.hstack([ahead, zeros, -seen[:, :1] * ahead]), np.hstack([zeros, ahead, -seen[:, 1:] * ahead])
        carried = matrix[:, :2] @ moved[rows, :2]
        by_lens = (carried[:, :2] - seen[:, :, None] * carried[:, 2:]) / depths[:, :, None] - moved[rows, 2:]
        away = seen - second
        noise = max(float(surfaces.noise[item]), parameters.least_noise * matches.unit)
        weights = matches.weights[rows] / (1.0 + np.square(away / noise).sum(axis=1) / law.width)
        roots = np.repeat(np.sqrt(weights), 2)[:, None] / noise
        given = np.column_stack([by_lens.reshape(-1, 3), away.reshape(-1)]) * roots
        by_entries = np.stack(upper, axis=1).reshape(-1, 9) * roots
        left = given - by_entries @ np.linalg.lstsq(by_entries, given, rcond=1e-10)[0]
        slopes, curvature = slopes + left[:, :3].T @ left[:, 3], curvature + left[:, :3].T @ left[:, :3]
        before, count = before + float(left[:, 3] @ left[:, 3]), count + float(matches.weights[rows].sum())
    step = -np.linalg.lstsq(curvature, slopes, rcond=1e-10)[0]
    after, bending, widest = max(before + float(slopes @ step), 1e-3 * before), float(step[0]), squares.max(initial=0.0)
    least = parameters.motion_cost + np.log(parameters.held_ratio) * count
    shift = np.tile(step[1:], 2) / bending if bending != 0.0 else np.zeros(4)
    is_evident = before > 0.0 and count * np.log(before / after) > least
    is_lens = abs(bending) * widest <= _MOST and shift @ shift <= 0.5 * widest
    return Lens(bending, centre + shift) if is_evident and is_lens else STRAIGHT


def _squares(off: Array) -> Array:
    """Return the squared distances (n, 4) of points (n, 4) from the centre, twice each."""
    return np.repeat(np.square(off).reshape(-1, 2, 2).sum(axis=2), 2, axis=1)
