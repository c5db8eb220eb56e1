"""What isolation forests have in common: expected depths, the depth limit, each tree's rows, and what a leaf is worth.

Liu, Ting, Zhou, "Isolation Forest", ICDM 2008; section 4 of Leveni, Magri, Alippi, Boracchi, "Hashing for Structure-based
Anomaly Detection", ICIAP 2023, for more than two branches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._jit import jit
from ruzhash_cv._random import below, mix

_EULER_GAMMA = 0.5772156649
#: What a forest averages over its trees; the position is the kernels' code.
SCORES = ("path_length", "mean_score", "relative_mass", "vote")
PATH_LENGTH, MEAN_SCORE, RELATIVE_MASS, VOTE = range(4)


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


@jit
def tree_keys(key: Any, n_trees: int) -> Any:
    """Return a key for each tree."""
    keys = np.empty(n_trees, np.uint64)
    for tree in range(n_trees):
        keys[tree] = mix(key, np.uint64(tree))
    return keys


@jit
def draw_rows(key: Any, n: int, psi: int) -> Any:
    """Return psi of n rows without replacement (the first steps of a Fisher-Yates shuffle)."""
    rows = np.arange(n)
    for at in range(psi):
        other = at + below(key, np.uint64(at), n - at)
        rows[at], rows[other] = rows[other], rows[at]
    return rows[:psi].copy()
