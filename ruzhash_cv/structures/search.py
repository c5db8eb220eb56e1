"""The search: rounds of sampling, until what no structure holds looks like mismatches.

samples -> models -> preferences, weighed against decoys -> structures by evidence -> RuzHash forest -> scores
        -> what is left, and looks best, is sampled in the next round
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv.families.protocol import TwoViewFamily
from ruzhash_cv.families.two_view import squared_residuals
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.keypoints import Appearance, trust
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.preferences import SCALES, WIDEST_SCALE, as_rows, embed, embed_and_sum, expected_preference
from ruzhash_cv.sampling import N_DRAWS, PRIOR_MATCHES, REJECTIONS, draw_decoys, draw_from
from ruzhash_cv.structures.evidence import (
    RADII,
    TOLERANCE,
    Candidates,
    Models,
    Structures,
    count_votes,
    evidence,
    extract,
    meaningful,
)
from ruzhash_cv.structures.refinement import CLOSING_RADII, divided, refit, repeated_beside, tell_repetitions

Families = tuple[TwoViewFamily, ...]


class Plan(NamedTuple):
    """What a round samples of a family: how many, from neighbourhoods of which sizes (0: all), and how many models it refits."""

    n_samples: int
    neighbourhoods: tuple[int, ...]
    n_refitted: int


#: By codimension, in the first round. Small neighbourhoods find small planes; seven points of one say little of a motion.
PLANS = {2: Plan(400, (5, 10, 20, 40, 0), 36), 1: Plan(48, (50, 0), 12)}
#: Rounds; each draws as many samples as all before it.
MOST_ROUNDS = 6
#: Decoys that models are weighed against, and as many others that scores are compared with: p-values would be flattered by the same.
N_DECOYS = 1000
#: A model's weight is this power of the share of its support that is not chance.
SIGNIFICANCE = 3
#: Columns of the forest from samples, those of most weight, and what a structure weighs beside them.
N_COLUMNS, STRUCTURE_WEIGHT = 32, 4.0
#: The forest: trees, rows a tree is grown on, and branches of a node.
N_TREES, SUBSAMPLE, BRANCHES = 32, 64, 4
#: A match looks good if at most this share of decoys look as good. A round is the last if of what is left no more votes look good than
#: that share and what the largest sample with one vote for it has: hardly a structure.
LOOKS_GOOD = 0.01
#: And if structures bring more evidence than they explain votes; so many times as much while the first family is alone. Wide tolerances
#: hold much by little, and may hide better structures.
EVIDENCE_PER_VOTE = 3.0
#: Residuals of so many models at once: many more leave the processor's cache, and memory for much fewer is given back each time.
_MODELS_AT_ONCE = 320
#: The group of decoys: no correspondence's.
_NOWHERE = -2
#: No structures.
_NONE = Structures(np.zeros((0, 9)), *(np.zeros(0, kind) for kind in ("u1", "i8", "f8", "f8", "?", "f8")))


@dataclass(frozen=True)
class Columns(Models):
    """Models that the forest's rows are made of: weights (m,), and the duplicate groups (m, s) of each model's sample, -1 for none."""

    weights: Array
    members: Rows


@dataclass(frozen=True)
class Found:
    """What the search brings home.

    `mixed` (k, k) tells which structures are planes in one place, as one lies among the other. `scores` are those of the
    correspondences searched, `null_scores` those of the decoys `null` (N, 4), which told nothing of the models. `scorer` scores others;
    its last columns are those of the structures. It and `mixed` know nothing of structures that join or are divided later. `rejected`
    counts degenerate samples by reason, and `n_models` the models sampled.
    """

    structures: Structures
    mixed: Mask
    null: Array
    scores: Array
    null_scores: Array
    scorer: Scorer
    rejected: dict[str, int]
    n_models: int


class Search:
    """The search in a set of matches, for models of some families, of which those `admitted` may become structures."""

    def __init__(
        self,
        matches: MatchSet,
        families: Families,
        admitted: Families,
        rng: np.random.Generator,
        n_jobs: int,
        appearance: Appearance | None = None,
    ) -> None:
        self._matches, self._families, self._admitted = matches, families, admitted
        self._rng, self._n_jobs, self._appearance = rng, n_jobs, appearance
        self._decoys = draw_decoys(matches.data, N_DECOYS, WIDEST_SCALE * matches.length, rng)
        self._data = np.vstack([matches.data, self._decoys])
        self._null, self._left = np.zeros((0, 4)), matches.votes
        self._lost = np.zeros(len(matches), bool)
        self._rejected, self._n_models = dict.fromkeys(REJECTIONS, 0), 0
        self._still, self._votes = self._standing()

    def run(self) -> Found:
        """Hold rounds until what no structure holds looks like decoys, or `MOST_ROUNDS`.

        The first family, of the most specific models, is alone in the first round: where it explains all, another one could only let
        mismatches in.
        """
        columns: list[Columns] = []
        candidates: list[Candidates] = []
        led_by = None
        for turn in range(MOST_ROUNDS):
            alone = turn == 0 and len(self._families) > 1 and self._families[0] in self._admitted
            for code, family in enumerate(self._families[: 1 if alone else None]):
                plan, guides = PLANS[family.codimension], self._guides(code, led_by)
                wanted = min(plan.n_samples, len(self._matches)) * 2 ** max(turn - 1, 0) // len(guides)
                for guide in guides:
                    sampled, refits = self._sample(code, plan, wanted, guide)
                    columns.append(sampled)
                    candidates.append(refits)
            structures = self._select(candidates)
            scores, null_scores, scorer = self._score(Columns.join(columns), structures)
            if self._is_over(structures, scores, null_scores, alone):
                break
            led_by = scores
        mixed = np.zeros((len(structures),) * 2, bool)
        found = Found(structures, mixed, self._null, scores, null_scores, scorer, self._rejected, self._n_models)
        return self._without_repetitions(found)

    def divided(self, found: Found) -> Found:
        """Return the search's result with wide planes replaced by the neighbouring ones that they hold."""
        structures = divided(found.structures, self._families, self._matches, self._decoys, self._n_tried)
        return replace(found, structures=structures)

    def _guides(self, code: int, scores: Array | None) -> list[Array]:
        """Return what the samples of a family are led by: half of them by all matches, half by what no structure holds.

        There a match's weight is (1 - q) / q, with q the share that looks at least as good. Of all matches the first family is sampled
        evenly, as small neighbourhoods are pure. The larger samples of the others are not, and are led by scores there too, and by how
        keypoints turn and scale.
        """
        votes = self._matches.votes
        if scores is None:
            return [votes]
        left = best_first(self._left, scores)
        return [votes, left] if code == 0 else [best_first(votes, scores) * self._trust, left * self._trust]

    @cached_property
    def _trust(self) -> Any:
        """How far matches are trusted by their keypoints; it is learnt when first asked for, as easy pairs never do."""
        return 1.0 if self._appearance is None else trust(self._matches.data, self._appearance, self._rng)

    def _sample(self, code: int, plan: Plan, wanted: int, guide: Array) -> tuple[Columns, Candidates]:
        """Sample models of one family, weigh them, and return the informative ones, and refits of them that are no false alarms."""
        matches, family = self._matches, self._families[code]
        samples = draw_from(
            matches.data, family.sample_size, wanted, plan.neighbourhoods, guide, matches.length, N_DRAWS,
            family.locally_affine, self._rng,
        )  # fmt: skip
        models, owner = family.solve(matches.data[samples.indices])
        for reason, count in samples.rejected.items():
            self._rejected[reason] += count
        self._rejected["unsolved"] += int(np.count_nonzero(np.bincount(owner, minlength=len(samples)) == 0))
        self._n_models += len(models)
        members = matches.groups[samples.indices[owner]]
        preferences = np.empty((len(models), len(matches)), np.float32)
        sums, n_decoys = np.empty((2, len(models)))
        for begin in range(0, len(models), _MODELS_AT_ONCE):
            own = slice(begin, begin + _MODELS_AT_ONCE)
            squared = family.squared_residuals(self._data, models[own])
            into = preferences[own], sums[own], n_decoys[own]
            embed_and_sum(squared, matches.length, matches.groups, members[own], matches.votes, into)
        weights = self._significance(sums, n_decoys, expected_preference(family.codimension))
        chosen = cover(preferences, np.where(guide > 0.0, matches.votes, 0.0), weights, sums, plan.n_refitted)
        columns = Columns(
            models[chosen], np.full(len(chosen), code, np.uint8), weights[chosen], self._padded(members[chosen])
        )
        fitted, fits = columns.models, [np.zeros((0, 9))]
        for radius in CLOSING_RADII if family in self._admitted else ():
            radii = np.full(len(chosen), radius * matches.length)
            fitted = refit(family, matches.data, matches.votes, fitted, radii)
            fits.append(fitted)
        return columns, self._meaningful(code, np.vstack(fits))

    def _padded(self, members: Rows) -> Rows:
        """Return members of samples, -1 for those that the largest samples have more."""
        size = max(family.sample_size for family in self._families)
        return np.hstack([members, np.full((len(members), size - members.shape[1]), -1)])

    def _significance(self, sums: Array, n_decoys: Array, expected: Any, free: Any = 0.0) -> Array:
        """Return weights of models, max(0, 1 - D / S)^3, S and D being the mean preferences of matches and of mismatches.

        Matches count by their votes, less those that are `free`: S is their `sums` by all votes. D is the share of decoys that have a
        preference at all, one more of them so that it is never 0, times the preference `expected` of these by the law of the family.
        """
        chance = expected * (1.0 + n_decoys) / (len(self._decoys) + 1.0)
        share = (sums - free) / self._matches.votes.sum()
        weights: Array = np.maximum(0.0, 1.0 - chance / np.maximum(share, 1e-12)) ** SIGNIFICANCE
        return weights

    def _meaningful(self, code: int, models: Array) -> Candidates:
        matches, family = self._matches, self._families[code]
        found = Candidates.of(family, code, models, matches.data, self._decoys, matches.length)
        return meaningful(found, self._families, matches.votes, self._n_tried)

    @property
    def _n_tried(self) -> int:
        """Models that could have become structures: each sampled one, and its refits."""
        return self._n_models * (1 + len(CLOSING_RADII))

    def _select(self, candidates: list[Candidates]) -> Structures:
        """Return structures, after refits of those found among the candidates have joined these.

        A texture that is repeated in one direction has no votes.
        """
        matches = self._matches
        found, _ = extract(Candidates.join(candidates), self._families, self._votes, self._n_tried)
        for code in np.unique(found.codes):
            own = found.take(np.flatnonzero(found.codes == code))
            radii = own.tolerances * matches.length
            models = refit(self._families[code], matches.data, matches.votes, own.models, radii)
            candidates.append(self._meaningful(code, models))
        joined, total, self._lost = Candidates.join(candidates), float(self._votes.sum()), np.zeros(len(matches), bool)
        structures, self._left = extract(joined, self._families, self._votes, self._n_tried)
        while (lost := self._along_lines(structures, joined) & ~self._lost).any():
            self._lost |= lost
            votes = np.where(self._lost, 0.0, self._votes)
            structures, self._left = extract(joined, self._families, votes, self._n_tried, total)
        structures = Structures.join([structures, self._still])
        return structures.take(np.argsort(-structures.evidences, kind="stable"))

    def _along_lines(self, structures: Structures, candidates: Candidates) -> Mask:
        """Tell which matches are a texture that is repeated in one direction: all that a fundamental matrix holds beside a plane."""
        matches, lost = self._matches, np.zeros(len(self._matches), bool)
        planes, total = candidates.take(np.flatnonzero(candidates.codes == 0)), float(self._votes.sum())
        for item in np.flatnonzero(structures.codes > 0) if len(planes) > 0 else ():
            held = self._distances(structures.take(np.array([item])))[:, 0] <= 1.0
            counts = count_votes(planes.steps, np.where(held, self._votes, 0.0))
            gains = evidence(planes, counts, total, self._families, self._n_tried)
            best, step = divmod(int(np.argmax(gains)), gains.shape[1])
            if gains[best, step] > 0.0:
                plane = planes.steps[best] <= step + TOLERANCE
                lost |= repeated_beside(matches.data, held & ~plane, held & plane, matches.keypoints, matches.length)
        return lost

    def _distances(self, structures: Structures) -> Array:
        """Return residuals (n, k) of matches to structures, in their tolerances."""
        matches = self._matches
        squared = squared_residuals(self._families, structures.codes, structures.models, matches.data)
        distances: Array = np.sqrt(squared.T) / (structures.tolerances * matches.length)
        return distances

    def _standing(self) -> tuple[Structures, Array]:
        """Return what stood still as a structure, if it is more than chance and what is around it give, and the votes beside it."""
        matches, family, standing = self._matches, self._families[0], self._matches.standing()
        # Votes of a minimal sample are no evidence, and what lies within the radii below has moved by no more.
        near = np.abs(matches.data - standing).max(axis=1) <= SCALES[-1] * matches.length
        widest = int(np.sum(SCALES[-1] >= RADII)) - 1  # what stood still moved by less than the narrowest noise scale
        if widest < 0 or matches.votes[near].sum() <= family.sample_size:
            return _NONE, matches.votes
        models = family.fit(standing, np.ones((1, len(matches))))
        tried = Candidates.of(family, 0, models, matches.data, self._decoys, matches.length)
        found, votes = extract(tried, self._families, matches.votes, 1, widest=widest)
        return replace(found, still=np.ones(len(found), bool)), votes

    def _score(self, columns: Columns, structures: Structures) -> tuple[Array, Array, Scorer]:
        """Return the scores of matches and of decoys by a forest of the most significant columns and the structures."""
        self._null = self._decoys_of_mismatches()
        best = np.sort(np.argsort(-columns.weights, kind="stable")[:N_COLUMNS])
        used = Columns.join([columns.take(best), self._columns_of(structures)])
        return score(used, self._matches, self._null, self._families, self._rng, self._n_jobs)

    def _decoys_of_mismatches(self) -> Array:
        """Return decoys made of what no structure holds: these stand where mismatches stand.

        Few such matches could be made of little else than true ones: the fewer, the more decoys are made of any matches.
        """
        matches = self._matches
        beyond = matches.data[self._left > 0.0]
        n_beyond = round(N_DECOYS * len(beyond) / (len(beyond) + PRIOR_MATCHES))
        distance = WIDEST_SCALE * matches.length
        first = draw_decoys(beyond, n_beyond, distance, self._rng)
        return np.vstack([first, draw_decoys(matches.data, N_DECOYS - len(first), distance, self._rng)])

    def _columns_of(self, structures: Structures) -> Columns:
        """Return structures as columns; nobody is a member of their samples, as they were fitted to many."""
        own = [self._families[code] for code in structures.codes]
        free = np.array([float(family.sample_size) for family in own])
        expected = np.array([expected_preference(family.codimension) for family in own])
        nobody, matches = self._padded(np.zeros((len(own), 0), np.int64)), self._matches
        squared = squared_residuals(self._families, structures.codes, structures.models, self._data)
        _, sums, n_decoys = embed_and_sum(squared, matches.length, matches.groups, nobody, matches.votes)
        weights = STRUCTURE_WEIGHT * self._significance(sums, n_decoys, expected, free)
        return Columns(structures.models, structures.codes, weights, nobody)

    def _is_over(self, structures: Structures, scores: Array, null_scores: Array, alone: bool) -> bool:
        """Tell whether another round would not pay.

        What is left looks like decoys, or structures explain more than half; and each explains its own well. One family alone has to do
        the first.
        """
        left = self._left
        explained = structures.votes.sum()
        good = np.searchsorted(np.sort(null_scores), scores, side="right") <= LOOKS_GOOD * (1 + len(null_scores)) - 1
        fewest = 1.0 + max(family.sample_size for family in self._families)
        plain = left[good].sum() < fewest + LOOKS_GOOD * left.sum()
        if alone:
            return bool(plain and structures.evidences.sum() > EVIDENCE_PER_VOTE * explained)
        return bool(
            (plain or explained > left.sum()) and explained > 0.0 and (structures.evidences > structures.votes).all()
        )

    def _without_repetitions(self, found: Found) -> Found:
        """Return the search's result without structures of repeated texture, and which of the others are planes in one place."""
        structures, matches = found.structures, self._matches
        if len(structures) == 0:
            return found
        distances = self._distances(structures)
        codimensions = np.array([family.codimension for family in self._families])
        planes = (codimensions[structures.codes] > codimensions.min()) & ~structures.still
        repeated, mixed = tell_repetitions(matches.data, distances, matches.keypoints, matches.length, planes)
        found = replace(found, mixed=mixed)
        if not (repeated.any() or (self._lost & ~(distances <= 1.0).any(axis=1)).any()):
            return found
        return self.without(found, repeated)

    def without(self, found: Found, gone: Mask, motions: Models | None = None) -> Found:
        """Return the search's result without some structures, and without the columns that speak for these.

        Of `motions` those join that have positive -ln NFA among the matches that no structure holds, kept or gone, and that are no
        repeated texture.
        """
        structures, matches = found.structures, self._matches
        within = self._distances(structures) <= 1.0
        held = within[:, ~gone].any(axis=1)
        lost = (within.any(axis=1) | self._lost) & ~held
        columns = found.scorer.columns
        columns = columns.take(np.arange(len(columns) - len(structures)))
        squared = squared_residuals(self._families, columns.codes, columns.models, matches.data)
        near = squared <= (CLOSING_RADII[1] * matches.length) ** 2
        fair = columns.take(np.flatnonzero(near @ (matches.votes * held) >= near @ (matches.votes * lost)))
        structures, mixed = structures.take(np.flatnonzero(~gone)), found.mixed[~gone][:, ~gone]
        if motions:
            code, beside = int(motions.codes[0]), np.where(held | lost, 0.0, matches.votes)
            tried = Candidates.of(
                self._families[code], code, motions.models, matches.data, self._decoys, matches.length
            )
            more, _ = extract(tried, self._families, beside, self._n_tried, float(matches.votes.sum()))
            structures = Structures.join([structures, more])
            structures = structures.take(np.argsort(-structures.evidences, kind="stable"))
        scored = self._score(fair, structures)
        return Found(structures, mixed, self._null, *scored, found.rejected, found.n_models)


def best_first(left: Array, scores: Array) -> Array:
    """Return sampling weights: votes times (1 - q) / q, q being the share of the votes left that look at least as good."""
    rows = np.flatnonzero(left > 0.0)
    rows = rows[np.argsort(scores[rows], kind="stable")]
    q = (np.arange(len(rows)) + 1.0) / len(rows) if len(rows) else np.zeros(0)
    guide = np.zeros(len(left))
    # The last one has a little weight too: weight 0 is for what is explained.
    guide[rows] = left[rows] * ((1.0 - q) / np.maximum(q, 1e-12) + 1e-9)
    return guide


@dataclass(frozen=True)
class Scorer:
    """A forest, and what its rows are made of: columns, and the largest sum of a match's weighted preferences."""

    forest: RuzHashForest
    columns: Columns
    families: Families
    length: float
    most: float

    def others(self, data: Array, groups: Rows) -> Array:
        """Return anomaly scores of correspondences that the forest was not grown on."""
        agreement = _agreement(self.columns, self.families, data, groups, self.length)
        return self.forest.anomaly_scores(as_rows(agreement, self.most))


def score(
    columns: Columns, matches: MatchSet, null: Array, families: Families, rng: np.random.Generator, n_jobs: int
) -> tuple[Array, Array, Scorer]:
    """Return anomaly scores of matches and of decoys: 2^(-h / c) of one RuzHash forest grown on the matches."""
    forest = RuzHashForest(n_trees=N_TREES, subsample_size=SUBSAMPLE, branching_factor=BRANCHES, rng=rng, n_jobs=n_jobs)
    n, groups = len(matches), np.append(matches.groups, np.full(len(null), _NOWHERE))
    agreement = _agreement(columns, families, np.vstack([matches.data, null]), groups, matches.length)
    most = max(float(agreement[:, :n].sum(axis=0).max(initial=0.0)), 1e-30)
    rows = as_rows(agreement, most)
    scores, null_scores = forest.fit_anomaly_scores(rows[:n], rows[n:])
    return scores, null_scores, Scorer(forest, columns, families, matches.length, most)


def _agreement(columns: Columns, families: Families, data: Array, groups: Rows, length: float) -> NDArray[np.float32]:
    squared = squared_residuals(families, columns.codes, columns.models, data)
    return embed(squared, length, groups, columns.members) * columns.weights.astype(np.float32)[:, None]


def cover(preferences: NDArray[np.float32], votes: Array, weights: Array, sums: Array, n_wanted: int) -> Rows:
    """Choose models greedily by their weighted sum of preferences; what one prefers fully counts half for the next.

    `sums` (m,) are those by these votes or larger ones.
    """
    m = len(preferences)
    chosen = np.empty(min(n_wanted, m), np.int64)
    # A little more, so that by rounding too none is less than a sum is.
    bounds = sums * weights * (1.0 + 1e-9)
    heap = np.argsort(-bounds, kind="stable")
    return chosen[: _cover_kernel(preferences, weights, bounds, votes.copy(), np.full(m, -1), heap, chosen)]


@jit
def _cover_kernel(preferences: Any, weights: Any, bounds: Any, left: Any, fresh: Any, heap: Any, chosen: Any) -> int:
    """A model's sum only ever falls: what was last known of it bounds it, and only the largest bounds are summed anew."""
    n_chosen = 0
    while n_chosen < len(chosen) and bounds[heap[0]] > 0.0:
        best = heap[0]
        own = preferences[best]
        if fresh[best] == n_chosen:
            chosen[n_chosen], bounds[best] = best, -1.0
            n_chosen += 1
            for row in range(len(left)):
                left[row] /= 1.0 + own[row]
        else:
            bounds[best], fresh[best] = _product(left, own) * weights[best], n_chosen
        at, child = 0, 1
        while child < len(heap):
            if child + 1 < len(heap) and _comes_before(bounds, heap[child + 1], heap[child]):
                child += 1
            if not _comes_before(bounds, heap[child], best):
                break
            heap[at], at, child = heap[child], child, 2 * child + 1
        heap[at] = best
    return n_chosen


@jit
def _comes_before(bounds: Any, one: int, other: int) -> Any:
    return bounds[one] > bounds[other] or (bounds[one] == bounds[other] and one < other)


@jit
def _product(left: Any, own: Any) -> float:
    """Return a sum of products in four parts, none of which waits for the others."""
    a = b = c = d = 0.0
    whole = np.uint64(len(left) // 4 * 4)
    for row in range(np.uint64(0), whole, np.uint64(4)):
        a += left[row] * own[row]
        b += left[row + np.uint64(1)] * own[row + np.uint64(1)]
        c += left[row + np.uint64(2)] * own[row + np.uint64(2)]
        d += left[row + np.uint64(3)] * own[row + np.uint64(3)]
    for row in range(whole, np.uint64(len(left))):
        a += left[row] * own[row]
    return (a + b) + (c + d)
