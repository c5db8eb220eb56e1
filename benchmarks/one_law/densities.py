"""Densities of true matches over those of mismatches, for each noise scale: what all later stages ask.

A match at residual r of a structure that predicts c coordinates has, at noise scale s, the density N(r; 0, s^2 I_c). A mismatch has the
background density b. Stored are the ratios N / b of matches near a structure, one for each scale, widest first. The widest scales are
those of mismatches that crowd around it: `n_broad`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
PLANE, MOTION, SURFACE = 0, 1, 2
_CUT = 3.0  # scales beyond which a density is nothing
_ROOT = np.sqrt(2 * np.pi)


@dataclass(frozen=True)
class Candidates:
    """Density ratios of candidate structures, in one flat array: item k has `rows[first[k]:first[k + 1]]`, n_scales rows of as many ratios."""

    kinds: NDArray[np.int64]  # PLANE, MOTION or SURFACE
    planes: NDArray[np.int64]  # which homography, -1 for none
    motions: NDArray[np.int64]  # which fundamental matrix, -1 for none
    n_scales: NDArray[np.int64]
    n_broad: NDArray[np.int64]
    first: NDArray[np.int64]
    first_ratio: NDArray[np.int64]
    rows: NDArray[np.int64]
    ratios: Array

    def __len__(self) -> int:
        return len(self.kinds)

    @classmethod
    def of(cls, kind: int, planes: Any, motions: Any, near: NDArray[np.bool_], n_scales: int, n_broad: int) -> Candidates:
        """Return candidates whose ratios are still to be written, of matches `near` (m, n) them."""
        m = len(near)
        first = np.zeros(m + 1, np.int64)
        np.cumsum(near.sum(axis=1), out=first[1:])
        heads = np.empty((5, m), np.int64)
        for row, value in zip(heads, (kind, planes, motions, n_scales, n_broad)):
            row[:] = value
        rows = np.empty(first[-1], np.int64)
        _list_kernel(near, rows)
        return cls(*heads, first, first * n_scales, rows, np.empty(first[-1] * n_scales))

    @classmethod
    def join(cls, parts: list[Candidates]) -> Candidates:
        """Return several sets as one."""
        heads = [np.concatenate([getattr(part, name) for part in parts]) for name in ("kinds", "planes", "motions", "n_scales", "n_broad")]
        firsts = []
        for name in ("first", "first_ratio"):
            ends = np.cumsum([0] + [getattr(part, name)[-1] for part in parts])
            firsts.append(np.concatenate([getattr(part, name)[:-1] + end for part, end in zip(parts, ends)] + [ends[-1:]]))
        return cls(*heads, *firsts, np.concatenate([p.rows for p in parts]), np.concatenate([p.ratios for p in parts]))


@njit(cache=True, nogil=True)
def _list_kernel(near: Any, rows: Any) -> None:
    at = 0
    for item in range(len(near)):
        for row in range(near.shape[1]):
            if near[item, row]:
                rows[at] = row
                at += 1


def within(squared: Array, scales: Array) -> NDArray[np.bool_]:
    """Tell which squared residuals are not beyond the widest scale."""
    return np.asarray(squared < (_CUT * scales[0]) ** 2)


@njit(cache=True, nogil=True)
def write_planes(squared: Any, background: Any, scales: Any, limit: float, first: Any, first_ratio: Any, all_rows: Any, ratios: Any) -> None:
    """Write ratios of planes from squared residuals (m, n); narrow scales (all but the first) end at the squared `limit`."""
    falloff = 0.5 / scales[0] ** 2
    for item in range(len(squared)):
        n, base = first[item + 1] - first[item], first_ratio[item]
        for i in range(n):
            row = all_rows[first[item] + i]
            term, narrow = np.exp(-falloff * squared[item, row]), squared[item, row] <= limit
            for s in range(len(scales)):
                ratios[base + s * n + i] = term / (2 * np.pi * scales[s] ** 2 * background[row]) if s == 0 or narrow else 0.0
                cube = term * term * term
                term = cube * cube * cube


@njit(cache=True, nogil=True)
def write_motions(
    across2: Any, background: Any, along: Any, scales: Any, limit: float, first: Any, first_ratio: Any, all_rows: Any, ratios: Any
) -> None:
    """Write ratios of motions from squared distances (m, n) across lines; `along` (m, n) is the density along them over the background's."""
    falloff = 0.5 / scales[0] ** 2
    for item in range(len(across2)):
        n, base = first[item + 1] - first[item], first_ratio[item]
        for i in range(n):
            row = all_rows[first[item] + i]
            term, place = np.exp(-falloff * across2[item, row]), along[item, row] if across2[item, row] <= limit else 0.0
            for s in range(len(scales)):
                ratios[base + s * n + i] = term / (_ROOT * scales[s] * background[item, row]) * (1.0 if s == 0 else place)
                cube = term * term * term
                term = cube * cube * cube


@njit(cache=True, nogil=True)
def write_surfaces(
    across2: Any, along2: Any, background: Any, across_scales: Any, along_scales: Any, limit: float, first: Any, first_ratio: Any, all_rows: Any,
    ratios: Any, offset: int,
) -> None:
    """Write ratios of surfaces of one motion: the distance (n,) across its lines, and along them (k, n) from where planes put the matches.

    The first `offset` scales of each are left for others to write.
    """
    wide, deep = across_scales[0], along_scales[0]
    for item in range(len(along2)):
        n, base = first[item + 1] - first[item], first_ratio[item]
        for i in range(n):
            row = all_rows[first[item] + i]
            inside = across2[row] <= limit
            across, start = np.exp(-0.5 * across2[row] / wide**2), np.exp(-0.5 * along2[item, row] / deep**2)
            at = base + offset * n + i
            for s in across_scales:
                along = start
                for w in along_scales:
                    ratios[at] = across * along / (2 * np.pi * s * w * background[row]) if inside else 0.0
                    at += n
                    cube = along * along * along
                    along = cube * cube * cube
                cube = across * across * across
                across = cube * cube * cube


@njit(cache=True, nogil=True)
def epipolar_kernel(points: Any, matrix: Any, across2: Any, directions: Any) -> None:
    """Write squared distances (n,) in the images' px, twice Sampson's, and the directions (n, 2) of the lines in the second image."""
    a, b, c, d, e, f, g, h, i = matrix
    for row in range(len(points)):
        x1, y1, x2, y2 = points[row]
        p, q = a * x1 + b * y1 + c, d * x1 + e * y1 + f
        r, s = a * x2 + d * y2 + g, b * x2 + e * y2 + h
        error = x2 * p + y2 * q + g * x1 + h * y1 + i
        squared = 2.0 * error * error / (p * p + q * q + r * r + s * s + 1e-300)
        across2[row] = squared if squared < 1e12 else 1e12
        norm = np.sqrt(p * p + q * q) + 1e-300
        directions[row, 0], directions[row, 1] = -q / norm, p / norm


@njit(cache=True, nogil=True)
def along_kernel(points: Any, homography: Any, directions: Any, along: Any) -> None:
    """Write how far along its line (n,) each second point lies from where a homography puts it."""
    a, b, c, d, e, f, g, h, i = homography
    for row in range(len(points)):
        x, y = points[row, 0], points[row, 1]
        w = 1.0 / (g * x + h * y + i)
        dx, dy = points[row, 2] - (a * x + b * y + c) * w, points[row, 3] - (d * x + e * y + f) * w
        t = dx * directions[row, 0] + dy * directions[row, 1]
        along[row] = t if abs(t) < 1e6 else 1e6
