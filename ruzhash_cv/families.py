"""Families of models that data may be explained by: two bring along, two more for matches, and any a user adds.

A family is three things: how many points make a model, the solver, the residual. Preferences follow from them
(`family_preferences`), and everything after preferences does not know what the models were.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv._validation import RNG, as_generator, as_points, check_int, check_same_length
from ruzhash_cv.models import solve_in_frame, unit_norm
from ruzhash_cv.preferences import embed_preferences

_RESIDUALS_AT_ONCE = 4_000_000
_DRAWS_PER_MODEL = 20


class ModelFamily(Protocol):
    """What a family of models has to offer; any object with these three members is one.

    Attributes
    ----------
    sample_size : int
        Points of a minimal sample.
    """

    @property
    def sample_size(self) -> int:
        """Return the number of points of a minimal sample."""

    def solve(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return models (k, p) of samples (s, size, d): usually one each; NaN in place of a model there is not.

        With more than `sample_size` points a sample, the least-squares fit to each (`fit_noise` asks for it).
        """

    def residuals(self, data: NDArray[np.float64], models: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return residuals (n, m), unsigned, of points (n, d) to models (m, p)."""


@dataclass(frozen=True)
class Lines:
    """Lines in the plane: a x + b y + c = 0 with a^2 + b^2 = 1; the residual is the distance.

    Examples
    --------
    >>> Lines().residuals(np.array([[5.0, 2.0]]), Lines().solve(np.array([[[0.0, 0.0], [1.0, 0.0]]])))
    array([[2.]])
    """

    sample_size: int = 2

    def solve(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return lines (s, 3) through, or with least squared distances from, the points of each sample (s, size, 2)."""
        centres = samples.mean(axis=1)
        # The normal is across the direction in which the points spread most.
        normals = np.linalg.svd(samples - centres[:, None], full_matrices=True)[2][:, -1]
        lines = np.hstack([normals, -np.sum(normals * centres, axis=1, keepdims=True)])
        lines[np.ptp(samples, axis=1).max(axis=1) == 0] = np.nan
        return lines

    def residuals(self, data: NDArray[np.float64], models: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return distances (n, m) of points (n, 2) from lines (m, 3), in the points' unit."""
        distances: NDArray[np.float64] = np.abs(data @ models[:, :2].T + models[:, 2])
        return distances


@dataclass(frozen=True)
class Circles:
    """Circles x^2 + y^2 + d x + e y + f = 0; the residual is algebraic, the equation's left-hand side.

    It equals |distance from the centre - radius| times (distance from the centre + radius), unit squared.

    Examples
    --------
    >>> circle = Circles().solve(np.array([[[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]]))
    >>> Circles().residuals(np.array([[2.0, 0.0]]), circle).round(6)
    array([[3.]])
    """

    sample_size: int = 3

    def solve(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return circles (s, 3) through, or with least squared residuals to, the points of each sample (s, size, 2)."""
        system = np.concatenate([samples, np.ones_like(samples[..., :1])], axis=2)
        squares = -np.sum(samples**2, axis=2)[..., None]
        usable = np.linalg.matrix_rank(system) == 3
        circles = np.full((len(samples), 3), np.nan)
        circles[usable] = (np.linalg.pinv(system[usable]) @ squares[usable])[..., 0]
        return circles

    def residuals(self, data: NDArray[np.float64], models: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return algebraic residuals (n, m) of points (n, 2) to circles (m, 3)."""
        squares = np.sum(data**2, axis=1, keepdims=True)
        residuals: NDArray[np.float64] = np.abs(squares + data @ models[:, :2].T + models[:, 2])
        return residuals


@dataclass(frozen=True)
class Homographies:
    """Homographies of correspondences (x1, y1, x2, y2) in normalised coordinates, see `normalise_pairs`.

    A model is a matrix of unit norm as a row of 9; the residual is algebraic: the norm of the two equations that make
    x2 ~ H x1 linear in H (Hartley and Zisserman, equation 4.3).

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    >>> H = Homographies().solve(np.hstack([square, 2 * square])[None])
    >>> (H / H[0, 8]).round(6).reshape(3, 3).diagonal()
    array([2., 2., 1.])
    """

    sample_size: int = 4

    def solve(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return homographies (k, 9) of samples (s, size, 4); samples without an invertible one are left out."""
        if samples.shape[1] == self.sample_size:
            return _by_opencv(samples, "homography")
        x, y, u, v = np.moveaxis(samples, 2, 0)
        one, nothing = np.ones_like(x), np.zeros_like(x)
        first = np.stack([x, y, one, nothing, nothing, nothing, -u * x, -u * y, -u], axis=2)
        second = np.stack([nothing, nothing, nothing, x, y, one, -v * x, -v * y, -v], axis=2)
        return _null_vectors(np.concatenate([first, second], axis=1))

    def residuals(self, data: NDArray[np.float64], models: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return algebraic residuals (n, m) of correspondences (n, 4) to homographies (m, 9)."""
        mapped = _homogeneous(data[:, :2]) @ models.reshape(-1, 3, 3).transpose(0, 2, 1)
        x, y, w = np.moveaxis(mapped, 2, 0)
        residuals: NDArray[np.float64] = np.hypot(x - data[:, 2] * w, y - data[:, 3] * w).T
        return residuals


@dataclass(frozen=True)
class FundamentalMatrices:
    """Fundamental matrices of correspondences (x1, y1, x2, y2) in normalised coordinates, see `normalise_pairs`.

    A model is a matrix of unit norm as a row of 9; the residual is algebraic, |x2^T F x1|.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]])
    >>> FundamentalMatrices().residuals(np.array([[0.0, 0.0, 5.0, 2.0]]), sideways)
    array([[2.]])
    """

    sample_size: int = 7

    def solve(self, samples: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return fundamental matrices (k, 9) of samples (s, size, 4): up to three of each minimal one, else one of rank 2."""
        if samples.shape[1] == self.sample_size:
            return _by_opencv(samples, "fundamental")
        first, second = _homogeneous(samples[..., :2]), _homogeneous(samples[..., 2:])
        full = _null_vectors((second[..., :, None] * first[..., None, :]).reshape(*samples.shape[:2], 9))
        left, values, right = np.linalg.svd(full.reshape(-1, 3, 3))
        values[:, 2] = 0.0
        return unit_norm(left * values[:, None] @ right).reshape(-1, 9)

    def residuals(self, data: NDArray[np.float64], models: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return algebraic residuals (n, m) of correspondences (n, 4) to fundamental matrices (m, 9)."""
        products = _homogeneous(data[:, 2:])[:, :, None] * _homogeneous(data[:, :2])[:, None, :]
        residuals: NDArray[np.float64] = np.abs(products.reshape(-1, 9) @ models.T)
        return residuals


def normalise_pairs(points1: ArrayLike, points2: ArrayLike) -> NDArray[np.float64]:
    """Return correspondences (x1, y1, x2, y2), centred, with a mean distance of about 1 from the centre, shape (n, 4).

    Algebraic residuals depend on the coordinates; these make them comparable between image pairs.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels; finite.

    Returns
    -------
    ndarray of float64, shape (n, 4)

    Raises
    ------
    TypeError, ValueError
        The points are not of the form above, or not equally many; the message names the argument and what arrived.

    Examples
    --------
    >>> normalise_pairs([[0.0, 0.0], [100.0, 100.0]], [[0.0, 0.0], [50.0, 50.0]])
    array([[-1. , -1. , -0.5, -0.5],
           [ 1. ,  1. ,  0.5,  0.5]])
    """
    first, second = as_points(points1, "points1", finite=True), as_points(points2, "points2", finite=True)
    check_same_length(first, second, "`points1` and `points2`")
    if len(first) == 0:
        return np.zeros((0, 4))
    centred = [points - np.median(points, axis=0) for points in (first, second)]
    spread = max(float(np.abs(points).mean()) for points in centred)
    return np.hstack(centred) / (spread or 1.0)


def sample_models(
    data: ArrayLike, family: ModelFamily, *, n_models: int, rng: RNG = 0
) -> tuple[NDArray[np.float64], int]:
    """Return models of uniformly drawn minimal samples.

    Parameters
    ----------
    data : array_like, shape (n, d)
        Points as the family takes them.
    family : ModelFamily
    n_models : int
        Models wanted; fewer come back where samples are too often degenerate.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    models : ndarray, shape (m, p)
    n_degenerate : int
        Samples that made no model.

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> models, n_degenerate = sample_models(np.random.default_rng(0).random((20, 2)), Lines(), n_models=10)
    >>> models.shape, n_degenerate
    ((10, 3), 0)
    """
    points, generator = _as_data(data), as_generator(rng)
    check_int(n_models, "n_models", at_least=0)
    found: list[NDArray[np.float64]] = []
    n_found = n_degenerate = n_drawn = 0
    while n_found < n_models and n_drawn < _DRAWS_PER_MODEL * n_models and len(points) >= family.sample_size:
        samples = points[_draw_uniform(len(points), family.sample_size, n_models - n_found, generator)]
        models = np.asarray(family.solve(samples), np.float64)
        usable = models[np.isfinite(models).all(axis=1)]
        n_drawn += len(samples)
        n_degenerate += max(0, len(samples) - len(usable))
        n_found += len(usable)
        found.append(usable)
    return (np.vstack(found)[:n_models] if found else np.zeros((0, 0))), n_degenerate


def family_preferences(
    data: ArrayLike,
    family: ModelFamily,
    models: NDArray[np.float64],
    *,
    sigma: float,
    k: float = 3.0,
    binary: bool = False,
) -> sparse.csr_array:
    """Return preferences of points for a family's models: `embed_preferences` of the residuals, a block of models at a time.

    Parameters
    ----------
    data : array_like, shape (n, d)
    family : ModelFamily
    models : ndarray, shape (m, p)
    sigma : float
        Standard deviation of the noise, in the residuals' unit (see `fit_noise`).
    k : float
        Residuals beyond k sigma count as no agreement.
    binary : bool
        Agreement is 1 or 0.

    Returns
    -------
    scipy.sparse.csr_array of float32, shape (n, m)

    Raises
    ------
    TypeError, ValueError
        An argument is not of a form above; the message names it and what arrived.

    Examples
    --------
    >>> axis = Lines().solve(np.array([[[0.0, 0.0], [1.0, 0.0]]]))
    >>> family_preferences([[5.0, 0.0], [0.0, 9.0]], Lines(), axis, sigma=1.0).toarray()
    array([[1.],
           [0.]], dtype=float32)
    """
    points = _as_data(data)
    if len(models) == 0:
        return embed_preferences(np.zeros((len(points), 0)), sigma=sigma)
    step = max(1, _RESIDUALS_AT_ONCE // max(len(points), 1))
    blocks = [
        embed_preferences(family.residuals(points, models[begin : begin + step]), sigma=sigma, k=k, binary=binary)
        for begin in range(0, len(models), step)
    ]
    stacked: Any = sparse.hstack(blocks)
    rows: sparse.csr_array = stacked.tocsr()
    return rows


def fit_noise(data: ArrayLike, labels: ArrayLike, family: ModelFamily) -> float:
    """Return the noise's standard deviation over labelled structures, each fitted to its points by least squares.

    Parameters
    ----------
    data : array_like, shape (n, d)
    labels : array_like of int, shape (n,)
        0 for anomalies, which are left out; structures count from 1. Those with too few points for a fit that is not exact are
        left out too.
    family : ModelFamily

    Returns
    -------
    float
        Root of the mean squared residual, pooled over the structures.

    Raises
    ------
    ValueError
        No structure has more points than a minimal sample.

    Examples
    --------
    >>> fit_noise([[0.0, 1.0], [1.0, -1.0], [2.0, -1.0], [3.0, 1.0]], [1, 1, 1, 1], Lines())
    1.0
    """
    points, groups = _as_data(data), np.asarray(labels)
    residuals = [
        family.residuals(own, family.solve(own[None])).ravel()
        for own in (points[groups == structure] for structure in np.unique(groups[groups > 0]))
        if len(own) > family.sample_size
    ]
    if not residuals:
        raise ValueError(f"`labels` must name a structure of more than {family.sample_size} points, got none")
    return float(np.sqrt(np.mean(np.concatenate(residuals) ** 2)))


def _as_data(data: ArrayLike) -> NDArray[np.float64]:
    points = np.ascontiguousarray(data, dtype=np.float64)
    if points.ndim != 2:
        raise ValueError(f"`data` must have shape (n, d), got {points.shape}")
    return points


def _draw_uniform(n: int, size: int, n_samples: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return rows of `size` different numbers below n; rows with a repetition are drawn again."""
    samples = rng.integers(0, n, (n_samples, size))
    again = np.arange(n_samples)
    while len(again):
        ordered = np.sort(samples[again], axis=1)
        again = again[(np.diff(ordered, axis=1) == 0).any(axis=1)]
        samples[again] = rng.integers(0, n, (len(again), size))
    return samples


def _by_opencv(samples: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
    pairs = samples.reshape(-1, 4)
    rows = np.arange(len(pairs), dtype=np.int64).reshape(samples.shape[:2])
    return solve_in_frame(pairs, rows, kind).matrices.reshape(-1, 9)


def _null_vectors(systems: NDArray[Any]) -> NDArray[np.float64]:
    """Return the unit vectors x that make |A x| least, for each A."""
    vectors: NDArray[np.float64] = np.linalg.eigh(systems.transpose(0, 2, 1) @ systems)[1][:, :, 0]
    return vectors


def _homogeneous(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.concatenate([points, np.ones_like(points[..., :1])], axis=-1)
