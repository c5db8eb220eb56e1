"""Estimators, found by the names of modules."""

from __future__ import annotations

import importlib
import inspect

from .base_estimator import BaseEstimator


def load_estimator(type: str, estimator: str) -> type[BaseEstimator]:
    """Return the only estimator that a module of a kind defines."""
    path = f"{__name__}.{type}.{estimator}"
    module = importlib.import_module(path)
    own = [
        of
        for _, of in inspect.getmembers(module, inspect.isclass)
        if of.__module__ == path and issubclass(of, BaseEstimator)
    ]
    assert len(own) == 1, own
    return own[0]
