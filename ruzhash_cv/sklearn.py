"""The preference isolation forest as an outlier detector of scikit-learn: ``pip install "ruzhash-cv[sklearn]"``.

Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023: models are fitted to random samples, rows
get preferences for these models, and an isolation forest is grown on the preferences. Rows that share few models with others are
outliers. So it detects outliers of structures, such as lines or circles, that a density does not separate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ruzhash_cv.core.forests.ruzhash import RuzHashForest
from ruzhash_cv.foundation.arrays import Array
from ruzhash_cv.foundation.validation import LARGEST_LENGTH, check_choice, check_int, check_real
from ruzhash_cv.paper import family_preferences
from ruzhash_cv.structures import POINT_PARAMETERS, check_family, check_takes, draw_point_samples

#: Share of residuals within the noise scale, if the caller gives none.
SHARE_WITHIN = 0.05
#: Preferences are 0 beyond this, in noise scales.
CUT = 3.0
#: `max_samples` if it is "auto".
AUTO_SAMPLES = 256


class PreferenceIsolationForest(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Outliers of structures, by a RuzHash isolation forest in preference space.

    Parameters
    ----------
    family : "points" or ModelFamily, default="points"
        A family, such as `ruzhash_cv.models.Lines()`: models are fitted to samples of neighbouring rows of `X`. ``"points"``: rows are
        points of any dimension, a model is a training row, and the residual is the distance from it.
    noise_scale : float, optional
        A residual r has the preference exp(-r^2 / (2 s^2)) up to 3 s, else 0; s is the noise scale, in the unit of the residuals. None:
        5 % of the training residuals lie within s.
    n_models : int, default=1000
        Number of models drawn.
    n_estimators : int, default=100
        Number of trees, t.
    max_samples : int or "auto", default=256
        Number of rows a tree is grown on, psi, at most all. "auto" is 256, as in scikit-learn's `IsolationForest`.
    branching_factor : int, default=16
        Branches of a node, b.
    contamination : "auto" or float in (0, 0.5], default="auto"
        Share of outliers in the training rows. "auto": Otsu's threshold of the scores ("A threshold selection method from gray-level
        histograms", 1979).
    random_state : int, RandomState or None, default=None
        Seed of the models and the trees.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors.

    Attributes
    ----------
    models_ : ndarray of shape (n_models, p)
        Models drawn.
    noise_scale_ : float
    forest_ : RuzHashForest
        Scores new rows. Data that only `fit_anomaly_scores` needs are left out, so that a pickle is small.
    offset_ : float
        ``decision_function(X) = score_samples(X) - offset_``.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Names of the columns, if `X` has them.

    Examples
    --------
    >>> import numpy as np
    >>> from ruzhash_cv.models import Lines
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(0, 1, 100)
    >>> on_line = np.stack([x, 0.5 * x], axis=1)
    >>> X = np.vstack([on_line + rng.normal(scale=0.003, size=(100, 2)), rng.uniform(0, 1, (20, 2))])
    >>> detector = PreferenceIsolationForest(Lines(), contamination=20 / 120, random_state=0)
    >>> labels = detector.fit_predict(X)
    >>> int((labels[:100] == 1).sum()), int((labels[100:] == -1).sum())
    (99, 19)
    """

    def __init__(
        self,
        family: Any = "points",
        *,
        noise_scale: float | None = None,
        n_models: int = 1000,
        n_estimators: int = 100,
        max_samples: int | str = 256,
        branching_factor: int = 16,
        contamination: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.family = family
        self.noise_scale = noise_scale
        self.n_models = n_models
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.branching_factor = branching_factor
        self.contamination = contamination
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> PreferenceIsolationForest:
        """Draw models and grow the forest on rows (n, d); `y` is ignored."""
        self._check_parameters()
        rows = validate_data(self, X, reset=True, dtype=np.float64, order="C")
        rng = np.random.default_rng(check_random_state(self.random_state).randint(0, 2**31 - 1, 4))
        self.models_ = self._draw_models(rows, rng)
        self.noise_scale_ = self._measured_scale(rows)
        preferences = self._preferences(rows)
        self.forest_ = self._new_forest(int(rng.integers(2**31))).fit(preferences)
        self.forest_._trees = _for_new_rows(self.forest_)
        scores = -self.forest_.anomaly_scores(preferences)
        if self.contamination == "auto":
            self.offset_ = _otsu_threshold(scores)
        else:
            self.offset_ = float(np.percentile(scores, 100.0 * self.contamination))
        return self

    def score_samples(self, X: Any) -> Array:
        """Return the negative anomaly scores of rows, shape (n,), in [-1, 0): low = outlier, in scikit-learn's convention."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        scores: Array = -self.forest_.anomaly_scores(self._preferences(rows))
        return scores

    def decision_function(self, X: Any) -> Array:
        """Return ``score_samples(X) - offset_``, shape (n,): below 0 for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers, shape (n,)."""
        return np.where(self.decision_function(X) < 0.0, -1, 1).astype(np.int64)

    def _check_parameters(self) -> None:
        if isinstance(self.family, str):
            check_choice(self.family, "family", ("points",), "a ModelFamily")
        else:
            check_family(self.family)
        check_int(self.n_models, "n_models")
        # The forest has other names for these two.
        check_int(self.n_estimators, "n_estimators")
        if isinstance(self.max_samples, str):
            check_choice(self.max_samples, "max_samples", ("auto",), "an integer")
        else:
            check_int(self.max_samples, "max_samples")
        if self.noise_scale is not None:
            check_real(self.noise_scale, "noise_scale")
        if isinstance(self.contamination, str):
            check_choice(self.contamination, "contamination", ("auto",), "a number in (0, 0.5]")
        else:
            check_real(self.contamination, "contamination", above=0.0, below=np.nextafter(0.5, 1.0))

    def _new_forest(self, seed: int) -> RuzHashForest:
        return RuzHashForest(
            n_trees=self.n_estimators,
            subsample_size=AUTO_SAMPLES if self.max_samples == "auto" else int(self.max_samples),
            branching_factor=self.branching_factor,
            rng=seed,
            n_jobs=1 if self.n_jobs is None else self.n_jobs,
        )

    def _draw_models(self, rows: Array, rng: np.random.Generator) -> Array:
        """Return models fitted to samples of neighbours; training rows if there is no family."""
        if isinstance(self.family, str):
            return rng.permutation(rows)[: self.n_models]
        check_takes(self.family, rows.shape[1], "X")
        if not (np.abs(rows) < LARGEST_LENGTH).all():  # squares would overflow
            raise ValueError(f"`X` must have coordinates below {LARGEST_LENGTH:.0e}, got {np.abs(rows).max():.3g}")
        weights, size, sizes = np.ones(len(rows)), self.family.sample_size, POINT_PARAMETERS.neighbourhoods
        if len(rows) < size:
            raise ValueError(
                f"`X` must have at least {size} rows, as many as a model of the family needs, got {len(rows)}"
            )
        samples = draw_point_samples(rows, weights, self.n_models, size, sizes, rng)
        models: Array = self.family.solve(rows[samples])[0]
        if len(models) == 0:
            raise ValueError(f"`X` must have samples that make models of the family, got {len(samples)} that make none")
        return models

    def _measured_scale(self, rows: Array) -> float:
        if self.noise_scale is not None:
            return float(self.noise_scale)
        with np.errstate(over="ignore", invalid="ignore"):
            residuals = np.sqrt(self._taken_family().squared_residuals(rows, self.models_).T.ravel())
        residuals = residuals[np.isfinite(residuals) & (residuals > 0.0)]
        # All are 0 if there is one row, or if all rows are equal.
        return float(np.quantile(residuals, SHARE_WITHIN)) if len(residuals) > 0 else 1.0

    def _preferences(self, rows: Array) -> sparse.csr_array:
        with np.errstate(over="ignore", invalid="ignore"):  # rows far off have no preference
            return family_preferences(rows, self._taken_family(), self.models_, sigma=self.noise_scale_, k=CUT)

    def _taken_family(self) -> Any:
        return _Places() if isinstance(self.family, str) else self.family


class _Places:
    """Points as models of points: the residual is the distance."""

    def squared_residuals(self, data: Array, models: Array) -> Array:
        """Return squared distances (m, n) of rows (n, d) from models (m, d)."""
        return np.asarray(cdist(models, data, "sqeuclidean"))


def _for_new_rows(forest: Any) -> Any:
    """Return the trees of a forest, without empty nodes and without what scores its training rows when they do not count themselves."""
    trees, n_nodes = forest._trees, max(1, int(forest._trees.children.max()) + forest._growth.n_children)
    kept = {name: np.ascontiguousarray(part[:, :n_nodes]) for name, part in trees._asdict().items()}
    kept |= {"lengths": np.ascontiguousarray(kept["lengths"][:, :, :1]), "trained": trees.trained[:, :0].copy()}
    return type(trees)(**kept)


def _otsu_threshold(scores: Array) -> float:
    """Return the middle between the two parts of scores whose variances within are least."""
    ranked = np.sort(scores)
    below = np.arange(1, len(ranked))
    if len(below) == 0:
        return float(ranked[0])
    above, sums = len(ranked) - below, np.cumsum(ranked)[:-1]
    between = below * above * (sums / below - (ranked.sum() - sums) / above) ** 2
    cut = int(np.argmax(between))
    return float(0.5 * (ranked[cut] + ranked[cut + 1]))
