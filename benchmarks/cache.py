"""Arrays that take long to make, kept in the user's cache so that a second run starts at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pooch
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


def stored(name: str, make: Callable[[], Arrays]) -> Arrays:
    """Arrays made once under this name; the name must change with everything they depend on."""
    path = Path(pooch.os_cache("ruzhash_cv")) / "benchmarks" / f"{name}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(".part.npz")
        np.savez(half, **make())
        half.replace(path)  # an interrupted run leaves no half file behind
    with np.load(path) as arrays:
        return dict(arrays)
