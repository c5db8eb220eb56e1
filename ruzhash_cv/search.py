"""The search for models: rounds of sampling, embedding, refitting, until the evidence is plain."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import run_blocks
from ruzhash_cv.bank import Bank, Found, Structures, coordinate_rows
from ruzhash_cv.decoys import draw_decoys
from ruzhash_cv.models import FUNDAMENTAL, HOMOGRAPHY, SAMPLE_SIZE, solve_in_frame
from ruzhash_cv.places import PLACE_RADIUS, KeypointNumbers, votes_of
from ruzhash_cv.preferences import Columns, agree
from ruzhash_cv.refinement import refine_kernel
from ruzhash_cv.residuals import pack_models
from ruzhash_cv.sampling import REJECTIONS, MinimalSamples, Neighbours, draw_from
from ruzhash_cv.schedule import Step, rounds
from ruzhash_cv.selection import Limits, Selector
from ruzhash_cv.structures import RADII, cover_kernel

Array = NDArray[np.float64]

#: Widest noise scale of a preference and where it is cut off, pixels. With the two finer ones: 9, 3 and 1 px.
SIGMA, REACH = 9.0, 27.0
#: The sample of a homography is the most nearly affine one of so many draws.
N_CANDIDATES = 4
#: The closing radii, pixels, models are refitted with.
CLOSING_RADII = (18.0, 9.0, 5.0, 2.5)
#: A round is the last if structures explain more than half of the votes and bring so many nats for each of these: what holds much by
#: little may be a crowd, not a structure.
FEWEST_NATS_PER_VOTE = 1.0
#: A round is also the last if it leaves fewer matches than a structure needs that agree better than this share of decoys.
FEWEST_LEFT = (8.0, 0.99)
#: And no fundamental matrix is looked for if planes leave fewer than that, by a wider measure.
FEWEST_OFF_PLANES = (8.0, 0.95)
#: As long as they bring so many nats for each vote they explain: what wide tolerances hold by less may be no plane.
FEWEST_NATS_OF_PLANES = 1.5
#: After each round homographies are sampled among at least so many votes left over, so many times while that finds structures:
#: how many samples for each of these matches, from neighbourhoods of which sizes, how many of them refitted, and the votes that must
#: agree with these.
FEWEST_TO_GLEAN, MOST_GLEANINGS = 48.0, 3
GLEANED_PER_MATCH, GLEANED_SIZES, N_GLEANED_REFITTED, FEWEST_AGREEING = 0.5, (5, 10), 4, 2.0
#: The place of decoys: no correspondence's.
NOWHERE = -2
#: Decoys keep this distance, pixels, from pairings that could be true.
DECOY_REACH = 10.0


class Gathered:
    """What the rounds have gathered: informative models, their refits, and how well matches and decoys agree with planes."""

    def __init__(self, n: int, n_decoys: int) -> None:
        self.columns, self.significances, self.candidates = [Bank()], [np.zeros(0)], [Bank()]
        self.quality, self.decoy_quality = np.zeros(n), np.zeros(n_decoys)
        self.rejected, self.n_models = dict.fromkeys(REJECTIONS, 0), 0

    def add(self, columns: Bank, significances: Array, refitted: Bank) -> None:
        """Gather informative models, how informative they are, and their refits."""
        self.columns.append(columns)
        self.significances.append(significances)
        self.candidates.append(refitted)


@dataclass
class Search:
    """Distinct correspondences (n, 4) in the frame, their places and keypoints, and which families to look for.

    `scale` is one pixel in the frame; all lengths of this module are multiples of it.
    """

    pairs: Array
    places: NDArray[np.int64]
    keypoints: KeypointNumbers
    scale: float
    families: tuple[str, ...]
    rng: np.random.Generator
    n_jobs: int
    limits: Limits = field(default_factory=Limits)
    n_decoys: int = 400

    def __post_init__(self) -> None:
        self.votes = votes_of(self.places, self.keypoints)
        self._points, self._neighbours = coordinate_rows(self.pairs), Neighbours(self.pairs)

    def run(self) -> Found:
        """Sample in rounds, each twice as long, until most matches are explained, and well, or what is left looks like decoys.

        Where nothing is found all `MOST_ROUNDS` are held.

        Of both families planes come first: a fundamental matrix that is not needed can only keep mismatches.
        """
        decoys = coordinate_rows(self.draw_decoys(self.n_decoys))
        selector = Selector(self._points, self.votes, self.keypoints, decoys, self.scale, self.limits)
        gathered = Gathered(len(self.pairs), decoys.shape[1])
        for planes_alone, steps in rounds(self.families, len(self.pairs)):
            for step in steps:
                self._take(step, gathered, decoys)
            structures = selector.select(Bank.join(gathered.candidates))
            if not planes_alone or self._is_over(structures, gathered, planes_alone):
                structures = self._glean(structures, gathered, selector)
                if self._is_over(structures, gathered, planes_alone):
                    break
        structures, columns, significances = selector.drop_repetitions(
            selector.planes_for_repetitions(structures, Bank.join(gathered.candidates)),
            Bank.join(gathered.columns),
            np.concatenate(gathered.significances),
        )
        return Found(
            structures.bank,
            RADII[structures.steps],
            structures.evidences,
            structures.planar_shares,
            columns,
            significances,
            gathered.rejected,
            gathered.n_models,
        )

    def draw_decoys(self, n_decoys: int) -> Array:
        """Return decoys, pairings of the correspondences' points."""
        return draw_decoys(self.pairs, n_decoys, DECOY_REACH * self.scale, self.rng)

    def _take(self, step: Step, gathered: Gathered, decoys: Array) -> None:
        """Sample one kind of models, weigh them, and gather the informative ones and their refits."""
        bank = self._sample(step, gathered)
        weight, support, rows, others = self.weigh(bank, self.votes, self._points, self.places, decoys)
        if step.kind == "homography":
            gathered.quality = gathered.quality + rows.row_sums(weight)
            gathered.decoy_quality = gathered.decoy_quality + others.row_sums(weight)
        if step.kind not in self.families or len(bank) == 0:
            return
        gathered.add(*self._best(bank, weight, support, rows, self.votes, step.n_refitted))

    def _glean(self, structures: Structures, gathered: Gathered, selector: Selector) -> Structures:
        """Sample planes among the matches left over, again while that finds structures, and return all of them.

        Of a sparse plane that spans the image few matches are neighbours until what stands on it is taken away.
        """
        for _ in range(MOST_GLEANINGS if "homography" in self.families else 0):
            left = structures.left
            rows = np.flatnonzero(left > 0.0)
            if left.sum() < FEWEST_TO_GLEAN:
                break
            n_samples, radius = int(GLEANED_PER_MATCH * len(rows)), PLACE_RADIUS * self.scale
            samples = draw_from(
                Neighbours(self.pairs[rows]), 4, n_samples, GLEANED_SIZES, left[rows], radius, N_CANDIDATES, self.rng
            )
            bank = self._solve("homography", MinimalSamples(rows[samples.indices], samples.rejected), gathered)
            points = np.ascontiguousarray(self._points[:, rows])
            weight, support, columns, _ = self.weigh(bank, left[rows], points, self.places[rows], selector.decoys)
            support[support < FEWEST_AGREEING] = 0.0
            best = self._best(bank, weight, support, columns, left[rows], N_GLEANED_REFITTED)
            if not selector.finds(left, best[-1]):
                break
            gathered.add(*best)
            structures = selector.select(Bank.join(gathered.candidates))
        return structures

    def _is_over(self, structures: Structures, gathered: Gathered, planes_alone: bool) -> bool:
        """Tell whether another round would not pay."""
        total, left = structures.evidences.sum(), structures.left
        explained = self.votes.sum() - left.sum()
        limits = FEWEST_OFF_PLANES if planes_alone else FEWEST_LEFT
        clear = total > (FEWEST_NATS_OF_PLANES * explained if planes_alone else 0.0)
        if clear and self._is_plain(left, gathered, limits):
            return True
        much = explained > 0.5 * self.votes.sum() and total > FEWEST_NATS_PER_VOTE * explained
        return bool(much and not planes_alone)

    def _is_plain(self, left: Array, gathered: Gathered, limits: tuple[float, float]) -> bool:
        """Tell whether all but a few of the matches left agree with their neighbours no more than a share of decoys does."""
        decoys = gathered.decoy_quality
        if len(decoys) == 0:
            return True
        fewest, share = limits
        rank = int(share * len(decoys))
        good = gathered.quality > np.partition(decoys, rank)[rank]
        return bool(left[good].sum() < fewest + (1.0 - share) * left.sum())

    def _guide(self, quality: Array, strictness: float) -> Array:
        """Return sampling weights v (q / (q + s m))^2: v votes, q the agreement with planes, m its median, s the strictness.

        None is 0: a sample of a neighbourhood where nothing agrees is drawn all the same.
        """
        level = strictness * float(np.partition(quality, len(quality) // 2)[len(quality) // 2]) + 1e-12
        return self.votes * (quality / (quality + level)) ** 2 + 1e-9

    def _sample(self, step: Step, gathered: Gathered) -> Bank:
        """Draw the samples of a step and solve them."""
        size = SAMPLE_SIZE[step.kind]
        weights = self._guide(gathered.quality, step.strictness) if step.strictness > 0.0 else self.votes
        radius = PLACE_RADIUS * self.scale
        samples = draw_from(self._neighbours, size, step.n_samples, step.sizes, weights, radius, N_CANDIDATES, self.rng)
        return self._solve(step.kind, samples, gathered)

    def _solve(self, kind: str, samples: MinimalSamples, gathered: Gathered) -> Bank:
        """Solve samples; the models remember the places that made them."""
        size = SAMPLE_SIZE[kind]
        models = solve_in_frame(self.pairs, samples.indices, kind)
        for reason, count in samples.rejected.items():
            gathered.rejected[reason] += count
        gathered.rejected["unsolved"] += models.n_degenerate
        gathered.n_models += len(models)
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

    def weigh(
        self, bank: Bank, votes: Array, points: Array, places: NDArray[np.int64], decoys: Array
    ) -> tuple[Array, Array, Columns, Columns]:
        """Return the significances and the support of models, and the preferences of matches and of decoys for them.

        w_i = max(0, 1 - D_i / S_i)^3 with S_i, D_i the mean preference of matches, by their votes, and of decoys for model i; one
        decoy that agrees is added, so that D_i is never 0.
        """
        n = decoys.shape[1]
        rows, support = self.embed(bank, points, votes, places)
        others, chance = self.embed(bank, decoys, np.ones(n), np.full(n, NOWHERE))
        share = support / votes.sum()
        weights = np.maximum(0.0, 1.0 - (chance + 1.0) / (n + 1.0) / np.maximum(share, 1e-12)) ** 3
        return weights, support, rows, others

    def _best(
        self, bank: Bank, weight: Array, support: Array, columns: Columns, votes: Array, n_wanted: int
    ) -> tuple[Bank, Array, Bank]:
        """Return the models that cover the votes best, their significances, and their refits to all matches."""
        chosen = cover_kernel(columns.starts, columns.rows, columns.values, votes, support, weight, n_wanted)
        informative = bank.take(chosen)
        return informative, weight[chosen], self._refit(informative)

    def _refit(self, bank: Bank) -> Bank:
        """Return the fits of models with each of the closing radii."""
        radii = np.repeat(np.array(CLOSING_RADII)[:, None] * self.scale, len(bank), axis=1)
        parts = run_blocks(
            lambda start, stop: refine_kernel(
                self._points,
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
        return Bank.made_by_nobody(fits.reshape(-1, 18), np.tile(bank.kinds, len(fits)))
