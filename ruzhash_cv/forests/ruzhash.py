"""RuzHash: one hash whose collisions tell Ruzicka distances, and one split of a node by it.

Section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023. A split draws a
threshold t_i ~ U[0, 1) and a rank for every component i, shared by all rows of the node. A row's hash is its component of
smallest rank among those with p_i > t_i: the MinHash of the binarised row. The m possible hashes are grouped at random into
branches.

Nothing is stored per component: threshold, rank and branch are keyed hashes of (node key, i), so a row costs as many steps
as it has non-zero components.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._core.jit import draw_key, jit, mix
from ruzhash_cv._core.validation import RNG, as_generator, check_int
from ruzhash_cv.preferences import as_preferences

#: Hash of a row that has no component above its threshold.
SINK = -1
_LOW_HALF, _32, _NOTHING = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(0xFFFFFFFFFFFFFFFF)
_BRANCH_STREAM = np.uint64(0xB5AD4ECEDA1CE2A9)


def ruzhash(preferences: Any, *, n_hashes: int = 1, rng: RNG = 0) -> NDArray[np.int64]:
    """Return RuzHashes of preference rows; rows collide with a probability close to 1 - Ruzicka distance.

    Exactly, two rows p, q collide with probability sum_i min(p_i, q_i) E[1 / (1 + |U without i|)], where U is the union of
    the two binarised rows; on binary rows this is 1 - Jaccard distance, and the hash is MinHash.

    Parameters
    ----------
    preferences : array_like or sparse array, shape (n, m)
        Entries in [0, 1].
    n_hashes : int
        Independent hashes of each row.
    rng : int, numpy.random.Generator or None

    Returns
    -------
    ndarray of int64, shape (n, n_hashes)
        A component in [0, m), or -1 for a row with no component above its threshold.

    Examples
    --------
    >>> ruzhash([[0.0, 1.0], [0.0, 0.0]])
    array([[ 1],
           [-1]])
    """
    rows = as_preferences(preferences)
    generator = as_generator(rng)
    keys = np.array([draw_key(generator) for _ in range(check_int(n_hashes, "n_hashes"))], np.uint64)
    hashes = np.empty((rows.shape[0], len(keys)), np.int64)
    _hash_rows(rows.indptr, rows.indices, as_thresholds(rows.data), keys, hashes)
    return hashes


def as_thresholds(values: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return preferences as integers out of 2^32: component i passes where the high half of its bits is below this."""
    return np.ceil(values.astype(np.float64) * (1 << 32)).astype(np.uint64)


@jit
def hash_row(columns: Any, thresholds: Any, begin: int, end: int, key: Any) -> Any:
    """Return the component of smallest rank among those above their thresholds, or SINK.

    The row is `columns[begin:end]` with `thresholds` from `as_thresholds`; indices go in, because slicing would cost more than
    hashing. The high half of a component's bits is its threshold, the low half its rank; of equal ranks the lower component wins. No
    branches: whether a component passes is a coin toss, and a processor that guesses wrong loses more than the hash costs.
    """
    best = _NOTHING
    # Unsigned: a signed index costs a test for negative ones.
    for at in range(np.uint64(begin), np.uint64(end)):
        column = np.uint64(columns[at])
        bits = mix(key, column)
        ranked = (bits << _32) | column
        best = min(best, ranked if (bits >> _32) < thresholds[at] else _NOTHING)
    return SINK if best == _NOTHING else np.int64(best & _LOW_HALF)


@jit
def branch_of(component: int, key: Any, n_branches: int) -> Any:
    """Return the branch that a hash is grouped into."""
    bits = mix(key ^ _BRANCH_STREAM, np.uint64(component))
    return np.int64((bits >> _32) * np.uint64(n_branches) >> _32)


@jit("void(i4[::1], i4[::1], u8[::1], u8[::1], i8[:, ::1])")
def _hash_rows(indptr: Any, columns: Any, thresholds: Any, keys: Any, hashes: Any) -> None:
    for row in range(len(indptr) - 1):
        for item in range(len(keys)):
            hashes[row, item] = hash_row(columns, thresholds, indptr[row], indptr[row + 1], keys[item])
