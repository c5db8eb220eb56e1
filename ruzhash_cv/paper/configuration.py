"""The paper's configuration: uniform samples, m = 10 n models, preferences cut at k times the true noise, and its five methods.

There is no self-exclusion, every row counts itself, and a node's sink is credited like a leaf. In the paper k is 3 for lines and
circles, 5 for homographies and 0.25 for fundamental matrices, whose residuals are algebraic.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ruzhash_cv.core.forests.isolation import PreferenceForest
from ruzhash_cv.core.forests.ruzhash import RuzHashForest
from ruzhash_cv.foundation.validation import RNG, check_choice
from ruzhash_cv.models import ModelFamily
from ruzhash_cv.paper.preferences import family_preferences, sample_models
from ruzhash_cv.paper.voronoi import VoronoiForest

METHODS = ("PIF", "PIF-R", "PIF-B", "RHF", "RHF-B")
"""PI-Forest with Tanimoto, Ruzicka and Jaccard distances, RuzHash-iForest on continuous and on binary preferences."""
BINARY_METHODS = ("PIF-B", "RHF-B")
_METRICS = {"PIF": "tanimoto", "PIF-R": "ruzicka", "PIF-B": "jaccard"}
_MODELS_PER_POINT = 10


def paper_preferences(
    data: ArrayLike, family: ModelFamily, *, sigma: float, k: float = 3.0, binary: bool = False, rng: RNG = 0
) -> sparse.csr_array:
    """Return preferences (n, m) of points (n, d) for m = 10 n models of uniform samples; see `embed_preferences` for the options.

    Examples
    --------
    >>> from ruzhash_cv.models import Lines
    >>> paper_preferences(np.random.default_rng(0).random((40, 2)), Lines(), sigma=0.01).shape
    (40, 400)
    """
    models, _ = sample_models(data, family, n_models=_MODELS_PER_POINT * len(np.asarray(data)), rng=rng)
    return family_preferences(data, family, models, sigma=sigma, k=k, binary=binary)


def paper_forest(method: str, *, branching_factor: int = 2, **options: Any) -> PreferenceForest:
    """Return the forest of a method. ``fit(rows).anomaly_scores(rows)`` are the paper's scores.

    Parameters
    ----------
    method : {"PIF", "PIF-R", "PIF-B", "RHF", "RHF-B"}
        "PIF-B" and "RHF-B" expect binary preferences.
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
