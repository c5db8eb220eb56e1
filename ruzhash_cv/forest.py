"""The RuzHash isolation forest: trees of keys and sizes, one kernel that routes rows down them.

Section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023; the isolation
score is Liu, Ting, Zhou, "Isolation Forest", ICDM 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ruzhash_cv._isolation import PreferenceForest
from ruzhash_cv._jit import jit
from ruzhash_cv._random import mix
from ruzhash_cv._trees import depth_limit as depth_limit
from ruzhash_cv._trees import draw_rows, leaf_value
from ruzhash_cv._trees import expected_depths as expected_depths
from ruzhash_cv._validation import RNG
from ruzhash_cv.preferences import as_preferences
from ruzhash_cv.ruzhash import as_thresholds, branch_of, hash_row


class RuzHashForest(PreferenceForest):
    """Isolation forest in preference space; rows that share few models with others get high anomaly scores.

    Parameters
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

    def __init__(
        self,
        *,
        n_trees: int = 100,
        subsample_size: int = 256,
        branching_factor: int = 16,
        sink_credit: bool = False,
        score: str = "path_length",
        rng: RNG = 0,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_trees=n_trees,
            subsample_size=subsample_size,
            branching_factor=branching_factor,
            score=score,
            rng=rng,
            n_jobs=n_jobs,
        )
        self.sink_credit = bool(sink_credit)

    def _as_rows(self, preferences: Any) -> sparse.csr_array:
        return as_preferences(preferences)

    def _grow(self, rows: sparse.csr_array, keys: NDArray[np.uint64], limit: int) -> tuple[Any, ...]:
        # Keys, training sizes, children and sink sizes per node; which rows trained which tree.
        thresholds = as_thresholds(rows.data)
        grown: tuple[Any, ...] = _grow_kernel(
            rows.indptr, rows.indices, thresholds, keys, self._psi, self._n_branches, limit
        )
        return grown

    def _leaf_values(
        self, rows: sparse.csr_array, start: int, stop: int, membership: NDArray[np.bool_], rule: int
    ) -> NDArray[np.float64]:
        keys, sizes, children, sinks, _ = self._trees
        thresholds = as_thresholds(rows.data)
        values: NDArray[np.float64] = _route_kernel(
            rows.indptr, rows.indices, thresholds, start, stop, keys, sizes, children, sinks, membership,
            self._n_branches, self._credit, self._normaliser, self.sink_credit, rule,
        )  # fmt: skip
        return values


@jit
def _grow_kernel(
    indptr: Any, columns: Any, thresholds: Any, tree_keys: Any, psi: int, n_branches: int, limit: int
) -> Any:
    """Grow trees breadth first. Only nodes of at least b rows split, so a level adds at most psi children."""
    n_trees, n = len(tree_keys), len(indptr) - 1
    capacity = 1 + limit * (psi // n_branches) * n_branches
    keys = np.zeros((n_trees, capacity), np.uint64)
    sizes = np.zeros((n_trees, capacity), np.int32)
    children = np.full((n_trees, capacity), -1, np.int32)
    sinks = np.zeros((n_trees, capacity), np.int32)
    trained = np.zeros((n_trees, n), np.bool_)
    begins = np.zeros(capacity + 1, np.int64)
    branches = np.empty(psi, np.int64)
    counts = np.empty(n_branches + 2, np.int64)
    for tree in range(n_trees):
        order = draw_rows(mix(tree_keys[tree], np.uint64(1)), n, psi)
        for row in order:
            trained[tree, row] = True
        keys[tree, 0], sizes[tree, 0], begins[0] = mix(tree_keys[tree], np.uint64(0)), psi, 0
        n_nodes, level_begin, level_end = 1, 0, 1
        for _ in range(limit):
            for node in range(level_begin, level_end):
                size, begin = sizes[tree, node], begins[node]
                if size < n_branches:
                    continue
                counts[:] = 0
                for at in range(size):
                    row = order[begin + at]
                    found = hash_row(columns, thresholds, indptr[row], indptr[row + 1], keys[tree, node])
                    branches[at] = n_branches if found < 0 else branch_of(found, keys[tree, node], n_branches)
                    counts[branches[at] + 1] += 1
                children[tree, node] = n_nodes
                sinks[tree, node] = counts[n_branches + 1]
                for branch in range(n_branches):
                    child = n_nodes + branch
                    keys[tree, child] = mix(keys[tree, node], np.uint64(branch))
                    sizes[tree, child] = counts[branch + 1]
                for branch in range(n_branches + 1):
                    counts[branch + 1] += counts[branch]
                for branch in range(n_branches):
                    begins[n_nodes + branch] = begin + counts[branch]
                n_nodes += n_branches
                sorted_rows = np.empty(size, np.int64)
                for at in range(size):
                    sorted_rows[counts[branches[at]]] = order[begin + at]
                    counts[branches[at]] += 1
                order[begin : begin + size] = sorted_rows
            level_begin, level_end = level_end, n_nodes
    return keys, sizes, children, sinks, trained


@jit
def _route_kernel(
    indptr: Any,
    columns: Any,
    thresholds: Any,
    start: int,
    stop: int,
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
) -> Any:
    """Return means of leaf values of rows start .. stop; `trained` (trees, rows) tells which rows do not count themselves."""
    values = np.zeros(stop - start)
    for row in range(start, stop):
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
            size = max(size, 0)
            total += leaf_value(rule, depth, credit[size], size, parent, normaliser)
        values[row - start] = total / len(keys)
    return values
