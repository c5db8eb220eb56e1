"""The search for models: rounds of sampling, embedding, refitting, until the evidence is plain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import run_blocks
from ruzhash_cv.decoys import draw_decoys
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY, SAMPLE_SIZE, solve_in_frame
from ruzhash_cv.preferences import Columns, agree
from ruzhash_cv.refinement import refine_kernel
from ruzhash_cv.repetitions import tell_repetitions
from ruzhash_cv.residuals import pack_models, residual_kernel
from ruzhash_cv.sampling import PLACE_RADIUS, REJECTIONS, Neighbours, draw_from, find_keypoints
from ruzhash_cv.structures import CONTRAST, RADII, WIDEST, cover_kernel, extract_kernel

Array = NDArray[np.float64]

#: Widest noise scale of a preference and where it is cut off, pixels. With the two finer ones: 9, 3 and 1 px.
SIGMA, REACH = 9.0, 27.0
#: Sizes of the neighbourhoods that samples come from; 0 is the whole set.
NEIGHBOURHOODS = (10, 10, 20, 40)
#: Samples of the first round: homographies from neighbourhoods, homographies and fundamental matrices among what looks good.
N_LOCAL, N_WIDE, N_FUNDAMENTAL = 420, 24, 48
#: Homographies from neighbourhoods are no more than so many for each match.
MOST_PER_MATCH = 2
#: Fundamental matrices where there is no other family, and for each match at most.
N_ONLY_FUNDAMENTAL, MOST_ALONE_PER_MATCH = 336, 8
#: Models refitted: homographies from neighbourhoods, homographies and fundamental matrices among what looks good.
N_REFITTED = (24, 8, 12)
#: Fundamental matrices refitted where there is no other family.
N_ONLY_REFITTED = 36
#: The closing radii, pixels, models are refitted with.
CLOSING_RADII = (18.0, 9.0, 5.0, 2.5)
#: Log-likelihood ratio, nats, a structure needs, and the most structures looked for.
FEWEST_NATS, MOST_STRUCTURES = 20.0, 32
#: By family: what lies within this many radii of a structure belongs to it.
TOLERANCE = (1.5, 1.25)
#: Planes stand for a fundamental matrix if their radii are at most so many steps wider (twice as wide), and leave it fewer nats.
STEPS_NOISIER, NATS_BEYOND_PLANES = 2, 5.0
#: And if one of them lies among another's matches, and they bring this share of its nats: texture that repeats.
NATS_OF_REPETITIONS = 0.7
#: Rounds of sampling, each with twice the samples of the one before; another one follows while the last brought so many nats.
MOST_ROUNDS, GAIN_WORTH_A_ROUND = 5, 5.0
#: Or while structures bring less than so many nats for each vote explained: what holds much by little may be a crowd, not a structure.
FEWEST_NATS_PER_MATCH = 1.0
#: A round is also the last if it leaves fewer matches than a structure needs that agree better than this share of decoys.
FEWEST_LEFT = (8.0, 0.99)
#: And no fundamental matrix is looked for if planes leave fewer than that, by a wider measure.
FEWEST_OFF_PLANES = (8.0, 0.95)
#: As long as they bring so many nats for each vote they explain: what wide tolerances hold by less may be no plane.
FEWEST_NATS_OF_PLANES = 1.5
#: The place of decoys: no correspondence's.
NOWHERE = -2
#: Decoys keep this distance, pixels, from pairings that could be true.
DECOY_REACH = 10.0
#: By family: number of radii whose tolerance stays within 3 units, for a threshold that stands for 3 units.
WITHIN_THRESHOLD = (5, 5)
#: With a threshold a structure may be noisier than it allows: no ring is looked at, and a structure takes away twice its tolerance.
NO_CONTRAST, TWICE_TOLERANCE = (0.0, 0.0), (3.0, 2.5)


@dataclass
class Bank:
    """Models of both families in the frame, as the kernels take them.

    `packed` (m, 18), `kinds` (m,) and `makers` (m, 7): the places whose correspondences made a model, -1 where fewer did.
    """

    packed: Array = field(default_factory=lambda: np.zeros((0, 18)))
    kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    makers: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 7), np.int64))

    def __len__(self) -> int:
        return len(self.packed)

    def take(self, columns: NDArray[np.int64] | NDArray[np.bool_]) -> Bank:
        """Return some of the models."""
        return Bank(self.packed[columns], self.kinds[columns], self.makers[columns])

    @staticmethod
    def join(banks: Sequence[Bank]) -> Bank:
        """Return the models of several banks as one."""
        return Bank(
            np.vstack([bank.packed for bank in banks]),
            np.concatenate([bank.kinds for bank in banks]),
            np.vstack([bank.makers for bank in banks]),
        )


@dataclass
class Structures:
    """Structures, strongest first: models, the steps of their radii, their evidences in nats; and the votes `left` over.

    `planar` (k,) is the share of a fundamental matrix's matches that one plane holds.
    """

    bank: Bank
    steps: NDArray[np.int64]
    evidences: Array
    left: Array
    planar: Array

    def take(self, which: slice | NDArray[np.int64]) -> Structures:
        """Return some of the structures."""
        bank = Bank(self.bank.packed[which], self.bank.kinds[which], self.bank.makers[which])
        return Structures(bank, self.steps[which], self.evidences[which], self.left, self.planar[which])

    @classmethod
    def join(cls, parts: list[Structures], left: Array) -> Structures:
        """Return the structures of several lists as one."""
        evidences = np.concatenate([np.zeros(0), *[part.evidences for part in parts]])
        order = np.argsort(-evidences, kind="stable")
        bank = Bank.join([Bank(), *[part.bank for part in parts]]).take(order)
        steps = np.concatenate([np.zeros(0, np.int64), *[part.steps for part in parts]])
        planar = np.concatenate([np.zeros(0), *[part.planar for part in parts]])
        return cls(bank, steps[order], evidences[order], left, planar[order])


@dataclass
class Found:
    """What the search brings home: structures, informative models, and what was rejected on the way."""

    structures: Bank
    radii: Array
    evidences: Array
    planar: Array
    columns: Bank
    significances: Array
    rejected: dict[str, int]
    n_models: int

    @property
    def tolerances(self) -> Array:
        """Largest residual of what belongs to each structure, in the search's unit (pixels, where no threshold is given)."""
        tolerances: Array = self.radii * np.array(TOLERANCE)[self.structures.kinds]
        return tolerances

    def residuals(self, points: Array) -> Array:
        """Return residuals (n, k) to the structures, in the frame; `points` (4, n) are rows of coordinates."""
        residuals: Array = residual_kernel(points, self.structures.packed, self.structures.kinds).T
        return residuals


class Step(NamedTuple):
    """One kind of samples: how many, from neighbourhoods of which sizes, whether among what looks good; and how many to refit."""

    kind: str
    n_samples: int
    sizes: tuple[int, ...]
    guided: bool
    n_refitted: int


@dataclass
class Search:
    """Distinct correspondences (n, 4) in the frame, their places and votes, and which families to look for.

    `scale` is one pixel in the frame; all lengths of this module are multiples of it. `widest`, `contrast` and `takes` go to
    `structures.extract_kernel`.
    """

    pairs: Array
    places: NDArray[np.int64]
    votes: Array
    scale: float
    families: tuple[str, ...]
    rng: np.random.Generator
    n_jobs: int
    widest: tuple[int, int] = WIDEST
    contrast: tuple[float, float] = CONTRAST
    takes: tuple[float, float] = TOLERANCE
    n_decoys: int = 400

    def run(self) -> Found:
        """Sample in rounds, each twice as long, until most matches are explained, and well, or a round finds nothing new.

        Of both families planes come first: a fundamental matrix that is not needed can only keep mismatches.
        """
        neighbours = Neighbours(self.pairs)
        points, decoys = coordinate_rows(self.pairs), coordinate_rows(self.draw_decoys(self.n_decoys))
        rejected = dict.fromkeys(REJECTIONS, 0)
        columns, significances, candidates = [Bank()], [np.zeros(0)], [Bank()]
        quality, decoy_quality = np.zeros(len(self.pairs)), np.zeros(decoys.shape[1])
        before, n_models = -np.inf, 0
        for planes_alone, steps in self._rounds():
            for kind, n_samples, sizes, guided, n_refitted in steps:
                weights = self._guide(quality) if guided else self.votes
                bank = self._sample(kind, n_samples, sizes, weights, neighbours, rejected)
                n_models += len(bank)
                weight, support, rows, others = self.weigh(bank, points, decoys)
                if kind == "homography":
                    quality, decoy_quality = quality + rows.row_sums(weight), decoy_quality + others.row_sums(weight)
                if kind not in self.families or len(bank) == 0:
                    continue
                chosen = cover_kernel(rows.starts, rows.rows, rows.values, self.votes, support, weight, n_refitted)
                columns.append(bank.take(chosen))
                significances.append(weight[chosen])
                candidates.append(self._refit(columns[-1], points))
            everything = Bank.join(candidates)
            structures = self._resolve(
                self._extract(points, self.votes, decoys, everything), points, decoys, everything
            )
            total, left = structures.evidences.sum(), structures.left
            limits = FEWEST_OFF_PLANES if planes_alone else FEWEST_LEFT
            explained = self.votes.sum() - left.sum()
            clear = total > (FEWEST_NATS_OF_PLANES * explained if planes_alone else 0.0)
            if clear and self._is_plain(left, quality, decoy_quality, limits):
                break
            if not planes_alone:
                if total > FEWEST_NATS_PER_MATCH * explained and (
                    total < before + GAIN_WORTH_A_ROUND or explained > 0.5 * self.votes.sum()
                ):
                    break
                before = total
        structures = self._planes_for_repetitions(structures, points, decoys, everything)
        structures, bank, weights = self._drop_repetitions(
            structures, Bank.join(columns), np.concatenate(significances), points
        )
        return Found(
            structures.bank,
            RADII[structures.steps],
            structures.evidences,
            structures.planar,
            bank,
            weights,
            rejected,
            n_models,
        )

    def draw_decoys(self, n_decoys: int) -> Array:
        """Return decoys, pairings of the correspondences' points."""
        return draw_decoys(self.pairs, n_decoys, DECOY_REACH * self.scale, self.rng)

    def _extract(
        self,
        points: Array,
        votes: Array,
        decoys: Array,
        candidates: Bank,
        *,
        widest: tuple[int, int] | None = None,
        fewest_nats: float = FEWEST_NATS,
    ) -> Structures:
        """Return the structures among the candidates, greedily by their evidence."""
        packed, kinds, steps, evidences, left = extract_kernel(
            points, votes, decoys, candidates.packed, candidates.kinds, self.scale, np.array(self.takes),
            np.array(widest or self.widest), np.array(self.contrast), fewest_nats, MOST_STRUCTURES,
        )  # fmt: skip
        bank = Bank(packed, kinds, np.full((len(packed), 7), -1, np.int64))
        return Structures(bank, steps, evidences, left, np.zeros(len(packed)))

    def _resolve(self, structures: Structures, points: Array, decoys: Array, candidates: Bank) -> Structures:
        """Return the structures with planes in place of each fundamental matrix that says nothing beyond them.

        On planes of one rigid scene the fundamental matrix holds the most matches and is found first, but asks less of
        each: it would keep mismatches that slid along their epipolar lines. Where planes about as precise as it explain
        its matches so far that the rest is no evidence for it, they stand for it.
        """
        if not (structures.bank.kinds == FUNDAMENTAL).any():
            return Structures.join([structures], structures.left)
        planes = candidates.take(candidates.kinds == HOMOGRAPHY)
        parts: list[Structures] = []
        open_, left = self.votes.copy(), structures.left.copy()
        for item in range(len(structures.steps)):
            part = structures.take(slice(item, item + 1))
            near = self._belonging(points, part)
            own = near & (open_ > 0.0)
            if part.bank.kinds[0] == FUNDAMENTAL and len(planes) > 0:
                widest = (min(self.widest[HOMOGRAPHY], int(part.steps[0]) + 1 + STEPS_NOISIER), 0)
                within = self._extract(points, np.where(own, self.votes, 0.0), decoys, planes, widest=widest)
                rest = np.where(own, within.left, open_)
                if len(within.steps) > 0 and not len(
                    self._extract(points, rest, decoys, part.bank, fewest_nats=NATS_BEYOND_PLANES).steps
                ):
                    part, left = within, np.where(own, within.left, left)
                else:
                    flat = [
                        plane for plane in (*parts, within.take(slice(0, 1))) if (plane.bank.kinds == HOMOGRAPHY).any()
                    ]
                    held = [self.votes[near & self._belonging(points, plane)].sum() for plane in flat]
                    part.planar[:] = max(held, default=0.0) / self.votes[near].sum()
            parts.append(part)
            open_[own] = 0.0
        return Structures.join(parts, left)

    def _planes_for_repetitions(
        self, structures: Structures, points: Array, decoys: Array, candidates: Bank
    ) -> Structures:
        """Return the structures with planes in place of each fundamental matrix made of a plane and its repetitions.

        Texture matched some periods off moves along one line, which a fundamental matrix holds beside the plane. There planes
        explain its matches nearly as well as it does, and one of them lies among another's matches.
        """
        if FUNDAMENTAL not in structures.bank.kinds:
            return structures
        planes = candidates.take(candidates.kinds == HOMOGRAPHY)
        parts: list[Structures] = []
        open_ = self.votes.copy()
        for item in range(len(structures.steps)):
            part = structures.take(slice(item, item + 1))
            own = self._belonging(points, part) & (open_ > 0.0)
            if part.bank.kinds[0] == FUNDAMENTAL and len(planes) > 0:
                votes = np.where(own, self.votes, 0.0)
                within, alone = (self._extract(points, votes, decoys, bank) for bank in (planes, part.bank))
                enough = within.evidences.sum() >= NATS_OF_REPETITIONS * alone.evidences.sum()
                if len(within.steps) > 1 and enough and self._tell_repetitions(within, points, own)[0].any():
                    part = within
            parts.append(part)
            open_[own] = 0.0
        return Structures.join(parts, structures.left)

    def _drop_repetitions(
        self, structures: Structures, columns: Bank, weights: Array, points: Array
    ) -> tuple[Structures, Bank, Array]:
        """Return the structures that do not lie among the matches of stronger ones, and the columns with their weights.

        Columns near more votes that only the dropped structures hold than near votes of the others go with them.
        """
        if len(structures.steps) < 2:
            return structures, columns, weights
        repeated, held, lost = self._tell_repetitions(structures, points, np.ones(len(self.pairs), bool))
        if not repeated.any():
            return structures, columns, weights
        near = residual_kernel(points, columns.packed, columns.kinds) <= SIGMA * self.scale
        fair = np.flatnonzero(near @ (self.votes * held) >= near @ (self.votes * lost))
        return structures.take(np.flatnonzero(~repeated)), columns.take(fair), weights[fair]

    def _tell_repetitions(
        self, structures: Structures, points: Array, among: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return what `repetitions.tell_repetitions` says of structures by their matches `among` all."""
        kinds = structures.bank.kinds
        reaches = self.scale * np.array(TOLERANCE)[kinds] * RADII[structures.steps]
        distances = residual_kernel(points, structures.bank.packed, kinds).T / reaches
        distances[~among] = np.inf
        return tell_repetitions(points, distances, find_keypoints(self.pairs), self.scale)

    def _belonging(self, points: Array, structures: Structures) -> NDArray[np.bool_]:
        """Tell which matches lie within the tolerance of the first of some structures."""
        kind, step = structures.bank.kinds[0], structures.steps[0]
        reach = self.takes[kind] * RADII[step] * self.scale
        within: NDArray[np.bool_] = (
            residual_kernel(points, structures.bank.packed[:1], structures.bank.kinds[:1])[0] <= reach
        )
        return within

    def _is_plain(self, left: Array, quality: Array, decoy_quality: Array, limits: tuple[float, float]) -> bool:
        """Tell whether all but a few of the matches left agree with their neighbours no more than a share of decoys does."""
        if len(decoy_quality) == 0:
            return True
        fewest, share = limits
        rank = int(share * len(decoy_quality))
        good = quality > np.partition(decoy_quality, rank)[rank]
        return bool(left[good].sum() < fewest + (1.0 - share) * left.sum())

    def _rounds(self) -> Iterator[tuple[bool, list[Step]]]:
        """Yield for each round whether it is the one of planes alone, and what it samples."""
        for turn in range(MOST_ROUNDS):
            times, (local, wide, lines) = 2**turn, N_REFITTED
            n_local = min(N_LOCAL, MOST_PER_MATCH * len(self.pairs))
            planes = [Step("homography", n_local * times, NEIGHBOURHOODS, False, local)]
            if self.families == ("fundamental",):
                n_alone = min(N_ONLY_FUNDAMENTAL, MOST_ALONE_PER_MATCH * len(self.pairs))
                alone = Step("fundamental", n_alone * times, (0, 25, 50), True, N_ONLY_REFITTED)
                yield False, [*planes, alone]
                continue
            planes.append(Step("homography", N_WIDE * times, (0,), True, wide))
            if "fundamental" not in self.families:
                yield False, planes
                continue
            epipolar = [Step("fundamental", N_FUNDAMENTAL * times, (0, 0, 50), True, lines)]
            if turn == 0:
                yield True, planes
                yield False, epipolar
            else:
                yield False, planes + epipolar

    def _guide(self, quality: Array) -> Array:
        """Return sampling weights that favour what already agrees with its neighbours."""
        level = float(np.partition(quality, len(quality) // 2)[len(quality) // 2]) + 1e-12
        return self.votes * (quality / (quality + level)) ** 2 + 1e-9

    def _sample(
        self,
        kind: str,
        n_samples: int,
        sizes: tuple[int, ...],
        weights: Array,
        neighbours: Neighbours,
        rejected: dict[str, int],
    ) -> Bank:
        size = SAMPLE_SIZE[kind]
        samples = draw_from(neighbours, size, n_samples, sizes, weights, PLACE_RADIUS * self.scale, self.rng)
        models = solve_in_frame(self.pairs, samples.indices, kind)
        for reason, count in samples.rejected.items():
            rejected[reason] += count
        rejected["unsolved"] += models.n_degenerate
        makers = np.full((len(models), 7), -1, np.int64)
        makers[:, :size] = self.places[samples.indices[models.sample_index]]
        code = HOMOGRAPHY if kind == "homography" else FUNDAMENTAL
        return Bank(pack_models(models.matrices, code), np.full(len(models), code, np.uint8), makers)

    def polish(self, found: Found, points: Array, votes: Array) -> None:
        """Refit the structures to all correspondences, where they were found in some of them."""
        bank, radii = found.structures, np.tile(2.0 * self.scale * found.radii, (2, 1))
        bank.packed[:] = refine_kernel(points, votes, bank.packed, bank.kinds, radii)[-1]

    def embed(self, bank: Bank, points: Array, votes: Array, places: NDArray[np.int64]) -> tuple[Columns, Array]:
        """Return preferences for models, the mean over three noise scales, and each model's sum of votes times preferences."""
        m = len(bank)
        reaches, sigmas = np.full(m, REACH * self.scale), np.full(m, SIGMA * self.scale)
        return agree(
            points, votes, places, bank.packed, bank.kinds, bank.makers, reaches, sigmas, n_jobs=self.n_jobs
        )  # fmt: skip

    def weigh(self, bank: Bank, points: Array, decoys: Array) -> tuple[Array, Array, Columns, Columns]:
        """Return the significances and the support of models, and the preferences of matches and of decoys for them.

        w_i = max(0, 1 - D_i / S_i)^3 with S_i, D_i the mean preference of matches and of decoys for model i; one decoy that
        agrees is added, so that D_i is never 0.
        """
        n = decoys.shape[1]
        rows, support = self.embed(bank, points, self.votes, self.places)
        others, chance = self.embed(bank, decoys, np.ones(n), np.full(n, NOWHERE))
        share = support / self.votes.sum()
        weights = np.maximum(0.0, 1.0 - (chance + 1.0) / (n + 1.0) / np.maximum(share, 1e-12)) ** 3
        return weights, support, rows, others

    def _refit(self, bank: Bank, points: Array) -> Bank:
        """Return the fits of models with each of the closing radii."""
        radii = np.repeat(np.array(CLOSING_RADII)[:, None] * self.scale, len(bank), axis=1)
        parts = run_blocks(
            lambda start, stop: refine_kernel(
                points,
                self.votes,
                bank.packed[start:stop],
                bank.kinds[start:stop],
                # A slice of columns is another layout: numba would compile the kernel once more.
                np.ascontiguousarray(radii[:, start:stop]),
            ),
            len(bank),
            self.n_jobs,
            smallest=max(8, 16384 // len(self.pairs)),
        )
        fits = np.concatenate(parts, axis=1)
        n_fits, m = fits.shape[:2]
        nobody = np.full((n_fits * m, 7), -1, np.int64)
        return Bank(fits.reshape(-1, 18), np.tile(bank.kinds, n_fits), nobody)


def coordinate_rows(pairs: Array) -> Array:
    """Return correspondences (n, 4) as rows of coordinates (4, n), the form that the kernels of models take."""
    return np.ascontiguousarray(pairs.T)
