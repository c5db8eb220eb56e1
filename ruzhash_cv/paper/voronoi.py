"""PI-Forest, an isolation forest whose nodes split their rows by the nearest of b centres.

Leveni, Magri, Boracchi, Alippi, "PIF: Anomaly detection via preference embedding", ICPR 2020. A split costs b distances in
preference space for each row, where RuzHash costs one hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv._kernels import ZERO, jit, mix, uniform
from ruzhash_cv._validation import as_preferences, as_reals, check_choice
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
    add_children,
    draw_rows,
    empty_trees,
    sort_rows,
    workspace,
)

METRICS = ("tanimoto", "ruzicka", "jaccard", "precomputed")
_TANIMOTO, _PRECOMPUTED = 0, 3
# Streams of a node's key: for drawing centres, and for breaking ties of training rows and of new ones.
_CENTRES, _OLD_TIES, _NEW_TIES = np.uint64(1 << 40), np.uint64(2 << 40), np.uint64(3 << 40)


@dataclass(kw_only=True, eq=False)
class VoronoiForest(PreferenceForest):
    """Isolation forest by nested Voronoi cells in preference space, with the interface of `RuzHashForest`.

    Each node draws b of its rows as centres, and each row goes to the nearest. A row goes to a random one of equally near
    centres, in training and in scoring: a row that shares nothing with any centre is at distance 1 from all. The stopping rule
    and the scores are those of `RuzHashForest`. There is no sink.

    A training row that was drawn as a centre has a cell of its own, and an equal new row has none. So the training row scores
    higher, even in `fit_anomaly_scores`, and scores of decoys (new rows) are no p-values.

    Attributes
    ----------
    metric : {"tanimoto", "ruzicka", "jaccard", "precomputed"}
        Distance between preference rows. The first three are the paper's PIF, PIF-R and PIF-B; "jaccard" takes entries above 0
        as 1. "precomputed": `fit` takes the distances (n, n) between the training rows, scoring those (n2, n) from new rows to
        training rows.
    branching_factor : int
        b: centres of a node.
    n_trees, subsample_size, rng, n_jobs
        See `RuzHashForest`. Reordered rows get different scores with the same distribution, because row numbers break ties.

    Examples
    --------
    >>> agreeing, alone = np.tile([1.0, 1.0, 0.0], (20, 1)), np.array([[0.0, 0.0, 1.0]])
    >>> scores = VoronoiForest(metric="ruzicka", branching_factor=2).fit_anomaly_scores(np.vstack([agreeing, alone]))
    >>> bool(scores[-1] > scores[:-1].max())
    True
    """

    metric: str = "tanimoto"
    branching_factor: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.metric, "metric", METRICS)

    def _as_rows(self, preferences: Any) -> _Rows:
        if self.metric == "precomputed":
            distances = as_reals(preferences, "preferences", "(n, n_training)")
            if distances.ndim != 2 or not bool((distances >= 0).all()):
                raise ValueError(f"`preferences` must hold distances of shape (n, n_training), got {distances.shape}")
            nothing = np.zeros(0, np.int32)
            with np.errstate(over="ignore", under="ignore"):
                table = np.ascontiguousarray(distances, dtype=np.float32)
            return _Rows(table, nothing, nothing, np.zeros(0, np.float32), np.zeros(len(table)))
        rows = as_preferences(preferences)
        taken = sparse.csr_array((rows > 0).astype(np.float32) if self.metric == "jaccard" else rows)
        sizes = (taken**2 if self.metric == "tanimoto" else taken).sum(axis=1, dtype=np.float64)
        indptr, columns = taken.indptr.astype(np.int32), taken.indices.astype(np.int32)
        return _Rows(taken.toarray(), indptr, columns, taken.data, sizes)

    def _fit(self, rows: Any) -> Any:
        if self.metric == "precomputed" and rows.shape[0] != rows.shape[1]:
            raise ValueError(f"`preferences` must be a square matrix of distances in `fit`, got {rows.shape}")
        self._training = rows._replace(table=rows.table[:0].copy())
        return super()._fit(rows)

    def _grow(self, rows: _Rows, keys: NDArray[np.uint64], growth: Growth) -> _Trees:
        empty = empty_trees(len(keys), len(rows.table), growth)
        trees = _Trees(*empty, np.empty_like(empty.children))
        space = workspace(len(rows.table), trees.keys.shape[1], growth)
        _grow_kernel(tuple(rows), METRICS.index(self.metric), keys, tuple(growth), space, tuple(trees))
        return trees

    def _lengths(self, rows: _Rows, start: int, stop: int, trained: Mask) -> Array:
        routing = METRICS.index(self.metric), self._growth.n_branches, start, stop
        return _route_kernel(tuple(rows), tuple(self._training), routing, tuple(self._trees._replace(trained=trained)))


class _Trees(NamedTuple):
    """`Trees`, and the row (trees, nodes) that is the centre of each node."""

    keys: NDArray[np.uint64]
    children: NDArray[np.int32]
    lengths: Array
    trained: Mask
    centres: NDArray[np.int32]


class _Rows(NamedTuple):
    """Preference rows as a dense table and in sparse form. Distances have the table alone."""

    table: NDArray[np.float32]
    indptr: NDArray[np.int32]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    sizes: Array  # sums of the values, or of their squares for Tanimoto

    @property
    def shape(self) -> tuple[int, ...]:
        return self.table.shape


@jit
def _shared(metric: int, dense: Any, training: Any, centre: int) -> float:
    """Return the sum of minima, of products for Tanimoto, of a dense row and a sparse training row."""
    total = np.float32(0.0)
    # Unsigned: a signed index costs a test for negative ones.
    for at in range(np.uint64(training.indptr[centre]), np.uint64(training.indptr[centre + 1])):
        x, y = dense[np.uint64(training.columns[at])], training.values[at]
        if metric == _TANIMOTO:
            total += x * y
        else:
            total += x if x < y else y  # `min` would also test for NaN
    return float(total)


@jit
def _nearest(metric: int, rows: Any, row: int, training: Any, centres: Any, ties: Any) -> int:
    """Return the number of the centre nearest to a row. Ties are drawn with the key `ties`."""
    dense = rows.table[row]
    best, chosen, n_equal = -np.inf, 0, 1
    for branch in range(len(centres)):
        centre = centres[branch]
        if metric == _PRECOMPUTED:
            likeness = -float(dense[centre])
        else:
            shared = _shared(metric, dense, training, centre)
            # Rows that share nothing are at distance 1, two rows of zeros too.
            likeness = shared / (rows.sizes[row] + training.sizes[centre] - shared) if shared > 0.0 else 0.0
        if likeness > best:
            best, chosen, n_equal = likeness, branch, 1
        elif likeness == best:
            n_equal += 1
            if uniform(ties, np.uint64(n_equal)) * n_equal < 1.0:
                chosen = branch
    return chosen


@jit
def _grow_kernel(rows: Any, metric: int, tree_keys: Any, growth: Any, space: Any, trees: Any) -> None:
    """Grow trees breadth first."""
    rows, growth, trees = _Rows(*rows), Growth(*growth), _Trees(*trees)
    n_branches = growth.n_branches
    for tree in range(len(tree_keys)):
        keys, lengths = trees.keys[tree], trees.lengths[tree]
        keys[0] = mix(tree_keys[tree], OF_ROOT)
        draw_rows(mix(tree_keys[tree], OF_ROWS), space[ORDER, : trees.trained.shape[1]], growth.psi)
        for at in range(growth.psi):
            trees.trained[tree, space[ORDER, at]] = True
        space[BEGIN, 0], space[END, 0], space[DEPTH, 0] = 0, growth.psi, 0
        node, n_nodes = ZERO, ZERO + 1
        while node < n_nodes:
            own = space[ORDER, space[BEGIN, node] : space[END, node]]
            if space[DEPTH, node] < growth.limit and len(own) >= n_branches:
                key, drawn = trees.keys[tree, node], trees.centres[tree, n_nodes : n_nodes + n_branches]
                chosen = draw_rows(mix(key, _CENTRES), np.empty(len(own), np.int64), n_branches)
                for branch in range(n_branches):  # as one assignment it would compile for a second
                    drawn[branch] = own[chosen[branch]]
                for at, row in enumerate(own, space[BEGIN, node]):
                    ties = mix(mix(key, _OLD_TIES), np.uint64(row))
                    space[BRANCH, at] = _nearest(metric, rows, row, rows, drawn, ties)
                sort_rows(space, node, n_nodes, n_branches)
                rules = n_branches, growth.n_children, growth.limit, growth.sink_credit, growth.credit
                add_children(node, n_nodes, *rules, space, keys, trees.children[tree], lengths)
                n_nodes += growth.n_children
            node += 1


@jit
def _route_kernel(rows: Any, training: Any, routing: Any, trees: Any) -> Array:
    """Return mean path lengths of rows start .. stop; `trees.trained` marks the rows that do not count themselves."""
    rows, training, trees = _Rows(*rows), _Rows(*training), _Trees(*trees)
    metric, n_branches, start, stop = routing
    trained, sums = trees.trained, np.zeros(stop - start)
    for row in range(start, stop):
        for tree in range(len(trees.keys)):
            own = trained.shape[1] > 0 and trained[tree, row]
            # A training row that does not count itself goes the way it went in training.
            stream = _OLD_TIES if own else _NEW_TIES
            node = 0
            while trees.children[tree, node] >= 0:
                ties = mix(mix(trees.keys[tree, node], stream), np.uint64(row))
                child = trees.children[tree, node]
                centres = trees.centres[tree, child : child + n_branches]
                node = child + _nearest(metric, rows, row, training, centres, ties)
            sums[row - start] += trees.lengths[tree, node, 1 if own else 0]
    return sums / len(trees.keys)
