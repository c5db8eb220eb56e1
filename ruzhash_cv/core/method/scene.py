"""Structures, and the scene that they are after their last fits: which motion each belongs to, and which matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families.base import Families, Models
from ruzhash_cv.core.method.matches import MatchSet
from ruzhash_cv.foundation.arrays import Array, Mask, Rows


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

    def listing(self, labels: Rows) -> Rows:
        """Return the models in the order of a result: motions by their matches, each before its planes.

        Models without matches are left out, unless a motion's planes have some. `labels` (n,) are those of the distinct matches.
        """
        support = np.bincount(labels + 1, minlength=len(self) + 1)[1:]
        of_motion = np.bincount(self.owners, support, minlength=len(self))
        is_motion = self.owners == np.arange(len(self))
        order = np.lexsort((-support, ~is_motion, self.owners, -of_motion[self.owners]))
        return np.asarray(order[(support[order] > 0) | (is_motion & (of_motion > 0))[order]])

    def take(self, rows: NDArray[Any]) -> Scene:
        """Return some of the models, in this order; of one whose motion is left out the owner is -1."""
        columns, numbers = [column[rows] for column in vars(self).values()], np.full(len(self) + 1, -1)
        numbers[:-1][rows] = np.arange(len(columns[0]))
        columns[-1] = numbers[columns[-1]]
        return Scene(*columns)


def held_by(structures: Structures | Scene, matches: MatchSet, families: Families) -> Mask:
    """Return which matches lie within the tolerances of structures, (k, n)."""
    return families.in_tolerances(structures, structures.tolerances, matches.data) <= 1.0


def assign(surfaces: Scene, squared: Array) -> Rows:
    """Return the surface (n,) that each match belongs to by squared residuals (k, n), -1 for none.

    Of surfaces within tolerance it is a static one, or the strongest.
    """
    if len(surfaces) == 0:
        return np.full(squared.shape[1], -1)
    order = np.argsort(~surfaces.stationary, kind="stable")
    held = (np.sqrt(squared) / surfaces.tolerances[:, None] <= 1.0)[order]
    return np.where(held.any(axis=0), order[held.argmax(axis=0)], -1)


def memberships(probabilities: Array) -> Rows:
    """Return the model (n,) that each match belongs to by probabilities (n, k), -1 if it more probably belongs to none."""
    return np.where(probabilities.sum(axis=1) > 0.5, probabilities.argmax(axis=1), -1)


def on_surfaces(flags: Mask, labels: Rows, otherwise: bool) -> Mask:
    """Return the flags (n,) of the surfaces that matches belong to by `labels` (n,), and what holds of matches of no surface."""
    return np.append(flags, otherwise)[labels]
