"""What is opaque shows one surface at each place: which matches and which structures contradict others.

A match off a plane contradicts it if it lies among the plane's matches in both images but has jumped over them: the plane's matches
that are the nearest in one image are far away in the other. Windows of a facade matched some windows off jump, and so do mismatches. An
object before a plane hides the part of the plane behind it, where its own matches are the nearest.

Mismatches lie on epipolar lines by chance. Repeated texture lies on those of a matrix whose epipole is the vanishing point of its rows.
So the matches off planes within a unit of a matrix's lines are slips if many of them contradict planes, beyond chance. A motion does
not rest on slips if it has more matches off surfaces than there are on surfaces, as behind a fence.

A structure contradicts another one if its matches are interleaved with those of the other. And mismatches are not independent: repeated
texture and learned matchers move whole patches. The matches of a further structure are no more witnesses than they have patches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.base import Families
from ruzhash_cv.core.families.epipolar import PARALLAX_SIZE
from ruzhash_cv.core.families.weighting import noise_scales
from ruzhash_cv.core.kernels.neighbours import count_own_neighbours, mark_contradicting
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.sampling import Problem, nearest_rows
from ruzhash_cv.core.method.scene import Scene, assign, held_by, on_surfaces
from ruzhash_cv.foundation.arrays import RAYS1, RAYS2, Array, Mask, Rows, cached

#: Matches are of one patch if one of so many nearest neighbours is the same in both images.
_N_NEAR = 3


@dataclass(frozen=True)
class Opacity:
    """The surface (n,) of a scene that each match lies on, -1 for none, which of these contradict planes, and the chance of each to be
    on a line.
    """

    labels: Rows
    contradict: Mask
    chances: Array

    @cached
    def off(self) -> Mask:
        """Which matches (n,) are off the surfaces."""
        return self.labels < 0

    @cached
    def columns(self) -> NDArray[np.float32]:
        """Two columns (n,) of ones: matches off the surfaces, and those of these that contradict planes."""
        return np.array([self.off, self.contradict], np.float32)

    @classmethod
    def of(cls, surfaces: Scene, matches: MatchSet, families: Families, parameters: Parameters) -> Opacity:
        """Return it for matches and surfaces.

        A mismatch at a distance d from a plane lies within a unit of an epipolar line with probability 2 / pi asin(sqrt 2 unit / d),
        see `proofs`. Static surfaces are overlays, and what is far away is behind everything: neither is contradicted.
        """
        planes, squared = families.is_plane(surfaces), families.squared_residuals(surfaces, matches.data)
        labels = assign(surfaces, squared)
        chances = np.ones(len(labels))
        hiding = planes & ~surfaces.stationary & ~are_far(surfaces, labels, matches, families, parameters)
        of_planes = np.where(on_surfaces(hiding, labels, False), labels, -1)
        if planes.any():
            ratios = np.sqrt(2.0) * matches.unit / np.sqrt(np.maximum(squared[planes].min(axis=0), 1e-300))
            chances = 2.0 / np.pi * np.arcsin(np.minimum(ratios, 1.0))
        contradict = contradicting(of_planes, matches, parameters.neighbourhoods[0])
        return cls(labels, (labels < 0) & contradict, chances)

    def take(self, rows: Rows) -> Opacity:
        """Return it for some of the matches."""
        return Opacity(self.labels[rows], self.contradict[rows], self.chances[rows])

    def are_slips(self, squared: Array, reach: float, parameters: Parameters) -> Mask:
        """Return of which models (m,) the matches off surfaces are slips, from squared residuals (m, n)."""
        # Single precision is exact: counts are far below 2^24. One product of both columns would wake the threads of a BLAS.
        near = (squared <= reach**2).astype(np.float32)
        n_off, n_false = ((near @ column).astype(np.float64) for column in self.columns)
        n_false -= self.chances @ self.contradict
        few = (n_false <= PARALLAX_SIZE) | (n_off > np.count_nonzero(~self.off))
        return np.asarray(~few & (n_false >= parameters.slip_share * n_off))

    def without_slips(self, squared: Array, reach: float, parameters: Parameters) -> Array:
        """Return squared residuals (m, n) of models, which become infinite for matches off surfaces where these are slips."""
        slips = np.flatnonzero(self.are_slips(squared, reach, parameters))
        if len(slips):
            squared[np.ix_(slips, self.off)] = np.inf
        return squared


def are_far(surfaces: Scene, labels: Rows, matches: MatchSet, families: Families, parameters: Parameters) -> Mask:
    """Return which planes (k,) are infinitely far for known cameras: a rotation explains their matches, by `labels` (n,)."""
    far, counts = np.zeros(len(surfaces), bool), np.bincount(labels + 1, minlength=len(surfaces) + 1)[1:]
    if not matches.calibrated:
        return far
    for item in np.flatnonzero(families.is_plane(surfaces) & (counts >= parameters.neighbourhoods[0])).tolist():
        data, least = matches.data[labels == item], parameters.least_noise * matches.unit
        # The rotation of least squares between unit rays (Kabsch, Acta Crystallographica A32, 1976).
        first, second = (
            rays / np.linalg.norm(rays, axis=1, keepdims=True) for rays in (data[:, RAYS1], data[:, RAYS2])
        )
        u, _, vt = np.linalg.svd(second.T @ first)
        rotation = u * [1.0, 1.0, np.linalg.det(u @ vt)] @ vt
        squared = families[0].squared_residuals(data, rotation.reshape(1, 9))
        far[item] = noise_scales(squared, 2)[0] <= np.sqrt(2.0) * max(float(surfaces.noise[item]), least)
    return far


def contradicting(labels: Rows, matches: MatchSet, least: int) -> Mask:
    """Return which matches (n,) of no plane contradict one in `labels` (n,) that has at least so many matches."""
    contradict, counts = np.zeros(len(labels), bool), np.bincount(labels + 1, minlength=1)[1:]
    orders, data = matches.along_x, matches.data
    ordered = labels[orders]
    off = orders[0, ordered[0] < 0]
    reaches = np.empty((2, len(off)))
    for plane in np.flatnonzero(counts >= least).tolist():
        on = orders[ordered == plane].reshape(2, -1)
        points = np.array([data[on[0], :2], data[on[1], 2:4]])
        mark_contradicting(data, matches.weights, on, points, off, matches.unit, reaches, contradict.view(np.uint8))
    return contradict


def interleaved(
    data: Array, members: Mask, others: Mask, unit: float, parameters: Parameters, *, in_either: bool = False
) -> bool:
    """Return whether `others` are the nearest neighbours of matches `members` (n,) nearly as often as by chance.

    They are so in both images. In one image alone they are so if several copies of one object are matched to it: these are separate
    structures, but not in a rigid scene, where one image is enough, `in_either`. Points within a `unit` of each other are the same
    keypoint. With fewer than two matches the answer is no.
    """
    around = members | others
    least = parameters.interleaved_share * others.sum() / max(around.sum(), 1)
    shares = (1.0 - own_share(points, members, around, unit) > least for points in (data[:, :2], data[:, 2:]))
    return members.sum() > 1 and (any(shares) if in_either else all(shares))


def own_share(points: Array, members: Mask, around: Mask, same: float) -> float:
    """Return the share of a structure's `members` matches among the nearest neighbours of these, of the matches `around`.

    A neighbour no further than `same` is the same keypoint.
    """
    among, counts = np.flatnonzero(around), np.zeros(2, np.int64)
    order = among[np.argsort(points[among, 0])]
    x, y = np.ascontiguousarray(points[order].T)
    count_own_neighbours(x, y, members[order].view(np.uint8), same, counts)
    asked, own = counts.tolist()
    return own / asked if asked else 1.0


def false_motions(scene: Scene, n_tried: int, problem: Problem) -> Mask:
    """Return which models (k,) of a scene belong to motions that are no structures.

    Motions beside the strongest one that moved are false if they are interleaved with it and it is rigid, and if they have no evidence
    for the `n_tried` models when a patch of matches counts once: beside a rigid one a lone plane's must exceed `motion_cost`. Patches
    are measured among the unexplained matches, unless they are so large that the strongest one would be false, too. A rigid motion
    without planes is false if it is interleaved with lone planes.
    """
    matches, _, families, parameters = problem
    motions, planes, data, unit = scene.motions(), families.is_plane(scene), matches.coordinates, matches.unit
    moved = ~scene.stationary[motions]
    if np.count_nonzero(moved) < 2:
        return np.zeros(len(scene), bool)
    held = held_by(scene, matches, families)
    holds = np.array([held[scene.owners == motion].any(axis=0) for motion in motions.tolist()])
    strongest = int(np.where(moved, holds @ matches.weights, -1.0).argmax())
    n_tests = np.log(max(matches.n_groups, 1) * n_tried)
    size = patch_size(data[~holds.any(axis=0)])
    needed = np.where(planes[motions] & ~planes[motions[strongest]], parameters.motion_cost, 0.0)
    false = (scene.evidences[motions] + n_tests) / size - n_tests <= needed
    false &= moved & ~false[strongest]
    alone, first = planes[motions] & moved & ~false, holds[strongest]
    on_planes = np.asarray(holds[alone].any(axis=0))
    # The strongest comes first: what is interleaved with it is no reason to drop it and what is left.
    for item in sorted(np.flatnonzero(moved & ~false).tolist(), key=lambda item: bool(item != strongest)):
        if not planes[motions[strongest]] and not false[strongest] and item != strongest:
            false[item] = interleaved(data, holds[item] & ~first, first, unit, parameters, in_either=True)
        if not alone[item] and np.count_nonzero(scene.owners == motions[item]) == 1:
            false[item] |= interleaved(data, holds[item] & ~on_planes, on_planes, unit, parameters)
    return np.isin(scene.owners, motions[false])


def patch_size(data: Array) -> float:
    """Return how many matches (n, 4) a patch has in the mean: those that are linked by sharing a near neighbour in both images."""
    n = len(data)
    if n <= 4 * _N_NEAR:  # neighbours are shared by chance
        return 1.0
    first, second = (
        nearest_rows(np.ascontiguousarray(points), np.arange(n), 1 + _N_NEAR)[:, 1:]
        for points in (data[:, :2], data[:, 2:])
    )
    rows, places = np.nonzero((first[:, :, None] == second[:, None]).any(axis=2))
    others, patches, before = first[rows, places], np.arange(n), np.full(n, -1)
    while (patches != before).any():
        before = patches.copy()
        np.minimum.at(patches, rows, before[others])
        np.minimum.at(patches, others, before[rows])
    return n / len(np.unique(patches))
