"""Decoys: correspondences known to be mismatches, to compare matches with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import jit
from ruzhash_cv._random import below, draw_key, mix


def draw_decoys(
    pairs: NDArray[np.float64], n_decoys: int, reach: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Pair the first point of one correspondence with the second point of another.

    Parameters
    ----------
    pairs : ndarray, shape (n, 4)
        Correspondences (x1, y1, x2, y2).
    n_decoys : int
        Decoys wanted; none come back if nearly all pairings are close to real ones.
    reach : float
        A pairing is refused when its two points' own partners are within `reach` of where it would put them: it could be true.

    Returns
    -------
    ndarray, shape (n_decoys or fewer, 4)
    """
    if len(pairs) < 2:
        return np.zeros((0, 4))
    decoys: NDArray[np.float64] = _draw_kernel(pairs, n_decoys, reach, draw_key(rng))
    return decoys


@jit
def _draw_kernel(pairs: Any, n_decoys: int, reach: float, key: Any) -> Any:
    decoys = np.empty((n_decoys, 4))
    n = len(pairs)
    n_drawn = 0
    for slot in range(n_decoys):
        stream = mix(key, np.uint64(slot))
        for attempt in range(8):
            i = below(stream, np.uint64(2 * attempt), n)
            j = below(stream, np.uint64(2 * attempt + 1), n)
            near1 = max(abs(pairs[i, 0] - pairs[j, 0]), abs(pairs[i, 1] - pairs[j, 1])) < reach
            near2 = max(abs(pairs[i, 2] - pairs[j, 2]), abs(pairs[i, 3] - pairs[j, 3])) < reach
            if not near1 and not near2:
                decoys[n_drawn, :2], decoys[n_drawn, 2:] = pairs[i, :2], pairs[j, 2:]
                n_drawn += 1
                break
    return decoys[:n_drawn]
