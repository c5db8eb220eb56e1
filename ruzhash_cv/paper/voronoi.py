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

from ruzhash_cv.core.forests.isolation import Growth, PreferenceForest, Trees, empty_trees, workspace
from ruzhash_cv.core.kernels.draw import grow_cells, route_cells
from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.foundation.validation import as_preferences, as_reals, check_choice

METRICS = ("tanimoto", "ruzicka", "jaccard", "precomputed")


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

    def _grow(self, rows: _Rows, keys: NDArray[np.uint64], growth: Growth) -> Trees:
        trees = empty_trees(len(keys), len(rows.table), growth)
        trees = trees._replace(centres=np.empty_like(trees.children))
        space = workspace(len(rows.table), trees.keys.shape[1], growth)
        room, trained = np.empty(len(rows.table), np.int64), trees.trained.view(np.uint8)
        grow_cells(*rows, METRICS.index(self.metric), keys, *growth, space, *trees[:3], trained, trees.centres, room)
        return trees

    def _lengths(self, rows: _Rows, start: int, stop: int, trained: Mask) -> Array:
        metric, training, trees, sums = METRICS.index(self.metric), self._training, self._trees, np.zeros(stop - start)
        route_cells(
            rows.table, rows.sizes, training.indptr, training.columns, training.values, training.sizes, metric,
            self._growth.n_branches, start, stop, trees.keys, trees.children, trees.lengths,
            trained.view(np.uint8), trees.centres, sums,
        )  # fmt: skip
        return sums / self.n_trees


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
