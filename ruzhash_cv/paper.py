"""The configuration of the paper, put together from the package's parts.

F. Leveni, L. Magri, C. Alippi, G. Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023: uniform samples,
m = 10 n models, algebraic residuals, the preference cut at k times the true noise, no self-exclusion, every row counting
itself, and the sink of a node credited like a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._validation import RNG, as_generator, as_pairs, check_choice
from ruzhash_cv.datasets.adelaidermf import AdelaideScene
from ruzhash_cv.datasets.shapes import Shape
from ruzhash_cv.families import (
    Circles,
    FundamentalMatrices,
    Homographies,
    Lines,
    ModelFamily,
    family_preferences,
    fit_noise,
    sample_models,
)
from ruzhash_cv.families.two_view import unit_norm
from ruzhash_cv.forests.isolation import PreferenceForest
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.forests.voronoi import VoronoiForest

METHODS = ("PIF", "PIF-R", "PIF-B", "RHF", "RHF-B")
"""PI-Forest with Tanimoto, Ruzicka and Jaccard distances, RuzHash-iForest on continuous and on binary preferences."""
BINARY_METHODS = ("PIF-B", "RHF-B")
_METRICS = {"PIF": "tanimoto", "PIF-R": "ruzicka", "PIF-B": "jaccard"}
_MODELS_PER_POINT = 10


class _Algebraic:
    """The paper's residual: the norm of equations linear in a matrix of unit norm, in coordinates of `normalise_pairs`."""

    def equations(self, data: Array) -> Array:
        """Return the coefficients (e, n, 9) of the equations that correspondences (n, 4) satisfy."""
        raise NotImplementedError

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return sums of squared equations (m, n) of correspondences (n, 4) and models (m, 9)."""
        squared: Array = np.sum((models @ self.equations(data).transpose(0, 2, 1)) ** 2, axis=0)
        return squared

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return models (m, 9) of least weighted squared residuals, `weights` (m, n)."""
        equations = self.equations(data)
        grams = np.einsum("mn,eni,enj->mij", weights, equations, equations, optimize=True)
        fitted: Array = np.linalg.eigh(grams)[1][:, :, 0]
        return fitted


@dataclass(frozen=True)
class AlgebraicHomographies(_Algebraic, Homographies):
    """Homographies by the two equations that make x2 ~ H x1 linear in H (Hartley and Zisserman, equation 4.3).

    Examples
    --------
    >>> identity = np.eye(3).reshape(1, 9)
    >>> AlgebraicHomographies().squared_residuals(np.array([[0.0, 0.0, 3.0, 4.0]]), identity)
    array([[25.]])
    """

    def equations(self, data: Array) -> Array:
        """Return x - u w and y - v w, where H x1 = (x, y, w) and x2 = (u, v)."""
        first, nothing = _homogeneous(data[:, :2]), np.zeros((len(data), 3))
        x, y = [first, nothing, -data[:, 2:3] * first], [nothing, first, -data[:, 3:] * first]
        return np.stack([np.hstack(x), np.hstack(y)])


@dataclass(frozen=True)
class AlgebraicFundamentalMatrices(_Algebraic, FundamentalMatrices):
    """Fundamental matrices by x2^T F x1 = 0.

    Examples
    --------
    >>> sideways = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 1.0, 0.0]])
    >>> AlgebraicFundamentalMatrices().squared_residuals(np.array([[0.0, 0.0, 5.0, 2.0]]), sideways)
    array([[4.]])
    """

    def equations(self, data: Array) -> Array:
        """Return x2^T F x1."""
        second, first = _homogeneous(data[:, 2:]), _homogeneous(data[:, :2])
        return (second[:, :, None] * first[:, None, :]).reshape(1, -1, 9)

    def fit(self, data: Array, weights: Array, models: Array | None = None) -> Array:
        """Return matrices (m, 9) of least weighted squared residuals, brought to rank 2."""
        left, values, right = np.linalg.svd(super().fit(data, weights).reshape(-1, 3, 3))
        values[:, 2] = 0.0
        return unit_norm((left * values[:, None] @ right).reshape(-1, 9))


def _homogeneous(points: Array) -> Array:
    return np.hstack([points, np.ones((len(points), 1))])


#: What scenes of each kind hold, and k.
_FAMILIES: dict[str, tuple[ModelFamily, float]] = {
    "line": (Lines(), 3.0),
    "circle": (Circles(), 3.0),
    "homography": (AlgebraicHomographies(), 5.0),
    "fundamental": (AlgebraicFundamentalMatrices(), 0.25),
}


def normalise_pairs(points1: ArrayLike, points2: ArrayLike) -> Array:
    """Return correspondences (x1, y1, x2, y2), centred, with a mean distance of about 1 from the centre, shape (n, 4).

    Algebraic residuals depend on the coordinates; these make them comparable between image pairs. Points that are not finite,
    of shape (n, 2) or equally many raise TypeError or ValueError.

    Examples
    --------
    >>> normalise_pairs([[0.0, 0.0], [100.0, 100.0]], [[0.0, 0.0], [50.0, 50.0]])
    array([[-1. , -1. , -0.5, -0.5],
           [ 1. ,  1. ,  0.5,  0.5]])
    """
    first, second = as_pairs(points1, points2, finite=True)
    if len(first) == 0:
        return np.zeros((0, 4))
    centred = [points - np.median(points, axis=0) for points in (first, second)]
    spread = max(float(np.abs(points).mean()) for points in centred)
    return np.hstack(centred) / (spread or 1.0)


@dataclass(frozen=True, eq=False)
class Problem:
    """Data as the paper's experiments see them.

    Attributes
    ----------
    name : str
        Name of the scene or shape.
    data : ndarray of float64, shape (n, d)
        Points of the plane, or correspondences in normalised coordinates.
    labels : ndarray of int64, shape (n,)
        0 for an anomaly, k >= 1 for a point of structure k.
    family : ModelFamily
        What the structures are.
    sigma : float
        Standard deviation of the noise over the labelled structures, in the residuals' unit.
    k : float
        The paper's cut-off: residuals beyond k sigma count as no agreement.
    """

    name: str
    data: Array
    labels: Rows
    family: ModelFamily
    sigma: float
    k: float


def pose(scene: Shape | AdelaideScene) -> Problem:
    """Return a shape or a scene as the paper poses it: its family, the true noise, the paper's k.

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> problem = pose(make_shape("star5"))
    >>> problem.family.name, problem.k, round(problem.sigma, 3)
    ('line', 3.0, 0.014)
    """
    data = scene.points if isinstance(scene, Shape) else normalise_pairs(scene.points1, scene.points2)
    family, k = _FAMILIES[scene.kind]
    return problem_from(scene.name, data, scene.labels, family, k=k)


def paper_preferences(problem: Problem, *, binary: bool = False, rng: RNG = 0) -> sparse.csr_array:
    """Return preferences (n, m) of all points for m = 10 n models of uniform samples; `binary` ones, 1 or 0, for PIF-B and RHF-B.

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> paper_preferences(pose(make_shape("stair4"))).shape
    (400, 4000)
    """
    models, _ = sample_models(problem.data, problem.family, n_models=_MODELS_PER_POINT * len(problem.data), rng=rng)
    return family_preferences(problem.data, problem.family, models, sigma=problem.sigma, k=problem.k, binary=binary)


def paper_forest(method: str, *, branching_factor: int = 2, **options: Any) -> PreferenceForest:
    """Return the forest of a method; ``fit(rows).anomaly_scores(rows)``, in which rows count themselves, gives the paper's scores.

    Parameters
    ----------
    method : {"PIF", "PIF-R", "PIF-B", "RHF", "RHF-B"}
        "-B" expects binary preferences.
    branching_factor, **options
        Of the forest, see `RuzHashForest`: b is from 2 to 256 in the paper, t = 100 and psi = 256 are the defaults.

    Examples
    --------
    >>> paper_forest("RHF").sink_credit, paper_forest("PIF").metric
    (True, 'tanimoto')
    """
    check_choice(method, "method", METHODS)
    if method in _METRICS:
        return VoronoiForest(metric=_METRICS[method], branching_factor=branching_factor, **options)
    return RuzHashForest(sink_credit=True, branching_factor=branching_factor, **options)


def paper_scores(problem: Problem, method: str, *, branching_factor: int = 2, rng: RNG = 0) -> Array:
    """Return a method's anomaly scores for all points of a problem, shape (n,), in (0, 1], high = anomalous.

    The arguments are those of `paper_preferences` and `paper_forest`; `rng` draws the models and then the forest.

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> problem = pose(make_shape("stair4"))
    >>> scores = paper_scores(problem, "RHF")
    >>> bool(scores[problem.labels == 0].mean() > scores[problem.labels > 0].mean())
    True
    """
    generator = as_generator(rng)
    rows = paper_preferences(problem, binary=method in BINARY_METHODS, rng=generator)
    return paper_forest(method, branching_factor=branching_factor, rng=generator).fit(rows).anomaly_scores(rows)


def problem_from(name: str, data: ArrayLike, labels: ArrayLike, family: ModelFamily, *, k: float = 3.0) -> Problem:
    """Return data (n, d) of a family of one's own as a `Problem`, whose attributes are the arguments; sigma comes from the labels.

    Examples
    --------
    >>> problem = problem_from("x axis", [[0.0, 1.0], [1.0, -1.0], [2.0, -1.0], [3.0, 1.0]], [1, 1, 1, 1], Lines())
    >>> problem.sigma
    1.0
    """
    points, groups = np.asarray(data, np.float64), np.asarray(labels, np.int64)
    return Problem(name, points, groups, family, fit_noise(points, groups, family), k)
