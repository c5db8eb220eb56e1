"""Motions: one fundamental matrix for planes that move together, and for the few matches off them that tell the pose.

Planes are found first, and may hide the motion. It is searched for among what the mask keeps, where few mismatches are left, and tightly:

    seven matches, as many from each plane as from another  ->  matrices
    a plane's homography H and two matches off it           ->  matrices [e]_x H, e being where the lines H x1, x2 of the two meet
    the one of most -ln NFA off the strongest plane, refined, holds the planes whose matches lie on its epipolar lines

Where none is better than chance the plane is a motion by itself: a plane alone, or a camera that only turns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.preferences import CUT, WIDEST_SCALE
from ruzhash_cv.sampling import draw_decoys, draw_from
from ruzhash_cv.structures.evidence import RADII, Candidates, Models, Structures, count_votes, evidence
from ruzhash_cv.structures.refinement import refine, refit

Array = NDArray[np.float64]
Families = tuple[TwoViewFamily, ...]

#: Matrices tried for a motion: of seven matches, and of each plane with two matches off it.
N_SEVENS, N_PARALLAXES = 40, 100
#: The best of these are refined.
N_REFINED = 6
#: A plane belongs to a motion that holds so large a share of its matches.
HELD = 0.8
#: Matches off a plane that a motion with this plane fits whatever they are.
FREE = 2


@dataclass(frozen=True)
class Motions(Models):
    """Motions: noise scales and tolerances (m,), in the unit of the frame, -ln NFA, and which structures (m, k) are parts."""

    noise: Array
    tolerances: Array
    evidences: Array
    parts: NDArray[np.bool_]


class MotionSearch:
    def __init__(self, structures, noise, tolerances, kept, labels, matches, families, null, rng):
        self.structures, self.noise, self.tolerances, self.kept, self.labels = structures, noise, tolerances, kept, labels
        self.matches, self.families, self.null, self.rng = matches, families, null, rng
        self.rigid = families[1]
        codim = np.array([f.codimension for f in families])[structures.codes]
        self.planes = codim > self.rigid.codimension
        self.floor = FLOOR * RADII[0] * matches.length
        self.widest = matches.length / 3

    def run(self):
        s = self.structures
        left = self.kept.copy()
        free = np.ones(len(s), bool)
        found = []
        self.own, self.own_models = self.noise.copy(), [np.zeros((0, 9))] * len(s)
        for k in range(len(s)):
            rows = np.flatnonzero(self.kept & (self.labels == k))
            if len(rows) >= 12:
                models, noise = self.tried(k, rows, len(s) * [False])
                if len(models):
                    best = np.argmin(noise)
                    n = len(rows)
                    self.own[k] = min(self.own[k], noise[best] * np.sqrt(n / (n - 7)))
                    self.own_models[k] = models[best : best + 1]
        self.own = np.maximum(self.own, self.floor)
        self.scales = np.append(np.minimum(self.own, self.widest), self.widest)[self.labels]
        while free.any():
            seed = int(np.argmax(free))
            f = self.motion(seed, np.flatnonzero(left), free)
            if f is None:
                parts = np.zeros(len(s), bool)
                parts[seed] = True
                found.append((s.models[seed], s.codes[seed], self.noise[seed], self.tolerances[seed], s.evidences[seed], parts))
                held = self.kept & (self.labels == seed)
            else:
                model, noise, tolerance, gain, held, parts = f
                found.append((model, 1, noise, tolerance, gain, parts))
            free &= ~parts
            left &= ~held & ~np.isin(self.labels, np.flatnonzero(parts))
        return found

    def tried(self, seed, pool, others):
        """Return refined matrices that may explain matches `pool`, and their noise there."""
        s, m = self.structures, self.matches
        data, votes, label = m.data[pool], m.votes[pool], self.labels[pool]
        size = np.bincount(label + 1, votes, minlength=len(s) + 1)
        balanced = votes / np.sqrt(size[label + 1])
        samples = draw_from(data, 7, N_SEVENS, (0,), balanced, m.length, 1, False, self.rng)
        models = [self.rigid.solve(data[samples.indices])[0], self.own_models[seed]]
        if self.planes[seed]:
            d = np.sqrt(self.families[s.codes[seed]].squared_residuals(data, s.models[seed : seed + 1])[0])
            off = d > 2.0 * max(self.noise[seed], self.floor)
            if off.sum() >= 2:
                models.append(parallax(s.models[seed], data[off], N_PARALLAXES, self.rng))
        else:
            models.append(s.models[seed : seed + 1])
        models = np.vstack(models)
        scales = getattr(self, "scales", np.full(len(m.data), self.widest))[pool]
        squared = self.rigid.squared_residuals(data, models)
        quality = np.maximum(0, 1 - squared / (3.0 * scales) ** 2) @ balanced
        best = np.argsort(-quality, kind="stable")[:N_REFINED]
        tried = refit(self.rigid, data, votes, models[best], np.full(len(best), m.length))
        return refine((self.rigid,), np.zeros(len(tried), int), tried, replace(m, data=data, votes=votes), np.full(len(tried), m.length))

    def motion(self, seed, pool, free):
        s, m = self.structures, self.matches
        if len(pool) < self.rigid.sample_size + 1:
            return None
        data, votes, label = m.data[pool], m.votes[pool], self.labels[pool]
        off = np.ones(len(pool), bool)
        plane = self.planes[seed]
        if plane:
            d = np.sqrt(self.families[s.codes[seed]].squared_residuals(data, s.models[seed : seed + 1])[0])
            off = d > max(OFF * self.own[seed], OFFL * m.length)
            if votes[off].sum() <= FREE + 1:
                return None
        tried, noise = self.tried(seed, pool, free)
        weight = np.where(off, votes, 0.0)
        fam = tuple(replace(f, sample_size=FREE if plane else 7) if i == 1 else f for i, f in enumerate(self.families))
        c = Candidates.of(self.rigid, 1, tried, data, self.null, m.length)
        gains = evidence(c, count_votes(c.steps, weight), float(weight.sum()), fam, N_SEVENS + N_PARALLAXES)
        gains[:, RADII > 1.01] = -np.inf
        squared = self.rigid.squared_residuals(data, tried)
        # parts
        parts = np.zeros((len(tried), len(s)), bool)
        for k in np.flatnonzero(free):
            own = label == k
            if own.any():
                mid = np.sqrt(np.median(squared[:, own], axis=1)) / 0.6745
                parts[:, k] = mid <= CLOSE * self.own[k]
                if DEBUG: print("   ", k, self.noise[k]/m.length*3, self.own[k]/m.length*3, (mid/m.length*3).round(2))
        gains[~parts[:, seed]] = -np.inf
        i, step = np.unravel_index(np.argmax(gains), gains.shape)
        if DEBUG: print("motion: seed", seed, "pool", len(pool), "off", weight.sum(), "gain", gains[i, step], "radius", RADII[step]*3, parts.sum(1))
        if not gains[i, step] > 0:
            return None
        tolerance = RADII[step] * m.length * np.sqrt(2)
        allsq = self.rigid.squared_residuals(m.data, tried[i : i + 1])[0]
        held = self.kept & (allsq <= tolerance**2)
        return tried[i], noise[i], tolerance, gains[i, step], held, parts[i]

FLOOR, CLOSE, OFF, OFFL = 0.5, 1.41, 3.0, 1.0
DEBUG = False

def replace_data(m, pool):
    return replace(m, data=m.data[pool], votes=m.votes[pool])


def parallax(plane: Array, data: Array, n: int, rng: np.random.Generator) -> Array:
    """Return fundamental matrices (n, 9) of a plane's homography (9,) and two of the correspondences off it each."""
    H = plane.reshape(3, 3)
    ones = np.ones((len(data), 1))
    moved = np.hstack([data[:, :2], ones]) @ H.T
    lines = np.cross(moved, np.hstack([data[:, 2:], ones]))
    lines /= np.linalg.norm(lines, axis=1, keepdims=True) + 1e-300
    i, j = rng.integers(len(data), size=(2, n))
    e = np.cross(lines[i], lines[j])
    e = e[np.linalg.norm(e, axis=1) > 1e-9]
    cross = np.zeros((len(e), 3, 3))
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -e[:, 2], e[:, 1], -e[:, 0]
    cross -= cross.transpose(0, 2, 1)
    F = (cross @ H).reshape(-1, 9)
    return F / np.linalg.norm(F, axis=1, keepdims=True)
