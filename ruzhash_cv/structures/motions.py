"""Motions: one fundamental matrix for the planes that move together, and for the few matches off them that tell the pose.

Planes are found first, and may hide the motion. It is searched for tightly, among what the mask keeps and, with little weight, what it
does not: a few matches off a plane are no structure. Matrices are tried

    of seven matches, drawn as often from a small structure as from a large one,
    [e]_x H of a plane's homography H and two matches off it: the epipole e is where the lines H x1, x2 of the two meet.

Each structure first gets the matrix that fits its own matches best, whose noise scale is the least a motion could have there.
Structures are parts of one motion if its matrix fits each about as well as that.

A plane is a motion by itself, all there is to see or what a camera sees that only turns, unless matches off it tell more: where they
lie off it, they all do in the direction of the epipole. Mismatches crowd around a plane in any direction: of those a distance d off,
2 / pi asin(sqrt 2 r / d) come within r (Sampson) of an epipolar line. Surfaces join, so that matches near a plane are asked first;
only where they tell of no motion at all are those further off. These may be repeated texture, which moves as a second plane would: a
surface hides what is behind it, so that its matches have each other for neighbours, and texture has the plane's own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import squared_residuals, unit_norm
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.preferences import CUT, WIDEST_SCALE
from ruzhash_cv.sampling import draw_decoys, draw_from
from ruzhash_cv.structures.evidence import RADII, TOLERANCE, Candidates, Models, Structures, count_votes, evidence
from ruzhash_cv.structures.refinement import EXACT, lie_among, noise_scales, refine
from ruzhash_cv.structures.search import N_DECOYS, PLANS

Families = tuple[TwoViewFamily, ...]

#: Matrices tried of a plane and two matches off it. Those of seven, and those refined, are as many as in the search's first round.
N_PARALLAXES = 100
N_SEVENS, N_REFINED = PLANS[1].n_samples, PLANS[1].n_refitted
#: A structure is part of a motion that has at most so many times the least noise there: two radii more.
AS_WELL = RADII[2] / RADII[0]
#: ... or of this, in lengths, the smallest radius: a lens that is not undistorted bends each plane's lines otherwise, which a matrix of
#: its own takes up.
LEAST_NOISE = RADII[0]
#: Inliers are within so many noise scales. Of several matrices the one of least squared residuals has it, cut there (MSAC; Torr and
#: Zisserman, CVIU 2000): -ln NFA, which accepts them, does not tell apart what lies within its smallest radius.
INLIER = 2.5
#: Matches near a plane are within so many lengths of it: preferences end there too.
NEAR = CUT * WIDEST_SCALE
#: Matches that the matrix of a plane fits whatever they are: two fix the epipole.
FREE = 2
_SEED = 0


@dataclass(frozen=True)
class Motions(Models):
    """Motions: noise scales and tolerances (m,) in the unit of the frame, -ln NFA, and which structures (m, k) each holds."""

    noise: Array
    tolerances: Array
    evidences: Array
    holds: Mask


@dataclass(frozen=True)
class Seen:
    """What motions are searched in: matches, those flagged weighed by what speaks for them; `labels` (n,) of structures, or -1."""

    structures: Structures
    families: Families
    matches: MatchSet
    weights: Array
    labels: Rows
    stationary: Mask

    def motions(self) -> tuple[Motions, Rows]:
        """Return the motions, those of most votes first, and which of them each match belongs to, -1 for none."""
        search = MotionSearch(self)
        found = search.rigid(NEAR * self.matches.length) or search.rigid(np.inf)
        single = ~np.any([motion.holds[0] for motion in found], axis=0) & np.ones(len(self.structures), bool)
        found += [search.alone(structure) for structure in np.flatnonzero(single).tolist()]
        motions = Motions.join(found)
        member = np.argmax(motions.holds, axis=0)
        squared = squared_residuals(self.families, motions.codes, motions.models, self.matches.data)
        distances = np.sqrt(squared) / motions.tolerances[:, None]
        nearest = np.where(distances.min(axis=0) <= 1.0, distances.argmin(axis=0), -1)
        labels = np.where(self.labels < 0, nearest, member[self.labels])
        order = np.argsort(-np.bincount(labels + 1, self.weights, minlength=len(found) + 1)[1:], kind="stable")
        return motions.take(order), np.append(np.argsort(order), -1)[labels]


class MotionSearch:
    """Finds what moves with a structure; each one's `own_models` (k, 9), NaN for none, fit best what it holds itself."""

    def __init__(self, seen: Seen) -> None:
        self._seen, self._rng = seen, np.random.default_rng(_SEED)
        self._data, self._length = seen.matches.data, seen.matches.length
        codimensions = np.array([family.codimension for family in seen.families])
        self.code = int(np.argmin(codimensions))
        self._rigid = seen.families[self.code]
        self._is_plane = (codimensions > self._rigid.codimension)[seen.structures.codes]
        self._decoys = draw_decoys(self._data, N_DECOYS, WIDEST_SCALE * self._length, self._rng)
        self._least = np.maximum(seen.structures.noise, EXACT * self._length)
        self.own_models = np.full((len(seen.structures), 9), np.nan)
        self.tells = self._rigid.codimension == 1
        for structure in range(len(seen.structures)) if self.tells else ():
            rows = np.flatnonzero(seen.labels == structure)
            models, noise = self._fits(structure, rows, rows)
            if len(models) == 0:
                continue
            best = np.argmin(noise)
            self.own_models[structure] = models[best]
            if len(rows) > 2 * self._rigid.sample_size:
                # So many degrees of freedom went into the fit.
                spread = np.sqrt(len(rows) / (len(rows) - self._rigid.sample_size))
                self._least[structure] = np.clip(noise[best] * spread, EXACT * self._length, self._least[structure])

    def rigid(self, reach: float) -> list[Motions]:
        """Return the motions that have a matrix, as told by what is off a plane by at most `reach`; the strongest structures first."""
        found: list[Motions] = []
        free = ~self._seen.stationary & self.tells
        for structure in range(len(free)):
            motion = self._motion(structure, free, reach) if free[structure] else None
            if motion is not None:
                found.append(motion)
                free &= ~motion.holds[0]
        return found

    def _motion(self, seed: int, free: Mask, reach: float) -> Motions | None:
        """Return the motion of a structure and of which of the `free` ones it holds, None if nothing tells of one."""
        seen, plane = self._seen, self._is_plane[seed]
        rows = np.flatnonzero(np.append(free, True)[seen.labels])
        asked = rows[self._distances(seed, rows) <= reach] if plane else rows
        off = asked[self._off(seed, asked)]
        models, noise = self._fits(seed, asked, rows)
        gains = (
            self._evidence(models, off, FREE, self._by_direction(seed, off)) if plane else self._evidence(models, off)
        )
        holds = self._held(models, rows) & free
        tells = (gains.max(axis=1, initial=-np.inf) > 0.0) & holds[:, seed]
        if not tells.any():
            return None
        limit = INLIER * max(noise[tells].min(), EXACT * self._length)
        squared = self._rigid.squared_residuals(self._data[rows], models)
        best = [int(np.argmin(np.where(tells, np.minimum(squared, limit**2) @ seen.weights[rows], np.inf)))]
        if plane and self._repeats(rows, holds[best[0]], squared[best[0]] <= limit**2, reach < np.inf):
            return None
        step = int(np.argmax(self._evidence(models[best], rows)))
        code, tolerance = np.array([self.code], np.uint8), RADII[[step + TOLERANCE]] * self._length
        evidences = gains[best].max(axis=1) + seen.structures.evidences[[seed]] * plane
        return Motions(models[best], code, noise[best], tolerance, evidences, holds[best])

    def _repeats(self, rows: Rows, holds: Mask, own: Mask, near: bool) -> bool:
        """Tell whether a motion's `own` matches off its planes are repeated texture: whether they lie among those of the planes.

        What is `near` a plane may do so and be on a ledge or a frame. If it is texture, it competes with the plane for keypoints too,
        with more of them than the two that any epipole fits.
        """
        seen = self._seen
        on = np.append(holds, False)[seen.labels[rows]]
        planes = [self._off(plane, rows) for plane in np.flatnonzero(holds & self._is_plane).tolist()]
        off = own & ~on & np.all(planes, axis=0)
        competes = np.any([np.isin(numbers[off], numbers[on]) for numbers in seen.matches.keypoints[:, rows]], axis=0)
        told = (not near or competes.sum() > FREE) and off.any()
        return bool(told and lie_among(self._data[rows], off, on, self._length))

    def alone(self, structure: int) -> Motions:
        """Return a structure as a motion by itself."""
        seen, own = self._seen, self._seen.structures.take(np.array([structure]))
        holds = np.arange(len(seen.structures))[None] == structure
        tolerances = own.tolerances * self._length
        return Motions(own.models, own.codes, own.noise, tolerances, own.evidences, holds)

    def _off(self, seed: int, rows: Rows) -> Mask:
        """Tell which matches are off a plane, and not by noise of what is on it; all, if it is none."""
        if not self._is_plane[seed]:
            return np.ones(len(rows), bool)
        return np.asarray(self._distances(seed, rows) > max(INLIER * self._least[seed], self._length))

    def _distances(self, seed: int, rows: Rows) -> Array:
        structures = self._seen.structures.take(np.array([seed]))
        squared = squared_residuals(self._seen.families, structures.codes, structures.models, self._data[rows])
        return np.asarray(np.sqrt(squared[0]))

    def _fits(self, seed: int, rows: Rows, all_rows: Rows) -> tuple[Array, Array]:
        """Return the best matrices (m, 9) of some matches, refined among all of them, and their noise scales (m,)."""
        seen, votes = self._seen, self._seen.weights[rows]
        data, labels = self._data[rows], seen.labels[rows]
        # Of the matches flagged all may have no weight.
        held = np.bincount(labels + 1, votes, minlength=2)[labels + 1]
        balanced = votes / np.sqrt(np.maximum(held, 1e-300))
        samples = draw_from(data, self._rigid.sample_size, N_SEVENS, (0,), balanced, self._length, 1, False, self._rng)
        models = [self._rigid.solve(data[samples.indices])[0], self.own_models[[seed]]]
        if self._is_plane[seed]:
            models.append(parallax(seen.structures.models[seed], data[self._off(seed, rows)], N_PARALLAXES, self._rng))
        else:
            models.append(seen.structures.models[[seed]])
        tried = np.vstack(models)
        tried = tried[np.isfinite(tried).all(axis=1)]
        scales = np.append(np.minimum(self._least, self._length / CUT), self._length / CUT)[labels]
        agreement = np.maximum(0.0, 1.0 - self._rigid.squared_residuals(data, tried) / (CUT * scales) ** 2) @ balanced
        tried = tried[np.argsort(-agreement, kind="stable")[:N_REFINED]]
        radii = np.full(len(tried), self._length)
        data, votes, codes = self._data[all_rows], seen.weights[all_rows], np.zeros(len(tried), np.uint8)
        return refine((self._rigid,), codes, tried, data, votes, radii)

    def _evidence(self, models: Array, rows: Rows, n_free: int | None = None, chance: Array | float = 0.0) -> Array:
        """Return -ln NFA (m, n_radii) of matrices among some matches, of which they fit `n_free` whatever these are.

        Chance puts at least the share `chance` (n_radii,) of matches within the radii. Tried were the matrices that are refined: those
        before were ranked by what all matches say.
        """
        votes = self._seen.weights[rows]
        found = Candidates.of(self._rigid, 0, models, self._data[rows], self._decoys, self._length)
        found = replace(found, chance=np.maximum(found.chance, chance))
        law: Any = SimpleNamespace(sample_size=n_free or self._rigid.sample_size, codimension=self._rigid.codimension)
        gains = evidence(found, count_votes(found.steps, votes), float(votes.sum()), (law,), N_REFINED)
        gains[:, RADII > 1.0 + 1e-9] = -np.inf
        return gains

    def _by_direction(self, seed: int, rows: Rows) -> Array:
        """Return the share (n_radii,) of matches within the radii of epipolar lines if they were off a plane in any direction.

        A match of the plane has the line go through its place, and both images share the distance to it.
        """
        votes = self._seen.weights[rows]
        ratios = np.sqrt(2.0) * RADII[:, None] * self._length / self._distances(seed, rows)
        shares = 2.0 / np.pi * np.arcsin(np.minimum(1.0, ratios))
        return np.asarray(shares @ votes / max(votes.sum(), 1e-300))

    def _held(self, models: Array, rows: Rows) -> Mask:
        """Tell which structures (m, k) matrices fit about as well as the best one of each does."""
        seen = self._seen
        squared = self._rigid.squared_residuals(self._data[rows], models)
        held = np.zeros((len(models), len(seen.structures)), bool)
        for structure in np.unique(seen.labels[rows][seen.labels[rows] >= 0]):
            noise = noise_scales(squared[:, seen.labels[rows] == structure], self._rigid.codimension)
            held[:, structure] = noise <= AS_WELL * max(self._least[structure], LEAST_NOISE * self._length)
        return held


def parallax(plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
    """Return fundamental matrices (n, 9) of a plane's homography (9,) and two correspondences off it each, drawn at random."""
    matrix, ones = plane.reshape(3, 3), np.ones((len(data), 1))
    if len(data) < FREE:
        return np.zeros((0, 9))
    lines = np.cross(np.hstack([data[:, :2], ones]) @ matrix.T, np.hstack([data[:, 2:], ones]))
    i, j = rng.integers(len(data), size=(2, n))
    epipoles = np.cross(lines[i], lines[j])
    # Row r of [e]_x H is the cross product of e and H's columns.
    return unit_norm(np.cross(epipoles[:, None], matrix.T[None]).transpose(0, 2, 1).reshape(-1, 9))
