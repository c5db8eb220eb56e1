"""Motions: one fundamental matrix for the planes that move together, and for the few matches off them that tell the pose.

Planes are found first, and may hide the motion. It is searched for tightly, among what the mask keeps and, with little weight, what it
does not: a few matches off a plane are no structure. Matrices are tried

    of seven matches, drawn as often from a small structure as from a large one,
    [e]_x H of a plane's homography H and two matches off it: the epipole e is where the lines H x1, x2 of the two meet.

Each structure first gets the matrix that fits its own matches best, whose noise scale is the least a motion could have there.
Structures are parts of one motion if its matrix fits each about as well as that. A plane that no matrix explains more with than
chance would is a motion by itself: it may be all there is to see, or the camera only turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import squared_residuals, unit_norm
from ruzhash_cv.preferences import WIDEST_SCALE
from ruzhash_cv.sampling import draw_decoys, draw_from
from ruzhash_cv.structures.evidence import RADII, TOLERANCE, Candidates, Models, Structures, count_votes, evidence
from ruzhash_cv.structures.refinement import RADIUS, noise_scales, refine, refit

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
Families = tuple[TwoViewFamily, ...]

#: Matrices tried: of seven matches, and of a plane and two matches off it; and how many of these are refined.
N_SEVENS, N_PARALLAXES, N_REFINED = 100, 100, 12
#: No structure is known to have less noise than this, in lengths.
LEAST_NOISE = 0.1
#: A structure is part of a motion that has at most so many times the least noise there.
AS_WELL = 1.5
#: Pairings of matches that tell how many agree with a matrix by chance.
N_DECOYS = 1000
#: Of several matrices the one of least squared residuals has it, those cut at so many of the smallest noise scale (MSAC; Torr and
#: Zisserman, CVIU 2000). -ln NFA, which accepts them, does not tell apart what lies within its smallest radius.
INLIER = 2.5
#: Matches that the matrix of a plane fits whatever they are: two fix the epipole.
FREE = 2
_SEED = 0
#: Noise that is less, in lengths, is the rounding of exact matches.
_EXACT = 1e-6


@dataclass(frozen=True)
class Motions(Models):
    """Motions: noise scales and tolerances (m,) in the unit of the frame, -ln NFA, and which structures (m, k) each holds."""

    noise: Array
    tolerances: Array
    evidences: Array
    holds: Mask


@dataclass(frozen=True)
class Seen:
    """What motions are searched in: matches, those flagged weighed by what speaks for them; `labels` (n,) of structures, -1 for none.

    `tolerances` (k,) of structures are in the unit of the frame.
    """

    structures: Structures
    tolerances: Array
    data: Array
    weights: Array
    labels: Rows
    keep: Mask
    stationary: Mask
    length: float
    families: Families

    def motions(self) -> tuple[Motions, Rows]:
        """Return the motions, those of most votes first, and which of them each match belongs to, -1 for none."""
        search, member = MotionSearch(self), np.full(len(self.structures), -1)
        found: list[Motions] = []
        for structure in range(len(self.structures)):
            if member[structure] < 0:
                free = (member < 0) & ~self.stationary
                motion = search.alone(structure) if self.stationary[structure] else search.motion(structure, free)
                member[motion.holds[0]] = len(found)
                found.append(motion)
        motions = Motions.join(found)
        squared = squared_residuals(self.families, motions.codes, motions.models, self.data)
        distances = np.sqrt(squared) / motions.tolerances[:, None]
        nearest = np.where(distances.min(axis=0) <= 1.0, distances.argmin(axis=0), -1)
        labels = np.where(self.labels < 0, nearest, member[self.labels])
        order = np.argsort(
            -np.bincount(labels + 1, self.weights * self.keep, minlength=len(found) + 1)[1:], kind="stable"
        )
        return motions.take(order), np.append(np.argsort(order), -1)[labels]


class MotionSearch:
    """Finds what moves with a structure; each one's `own_models` (k, 9), NaN for none, fit best what it holds itself."""

    def __init__(self, seen: Seen) -> None:
        self._seen, self._rng = seen, np.random.default_rng(_SEED)
        codimensions = np.array([family.codimension for family in seen.families])
        self.code = int(np.argmin(codimensions))
        self._rigid = seen.families[self.code]
        self._is_plane = (codimensions > self._rigid.codimension)[seen.structures.codes]
        self._decoys = draw_decoys(seen.data, N_DECOYS, WIDEST_SCALE * seen.length, self._rng)
        self._least = np.maximum(seen.structures.noise, LEAST_NOISE * seen.length)
        self.own_models = np.full((len(seen.structures), 9), np.nan)
        self.tells = self._rigid.codimension == 1
        for structure in range(len(seen.structures)) if self.tells else ():
            rows = np.flatnonzero(seen.labels == structure)
            models, noise = self._fits(structure, rows)
            if len(models) and len(rows) > 2 * self._rigid.sample_size:
                best = np.argmin(noise)
                self.own_models[structure] = models[best]
                # So many degrees of freedom went into the fit.
                spread = np.sqrt(len(rows) / (len(rows) - self._rigid.sample_size))
                self._least[structure] = min(
                    self._least[structure], max(noise[best] * spread, LEAST_NOISE * seen.length)
                )

    def motion(self, seed: int, free: Mask) -> Motions:
        """Return the motion of a structure and of which of the `free` ones it holds, or the structure as one by itself."""
        seen = self._seen
        if not self.tells:
            return self.alone(seed)
        rows = np.flatnonzero(np.append(free, True)[seen.labels])
        beyond = self._off(seed, rows)
        models, noise = self._fits(seed, rows)
        gains = self._evidence(models, rows[beyond], FREE if self._is_plane[seed] else self._rigid.sample_size)
        holds = self._held(models, rows) & free
        gains[~holds[:, seed]] = -np.inf
        if not gains.max(initial=-np.inf) > 0.0:
            return self.alone(seed)
        better = gains.max(axis=1) > 0.0
        limit = INLIER * max(noise[better].min(), _EXACT * seen.length)
        ratios = self._rigid.squared_residuals(seen.data[rows], models) / limit**2
        best = int(np.argmin(np.where(better, np.minimum(ratios, 1.0) @ seen.weights[rows], np.inf)))
        step = int(np.argmax(gains[best]))
        code, tolerance = np.array([self.code], np.uint8), RADII[[step + TOLERANCE]] * seen.length
        evidences = gains[best, [step]] + seen.structures.evidences[[seed]] * self._is_plane[seed]
        return Motions(models[[best]], code, noise[[best]], tolerance, evidences, holds[[best]])

    def alone(self, structure: int) -> Motions:
        """Return a structure as a motion by itself."""
        seen, own = self._seen, self._seen.structures.take(np.array([structure]))
        holds = np.arange(len(seen.structures))[None] == structure
        return Motions(
            own.models,
            own.codes,
            seen.structures.noise[[structure]],
            seen.tolerances[[structure]],
            own.evidences,
            holds,
        )

    def _off(self, seed: int, rows: Rows) -> Mask:
        """Tell which matches are off a plane: further from it than noise of what is on it; all, if it is none."""
        seen = self._seen
        if not self._is_plane[seed]:
            return np.ones(len(rows), bool)
        family, model = seen.families[seen.structures.codes[seed]], seen.structures.models[[seed]]
        furthest = max(RADIUS * self._least[seed], seen.length)
        return np.asarray(family.squared_residuals(seen.data[rows], model)[0] > furthest**2)

    def _fits(self, seed: int, rows: Rows) -> tuple[Array, Array]:
        """Return the best matrices (m, 9) of some matches, among them a structure's, refined, and their noise scales (m,)."""
        seen, votes = self._seen, self._seen.weights[rows]
        data, labels = seen.data[rows], seen.labels[rows]
        balanced = votes / np.sqrt(np.bincount(labels + 1, votes, minlength=2)[labels + 1])
        samples = draw_from(data, self._rigid.sample_size, N_SEVENS, (0,), balanced, seen.length, 1, False, self._rng)
        models = [self._rigid.solve(data[samples.indices])[0], self.own_models[[seed]]]
        if self._is_plane[seed]:
            models.append(parallax(seen.structures.models[seed], data[self._off(seed, rows)], N_PARALLAXES, self._rng))
        else:
            models.append(seen.structures.models[[seed]])
        tried = np.vstack(models)
        tried = tried[np.isfinite(tried).all(axis=1)]
        scales = np.append(np.minimum(self._least, seen.length / 3.0), seen.length / 3.0)[labels]
        agreement = np.maximum(0.0, 1.0 - self._rigid.squared_residuals(data, tried) / (3.0 * scales) ** 2) @ balanced
        tried = tried[np.argsort(-agreement, kind="stable")[:N_REFINED]]
        radii = np.full(len(tried), seen.length)
        return refine(
            (self._rigid,),
            np.zeros(len(tried), np.uint8),
            refit(self._rigid, data, votes, tried, radii),
            data,
            votes,
            radii,
        )

    def _evidence(self, models: Array, rows: Rows, n_free: int) -> Array:
        """Return -ln NFA (m, n_radii) of matrices among some matches, of which they fit `n_free` whatever these are."""
        seen = self._seen
        family: Any = replace(self._rigid, sample_size=n_free)  # type: ignore[type-var]
        found = Candidates.of(family, 0, models, seen.data[rows], self._decoys, seen.length)
        votes = seen.weights[rows]
        if not len(rows):
            return np.full((len(models), 1), -np.inf)
        gains = evidence(found, count_votes(found.steps, votes), float(votes.sum()), (family,), N_SEVENS + N_PARALLAXES)
        gains[:, RADII > 1.0 + 1e-9] = -np.inf
        return gains

    def _held(self, models: Array, rows: Rows) -> Mask:
        """Tell which structures (m, k) matrices fit about as well as the best one of each does."""
        seen = self._seen
        squared, held = (
            self._rigid.squared_residuals(seen.data[rows], models),
            np.zeros((len(models), len(seen.structures)), bool),
        )
        for structure in np.unique(seen.labels[rows][seen.labels[rows] >= 0]):
            noise = noise_scales(squared[:, seen.labels[rows] == structure], self._rigid.codimension)
            held[:, structure] = noise <= AS_WELL * self._least[structure]
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
