"""Overlapping planes: where two planes are seen in one place, only one can be there.

Repeated windows need not compete for keypoints. Hundreds of them, matched one window off, are a plane as large as the true one. The
true one is the one whose motion holds more matches, where a flagged match counts 1 - p: a wall moves as the things before it do.
"""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Mask
from ruzhash_cv.labelling import is_overlay, label_matches
from ruzhash_cv.motions import MotionProblem, Motions, find_motions
from ruzhash_cv.problem import Problem
from ruzhash_cv.refinement import refine_structures
from ruzhash_cv.search import Estimate, without


def resolve_overlaps(
    estimate: Estimate, problem: Problem, rng: np.random.Generator, *, join_motions: bool = True
) -> Estimate:
    """Return the estimate without overlapping planes of weaker motions; the motions of those kept join the structures."""
    if not estimate.overlapping.any():
        return estimate
    false, motions = false_planes(estimate, problem)
    if not false.any():
        return estimate
    return without(estimate, false, problem, rng, motions if join_motions else None)


def false_planes(estimate: Estimate, problem: Problem) -> tuple[Mask, Motions]:
    """Tell which structures are planes that overlap with those of stronger motions, and return the rigid motions of the others."""
    matches, families = problem.matches, problem.families
    structures = refine_structures(estimate.structures, matches, problem.radii)
    labelling = label_matches(structures, matches, estimate.scores.of_matches, estimate.scores, problem)
    overlays, weights = is_overlay(structures, labelling, matches), labelling.match_weights(matches.weights)
    motions, _ = find_motions(MotionProblem(structures, problem.radii, matches, weights, labelling.labels, overlays))
    rank, false = np.argmax(motions.holds, axis=0), np.zeros(len(structures), bool)
    for plane in np.argsort(rank, kind="stable"):
        false[plane] = (estimate.overlapping[plane] & (rank < rank[plane]) & ~false).any()
    rigid = ~families.is_plane(motions)
    return false, motions.take(np.flatnonzero(rigid & (motions.holds & ~false).any(axis=1)))
