"""Lens distortion of points that were not undistorted: one radial coefficient k of both images, estimated from planes or a motion.

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
from ruzhash_cv.core.method.fits import log_likelihoods, refine
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.scene import Scene
from ruzhash_cv.foundation.arrays import COORDINATES, Array, Rows

#: A guard: wider lenses are fisheyes.
_MOST = 0.1
#: First and last step of a motion's bending, as shares of the farthest point's distance from the centre.
_FIRST_STEP, _LAST_STEP = 0.1, 0.02


@dataclass(frozen=True)
class Lens:
    """A radial distortion k of both images about a centre (4,), the same pixel of both; k is 0 if none is evident."""

    bending: float
    centre: Array

    def straightened(self, matches: MatchSet) -> MatchSet:
        """Return matches without distortion."""
        return replace(matches, data=self.straight_rows(matches.data))

    def straight_rows(self, rows: Array) -> Array:
        """Return correspondences (n, d) without distortion."""
        straight, off = rows.copy(), rows[:, COORDINATES] - self.centre
        straight[:, COORDINATES] = self.centre + off / self._shrinkage(off)
        return straight

    def _shrinkage(self, off: Array) -> Array:
        """Return how much nearer to the centre points (n, 4) are seen than without distortion, (n, 4), twice for each."""
        return np.maximum(1.0 + self.bending * _squares(off), 0.05)

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
    centre = _middle_of(matches)
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


def lens_of_motion(
    family: TwoViewFamily, matrix: Array, matches: MatchSet, parameters: Parameters
) -> tuple[Lens, Array]:
    """Return the lens that a motion shows, and its matrix (1, 9) without distortion.

    A wide lens bends epipolar lines: matches of the rim are many pixels off those of any matrix. From no distortion on, k moves the
    farthest point by a step more or less while the refined matrix becomes likelier. It must gain what planes must.
    """
    centre, reach = _middle_of(matches), parameters.widest_scale * matches.unit
    off = matches.data[:, COORDINATES] - centre
    widest = float(_squares(off).max(initial=1e-12))

    def fitted(share: float, matrix: Array) -> tuple[float, float, Array]:
        """Return the log-likelihood if the farthest point moved by a share of its distance, this share, and the matrix (1, 9)."""
        lens = Lens(-share / widest, centre)
        straight = lens.straightened(matches)
        for limit in (reach, matches.unit):
            matrix, _ = refine(family, matrix, straight, np.full(1, limit), parameters)
        # In pixels of the images as they were seen, so that no lens gains by shrinking them.
        squared = family.squared_residuals(straight.data, matrix) * np.square(lens._shrinkage(off)).min(axis=1)
        return float(log_likelihoods(squared, matches.weights, reach, 1)[0]), share, matrix

    best = straight = fitted(0.0, matrix)
    step = _FIRST_STEP
    while step > _LAST_STEP and abs(best[1]) < 1.0:
        beside = max((fitted(best[1] + side * step, best[2]) for side in (1.0, -1.0)), key=lambda each: each[0])
        if beside[0] > best[0]:
            best = beside
        elif best is straight:
            break
        else:
            step *= 0.5
    least = parameters.motion_cost + np.log(parameters.held_ratio) * float(matches.weights.sum())
    return (Lens(-best[1] / widest, centre), best[2]) if best[0] - straight[0] > least else (STRAIGHT, matrix)


def _middle_of(matches: MatchSet) -> Array:
    """Return the middle of all points (4,), the same pixel of both images."""
    both = np.vstack(matches.frame.leave(matches.data[:, COORDINATES]))
    middle = 0.5 * (both.min(axis=0) + both.max(axis=0))[None]
    return np.asarray(matches.frame.enter(middle, middle)[0])


def _squares(off: Array) -> Array:
    """Return the squared distances (n, 4) of points (n, 4) from the centre, twice each."""
    return np.repeat(np.square(off).reshape(-1, 2, 2).sum(axis=2), 2, axis=1)
