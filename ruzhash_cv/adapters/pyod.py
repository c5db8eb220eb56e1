"""The preference isolation forest as a detector of PyOD: high scores and label 1 for outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyod.models.base import BaseDetector

from ruzhash_cv import sklearn
from ruzhash_cv._arrays import Array


class PreferenceIsolationForest(BaseDetector):  # type: ignore[misc]
    """`ruzhash_cv.sklearn.PreferenceIsolationForest` by PyOD's conventions.

    Parameters
    ----------
    family, noise_scale, n_models, forest, n_estimators, max_samples, branching_factor, random_state, n_jobs
        See `ruzhash_cv.sklearn.PreferenceIsolationForest`.
    contamination : float in (0, 0.5), default=0.1
        Share of outliers in the training rows, or a thresholding object of PyOD's.

    Attributes
    ----------
    detector_ : ruzhash_cv.sklearn.PreferenceIsolationForest
    decision_scores_ : ndarray of float64, shape (n,)
        Anomaly scores of the training rows, in (0, 1], high = outlier.
    threshold_ : float
    labels_ : ndarray of int, shape (n,)
        1 for outliers of the training rows, 0 for inliers.
    """

    def __init__(
        self,
        family: Any = "points",
        contamination: Any = 0.1,
        *,
        noise_scale: float | None = None,
        n_models: int = 1000,
        forest: str = "ruzhash",
        n_estimators: int = 100,
        max_samples: int | str = 256,
        branching_factor: int = 16,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(contamination=contamination)
        self.family = family
        self.noise_scale = noise_scale
        self.n_models = n_models
        self.forest = forest
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.branching_factor = branching_factor
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> PreferenceIsolationForest:
        """Fit the detector to rows (n, d); `y` is ignored."""
        self._set_n_classes(y)
        options = {name: value for name, value in self.get_params(deep=False).items() if name != "contamination"}
        self.detector_ = sklearn.PreferenceIsolationForest(**options).fit(X)
        self.decision_scores_ = self.decision_function(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> Array:
        """Return anomaly scores of rows, shape (n,), in (0, 1], high = outlier."""
        return -np.asarray(self.detector_.score_samples(X))
