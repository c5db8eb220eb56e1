"""Structures, and the scene that they are after their last fits: which motion each belongs to, and which matches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv.core.families.base import Families, Models
from ruzhash_cv.core.families.epipolar import PARALLAX_SIZE
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.core.method.parameters import Parameters


@dataclass(frozen=True)
class Structures(Models):
    """Models that a search has chosen."""

    tolerances: Array  # largest residual of a match that belongs to each, in the frame
    evidences: Array  # -ln NFA
    stationary: Mask  # whether its matches did not move
    support: Array  # weight of the matches explained
    further: ClassVar[str] = "dd?d"


@dataclass(frozen=True)
class Scene(Models):
    """Rigid motions and surfaces after their last fits."""

    tolerances: Array  # largest residual of a match that belongs to each, in the frame
    evidences: Array  # -ln NFA, 0 of a plane that was fitted given a motion
    stationary: Mask  # whether its matches did not move
    noise: Array  # noise scale in the frame
    owners: Rows  # the motion that each belongs to, itself for a motion and for a surface of no motion
    further: ClassVar[str] = "dd?dq"

    @classmethod
    def of(cls, models: Models, tolerances: Array, evidences: Array, noise: Array) -> Scene:
        """Return a scene of models that moved, each of no other motion."""
        columns = tolerances, evidences, np.zeros(len(models), bool), noise, np.arange(len(models))
        return cls(models.matrices, models.family_ids, *columns)

    def motions(self) -> Rows:
        """Return which models own themselves."""
        return np.flatnonzero(self.owners == np.arange(len(self)))

    def take(self, rows: NDArray[Any]) -> Scene:
        """Return some of the models, in this order; of one whose motion is left out the owner is -1."""
        taken, numbers = super().take(rows), np.full(len(self) + 1, -1)
        numbers[:-1][rows] = np.arange(len(taken))
        return replace(taken, owners=numbers[taken.owners])


def held_by(structures: Structures | Scene, matches: MatchSet, families: Families) -> Mask:
    """Return which matches lie within the tolerances of structures, (k, n)."""
    return families.in_tolerances(structures, structures.tolerances, matches.data) <= 1.0


def assign(surfaces: Scene, matches: MatchSet, families: Families) -> Rows:
    """Return the surface (n,) that each match belongs to, -1 for none: of those within tolerance a stationary or the strongest one."""
    if len(surfaces) == 0:
        return np.full(len(matches), -1)
    order = np.argsort(~surfaces.stationary, kind="stable")
    held = held_by(surfaces, matches, families)[order]
    return np.where(held.any(axis=0), order[held.argmax(axis=0)], -1)


def on_surfaces(flags: Mask, labels: Rows, otherwise: bool) -> Mask:
    """Return the flags (n,) of the surfaces that matches belong to by `labels` (n,), and what holds of matches of no surface."""
    return np.append(flags, otherwise)[labels]


def taken_keypoints(labels: Rows, matches: MatchSet) -> Mask:
    """Return which matches (n,) of no surface end at a keypoint of a match on one: at most one match of a keypoint is right."""
    held, taken = labels >= 0, np.zeros(len(labels), bool)
    for numbers in matches.keypoints:
        taken |= (np.bincount(numbers, held) > 0.0)[numbers]
    return taken & ~held


def are_slips(squared: Array, labels: Rows, taken: Mask, reach: float, parameters: Parameters) -> Mask:
    """Return for which models (m,) the matches of no surface repeat the texture of surfaces, from squared residuals (m, n).

    Windows matched some windows off lie on the epipolar lines of a matrix whose epipole is the vanishing point of their rows. They
    differ from true matches off the surfaces: many of them end at keypoints that are `taken` (n,).
    """
    if np.count_nonzero(taken) <= PARALLAX_SIZE:
        return np.zeros(len(squared), bool)
    off = squared[:, labels < 0] <= reach**2
    n_taken = np.count_nonzero(off[:, taken[labels < 0]], axis=1)
    return np.asarray((n_taken > PARALLAX_SIZE) & (n_taken >= parameters.taken_share * np.count_nonzero(off, axis=1)))


def without_slips(squared: Array, labels: Rows, taken: Mask, reach: float, parameters: Parameters) -> Array:
    """Return squared residuals (m, n) of models, which become infinite for matches of no surface where these are slips."""
    slipped = are_slips(squared, labels, taken, reach, parameters)
    squared[np.ix_(slipped, labels < 0)] = np.inf
    return squared
