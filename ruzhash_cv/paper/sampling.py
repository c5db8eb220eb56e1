"""Models of uniform samples, and the noise of labelled structures, of any family."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._kernels import uninterrupted
from ruzhash_cv._validation import RNG, as_generator, check_int
from ruzhash_cv.models.base import ModelFamily

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
        An argument is not of a form above.

    Examples
    --------
    >>> from ruzhash_cv.families import Lines
    >>> models, n_degenerate = sample_models(np.random.default_rng(0).random((20, 2)), Lines(), n_models=10)
    >>> models.shape, n_degenerate
    ((10, 3), 0)
    """
    points, generator = as_data(data), as_generator(rng)
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


def fit_noise(data: ArrayLike, labels: ArrayLike, family: ModelFamily) -> float:
    """Return the noise's standard deviation over labelled structures, each fitted to its points by least squares.

    Parameters
    ----------
    data : array_like, shape (n, d)
    labels : array_like of int, shape (n,)
        -1 for anomalies, which are left out; structures count from 0. Structures with no more points than a minimal sample are
        left out too.
    family : ModelFamily

    Returns
    -------
    float
        Root of the mean squared residual, pooled over the structures.

    Raises
    ------
    ValueError
        No structure is left.

    Examples
    --------
    >>> from ruzhash_cv.families import Lines
    >>> fit_noise([[0.0, 1.0], [1.0, -1.0], [2.0, -1.0], [3.0, 1.0]], [0, 0, 0, 0], Lines())
    1.0
    """
    points, groups = as_data(data), np.asarray(labels)
    squared = [
        family.squared_residuals(own, family.fit(own, np.ones((1, len(own))))).ravel()
        for own in (points[groups == structure] for structure in np.unique(groups[groups >= 0]))
        if len(own) > family.sample_size
    ]
    if not squared:
        raise ValueError(f"`labels` must name a structure of more than {family.sample_size} points, got none")
    return float(np.sqrt(np.mean(np.concatenate(squared))))


def as_data(data: ArrayLike) -> Array:
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
