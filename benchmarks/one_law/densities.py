"""Densities of true matches over those of mismatches, for each noise scale.

A match at residual r of a structure that predicts c coordinates has at noise scale s the density N(r; 0, s^2 I_c); a mismatch has the
background density. Scales are widest first, each a third of the one before, so that each Gaussian is the ninth power of the last.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv._arrays import Array
from ruzhash_cv._kernels import jit

_ROOT = np.sqrt(2.0 * np.pi)


class Lines(NamedTuple):
    """Squared distances in px, (n,) across the epipolar lines of a motion and (k, n) along them from where planes put the matches."""

    across: Array
    along: Array


class Scales(NamedTuple):
    """Noise scales across and along epipolar lines, px, widest first."""

    across: Array
    along: Array


@jit
def ninth_power(term: float) -> float:
    """Return the Gaussian of a scale a third as wide."""
    cube = term * term * term
    return cube * cube * cube


@jit
def write_planes(squared: Any, background: float, scales: Any, limit: float, ratios: Any) -> None:
    """Write ratios of planes from squared residuals (m, n); those of true matches end at the squared `limit`."""
    falloff = 0.5 / scales[0] ** 2
    for item in range(len(squared)):
        n, base = ratios.first[item + 1] - ratios.first[item], ratios.first_value[item]
        for i in range(n):
            row = ratios.rows[ratios.first[item] + i]
            term, inside = np.exp(-falloff * squared[item, row]), squared[item, row] <= limit
            for s in range(len(scales)):
                density = term / (2 * np.pi * scales[s] ** 2 * background)
                ratios.values[base + s * n + i] = density if s == 0 or inside else 0.0
                term = ninth_power(term)


@jit
def write_motion(across: Any, background: float, along: Any, scales: Any, limit: float, ratios: Any) -> None:
    """Write ratios of a motion alone; `along` (n,) is the density of true matches along lines over that of mismatches."""
    falloff = 0.5 / scales[0] ** 2
    n = ratios.first[1]
    for i in range(n):
        row = ratios.rows[i]
        term, place = np.exp(-falloff * across[row]), along[row] if across[row] <= limit else 0.0
        for s in range(len(scales)):
            ratios.values[s * n + i] = term / (_ROOT * scales[s] * background) * (1.0 if s == 0 else place)
            term = ninth_power(term)


@jit
def write_surfaces(lines: Any, background: float, scales: Any, limit: float, n_before: int, ratios: Any) -> None:
    """Write ratios of surfaces of one motion, for all pairs of a scale across and one along.

    Of surfaces whose crowd lies across lines (`n_before` = 0), the widest scale across is the crowd's and has no limit. Otherwise the
    first `n_before` scales are left for others to write.
    """
    wide, deep = scales.across[0], scales.along[0]
    for item in range(len(lines.along)):
        n, base = ratios.first[item + 1] - ratios.first[item], ratios.first_value[item]
        for i in range(n):
            row = ratios.rows[ratios.first[item] + i]
            inside = lines.across[row] <= limit
            across = np.exp(-0.5 * lines.across[row] / wide**2)
            start = np.exp(-0.5 * lines.along[item, row] / deep**2)
            at = base + n_before * n + i
            for k in range(len(scales.across)):
                along = start
                for width in scales.along:
                    density = across * along / (2 * np.pi * scales.across[k] * width * background)
                    ratios.values[at] = density if inside or k == n_before == 0 else 0.0
                    at += n
                    along = ninth_power(along)
                across = ninth_power(across)
