"""The configuration of the paper, put together from the package's parts.

F. Leveni, L. Magri, C. Alippi, G. Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023: uniform samples,
m = 10 n models, algebraic residuals, the preference cut at k times the true noise, no self-exclusion, every row counting
itself, and the sink of a node credited like a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv.forests.isolation import PreferenceForest
from ruzhash_cv._core.validation import RNG, as_generator, check_choice
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
    normalise_pairs,
    sample_models,
)
from ruzhash_cv.forests.ruzhash_forest import RuzHashForest
from ruzhash_cv.forests.voronoi import VoronoiForest

METHODS = ("PIF", "PIF-R", "PIF-B", "RHF", "RHF-B")
"""PI-Forest with Tanimoto, Ruzicka and Jaccard distances, RuzHash-iForest on continuous and on binary preferences."""
BINARY_METHODS = ("PIF-B", "RHF-B")
_METRICS = {"PIF": "tanimoto", "PIF-R": "ruzicka", "PIF-B": "jaccard"}
_FAMILIES: dict[str, ModelFamily] = {
    "line": Lines(),
    "circle": Circles(),
    "homography": Homographies(),
    "fundamental": FundamentalMatrices(),
}
_K = {"line": 3.0, "circle": 3.0, "homography": 5.0, "fundamental": 0.25}
_MODELS_PER_POINT = 10


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
    data: NDArray[np.float64]
    labels: NDArray[np.int64]
    family: ModelFamily
    sigma: float
    k: float


def pose(scene: Shape | AdelaideScene) -> Problem:
    """Return a shape or a scene as the paper poses it: its family, the true noise, the paper's k.

    Parameters
    ----------
    scene : Shape or AdelaideScene

    Returns
    -------
    Problem

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> problem = pose(make_shape("star5"))
    >>> problem.family, problem.k, round(problem.sigma, 3)
    (Lines(sample_size=2), 3.0, 0.014)
    """
    data = scene.points if isinstance(scene, Shape) else normalise_pairs(scene.points1, scene.points2)
    family = _FAMILIES[scene.kind]
    return Problem(scene.name, data, scene.labels, family, fit_noise(data, scene.labels, family), _K[scene.kind])


def paper_preferences(problem: Problem, *, binary: bool = False, rng: RNG = 0) -> sparse.csr_array:
    """Return preferences of all points for m = 10 n models of uniform samples.

    Parameters
    ----------
    problem : Problem
    binary : bool
        1 or 0, for PIF-B and RHF-B. The same `rng` gives the same models.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    scipy.sparse.csr_array of float32, shape (n, m)

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> paper_preferences(pose(make_shape("stair4"))).shape
    (400, 4000)
    """
    models, _ = sample_models(
        problem.data, problem.family, n_models=_MODELS_PER_POINT * len(problem.data), rng=as_generator(rng)
    )
    return family_preferences(problem.data, problem.family, models, sigma=problem.sigma, k=problem.k, binary=binary)


def paper_forest(
    method: str,
    *,
    branching_factor: int = 2,
    n_trees: int = 100,
    subsample_size: int = 256,
    rng: RNG = 0,
    n_jobs: int | None = None,
) -> PreferenceForest:
    """Return the forest of a method; ``fit(rows).anomaly_scores(rows)``, in which rows count themselves, gives the paper's scores.

    Parameters
    ----------
    method : {"PIF", "PIF-R", "PIF-B", "RHF", "RHF-B"}
        "-B" expects binary preferences.
    branching_factor : int
        b, from 2 to 256 in the paper.
    n_trees, subsample_size : int
        t and psi.
    rng : int, numpy.random.Generator or None
    n_jobs : int or None
        Threads; None for all processors.

    Returns
    -------
    RuzHashForest or VoronoiForest

    Examples
    --------
    >>> paper_forest("RHF").sink_credit, paper_forest("PIF").metric
    (True, 'tanimoto')
    """
    check_choice(method, "method", METHODS)
    if method in _METRICS:
        return VoronoiForest(
            metric=_METRICS[method],
            n_trees=n_trees,
            subsample_size=subsample_size,
            branching_factor=branching_factor,
            rng=rng,
            n_jobs=n_jobs,
        )
    return RuzHashForest(
        sink_credit=True,
        n_trees=n_trees,
        subsample_size=subsample_size,
        branching_factor=branching_factor,
        rng=rng,
        n_jobs=n_jobs,
    )


def paper_scores(problem: Problem, method: str, *, branching_factor: int = 2, rng: RNG = 0) -> NDArray[np.float64]:
    """Return a method's anomaly scores for all points of a problem.

    Parameters
    ----------
    problem : Problem
    method : {"PIF", "PIF-R", "PIF-B", "RHF", "RHF-B"}
    branching_factor : int
        b, from 2 to 256 in the paper.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    ndarray of float64, shape (n,)
        In (0, 1], high = anomalous.

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
    """Return data of a family of one's own as a problem; sigma comes from the labels.

    Parameters
    ----------
    name : str
    data : array_like, shape (n, d)
        Points as the family takes them.
    labels : array_like of int, shape (n,)
        0 for an anomaly, k >= 1 for a point of structure k.
    family : ModelFamily
    k : float
        Residuals beyond k sigma count as no agreement.

    Returns
    -------
    Problem

    Examples
    --------
    >>> problem = problem_from("x axis", [[0.0, 1.0], [1.0, -1.0], [2.0, -1.0], [3.0, 1.0]], [1, 1, 1, 1], Lines())
    >>> problem.sigma
    1.0
    """
    points, groups = np.asarray(data, np.float64), np.asarray(labels, np.int64)
    return Problem(name, points, groups, family, fit_noise(points, groups, family), k)
