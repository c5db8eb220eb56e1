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

from ruzhash_cv._arrays import Array, Mask, Rows
from ruzhash_cv._kernels import ZERO, jit, mix, uninterrupted
from ruzhash_cv._validation import RNG, Preferences, as_generator, as_preferences, check_int
from ruzhash_cv.forests.isolation import (
    BEGIN,
    BRANCH,
    DEPTH,
    END,
    OF_ROOT,
    OF_ROWS,
    ORDER,
    Growth,
    PreferenceForest,
    Trees,
    add_children,
    draw_rows,
    empty_trees,
    sort_rows,
    workspace,
)

#: Hash of a row that has no component above its threshold.
SINK = -1
#: Rows that go down a tree together: enough to pay for drawing its nodes, few enough to stay in the processor's cache.
BLOCK = 2048
#: Ranks, of 64 bits for hashes and of 32 for branches, where there is none.
_NO_HASH, _NO_BRANCH = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint32(0xFFFFFFFF)
#: What is not given to the kernel while trees grow, or while rows are routed.
_NO_ROWS, _NO_SUMS, _NO_KEYS = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.uint64)
_LOW_HALF, _32, _40, _UNIT = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(40), np.float32(2.0**-24)


@uninterrupted
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
    rows = as_preferences(preferences)
    n, m = rows.shape
    keys = as_generator(rng).integers(0, 1 << 64, check_int(n_hashes, "n_hashes"), dtype=np.uint64)
    hashes = np.empty((n, len(keys)), np.int64)
    _hash_rows(rows, keys, np.empty(m, np.float32), np.empty(m, np.uint64), hashes)
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
        return as_preferences(preferences)

    def _grow(self, rows: NDArray[np.float32], keys: NDArray[np.uint64], growth: Growth) -> Trees:
        trees = empty_trees(len(keys), len(rows), growth)
        space = workspace(len(rows), trees.keys.shape[1], growth)
        _forest_kernel(rows, keys, _NO_ROWS, 0, tuple(growth), *_drawn(rows), space, *trees, _NO_SUMS)
        return trees

    def _lengths(self, rows: NDArray[np.float32], start: int, stop: int, trained: Mask) -> Array:
        # Of a pickle that is mapped into memory the arrays cannot be written; one kernel grows trees and routes rows.
        trees = Trees(*(np.require(part, requirements="W") for part in self._trees))
        sums, growth = np.zeros(stop - start), tuple(self._growth)
        space = workspace(min(BLOCK, len(sums)), trees.keys.shape[1], self._growth)
        for begin in range(start, stop, BLOCK):
            block = slice(begin, min(begin + BLOCK, stop))
            of_block, empty = np.array(trained[:, block], order="C"), np.asarray(~rows[block].any(axis=1))
            order = np.argsort(empty, kind="stable"), len(empty) - int(empty.sum())
            into = sums[begin - start :][:BLOCK]
            _forest_kernel(rows[block], _NO_KEYS, *order, growth, *_drawn(rows), space, *trees[:3], of_block, into)
        return sums / self.n_trees


def _drawn(rows: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint32]]:
    """Return room for what is drawn in a node: thresholds and ranks of the components of rows."""
    return np.empty(rows.shape[1], np.float32), np.empty(rows.shape[1], np.uint32)


@jit
def smallest_rank(rows: Any, row: Any, thresholds: Any, ranks: Any, nothing: Any) -> Any:
    """Return the smallest rank among a row's components above their thresholds, or `nothing`.

    The compiler makes vectors of this loop: it has no branch, and the least of integers may be taken in any order.
    """
    best: Any = nothing
    for i in range(len(thresholds)):
        rank = ranks[i] if rows[row, i] > thresholds[i] else nothing
        best = rank if rank < best else best
    return best


@jit
def _hash_rows(rows: Any, keys: Any, thresholds: Any, ranks: Any, hashes: Any) -> None:
    """Write hashes: 24 bits are a component's threshold, 32 its rank; of equal ranks the lower component wins."""
    for item in range(len(keys)):
        for i in range(len(thresholds)):
            bits = mix(keys[item], np.uint64(i))
            thresholds[i], ranks[i] = np.float32(bits >> _40) * _UNIT, (bits << _32) | np.uint64(i)
        for row in range(len(rows)):
            best = smallest_rank(rows, np.uint64(row), thresholds, ranks, _NO_HASH)
            hashes[row, item] = SINK if best == _NO_HASH else np.int64(best & _LOW_HALF)


@jit
def write_branches(
    rows: Any, key: Any, n_branches: int, order: Any, thresholds: Any, ranks: Any, branches: Any
) -> None:
    """Write the branches that some rows, `order`, take at a node; that of the sink is the last.

    Of a component's 64 bits 24 are its threshold. A number below 2^32 times b is the branch, drawn evenly, in its high half, and in its
    low half what remains. In the rank, which this is, the last bits are the branch.
    """
    mask = ZERO + 1
    # No branch has the mask's number, unless it is the sink's.
    while mask < n_branches:
        mask = 2 * mask + 1
    for i in range(len(thresholds)):
        bits = mix(key, np.uint64(i))
        product = (bits & _LOW_HALF) * np.uint64(n_branches)
        thresholds[i] = np.float32(bits >> _40) * _UNIT
        ranks[i] = np.uint32((product & (_LOW_HALF ^ np.uint64(mask))) | (product >> _32))
    for at in range(len(order)):
        branch = np.int64(smallest_rank(rows, np.uint64(order[at]), thresholds, ranks, _NO_BRANCH)) & mask
        branches[at] = branch if branch < n_branches else n_branches


@jit
def _forest_kernel(
    rows: Any,
    tree_keys: Any,
    in_order: Any,
    n_occupied: int,
    growth: Any,
    thresholds: Any,
    ranks: Any,
    space: Any,
    keys: Any,
    children: Any,
    lengths: Any,
    trained: Any,
    sums: Any,
) -> None:
    """Grow trees breadth first, one for each of `tree_keys`; without any, add up rows' path lengths over the trees.

    Rows are routed `in_order`: those of nothing but zeros come last, after `n_occupied` others. A row that trained a tree does not
    count itself there.
    """
    psi, n_branches, n_children, limit, credit, sink_credit = growth
    grows = len(tree_keys) > 0
    for tree in range(len(keys)):
        if grows:
            keys[tree, 0] = mix(tree_keys[tree], OF_ROOT)
            draw_rows(mix(tree_keys[tree], OF_ROWS), space[ORDER, : len(rows)], psi)
            for at in range(psi):
                trained[tree, space[ORDER, at]] = True
        for at in range(len(in_order)):  # as one assignment it would compile for a second
            space[ORDER, at] = in_order[at]
        space[BEGIN, 0], space[END, 0], space[DEPTH, 0] = 0, psi if grows else n_occupied, 0
        node, n_nodes = ZERO, ZERO + 1
        while node < n_nodes:
            begin, end = space[BEGIN, node], space[END, node]
            child = np.int64(children[tree, node])
            if grows and space[DEPTH, node] < limit and end - begin >= n_branches:
                child = n_nodes
            if child >= 0:
                if begin < end:
                    taking, taken = space[ORDER, begin:end], space[BRANCH, begin:end]
                    write_branches(rows, keys[tree, node], n_branches, taking, thresholds, ranks, taken)
                sort_rows(space, node, child, n_children)
                n_nodes = child + n_children
            if grows and child >= 0:
                tree_of = keys[tree], children[tree], lengths[tree]
                add_children(node, child, n_branches, n_children, limit, sink_credit, credit, space, *tree_of)
            if node == 0 and not grows:
                space[END, n_nodes - 1] = len(rows)  # empty rows are in the first sink without any hash
            if child < 0 and not grows:
                for at in range(space[BEGIN, node], space[END, node]):
                    row = space[ORDER, at]
                    trained_it = trained.shape[1] > 0 and trained[tree, row]
                    sums[row] += lengths[tree, node, 1 if trained_it else 0]
            node += 1
