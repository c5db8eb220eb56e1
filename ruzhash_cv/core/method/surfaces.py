"""Surfaces of a rigid motion: given its matrix, a plane has three numbers.

With F the matrix of a motion, e its epipole in the second image and A = [e]_x F, the homographies of its planes are

    H = A - e v'

(Hartley and Zisserman, result 13.6). A match of the plane gives one linear equation, x1 . v = beta, so that three neighbours give a
candidate, and a plane is a least-squares fit of three numbers, at the noise of the motion. Rays, with an essential matrix for F, have
the same equations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv.core.families.base import Models, Residuals
from ruzhash_cv.core.families.epipolar import PARALLAX_SIZE
from ruzhash_cv.core.families.linear import cross_matrix, has_rays, homogeneous
from ruzhash_cv.core.families.weighting import student
from ruzhash_cv.core.kernels.planes import choose_planes, fit_planes, write_plane_equations, write_planes_through
from ruzhash_cv.core.method.fits import noise_scales, refine
from ruzhash_cv.core.method.opacity import Opacity, interleaved
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.proofs import is_evident
from ruzhash_cv.core.method.sampling import Problem, nearest_rows
from ruzhash_cv.core.method.scene import Scene, held_by, memberships
from ruzhash_cv.foundation.arrays import Array, Mask, Rows

#: A guard: no more planes of a motion are looked for.
MAX_PLANES = 12
#: Rounds of a plane's fit.
_N_FITS = 3
#: Periods of a repeated texture that are tried.
_N_PERIODS = 64
#: Neighbours in the first image that a candidate is drawn from.
_N_NEAR = 12


def with_surfaces(
    scene: Scene, probabilities: Array, n_tried: int, problem: Problem, rng: np.random.Generator
) -> tuple[Scene, Opacity | None]:
    """Return the scene with planes of each motion fitted given its matrix, in place of the planes that led to it.

    A motion takes its planes among its matches by their `probabilities` (n, k) and those of nothing. A plane of no motion keeps its
    homography. So does a plane with less than half of its matches on planes of its motion, unless these are evidence of the motion: it
    was proven. A motion that loses all its planes so leaves, unless matches off these are evidence of it. Returns the opacity of the
    planes of the only motion, too, None if there are others.
    """
    matches, _, families, parameters = problem
    planes = families.is_plane(scene)
    motions = np.flatnonzero(~planes)
    if len(motions) == 0 or not families.has_both:
        return scene, None
    labels = memberships(probabilities)
    owners = np.append(scene.owners, -1)[labels]
    alone = scene.take(np.flatnonzero(planes & (scene.owners == np.arange(len(scene)))))
    parts, numbers, free = [alone], [*range(len(alone))], np.ones(len(matches), bool)
    squared, opacity = families.squared_residuals(scene.take(motions), matches.data), None
    for place, motion in enumerate(motions.tolist()):
        noise = max(float(scene.noise[motion]), parameters.least_noise * matches.unit)
        mine = (owners == motion) | (owners < 0)
        near = (squared[place] <= (parameters.tolerance_scales * noise) ** 2) & free & mine
        rows = np.flatnonzero(near)
        members = np.flatnonzero(planes & (scene.owners == motion))
        proven = held_by(scene.take(members), matches, families) & mine
        fitted = planes_of_motion(scene.matrices[motion], matches.data[rows], noise, proven[:, rows], problem, rng)
        largest = fitted.take(np.arange(min(len(fitted), 1)))
        if slips_both_ways(scene.matrices[motion], largest, near, problem):
            matrices, scales = refine(families[0], largest.matrices, matches, largest.tolerances, parameters)
            parts.append(replace(largest, matrices=matrices, noise=scales, evidences=scene.evidences[[motion]]))
            numbers.append(len(numbers))
            free[rows] = False
            continue
        again: Mask = np.asarray(held_by(fitted, matches, families).any(axis=0))
        kept = scene.take(np.array([motion]))
        opacity = Opacity.of(fitted, matches, families, parameters)
        is_proven = is_evident(kept, opacity, len(fitted) > 0, n_tried, problem)
        if is_proven:
            again |= squared[place] <= (parameters.preference_cut * noise) ** 2
        lost = (proven & again) @ matches.weights < 0.5 * (proven @ matches.weights)
        parts.append(scene.take(members[lost]))
        numbers += range(len(numbers), len(numbers) + len(parts[-1]))
        leaves = len(members) > 0 and bool(lost.all()) and not is_proven
        if leaves:
            before = Opacity.of(scene.take(members), matches, families, parameters)
            leaves = not is_evident(kept, before, False, n_tried, problem)
        if not leaves:
            free[rows] = False
            evidence = scene.evidences[[motion, *members[~lost]]].max()
            parts += [replace(kept, evidences=np.array([evidence])), fitted]
            numbers += [len(numbers)] * (1 + len(fitted))
    joined = replace(Scene.join(parts), owners=np.array(numbers))
    is_alone = len(joined) == 1 + len(fitted) and np.count_nonzero(families.is_plane(joined)) == len(fitted)
    return joined, opacity if is_alone else None


def slips_both_ways(motion: Array, largest: Scene, near: Mask, problem: Problem) -> bool:
    """Return whether matches `near` (n,) a motion (9,) but off its largest plane, if any, repeat its texture, as of plants in rows.

    Slips lie before the plane and behind it, interleaved with its matches and with each other: of two surfaces, one hides the other.
    And along the epipolar lines they are whole periods away from it. Of n random phases |mean exp i phase|^2 exceeds x / n with
    probability exp -x (Rayleigh's test, Mardia and Jupp, "Directional statistics", section 6.3).
    """
    matches, _, families, parameters = problem
    if len(largest) == 0:
        return False
    distances = np.sqrt(families.squared_residuals(largest, matches.data)[0])
    least = parameters.least_noise * matches.unit
    off = (
        near & (distances > parameters.tolerance_scales * max(float(largest.noise[0]), least)) & np.isfinite(distances)
    )
    if np.count_nonzero(off) <= 2 * PARALLAX_SIZE:
        return False
    periods = float(np.quantile(distances[off], 0.1)) * np.linspace(0.7, 1.3, _N_PERIODS)
    agreement = max(float(np.cos(2.0 * np.pi * distances[off] / periods[:, None]).mean(axis=1).max()), 0.0)
    certain = np.count_nonzero(off) * agreement**2 - np.log(_N_PERIODS) > parameters.motion_cost
    if not certain or agreement < 0.8:  # depths of one range agree as well, by two thirds
        return False
    points, epipole = homogeneous(matches.data), np.linalg.svd(motion.reshape(3, 3).T)[2][-1]
    predicted, second = points[:3].T @ largest.matrices.reshape(3, 3).T, points[3:].T
    sides = (np.cross(second, predicted) * np.cross(second, epipole)).sum(axis=1)
    fewer, more = sorted((off & (sides > 0.0), off & (sides < 0.0)), key=np.count_nonzero)
    if np.count_nonzero(fewer) <= PARALLAX_SIZE:
        return False
    pairs = (fewer, more), (off, near & ~off)
    return all(interleaved(matches.coordinates, *pair, matches.unit, parameters) for pair in pairs)


def planes_of_motion(
    motion: Array, data: Array, noise: float, proven: Mask, problem: Problem, rng: np.random.Generator
) -> Scene:
    """Return the planes among rows (n, d) of a motion (9,) with a noise scale, those of most matches first.

    Candidates are planes through the matches of `proven` ones (k, n), and through three neighbours. The one that most matches agree
    with, which no plane explains yet, is the next.
    Then each match goes to its nearest plane, and planes are fitted to theirs, in turn. A plane has as many matches as the smallest
    neighbourhood, at least.
    """
    matches, _, families, parameters = problem
    fewest = parameters.neighbourhoods[0]
    limit = parameters.preference_cut * np.sqrt(2.0) * noise
    planes = np.zeros((0, 9))
    if len(data) >= fewest:
        equations = PlaneEquations.of(motion, data)
        triples = neighbouring_triples(data, parameters.plane_samples // 2, rng)
        tried = equations.fitted(proven[np.count_nonzero(proven, axis=1) >= fewest])
        tried = np.vstack([tried, equations.through(triples, matches.unit)])
        planes = equations.chosen(tried, families.residuals(Models.of_family(tried, 0), data), limit, parameters)
    for _ in range(_N_FITS if len(planes) > 1 else 0):
        own = nearest_planes(planes, data, limit, problem)[0]
        planes = equations.fitted(own[own.sum(axis=1) >= fewest])
    own, squared = nearest_planes(planes, data, limit, problem)
    noises = noise_scales(np.where(own, squared, np.inf), 2)
    given = parameters.tolerance_scales * noises, np.zeros(len(planes)), noises
    return Scene.of(Models.of_family(planes, 0), *given).take(np.argsort(-own.sum(axis=1), kind="stable"))


def nearest_planes(planes: Array, data: Array, limit: float, problem: Problem) -> tuple[Mask, Array]:
    """Return which rows (k, n) are nearest to each of some planes (k, 9), and no further than `limit`, and squared residuals (k, n)."""
    squared = problem.families[0].squared_residuals(data, planes)
    if len(planes) == 0:
        return squared > 0.0, squared
    nearest = squared.argmin(axis=0) == np.arange(len(planes))[:, None]
    return nearest & (squared <= limit**2), squared


@dataclass(frozen=True)
class PlaneEquations:
    """The equations x1 . v = beta of matches (n,) for the planes A - e v' of a motion."""

    points: Array  # (6, n): x1 and x2
    numbers: Array  # (2, n): beta, and the squared distance that the second point moves by for a unit of x1 . v
    matrix: Array  # (9,): A
    epipole: Array

    @classmethod
    def of(cls, motion: Array, data: Array) -> PlaneEquations:
        """Return the equations of rows (n, d) for a motion (9,)."""
        points, fundamental = homogeneous(data), motion.reshape(3, 3)
        epipole = np.linalg.svd(fundamental.T)[2][-1].copy()
        matrix = (cross_matrix(epipole) @ fundamental).reshape(9)
        numbers = np.empty((2, len(data)))
        write_plane_equations(points, 3 if has_rays(data) else 2, matrix, epipole, numbers)
        return cls(points, numbers, matrix, epipole)

    def through(self, triples: Rows, unit: float) -> Array:
        """Return the planes (m, 9) through three matches (m, 3) each; triples smaller than a unit make none."""
        planes, given = np.empty((len(triples), 9)), (self.points, self.numbers, triples, unit**2)
        return planes[: write_planes_through(*given, self.matrix, self.epipole, planes)]

    def fitted(self, own: Mask) -> Array:
        """Return the planes (k, 9) of least squares in the second image through the matches of each, `own` (k, n)."""
        planes = np.empty((len(own), 9))
        fit_planes(
            self.points, self.numbers, np.ascontiguousarray(own).view(np.uint8), self.matrix, self.epipole, planes
        )
        return planes

    def chosen(self, tried: Array, residuals: Residuals, limit: float, parameters: Parameters) -> Array:
        """Return planes (k, 9) that are chosen among those `tried` (m, 9) and fitted; see the kernel."""
        (kinds, data, _), (m, n), planes = residuals, (len(tried), self.points.shape[1]), np.empty((MAX_PLANES, 9))
        rules = limit, parameters.preference_cut, student(2, 1.0).median, parameters.neighbourhoods[0], _N_FITS
        room = np.empty((m, n)), np.empty(m), np.empty((2, n + 1)), np.empty(n, np.uint8), np.empty(n, np.uint8)
        given = self.points, self.numbers, self.matrix, self.epipole
        return planes[: choose_planes(int(kinds[0]), data, tried, *rules, *given, *room, planes) if m else 0]


def neighbouring_triples(data: Array, n: int, rng: np.random.Generator) -> Rows:
    """Return n triples (n, 3) of rows: one drawn at random and two of its neighbours in the first image."""
    size = min(_N_NEAR + 1, len(data))
    seeds = rng.integers(len(data), size=n)
    near = nearest_rows(np.ascontiguousarray(data[:, :2]), seeds, size)
    first, second = rng.integers(1, size, size=n), rng.integers(1, size - 1, size=n)
    second += second >= first
    numbers = np.arange(n)
    return np.column_stack([seeds, near[numbers, first], near[numbers, second]])
