"""What holds for every public function whatever the points: invariances, bounds, types on success and failure alike."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import ruzhash_cv as rc
from ruzhash_cv.paper import VoronoiForest

few = settings(derandomize=True, max_examples=8, deadline=None)
many = settings(derandomize=True, max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)
#: Whole shifts and powers of two are exact for `scene`'s coordinates, which are whole sixteenths.
shifts = st.tuples(*[st.integers(-5000, 5000)] * 4)
powers = st.sampled_from([-3, -1, 2, 5])
families = st.sampled_from(["auto", "homography", "fundamental"])
forests = [rc.RuzHashForest, VoronoiForest]
estimators = [rc.find_homography, rc.find_fundamental_matrix]


def scene(seed: int) -> np.ndarray[Any, Any]:
    """Correspondences (n, 4): two planes seen from two places and a third of mismatches, or too few for anything."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([5, 40, 90, 120], p=[0.1, 0.1, 0.4, 0.4]))
    X = np.column_stack([rng.uniform(-1, 1, (n, 2)), np.where(np.arange(n) % 2, 4.0, 6.0)])
    Y = X @ cv2.Rodrigues(rng.normal(0, 0.05, 3))[0].T + rng.uniform(0.1, 0.3, 3)
    pairs = 800 + 600 * np.hstack([X[:, :2] / X[:, 2:], Y[:, :2] / Y[:, 2:]]) + rng.normal(0, 0.4, (n, 4))
    wrong = rng.random(n) < 0.33
    pairs[wrong, 2:] = rng.uniform(600, 1000, (int(wrong.sum()), 2))
    return np.round(pairs * 16) / 16


def preferences(seed: int, n: int, m: int = 7) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    return np.round(rng.random((n, m)) * (rng.random((n, m)) < 0.5), 2)


def filtered(pairs: np.ndarray[Any, Any], **options: Any) -> rc.FilterResult:
    return rc.filter_points(pairs[:, :2], pairs[:, 2:], **options)


def bits_of(result: rc.FilterResult, order: Any = slice(None)) -> list[bytes]:
    arrays = (result.inlier_mask, result.anomaly_scores, result.inlier_probabilities, result.labels)
    return [array[order].tobytes() for array in arrays]


# The pipeline


@few
@given(seeds, shifts, families)
def test_translating_pixels_changes_no_bit(seed: int, shift: tuple[int, ...], model: str) -> None:
    pairs = scene(seed)
    assert bits_of(filtered(pairs, model=model)) == bits_of(filtered(pairs + np.array(shift), model=model))


@few
@given(seeds, powers, families, st.sampled_from([None, 3.0]))
def test_scaling_points_pixel_and_threshold_together_changes_no_bit(
    seed: int, power: int, model: str, threshold: float | None
) -> None:
    pairs, scale = scene(seed), 2.0**power
    there = filtered(pairs, model=model, threshold=threshold)
    scaled = None if threshold is None else threshold * scale
    assert bits_of(there) == bits_of(filtered(scale * pairs, model=model, threshold=scaled, pixel=scale))


@few
@given(seeds, families)
def test_a_rigid_motion_of_the_pixels_changes_few_bits_of(seed: int, model: str) -> None:
    """A quarter turn of both images, and a mirror image: sums round otherwise, samples of other rows are drawn."""
    pairs = scene(seed)
    there = filtered(pairs, model=model)
    turned = np.column_stack([-pairs[:, 1], pairs[:, 0], -pairs[:, 3], pairs[:, 2]])
    for moved in (turned, pairs * [-1, 1, -1, 1]):
        back = filtered(moved, model=model)
        assert (there.inlier_mask == back.inlier_mask).mean() > 0.85
        assert bool(there.models) == bool(back.models)


@few
@given(seeds, families, st.integers(1, 30))
def test_rows_that_are_not_finite_are_flagged_and_change_nothing(seed: int, model: str, n_bad: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = scene(seed)
    bad = rng.uniform(0, 800, (n_bad, 4))
    bad[np.arange(n_bad), rng.integers(4, size=n_bad)] = rng.choice([np.nan, np.inf, -np.inf, 1e300], n_bad)
    order = rng.permutation(len(pairs) + n_bad)
    result = filtered(np.vstack([pairs, bad])[order], model=model)
    back = np.argsort(order)
    assert bits_of(result, back[: len(pairs)]) == bits_of(filtered(pairs, model=model))
    assert not result.inlier_mask[back[len(pairs) :]].any()
    assert (result.labels[back[len(pairs) :]] == -1).all()


@few
@given(seeds, families)
def test_the_order_of_matches_changes_no_bit(seed: int, model: str) -> None:
    pairs = scene(seed) * np.pi  # sums depend on their order
    order = np.random.default_rng(seed).permutation(len(pairs))
    assert bits_of(filtered(pairs, model=model), order) == bits_of(filtered(pairs[order], model=model))


@few
@given(seeds, families)
def test_repeated_matches_share_what_they_would_have_alone(seed: int, model: str) -> None:
    pairs = scene(seed) * np.pi
    rows = np.random.default_rng(seed).integers(len(pairs), size=3 * len(pairs))
    once, again = filtered(pairs, model=model), filtered(np.vstack([pairs, pairs[rows]]), model=model)
    assert bits_of(again, slice(len(pairs))) == bits_of(once)
    assert bits_of(again, slice(len(pairs), None)) == bits_of(once, rows)


@few
@given(seeds, families)
def test_swapping_the_images_changes_few_bits_of(seed: int, model: str) -> None:
    pairs = scene(seed)
    there, back = filtered(pairs, model=model), filtered(pairs[:, [2, 3, 0, 1]], model=model)
    assert (there.inlier_mask == back.inlier_mask).mean() > 0.85
    assert bool(there.models) == bool(back.models)


@few
@given(seeds, st.sampled_from([None, 1.0, 8.0]), st.sampled_from([None, 0.05]), families)
def test_a_result_is_well_formed_on_success_and_failure(
    seed: int, threshold: float | None, rate: float | None, model: str
) -> None:
    pairs = scene(seed)
    pairs[np.random.default_rng(seed).random(pairs.shape) < 0.02] = np.nan
    result = filtered(pairs, model=model, threshold=threshold, false_discovery_rate=rate)
    n, usable = len(pairs), np.isfinite(pairs).all(axis=1)
    arrays = (result.inlier_mask, result.anomaly_scores, result.inlier_probabilities, result.labels)
    assert [(array.shape, array.dtype) for array in arrays] == [((n,), kind) for kind in (bool, float, float, np.int64)]
    assert not result.inlier_mask[~usable].any()
    assert ((result.anomaly_scores > 0) & (result.anomaly_scores <= 1)).all()
    assert ((result.inlier_probabilities >= 0) & (result.inlier_probabilities <= 1)).all()
    assert (result.reason is None) == bool(result.models)
    assert [model.support for model in result.models] == np.bincount(
        result.labels + 1, minlength=len(result.models) + 1
    )[1:].tolist()
    if rate is None:
        assert (result.inlier_mask == (result.inlier_probabilities > 0.5)).all()


@few
@given(seeds)
def test_filter_matches_is_filter_points_of_the_matched_points(seed: int) -> None:
    pairs = scene(seed)
    n = len(pairs)
    order = np.random.default_rng(seed).permutation(n)
    matches = [cv2.DMatch(int(i), int(i), 0.1) for i in order]
    mask = rc.filter_matches(pairs[:, :2], pairs[:, 2:], matches)
    assert mask.tobytes() == filtered(pairs).inlier_mask[order].tobytes()
    kept = rc.select_matches(matches, mask)
    assert [match.queryIdx for match in kept] == order[mask].tolist()
    corresponding = rc.as_correspondences(pairs[:, :2], pairs[:, 2:], matches)
    assert (np.hstack([corresponding.points1, corresponding.points2]) == pairs[order]).all()


# Samples, models, residuals


@many
@given(seeds)
def test_residuals_are_those_of_the_swapped_images_and_the_turned_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.uniform(0, 500, (2, 20, 2))
    F = rng.normal(0, 1, (3, 3))
    H = np.eye(3) + rng.normal(0, 1e-4, (3, 3))
    there, back = rc.sampson_distance(first, second, F), rc.sampson_distance(second, first, F.T)
    np.testing.assert_allclose(there, back, rtol=1e-9)
    there, back = rc.transfer_error(first, second, H), rc.transfer_error(second, first, np.linalg.inv(H))
    np.testing.assert_allclose(there, back, rtol=1e-6)
    assert (rc.sampson_distance(first, second, 8 * F) == rc.sampson_distance(first, second, F)).all()


# Preference space


@many
@given(seeds, st.integers(1, 4))
def test_hashes_are_components_of_their_rows_and_alike_for_like_rows(seed: int, n_hashes: int) -> None:
    rows = preferences(seed, 12)
    rows[6:] = rows[:6]
    hashes = rc.ruzhash(rows, n_hashes=n_hashes, rng=seed)
    assert (hashes.shape, hashes.dtype) == ((12, n_hashes), np.int64)
    assert (hashes[:6] == hashes[6:]).all()
    found = hashes >= 0
    assert (rows[np.nonzero(found)[0], hashes[found]] > 0).all()
    assert (hashes[~rows.any(axis=1)] == -1).all()


@few
@given(seeds, st.sampled_from(forests), st.sampled_from([0, 1, 2, 30]), st.integers(2, 20))
def test_forests_score_any_number_of_rows_within_bounds(seed: int, forest: Any, n: int, branching_factor: int) -> None:
    rows, decoys = preferences(seed, n), preferences(seed + 1, 9)
    results = []
    for n_jobs in (1, 3):
        grown = forest(n_trees=20, branching_factor=branching_factor, rng=seed, n_jobs=n_jobs)
        results.append([*grown.fit_anomaly_scores(rows, decoys), grown.path_lengths(decoys)])
    assert [array.tobytes() for array in results[0]] == [array.tobytes() for array in results[1]]
    scores, others, lengths = results[0]
    assert [array.shape for array in results[0]] == [(n,), (9,), (9,)]
    assert ((np.concatenate([scores, others]) > 0) & (np.concatenate([scores, others]) <= 1)).all()
    assert (lengths >= 0).all()
