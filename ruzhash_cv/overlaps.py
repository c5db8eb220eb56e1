"""Overlapping planes: where two planes are seen in one place, only one can be there.

Repeated windows need not compete for keypoints. Hundreds of them, matched one window off, are a plane as large as the true one. The
true one is the one whose motion holds more matches, where a flagged match counts by the share of these that score no better: a wall
moves as the things before it do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv.competition import scored_without
from ruzhash_cv.evidence import candidates, extract, held_by, strongest_first
from ruzhash_cv.fits import refine_structures
from ruzhash_cv.labelling import is_overlay, label_matches
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families, Models
from ruzhash_cv.motions import MotionProblem, find_motions
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.scoring import Scores


def resolve_overlaps(
    structures: Models,
    overlapping: Mask,
    discarded: Mask,
    scores: Scores,
    matches: MatchSet,
    decoys: Array,
    families: Families,
    parameters: Parameters,
    n_tried: int,
    rng: np.random.Generator,
    *,
    join_motions: bool = True,
) -> tuple[Models, Scores]:
    """Return structures without overlapping planes of weaker motions, and scores; the motions of those kept join the structures."""
    if not overlapping.any():
        return structures, scores
    false, motions = false_planes(structures, overlapping, scores, matches, families, parameters)
    if not false.any():
        return structures, scores
    kept = structures.take(np.flatnonzero(~false))
    removed, structures = held_by(structures, matches, families).any(axis=0) | discarded, kept
    if join_motions and len(motions) > 0:
        held, total = held_by(kept, matches, families).any(axis=0), float(matches.weights.sum())
        given = candidates(motions, matches.data, decoys, matches.unit, families, parameters)
        left = np.where(held | removed, 0.0, matches.weights)
        more, _ = extract(given, left, matches.unit, families, parameters, n_tried, total)
        structures = strongest_first(Models.join([kept, more]))
    return structures, scored_without(removed, kept, structures, scores, matches, decoys, families, parameters, rng)


def join_motions(
    structures: Models, scores: Scores, matches: MatchSet, families: Families, parameters: Parameters
) -> Models:
    """Return structures with the rigid motions among them that hold several planes and nothing else.

    Mismatches around one plane may seem to be a motion of it. Two planes that fit one fundamental matrix do not by chance.
    """
    motions, planes = motions_of(structures, scores, matches, families, parameters), families.is_plane(structures)
    new = ((motions.holds & planes).sum(axis=1) > 1) & ~(motions.holds & ~planes).any(axis=1)
    motions = motions.take(np.flatnonzero(new & ~families.is_plane(motions)))
    radii = motions.tolerances / (matches.unit * parameters.tolerance_ratio)
    joined = replace(
        motions,
        steps=np.searchsorted(parameters.radii, radii * (1.0 - 1e-9)),
        support=held_by(motions, matches, families) @ matches.weights,
        stationary=np.zeros(len(motions), bool),
        holds=np.zeros(0, bool),
    )
    return strongest_first(Models.join([structures, joined]))


def false_planes(
    structures: Models,
    overlapping: Mask,
    scores: Scores,
    matches: MatchSet,
    families: Families,
    parameters: Parameters,
) -> tuple[Mask, Models]:
    """Return which structures are planes that overlap with those of stronger motions, and the rigid motions of the others."""
    motions = motions_of(structures, scores, matches, families, parameters)
    rank, false = np.argmax(motions.holds, axis=0), np.zeros(len(structures), bool)
    for plane in np.argsort(rank, kind="stable"):
        false[plane] = (overlapping[plane] & (rank < rank[plane]) & ~false).any()
    rigid = ~families.is_plane(motions)
    return false, motions.take(np.flatnonzero(rigid & (motions.holds & ~false).any(axis=1)))


def motions_of(
    structures: Models, scores: Scores, matches: MatchSet, families: Families, parameters: Parameters
) -> Models:
    """Return the motions of the structures, those of most weight first."""
    structures = refine_structures(structures, matches, families, parameters)
    labelling = label_matches(structures, matches, scores.of_matches, matches, scores, families, parameters)
    overlays = is_overlay(structures, labelling, matches)
    weights = labelling.match_weights(matches.weights, scores.of_matches)
    problem = MotionProblem(structures, families, parameters, matches, weights, labelling.labels, overlays)
    return find_motions(problem)[0]
