"""Minimal samples: what is drawn, what is rejected and counted; neighbourhoods."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from stage_cases import matches_of, mismatches

from ruzhash_cv.core.method import sampling
from ruzhash_cv.core.method.parameters import PARAMETERS


def scattered(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 600, (n, 2))


def drawn_from(
    points1: np.ndarray, points2: np.ndarray, sample_size: int = 4, n_samples: int = 20, *,
    around: Sequence[int] = (10, 30, 0), weights: np.ndarray | None = None, min_spread: float = 3.0,
    n_candidates: int = 1, affine: bool | None = None, rng: int = 0,
) -> tuple[np.ndarray, dict[str, int]]:  # fmt: skip
    """Draw samples by equal weights and from several neighbourhoods if nothing else is given."""
    pairs, affine = np.hstack([points1, points2]), sample_size == 4 if affine is None else affine
    family = SimpleNamespace(sample_size=sample_size, is_plane=affine)
    # Triangles of less than half the spread are collinear.
    parameters = replace(PARAMETERS, n_candidates=n_candidates, n_scales=2, widest_scale=1.5)
    shares, generator = np.ones(len(pairs)) if weights is None else weights, np.random.default_rng(rng)
    given = pairs, shares, n_samples, family, min_spread, parameters, generator, tuple(around)
    indices, rejected = sampling.draw_samples(*given)
    return indices, dict(zip(sampling.REJECTIONS, rejected.tolist(), strict=False))


def nearest_of(pairs: np.ndarray, rows: np.ndarray, seed: int, k: int) -> set[int]:
    """Return the k of some rows that are nearest to one of them, without it."""
    return set(rows[np.argsort(np.linalg.norm(pairs[rows] - pairs[seed], axis=1))[1 : k + 1]].tolist())


# Samples


@pytest.mark.parametrize("sample_size", [4, 7])
@pytest.mark.parametrize("around", [(0,), (10,), (10, 30, 0)])
def test_samples_are_different_rows_that_are_apart_in_both_images(sample_size: int, around: tuple[int, ...]) -> None:
    points = scattered(200), scattered(200) + 5
    indices, _ = drawn_from(*points, sample_size, 300, around=around, min_spread=4.0)
    assert indices.shape == (len(indices), sample_size)
    assert len(indices) > 290
    for image in points:
        sample = image[indices]
        gaps = np.abs(sample[:, :, None] - sample[:, None]).max(axis=3)
        assert (gaps + 1e9 * np.eye(sample_size) >= 4.0).all()


def test_neighbourhood_samples_are_a_seed_and_some_of_its_nearest() -> None:
    """Every second match has no weight: it makes room for the others."""
    pairs = np.hstack([scattered(400), scattered(400) + 5])
    for weights in (np.ones(400), np.arange(400) % 2.0):
        indices, _ = drawn_from(pairs[:, :2], pairs[:, 2:], 4, 200, around=(8,), weights=weights)
        assert len(indices) > 150
        rows = np.flatnonzero(weights)
        assert all(set(others) <= nearest_of(pairs, rows, seed, 8) for seed, *others in indices.tolist())


def test_uniform_samples_take_every_row_equally_often_and_weights_change_that() -> None:
    points, weights = scattered(40), np.repeat([0.0, 1.0], 20)
    indices, _ = drawn_from(points, points, 2, 20000, around=(0,), min_spread=0.0, affine=False)
    assert np.abs(np.bincount(indices.ravel(), minlength=40) - 1000).max() < 5 * np.sqrt(1000)
    indices, _ = drawn_from(points, points, 4, 500, weights=weights)
    assert len(indices) > 400
    assert indices.min() >= 20


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_of_many_candidates_the_most_nearly_affine_sample_is_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 500, (6, 2))
    points2 = points1 + rng.normal(0, 5, (6, 2))
    indices, rejected = drawn_from(points1, points2, 4, 1, around=(0,), min_spread=0.0, n_candidates=1000)
    assume(sum(rejected.values()) == 0)
    # Then all 15 sets of four were among the draws.
    pairs = np.hstack([points1, points2])
    least = min(naive.affine_deviation(pairs[list(rows)]) for rows in itertools.combinations(range(6), 4))
    assert naive.affine_deviation(pairs[indices[0]]) == pytest.approx(least)


def test_samples_further_from_affine_than_any_number_are_samples() -> None:
    points1 = scattered(40)
    indices, _ = drawn_from(points1, points1 * [1e-150, 1e-160], 4, 50, n_candidates=3, min_spread=0.0)
    assert ((indices >= 0) & (indices < 40)).all()
    assert all(len(set(rows)) == 4 for rows in indices.tolist())


# Degenerate samples


@settings(max_examples=400, deadline=None)
@given(arrays(np.float64, (4, 4), elements=st.integers(0, 6)), st.sampled_from([None, slice(2), slice(2, 4)]))
def test_four_matches_are_a_sample_where_their_twin_says_so(sample: np.ndarray, alike: slice | None) -> None:
    """Coordinates on a grid: repeated, collinear and flipped ones are frequent. No distance on it equals the spread, or half.

    Where one image is like the other, only larger, nothing is flipped, and the smaller one decides.
    """
    if alike is not None:
        sample[:, alike] = 9.0 * (sample[:, 2:] if alike == slice(2) else sample[:, :2])
    indices, rejected = drawn_from(sample[:, :2], sample[:, 2:], 4, 3, around=(0,), min_spread=1.53)
    if naive.has_repeated_points(sample, 1.53):
        assert reasons(indices, rejected) == {"repeated"}
    elif not naive.is_collinear(sample, 1.53):
        assert (len(indices) > 0) == (not naive.is_flipped(sample))
        assert "collinear" not in reasons(indices, rejected)
    else:
        assert len(indices) == 0
        assert reasons(indices, rejected) & {"collinear", "flipped"}


@settings(max_examples=150, deadline=None)
@given(sample=arrays(np.float64, (7, 4), elements=st.integers(0, 12)), line=st.booleans())
def test_seven_matches_are_a_sample_where_their_twin_says_so(sample: np.ndarray, line: bool) -> None:
    if line:  # nearly, and far from repeated
        sample[:, 2] = np.arange(7) * 4.0
        sample[:, 3] = np.round(0.5 * sample[:, 2]) + sample[:, 3] // 6
    indices, rejected = drawn_from(sample[:, :2], sample[:, 2:], 7, 3, around=(0,), min_spread=1.53)
    if naive.has_repeated_points(sample, 1.53):
        assert reasons(indices, rejected) == {"repeated"}
    else:
        assert (len(indices) > 0) == (not naive.is_collinear(sample, 1.53))
        assert "flipped" not in reasons(indices, rejected)


@pytest.mark.parametrize(("height", "accepted"), [(0.49, False), (0.51, True)])
@pytest.mark.parametrize("image", [0, 1])
def test_points_nearer_to_a_line_than_half_the_spread_are_collinear(height: float, accepted: bool, image: int) -> None:
    """A triangle's height in one image; of seven points the root mean square distance from their line."""
    four = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 8.0 * height], [50.0, 80.0]])
    uneven = np.array([1.0, -1.0, 1.0, -2.0, 1.0, -1.0, 1.0])  # of mean 0, as often left as right
    seven = np.column_stack([20.0 * np.arange(7.0), 8.0 * height * uneven / uneven.std()])
    for near in (four, seven):
        points = (near, 9.0 * near) if image == 0 else (9.0 * near, near)
        indices, rejected = drawn_from(*points, len(near), 5, around=(0,), min_spread=8.0)
        assert (len(indices) > 0) == accepted
        assert accepted or reasons(indices, rejected) == {"collinear"}


def reasons(indices: np.ndarray, rejected: dict[str, int]) -> set[str]:
    """Return why draws were rejected; all rows are rarely not drawn in time, which counts as repeated."""
    found = {reason for reason, count in rejected.items() if count}
    return found if len(found) < 2 and not len(indices) else found - {"repeated"}


@pytest.mark.parametrize("n", [0, 1, 3, 4, 6, 7])
@pytest.mark.parametrize("sample_size", [4, 7])
def test_too_few_correspondences_give_no_samples(n: int, sample_size: int) -> None:
    indices, _ = drawn_from(scattered(n), scattered(n), sample_size, 5)
    assert indices.shape[1] == sample_size
    assert n >= sample_size or len(indices) == 0


def test_the_same_seed_draws_the_same_samples_and_points_stay_as_they_were() -> None:
    points = scattered(100)
    points.flags.writeable = False
    first, again, other = (drawn_from(points, points, rng=seed)[0] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (other != first).any()


# Neighbourhoods


@pytest.mark.parametrize("n", [20, 300, 4000])
def test_neighbours_are_the_nearest_by_all_distances_or_by_a_tree(n: int) -> None:
    pairs = np.random.default_rng(n).uniform(-1, 1, (n, 4))
    rows = np.arange(0, n, 7)
    squares = ((pairs[rows, None] - pairs) ** 2).sum(axis=2)
    np.testing.assert_array_equal(sampling.nearest_rows(pairs, rows, 15), np.argsort(squares, axis=1)[:, :15])
    assert sampling.nearest_rows(pairs, rows, n + 1).shape == (len(rows), n)


@pytest.mark.parametrize("seed", range(5))
def test_neighbours_of_crowds_and_of_what_lies_alone_are_nearest_the_row_itself_first_and_those_after_it(
    seed: int,
) -> None:
    """Many are equally near: on a grid, whose points are dense in one place, then far apart, and once very far away."""
    rng = np.random.default_rng(seed)
    pairs = np.round(rng.normal(size=(200, 4)) * rng.choice([1.0, 8.0, 200.0], (200, 1)))
    pairs[50] = 1e9
    rows = rng.integers(200, size=40)
    squares = ((pairs[rows, None] - pairs) ** 2).sum(axis=2)
    turns = np.where(np.arange(200) >= rows[:, None], np.arange(200), 1000 - np.arange(200))
    expected = [np.lexsort((turn, square))[:15] for turn, square in zip(turns, squares, strict=True)]
    np.testing.assert_array_equal(sampling.nearest_rows(pairs, rows, 15), expected)


@pytest.mark.parametrize("n", [30, 3000])
def test_neighbours_too_far_away_to_tell_are_rows(n: int) -> None:
    """Where squared distances overflow they are infinite, or the tree answers n, one row beyond the last, where a kernel would read."""
    points = np.random.default_rng(0).uniform(-1, 1, (n, 2)) * 1e200
    nearest = sampling.nearest_rows(np.hstack([points, points[::-1]]), np.arange(n), 11)
    assert nearest.shape == (n, 11)
    assert ((nearest >= 0) & (nearest < n)).all()
    indices, _ = drawn_from(points, points[::-1], 4, 60, around=(5, 10))
    assert ((indices >= 0) & (indices < n)).all()


def test_seeds_are_spread_over_the_matches_by_weight() -> None:
    """Stratified: of 100 seeds, heavy matches have three times as many as light ones, up to one each."""
    weights = np.repeat([3.0, 1.0], 50)
    points, options = (scattered(100), scattered(100, 1)), {"min_spread": 0.0, "affine": False}
    indices, _ = drawn_from(*points, 2, 100, around=(5,), weights=weights, **options)
    assert abs((indices[:, 0] < 50).sum() - 75) <= 1


@pytest.mark.parametrize("scale", [1.0, 1e-9])
def test_a_huge_weight_elsewhere_does_not_starve_a_neighbourhood(scale: float) -> None:
    """Wherever the seed is, the heaviest of its neighbours is always accepted."""
    points, weights = scattered(100), scale * np.append(np.ones(99), 1e9)
    points[-1] += 1e5
    options = {"around": (5,), "weights": weights, "min_spread": 0.0, "affine": False}
    indices, rejected = drawn_from(points, scattered(100, 1), 4, 50, **options)
    assert (len(indices), rejected["repeated"]) == (50, 0)


# A part of many rows


def test_a_part_holds_the_same_share_of_each_label_and_if_it_is_as_large_all_rows() -> None:
    labels = np.random.default_rng(0).permutation(np.repeat([-1, 0, 1, 2], [50_000, 40_000, 9_900, 100]))
    rows = sampling.drawn_alike(labels, 10_000, np.random.default_rng(1))
    assert (np.diff(rows) > 0).all()
    assert np.bincount(labels[rows] + 1).tolist() == [5000, 4000, 990, 100]
    assert abs(np.mean(rows) / len(labels) - 0.5) < 0.02
    assert (sampling.drawn_alike(labels, 10_000, np.random.default_rng(1)) == rows).all()
    assert (sampling.drawn_alike(labels, 10_000, np.random.default_rng(2)) != rows).any()
    assert sampling.drawn_alike(labels, len(labels), np.random.default_rng(0)).tolist() == list(range(len(labels)))


# Decoys


def decoys_of(pairs: np.ndarray, n: int = 300, distance: float = 10.0, seed: int = 0) -> np.ndarray:
    return sampling.draw_decoys(pairs, n, distance, np.random.default_rng(seed))


def owners(points: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Return the row of each of `points` in `of`."""
    return np.argmax((points[:, None] == of[None]).all(axis=2), axis=1)


def test_decoys_pair_points_of_two_matches_that_are_apart_in_both_images() -> None:
    pairs = mismatches(80)
    decoys = decoys_of(pairs, distance=100.0)
    assert len(decoys) == 300
    gaps = np.abs(pairs[owners(decoys[:, :2], pairs[:, :2])] - pairs[owners(decoys[:, 2:], pairs[:, 2:])])
    assert (gaps.reshape(-1, 2, 2).max(axis=2) >= 100).all()
    np.testing.assert_array_equal(decoys, decoys_of(pairs, distance=100.0))


def test_every_match_lends_its_points_equally_often() -> None:
    pairs = mismatches(20)
    counts = (decoys_of(pairs, n=20000, distance=0.0)[:, None, 0] == pairs[None, :, 0]).sum(axis=0)
    # A match may meet itself if no distance is required: binomial(20000, 1/20), five standard deviations.
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(950) + 1


def test_no_decoy_is_a_match_among_all_pairs_of_a_few_points() -> None:
    points1, points2 = mismatches(8)[:, :2], mismatches(8, 1)[:, 2:]
    pairs = np.hstack([np.repeat(points1, 8, axis=0), np.tile(points2, (8, 1))])
    decoys = decoys_of(pairs[np.lexsort(pairs.T[::-1])])
    assert len(decoys) == 300
    apart = np.abs(decoys[:, None, 2:] - points2).max(axis=2).min(axis=1) > 0.0
    assert apart.mean() > 0.99


@pytest.mark.parametrize("pairs", [mismatches(0), mismatches(1), np.full((30, 4), 5.0)], ids=["none", "one", "alike"])
def test_matches_of_one_place_have_no_decoys(pairs: np.ndarray) -> None:
    assert decoys_of(pairs).shape == (0, 4)


@pytest.mark.parametrize("n_beyond", [0, 10, 120])
def test_the_more_is_unexplained_the_more_decoys_are_made_of_it(n_beyond: int) -> None:
    """A share n / (n + 40) of them, and the rest of any matches."""
    matches = matches_of(mismatches(160))
    unexplained = np.where(np.arange(160) < n_beyond, matches.weights, 0.0)
    decoys = sampling.decoys_of_unexplained(matches, unexplained, PARAMETERS, np.random.default_rng(0))
    assert len(decoys) == PARAMETERS.n_decoys
    beyond = [owners(decoys[:, part], matches.data[:, part]) < n_beyond for part in (slice(2), slice(2, 4))]
    n_first = round(PARAMETERS.n_decoys * n_beyond / (n_beyond + PARAMETERS.prior_matches))
    assert np.all(beyond, axis=0)[:n_first].all()
    if n_first > 0:
        assert not np.all(beyond, axis=0)[n_first:].all()
