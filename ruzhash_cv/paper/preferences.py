"""Models of uniform samples, preferences for them when the noise is known, and distances between rows of preferences.

Section 3 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial.distance import cdist

from ruzhash_cv.core.families.base import ModelFamily
from ruzhash_cv.foundation.arrays import Array, Rows
from ruzhash_cv.foundation.interrupts import uninterrupted
from ruzhash_cv.foundation.validation import (
    RNG,
    Preferences,
    as_generator,
    as_preferences,
    as_reals,
    check_int,
    check_real,
)

_DRAWS_PER_MODEL = 20
_RESIDUALS_AT_ONCE = 4_000_000


@uninterrupted
def sample_models(data: ArrayLike, family: ModelFamily, *, n_models: int, rng: RNG = 0) -> tuple[Array, int]:
    """Return models (m, p) of uniformly drawn minimal samples, and the number of samples without a model.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Points as the family takes them.
    family : ModelFamily
    n_models : int
        Number of models; fewer are returned if too many samples are degenerate.
    rng : int, numpy.random.Generator or None

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above.

    Examples
    --------
    >>> from ruzhash_cv.models import Lines
    >>> models, n_degenerate = sample_models(np.random.default_rng(0).random((20, 2)), Lines(), n_models=10)
    >>> models.shape, n_degenerate
    ((10, 3), 0)
    """
    points, generator = _as_data(data), as_generator(rng)
    check_int(n_models, "n_models", at_least=0)
    found: list[Array] = []
    n_found = n_degenerate = n_drawn = 0
    while n_found < n_models and n_drawn < _DRAWS_PER_MODEL * n_models and len(points) >= family.sample_size:
        samples = points[_draw_uniform(len(points), family.sample_size, n_models - n_found, generator)]
        models, owner = family.solve(samples)
        n_drawn += len(samples)
        n_degenerate += len(samples) - len(np.unique(owner))
        n_found += len(models)
        found.append(models)
    return (np.vstack(found)[:n_models] if found else np.zeros((0, 0))), n_degenerate


def embed_preferences(residuals: ArrayLike, *, sigma: float, k: float = 3.0, binary: bool = False) -> sparse.csr_array:
    """Return preferences from residuals: p = exp(-r^2 / (2 sigma^2)) where ``|r| <= k sigma``, else 0.

    Parameters
    ----------
    residuals : array_like, shape (n, m)
        Residual of each of n correspondences to each of m models; NaN and infinity have preference 0.
    sigma : float
        Standard deviation of the noise, in the residuals' unit.
    k : float
        Preferences are 0 beyond k sigma.
    binary : bool
        True: preferences are 1 within k sigma.

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
    # Comparisons with NaN are false. Infinity is excluded by itself, because k sigma may overflow to it.
    rows, columns = np.nonzero((np.abs(table) <= k * sigma) & (np.abs(table) < np.inf))
    with np.errstate(over="ignore", under="ignore"):
        values = np.ones(len(rows)) if binary else np.exp(-0.5 * (table[rows, columns] / sigma) ** 2)
    return sparse.csr_array((values.astype(np.float32), (rows, columns)), shape=table.shape)


def family_preferences(
    data: ArrayLike, family: ModelFamily, models: Array, *, sigma: float, k: float = 3.0, binary: bool = False
) -> sparse.csr_array:
    """Return preferences (n, m) of points (n, d) for a family's models (m, p), a block of models at a time.

    For `sigma`, `k` and `binary` see `embed_preferences`.

    Examples
    --------
    >>> from ruzhash_cv.models import Lines
    >>> axis, _ = Lines().solve(np.array([[[0.0, 0.0], [1.0, 0.0]]]))
    >>> family_preferences([[5.0, 0.0], [0.0, 9.0]], Lines(), axis, sigma=1.0).toarray()
    array([[1.],
           [0.]], dtype=float32)
    """
    points = _as_data(data)
    blocks = [embed_preferences(np.zeros((len(points), 0)), sigma=sigma)]
    step = max(1, _RESIDUALS_AT_ONCE // max(len(points), 1))
    for begin in range(0, len(models), step):
        squared = family.squared_residuals(points, models[begin : begin + step])
        blocks.append(embed_preferences(np.sqrt(squared).T, sigma=sigma, k=k, binary=binary))
    stacked: sparse.csr_array = sparse.hstack(blocks, format="csr")
    return stacked


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
        In [0, 1]. Two rows of zeros are at distance 1.

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
    preferences: Preferences, others: Preferences | None, metric: Literal["cityblock", "sqeuclidean"],
    binary: bool = False,
) -> Array:  # fmt: skip
    """Return 1 - shared / union between rows.

    The shared part follows from `cdist`: sum min(p, q) = (|p| + |q| - |p - q|) / 2 with absolute values, and
    <p, q> = (|p|^2 + |q|^2 - |p - q|^2) / 2 with squares.
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


def _as_data(data: ArrayLike) -> Array:
    """Return points as an array (n, d) of float64."""
    points = np.ascontiguousarray(data, dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"`data` must have shape (n, d), got {points.shape}")
    return points


def _draw_uniform(n: int, size: int, n_samples: int, rng: np.random.Generator) -> Rows:
    """Return rows of `size` different numbers below n; rows with a repetition are drawn again."""
    samples = rng.integers(0, n, (n_samples, size))
    again = np.arange(n_samples)
    while len(again):
        ordered = np.sort(samples[again], axis=1)
        again = again[(np.diff(ordered, axis=1) == 0).any(axis=1)]
        samples[again] = rng.integers(0, n, (len(again), size))
    return samples
