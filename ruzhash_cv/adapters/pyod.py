"""Left the package."""

raise ImportError("ruzhash_cv.adapters.pyod is gone: PyOD's scores are -score_samples(X) of ruzhash_cv.sklearn")
