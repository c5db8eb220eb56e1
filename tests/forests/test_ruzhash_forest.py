"""The forest: path lengths against a plain twin, the numbers of section 4, and what scores may depend on."""

from __future__ import annotations

import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
from scipy import sparse, stats

from ruzhash_cv import RuzHashForest
from ruzhash_cv.forests.ruzhash import BLOCK


def clusters(seed: int = 0, n: int = 120, m: int = 40, alone: int = 20) -> np.ndarray:
    """Rows of four groups that prefer the same models, then `alone` rows that prefer some at random."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((n, m))
    group = np.arange(n - alone) * 4 // (n - alone)
    rows[: n - alone] = (np.arange(m) * 4 // m == group[:, None]) * rng.uniform(0.3, 1, (n - alone, m))
    rows[n - alone :] = (rng.random((alone, m)) < 0.06) * rng.random((alone, m))
    return rows.astype(np.float32)


# A plain twin


def tree_keys(seed: int, n_trees: int) -> list[int]:
    """Return the keys of a forest's trees: all of them follow from the seed."""
    keys: list[int] = np.random.default_rng(seed).integers(0, naive.WORD, n_trees, dtype=np.uint64).tolist()
    return keys


def lengths_twin(forest: RuzHashForest, training: np.ndarray, rows: np.ndarray, themselves: bool) -> np.ndarray:
    """Return mean path lengths of rows in trees grown from the same seed; `themselves`: they are the training rows."""
    psi, b = min(forest.subsample_size, len(training)), min(forest.branching_factor, len(training))
    lengths = [
        [
            naive.path_length(training, psi, b, key, row, at if themselves else None, forest.sink_credit)
            for at, row in enumerate(rows)
        ]
        for key in tree_keys(forest.rng, forest.n_trees)
    ]
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


def test_every_tree_is_trained_on_psi_different_rows_each_as_often_as_another() -> None:
    forest = RuzHashForest(n_trees=400, subsample_size=25).fit(clusters(n=100))
    trained = forest._trees[-1]
    assert (trained.sum(axis=1) == 25).all()
    # Binomial(400, 1/4), five standard deviations.
    assert np.abs(trained.sum(axis=0) - 100).max() < 5 * math.sqrt(400 * 0.25 * 0.75)


# The numbers of the paper


def test_subsample_and_branches_are_no_more_than_the_rows() -> None:
    forest = RuzHashForest(subsample_size=256, branching_factor=64, n_trees=3).fit(clusters(n=40))
    assert (forest._psi, forest._n_branches) == (40, 40)
    assert forest._trees[-1].all()
    forest = RuzHashForest(subsample_size=10, branching_factor=16, n_trees=3).fit(clusters(n=40))
    assert forest._psi == 10


def test_scores_are_two_to_the_minus_path_length_over_its_normaliser() -> None:
    rows, psi, b = clusters(), 64, 4
    forest = RuzHashForest(n_trees=20, subsample_size=psi, branching_factor=b).fit(rows)
    lengths = forest.path_lengths(rows)
    np.testing.assert_allclose(forest.anomaly_scores(rows), 2 ** (-lengths / naive.expected_depth(psi, b)), rtol=1e-12)


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


def test_rows_that_agree_with_nobody_score_higher_than_groups() -> None:
    for b in (2, 16):
        scores = RuzHashForest(branching_factor=b).fit_anomaly_scores(clusters())
        assert ((scores > 0) & (scores <= 1)).all()
        area = stats.mannwhitneyu(scores[100:], scores[:100]).statistic / (100 * 20)
        assert area > 0.99


# A training row does not count itself


def random_rows(n: int, rng: np.random.Generator) -> np.ndarray:
    return ((rng.random((n, 25)) < 0.25) * rng.random((n, 25))).astype(np.float32)


@pytest.mark.parametrize("b", [2, 8])
@pytest.mark.parametrize("sink_credit", [False, True])
def test_rows_and_decoys_of_one_distribution_get_scores_of_one_distribution(b: int, sink_credit: bool) -> None:
    """Mean rank of rows among decoys is 1/2: not so by far where rows counted themselves (the next test)."""
    areas = []
    for repeat in range(60):
        rng = np.random.default_rng(repeat)
        forest = RuzHashForest(n_trees=20, branching_factor=b, sink_credit=sink_credit, rng=repeat, n_jobs=1)
        own, other = forest.fit_anomaly_scores(random_rows(60, rng), random_rows(60, rng))
        areas.append(stats.mannwhitneyu(own, other).statistic / 3600)
    # Two samples of 60: the area's standard deviation is sqrt(121 / (12 * 3600)) = 0.053 under exchangeability.
    assert abs(np.mean(areas) - 0.5) < 4 * 0.053 / math.sqrt(60)
    assert np.std(areas) < 2 * 0.053


def test_rows_that_count_themselves_look_less_anomalous_than_they_are() -> None:
    rng = np.random.default_rng(0)
    rows = random_rows(60, rng)
    forest = RuzHashForest(branching_factor=2)
    own = forest.fit_anomaly_scores(rows)
    assert (own >= forest.anomaly_scores(rows) - 1e-12).all()
    assert own.mean() > forest.anomaly_scores(rows).mean() + 0.02


def test_a_row_scores_like_a_new_one_in_the_forest_grown_without_it() -> None:
    """On average over forests: leaving a row out and not counting it come to the same."""
    rng = np.random.default_rng(3)
    rows = random_rows(40, rng)
    within, without = [], []
    for seed in range(150):
        options = {"n_trees": 10, "subsample_size": 40, "branching_factor": 3, "sink_credit": True, "n_jobs": 1}
        within.append(RuzHashForest(rng=seed, **options).fit_path_lengths(rows)[0])
        without.append(RuzHashForest(rng=seed + 1000, **options).fit(rows[1:]).path_lengths(rows[:1])[0])
    error = math.hypot(np.std(within), np.std(without)) / math.sqrt(150)
    assert abs(np.mean(within) - np.mean(without)) < 4 * error


# The same seed, the same scores


def test_scores_do_not_depend_on_the_number_of_threads() -> None:
    rows, decoys = clusters(n=3000), clusters(seed=1, n=2500)
    once = RuzHashForest(rng=5, n_jobs=1).fit_anomaly_scores(rows, decoys)
    for n_jobs in (2, 4, None):
        again = RuzHashForest(rng=5, n_jobs=n_jobs).fit_anomaly_scores(rows, decoys)
        for first, second in zip(once, again, strict=True):
            np.testing.assert_array_equal(first, second)
    assert (RuzHashForest(rng=6).fit_anomaly_scores(rows) != once[0]).any()


def test_eight_threads_at_once_get_the_same_scores() -> None:
    rows = clusters(n=2500)
    expected = RuzHashForest(rng=5, n_jobs=2).fit_anomaly_scores(rows)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: RuzHashForest(rng=5, n_jobs=2).fit_anomaly_scores(rows), range(8)))
    for scores in found:
        np.testing.assert_array_equal(scores, expected)


def test_another_process_gets_the_same_scores() -> None:
    code = (
        "import numpy as np\n"
        "from ruzhash_cv import RuzHashForest\n"
        "rows = np.random.default_rng(0).random((90, 30)) ** 4\n"
        "print(RuzHashForest(rng=9, n_trees=20).fit_anomaly_scores(rows).tobytes().hex())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows = np.random.default_rng(0).random((90, 30)) ** 4
    assert done.stdout.strip() == RuzHashForest(rng=9, n_trees=20).fit_anomaly_scores(rows).tobytes().hex()


def test_fitting_twice_grows_the_same_trees_and_rows_stay_as_they_were() -> None:
    rows = clusters()
    rows.flags.writeable = False
    forest = RuzHashForest()
    once = forest.fit_anomaly_scores(rows)
    np.testing.assert_array_equal(forest.fit_anomaly_scores(sparse.csr_array(rows)), once)
    np.testing.assert_array_equal(forest.fit_anomaly_scores(rows[:, ::-1][:, ::-1]), once)


# Edges and errors


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_few_rows_get_scores_too(n: int) -> None:
    for rows in (np.ones((n, 5)), np.zeros((n, 5))):
        scores, decoy_scores = RuzHashForest(n_trees=5).fit_anomaly_scores(rows, np.ones((2, 5)))
        assert (scores.shape, decoy_scores.shape) == ((n,), (2,))
        assert ((scores > 0) & (scores <= 1)).all()
        assert ((decoy_scores > 0) & (decoy_scores <= 1)).all()


def test_rows_without_models_are_all_anomalous() -> None:
    assert (RuzHashForest(n_trees=5).fit_anomaly_scores(np.zeros((50, 0))) == 1).all()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_trees": 0}, ValueError, "`n_trees` must be at least 1, got 0"),
        ({"subsample_size": 0}, ValueError, "`subsample_size` must be at least 1, got 0"),
        ({"branching_factor": 1}, ValueError, "`branching_factor` must be at least 2, got 1"),
        ({"branching_factor": 2.0}, TypeError, r"`branching_factor` must be an integer, got 2\.0"),
        ({"n_jobs": 0}, ValueError, "`n_jobs` must be at least 1, got 0"),
        ({"rng": 1.5}, TypeError, r"`rng` must be .* got 1\.5"),
        ({"n_tree": 5}, TypeError, "n_tree"),
    ],
)
def test_bad_options_are_named(arguments: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        RuzHashForest(**arguments)


def test_scoring_needs_a_fitted_forest_and_rows_of_its_width() -> None:
    with pytest.raises(RuntimeError, match="call `fit` first"):
        RuzHashForest().anomaly_scores(np.ones((2, 3)))
    forest = RuzHashForest(n_trees=2).fit(np.ones((4, 3)))
    with pytest.raises(ValueError, match="`preferences` must have 3 columns as in `fit`, got 2"):
        forest.path_lengths(np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
        forest.fit(np.full((4, 3), 2.0))
