"""RuzHash, a hash whose collisions tell Ruzicka distances, and the isolation forest that splits its nodes by it.

Section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023. A node draws a
threshold t_i ~ U[0, 1) and a rank for every component i, shared by all its rows. A row's hash is its component of smallest
rank among those with p_i > t_i: the MinHash of the binarised row. The m possible hashes are grouped at random into branches.
A row that has no component above its threshold falls into the node's sink.

All that is drawn in a node follows from its key: a tree is kept as the keys, children and path lengths of its nodes. Rows go
down it in blocks, node by node, so that each node is drawn once a block and a row has only to load and compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.forests.isolation import Growth, PreferenceForest, Trees, empty_trees, workspace
from ruzhash_cv.core.kernels.draw import grow_or_route, hash_rows
from ruzhash_cv.foundation.arrays import Array, Mask, Rows
from ruzhash_cv.foundation.validation import RNG, Preferences, as_generator, as_preferences, check_int

#: Rows that go down a tree together: enough to pay for drawing its nodes, few enough to stay in the processor's cache.
BLOCK = 2048
#: What is not given to the kernel while trees grow, or while rows are routed.
_NO_ROWS, _NO_SUMS, _NO_KEYS = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint64)


def ruzhash(preferences: Preferences, *, n_hashes: int = 1, rng: RNG = 0) -> Rows:
    """Return RuzHashes of preference rows; rows collide with a probability close to 1 - Ruzicka distance.

    Exactly, two rows p, q collide with probability ``sum_i min(p_i, q_i) E[1 / (1 + |U without i|)]``, where U is the union of
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
    rows = _as_rows(preferences)
    n, m = rows.shape
    keys = as_generator(rng).integers(0, 1 << 64, check_int(n_hashes, "n_hashes"), dtype=np.uint64)
    hashes = np.empty((n, len(keys)), np.int64)
    hash_rows(rows, keys, np.empty(m, np.float32), np.empty(m, np.uint64), hashes)
    return hashes


@dataclass(kw_only=True, eq=False)
class RuzHashForest(PreferenceForest):
    """Isolation forest in preference space; rows that share few models with others get high anomaly scores.

    Attributes
    ----------
    n_trees : int
        t of the paper.
    subsample_size : int
        psi: rows that each tree is grown on, drawn without replacement; at most all rows.
    branching_factor : int
        b: branches of a node, besides its sink.
    sink_credit : bool
        Rows with no component above its threshold fall into a node's sink. False: their path ends there, because
        rows without shared models form no cluster. True: it is longer by the expected depth of a tree of that size, as in the paper.
    rng : int, numpy.random.Generator or None
        The same int gives the same scores, whatever `n_jobs`.
    n_jobs : int or None
        Threads; None for all processors.

    Examples
    --------
    >>> agreeing, alone = np.tile([1.0, 1.0, 0.0], (20, 1)), np.array([[0.0, 0.0, 1.0]])
    >>> scores = RuzHashForest(rng=0).fit_anomaly_scores(np.vstack([agreeing, alone]))
    >>> bool(scores[-1] > scores[:-1].max())
    True
    """

    sink_credit: bool = False

    def _as_rows(self, preferences: Any) -> NDArray[np.float32]:
        return _as_rows(preferences)

    def _grow(self, rows: NDArray[np.float32], keys: NDArray[np.uint64], growth: Growth) -> Trees:
        trees = empty_trees(len(keys), len(rows), growth)
        space = workspace(len(rows), trees.keys.shape[1], growth)
        trained = trees.trained.view(np.uint8)
        grow_or_route(rows, keys, _NO_ROWS, 0, *growth, *_drawn(rows), space, *trees[:3], trained, _NO_SUMS)
        return trees

    def _lengths(self, rows: NDArray[np.float32], start: int, stop: int, trained: Mask) -> Array:
        # Of a pickle that is mapped into memory the arrays cannot be written; one kernel grows trees and routes rows.
        keys, children, lengths = (np.require(part, requirements="W") for part in self._trees[:3])
        sums = np.zeros(stop - start)
        space = workspace(min(BLOCK, len(sums)), keys.shape[1], self._growth)
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            of_block, empty = np.array(trained[:, block], np.uint8, order="C"), np.asarray(~rows[block].any(axis=1))
            order, n_occupied = np.argsort(empty, kind="stable"), len(empty) - int(empty.sum())
            grow_or_route(
                rows[block], _NO_KEYS, order, n_occupied, *self._growth, *_drawn(rows), space, keys, children,
                lengths, of_block, sums[begin - start :][:BLOCK],
            )  # fmt: skip
        return sums / self.n_trees


def _as_rows(preferences: Preferences) -> NDArray[np.float32]:
    """Return checked rows; without any column they get one of zeros, so that there is one for the kernels to look at."""
    rows = as_preferences(preferences)
    return rows if rows.shape[1] else np.zeros((len(rows), 1), np.float32)


def _drawn(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Return room for what is drawn in a node: thresholds and ranks of the components of rows."""
    return np.empty(rows.shape[1], np.float32), np.empty(rows.shape[1], np.uint32)
