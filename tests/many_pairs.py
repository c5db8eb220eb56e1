"""Pairs for `filter_pairs`, and digests of what it makes of them."""

import hashlib
import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from result_rows import labels, structures

from ruzhash_cv import FilterResult

N_PAIRS = 12


def problem(number: int, n: int = 90) -> tuple[np.ndarray, np.ndarray]:
    """Return matches of which a third are mismatches."""
    rng = np.random.default_rng(number)
    first = rng.uniform(0, 800, (n, 2))
    second = first @ [[0.9, 0.1], [-0.1, 1.1]] + rng.normal(20, 0.5, (n, 2))
    second[: n // 3] = rng.uniform(0, 800, (n // 3, 2))
    return first, second


def pairs(numbers: Any = range(N_PAIRS)) -> Iterator[tuple[Any, ...]]:
    for number in numbers:
        yield ("scene", number), *problem(number)


def digest(result: FilterResult) -> str:
    """Return a digest of all a result says but its times."""
    state = hashlib.sha256(repr(result.reason).encode())
    for array in (result.inlier_mask, result.anomaly_scores, result.inlier_probabilities, labels(result)):
        state.update(array.tobytes())
    for model in structures(result):
        state.update(model.matrix.tobytes())
    return state.hexdigest()


def digests(results: Any) -> dict[Any, str]:
    listed = [(key, digest(result)) for key, result in results]
    assert len(dict(listed)) == len(listed)
    return dict(listed)


def ended(group: int) -> bool:
    """Tell whether all processes of a group end in some seconds."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
