"""Models of uniform samples and preferences for them, whatever the family: what the paper's experiments are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import RNG, as_generator, check_int
from ruzhash_cv.families.protocol import ModelFamily
from ruzhash_cv.preferences import embed_preferences

_RESIDUALS_AT_ONCE = 4_000_000
_DRAWS_PER_MODEL = 20


@uninterrupted
def sample_models(data: ArrayLike, family: ModelFamily, *, n_models: int, rng: RNG = 0) -> tuple[Array, int]:
    """Return models (m, p) of uniformly drawn minimal samples, and how many samples made no model.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Points as the family takes them.
    family : ModelFamily
    n_models : int
        Models wanted; fewer come back where samples are too often degenerate.
    rng : int, numpy.random.Generator or None

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; so do the functions below.

    Examples
    --------
    >>> from ruzhash_cv.families import Lines
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


def family_preferences(
    data: ArrayLike,
    family: ModelFamily,
    models: Array,
    *,
    sigma: float,
    k: float = 3.0,
    binary: bool = False,
) -> sparse.csr_array:
    """Return preferences (n, m) of points (n, d) for a family's models (m, p), a block of models at a time.

    They are those of `embed_preferences`, and so are `sigma` (see `fit_noise`), `k` and `binary`.

    Examples
    --------
    >>> from ruzhash_cv.families import Lines
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


def fit_noise(data: ArrayLike, labels: ArrayLike, family: ModelFamily) -> float:
    """Return the noise's standard deviation over labelled structures, each fitted to its points by least squares.

    Parameters
    ----------
    data : array_like, shape (n, d)
    labels : array_like of int, shape (n,)
        0 for anomalies, which are left out; structures count from 1. Those with too few points for a fit that is not exact are
        left out too; ValueError where none is left.
    family : ModelFamily

    Returns
    -------
    float
        Root of the mean squared residual, pooled over the structures.

    Examples
    --------
    >>> from ruzhash_cv.families import Lines
    >>> fit_noise([[0.0, 1.0], [1.0, -1.0], [2.0, -1.0], [3.0, 1.0]], [1, 1, 1, 1], Lines())
    1.0
    """
    points, groups = _as_data(data), np.asarray(labels)
    squared = [
        family.squared_residuals(own, family.fit(own, np.ones((1, len(own))))).ravel()
        for own in (points[groups == structure] for structure in np.unique(groups[groups > 0]))
        if len(own) > family.sample_size
    ]
    if not squared:
        raise ValueError(f"`labels` must name a structure of more than {family.sample_size} points, got none")
    return float(np.sqrt(np.mean(np.concatenate(squared))))


def _as_data(data: ArrayLike) -> Array:
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
