"""Left the package."""

raise ImportError("ruzhash_cv.adapters.pyod is gone: use ruzhash_cv.sklearn.PreferenceIsolationForest, PyOD's scores are -score_samples(X)")
