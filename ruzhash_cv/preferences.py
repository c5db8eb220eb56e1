"""Preference space: how well each correspondence agrees with each model, as sparse rows, and distances between rows.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv._jit import jit, run_blocks
from ruzhash_cv._validation import as_array, as_reals, as_row_numbers, check_real
from ruzhash_cv.residuals import near_residuals


def embed_preferences(
    residuals: ArrayLike, *, sigma: float, k: float = 3.0, binary: bool = False, exclude: ArrayLike | None = None
) -> sparse.csr_array:
    """Return preferences from residuals.

    p = exp(-r^2 / (2 sigma^2)) where |r| <= k sigma, else 0 (continuous), or 1 where |r| <= k sigma, else 0 (binary).

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
        makers = as_row_numbers(exclude, "exclude", (table.shape[1], "s"), len(table))
        table = table.copy()
        table[makers, np.arange(table.shape[1])[:, None]] = np.inf
    # NaN agrees with nothing: all comparisons with it are false. Nor does infinity, where k sigma overflows.
    rows, columns = np.nonzero((np.abs(table) <= k * sigma) & (np.abs(table) < np.inf))
    with np.errstate(over="ignore", under="ignore"):
        values = np.ones(len(rows)) if binary else np.exp(-0.5 * (table[rows, columns] / sigma) ** 2)
    return sparse.csr_array((values.astype(np.float32), (rows, columns)), shape=table.shape)


class Columns(NamedTuple):
    """Sparse preferences by model: column i is ``values[starts[i]:starts[i + 1]]`` on those `rows` of `n_rows`."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    values: NDArray[np.float32]
    n_rows: int

    def to_rows(self, weights: NDArray[np.float64]) -> sparse.csr_array:
        """Return preference rows, each model's column times its weight."""
        indptr, indices, data = _transpose_kernel(*self, weights)
        rows = sparse.csr_array((data, indices, indptr), shape=(self.n_rows, len(self.starts) - 1))
        rows.has_canonical_format = True  # saves a pass that would find it out
        return rows

    def row_sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum of each row's preferences."""
        shares = np.repeat(weights, np.diff(self.starts)) * self.values
        sums: NDArray[np.float64] = np.bincount(self.rows, shares, self.n_rows).astype(np.float64)
        return sums


def agree(
    points: NDArray[np.float64],
    votes: NDArray[np.float64],
    places: NDArray[np.int64],
    packed: NDArray[np.float64],
    kinds: NDArray[np.uint8],
    makers: NDArray[np.int64],
    reaches: NDArray[np.float64],
    sigmas: NDArray[np.float64],
    *,
    n_jobs: int = 1,
) -> tuple[Columns, NDArray[np.float64]]:
    """Return the preferences of correspondences for packed models, and each model's sum of votes times preferences.

    A preference is the mean of exp(-r^2 / (2 s^2)) over the noise scales s = sigma, sigma / 3 and sigma / 9, 0 beyond the reach.
    Residuals of one model at a time are held, never all.

    Parameters
    ----------
    points : ndarray, shape (4, n)
        Rows of coordinates (x1, y1, x2, y2).
    votes, places : ndarrays, shape (n,)
    packed, kinds : ndarrays, shapes (m, 18) and (m,)
    makers : ndarray of int64, shape (m, s)
        Self-exclusion by place: a correspondence has no preference for a model whose `makers` include its place.
    reaches, sigmas : ndarrays, shape (m,)
        Largest residual that counts and widest noise scale, in the unit of the points.
    """
    squares, falloffs = reaches * reaches, 0.5 / (sigmas * sigmas)
    n = points.shape[1]
    parts = run_blocks(
        lambda start, stop: _agree_kernel(
            points, votes, places, packed[start:stop], kinds[start:stop], makers[start:stop],
            squares[start:stop], falloffs[start:stop],
        ),
        len(packed),
        n_jobs,
        smallest=max(1, 65536 // max(n, 1)),
    )  # fmt: skip
    # One block is the rule for few matches, and copying it would cost more than the kernel itself.
    lengths, sums, rows, values = (
        parts[0] if len(parts) == 1 else (np.concatenate(part) for part in zip(*parts, strict=True))
    )
    starts = np.zeros(len(packed) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return Columns(starts, rows, values, n), sums


def as_preferences(preferences: Any, name: str = "preferences") -> sparse.csr_array:
    """Return preferences as CSR rows with sorted columns, after checking that they lie in [0, 1]."""
    if not sparse.issparse(preferences):
        preferences = as_array(preferences, name, "(n, m)")
    if preferences.ndim != 2 or preferences.dtype.kind not in "fiub":
        raise ValueError(
            f"`{name}` must be a numeric array of shape (n, m), got {preferences.dtype} {preferences.shape}"
        )
    if not sparse.issparse(preferences) and preferences.dtype != np.float32:
        preferences = as_reals(
            preferences, name, "(n, m)"
        )  # scipy.sparse takes neither half precision nor foreign byte orders
    rows = preferences if isinstance(preferences, sparse.csr_array) else sparse.csr_array(preferences)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if len(rows.data) and not (rows.data.min() >= 0 and rows.data.max() <= 1):
        raise ValueError(f"`{name}` must lie in [0, 1], got values from {rows.data.min()} to {rows.data.max()}")
    with np.errstate(under="ignore"):
        return rows.astype(np.float32, copy=False)


def ruzicka_distance(preferences: ArrayLike, others: ArrayLike | None = None) -> NDArray[np.float64]:
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
    return _pairwise(preferences, others, tanimoto=False)


def tanimoto_distance(preferences: ArrayLike, others: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return T(p, q) = 1 - <p, q> / (|p|^2 + |q|^2 - <p, q>) between rows; see `ruzicka_distance`.

    Examples
    --------
    >>> tanimoto_distance([[1.0, 1.0]], [[1.0, 0.0]])
    array([[0.5]])
    """
    return _pairwise(preferences, others, tanimoto=True)


def jaccard_distance(preferences: ArrayLike, others: ArrayLike | None = None) -> NDArray[np.float64]:
    """Return 1 - |P & Q| / |P | Q| between the sets of non-zero components; see `ruzicka_distance`.

    Examples
    --------
    >>> jaccard_distance([[1.0, 0.2, 0.0]], [[0.7, 0.0, 0.0]])
    array([[0.5]])
    """
    binary = [None if rows is None else _binarised(rows) for rows in (preferences, others)]
    return _pairwise(binary[0], binary[1], tanimoto=False)


def _binarised(rows: Any) -> sparse.csr_array:
    checked = as_preferences(rows).copy()
    checked.data = (checked.data > 0).astype(np.float32)
    return checked


def _pairwise(preferences: Any, others: Any, *, tanimoto: bool) -> NDArray[np.float64]:
    first = as_preferences(preferences)
    second = first if others is None else as_preferences(others, "others")
    if first.shape[1] != second.shape[1]:
        raise ValueError(
            f"`preferences` and `others` must have as many columns, got {first.shape[1]} and {second.shape[1]}"
        )
    # Squares in single precision would put a row at a distance from itself, or a negative one.
    data1, data2 = first.data.astype(np.float64), second.data.astype(np.float64)
    distances: NDArray[np.float64] = _pairwise_kernel(
        first.indptr, first.indices, data1, second.indptr, second.indices, data2, first.shape[1], tanimoto
    )
    return distances


@jit
def _agree_kernel(
    points: Any, votes: Any, places: Any, packed: Any, kinds: Any, makers: Any, squares: Any, falloffs: Any
) -> Any:
    n, m = points.shape[1], len(packed)
    lengths, sums = np.zeros(m, np.int64), np.zeros(m)
    # Room for all; pages that are never written cost nothing.
    rows, values = np.empty(n * m, np.int32), np.empty(n * m, np.float32)
    near, squared = np.empty(n, np.int64), np.empty(n)
    at = np.int64(0)
    for column in range(m):
        begin = at
        for item in range(near_residuals(points, packed, kinds, column, squares[column], near, squared)):
            row = near[item]
            if not _made(makers, column, places[row]):
                value = _marginal_preference(squared[item] * falloffs[column])
                rows[at], values[at] = row, value
                sums[column] += votes[row] * value
                at += 1
        lengths[column] = at - begin
    return lengths, sums, rows[:at].copy(), values[:at].copy()


@jit
def _transpose_kernel(starts: Any, rows: Any, values: Any, n_rows: int, weights: Any) -> Any:
    indptr = np.zeros(n_rows + 1, np.int32)
    for at in range(len(rows)):
        indptr[rows[at] + 1] += 1
    for row in range(n_rows):
        indptr[row + 1] += indptr[row]
    filled = indptr.copy()
    columns, weighted = np.empty(len(rows), np.int32), np.empty(len(rows), np.float32)
    for column in range(len(weights)):
        for at in range(starts[column], starts[column + 1]):
            to = filled[rows[at]]
            columns[to], weighted[to] = column, weights[column] * values[at]
            filled[rows[at]] += 1
    return indptr, columns, weighted


@jit
def _made(makers: Any, column: int, place: int) -> bool:
    for item in range(makers.shape[1]):  # noqa: SIM110  (numba compiles no generator)
        if makers[column, item] == place:
            return True
    return False


@jit
def _marginal_preference(exponent: float) -> float:
    """Return the mean of exp(-r^2 / (2 sigma^2)) over sigma, sigma / 3 and sigma / 9; `exponent` is r^2 / (2 sigma^2).

    Each scale's term is the ninth power of the one before: one exponential for all three.
    """
    wide = np.exp(-exponent)
    squared = wide * wide * wide
    middle = squared * squared * squared
    squared = middle * middle * middle
    return float((wide + middle + squared * squared * squared) / 3.0)


@jit
def _pairwise_kernel(
    indptr1: Any, columns1: Any, values1: Any, indptr2: Any, columns2: Any, values2: Any, m: int, tanimoto: bool
) -> Any:
    n1, n2 = len(indptr1) - 1, len(indptr2) - 1
    distances = np.empty((n1, n2))
    sizes2 = np.zeros(n2)
    for j in range(n2):
        for at in range(indptr2[j], indptr2[j + 1]):
            sizes2[j] += values2[at] ** 2 if tanimoto else values2[at]
    row = np.zeros(m)
    for i in range(n1):
        size1 = 0.0
        for at in range(indptr1[i], indptr1[i + 1]):
            row[columns1[at]] = values1[at]
            size1 += values1[at] ** 2 if tanimoto else values1[at]
        for j in range(n2):
            shared = 0.0
            for at in range(indptr2[j], indptr2[j + 1]):
                other = row[columns2[at]]
                shared += other * values2[at] if tanimoto else min(other, values2[at])
            union = size1 + sizes2[j] - shared
            distances[i, j] = max(0.0, 1.0 - shared / union) if union > 0.0 else 1.0
        for at in range(indptr1[i], indptr1[i + 1]):
            row[columns1[at]] = 0.0
    return distances
