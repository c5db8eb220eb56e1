"""Candidate structures: what they are, and the density ratios of the matches near them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import jit

PLANE, MOTION, SURFACE = 0, 1, 2


class Ratios(NamedTuple):
    """Ratios of all candidates, flat for kernels.

    Candidate k has the matches ``rows[first[k]:first[k + 1]]`` and from ``first_value[k]`` on as many values for each of its scales,
    widest first. The first `n_crowd` scales are those of mismatches that crowd around it.
    """

    n_scales: Rows
    n_crowd: Rows
    first: Rows
    first_value: Rows
    rows: Rows
    values: Array


class Names(NamedTuple):
    """What candidates are: PLANE, MOTION or SURFACE, which homography and which fundamental matrix, -1 for none."""

    kind: int
    planes: Any
    motions: Any


@dataclass(frozen=True)
class Candidates:
    """Candidate structures; the fields are as in `Names`, one entry for each."""

    kinds: Rows
    planes: Rows
    motions: Rows
    ratios: Ratios

    def __len__(self) -> int:
        return len(self.kinds)

    @classmethod
    def of(cls, names: Names, near: Mask, n_scales: int, n_crowd: int) -> Candidates:
        """Return candidates of the matches `near` (m, n) them, whose ratios are still to be written."""
        first = np.zeros(len(near) + 1, np.int64)
        np.cumsum(near.sum(axis=1), out=first[1:])
        heads = np.empty((5, len(near)), np.int64)
        for row, value in zip(heads, (*names, n_scales, n_crowd), strict=True):
            row[:] = value
        rows = np.empty(first[-1], np.int64)
        _list_rows(near, rows)
        values = np.empty(first[-1] * n_scales)
        return cls(heads[0], heads[1], heads[2], Ratios(heads[3], heads[4], first, first * n_scales, rows, values))

    @classmethod
    def join(cls, parts: list[Candidates]) -> Candidates:
        """Return several sets as one."""
        kinds, planes, motions = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("kinds", "planes", "motions")
        )
        flat = Ratios(*map(np.concatenate, zip(*(part.ratios for part in parts), strict=True)))
        firsts = [_joined([getattr(part.ratios, name) for part in parts]) for name in ("first", "first_value")]
        return cls(kinds, planes, motions, flat._replace(first=firsts[0], first_value=firsts[1]))

    def rows_of(self, item: int) -> Rows:
        """Return the matches near a candidate."""
        return self.ratios.rows[self.ratios.first[item] : self.ratios.first[item + 1]]

    def values_of(self, item: int) -> Array:
        """Return the ratios (n_scales, n) of a candidate."""
        begin, end = self.ratios.first_value[item : item + 2]
        return self.ratios.values[begin:end].reshape(int(self.ratios.n_scales[item]), -1)


def _joined(firsts: list[Rows]) -> Rows:
    ends = np.cumsum([0] + [first[-1] for first in firsts])
    shifted = [first[:-1] + end for first, end in zip(firsts, ends[:-1], strict=True)]
    return np.concatenate([*shifted, ends[-1:]])


@jit
def _list_rows(near: Any, rows: Any) -> None:
    at = 0
    for item in range(len(near)):
        for row in range(near.shape[1]):
            if near[item, row]:
                rows[at] = row
                at += 1
