"""The paper's experiments: problems, methods and scores.

They use uniform samples, m = 10 n models, algebraic residuals, and preferences cut at k times the true noise. There is no
self-exclusion, every row counts itself, and a node's sink is credited like a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._validation import RNG, as_generator, check_choice
from ruzhash_cv.datasets.adelaidermf import AdelaideScene
from ruzhash_cv.datasets.shapes import Shape
from ruzhash_cv.families import Lines, ModelFamily
from ruzhash_cv.forests.isolation import PreferenceForest
from ruzhash_cv.forests.ruzhash import RuzHashForest
from ruzhash_cv.paper.algebraic import AlgebraicFundamentalMatrices, AlgebraicHomographies, normalise_pairs
from ruzhash_cv.paper.curves import AlgebraicCircles
from ruzhash_cv.paper.preferences import family_preferences
from ruzhash_cv.paper.sampling import fit_noise, sample_models
from ruzhash_cv.paper.voronoi import VoronoiForest

METHODS = ("PIF", "PIF-R", "PIF-B", "RHF", "RHF-B")
"""PI-Forest with Tanimoto, Ruzicka and Jaccard distances, RuzHash-iForest on continuous and on binary preferences."""
BINARY_METHODS = ("PIF-B", "RHF-B")
_METRICS = {"PIF": "tanimoto", "PIF-R": "ruzicka", "PIF-B": "jaccard"}
_MODELS_PER_POINT = 10
#: The family and the k of each kind of scene.
_FAMILIES: dict[str, tuple[ModelFamily, float]] = {
    "line": (Lines(), 3.0),
    "circle": (AlgebraicCircles(), 3.0),
    "homography": (AlgebraicHomographies(), 5.0),
    "fundamental": (AlgebraicFundamentalMatrices(), 0.25),
}


@dataclass(frozen=True, eq=False)
class Problem:
    """The data of one experiment.

    Attributes
    ----------
    name : str
        Name of the scene or shape.
    data : ndarray of float64, shape (n, d)
        Points of the plane, or correspondences in normalised coordinates.
    labels : ndarray of int64, shape (n,)
        -1 for an anomaly, k >= 0 for a point of structure k.
    family : ModelFamily
        The family of the structures.
    sigma : float
        Standard deviation of the noise over the labelled structures, in the residuals' unit.
    k : float
        Residuals beyond k sigma count as no agreement.
    """

    name: str
    data: Array
    labels: Rows
    family: ModelFamily
    sigma: float
    k: float


def problem_from(name: str, data: ArrayLike, labels: ArrayLike, family: ModelFamily, *, k: float = 3.0) -> Problem:
    """Return a `Problem` of data (n, d) of any family. The arguments are its attributes; sigma is measured by `fit_noise`.

    Examples
    --------
    >>> problem = problem_from("x axis", [[0.0, 1.0], [1.0, -1.0], [2.0, -1.0], [3.0, 1.0]], [0, 0, 0, 0], Lines())
    >>> problem.sigma
    1.0
    """
    points, groups = np.asarray(data, np.float64), np.asarray(labels, np.int64)
    return Problem(name, points, groups, family, fit_noise(points, groups, family), k)


def pose(scene: Shape | AdelaideScene) -> Problem:
    """Return a shape or a scene as a `Problem` with the paper's family and k, and the true noise.

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
    """Return preferences (n, m) of all points for m = 10 n models of uniform samples; `binary` ones are 0 or 1.

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> paper_preferences(pose(make_shape("stair4"))).shape
    (400, 4000)
    """
    models, _ = sample_models(problem.data, problem.family, n_models=_MODELS_PER_POINT * len(problem.data), rng=rng)
    return family_preferences(problem.data, problem.family, models, sigma=problem.sigma, k=problem.k, binary=binary)


def paper_forest(method: str, *, branching_factor: int = 2, **options: Any) -> PreferenceForest:
    """Return the forest of a method. ``fit(rows).anomaly_scores(rows)`` are the paper's scores.

    Parameters
    ----------
    method : {"PIF", "PIF-R", "PIF-B", "RHF", "RHF-B"}
        Those with "-B" expect binary preferences.
    branching_factor, **options
        Options of `RuzHashForest`. In the paper b is from 2 to 256; its t = 100 and psi = 256 are the defaults.

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

    See `paper_forest` for the arguments. `rng` draws the models and then the forest.

    Examples
    --------
    >>> from ruzhash_cv.datasets import make_shape
    >>> problem = pose(make_shape("stair4"))
    >>> scores = paper_scores(problem, "RHF")
    >>> bool(scores[problem.labels < 0].mean() > scores[problem.labels >= 0].mean())
    True
    """
    generator = as_generator(rng)
    rows = paper_preferences(problem, binary=method in BINARY_METHODS, rng=generator)
    return paper_forest(method, branching_factor=branching_factor, rng=generator).fit(rows).anomaly_scores(rows)
