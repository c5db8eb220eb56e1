"""RuzHash: the keyed hash against a plain twin, and collision frequencies against their exact values."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from scipy import sparse

from ruzhash_cv import ruzhash
from ruzhash_cv.forests.ruzhash import SINK, draw_node, smallest_rank
from ruzhash_cv.paper import jaccard_distance, ruzicka_distance


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
    same = (hashes[:, None] == hashes[None]) & (hashes[:, None] != SINK)
    return same.mean(axis=2)


def sampling_error(probability: np.ndarray | float, n: int) -> np.ndarray:
    """Five standard errors of a frequency: one in two million exceeds them; and one count for the rarest."""
    probability = np.clip(probability, 0.0, 1.0)
    return 5 * np.sqrt(probability * (1 - probability) / n) + 1.0 / n


# The hash


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 1), (3, 2), (20, 9), (30, 70)])
@pytest.mark.parametrize("kind", ["random", "sparse", "binary", "zeros", "ones"])
def test_hashes_equal_their_twin(n: int, m: int, kind: str) -> None:
    rng = np.random.default_rng(n + m)
    rows = rng.random((n, m)).astype(np.float32)
    rows = {
        "random": rows,
        "sparse": rows * (rng.random((n, m)) < 0.2),
        "binary": rng.integers(0, 2, (n, m)),
        "zeros": 0 * rows,
        "ones": 1 + 0 * rows,
    }[kind]
    rows = np.asarray(rows, np.float32)
    keys = np.random.default_rng(7).integers(0, naive.WORD, 12, dtype=np.uint64)
    expected = [[naive.hash_row(row, key) for key in keys] for row in rows]
    np.testing.assert_array_equal(ruzhash(rows, n_hashes=12, rng=7), expected)


def test_a_component_passes_with_its_preference_s_probability() -> None:
    assert (ruzhash(np.array([[2.0**-24]]), n_hashes=2000) == SINK).all()
    hashes = ruzhash(np.array([[0.3]]), n_hashes=40000)
    assert abs((hashes != SINK).mean() - 0.3) < sampling_error(0.3, 40000)


def test_rows_of_zeros_go_to_the_sink_and_rows_of_ones_never() -> None:
    assert (ruzhash(np.zeros((3, 4)), n_hashes=20) == SINK).all()
    assert (ruzhash(np.ones((3, 4)), n_hashes=20) >= 0).all()
    assert ruzhash(np.zeros((0, 4)), n_hashes=2).shape == (0, 2)
    assert (ruzhash(np.zeros((2, 0))) == SINK).all()


def test_components_of_equal_preference_are_equally_likely() -> None:
    n, m = 40000, 8
    counts = np.bincount(ruzhash(np.ones((1, m)), n_hashes=n)[0], minlength=m)
    assert (np.abs(counts / n - 1 / m) < sampling_error(1 / m, n)).all()


def test_a_component_at_its_threshold_does_not_pass_and_the_smallest_rank_wins() -> None:
    thresholds, ranks, nothing = np.array([0.0, 0.5, 0.5], np.float32), np.array([1, 3, 2], np.uint32), np.uint32(9)
    rows = np.array([[0.0, 0.5, 0.5], [0.0, 0.6, 0.5], [0.0, 0.6, 0.6], [0.1, 1.0, 1.0]], np.float32)
    assert [smallest_rank(rows, row, thresholds, ranks, nothing) for row in range(4)] == [nothing, 3, 2, 1]


# Branches


def draw(key: int, m: int, n_branches: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Return a node's thresholds and ranks, and the mask of branches."""
    thresholds, ranks, mask = np.empty(m, np.float32), np.empty(m, np.uint32), 2 ** n_branches.bit_length() - 1
    draw_node(np.uint64(key), n_branches, mask, thresholds, ranks)
    return thresholds, ranks, mask


@pytest.mark.parametrize("n_branches", [2, 3, 16, 256, 2**20])
@pytest.mark.parametrize("m", [0, 1, 30])
def test_branches_equal_their_twin(n_branches: int, m: int) -> None:
    rng = np.random.default_rng(0)
    rows = (rng.random((20, m)) * (rng.random((20, m)) < 0.4)).astype(np.float32)
    nothing = np.uint32(0xFFFFFFFF)
    for key in rng.integers(0, naive.WORD, 20, dtype=np.uint64):
        thresholds, ranks, mask = draw(key, m, n_branches)
        found = [smallest_rank(rows, row, thresholds, ranks, nothing) for row in range(20)]
        branches = [SINK if rank == nothing else rank & mask for rank in found]
        assert branches == [naive.branch_of(row, int(key), n_branches) for row in rows]


@pytest.mark.parametrize("n_branches", [2, 3, 16])
def test_branches_are_equally_likely_and_within_range(n_branches: int) -> None:
    _, ranks, mask = draw(123456789, 20000, n_branches)
    counts = np.bincount(ranks & mask)
    assert len(counts) == n_branches
    assert (np.abs(counts / 20000 - 1 / n_branches) < sampling_error(1 / n_branches, 20000)).all()


@pytest.mark.parametrize("n_branches", [3, 4])
def test_branches_do_not_follow_from_ranks_or_thresholds(n_branches: int) -> None:
    """Of the components that win, branches are as even as of all, for rows that many pass in and for rows that few do."""
    for preference in (0.1, 0.8):
        row, branches = np.full((1, 30), preference, np.float32), []
        for key in np.random.default_rng(5).integers(0, naive.WORD, 4000, dtype=np.uint64):
            thresholds, ranks, mask = draw(key, 30, n_branches)
            rank = smallest_rank(row, 0, thresholds, ranks, np.uint32(0xFFFFFFFF))
            branches.append(rank & mask)
        counts = np.bincount([branch for branch in branches if branch < n_branches], minlength=n_branches)
        share, n = 1 / n_branches, counts.sum()
        assert (np.abs(counts / n - share) < sampling_error(share, n)).all()


# Collisions


def test_exact_collision_probability_is_right_where_it_can_be_written_down() -> None:
    assert exact_collision(np.array([0.5]), np.array([0.25])) == pytest.approx(0.25)
    # Two certain components, one shared: half of the permutations begin with it.
    assert exact_collision(np.array([1.0, 0.0]), np.array([1.0, 1.0])) == pytest.approx(0.5)
    # p = q = (a, b): a (1 - b / 2) + b (1 - a / 2) = a + b - a b, the chance of not falling into the sink.
    assert exact_collision(np.array([0.6, 0.3]), np.array([0.6, 0.3])) == pytest.approx(0.72)


@pytest.mark.parametrize("m", [1, 2, 5, 40])
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_collision_frequency_equals_its_exact_value(m: int, density: float) -> None:
    rng = np.random.default_rng(m)
    rows = (rng.random((6, m)) * (rng.random((6, m)) < density)).astype(np.float32).astype(np.float64)
    n = 40000
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
    n = 40000
    similarity = 1 - jaccard_distance(rows)
    assert (np.abs(collisions(rows, n) - similarity) <= sampling_error(similarity, n)).all()
    hashes = ruzhash(rows, n_hashes=100)
    assert all(rows[i][hashes[i]].all() for i in range(8))


# Arguments


def test_the_same_seed_gives_the_same_hashes_dense_or_sparse() -> None:
    rows = np.random.default_rng(0).random((5, 9)) * (np.random.default_rng(1).random((5, 9)) < 0.5)
    once = ruzhash(rows, n_hashes=30, rng=3)
    np.testing.assert_array_equal(ruzhash(sparse.csc_array(rows), n_hashes=30, rng=3), once)
    np.testing.assert_array_equal(ruzhash(rows, n_hashes=30, rng=np.random.default_rng(3)), once)
    assert (ruzhash(rows, n_hashes=30, rng=4) != once).any()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_hashes": 0}, ValueError, "`n_hashes` must be at least 1, got 0"),
        ({"n_hashes": 1.5}, TypeError, r"`n_hashes` must be an integer, got 1\.5"),
        ({"rng": -1}, TypeError, "`rng` must be a non-negative int, .* got -1"),
        ({"rng": "0"}, TypeError, "`rng` must be .* got '0'"),
        ({"hashes": 3}, TypeError, "hashes"),
    ],
)
def test_bad_options_are_named(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ruzhash(np.ones((1, 1)), **arguments)
