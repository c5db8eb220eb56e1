"""Preference space: how well each correspondence agrees with each model, as sparse rows, and distances between rows.

The embedding is section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection",
ICIAP 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv._jit import jit, run_blocks
from ruzhash_cv._validation import check_int, check_real

#: Correspondences whose residuals are held at once, per thread.
_BLOCK = 256

ResidualFunction = Callable[[int, int], NDArray[np.float64]]


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
    table = np.array(residuals, dtype=np.float64)
    if table.ndim != 2:
        raise ValueError(f"`residuals` must have shape (n, m), got {table.shape}")
    sigma, k = check_real(sigma, "sigma"), check_real(k, "k")
    if exclude is not None:
        rows = np.asarray(exclude, dtype=np.int64).reshape(table.shape[1], -1)
        table[rows, np.arange(table.shape[1])[:, None]] = np.inf
    eps = np.full(table.shape[1], k * sigma)
    falloff = np.full(table.shape[1], 0.0 if binary else 0.5 / sigma**2)
    return compress(lambda start, stop: table[start:stop], table.shape, eps, falloff, np.ones(table.shape[1]))


def compress(
    residuals_of: ResidualFunction,
    shape: tuple[int, int],
    eps: NDArray[np.float64],
    falloff: NDArray[np.float64],
    weights: NDArray[np.float64],
    *,
    marginal: bool = False,
    places: NDArray[np.int64] | None = None,
    makers: NDArray[np.int64] | None = None,
    n_jobs: int = 1,
) -> sparse.csr_array:
    """Return weighted preferences, a block of residuals at a time, so that no (n, m) array is ever whole.

    Parameters
    ----------
    residuals_of : callable
        ``residuals_of(start, stop)`` gives the residuals of those rows, shape (stop - start, m).
    shape : (n, m)
    eps : ndarray, shape (m,)
        Largest residual that counts, per model.
    falloff : ndarray, shape (m,)
        1 / (2 sigma^2); 0 for binary preferences.
    weights : ndarray, shape (m,)
        Factor of each model's column.
    marginal : bool
        Take the mean preference over the noise scales sigma, sigma / 3 and sigma / 9.
    places, makers : ndarrays of int64, shapes (n,) and (m, s), optional
        Self-exclusion by place: a correspondence has no preference for a model whose `makers` include its place.
    """
    if places is None or makers is None:
        places, makers = np.zeros(shape[0], np.int64), np.zeros((shape[1], 0), np.int64)

    def work(start: int, stop: int) -> list[tuple[Any, Any, Any]]:
        blocks = [(first, min(first + _BLOCK, stop)) for first in range(start, stop, _BLOCK)]
        return [
            _compress_kernel(residuals_of(*block), eps, falloff, weights, marginal, places[slice(*block)], makers)
            for block in blocks
        ]

    parts = [part for parts in run_blocks(work, shape[0], n_jobs, smallest=512) for part in parts]
    if not parts:
        return sparse.csr_array(np.zeros(shape, dtype=np.float32))
    indptr = np.zeros(shape[0] + 1, np.int32)
    np.cumsum(np.concatenate([part[0] for part in parts]), out=indptr[1:])
    columns, values = (np.concatenate([part[item] for part in parts]) for item in (1, 2))
    return sparse.csr_array((values, columns, indptr), shape=shape)


def as_preferences(preferences: Any, name: str = "preferences") -> sparse.csr_array:
    """Return preferences as CSR rows with sorted columns, after checking that they lie in [0, 1]."""
    if not sparse.issparse(preferences):
        preferences = np.asarray(preferences)
        if preferences.ndim != 2 or preferences.dtype.kind not in "fiub":
            raise ValueError(
                f"`{name}` must be a numeric array of shape (n, m), got {preferences.dtype} {preferences.shape}"
            )
    rows = sparse.csr_array(preferences, dtype=np.float32)
    if len(rows.data) and not (rows.data.min() >= 0 and rows.data.max() <= 1):
        raise ValueError(f"`{name}` must lie in [0, 1], got values from {rows.data.min()} to {rows.data.max()}")
    return rows


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
    dense = check_int(first.shape[1], "number of models", at_least=0)
    # Squares in single precision would put a row at a distance from itself, or a negative one.
    data1, data2 = first.data.astype(np.float64), second.data.astype(np.float64)
    distances: NDArray[np.float64] = _pairwise_kernel(
        first.indptr, first.indices, data1, second.indptr, second.indices, data2, dense, tanimoto
    )
    return distances


@jit
def _compress_kernel(
    residuals: Any, eps: Any, falloff: Any, weights: Any, marginal: bool, places: Any, makers: Any
) -> Any:
    n, m = residuals.shape
    lengths = np.zeros(n, np.int64)
    columns = np.empty(n * m, np.int32)
    values = np.empty(n * m, np.float32)
    at = 0
    for row in range(n):
        begin = at
        for column in range(m):
            residual = residuals[row, column]
            if not abs(residual) <= eps[column] or _made(makers, column, places[row]):
                continue
            columns[at] = column
            exponent = residual * residual * falloff[column]
            values[at] = weights[column] * (_marginal_preference(exponent) if marginal else np.exp(-exponent))
            at += 1
        lengths[row] = at - begin
    return lengths, columns[:at].copy(), values[:at].copy()


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
