"""What forests in preference space share: options, training rows, path lengths, scores.

Liu, Ting, Zhou, "Isolation Forest", ICDM 2008; section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based
Anomaly Detection", ICIAP 2023, for more than two branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.foundation.arrays import Array, Mask, Rows
from ruzhash_cv.foundation.validation import RNG, Preferences, as_generator, check_int, check_n_jobs

Forest = TypeVar("Forest", bound="PreferenceForest")
T = TypeVar("T")

_EULER_GAMMA = 0.5772156649
#: Components that rows, in all trees, must have together before another thread pays.
_WORTH_A_THREAD = 2_000_000
#: Rows of the kernels' workspace, see `kernels.draw`.
DEPTH = 6


class Growth(NamedTuple):
    """How trees grow: training rows, branches and children of a node, the depth limit, and what leaves are credited.

    A child beyond the branches is the sink.
    """

    psi: int
    n_branches: int
    n_children: int
    limit: int
    credit: Array
    sink_credit: bool


class Trees(NamedTuple):
    """Trees as flat arrays: keys, first children (-1 for a leaf) and path lengths of nodes; which rows trained which tree.

    Of path lengths the first is a new row's, the second that of a row which does not count itself. Nodes of PI-Forest have a row as
    their centre.
    """

    keys: NDArray[np.uint64]  # (trees, nodes)
    children: NDArray[np.int32]  # (trees, nodes)
    lengths: Array  # (trees, nodes, 2)
    trained: Mask  # (trees, n)
    centres: NDArray[np.int32]  # (trees, nodes) or (trees, 0)


@dataclass(kw_only=True, eq=False)
class PreferenceForest(ABC):
    """A forest in preference space; a subclass grows trees and routes rows."""

    n_trees: int = 100
    subsample_size: int = 256
    branching_factor: int = 16
    rng: RNG = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self.n_trees = check_int(self.n_trees, "n_trees")
        self.subsample_size = check_int(self.subsample_size, "subsample_size")
        self.branching_factor = check_int(self.branching_factor, "branching_factor", at_least=2)
        as_generator(self.rng)
        self._n_jobs = check_n_jobs(self.n_jobs)
        self._n_models = -1
        self._keys: NDArray[np.uint64] | None = None

    @abstractmethod
    def _as_rows(self, preferences: Any) -> Any:
        """Return checked rows, something with a shape (n, m)."""

    @abstractmethod
    def _grow(self, rows: Any, keys: NDArray[np.uint64], growth: Growth) -> Trees:
        """Return one tree per key."""

    @abstractmethod
    def _lengths(self, rows: Any, start: int, stop: int, trained: Mask) -> Array:
        """Return mean path lengths of rows start .. stop; `trained` is that of the trees, or (trees, 0) for new rows."""

    def draw(self: Forest) -> Forest:
        """Draw from `rng` now what the next trees are grown by, and return the forest itself."""
        self._keys = self._drawn()
        return self

    def _drawn(self) -> NDArray[np.uint64]:
        return as_generator(self.rng).integers(0, 1 << 64, self.n_trees, dtype=np.uint64)

    def fit(self: Forest, preferences: Preferences) -> Forest:
        """Grow the trees on preference rows (n, m) in [0, 1] and return the forest itself."""
        return self._fit(self._as_rows(preferences))

    def path_lengths(self, preferences: Preferences) -> Array:
        """Return mean path lengths over the trees, shape (n,), of rows that are not the training rows."""
        return self._route(self._check_fitted(preferences), np.empty((self.n_trees, 0), np.bool_))

    def anomaly_scores(self, preferences: Preferences) -> Array:
        """Return anomaly scores 2^(-h / c(psi)), shape (n,), in (0, 1], high = anomalous; rows count as new ones."""
        return self._scores(self.path_lengths(preferences))

    def fit_path_lengths(self, preferences: Preferences) -> Array:
        """Grow the trees and return the rows' mean path lengths, no row counting itself."""
        rows = self._as_rows(preferences)
        return self._fit(rows)._route(rows, self._trees.trained)

    def fit_anomaly_scores(self, preferences: Preferences, decoys: Preferences | None = None) -> Any:
        """Grow the trees and return the rows' anomaly scores.

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
        scores = self._scores(self.fit_path_lengths(preferences))
        return scores if decoys is None else (scores, self.anomaly_scores(decoys))

    def _fit(self: Forest, rows: Any) -> Forest:
        n, self._n_models = rows.shape
        n_branches, psi = max(2, min(self.branching_factor, n)), min(self.subsample_size, n)
        credit, limit = expected_depths(psi, n_branches), depth_limit(psi, n_branches)
        sink_credit = getattr(self, "sink_credit", None)  # None: nodes have no sink
        n_children = n_branches + (sink_credit is not None)
        growth = self._growth = Growth(psi, n_branches, n_children, limit, credit, bool(sink_credit))
        keys, self._keys = self._drawn() if self._keys is None else self._keys, None
        smallest = max(16, _WORTH_A_THREAD // max(psi * rows.shape[1], 1))
        parts = self._in_threads(lambda start, stop: self._grow(rows, keys[start:stop], growth), self.n_trees, smallest)
        self._trees: Any = parts[0] if len(parts) == 1 else Trees(*map(np.concatenate, zip(*parts, strict=True)))
        return self

    def _check_fitted(self, preferences: Preferences) -> Any:
        if self._n_models < 0:
            raise RuntimeError(f"this {type(self).__name__} has no trees yet: call `fit` first")
        rows = self._as_rows(preferences)
        if rows.shape[1] != self._n_models:
            raise ValueError(f"`preferences` must have {self._n_models} columns as in `fit`, got {rows.shape[1]}")
        return rows

    def _route(self, rows: Any, trained: Mask) -> Array:
        smallest = max(128, _WORTH_A_THREAD // max(self.n_trees * rows.shape[1], 1))
        parts = self._in_threads(lambda start, stop: self._lengths(rows, start, stop, trained), rows.shape[0], smallest)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _in_threads(self, function: Callable[[int, int], T], n_items: int, smallest: int) -> list[T]:
        """Return ``function(start, stop)`` of blocks of at least `smallest` items, which gives the same for any cut."""
        n_blocks = max(1, min(self._n_jobs, n_items // smallest))
        if n_blocks == 1:
            return [function(0, n_items)]
        edges = [n_items * block // n_blocks for block in range(n_blocks + 1)]
        with ThreadPoolExecutor(n_blocks) as pool:
            return list(pool.map(function, edges[:-1], edges[1:]))

    def _scores(self, lengths: Array) -> Array:
        normaliser = self._growth.credit[self._growth.psi]
        # One training row leaves nothing to isolate from: every row is at depth 0 of 0.
        scores: Array = np.exp2(-lengths / normaliser) if normaliser > 0 else np.ones(len(lengths))
        return scores


def empty_trees(n_trees: int, n: int, growth: Growth) -> Trees:
    """Return room for trees of n rows, whose roots have their path lengths."""
    b = growth.n_branches
    # Only nodes of at least b rows split.
    shape = n_trees, 1 + growth.n_children * sum(min(b**depth, growth.psi // b) for depth in range(growth.limit))
    nodes = np.empty(shape, np.uint64), np.full(shape, -1, np.int32), np.empty((*shape, 2))
    nodes[2][:, 0] = growth.credit[[growth.psi, max(growth.psi - 1, 0)]]
    return Trees(*nodes, np.zeros((n_trees, n), np.bool_), np.empty((n_trees, 0), np.int32))


def workspace(n: int, n_nodes: int, growth: Growth) -> Rows:
    """Return what kernels sort n rows in."""
    return np.empty((DEPTH + 1, max(n, n_nodes, growth.n_branches + 2)), np.int64)


@lru_cache(16)
def expected_depths(largest: int, n_branches: int) -> Array:
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
