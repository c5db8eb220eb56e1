"""Every kernel against a readable NumPy twin, and the parts against what theory says of them."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import ruzhash_cv
from ruzhash_cv import (
    RuzHashForest,
    draw_samples,
    embed_preferences,
    jaccard_distance,
    p_values,
    ruzhash,
    ruzicka_distance,
    sampson_distance,
    solve_models,
    tanimoto_distance,
    transfer_error,
)
from ruzhash_cv.calibration import mismatch_rate
from ruzhash_cv.decoys import draw_decoys
from ruzhash_cv.forest import depth_limit, expected_depths
from ruzhash_cv.preferences import compress
from ruzhash_cv.refinement import fit_fundamental, fit_homography, smallest_eigenvector
from ruzhash_cv.sampling import find_places
from ruzhash_cv.structures import evidence


def rows_of(rng, n, m, filled):
    return rng.random((n, m)) * (rng.random((n, m)) < filled)


def homogeneous(points):
    return np.hstack([points, np.ones((len(points), 1))])


def transfer_twin(first, second, H):
    def one_way(a, b, M):
        mapped = homogeneous(a) @ M.T
        return np.linalg.norm(mapped[:, :2] / mapped[:, 2:] - b, axis=1)

    return np.maximum(one_way(first, second, H), one_way(second, first, np.linalg.inv(H)))


def sampson_twin(first, second, F):
    lines2, lines1 = homogeneous(first) @ F.T, homogeneous(second) @ F
    numerator = np.abs((homogeneous(second) * lines2).sum(axis=1))
    return numerator / np.sqrt((lines2[:, :2] ** 2).sum(axis=1) + (lines1[:, :2] ** 2).sum(axis=1))


# Residuals and models.


@pytest.mark.parametrize("seed", range(5))
def test_residuals_equal_their_numpy_twins(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(0, 600, (40, 2)), rng.uniform(0, 600, (40, 2))
    H = np.eye(3) + rng.normal(0, [[0.1], [0.1], [1e-4]], (3, 3))
    np.testing.assert_allclose(transfer_error(first, second, H), transfer_twin(first, second, H), rtol=1e-8)
    F = rng.normal(size=(3, 3))
    np.testing.assert_allclose(sampson_distance(first, second, F), sampson_twin(first, second, F), rtol=1e-8)


def test_a_homography_without_inverse_agrees_with_nothing_backwards():
    assert np.isinf(transfer_error([[1.0, 2.0]], [[3.0, 4.0]], np.zeros((3, 3))))[0]


def test_sampson_distance_does_not_change_when_the_images_are_swapped():
    rng = np.random.default_rng(0)
    first, second, F = rng.uniform(0, 600, (40, 2)), rng.uniform(0, 600, (40, 2)), rng.normal(size=(3, 3))
    np.testing.assert_allclose(sampson_distance(first, second, F), sampson_distance(second, first, F.T), rtol=1e-10)


@pytest.mark.parametrize(("kind", "size"), [("homography", 4), ("fundamental", 7)])
def test_minimal_models_fit_their_own_samples(kind, size):
    rng = np.random.default_rng(1)
    first = rng.uniform(0, 800, (60, 2))
    second = first * 0.9 + rng.normal(0, 20, (60, 2))
    samples = draw_samples(first, second, sample_size=size, n_samples=50, neighbourhoods=None, rng=0)
    models = solve_models(first, second, samples.indices, kind=kind)
    residual = transfer_error if kind == "homography" else sampson_distance
    distances = residual(first, second, models.matrices)
    own = samples.indices[models.sample_index]
    assert np.median(distances[own, np.arange(len(own))[:, None]]) < 0.01
    assert len(models) >= 40


def test_least_squares_fits_equal_a_singular_value_decomposition():
    rng = np.random.default_rng(2)
    matrix = rng.normal(size=(30, 9))
    vector = smallest_eigenvector(matrix.T @ matrix)
    expected = np.linalg.svd(matrix)[2][-1]
    assert abs(vector @ expected) > 1 - 1e-6


def test_refits_recover_exact_models():
    rng = np.random.default_rng(3)
    first = rng.uniform(0, 1, (30, 2))
    H = np.array([[1.1, 0.02, 0.1], [-0.05, 0.9, 0.2], [0.05, -0.1, 1.0]])
    second = cv2.perspectiveTransform(first[:, None], H)[:, 0]
    fitted = fit_homography(np.hstack([first, second]), np.ones(30)).reshape(3, 3)
    assert transfer_error(first, second, fitted).max() < 1e-5
    points = np.hstack([first, rng.uniform(2, 4, (30, 1))])
    moved = points @ cv2.Rodrigues(np.array([0.05, -0.1, 0.02]))[0].T + [0.5, 0.1, 0.05]
    one, two = points[:, :2] / points[:, 2:], moved[:, :2] / moved[:, 2:]
    F = fit_fundamental(np.hstack([one, two]), np.ones(30)).reshape(3, 3)
    assert sampson_distance(one, two, F).max() < 1e-5
    assert abs(np.linalg.det(F)) < 1e-9


# Samples.


def test_samples_have_distinct_rows_and_their_minimum_spread():
    rng = np.random.default_rng(4)
    first = rng.uniform(0, 300, (200, 2))
    second = first + rng.normal(0, 1, (200, 2))
    samples = draw_samples(first, second, sample_size=4, n_samples=300, min_spread=5.0, rng=1).indices
    assert all(len(set(sample)) == 4 for sample in samples.tolist())
    gaps = np.abs(first[samples][:, :, None] - first[samples][:, None]).max(axis=-1)
    assert gaps[:, ~np.eye(4, dtype=bool)].min() >= 5.0


def test_degenerate_samples_are_rejected_and_counted():
    line = np.stack([np.linspace(0, 500, 50), np.linspace(0, 250, 50)], axis=1)
    on_a_line = draw_samples(line, line, sample_size=4, n_samples=20)
    assert len(on_a_line) == 0
    assert on_a_line.rejected["collinear"] > 0
    same = draw_samples(np.ones((50, 2)), np.ones((50, 2)), sample_size=4, n_samples=20)
    assert len(same) == 0
    assert same.rejected["repeated"] > 0
    rng = np.random.default_rng(0)
    assert draw_samples(rng.uniform(0, 99, (50, 2)), rng.uniform(0, 99, (50, 2)), sample_size=4, n_samples=50).rejected[
        "flipped"
    ]


def test_samples_from_neighbourhoods_are_more_local_than_uniform_ones():
    points = np.random.default_rng(5).uniform(0, 500, (400, 2))
    near, anywhere = (
        draw_samples(points, points, sample_size=4, n_samples=200, neighbourhoods=sizes) for sizes in ((10,), None)
    )
    extent = [np.ptp(points[found.indices], axis=1).mean() for found in (near, anywhere)]
    assert extent[0] < 0.4 * extent[1]


def test_weights_decide_how_often_a_correspondence_is_drawn():
    points = np.random.default_rng(6).uniform(0, 500, (100, 2))
    weights = np.where(np.arange(100) < 50, 1.0, 0.0)
    drawn = draw_samples(points, points, sample_size=4, n_samples=100, neighbourhoods=(30, 0), weights=weights).indices
    assert drawn.max() < 50


def test_matches_within_the_radius_in_both_images_share_a_place():
    pairs = np.array([[0, 0, 0, 0], [2, 2, 2, 2], [2, 2, 90, 2], [50, 50, 50, 50], [0, 0, 0, 0]], dtype=float)
    places = find_places(pairs, 3.0)
    assert places[0] == places[1] == places[4]
    assert len({places[0], places[2], places[3]}) == 3


# Preferences and distances.


@pytest.mark.parametrize("binary", [False, True])
def test_preferences_equal_the_formula(binary):
    rng = np.random.default_rng(7)
    residuals = rng.normal(0, 4, (30, 12))
    residuals[0, 0], residuals[1, 1] = np.nan, np.inf
    exclude = rng.integers(0, 30, (12, 4))
    found = embed_preferences(residuals, sigma=1.5, k=2.0, binary=binary, exclude=exclude).toarray()
    with np.errstate(invalid="ignore"):
        inside = np.abs(residuals) <= 3.0
        expected = np.where(inside, 1.0 if binary else np.exp(-(residuals**2) / (2 * 1.5**2)), 0.0)
    for column in range(12):
        expected[exclude[column], column] = 0.0
    np.testing.assert_allclose(found, np.nan_to_num(expected), atol=1e-6)


def test_marginal_preferences_are_the_mean_over_three_noise_scales():
    residuals = np.abs(np.random.default_rng(8).normal(0, 6, (300, 5)))
    found = compress(
        lambda start, stop: residuals[start:stop],
        (300, 5),
        np.full(5, 27.0),
        np.full(5, 0.5 / 81),
        np.ones(5),
        marginal=True,
    )
    expected = np.mean([np.exp(-(residuals**2) / (2 * sigma**2)) for sigma in (1, 3, 9)], axis=0)
    np.testing.assert_allclose(found.toarray(), np.where(residuals <= 27, expected, 0), atol=1e-6)


def test_places_that_made_a_model_have_no_preference_for_it():
    residuals, places = np.zeros((6, 2)), np.array([0, 1, 2, 0, 4, 5])
    makers = np.array([[0, 4], [2, -1]])
    options = {"places": places, "makers": makers}
    found = compress(lambda a, b: residuals[a:b], (6, 2), np.ones(2), np.ones(2), np.ones(2), **options).toarray()
    assert (found[:, 0] == [0, 1, 1, 0, 0, 1]).all()
    assert (found[:, 1] == [1, 1, 0, 1, 1, 1]).all()


def test_distances_equal_their_numpy_twins():
    rng = np.random.default_rng(9)
    p, q = rows_of(rng, 15, 20, 0.4), rows_of(rng, 12, 20, 0.4)
    p[0], q[0] = 0, 0
    low, high = np.minimum(p[:, None], q).sum(-1), np.maximum(p[:, None], q).sum(-1)
    np.testing.assert_allclose(ruzicka_distance(p, q), 1 - low / np.where(high > 0, high, 1), atol=1e-6)
    dot = p @ q.T
    norms = (p**2).sum(1)[:, None] + (q**2).sum(1) - dot
    np.testing.assert_allclose(tanimoto_distance(p, q), 1 - dot / np.where(norms > 0, norms, 1), atol=1e-6)
    np.testing.assert_allclose(jaccard_distance(p, q), ruzicka_distance(p > 0, q > 0), atol=1e-6)
    assert (ruzicka_distance(sparse.csr_array(p), q) == ruzicka_distance(p, q)).all()


@pytest.mark.parametrize(
    ("bad", "message"), [(np.zeros(3), r"shape \(n, m\)"), (np.full((2, 2), 1.5), r"lie in \[0, 1\]")]
)
def test_bad_preferences_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        ruzicka_distance(bad)


# RuzHash.


def collision_probability(p, q):
    """sum_i min(p_i, q_i) E[1 / (1 + |U without i|)]; |U without i| is a sum of independent coins max(p_k, q_k)."""
    low, high = np.minimum(p, q), np.maximum(p, q)
    total = 0.0
    for i in np.flatnonzero(low):
        sizes = np.array([1.0])
        for k in range(len(p)):
            if k != i:
                sizes = np.convolve(sizes, [1 - high[k], high[k]])
        total += low[i] * (sizes / (1 + np.arange(len(sizes)))).sum()
    return total


@pytest.mark.parametrize("seed", range(4))
def test_collision_frequency_is_its_exact_value(seed):
    rng = np.random.default_rng(seed)
    base = rows_of(rng, 1, 12, 0.8)[0]
    p, q = base, np.clip(base + rng.normal(0, 0.2, 12), 0, 1)
    n = 40_000
    hashes = ruzhash(np.stack([p, q]), n_hashes=n, rng=seed)
    exact = collision_probability(np.float32(p), np.float32(q))
    frequency = ((hashes[0] == hashes[1]) & (hashes[0] >= 0)).mean()
    # Four standard errors of a binomial share: a false alarm once in 16,000.
    assert abs(frequency - exact) < 4 * np.sqrt(exact * (1 - exact) / n)


def test_collisions_tell_ruzicka_similarity_on_long_rows():
    rng = np.random.default_rng(1)
    centres = rows_of(rng, 3, 120, 0.3)
    rows = np.clip(
        centres[rng.integers(0, 3, 24)] + rng.normal(0, 0.15, (24, 120)) * (rng.random((24, 120)) < 0.3), 0, 1
    )
    hashes = ruzhash(rows, n_hashes=4000, rng=2)
    collisions = (hashes[:, None] == hashes[None]).mean(axis=-1)
    above = np.triu_indices(24, 1)
    assert np.corrcoef(collisions[above], 1 - ruzicka_distance(rows)[above])[0, 1] > 0.99


def test_on_binary_rows_collisions_are_jaccard_similarity():
    rows = (np.random.default_rng(2).random((2, 40)) < 0.5).astype(float)
    hashes = ruzhash(rows, n_hashes=40_000, rng=3)
    similarity = 1 - jaccard_distance(rows)[0, 1]
    frequency = (hashes[0] == hashes[1]).mean()
    assert abs(frequency - similarity) < 4 * np.sqrt(similarity * (1 - similarity) / 40_000)


def mix_twin(key, counter):
    mask = (1 << 64) - 1
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_the_hash_equals_a_plain_python_twin():
    rng = np.random.default_rng(4)
    rows = np.float32(rows_of(rng, 30, 25, 0.4))
    found = ruzhash(rows, rng=11)[:, 0]
    key = int(np.random.default_rng(11).integers(0, 1 << 64, dtype=np.uint64))
    for row, component in zip(rows, found, strict=True):
        bits = {i: mix_twin(key, i) for i in np.flatnonzero(row).tolist()}
        passing = [i for i, b in bits.items() if (b >> 32) / 2**32 < row[i]]
        expected = min(passing, key=lambda i: (bits[i] & 0xFFFFFFFF, i)) if passing else -1
        assert component == expected


# The forest.


def test_depth_limits_are_counted_in_integers():
    assert depth_limit(125, 5) == 3
    assert depth_limit(126, 5) == 4
    assert depth_limit(256, 2) == 8
    assert depth_limit(1, 2) == 0


def test_expected_depths_follow_the_paper():
    two, many = expected_depths(256, 2), expected_depths(256, 16)
    assert (two[:3] == [0, 0, 1]).all()
    assert two[256] == pytest.approx(2 * (np.log(255) + 0.5772156649) - 2 * 255 / 256)
    assert (many[[1, 2, 16]] == [0, 1, 1]).all()
    assert many[256] == pytest.approx(2.0)


def test_rows_that_agree_with_nothing_are_the_most_anomalous():
    rows = np.vstack([np.tile([1.0, 1, 0, 0], (30, 1)), np.tile([0.0, 0, 1, 1], (30, 1)), np.zeros((40, 4))])
    scores = RuzHashForest(rng=0, branching_factor=2).fit_anomaly_scores(rows)
    assert scores[60:].min() > scores[:60].max()
    assert (scores[60:] == 1.0).all()  # depth 0: they fall into the root's sink


def test_the_papers_sink_credit_makes_crowded_sinks_look_dense():
    rows = np.vstack([np.tile([1.0, 1, 0, 0], (30, 1)), np.zeros((70, 4))])
    plain, credited = (RuzHashForest(rng=0, sink_credit=credit).fit_anomaly_scores(rows) for credit in (False, True))
    assert (credited[30:] < plain[30:]).all()


def test_a_training_row_does_not_count_itself():
    # Rows and decoys from one distribution: ranks of the two must mix, so that their scores can be compared.
    rng = np.random.default_rng(5)
    shares = []
    for seed in range(20):
        everything = rows_of(rng, 200, 15, 0.15)
        scores, decoys = RuzHashForest(rng=seed, n_trees=50).fit_anomaly_scores(everything[:100], everything[100:])
        shares.append((scores[:, None] < decoys).mean() + 0.5 * (scores[:, None] == decoys).mean())
    # The standard error of the mean of 20 shares of 100 against 100 is about 0.04 / sqrt(20).
    assert abs(np.mean(shares) - 0.5) < 0.04


def test_forest_arguments_are_checked():
    with pytest.raises(ValueError, match="`branching_factor` must be at least 2, got 1"):
        RuzHashForest(branching_factor=1)
    with pytest.raises(RuntimeError, match="call `fit` first"):
        RuzHashForest().path_lengths(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="must have 3 columns as in `fit`, got 2"):
        RuzHashForest().fit(np.zeros((5, 3))).anomaly_scores(np.zeros((5, 2)))


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(2, 20), st.integers(0, 99))
def test_scores_are_in_the_unit_interval_and_path_lengths_below_the_limit(n, m, b, seed):
    rows = rows_of(np.random.default_rng(seed), n, m, 0.5)
    forest = RuzHashForest(n_trees=10, branching_factor=b, rng=seed).fit(rows)
    scores, lengths = forest.anomaly_scores(rows), forest.path_lengths(rows)
    assert ((scores > 0) & (scores <= 1)).all()
    assert (lengths >= 0).all()


# Decoys, calibration, evidence.


def test_decoys_pair_points_of_different_places():
    points = np.random.default_rng(6).uniform(0, 500, (80, 2))
    pairs = np.hstack([points, points + 7.0])
    decoys = draw_decoys(pairs, 500, 10.0, np.random.default_rng(0))
    assert len(decoys) == 500
    assert np.abs(decoys[:, 2:] - 7.0 - decoys[:, :2]).max(axis=1).min() >= 10.0
    assert len(draw_decoys(np.ones((50, 4)), 100, 10.0, np.random.default_rng(0))) == 0


def test_p_values_count_decoys_that_look_at_least_as_good():
    decoys, scores = np.array([0.3, 0.5, 0.5, 0.9]), np.array([0.1, 0.3, 0.5, 1.0])
    expected = [(1 + (decoys <= score).sum()) / 5 for score in scores]
    np.testing.assert_allclose(p_values(scores, decoys), expected)


def test_the_mismatch_rate_of_uniform_p_values_is_one():
    p = (1 + np.arange(1000)) / 1001
    assert mismatch_rate(p) == pytest.approx(1.0, abs=0.01)
    assert mismatch_rate(np.concatenate([p, np.zeros(3000)])) == pytest.approx(0.25, abs=0.01)


def test_evidence_is_the_binomial_log_likelihood_ratio():
    c, n, alpha = 30.0, 100.0, 0.05
    expected = c * np.log(c / n / alpha) + (n - c) * np.log((1 - c / n) / (1 - alpha))
    assert evidence(c, n, alpha) == pytest.approx(expected)
    assert evidence(4.0, 100.0, 0.05) == 0.0


# Documentation.

MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(ruzhash_cv.__path__, "ruzhash_cv.")
    if not found.name.endswith("__main__")
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_in_docstrings_run(module):
    assert doctest.testmod(module, extraglobs={"np": np}).failed == 0


PUBLIC = [getattr(ruzhash_cv, name) for name in dir(ruzhash_cv) if not name.startswith("_")]


@pytest.mark.parametrize("thing", [item for item in PUBLIC if callable(item)], ids=lambda item: item.__name__)
def test_docstrings_name_every_argument(thing):
    if inspect.isclass(thing) and hasattr(thing, "__dataclass_fields__"):
        names = list(thing.__dataclass_fields__)
    else:
        names = list(inspect.signature(thing).parameters)
    documentation = inspect.getdoc(thing)
    assert documentation
    if len(names) > 1 and "see `ruzicka_distance`" not in documentation and len(documentation.splitlines()) > 6:
        missing = [name for name in names if name not in documentation]
        assert not missing
