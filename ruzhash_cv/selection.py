"""Selection: which of the refitted models are structures.

By evidence; planes before fundamental matrices that say nothing beyond them; and no texture that repeats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.bank import Bank, Structures
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY
from ruzhash_cv.places import KeypointNumbers
from ruzhash_cv.repetitions import tell_repetitions
from ruzhash_cv.structures import CONTRASTS, RADII, TOLERANCE, WIDEST, Contrast, extract_kernel

Array = NDArray[np.float64]

#: Log-likelihood ratio, nats, a structure needs, and the most structures looked for.
FEWEST_NATS, MOST_STRUCTURES = 18.0, 32
#: Planes stand for a fundamental matrix if their radii are at most so many steps wider (twice as wide), and leave it fewer nats.
STEPS_NOISIER, NATS_BEYOND_PLANES = 2, 5.0
#: And if one of them lies among another's matches, and they bring this share of its nats: texture that repeats.
NATS_OF_REPETITIONS = 0.5
#: The nats a plane that stands for a fundamental matrix needs among all matches, to have the radius it has there.
FEWEST_NATS_AMONG_ALL = 1.0
#: Pixels: a column that stands for a repetition holds what is as near as that.
NEAR_COLUMN = 9.0


@dataclass(frozen=True)
class Limits:
    """How many radii are tried (by family), the contrasts asked for, and what a structure takes away, in radii (by family)."""

    widest: tuple[int, int] = WIDEST
    contrasts: tuple[Contrast, ...] = CONTRASTS
    takes: tuple[float, float] = TOLERANCE


#: With a threshold of 3 units tolerances stay within it; a structure may be noisier than it allows, so that it is not compared with
#: what surrounds it, and twice its tolerance is taken away.
WITHIN_THRESHOLD = Limits(widest=(5, 5), contrasts=(((0.0, 0.0), (0.0, 0.0)),), takes=(3.0, 2.5))


@dataclass(frozen=True)
class Selector:
    """Selects structures by matches (4, n) with `votes` (n,) and `keypoints`, and by `decoys` (4, N), both as rows of coordinates.

    `scale` is one pixel in the frame.
    """

    points: Array
    votes: Array
    keypoints: KeypointNumbers
    decoys: Array
    scale: float
    limits: Limits

    def select(self, candidates: Bank) -> Structures:
        """Return structures with planes in place of each fundamental matrix that says nothing beyond them.

        On planes of one rigid scene the fundamental matrix holds the most matches and is found first, but asks less of
        each: it would keep mismatches that slid along their epipolar lines. Where planes about as precise as it explain
        its matches so far that the rest is no evidence for it, they stand for it.
        """
        structures = self._extract(self.votes, candidates)
        if FUNDAMENTAL not in structures.bank.kinds:
            return Structures.join([structures], structures.left)
        planes = candidates.of_kind(HOMOGRAPHY)
        parts: list[Structures] = []
        open_, left = self.votes.copy(), structures.left.copy()
        for part in structures.one_by_one():
            near = self._belonging(part)
            own = near & (open_ > 0.0)
            if part.bank.kinds[0] == FUNDAMENTAL and len(planes) > 0:
                widest = (min(self.limits.widest[HOMOGRAPHY], int(part.steps[0]) + 1 + STEPS_NOISIER), 0)
                within = self._extract(np.where(own, self.votes, 0.0), planes, widest=widest)
                rest = np.where(own, within.left, open_)
                if len(within) > 0 and not len(self._extract(rest, part.bank, fewest_nats=NATS_BEYOND_PLANES)):
                    part = self._among(open_, within, widest)
                    left = np.where(own, part.left, left)
                else:
                    flat = [plane for plane in (*parts, within.take(slice(0, 1))) if HOMOGRAPHY in plane.bank.kinds]
                    held = [self.votes[near & self._belonging(plane)].sum() for plane in flat]
                    part.planar_shares[:] = max(held, default=0.0) / self.votes[near].sum()
            parts.append(part)
            open_[own] = 0.0
        return Structures.join(parts, left)

    def _among(self, votes: Array, planes: Structures, widest: tuple[int, int]) -> Structures:
        """Return planes refitted among other votes than those they were found in, with the radii they have there.

        Among the matches of a fundamental matrix the crowd around a plane is missing. Planes stay as they are where they are not as
        many again: one has no evidence among the votes, or is found twice, as what its new radius leaves is evidence for it.
        """
        found = self._extract(votes, planes.bank, widest=widest, fewest_nats=FEWEST_NATS_AMONG_ALL)
        return found if len(found) == len(planes) else planes

    def finds(self, votes: Array, candidates: Bank) -> bool:
        """Tell whether any of the candidates is a structure of these votes."""
        return len(candidates) > 0 and len(self._extract(votes, candidates)) > 0

    def planes_for_repetitions(self, structures: Structures, candidates: Bank) -> Structures:
        """Return structures with planes in place of each fundamental matrix made of a plane and its repetitions.

        Texture matched some periods off moves along one line, which a fundamental matrix holds beside the plane. There planes
        explain its matches nearly as well as it does, and one of them lies among another's matches.
        """
        planes = candidates.of_kind(HOMOGRAPHY)
        if FUNDAMENTAL not in structures.bank.kinds or len(planes) == 0:
            return structures
        parts: list[Structures] = []
        open_ = self.votes.copy()
        for part in structures.one_by_one():
            own = self._belonging(part) & (open_ > 0.0)
            if part.bank.kinds[0] == FUNDAMENTAL:
                votes = np.where(own, self.votes, 0.0)
                within, alone = (self._extract(votes, bank) for bank in (planes, part.bank))
                enough = within.evidences.sum() >= NATS_OF_REPETITIONS * alone.evidences.sum()
                if len(within) > 1 and enough and self._tell_repetitions(within, own)[0].any():
                    part = within
            parts.append(part)
            open_[own] = 0.0
        return Structures.join(parts, structures.left)

    def drop_repetitions(self, structures: Structures, columns: Bank, weights: Array) -> tuple[Structures, Bank, Array]:
        """Return the structures that do not lie among the matches of stronger ones, and the columns with their weights.

        Columns near more votes that only the dropped structures hold than near votes of the others go with them.
        """
        if len(structures) < 2:
            return structures, columns, weights
        repeated, held, lost = self._tell_repetitions(structures, np.ones(len(self.votes), bool))
        if not repeated.any():
            return structures, columns, weights
        near = columns.residuals(self.points) <= NEAR_COLUMN * self.scale
        fair = np.flatnonzero(near @ (self.votes * held) >= near @ (self.votes * lost))
        return structures.take(np.flatnonzero(~repeated)), columns.take(fair), weights[fair]

    def _extract(
        self, votes: Array, candidates: Bank, *, widest: tuple[int, int] | None = None, fewest_nats: float = FEWEST_NATS
    ) -> Structures:
        """Return the structures among the candidates, greedily by their evidence."""
        limits = self.limits
        packed, kinds, steps, evidences, left = extract_kernel(
            self.points, votes, self.decoys, candidates.packed, candidates.kinds, self.scale,
            np.array(limits.takes), np.array(widest or limits.widest), np.array(limits.contrasts), fewest_nats,
            MOST_STRUCTURES,
        )  # fmt: skip
        return Structures(Bank.made_by_nobody(packed, kinds), steps, evidences, left, np.zeros(len(packed)))

    def _belonging(self, structures: Structures) -> NDArray[np.bool_]:
        """Tell which matches lie within the tolerance of the first of some structures."""
        first = structures.bank.take(slice(0, 1))
        reach = self.limits.takes[first.kinds[0]] * RADII[structures.steps[0]] * self.scale
        within: NDArray[np.bool_] = first.residuals(self.points)[0] <= reach
        return within

    def _tell_repetitions(
        self, structures: Structures, among: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return what `repetitions.tell_repetitions` says of structures by their matches `among` all."""
        bank = structures.bank
        reaches = self.scale * np.array(TOLERANCE)[bank.kinds] * RADII[structures.steps]
        distances = bank.residuals(self.points).T / reaches
        distances[~among] = np.inf
        return tell_repetitions(self.points, distances, self.keypoints, self.scale)
