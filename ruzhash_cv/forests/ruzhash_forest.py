"""The RuzHash isolation forest: trees of keys and sizes, one kernel that routes rows down them.

Section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023; the isolation
score is Liu, Ting, Zhou, "Isolation Forest", ICDM 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ruzhash_cv._core.jit import below, jit, mix
from ruzhash_cv.forests.isolation import PreferenceForest, leaf_value
from ruzhash_cv.forests.ruzhash import as_thresholds, branch_of, hash_row
from ruzhash_cv.preferences import as_preferences


@dataclass(kw_only=True, eq=False)
class RuzHashForest(PreferenceForest):
    """Isolation forest in preference space; rows that share few models with others get high anomaly scores.

    Attributes
    ----------
    n_trees : int
        t of the paper.
    subsample_size : int
        psi: rows each tree is grown on, drawn without replacement; all rows where there are fewer.
    branching_factor : int
        b: branches of a node, besides its sink.
    sink_credit : bool
        Rows with no component above its threshold fall into a node's sink. False: the sink gives its depth alone, because
        rows that agree with nothing are no cluster. True: the expected extra depth of its size too, as in the paper.
    score : {"path_length", "mean_score", "relative_mass", "vote"}
        What the anomaly score is made of: 2^(-mean h / c(psi)), the paper's; the mean of 2^(-h / c(psi)) over the trees; how
        much denser a leaf's parent is than the leaf (Aryal et al., PAKDD 2014); the share of trees with h < c(psi).
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

    def _as_rows(self, preferences: Any) -> sparse.csr_array:
        return as_preferences(preferences)

    def _grow(self, rows: sparse.csr_array, keys: NDArray[np.uint64], limit: int) -> tuple[Any, ...]:
        # Keys, training sizes, children and sink sizes per node; which rows trained which tree.
        n_trees, n, b = len(keys), rows.shape[0], self._n_branches
        # Only nodes of at least b rows split, so a level adds at most psi children.
        capacity = 1 + limit * (self._psi // b) * b
        node_keys, sizes = np.zeros((n_trees, capacity), np.uint64), np.zeros((n_trees, capacity), np.int32)
        children, sinks = np.full((n_trees, capacity), -1, np.int32), np.zeros((n_trees, capacity), np.int32)
        trained = np.zeros((n_trees, n), np.bool_)
        _grow_kernel(
            rows.indptr, rows.indices, as_thresholds(rows.data), keys, self._psi, b, limit,
            np.empty(n, np.int64), np.empty((4, max(n, capacity + 1, b + 2)), np.int64),
            node_keys, sizes, children, sinks, trained,
        )  # fmt: skip
        return node_keys, sizes, children, sinks, trained

    def _leaf_values(
        self, rows: sparse.csr_array, start: int, stop: int, membership: NDArray[np.bool_], rule: int
    ) -> NDArray[np.float64]:
        keys, sizes, children, sinks, _ = self._trees
        values = np.empty(stop - start)
        _route_kernel(
            rows.indptr, rows.indices, as_thresholds(rows.data), start, keys, sizes, children, sinks, membership,
            self._n_branches, self._credit, self._normaliser, bool(self.sink_credit), rule, values,
        )  # fmt: skip
        return values


@jit(
    "void(i4[::1], i4[::1], u8[::1], u8[::1], i8, i8, i8, i8[::1], i8[:, ::1], "
    "u8[:, ::1], i4[:, ::1], i4[:, ::1], i4[:, ::1], b1[:, ::1])"
)
def _grow_kernel(
    indptr: Any,
    columns: Any,
    thresholds: Any,
    tree_keys: Any,
    psi: int,
    n_branches: int,
    limit: int,
    order: Any,
    room: Any,
    keys: Any,
    sizes: Any,
    children: Any,
    sinks: Any,
    trained: Any,
) -> None:
    """Grow trees breadth first; `order` (n,) and `room` (4, at least n, nodes + 1 and b + 2) are there to work in."""
    begins, branches, counts, sorted_rows = 0, 1, 2, 3
    for tree in range(len(tree_keys)):
        _draw_rows(mix(tree_keys[tree], np.uint64(1)), order, psi)
        for at in range(psi):
            trained[tree, order[at]] = True
        keys[tree, 0], sizes[tree, 0], room[begins, 0] = mix(tree_keys[tree], np.uint64(0)), psi, 0
        n_nodes, level_begin, level_end = 1, 0, 1
        for _ in range(limit):
            for node in range(level_begin, level_end):
                size, begin = sizes[tree, node], room[begins, node]
                if size < n_branches:
                    continue
                for branch in range(n_branches + 2):
                    room[counts, branch] = 0
                for at in range(size):
                    row = order[begin + at]
                    found = hash_row(columns, thresholds, indptr[row], indptr[row + 1], keys[tree, node])
                    branch = n_branches if found < 0 else branch_of(found, keys[tree, node], n_branches)
                    room[branches, begin + at] = branch
                    room[counts, branch + 1] += 1
                children[tree, node] = n_nodes
                sinks[tree, node] = room[counts, n_branches + 1]
                for branch in range(n_branches):
                    child = n_nodes + branch
                    keys[tree, child] = mix(keys[tree, node], np.uint64(branch))
                    sizes[tree, child] = room[counts, branch + 1]
                for branch in range(n_branches + 1):
                    room[counts, branch + 1] += room[counts, branch]
                for branch in range(n_branches):
                    room[begins, n_nodes + branch] = begin + room[counts, branch]
                n_nodes += n_branches
                for at in range(begin, begin + size):
                    branch = room[branches, at]
                    room[sorted_rows, begin + room[counts, branch]] = order[at]
                    room[counts, branch] += 1
                for at in range(begin, begin + size):
                    order[at] = room[sorted_rows, at]
            level_begin, level_end = level_end, n_nodes


@jit
def _draw_rows(key: Any, order: Any, psi: int) -> None:
    """Write row numbers of which the first psi are drawn without replacement (the first steps of a Fisher-Yates shuffle)."""
    for at in range(len(order)):
        order[at] = at
    for at in range(psi):
        other = at + below(key, np.uint64(at), len(order) - at)
        order[at], order[other] = order[other], order[at]


@jit(
    "void(i4[::1], i4[::1], u8[::1], i8, u8[:, ::1], i4[:, ::1], i4[:, ::1], i4[:, ::1], b1[:, ::1], i8, f8[::1], f8, b1, i8, f8[::1])"
)
def _route_kernel(
    indptr: Any,
    columns: Any,
    thresholds: Any,
    start: int,
    keys: Any,
    sizes: Any,
    children: Any,
    sinks: Any,
    trained: Any,
    n_branches: int,
    credit: Any,
    normaliser: float,
    sink_credit: bool,
    rule: int,
    values: Any,
) -> None:
    """Write means of leaf values of the rows from `start` on; `trained` (trees, rows) tells which rows do not count themselves."""
    for item in range(len(values)):
        row = start + item
        begin, end = indptr[row], indptr[row + 1]
        total = 0.0
        for tree in range(len(keys)):
            itself = 1 if trained.shape[1] > 0 and trained[tree, row] else 0
            node, depth = 0, 0
            size = sizes[tree, 0] - itself
            parent = size
            while children[tree, node] >= 0 and size >= n_branches:
                found = hash_row(columns, thresholds, begin, end, keys[tree, node])
                parent = size
                if found < 0:
                    size = sinks[tree, node] - itself if sink_credit else 0
                    break
                node = children[tree, node] + branch_of(found, keys[tree, node], n_branches)
                size = sizes[tree, node] - itself
                depth += 1
            if size < 0:
                size = 0
            total += leaf_value(rule, depth, credit[size], size, parent, normaliser)
        values[item] = total / len(keys)
