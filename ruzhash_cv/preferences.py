"""Preference space: how well each correspondence agrees with each model.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv._validation import as_array
from ruzhash_cv.parameters import Parameters

#: Rows of preferences (n, m), dense or sparse.
Preferences: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix

#: Numbers in a vector of the processor; rows of a forest are a multiple of it wide.
_WIDTH = 8


class Kernel(NamedTuple):
    """What turns a residual r into a preference: the mean of exp(-r^2 / (2 s^2)) over the noise scales s, 0 beyond a limit.

    Each scale is a third of the one before; `falloff` is 1 / (2 s^2) of the widest, `limit` is a squared residual.
    """

    limit: float
    falloff: float
    n_scales: int

    @classmethod
    def of(cls, unit: float, parameters: Parameters) -> Kernel:
        """Return the kernel for residuals in the unit that `unit` is in."""
        sigma = parameters.widest_scale * unit
        return cls((parameters.preference_cut * sigma) ** 2, 0.5 / (sigma * sigma), parameters.n_scales)


class Embedded(NamedTuple):
    """Preferences (m, n) of correspondences for models, their weighted sums (m,), and how many decoys (m,) have any."""

    preferences: NDArray[np.float32]
    sums: Array
    n_decoys: Array

    @classmethod
    def empty(cls, m: int, n: int) -> Embedded:
        """Return empty arrays for m models and n correspondences."""
        return cls(np.empty((m, n), np.float32), np.empty(m), np.empty(m))

    def of_models(self, rows: slice) -> Embedded:
        """Return the part of some of the models."""
        return Embedded(self.preferences[rows], self.sums[rows], self.n_decoys[rows])


def embed(
    squared: Array, kernel: Kernel, groups: Rows, sample_groups: Rows, weights: Array, into: Embedded | None = None
) -> Embedded:
    """Return preferences from squared residuals (m, n + N) of n correspondences and N decoys.

    They are means over several noise scales, so that the noise need not be known. A correspondence has no preference for a model if its
    duplicate group, `groups` (n,), has a member in the model's sample, `sample_groups` (m, s), where -1 is no group.
    """
    found = into or Embedded.empty(len(squared), len(weights))
    _embed_kernel(squared, tuple(kernel), groups, sample_groups, weights, tuple(found))
    return found


@cache
def expected_preference(codimension: int, parameters: Parameters) -> float:
    """Return the mean preference of what has one by chance: shares of it within r of a model grow as r ** codimension."""
    r = parameters.preference_limit * ((np.arange(1000) + 0.5) / 1000) ** (1.0 / codimension)
    return float(np.exp(-0.5 * (r / parameters.scales[:, None]) ** 2).mean())


def as_rows(agreement: NDArray[np.float32], largest: float, saturation: float) -> NDArray[np.float32]:
    """Return rows (n, m), or some zeros wider, for a forest: p = 1 - exp(-s a / Lambda) of weighted preferences a (m, n).

    A row passes a node of the forest with probability 1 - prod(1 - p_i) = 1 - exp(-s sum(a_i) / Lambda), which tells rows of much
    agreement from rows of some. Of plain preferences it is nearly 1 for both. Lambda is the `largest` sum of a match, s the
    `saturation`: about so many components of its row are above their thresholds.
    """
    passing = agreement * np.float32(-saturation / largest)
    m, n = passing.shape
    # A component of zeros passes nowhere, and what is left over of whole vectors would take as long as these.
    rows = np.zeros((n, -(-m // _WIDTH) * _WIDTH), np.float32)
    np.negative(np.expm1(passing, out=passing).T, out=rows[:, :m])
    return rows


def as_preferences(preferences: Any, name: str = "preferences") -> NDArray[np.float32]:
    """Return preferences as dense rows, after checking that they lie in [0, 1]."""
    table = as_array(preferences.toarray() if hasattr(preferences, "toarray") else preferences, name, "(n, m)")
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise ValueError(f"`{name}` must be a numeric array of shape (n, m), got {table.dtype} {table.shape}")
    if table.size and not (table.min() >= 0 and table.max() <= 1):
        raise ValueError(f"`{name}` must lie in [0, 1], got values from {table.min()} to {table.max()}")
    with np.errstate(under="ignore"):
        # An array that cannot be written is another type to a kernel.
        return np.require(table, np.float32, ["C", "W"])


@jit
def _embed_kernel(squared: Any, kernel: Any, groups: Any, sample_groups: Any, weights: Any, found: Any) -> None:
    """Write preferences, their sums, and the counts of decoys.

    What lies within the limit is gathered without a branch first: it is little of all, and exponentials take most of the time.
    """
    kernel, found = Kernel(*kernel), Embedded(*found)
    n = np.uint64(len(weights))  # unsigned: a signed index costs a test for negative ones
    near, values, terms = np.empty(n, np.uint64), np.empty(n), np.empty(n)
    for item in range(len(squared)):
        n_near, beyond, total = np.uint64(0), np.uint64(0), 0.0
        for row in range(n):
            found.preferences[item, row], near[n_near], values[n_near] = 0.0, row, squared[item, row]
            n_near += np.uint64(squared[item, row] <= kernel.limit)
        for row in range(n, np.uint64(squared.shape[1])):
            beyond += np.uint64(squared[item, row] <= kernel.limit)
        for at in range(n_near):
            values[at] = terms[at] = _exp(-kernel.falloff * values[at])
        for _ in range(kernel.n_scales - 1):
            for at in range(n_near):
                # Each scale's term is the ninth power of the one before: one exponential for all.
                cubed = terms[at] * terms[at] * terms[at]
                terms[at] = cubed * cubed * cubed
                values[at] += terms[at]
        for at in range(n_near):
            row, own = near[at], False
            for member in range(sample_groups.shape[1]):
                own |= groups[row] == sample_groups[item, member]
            if not own:
                found.preferences[item, row] = values[at] / kernel.n_scales
                total += weights[row] * found.preferences[item, row]
        found.sums[item], found.n_decoys[item] = total, beyond


@jit
def _exp(x: float) -> float:
    """Return exp(x), x <= 0, to eight digits: plain arithmetic, which the compiler makes vectors of.

    The sixteenth power of exp(x / 16), the first eight terms of its series.
    """
    z = x / 16.0
    series = 1.0 + z * (1.0 + z / 2 * (1.0 + z / 3 * (1.0 + z / 4 * (1.0 + z / 5 * (1.0 + z / 6 * (1.0 + z / 7))))))
    fourth = series * series * (series * series)
    return fourth * fourth * (fourth * fourth)
