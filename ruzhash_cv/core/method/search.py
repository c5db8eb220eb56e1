"""The search: stationary matches first, then rounds of sampling until the unexplained matches look like mismatches.

samples -> models -> preferences, weighed against decoys -> structures by evidence -> RuzHash forest -> scores
        -> unexplained matches that score best are sampled in the next round

It ends early if nothing has evidence and scores are chance, or if a round explains little more than the one before. With the caller's
`confidence`, neither ends it: the smallest structure that has evidence must have been sampled with that confidence.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from ruzhash_cv.core.families.base import Models
from ruzhash_cv.core.method.evidence import Candidates, candidates, extract, meaningful, select
from ruzhash_cv.core.method.fits import refits
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.core.method.preferences import Columns, best_models
from ruzhash_cv.core.method.sampling import Problem, decoys_of_unexplained, draw_samples, nearest_rows
from ruzhash_cv.core.method.scene import Structures
from ruzhash_cv.core.method.scores import Scores, score
from ruzhash_cv.foundation.arrays import COORDINATES, Array, Rows

#: Samples (m, s) of a family, by its number; how many draws (3,) were degenerate; and the proposal weights (n,) they were drawn by.
Drawn: TypeAlias = tuple[int, Rows, Rows, Array]
#: Why a search ends that has found what there is.
EXPLAINED = "unexplained matches score as mismatches do"


@dataclass
class Tried:
    """What a search has tried so far: columns, candidates, how many rounds, models and samples (a family's number -> their number), and
    how many samples (4,) were rejected, by reason. `ended` says why it ended.
    """

    parameters: Parameters
    columns: Columns = field(default_factory=Columns.none)
    candidates: Candidates = field(default_factory=Candidates.none)
    n_rounds: int = 0
    n_models: int = 0
    n_samples: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    ended: str | None = None
    rejected: Rows = field(default_factory=lambda: np.zeros(4, np.int64))
    # (m, 9): motions that gave way to planes
    motions: Array = field(default_factory=lambda: np.zeros((0, 9)))

    @property
    def n(self) -> int:
        """How many models could have become structures: each sampled one, and its refits."""
        return self.n_models * (1 + len(self.parameters.refit_radii))

    def counted(self, family_id: int, n: int) -> int:
        """Return how many samples of a family are drawn, n or as many as the caller allows, and count them."""
        most = self.parameters.max_samples
        n = n if most is None else max(min(n, most - self.n_samples[family_id]), 0)
        self.n_samples[family_id] += n
        return n

    def add(self, drawn: list[Drawn], problem: Problem) -> None:
        """Add the best models of all samples that a round has drawn, and refits of these."""
        matches, _, families, parameters = problem
        best, fitted = list[Columns](), list[Models]()
        for family_id, samples, degenerate, proposal in drawn:
            matrices, owner = families[family_id].solve(matches.data[samples])
            n_unsolved = len(samples) - np.count_nonzero(np.bincount(owner, minlength=1))
            self.n_models += len(matrices)
            self.rejected = self.rejected + [*degenerate, n_unsolved]
            # Filled up to the size of the largest samples.
            groups = np.full((len(matrices), int(families.sample_sizes.max())), -1)
            groups[:, : samples.shape[1]] = matches.groups[samples[owner]]
            models = Models.of_family(matrices, family_id)
            best.append(best_models(models, groups, proposal, parameters.n_refits, problem))
        self.columns = Columns.join([self.columns, *best])
        for family_id in {family_id for family_id, *_ in drawn if families.structural[family_id]}:
            chosen = [models.matrices for models, (of, *_) in zip(best, drawn, strict=True) if of == family_id]
            refitted = refits(families[family_id], matches, np.concatenate(chosen), parameters)
            fitted.append(Models.of_family(refitted, family_id))
        if fitted:
            given = meaningful(candidates(Models.join(fitted), matches.data, problem), problem, self.n)
            self.candidates = Candidates.join([self.candidates, given])


def search(problem: Problem, rng: np.random.Generator) -> tuple[Structures, Scores, Tried]:
    """Sample in rounds until what no structure explains looks like decoys, or another rule of `why_ended` holds.

    The first round samples only the first family, of the most specific models: if it explains everything, others could only add
    mismatches. Returns structures, strongest first, scores, and what was tried.
    """
    matches, _, families, parameters = problem
    still, weights = find_stationary(problem)
    unexplained, leading, explained = matches.weights, None, 0.0
    tried = Tried(parameters)
    for round_number in itertools.count():
        first_only = round_number == 0 and len(families) > 1 and families.structural[0]
        given = unexplained, leading, problem, rng
        sample(tried, range(1 if first_only else len(families)), *given)
        if first_only and matches.calibrated:
            planes, _ = extract(tried.candidates, weights, problem, tried.n)
            first_only = is_evident(planes, problem, first_only)
            if (
                not first_only
            ):  # five matches of known cameras are all true nearly as often as four: no scores need to lead these
                sample(tried, range(1, len(families)), *given)
        tried.n_rounds += 1
        structures, unexplained, tried.candidates = select(tried.candidates, weights, problem, tried.n)
        structures = Structures.join([structures, still])
        structures = structures.take(np.argsort(-structures.evidences, kind="stable"))
        decoys = decoys_of_unexplained(matches, unexplained, parameters, rng)
        scores = score(tried.columns, structures, decoys, problem, rng)
        before, explained = explained, float(structures.support.sum())
        if converged(structures, unexplained, scores, problem, first_only) and not has_more(
            tried, structures, unexplained, weights, decoys, problem, rng
        ):
            tried.ended = EXPLAINED
        elif (
            parameters.confidence is None
            and round_number > 0
            and settled(explained, before, unexplained, scores, problem)
        ):
            tried.ended = "the last round explained little more"
        elif parameters.confidence is None and round_number > 1 and hopeless(explained, unexplained, scores, problem):
            tried.ended = "nothing is found, and matches score as mismatches do"
        else:
            tried.ended = why_enough(tried, problem)
        if tried.ended is not None:
            break
        leading = scores.of_matches
    if not families.is_plane(structures).all():
        structures, scores = with_planes_apart(structures, still, scores, weights, tried, problem, rng)
    return structures, scores, tried


def sample(
    tried: Tried,
    family_ids: range,
    unexplained: Array,
    leading: Array | None,
    problem: Problem,
    rng: np.random.Generator,
) -> None:
    """Draw the samples of some families in a round, and add their best models to what was tried."""
    matches, _, families, parameters = problem
    drawn = list[Drawn]()
    for family_id in family_ids:
        proposals = proposal_weights(family_id == 0, matches.weights, unexplained, leading)
        n = tried.counted(family_id, samples_wanted(problem, family_id, tried.n_rounds)) // len(proposals)
        for proposal in proposals:
            samples = draw_samples(matches.data, proposal, n, families[family_id], matches.unit, parameters, rng)
            drawn.append((family_id, *samples, proposal))
    tried.add(drawn, problem)


def with_planes_apart(
    structures: Structures,
    still: Structures,
    scores: Scores,
    weights: Array,
    tried: Tried,
    problem: Problem,
    rng: np.random.Generator,
) -> tuple[Structures, Scores]:
    """Return structures and scores with planes in place of motions that hold them, if together these have more evidence.

    Planes that moved apart were sampled in some round, but some matrix fits any two of them.
    """
    matches, _, families, parameters = problem
    apart, unexplained = extract(tried.candidates, weights, problem, tried.n, by_planes=True)
    apart, motions = Structures.join([apart, still]), ~families.is_plane(structures)
    if families.is_plane(apart).sum() == np.count_nonzero(~motions):
        return structures, scores
    tried.motions = structures.matrices[motions]
    apart = apart.take(np.argsort(-apart.evidences, kind="stable"))
    decoys = decoys_of_unexplained(matches, unexplained, parameters, rng)
    return apart, score(tried.columns, apart, decoys, problem, rng)


def has_more(
    tried: Tried,
    structures: Structures,
    unexplained: Array,
    weights: Array,
    decoys: Array,
    problem: Problem,
    rng: np.random.Generator,
) -> bool:
    """Return whether structures explain more matches with samples of the unexplained ones alone, the most crowded of them first.

    Scores cannot tell: a match scores as a mismatch does unless some sampled model agrees with it. But what moves together is close
    together in both images: no samples are drawn if the unexplained matches are no more crowded than as many `decoys` (N, 4) of them.
    """
    matches, _, families, parameters = problem
    if unexplained.sum() <= families.sample_sizes.min():
        return False
    size, n_left = int(families.sample_sizes.max()), int(np.count_nonzero(unexplained))
    distances = distances_to_neighbours(matches.data, unexplained, size)
    of_decoys = distances_to_neighbours(decoys[:n_left], np.ones(min(n_left, len(decoys))), size)
    within = np.append(np.sort(of_decoys), np.inf)[int(parameters.significant_share * len(of_decoys))]
    if np.count_nonzero(distances < within) <= 2.0 + parameters.significant_share * n_left:
        return False
    proposal, drawn = best_first(unexplained, distances), list[Drawn]()
    for family_id, family in enumerate(families):
        n_samples = tried.counted(family_id, samples_wanted(problem, family_id, 0) // 2)
        samples = draw_samples(matches.data, proposal, n_samples, family, matches.unit, parameters, rng)
        drawn.append((family_id, *samples, unexplained))
    tried.add(drawn, problem)
    with_more, _, tried.candidates = select(tried.candidates, weights, problem, tried.n)
    # The most crowded mismatches have a little evidence, and what had little of it may join a strong structure: neither is more.
    before, after = (each.support[each.evidences > parameters.motion_cost].sum() for each in (structures, with_more))
    return bool(after > before + 1.0 and with_more.support.sum() > structures.support.sum() + 1.0)


def distances_to_neighbours(data: Array, weights: Array, k: int) -> Array:
    """Return how far (n,) in (x1, y1, x2, y2) each match that has weight is from its k-th nearest such match; others infinitely."""
    rows, distances = np.flatnonzero(weights > 0.0), np.full(len(weights), np.inf)
    if len(rows) > 0:
        coordinates = np.ascontiguousarray(data[rows, COORDINATES])
        last = nearest_rows(coordinates, np.arange(len(rows)), 1 + k)[:, -1]
        distances[rows] = np.linalg.norm(coordinates - coordinates[last], axis=1)
    return distances


def why_enough(tried: Tried, problem: Problem) -> str | None:
    """Return why no more samples are drawn, None if more are: rounds or samples are used up, or the smallest structure was sampled."""
    parameters, structural = problem.parameters, problem.families.structural.index(True)
    if parameters.max_samples is None:
        return f"{tried.n_rounds} rounds are the most" if tried.n_rounds >= parameters.max_rounds else None
    if len(tried.n_samples) < len(problem.families):  # the first round draws from one alone
        return None
    if max(tried.n_samples.values()) >= parameters.max_samples:
        return f"{parameters.max_samples} samples of a family are the most"
    if parameters.confidence is None:
        return None
    size, total = smallest_structure(tried, problem, structural), float(problem.matches.weights.sum())
    hit = (size / total) ** problem.families[structural].sample_size
    if tried.n_samples[structural] * math.log1p(-min(hit, 1.0 - 1e-12)) > math.log1p(-parameters.confidence):
        return None
    return f"{size:.0f} matches of one structure were sampled with confidence {parameters.confidence:g}"


def smallest_structure(tried: Tried, problem: Problem, family_id: int) -> float:
    """Return the least number of matches within the widest radius of a family that is no false alarm, where decoys lie as usual."""
    matches, decoys, families, parameters = problem
    family, size = families[family_id], float(families[family_id].sample_size)
    models = tried.columns.matrices[tried.columns.family_ids == family_id]
    reach = parameters.widest_tolerance(family.codimension) / parameters.tolerance_ratio * matches.unit
    n_within = np.count_nonzero(family.squared_residuals(decoys, models) <= reach**2, axis=1)
    share = (1.0 + np.median(n_within)) / (1.0 + len(decoys)) if len(models) else 1.0
    others = float(matches.weights.sum()) - size
    counts = np.arange(1.0, others)
    with np.errstate(divide="ignore"):
        divergence = counts * np.log(counts / others / share) + (others - counts) * np.log(
            (1.0 - counts / others) / (1.0 - share)
        )
    enough = (counts > share * others) & (divergence > math.log(max(others * tried.n, 1.0)))
    return size + float(counts[enough.argmax()]) if enough.any() else others + size


def find_stationary(problem: Problem) -> tuple[Structures, Array]:
    """Return the matches that did not move as a structure, if they are one, and the weights (n,) of the matches beside it.

    They are a watermark or a black border, say, and are one if they are more than chance and their surroundings give.
    """
    matches, _, families, parameters = problem
    family, unmoved, scale = families[0], matches.unmoved(), float(parameters.scales[-1])
    # Weights of a minimal sample are no evidence, and a stationary match moved by no more than the narrowest noise scale.
    near = np.abs(matches.data - unmoved)[:, COORDINATES].max(axis=1) <= scale * matches.unit
    widest = int(np.sum(scale >= parameters.radii)) - 1
    if widest < 0 or matches.weights[near].sum() <= family.sample_size or matches.is_on_a_line:
        return Structures.none(), matches.weights
    model = Models.of_family(family.fit(unmoved, np.ones((1, len(matches)))), 0)
    still, others = extract(candidates(model, matches.data, problem), matches.weights, problem, 1, widest=widest)
    return replace(still, stationary=np.ones(len(still), bool)), others


def samples_wanted(problem: Problem, family_id: int, round_number: int) -> int:
    """Return how many samples of a family a round draws: as many as all rounds before it.

    Of few matches the first draws as many as these, or more if keypoints have several matches, of which at most one is right.
    """
    matches, _, families, parameters = problem
    n_alternatives = len(matches) / max(float(matches.weights.sum()), 1.0)
    n_first = parameters.plane_samples if families[family_id].is_plane else parameters.motion_samples
    return min(n_first, int(n_alternatives * len(matches))) * int(2 ** max(round_number - 1, 0))


def proposal_weights(first: bool, weights: Array, unexplained: Array, scores: Array | None) -> list[Array]:
    """Return the proposal weights (n,) by which samples of a family are drawn: one array for each share of the samples.

    Without scores all samples are drawn by `weights`. With scores half of them are drawn among all matches, half among the unexplained
    ones. An unexplained match has the proposal weight (1 - q) / q, where q is the share of these that scores at least as well. Among
    all matches the `first` family is drawn evenly, because its small samples are often free of mismatches. The larger samples of other
    families rarely are, so they are drawn by the scores there too.
    """
    if scores is None:
        return [weights]
    left = best_first(unexplained, scores)
    return [weights, left] if first else [best_first(weights, scores), left]


def best_first(weights: Array, scores: Array) -> Array:
    """Return weights times (1 - q) / q, q being the share of the matches that have weight and score at least as well."""
    rows = np.flatnonzero(weights > 0.0)
    rows = rows[np.argsort(scores[rows], kind="stable")]
    q = (np.arange(len(rows)) + 1.0) / len(rows) if len(rows) else np.zeros(0)
    proposal = np.zeros(len(weights))
    # The last one has a little weight too: weight 0 means explained.
    proposal[rows] = weights[rows] * ((1.0 - q) / np.maximum(q, 1e-12) + 1e-9)
    return proposal


def converged(structures: Structures, unexplained: Array, scores: Scores, problem: Problem, first_only: bool) -> bool:
    """Return whether another round would not pay.

    The unexplained matches must score as decoys do, and each structure must have more evidence than matches. With the first family
    alone structures need an evidence of `evidence_per_match` for each match explained.
    """
    return is_evident(structures, problem, first_only) and surplus(unexplained, scores, problem) < 1.0


def is_evident(structures: Structures, problem: Problem, first_only: bool) -> bool:
    """Return whether structures have the evidence that `converged` asks of them."""
    explained = float(structures.support.sum())
    if first_only:
        return float(structures.evidences.sum()) > problem.parameters.evidence_per_match * explained
    return explained > 0.0 and bool((structures.evidences > structures.support).all())


def hopeless(explained: float, unexplained: Array, scores: Scores, problem: Problem) -> bool:
    """Return whether nothing has evidence, and matches score little better than decoys."""
    return explained == 0.0 and surplus(unexplained, scores, problem) < problem.parameters.hopeless_surplus


def settled(explained: float, before: float, unexplained: Array, scores: Scores, problem: Problem) -> bool:
    """Return whether the structures explain little more than a round earlier, and a good share of the matches or all but mismatches."""
    total, parameters = float(problem.matches.weights.sum()), problem.parameters
    if explained == 0.0 or explained - before > parameters.settled_gain * explained:
        return False
    return explained > parameters.settled_share * total or surplus(unexplained, scores, problem) < 1.0


def surplus(unexplained: Array, scores: Scores, problem: Problem) -> float:
    """Return how many unexplained matches score better than nearly all decoys, as a multiple of those that may by chance."""
    parameters, n_decoys = problem.parameters, len(scores.of_decoys)
    as_good = np.searchsorted(np.sort(scores.of_decoys), scores.of_matches, side="right")
    significant = as_good <= parameters.significant_share * (1 + n_decoys) - 1
    allowed = 1.0 + int(problem.families.sample_sizes.max()) + parameters.significant_share * unexplained.sum()
    return float(unexplained[significant].sum() / allowed)
