"""Preference space: how well each correspondence agrees with each model, and distances between rows.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

import functools
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import jit
from ruzhash_cv._validation import as_array, as_reals, as_row_numbers, check_real

#: Rows of preferences (n, m), dense or sparse.
Preferences: TypeAlias = ArrayLike | sparse.sparray | sparse.spmatrix


def embed_preferences(
    residuals: ArrayLike, *, sigma: float, k: float = 3.0, binary: bool = False, exclude: ArrayLike | None = None
) -> sparse.csr_array:
    """Return preferences from residuals.

    p = exp(-r^2 / (2 sigma^2)) where ``|r| <= k sigma``, else 0 (continuous), or 1 where ``|r| <= k sigma``, else 0 (binary).

    Parameters
    ----------
    residuals : array_like, shape (n, m)
        Residual of each of n correspondences to each of m models; NaN and infinity agree with nothing.
    sigma : float
        Standard deviation of the noise, in the residuals' unit.
    k : float
        Residuals beyond eps = k sigma count as no agreement.
    binary : bool
        Agreement is 1 or 0.
    exclude : array_like of int, shape (m, s), optional
        Rows that may not vote for a model, usually the minimal sample it was solved from (self-exclusion).

    Returns
    -------
    scipy.sparse.csr_array of float32, shape (n, m)
        Entries in [0, 1].

    Examples
    --------
    >>> embed_preferences([[0.0, 9.0], [3.0, 1.0]], sigma=1.0, k=3.0, binary=True).toarray()
    array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    table = as_reals(residuals, "residuals", "(n, m)")
    if table.ndim != 2:
        raise ValueError(f"`residuals` must have shape (n, m), got {table.shape}")
    sigma, k = check_real(sigma, "sigma"), check_real(k, "k")
    if exclude is not None:
        members = as_row_numbers(exclude, "exclude", (table.shape[1], "s"), len(table))
        table = table.copy()
        table[members, np.arange(table.shape[1])[:, None]] = np.inf
    # NaN agrees with nothing: all comparisons with it are false. Nor does infinity, where k sigma overflows.
    rows, columns = np.nonzero((np.abs(table) <= k * sigma) & (np.abs(table) < np.inf))
    with np.errstate(over="ignore", under="ignore"):
        values = np.ones(len(rows)) if binary else np.exp(-0.5 * (table[rows, columns] / sigma) ** 2)
    return sparse.csr_array((values.astype(np.float32), (rows, columns)), shape=table.shape)


#: Noise scales of a preference are this many, each a third of the one before; the widest is `WIDEST_SCALE` lengths.
N_SCALES, WIDEST_SCALE = 3, 3.0
SCALES = WIDEST_SCALE / 3.0 ** np.arange(N_SCALES)
#: Preferences end at so many times the widest scale.
CUT = 3.0
#: Expected number of components above their thresholds in the row that agrees most.
SATURATION = 4.0
#: Numbers in a vector of the processor; rows of a forest are a multiple of it wide.
_WIDTH = 8


def embed(squared: Array, length: float, groups: Rows, members: Rows) -> NDArray[np.float32]:
    """Return preferences (m, n) from squared residuals: the mean Gaussian of several noise scales, so that none need be known.

    `length` is that of the method, in the unit of the residuals. Self-exclusion: what is of the same duplicate group, `groups` (n,), as
    one of a model's sample, `members` (m, s), has no preference for the model. -1 among these is nobody.
    """
    return embed_and_sum(squared, length, groups, members, np.zeros(squared.shape[1]))[0]


def embed_and_sum(
    squared: Array,
    length: float,
    groups: Rows,
    members: Rows,
    votes: Array,
    into: tuple[NDArray[np.float32], Array, Array] | None = None,
) -> tuple[NDArray[np.float32], Array, Array]:
    """Return preferences of what has `votes` (n,), the first columns, their sums (m,) by votes, and how many others (m,) have any."""
    m, sigma = len(squared), WIDEST_SCALE * length
    # What is not given to write into is made.
    found = into or (np.empty((m, len(votes)), np.float32), np.empty(m), np.empty(m))
    _embed_kernel(squared, (CUT * sigma) ** 2, 0.5 / (sigma * sigma), groups, members, votes, *found)
    return found


@functools.cache
def expected_preference(codimension: int) -> float:
    """Return the mean preference of what has one by chance: shares of it within r of a model grow as r ** codimension."""
    r = CUT * WIDEST_SCALE * ((np.arange(1000) + 0.5) / 1000) ** (1.0 / codimension)
    return float(np.exp(-0.5 * (r / SCALES[:, None]) ** 2).mean())


def as_rows(agreement: NDArray[np.float32], most: float) -> NDArray[np.float32]:
    """Return rows (n, m), or some zeros wider, for a forest: p = 1 - exp(-4 a / Lambda) of weighted preferences a (m, n).

    A row passes a node of the forest with probability 1 - prod(1 - p_i) = 1 - exp(-4 sum(a_i) / Lambda), which tells rows of much
    agreement from rows of some. Of plain preferences it is nearly 1 for both. Lambda, `most`, is the largest sum of a match.
    """
    passing = agreement * np.float32(-SATURATION / most)
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


def ruzicka_distance(preferences: Preferences, others: Preferences | None = None) -> Array:
    """Return R(p, q) = 1 - sum_i min(p_i, q_i) / sum_i max(p_i, q_i) between rows.

    Parameters
    ----------
    preferences : array_like or sparse array, shape (n, m)
    others : array_like or sparse array, shape (n2, m), optional
        Default: `preferences` themselves.

    Returns
    -------
    ndarray of float64, shape (n, n2)
        In [0, 1]. Two rows of zeros agree with nothing, each other included: distance 1.

    Examples
    --------
    >>> ruzicka_distance([[1.0, 0.5]], [[0.5, 0.5]])
    array([[0.33333333]])
    """
    return _distances(preferences, others, "cityblock")


def tanimoto_distance(preferences: Preferences, others: Preferences | None = None) -> Array:
    """Return ``1 - <p, q> / (|p|^2 + |q|^2 - <p, q>)`` between rows; see `ruzicka_distance`.

    Examples
    --------
    >>> tanimoto_distance([[1.0, 1.0]], [[1.0, 0.0]])
    array([[0.5]])
    """
    return _distances(preferences, others, "sqeuclidean")


def jaccard_distance(preferences: Preferences, others: Preferences | None = None) -> Array:
    """Return ``1 - |P & Q| / |P | Q|`` between the sets of non-zero components; see `ruzicka_distance`.

    Examples
    --------
    >>> jaccard_distance([[1.0, 0.2, 0.0]], [[0.7, 0.0, 0.0]])
    array([[0.5]])
    """
    return _distances(preferences, others, "cityblock", binary=True)


def _distances(
    preferences: Preferences,
    others: Preferences | None,
    metric: Literal["cityblock", "sqeuclidean"],
    binary: bool = False,
) -> Array:
    """Return 1 - shared / union between rows.

    What rows share follows from how far they are apart: sum min(p, q) = (|p| + |q| - |p - q|) / 2 with absolute values, and with
    squares <p, q> = (|p|^2 + |q|^2 - |p - q|^2) / 2.
    """
    rows1 = as_preferences(preferences)
    rows2 = rows1 if others is None else as_preferences(others, "others")
    if rows1.shape[1] != rows2.shape[1]:
        raise ValueError(
            f"`preferences` and `others` must have as many columns, got {rows1.shape[1]} and {rows2.shape[1]}"
        )
    p, q = (np.asarray(rows > 0 if binary else rows, np.float64) for rows in (rows1, rows2))
    sums = np.add.outer(*((rows if metric == "cityblock" else rows * rows).sum(axis=1) for rows in (p, q)))
    shared = 0.5 * (sums - cdist(p, q, metric))
    union = sums - shared
    likeness = np.divide(shared, union, out=np.zeros_like(union), where=union > 0)
    distances: Array = np.clip(1.0 - likeness, 0.0, 1.0)
    return distances


@jit
def _embed_kernel(
    squared: Any, limit: float, falloff: float, groups: Any, members: Any, votes: Any,
    preferences: Any, sums: Any, n_others: Any,
) -> None:  # fmt: skip
    """Write the mean of exp(-r^2 / (2 s^2)) over the scales s; `falloff` is 1 / (2 s^2) of the widest.

    What lies within the limit is gathered without a branch first: it is little of all, and exponentials take most of the time.
    """
    n = np.uint64(len(votes))  # unsigned: a signed index costs a test for negative ones
    near, values = np.empty(n, np.uint64), np.empty(n)
    for item in range(len(squared)):
        n_near, beyond, total = np.uint64(0), np.uint64(0), 0.0
        for row in range(n):
            preferences[item, row], near[n_near], values[n_near] = 0.0, row, squared[item, row]
            n_near += np.uint64(squared[item, row] <= limit)
        for row in range(n, np.uint64(squared.shape[1])):
            beyond += np.uint64(squared[item, row] <= limit)
        for at in range(n_near):
            # Each scale's term is the ninth power of the one before: one exponential for all.
            values[at] = term = _exp(-falloff * values[at])
            for _ in range(N_SCALES - 1):
                cubed = term * term * term
                term = cubed * cubed * cubed
                values[at] += term
        for at in range(n_near):
            row, own = near[at], False
            for member in range(members.shape[1]):
                own |= groups[row] == members[item, member]
            if not own:
                preferences[item, row] = values[at] / N_SCALES
                total += votes[row] * preferences[item, row]
        sums[item], n_others[item] = total, beyond


@jit
def _exp(x: float) -> float:
    """Return exp(x), -CUT^2 / 2 <= x <= 0, to eight digits: plain arithmetic, which the compiler makes vectors of.

    The sixteenth power of exp(x / 16), the first eight terms of its series.
    """
    z = x / 16.0
    series = 1.0 + z * (1.0 + z / 2 * (1.0 + z / 3 * (1.0 + z / 4 * (1.0 + z / 5 * (1.0 + z / 6 * (1.0 + z / 7))))))
    fourth = series * series * (series * series)
    return fourth * fourth * (fourth * fourth)
