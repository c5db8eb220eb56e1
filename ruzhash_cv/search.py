"""The search: what is stationary, then rounds of sampling by proposal weights until what is unexplained looks like mismatches.

samples -> models -> preferences, weighed against decoys -> structures by evidence -> RuzHash forest -> scores
        -> what is unexplained, and scores best, is sampled in the next round
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.hypotheses import Columns, Pool, sample_hypotheses
from ruzhash_cv.models.base import Models
from ruzhash_cv.problem import Problem
from ruzhash_cv.refinement import divide
from ruzhash_cv.repetition import Neighbours, find_repetitions, repeated_beside
from ruzhash_cv.scoring import Scores, most_significant
from ruzhash_cv.selection import (
    Hypotheses,
    Structures,
    Tests,
    count_weights,
    evidence,
    extract,
    strongest_first,
)
from ruzhash_cv.stationary import Stationary


@dataclass(frozen=True)
class Selection:
    """Structures, strongest first, the weights (n,) that none explains, and the matches (n,) discarded as repeated texture."""

    structures: Structures
    unexplained: Array
    discarded: Mask


@dataclass(frozen=True)
class Estimate:
    """What the search has found.

    `overlapping` (k, k) tells which pairs of structures are planes of which the smaller is interleaved with the larger. Neither this
    nor `scores` covers structures that join, or are divided, later.
    """

    structures: Structures
    discarded: Mask
    overlapping: Mask
    scores: Scores
    pool: Pool


def find_structures(problem: Problem, rng: np.random.Generator) -> Estimate:
    """Sample in rounds until what no structure explains looks like decoys, or `max_rounds`.

    The first round samples only the first family, of the most specific models: where it explains everything, others could only add
    mismatches.
    """
    families, stages, parameters = problem.families, problem.stages, problem.parameters
    matches, stationary = problem.matches, stages.find_stationary(problem)
    pool, unexplained, leading = Pool(), matches.weights, None
    for round_number in range(parameters.max_rounds):
        first_only = round_number == 0 and len(families) > 1 and families.structural[0]
        for family_id in range(1 if first_only else len(families)):
            proposals = stages.propose(family_id == 0, matches.weights, unexplained, leading)
            n_samples = samples_wanted(problem, family_id, round_number) // len(proposals)
            for proposal in proposals:
                pool = sample_hypotheses(pool, problem, family_id, proposal, n_samples, rng)
        selection, pool = select(pool, problem, stationary)
        unexplained = selection.unexplained
        columns = most_significant(Columns.join(list(pool.columns)), parameters.n_columns)
        scores = stages.score(columns, selection.structures, unexplained, problem, rng)
        if stages.converged(selection, scores, problem, first_only):
            break
        leading = scores.of_matches
    structures = selection.structures
    apart = np.zeros((len(structures),) * 2, bool)
    found: Estimate = stages.drop_repetitions(
        Estimate(structures, selection.discarded, apart, scores, pool), problem, rng
    )
    return found


def samples_wanted(problem: Problem, family_id: int, round_number: int) -> int:
    """Return how many samples of a family a round draws: as many as all rounds before it."""
    parameters, is_plane = problem.parameters, problem.families[family_id].is_plane
    n_first = parameters.plane_samples if is_plane else parameters.motion_samples
    return min(n_first, len(problem.matches)) * int(2 ** max(round_number - 1, 0))


def proposal_weights(first: bool, weights: Array, unexplained: Array, scores: Array | None) -> list[Array]:
    """Return the proposal weights (n,) by which samples of a family are drawn: one array for each share of the samples.

    Without scores all samples are drawn by `weights`. With scores half of them are drawn among all matches, half among the unexplained
    ones. An unexplained match has the proposal weight (1 - q) / q, where q is the share of these that scores at least as well. Among
    all matches the `first` family is drawn evenly, because its small samples are often free of mismatches. The larger samples of other
    families seldom are, so they are drawn by the scores there too.
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


def select(pool: Pool, problem: Problem, stationary: Stationary) -> tuple[Selection, Pool]:
    """Return the structures found among the hypotheses and among refits of a first selection, and the pool with these refits.

    Matches of texture that is repeated in one direction are discarded: they have no weight.
    """
    matches, radii, weights = problem.matches, problem.radii, stationary.others
    tests = Tests(pool.n_tried(len(problem.parameters.refit_radii)), float(weights.sum()))
    found, _ = extract(Hypotheses.join(list(pool.hypotheses)), weights, radii, tests)
    for family_id in np.unique(found.family_ids):
        own = found.take(np.flatnonzero(found.family_ids == family_id))
        models = problem.stages.refit(problem.families[family_id], matches, own.models, own.tolerances)
        pool = pool.with_hypotheses(problem, Models(models, own.family_ids))
    hypotheses, discarded = Hypotheses.join(list(pool.hypotheses)), np.zeros(len(matches), bool)
    structures, unexplained = extract(hypotheses, weights, radii, tests)
    find_texture = problem.stages.find_texture
    while (more := find_texture(structures, hypotheses, problem, weights, tests) & ~discarded).any():
        discarded |= more
        structures, unexplained = extract(hypotheses, np.where(discarded, 0.0, weights), radii, tests)
    structures = strongest_first(Structures.join([structures, stationary.structure]))
    return Selection(structures, unexplained, discarded), pool


def texture_along_lines(
    structures: Structures, hypotheses: Hypotheses, problem: Problem, weights: Array, tests: Tests
) -> Mask:
    """Tell which matches are texture repeated in one direction: those of a motion that are off its plane and repeat it."""
    matches, families, parameters = problem.matches, problem.families, problem.parameters
    found = np.zeros(len(matches), bool)
    planes = hypotheses.take(np.flatnonzero(families.is_plane(hypotheses)))
    neighbours = Neighbours.of(matches, parameters)
    for item in np.flatnonzero(~families.is_plane(structures)) if len(planes) > 0 else ():
        held = held_by(structures.take(np.array([item])), problem)[0]
        counts = count_weights(planes.radius_indices, np.where(held, weights, 0.0), parameters.n_radius_indices)
        gains = evidence(planes, counts, tests.total, problem.radii.rules, tests.n_tried)
        best, step = divmod(int(np.argmax(gains)), gains.shape[1])
        if gains[best, step] > 0.0:
            plane = planes.radius_indices[best] <= step + parameters.tolerance_steps
            found |= repeated_beside(matches, held & ~plane, held & plane, neighbours)
    return found


def held_by(structures: Structures, problem: Problem) -> Mask:
    """Tell which matches lie within the tolerances of structures, (k, n)."""
    return problem.families.in_tolerances(structures, structures.tolerances, problem.matches.data) <= 1.0


def converged(selection: Selection, scores: Scores, problem: Problem, first_only: bool) -> bool:
    """Tell whether another round would not pay.

    Each structure must have more evidence than matches, and either the unexplained matches score as decoys do, or structures explain
    more than half of all matches. With the first family alone the unexplained matches must score as decoys do, and structures need an
    evidence of `evidence_per_match` for each match explained.
    """
    structures, unexplained, parameters = selection.structures, selection.unexplained, problem.parameters
    explained, n_decoys = structures.weights.sum(), len(scores.of_decoys)
    as_good = np.searchsorted(np.sort(scores.of_decoys), scores.of_matches, side="right")
    significant = as_good <= parameters.significant_share * (1 + n_decoys) - 1
    allowed = 1.0 + int(problem.families.sample_sizes.max()) + parameters.significant_share * unexplained.sum()
    looks_random = unexplained[significant].sum() < allowed
    if first_only:
        return bool(looks_random and structures.evidences.sum() > parameters.evidence_per_match * explained)
    enough = looks_random or explained > unexplained.sum()
    return bool(enough and explained > 0.0 and (structures.evidences > structures.weights).all())


def drop_repetitions(estimate: Estimate, problem: Problem, rng: np.random.Generator) -> Estimate:
    """Return the estimate without structures of repeated texture, and which of the others are overlapping planes."""
    structures, families = estimate.structures, problem.families
    if len(structures) == 0:
        return estimate
    within, parameters = held_by(structures, problem), problem.parameters
    planes = families.is_plane(structures) & ~structures.stationary & (families.motion_id is not None)
    neighbours = Neighbours.of(problem.matches, parameters)
    repeated, overlapping = find_repetitions(problem.matches, within, planes, neighbours, parameters.small_share)
    estimate = replace(estimate, overlapping=overlapping)
    if not (repeated.any() or (estimate.discarded & ~within.any(axis=0)).any()):
        return estimate
    return without(estimate, repeated, problem, rng)


def without(
    estimate: Estimate, dropped: Mask, problem: Problem, rng: np.random.Generator, motions: Models | None = None
) -> Estimate:
    """Return the estimate without the structures that are `dropped` (k,), and without the columns that agree with these.

    A column agrees with these if the matches near it that are dropped or discarded weigh more than those that are kept. Those of
    `motions` join the structures that have positive -ln NFA among the other matches.
    """
    structures, matches, parameters = estimate.structures, problem.matches, problem.parameters
    within = held_by(structures, problem)
    held = within[~dropped].any(axis=0)
    removed = (within.any(axis=0) | estimate.discarded) & ~held
    columns = estimate.scores.columns
    columns = columns.take(np.arange(len(columns) - len(structures)))
    near = problem.families.squared_residuals(columns, matches.data) <= (parameters.refit_radii[1] * matches.unit) ** 2
    fair = near @ (matches.weights * held) >= near @ (matches.weights * removed)
    columns = columns.take(np.flatnonzero(fair))
    structures = structures.take(np.flatnonzero(~dropped))
    overlapping = estimate.overlapping[~dropped][:, ~dropped]
    if motions:
        tests = Tests(estimate.pool.n_tried(len(parameters.refit_radii)), float(matches.weights.sum()))
        tried = problem.radii.hypotheses(motions, matches.data, problem.decoys)
        more, _ = extract(tried, np.where(held | removed, 0.0, matches.weights), problem.radii, tests)
        structures = strongest_first(Structures.join([structures, more]))
    unexplained = np.where(held_by(structures, problem).any(axis=0), 0.0, matches.weights)
    columns = most_significant(columns, parameters.n_columns)
    scores = problem.stages.score(columns, structures, unexplained, problem, rng)
    return Estimate(structures, estimate.discarded, overlapping, scores, estimate.pool)


def divided(estimate: Estimate, problem: Problem) -> Estimate:
    """Return the estimate with wide planes replaced by the neighbouring ones that they hold."""
    n_tried = estimate.pool.n_tried(len(problem.parameters.refit_radii))
    structures = divide(estimate.structures, problem.matches, problem.decoys, problem.radii, n_tried)
    return replace(estimate, structures=structures)
