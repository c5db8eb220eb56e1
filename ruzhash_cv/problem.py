"""What is searched, and the stages of the method that can be replaced: the ablation passes others in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ruzhash_cv._arrays import Array
from ruzhash_cv.matches import MatchSet
from ruzhash_cv.models.base import Families
from ruzhash_cv.parameters import Parameters
from ruzhash_cv.selection import Radii, WithRadii


@dataclass(frozen=True)
class Stages:
    """Functions that are stages or rules of the method, each with the signature of the default; `filtering.STAGES` has these."""

    weigh_matches: Callable[..., Any]  # matches.match_weights
    decoys_of_matches: Callable[..., Any]  # decoys.decoys_of_matches
    decoys_of_unexplained: Callable[..., Any]  # decoys.decoys_of_unexplained
    find_stationary: Callable[..., Any]  # stationary.find_stationary
    draw_samples: Callable[..., Any]  # sampling.samples_of_matches
    propose: Callable[..., Any]  # search.proposal_weights
    embed: Callable[..., Any]  # preferences.embed
    as_rows: Callable[..., Any]  # preferences.as_rows
    significance: Callable[..., Any]  # hypotheses.significance
    refit: Callable[..., Any]  # refinement.refit
    score: Callable[..., Any]  # scoring.score
    find_texture: Callable[..., Any]  # search.texture_along_lines
    converged: Callable[..., Any]  # search.converged
    drop_repetitions: Callable[..., Any]  # search.drop_repetitions
    resolve_overlaps: Callable[..., Any]  # overlaps.resolve_overlaps
    label: Callable[..., Any]  # labelling.label
    one_to_one: Callable[..., Any]  # labelling.break_one_to_one


@dataclass(frozen=True)
class Problem(WithRadii):
    """Matches to find structures in, decoys (N, 4) that models are weighed against, and the radii and stages of the method."""

    matches: MatchSet
    decoys: Array
    radii: Radii
    stages: Stages

    @classmethod
    def of(
        cls,
        matches: MatchSet,
        families: Families,
        parameters: Parameters,
        stages: Stages,
        rng: np.random.Generator,
        threshold: float | None = None,
    ) -> Problem:
        """Return the problem of some matches, with decoys drawn for it; radii end at a threshold in the frame."""
        radii = Radii.of(matches.unit, families, parameters, threshold)
        return cls(matches, stages.decoys_of_matches(matches, parameters, rng), radii, stages)
