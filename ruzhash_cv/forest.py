"""The RuzHash isolation forest: trees of keys and sizes, one kernel that routes rows down them.

Section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based Anomaly Detection", ICIAP 2023; the isolation
score is Liu, Ting, Zhou, "Isolation Forest", ICDM 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv._jit import jit, run_blocks
from ruzhash_cv._random import below, draw_key, mix
from ruzhash_cv._validation import RNG, as_generator, check_int, check_n_jobs
from ruzhash_cv.preferences import as_preferences
from ruzhash_cv.ruzhash import as_thresholds, branch_of, hash_row

_EULER_GAMMA = 0.5772156649


class RuzHashForest:
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
        rng: RNG = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_trees = check_int(n_trees, "n_trees")
        self.subsample_size = check_int(subsample_size, "subsample_size")
        self.branching_factor = check_int(branching_factor, "branching_factor", at_least=2)
        self.sink_credit = bool(sink_credit)
        self.rng = rng
        as_generator(rng)
        self.n_jobs = check_n_jobs(n_jobs)
        self._n_models = -1

    def fit(self, preferences: ArrayLike | sparse.csr_array) -> RuzHashForest:
        """Grow the trees on preference rows (n, m) in [0, 1] and return the forest itself."""
        rows = as_preferences(preferences)
        n = rows.shape[0]
        self._n_models = rows.shape[1]
        self._n_branches = max(2, min(self.branching_factor, n))
        self._psi = min(self.subsample_size, n)
        self._credit = expected_depths(self._psi, self._n_branches)
        limit = depth_limit(self._psi, self._n_branches)
        keys = _tree_keys(draw_key(as_generator(self.rng)), self.n_trees)
        thresholds = as_thresholds(rows.data)
        parts = run_blocks(
            lambda start, stop: _grow_kernel(
                rows.indptr, rows.indices, thresholds, keys[start:stop], self._psi, self._n_branches, limit
            ),
            self.n_trees,
            self.n_jobs,
            smallest=max(8, 4096 // max(n, 1)),
        )
        # Keys, training sizes, children and sink sizes per node; which rows trained which tree.
        self._trees = tuple(np.concatenate([part[item] for part in parts]) for item in range(5))
        return self

    def path_lengths(self, preferences: ArrayLike | sparse.csr_array) -> NDArray[np.float64]:
        """Return mean path lengths over the trees, shape (n,), of rows that are not the training rows."""
        return self._route(self._check_fitted(preferences), training=False)

    def anomaly_scores(self, preferences: ArrayLike | sparse.csr_array) -> NDArray[np.float64]:
        """Return anomaly scores 2^(-h / c(psi)), shape (n,), in (0, 1], high = anomalous; rows count as new ones."""
        return self._score(self.path_lengths(preferences))

    def fit_path_lengths(self, preferences: ArrayLike | sparse.csr_array) -> NDArray[np.float64]:
        """Grow the trees and return the rows' own mean path lengths, no row counting itself."""
        rows = as_preferences(preferences)
        return self.fit(rows)._route(rows, training=True)

    def fit_anomaly_scores(
        self, preferences: ArrayLike | sparse.csr_array, decoys: ArrayLike | sparse.csr_array | None = None
    ) -> Any:
        """Grow the trees and return the rows' own anomaly scores.

        A training row does not count itself: in a tree it trained, each node's size is one less for it, in the stopping
        rule and in the leaf's credit. Otherwise it would look less isolated than a new row exactly like it.

        Parameters
        ----------
        preferences : array_like or sparse array, shape (n, m)
        decoys : array_like or sparse array, shape (n_decoys, m), optional
            Rows to score only.

        Returns
        -------
        scores : ndarray, shape (n,)
        decoy_scores : ndarray, shape (n_decoys,)
            Only where `decoys` are given.
        """
        scores = self._score(self.fit_path_lengths(preferences))
        return scores if decoys is None else (scores, self.anomaly_scores(decoys))

    def _check_fitted(self, preferences: ArrayLike | sparse.csr_array) -> sparse.csr_array:
        if self._n_models < 0:
            raise RuntimeError("this RuzHashForest has no trees yet: call `fit` first")
        rows = as_preferences(preferences)
        if rows.shape[1] != self._n_models:
            raise ValueError(f"`preferences` must have {self._n_models} columns as in `fit`, got {rows.shape[1]}")
        return rows

    def _route(self, rows: sparse.csr_array, *, training: bool) -> NDArray[np.float64]:
        keys, sizes, children, sinks, trained = self._trees
        thresholds = as_thresholds(rows.data)
        membership = trained if training else trained[:, :0]
        blocks = run_blocks(
            lambda start, stop: _route_kernel(
                rows.indptr, rows.indices, thresholds, start, stop, keys, sizes, children, sinks, membership,
                self._n_branches, self._credit, self.sink_credit,
            ),
            rows.shape[0],
            self.n_jobs,
            smallest=1024,
        )  # fmt: skip
        return np.concatenate(blocks)

    def _score(self, lengths: NDArray[np.float64]) -> NDArray[np.float64]:
        normaliser = self._credit[self._psi] if self._psi else 0.0
        # One training row leaves nothing to isolate from: every row is at depth 0 of 0.
        scores: NDArray[np.float64] = np.exp2(-lengths / normaliser) if normaliser > 0 else np.ones(len(lengths))
        return scores


def expected_depths(largest: int, n_branches: int) -> NDArray[np.float64]:
    """Return c(n) for n = 0 .. `largest`: the depth a random tree would still add to a leaf of n rows.

    b = 2: 2 (ln(n - 1) + gamma) - 2 (n - 1) / n, the mean unsuccessful search in a binary tree (Liu et al., equation 1).
    b > 2: log_b n. One split separates up to b rows.
    """
    sizes = np.arange(largest + 1, dtype=np.float64)
    depths = np.zeros(largest + 1)
    many = sizes > n_branches
    if n_branches == 2:
        depths[many] = 2.0 * (np.log(sizes[many] - 1.0) + _EULER_GAMMA) - 2.0 * (sizes[many] - 1.0) / sizes[many]
    else:
        depths[many] = np.log(sizes[many]) / np.log(n_branches)
    depths[2 : n_branches + 1] = 1.0
    return depths


def depth_limit(subsample_size: int, n_branches: int) -> int:
    """Return the smallest d with n_branches^d >= subsample_size."""
    depth, reached = 0, 1
    while reached < subsample_size:
        depth, reached = depth + 1, reached * n_branches
    return depth


@jit
def _tree_keys(key: Any, n_trees: int) -> Any:
    keys = np.empty(n_trees, np.uint64)
    for tree in range(n_trees):
        keys[tree] = mix(key, np.uint64(tree))
    return keys


@jit
def _draw_rows(key: Any, n: int, psi: int) -> Any:
    """Return psi of n rows without replacement (the first steps of a Fisher-Yates shuffle)."""
    rows = np.arange(n)
    for at in range(psi):
        other = at + below(key, np.uint64(at), n - at)
        rows[at], rows[other] = rows[other], rows[at]
    return rows[:psi].copy()


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
        order = _draw_rows(mix(tree_keys[tree], np.uint64(1)), n, psi)
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
    sink_credit: bool,
) -> Any:
    """Return mean path lengths of rows start .. stop; `trained` (trees, rows) tells which rows do not count themselves."""
    lengths = np.zeros(stop - start)
    for row in range(start, stop):
        begin, end = indptr[row], indptr[row + 1]
        total = 0.0
        for tree in range(len(keys)):
            itself = 1 if trained.shape[1] > 0 and trained[tree, row] else 0
            node, depth = 0, 0
            while True:
                if children[tree, node] < 0 or sizes[tree, node] - itself < n_branches:
                    total += depth + credit[max(sizes[tree, node] - itself, 0)]
                    break
                found = hash_row(columns, thresholds, begin, end, keys[tree, node])
                if found < 0:
                    total += depth + (credit[max(sinks[tree, node] - itself, 0)] if sink_credit else 0.0)
                    break
                node = children[tree, node] + branch_of(found, keys[tree, node], n_branches)
                depth += 1
        lengths[row - start] = total / len(keys)
    return lengths
