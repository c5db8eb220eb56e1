"""What every public function that runs compiled loops shares: the guard around its calls, and the keys of random numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numpy as np

from ruzhash_cv._interrupts import interrupts_held

P = ParamSpec("P")
T = TypeVar("T")


def uninterrupted(function: Callable[P, T]) -> Callable[P, T]:
    """Make a public function that runs OpenCV's solvers hold Ctrl-C until its end.

    They call back into Python, and the interpreter would raise KeyboardInterrupt there. They do not expect it, and what follows is
    a SystemError or a crash.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with interrupts_held():
            return function(*args, **kwargs)

    return call


def draw_key(rng: np.random.Generator) -> np.uint64:
    """Draw the key of a stream."""
    return np.uint64(rng.integers(0, 1 << 64, dtype=np.uint64))
