"""The door: every public function checks its arguments here, everything behind it trusts them.

Errors name the argument, the requirement and what arrived.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

RNG: TypeAlias = int | np.integer[Any] | np.random.Generator | None


def as_points(value: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return `value` as a C-contiguous float64 array of shape (n, 2); NaN and infinity may stay."""
    try:
        points = np.asarray(value)
    except ValueError:
        raise ValueError(f"`{name}` must have shape (n, 2), got a ragged sequence") from None
    if points.size == 0 and points.ndim <= 2:
        return np.zeros((0, 2))
    if points.dtype == object or points.dtype.kind not in "iufb":
        raise TypeError(f"`{name}` must be an array of real numbers, got dtype {points.dtype}")
    if points.ndim == 3 and points.shape[1:] == (1, 2):  # OpenCV's own (n, 1, 2)
        points = points[:, 0]
    if points.ndim != 2 or points.shape[1] != 2:
        raise ValueError(f"`{name}` must have shape (n, 2), got {points.shape}")
    return np.ascontiguousarray(points, dtype=np.float64)


def check_same_length(first: Sequence[Any] | NDArray[Any], second: Sequence[Any] | NDArray[Any], names: str) -> None:
    """Raise unless both have the same number of rows; `names` reads like "`points1` and `points2`"."""
    if len(first) != len(second):
        raise ValueError(f"{names} must have the same length, got {len(first)} and {len(second)}")


def check_int(value: Any, name: str, *, at_least: int = 1) -> int:
    """Return `value` as int, at least `at_least`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if value < at_least:
        raise ValueError(f"`{name}` must be at least {at_least}, got {value}")
    return int(value)


def check_real(value: Any, name: str, *, above: float = 0.0, below: float = np.inf, inclusive: bool = False) -> float:
    """Return `value` as float, finite and strictly between `above` and `below` (`inclusive`: the ends count)."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(f"`{name}` must be a number, got {value!r}")
    number = float(value)
    inside = above <= number <= below if inclusive else above < number < below
    if not (inside and np.isfinite(number)):
        if np.isinf(below):
            raise ValueError(f"`{name}` must be a finite number above {above:g}, got {value}")
        raise ValueError(f"`{name}` must lie between {above:g} and {below:g}, got {value}")
    return number


def check_choice(value: Any, name: str, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"`{name}` must be one of {listed}, got {value!r}")
    return str(value)


def as_generator(rng: RNG, name: str = "rng") -> np.random.Generator:
    """Return a Generator from an int, a Generator or None (fresh entropy), as in SPEC 7."""
    if rng is None or isinstance(rng, np.random.Generator):
        return np.random.default_rng(rng)
    if isinstance(rng, (bool, np.bool_)) or not isinstance(rng, (int, np.integer)) or rng < 0:
        raise TypeError(f"`{name}` must be a non-negative int, a numpy.random.Generator or None, got {rng!r}")
    return np.random.default_rng(int(rng))


def check_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads: None and -1 mean all processors this process may use."""
    if n_jobs is None or (not isinstance(n_jobs, bool) and n_jobs == -1):
        try:
            return len(os.sched_getaffinity(0))
        except AttributeError:  # macOS, Windows
            return os.cpu_count() or 1
    return check_int(n_jobs, "n_jobs")
