"""Banks: models of both families in the frame, as the kernels take them, and the structures found among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.residuals import residual_kernel
from ruzhash_cv.structures import TOLERANCE

Array = NDArray[np.float64]


@dataclass
class Bank:
    """Models of both families in the frame.

    `packed` (m, 18), `kinds` (m,) and `makers` (m, 7): the places whose correspondences made a model, -1 where fewer did.
    """

    packed: Array = field(default_factory=lambda: np.zeros((0, 18)))
    kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    makers: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 7), np.int64))

    def __len__(self) -> int:
        return len(self.packed)

    @classmethod
    def made_by_nobody(cls, packed: Array, kinds: NDArray[np.uint8]) -> Bank:
        """Return models that no sample made."""
        return cls(packed, kinds, np.full((len(packed), 7), -1, np.int64))

    @staticmethod
    def join(banks: Sequence[Bank]) -> Bank:
        """Return the models of several banks as one."""
        return Bank(
            np.vstack([bank.packed for bank in banks]),
            np.concatenate([bank.kinds for bank in banks]),
            np.vstack([bank.makers for bank in banks]),
        )

    def take(self, columns: slice | NDArray[np.int64] | NDArray[np.bool_]) -> Bank:
        """Return some of the models."""
        return Bank(self.packed[columns], self.kinds[columns], self.makers[columns])

    def of_kind(self, kind: int) -> Bank:
        """Return the models of one family."""
        return self.take(self.kinds == kind)

    def residuals(self, points: Array) -> Array:
        """Return residuals (m, n) in the frame; `points` (4, n) are rows of coordinates."""
        residuals: Array = residual_kernel(points, self.packed, self.kinds)
        return residuals


@dataclass
class Structures:
    """Structures, strongest first: models, the steps of their radii, their evidences in nats; and the votes `left` over.

    `planar_shares` (k,) is the share of a fundamental matrix's matches that one plane holds.
    """

    bank: Bank
    steps: NDArray[np.int64]
    evidences: Array
    left: Array
    planar_shares: Array

    def __len__(self) -> int:
        return len(self.bank)

    @classmethod
    def join(cls, parts: list[Structures], left: Array) -> Structures:
        """Return the structures of several lists as one."""
        evidences = np.concatenate([np.zeros(0), *[part.evidences for part in parts]])
        order = np.argsort(-evidences, kind="stable")
        bank = Bank.join([Bank(), *[part.bank for part in parts]]).take(order)
        steps = np.concatenate([np.zeros(0, np.int64), *[part.steps for part in parts]])
        planar_shares = np.concatenate([np.zeros(0), *[part.planar_shares for part in parts]])
        return cls(bank, steps[order], evidences[order], left, planar_shares[order])

    def take(self, which: slice | NDArray[np.int64]) -> Structures:
        """Return some of the structures."""
        return Structures(
            self.bank.take(which), self.steps[which], self.evidences[which], self.left, self.planar_shares[which]
        )

    def one_by_one(self) -> list[Structures]:
        """Return each structure as a list of its own."""
        return [self.take(slice(item, item + 1)) for item in range(len(self))]


@dataclass
class Found:
    """What the search brings home: structures, informative models, and what was rejected on the way."""

    structures: Bank
    radii: Array
    evidences: Array
    planar_shares: Array
    columns: Bank
    significances: Array
    rejected: dict[str, int]
    n_models: int

    @property
    def tolerances(self) -> Array:
        """Largest residual of what belongs to each structure, in the search's unit (pixels, where no threshold is given)."""
        tolerances: Array = self.radii * np.array(TOLERANCE)[self.structures.kinds]
        return tolerances

    def residuals(self, points: Array) -> Array:
        """Return residuals (n, k) to the structures, in the frame; `points` (4, n) are rows of coordinates."""
        return self.structures.residuals(points).T


def coordinate_rows(pairs: Array) -> Array:
    """Return correspondences (n, 4) as rows of coordinates (4, n), the form that the kernels of models take."""
    return np.ascontiguousarray(pairs.T)
