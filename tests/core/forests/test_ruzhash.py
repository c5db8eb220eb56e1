"""RuzHash against its plain twin and exact collision frequencies; its forest against a plain tree and the numbers of section 4."""

import math

import naive
import numpy as np
import pytest
from scipy import sparse, stats
from stage_cases import branches_of, clusters

from ruzhash_cv.core.forests.ruzhash import BLOCK
from ruzhash_cv.paper import RuzHashForest, jaccard_distance, ruzhash, ruzicka_distance

SINK = -1


def exact_collision(p: np.ndarray, q: np.ndarray) -> float:
    """Return sum_i min(p_i, q_i) E[1 / (1 + |U without i|)].

    Both rows share their thresholds, so k is in U with probability max(p_k, q_k), independently: |U without i| is
    Poisson-binomial, its distribution the convolution of the coins.
    """
    total = 0.0
    for i in np.flatnonzero(np.minimum(p, q)):
        sizes = np.ones(1)
        for chance in np.delete(np.maximum(p, q), i):
            sizes = np.convolve(sizes, [1 - chance, chance])
        total += min(p[i], q[i]) * float((sizes / np.arange(1, len(sizes) + 1)).sum())
    return total


def collisions(rows: np.ndarray, n_hashes: int, seed: int = 0) -> np.ndarray:
    """Return how often each pair of rows shares a hash; two sinks share nothing."""
    hashes = ruzhash(rows, n_hashes=n_hashes, rng=seed)
    return ((hashes[:, None] == hashes[None]) & (hashes[:, None] != SINK)).mean(axis=2)


def sampling_error(probability: np.ndarray | float, n: int) -> np.ndarray:
    """Five standard errors of a frequency: one in two million exceeds them; and one count for the rarest."""
    probability = np.clip(probability, 0.0, 1.0)
    return 5 * np.sqrt(probability * (1 - probability) / n) + 1.0 / n


# The hash


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 1), (3, 2), (20, 9), (30, 70), (0, 4), (2, 0)])
@pytest.mark.parametrize("density", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("binary", [False, True])
def test_hashes_equal_their_twin(n: int, m: int, density: float, binary: bool) -> None:
    rng = np.random.default_rng(n + m)
    rows = ((rng.random((n, m)) if not binary else np.ones((n, m))) * (rng.random((n, m)) < density)).astype(np.float32)
    keys = np.random.default_rng(7).integers(0, naive.WORD, 12, dtype=np.uint64)
    expected = np.reshape([[naive.hash_row(row, key) for key in keys] for row in rows], (n, 12))
    np.testing.assert_array_equal(ruzhash(rows, n_hashes=12, rng=7), expected)


# Branches


def test_a_component_at_its_threshold_does_not_pass() -> None:
    for key in range(20):
        threshold = np.float32((naive.mix(key, 0) >> 40) / 2**24)
        rows = np.array([[threshold], [np.nextafter(threshold, np.float32(1.0))]])
        assert (branches_of(rows, key, 3) == 3).tolist() == [True, False]


@pytest.mark.parametrize("n_branches", [3, 4])
def test_branches_do_not_follow_from_ranks_or_thresholds(n_branches: int) -> None:
    """Of the components that win, branches are as even as of all, for rows that many pass in and for rows that few do."""
    for preference in (0.1, 0.8):
        row = np.full((1, 30), preference, np.float32)
        keys = np.random.default_rng(5).integers(0, naive.WORD, 4000, dtype=np.uint64)
        branches = np.array([branches_of(row, int(key), n_branches)[0] for key in keys])
        counts = np.bincount(branches[branches < n_branches], minlength=n_branches)
        share, n = 1 / n_branches, counts.sum()
        assert (np.abs(counts / n - share) < sampling_error(share, n)).all()


# Collisions


@pytest.mark.parametrize("m", [1, 2, 5, 40])
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_collision_frequency_equals_its_exact_value(m: int, density: float) -> None:
    rng = np.random.default_rng(m)
    rows = (rng.random((6, m)) * (rng.random((6, m)) < density)).astype(np.float32).astype(np.float64)
    n = 10_000
    exact = np.array([[exact_collision(p, q) for q in rows] for p in rows])
    assert (np.abs(collisions(rows, n) - exact) <= sampling_error(exact, n)).all()


def test_collision_frequency_follows_ruzicka_on_rows_of_many_components() -> None:
    rng = np.random.default_rng(1)
    common = rng.random(150)
    rows = np.array([np.where(rng.random(150) < share, common, rng.random(150)) for share in np.linspace(0, 1, 25)])
    similarity = 1 - ruzicka_distance(rows)
    frequency = collisions(rows, 5000)
    upper = np.triu_indices(25, 1)
    assert np.corrcoef(similarity[upper], frequency[upper])[0, 1] > 0.95
    assert np.abs(similarity - frequency)[upper].max() < 0.03 + sampling_error(0.5, 5000)


def test_on_binary_rows_the_hash_is_minhash() -> None:
    """Collision frequency is 1 - Jaccard distance, and each hash lies in its row's set."""
    rng = np.random.default_rng(2)
    rows = (rng.random((8, 30)) < rng.uniform(0.1, 0.9, (8, 1))).astype(float)
    n = 10_000
    similarity = 1 - jaccard_distance(rows)
    assert (np.abs(collisions(rows, n) - similarity) <= sampling_error(similarity, n)).all()
    assert all(row[of].all() for row, of in zip(rows, ruzhash(rows, n_hashes=100), strict=True))


def test_the_same_seed_gives_the_same_hashes_dense_or_sparse() -> None:
    rows = np.random.default_rng(0).random((5, 9)) * (np.random.default_rng(1).random((5, 9)) < 0.5)
    once = ruzhash(rows, n_hashes=30, rng=3)
    np.testing.assert_array_equal(ruzhash(sparse.csc_array(rows), n_hashes=30, rng=3), once)
    np.testing.assert_array_equal(ruzhash(rows, n_hashes=30, rng=np.random.default_rng(3)), once)
    assert (ruzhash(rows, n_hashes=30, rng=4) != once).any()


# The forest


def lengths_twin(forest: RuzHashForest, training: np.ndarray, rows: np.ndarray, themselves: bool) -> np.ndarray:
    """Return mean path lengths of rows in plain trees of the same keys; `themselves`: they are the training rows."""
    psi, b = min(forest.subsample_size, len(training)), min(forest.branching_factor, len(training))
    keys = np.random.default_rng(forest.rng).integers(0, naive.WORD, forest.n_trees, dtype=np.uint64).tolist()
    owners = range(len(rows)) if themselves else [None] * len(rows)
    given = list(zip(rows, owners, strict=True))
    lengths = [[naive.path_length(training, psi, b, key, *each, forest.sink_credit) for each in given] for key in keys]
    return np.mean(lengths, axis=0)


@pytest.mark.parametrize("b", [2, 3, 16])
@pytest.mark.parametrize("psi", [1, 2, 7, 40])
@pytest.mark.parametrize("sink_credit", [False, True])
def test_path_lengths_equal_those_of_a_plain_tree(b: int, psi: int, sink_credit: bool) -> None:
    rows, new = clusters(n=30, m=12, alone=6), clusters(seed=1, n=12, m=12, alone=4)
    forest = RuzHashForest(n_trees=4, subsample_size=psi, branching_factor=b, sink_credit=sink_credit, rng=5, n_jobs=1)
    own = forest.fit_path_lengths(rows)
    np.testing.assert_allclose(own, lengths_twin(forest, rows, rows, themselves=True), atol=1e-12)
    np.testing.assert_allclose(forest.path_lengths(new), lengths_twin(forest, rows, new, themselves=False), atol=1e-12)


def test_rows_get_the_same_path_lengths_alone_and_in_blocks_with_empty_rows_among_them() -> None:
    rows = np.vstack([clusters(n=BLOCK + 300), np.zeros((200, 40), np.float32)])
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    forest = RuzHashForest(n_trees=10, subsample_size=64, branching_factor=4, n_jobs=1).fit(rows)
    together = forest.path_lengths(rows)
    alone = [forest.path_lengths(rows[row : row + 1])[0] for row in range(0, len(rows), 97)]
    np.testing.assert_array_equal(together[::97], alone)


# The numbers of the paper


@pytest.mark.parametrize("b", [2, 16])
def test_scores_are_two_to_the_minus_path_length_over_its_normaliser_and_highest_where_few_agree(b: int) -> None:
    rows, psi = clusters(), 64
    forest = RuzHashForest(n_trees=20, subsample_size=psi, branching_factor=b).fit(rows)
    lengths = forest.path_lengths(rows)
    scores = forest.anomaly_scores(rows)
    np.testing.assert_allclose(scores, 2 ** (-lengths / naive.expected_depth(psi, b)), rtol=1e-12)
    assert stats.mannwhitneyu(scores[100:], scores[:100]).statistic / (100 * 20) > 0.99


def test_rows_of_zeros_end_in_the_first_sink() -> None:
    rows = np.vstack([clusters(), np.zeros((10, 40))])
    plain, paper = (RuzHashForest(sink_credit=credit, n_trees=30).fit(rows) for credit in (False, True))
    assert (plain.path_lengths(np.zeros((1, 40))) == 0).all()
    assert (plain.anomaly_scores(np.zeros((1, 40))) == 1).all()
    assert paper.path_lengths(np.zeros((1, 40)))[0] > 0.5


def test_with_most_rows_in_the_sink_the_paper_s_credit_turns_the_ranking_over() -> None:
    rng = np.random.default_rng(0)
    rows = np.zeros((300, 60))
    rows[:30, :12] = rng.uniform(0.2, 0.5, (30, 12))
    gaps = []
    for credit in (False, True):
        scores = RuzHashForest(sink_credit=credit).fit_anomaly_scores(rows)
        gaps.append(scores[30:].mean() - scores[:30].mean())
    assert gaps[0] > 0.3
    assert gaps[1] < gaps[0] - 0.3


# A training row does not count itself


def random_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    return ((rng.random((n, 25)) < 0.25) * rng.random((n, 25))).astype(np.float32)


@pytest.mark.parametrize("b", [2, 8])
@pytest.mark.parametrize("sink_credit", [False, True])
def test_rows_and_decoys_of_one_distribution_get_scores_of_one_distribution(b: int, sink_credit: bool) -> None:
    """Mean rank of rows among decoys is 1/2: not so by far where rows count themselves."""
    areas = []
    for repeat in range(60):
        rng = np.random.default_rng(repeat)
        forest = RuzHashForest(n_trees=20, branching_factor=b, sink_credit=sink_credit, rng=repeat, n_jobs=1)
        own, other = forest.fit_anomaly_scores(random_rows(60, rng), random_rows(60, rng))
        areas.append(stats.mannwhitneyu(own, other).statistic / 3600)
    # Two samples of 60: the area's standard deviation is sqrt(121 / (12 * 3600)) = 0.053 under exchangeability.
    assert abs(np.mean(areas) - 0.5) < 4 * 0.053 / math.sqrt(60)
    assert np.std(areas) < 2 * 0.053


def test_fitting_twice_grows_the_same_trees_and_rows_stay_as_they_were() -> None:
    rows = clusters()
    rows.flags.writeable = False
    forest = RuzHashForest()
    once = forest.fit_anomaly_scores(rows)
    np.testing.assert_array_equal(forest.fit_anomaly_scores(sparse.csr_array(rows)), once)
    np.testing.assert_array_equal(forest.fit_anomaly_scores(rows[:, ::-1][:, ::-1]), once)
