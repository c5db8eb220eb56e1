"""Overlapping planes: where two planes are seen in one place, only one can be there.

Repeated windows need not compete for keypoints. Hundreds of them, matched one window off, are a plane as large as the true one. The
true one is the one whose motion holds more matches, where a flagged match counts by the share of these that score no better: a wall
moves as the things before it do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ruzhash_cv._arrays import Mask
from ruzhash_cv.labelling import is_overlay, label_matches
from ruzhash_cv.motions import MotionProblem, Motions, find_motions
from ruzhash_cv.problem import Problem
from ruzhash_cv.refinement import refine_structures
from ruzhash_cv.search import Estimate, without
from ruzhash_cv.selection import Structures, strongest_first


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


def join_motions(estimate: Estimate, problem: Problem) -> Estimate:
    """Return the estimate with the rigid motions among the structures that hold several planes and nothing else.

    Mismatches around one plane may seem to be a motion of it. Two planes that fit one fundamental matrix are none by chance.
    """
    motions, parameters = motions_of(estimate, problem), problem.parameters
    planes = problem.families.is_plane(estimate.structures)
    new = ((motions.holds & planes).sum(axis=1) > 1) & ~(motions.holds & ~planes).any(axis=1)
    motions = motions.take(np.flatnonzero(new & ~problem.families.is_plane(motions)))
    radii = motions.tolerances / (problem.matches.unit * parameters.tolerance_ratio)
    indices = np.searchsorted(parameters.radii, radii * (1.0 - 1e-9))
    within = problem.families.in_tolerances(motions, motions.tolerances, problem.matches.data) <= 1.0
    moved = np.zeros(len(motions), bool)
    told = indices, motions.tolerances, motions.evidences, within @ problem.matches.weights, moved, motions.noise
    joined = Structures(motions.models, motions.family_ids, *told)
    return replace(estimate, structures=strongest_first(Structures.join([estimate.structures, joined])))


def false_planes(estimate: Estimate, problem: Problem) -> tuple[Mask, Motions]:
    """Tell which structures are planes that overlap with those of stronger motions, and return the rigid motions of the others."""
    motions = motions_of(estimate, problem)
    rank, false = np.argmax(motions.holds, axis=0), np.zeros(len(estimate.structures), bool)
    for plane in np.argsort(rank, kind="stable"):
        false[plane] = (estimate.overlapping[plane] & (rank < rank[plane]) & ~false).any()
    rigid = ~problem.families.is_plane(motions)
    return false, motions.take(np.flatnonzero(rigid & (motions.holds & ~false).any(axis=1)))


def motions_of(estimate: Estimate, problem: Problem) -> Motions:
    """Return the motions of the structures, those of most weight first."""
    matches = problem.matches
    structures = refine_structures(estimate.structures, matches, problem.radii)
    labelling = label_matches(structures, matches, estimate.scores.of_matches, estimate.scores, problem)
    overlays = is_overlay(structures, labelling, matches)
    weights = labelling.match_weights(matches.weights, estimate.scores.of_matches)
    return find_motions(MotionProblem(structures, problem.radii, matches, weights, labelling.labels, overlays))[0]
