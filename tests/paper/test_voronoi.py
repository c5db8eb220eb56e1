"""The Voronoi forest: path lengths against a plain recursive twin, ties, and what scores may depend on."""

import math

import numpy as np
import pytest
from naive import draw_rows
from scipy import sparse
from stage_cases import clusters

from ruzhash_cv import paper
from ruzhash_cv.core.forests.isolation import depth_limit, expected_depths
from ruzhash_cv.core.kernels.draw import mix as mix_kernel
from ruzhash_cv.core.kernels.draw import uniform
from ruzhash_cv.paper import VoronoiForest

DISTANCES = {name: getattr(paper, f"{name}_distance") for name in ("tanimoto", "ruzicka", "jaccard")}


# A plain twin: distances in full, trees grown recursively with the forest's keys.


def mix(key: np.uint64, counter: int | np.uint64) -> np.uint64:
    return np.uint64(mix_kernel(key, np.uint64(counter)))


def nearest_twin(distances: np.ndarray, ties: np.uint64) -> int:
    """Return a random one of the nearest centres: each next one replaces the choice with probability 1 / (how many so far)."""
    nearest = np.flatnonzero(np.isclose(distances, distances.min(), rtol=0, atol=1e-6))
    chosen = nearest[0]
    for n_equal, branch in enumerate(nearest[1:], start=2):
        if uniform(ties, np.uint64(n_equal)) * n_equal < 1.0:
            chosen = branch
    return int(chosen)


def length_twin(forest: VoronoiForest, tree: int, x: int, own: bool, between: np.ndarray, across: np.ndarray) -> float:
    """Return the path length of row x of `across` (to the training rows); `own`: it trained the tree and does not count."""
    keys, trained = forest._trees.keys, forest._trees.trained
    b, psi = forest._growth.n_branches, forest._growth.psi
    own_key = np.random.default_rng(forest.rng).integers(0, 1 << 64, forest.n_trees, dtype=np.uint64)[tree]
    rows = draw_rows(int(mix(own_key, 1)), len(trained[tree]), psi)
    key, depth = keys[tree, 0], 0
    credit = expected_depths(psi, b)
    while depth < depth_limit(psi, b) and len(rows) - own >= b:
        centres = [rows[at] for at in draw_rows(int(mix(key, np.uint64(1 << 40))), len(rows), b)]
        stream = np.uint64(2 << 40) if own else np.uint64(3 << 40)
        branch = nearest_twin(across[x, centres], mix(mix(key, stream), x))
        cells = [nearest_twin(between[row, centres], mix(mix(key, np.uint64(2 << 40)), row)) for row in rows]
        rows = [row for row, cell in zip(rows, cells, strict=True) if cell == branch]
        key, depth = mix(key, branch), depth + 1
    return float(depth + credit[len(rows) - own])


def lengths_twin(forest: VoronoiForest, between: np.ndarray, across: np.ndarray, themselves: bool) -> np.ndarray:
    lengths = [
        [length_twin(forest, tree, x, bool(themselves and members[x]), between, across) for x in range(len(across))]
        for tree, members in enumerate(forest._trees.trained)
    ]
    return np.mean(lengths, axis=0)


@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize(("b", "psi"), [(2, 1), (2, 2), (2, 30), (3, 7), (3, 30), (16, 30)])
def test_path_lengths_equal_those_of_a_plain_recursive_tree(metric: str, b: int, psi: int) -> None:
    rows, new = clusters(n=30, m=12, alone=12), clusters(seed=1, n=14, m=12, alone=6)
    forest = VoronoiForest(metric=metric, n_trees=2, subsample_size=psi, branching_factor=b, n_jobs=1)
    own = forest.fit_path_lengths(rows)
    between, across = DISTANCES[metric](rows), DISTANCES[metric](new, rows)
    np.testing.assert_allclose(own, lengths_twin(forest, between, between, themselves=True), atol=1e-12)
    others = lengths_twin(forest, between, across, themselves=False)
    np.testing.assert_allclose(forest.path_lengths(new), others, atol=1e-12)


@pytest.mark.parametrize("metric", DISTANCES)
def test_a_matrix_of_distances_gives_the_same_scores(metric: str) -> None:
    rows, new = clusters(), clusters(seed=1)
    near = VoronoiForest(metric=metric, n_trees=30, branching_factor=4)
    far = VoronoiForest(metric="precomputed", n_trees=30, branching_factor=4)
    np.testing.assert_array_equal(far.fit_anomaly_scores(DISTANCES[metric](rows)), near.fit_anomaly_scores(rows))
    np.testing.assert_array_equal(far.anomaly_scores(DISTANCES[metric](new, rows)), near.anomaly_scores(new))


# Ties


def test_rows_that_share_nothing_with_any_centre_spread_over_the_cells() -> None:
    """Zero rows are at distance 1 from all: each of 4 cells gets a quarter, in training and in scoring."""
    forest = VoronoiForest(n_trees=200, subsample_size=64, branching_factor=4).fit(np.zeros((64, 5)))
    children, lengths = forest._trees.children, forest._trees.lengths
    assert (children[:, 0] == 1).all()
    # A new row's length in a cell is 1 + c(size); cells of four rows or fewer are not told apart, and rare: P < 2e-4.
    first = np.abs(lengths[:, 1:5, :1] - 1 - forest._growth.credit).argmin(axis=2)
    whole = lengths[:, 1:5, 0].min(axis=1) > 2
    assert whole.mean() > 0.99
    assert (first[whole].sum(axis=1) == 64).all()
    # Binomial(64 * 200, 1/4) per cell, and its spread over trees: five and four standard deviations.
    assert np.abs(first.sum(axis=0) - 3200).max() < 5 * math.sqrt(12800 * 0.25 * 0.75)
    assert abs(first.var() / (64 * 0.25 * 0.75) - 1) < 4 * math.sqrt(2 / 800)
    lengths = forest.path_lengths(np.zeros((500, 5)))
    assert lengths.std() > 0
    other = VoronoiForest(n_trees=200, subsample_size=64, branching_factor=4, rng=1)
    assert abs(lengths.mean() - other.fit_path_lengths(np.zeros((64, 5))).mean()) < 0.15


def test_the_forest_keeps_its_centres_when_the_caller_s_rows_change() -> None:
    rows = sparse.csr_array(clusters())
    forest = VoronoiForest(n_trees=10).fit(rows)
    new = clusters(seed=1)
    before = forest.anomaly_scores(new)
    rows.data[:] = 0.5
    np.testing.assert_array_equal(forest.anomaly_scores(new), before)
