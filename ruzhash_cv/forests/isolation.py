"""What forests in preference space share: options, training rows, path lengths, scores.

Liu, Ting, Zhou, "Isolation Forest", ICDM 2008; section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based
Anomaly Detection", ICIAP 2023, for more than two branches.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ruzhash_cv._core.jit import below, draw_key, jit, mix, run_blocks
from ruzhash_cv._core.validation import RNG, as_generator, check_choice, check_int, check_n_jobs

Forest = TypeVar("Forest", bound="PreferenceForest")

_EULER_GAMMA = 0.5772156649
#: What a forest averages over its trees; the position is the kernels' code.
SCORES = ("path_length", "mean_score", "relative_mass", "vote")
PATH_LENGTH, MEAN_SCORE, RELATIVE_MASS, VOTE = range(4)


@dataclass(kw_only=True, eq=False)
class PreferenceForest(ABC):
    """A forest in preference space; a subclass grows trees and routes rows."""

    n_trees: int = 100
    subsample_size: int = 256
    branching_factor: int = 16
    score: str = "path_length"
    rng: RNG = 0
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        self.n_trees = check_int(self.n_trees, "n_trees")
        self.subsample_size = check_int(self.subsample_size, "subsample_size")
        self.branching_factor = check_int(self.branching_factor, "branching_factor", at_least=2)
        check_choice(self.score, "score", SCORES)
        as_generator(self.rng)
        self._n_jobs = check_n_jobs(self.n_jobs)
        self._n_models = -1

    @abstractmethod
    def _as_rows(self, preferences: Any) -> Any:
        """Return checked rows, something with a shape (n, m)."""

    @abstractmethod
    def _grow(self, rows: Any, keys: NDArray[np.uint64], limit: int) -> tuple[Any, ...]:
        """Return the arrays of one tree per key; the last tells which rows trained which tree."""

    @abstractmethod
    def _leaf_values(
        self, rows: Any, start: int, stop: int, membership: NDArray[np.bool_], rule: int
    ) -> NDArray[np.float64]:
        """Return means over the trees of `leaf_value` for rows start .. stop."""

    def fit(self: Forest, preferences: ArrayLike | sparse.csr_array) -> Forest:
        """Grow the trees on preference rows (n, m) in [0, 1] and return the forest itself."""
        return self._fit(self._as_rows(preferences))

    def path_lengths(self, preferences: ArrayLike | sparse.csr_array) -> NDArray[np.float64]:
        """Return mean path lengths over the trees, shape (n,), of rows that are not the training rows."""
        return self._route(self._check_fitted(preferences), PATH_LENGTH, training=False)

    def anomaly_scores(self, preferences: ArrayLike | sparse.csr_array) -> NDArray[np.float64]:
        """Return anomaly scores, by default 2^(-h / c(psi)), shape (n,), in (0, 1], high = anomalous; rows count as new ones."""
        return self._score(self._check_fitted(preferences), training=False)

    def fit_path_lengths(self, preferences: ArrayLike | sparse.csr_array) -> NDArray[np.float64]:
        """Grow the trees and return the rows' own mean path lengths, no row counting itself."""
        rows = self._as_rows(preferences)
        return self._fit(rows)._route(rows, PATH_LENGTH, training=True)

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
        rows = self._as_rows(preferences)
        scores = self._fit(rows)._score(rows, training=True)
        return scores if decoys is None else (scores, self.anomaly_scores(decoys))

    def _fit(self: Forest, rows: Any) -> Forest:
        n = rows.shape[0]
        self._n_models = rows.shape[1]
        self._n_branches = max(2, min(self.branching_factor, n))
        self._psi = min(self.subsample_size, n)
        self._credit = expected_depths(self._psi, self._n_branches)
        self._normaliser = float(self._credit[self._psi])
        limit = depth_limit(self._psi, self._n_branches)
        keys = np.empty(self.n_trees, np.uint64)
        tree_keys(draw_key(as_generator(self.rng)), keys)
        parts = run_blocks(
            lambda start, stop: self._grow(rows, keys[start:stop], limit),
            self.n_trees,
            self._n_jobs,
            smallest=max(16, 4096 // max(n, 1)),
        )
        self._trees = tuple(np.concatenate(items) for items in zip(*parts, strict=True))
        return self

    def _check_fitted(self, preferences: ArrayLike | sparse.csr_array) -> Any:
        if self._n_models < 0:
            raise RuntimeError(f"this {type(self).__name__} has no trees yet: call `fit` first")
        rows = self._as_rows(preferences)
        if rows.shape[1] != self._n_models:
            raise ValueError(f"`preferences` must have {self._n_models} columns as in `fit`, got {rows.shape[1]}")
        return rows

    def _route(self, rows: Any, rule: int, *, training: bool) -> NDArray[np.float64]:
        trained = self._trees[-1]
        membership = trained if training else np.zeros((len(trained), 0), np.bool_)
        blocks = run_blocks(
            lambda start, stop: self._leaf_values(rows, start, stop, membership, rule),
            rows.shape[0],
            self._n_jobs,
            smallest=max(1, 25600 // self.n_trees),
        )
        return np.concatenate(blocks)

    def _score(self, rows: Any, *, training: bool) -> NDArray[np.float64]:
        rule = SCORES.index(self.score)
        return combine(self._route(rows, rule, training=training), rule, self._normaliser, self._psi)


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


def combine(values: NDArray[np.float64], rule: int, normaliser: float, psi: int) -> NDArray[np.float64]:
    """Return anomaly scores in (0, 1], high = anomalous, from the means over trees of `leaf_value`."""
    if normaliser <= 0:
        # One training row leaves nothing to isolate from: every row is at depth 0 of 0.
        return np.ones(len(values))
    if rule == PATH_LENGTH:
        scores: NDArray[np.float64] = np.exp2(-values / normaliser)
        return scores
    return values / (psi + 1.0) if rule == RELATIVE_MASS else values


@jit
def leaf_value(rule: int, depth: int, credit: float, size: int, parent: int, normaliser: float) -> float:
    """Return what one tree says of a row in a leaf of `size` other rows below a node of `parent` other rows.

    PATH_LENGTH: h, the depth with the leaf's credit. MEAN_SCORE: the tree's own 2^(-h / c); its mean over trees is
    arithmetic where 2^(-mean h / c) is geometric. RELATIVE_MASS: how much denser the parent is than the leaf, the row
    counted in both (Aryal, Ting, Wells, Washio, "Improving iForest with Relative Mass", PAKDD 2014). VOTE: whether the tree
    finds the row easier to isolate than a random one, h < c (Chabchoub, Togbe, Boly, Chiky, IEEE Access 2022).
    """
    length = depth + credit
    if rule == PATH_LENGTH:
        return length
    if rule == MEAN_SCORE:
        return float(2.0 ** (-length / normaliser)) if normaliser > 0.0 else 1.0
    if rule == RELATIVE_MASS:
        return (parent + 1.0) / (size + 1.0)
    # Half a tree's vote at equality; never zero over the forest, scores lie in (0, 1].
    return 1.0 if length < normaliser else (0.5 if length == normaliser else 1e-9)


@jit("void(u8, u8[::1])")
def tree_keys(key: Any, keys: Any) -> None:
    """Write a key for each tree."""
    for tree in range(len(keys)):
        keys[tree] = mix(key, np.uint64(tree))


@jit
def draw_rows(key: Any, n: int, psi: int) -> Any:
    """Return psi of n rows without replacement (the first steps of a Fisher-Yates shuffle)."""
    rows = np.arange(n)
    for at in range(psi):
        other = at + below(key, np.uint64(at), n - at)
        rows[at], rows[other] = rows[other], rows[at]
    return rows[:psi].copy()
