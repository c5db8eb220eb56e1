"""Minimal samples: what is drawn, what is rejected and counted; neighbourhoods; and decoys, mismatches of points that were there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ruzhash_cv.matchset import LENGTH
from two_views import H

from ruzhash_cv.sampling import MinimalSamples, draw_decoys, draw_from, nearest_rows


def scattered(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0, 600, (n, 2))


def draw_samples(
    points1: np.ndarray, points2: np.ndarray, *, sample_size: int, n_samples: int,
    neighbourhoods: Sequence[int] | None = (10, 30, 0), weights: np.ndarray | None = None, min_spread: float = LENGTH,
    n_candidates: int = 1, rng: int = 0,
) -> MinimalSamples:  # fmt: skip
    """Draw samples of equal weights and from several neighbourhoods where nothing else is asked for."""
    pairs, generator = np.hstack([points1, points2]), np.random.default_rng(rng)
    shares = np.ones(len(pairs)) if weights is None else weights
    affine = sample_size == 4
    return draw_from(
        pairs, sample_size, n_samples, neighbourhoods or (0,), shares, min_spread, n_candidates, affine, generator
    )


# Samples


@pytest.mark.parametrize("sample_size", [4, 7])
@pytest.mark.parametrize("neighbourhoods", [None, (0,), (10,), (10, 30, 0)])
def test_samples_are_different_rows_that_are_apart_in_both_images(sample_size: int, neighbourhoods: object) -> None:
    points1, points2 = scattered(200), scattered(200) + 5
    drawn = draw_samples(
        points1, points2, sample_size=sample_size, n_samples=300, neighbourhoods=neighbourhoods, min_spread=4.0
    )
    assert drawn.indices.shape == (len(drawn), sample_size)
    assert len(drawn) > 290
    assert drawn.indices.min() >= 0
    assert drawn.indices.max() < 200
    for points in (points1, points2):
        sample = points[drawn.indices]
        gaps = np.abs(sample[:, :, None] - sample[:, None]).max(axis=3)
        assert (gaps + 1e9 * np.eye(sample_size) >= 4.0).all()


def test_neighbourhood_samples_are_a_seed_and_some_of_its_nearest() -> None:
    points1, points2 = scattered(300), scattered(300, seed=1)
    pairs = np.hstack([points1, points2])
    drawn = draw_samples(points1, points2, sample_size=4, n_samples=200, neighbourhoods=(12,))
    assert len(drawn) > 50
    for seed, *others in drawn.indices:
        nearest = np.argsort(np.linalg.norm(pairs - pairs[seed], axis=1))[1:13]
        assert set(others) <= set(nearest.tolist())


def test_uniform_samples_take_every_row_equally_often_and_weights_change_that() -> None:
    points = scattered(40)
    drawn = draw_samples(points, points, sample_size=2, n_samples=20000, neighbourhoods=None, min_spread=0.0)
    counts = np.bincount(drawn.indices.ravel(), minlength=40)
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
    weights = np.ones(40)
    weights[:20] = 0
    drawn = draw_samples(points, points, sample_size=4, n_samples=500, weights=weights)
    assert len(drawn) > 400
    assert drawn.indices.min() >= 20


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), sample_size=st.sampled_from([4, 7]))
def test_homography_samples_keep_their_orientation(seed: int, sample_size: int) -> None:
    """On a homography that keeps the horizon off the image, nothing is flipped; mirrored or not."""
    points1 = scattered(60, seed)
    points2 = naive.apply(H, points1)
    for target in (points2, points2 * [-1, 1]):
        drawn = draw_samples(points1, target, sample_size=sample_size, n_samples=50, neighbourhoods=(0,))
        assert drawn.rejected["flipped"] == 0
        assert len(drawn) > 40


def test_a_sample_with_one_point_on_the_other_side_is_flipped() -> None:
    square = np.array([[0.0, 0.0], [100.0, 0.0], [100.0, 100.0], [0.0, 100.0]])
    crossed = square[[0, 2, 1, 3]]
    drawn = draw_samples(square, crossed, sample_size=4, n_samples=10)
    assert len(drawn) == 0
    assert drawn.rejected["flipped"] > 0
    assert drawn.rejected["collinear"] == drawn.rejected["repeated"] == 0


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_of_many_candidates_the_most_nearly_affine_sample_is_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points1 = rng.uniform(0, 500, (6, 2))
    points2 = points1 + rng.normal(0, 5, (6, 2))
    options = {"sample_size": 4, "neighbourhoods": None, "min_spread": 0.0}
    drawn = draw_samples(points1, points2, n_samples=1, n_candidates=1000, **options)
    assume(sum(drawn.rejected.values()) == 0)
    # Then all 15 sets of four were among the draws.
    pairs = np.hstack([points1, points2])
    least = min(naive.bend(pairs[list(rows)]) for rows in itertools.combinations(range(6), 4))
    assert naive.bend(pairs[drawn.indices[0]]) == pytest.approx(least)


def test_candidates_make_samples_without_mismatches_more_frequent() -> None:
    points1 = scattered(300)
    points2 = naive.apply(H, points1)
    wrong = np.arange(300) % 2 == 0
    points2[wrong] = scattered(300, seed=1)[wrong]
    shares = []
    for n_candidates in (1, 4):
        options = {"neighbourhoods": (10, 40), "n_candidates": n_candidates}
        drawn = draw_samples(points1, points2, sample_size=4, n_samples=400, **options)
        shares.append((~wrong[drawn.indices]).all(axis=1).mean())
    assert shares[1] > 1.2 * shares[0]


def test_samples_that_bend_beyond_all_numbers_are_samples() -> None:
    points1 = scattered(40)
    drawn = draw_samples(points1, points1 * [1e-150, 1e-160], sample_size=4, n_samples=50, n_candidates=3, min_spread=0)
    assert ((drawn.indices >= 0) & (drawn.indices < 40)).all()
    assert all(len(set(rows)) == 4 for rows in drawn.indices.tolist())


@pytest.mark.parametrize("sample_size", [4, 7])
def test_collinear_and_repeated_points_are_rejected_and_counted(sample_size: int) -> None:
    line = np.column_stack([np.linspace(0, 500, 50), np.linspace(0, 250, 50)])
    for first, second in ((line, scattered(50)), (scattered(50), line), (line, line)):
        drawn = draw_samples(first, second, sample_size=sample_size, n_samples=20)
        assert len(drawn) == 0
        assert drawn.rejected["collinear"] > 0
    drawn = draw_samples(np.full((50, 2), 3.0), scattered(50), sample_size=sample_size, n_samples=20)
    assert len(drawn) == 0
    assert drawn.rejected["repeated"] > 0


# Verdicts


@settings(max_examples=400, deadline=None)
@given(
    sample=arrays(np.float64, (4, 4), elements=st.integers(0, 6)), alike=st.sampled_from([None, slice(2), slice(2, 4)])
)
def test_four_matches_are_a_sample_where_their_twin_says_so(sample: np.ndarray, alike: slice | None) -> None:
    """Coordinates on a grid: repeated, collinear and flipped ones are frequent. No distance on it equals `min_spread`, or half.

    Where one image is like the other, only larger, nothing is flipped, and the smaller one decides.
    """
    if alike is not None:
        sample[:, alike] = 9.0 * (sample[:, 2:] if alike == slice(2) else sample[:, :2])
    drawn = draw_samples(sample[:, :2], sample[:, 2:], sample_size=4, n_samples=3, neighbourhoods=None, min_spread=1.53)
    if naive.has_repeated_points(sample, 1.53):
        assert reasons(drawn) == {"repeated"}
    elif not naive.is_collinear(sample, 1.53):
        assert (len(drawn) > 0) == (not naive.is_flipped(sample))
        assert "collinear" not in reasons(drawn)
    else:
        assert len(drawn) == 0
        assert reasons(drawn) & {"collinear", "flipped"}


@settings(max_examples=150, deadline=None)
@given(sample=arrays(np.float64, (7, 4), elements=st.integers(0, 12)), line=st.booleans())
def test_seven_matches_are_a_sample_where_their_twin_says_so(sample: np.ndarray, line: bool) -> None:
    if line:  # nearly, and far from repeated
        sample[:, 2] = np.arange(7) * 4.0
        sample[:, 3] = np.round(0.5 * sample[:, 2]) + sample[:, 3] // 6
    drawn = draw_samples(sample[:, :2], sample[:, 2:], sample_size=7, n_samples=3, neighbourhoods=None, min_spread=1.53)
    if naive.has_repeated_points(sample, 1.53):
        assert reasons(drawn) == {"repeated"}
    else:
        assert (len(drawn) > 0) == (not naive.is_collinear(sample, 1.53))
        assert "flipped" not in reasons(drawn)


@pytest.mark.parametrize(("height", "accepted"), [(0.49, False), (0.51, True)])
@pytest.mark.parametrize("image", [0, 1])
def test_points_nearer_to_a_line_than_half_the_spread_are_collinear(height: float, accepted: bool, image: int) -> None:
    """A triangle's height in one image; of seven points the root mean square distance from their line."""
    four = np.array([[0.0, 0.0], [100.0, 0.0], [50.0, 8.0 * height], [50.0, 80.0]])
    uneven = np.array([1.0, -1.0, 1.0, -2.0, 1.0, -1.0, 1.0])  # of mean 0, as often left as right
    seven = np.column_stack([20.0 * np.arange(7.0), 8.0 * height * uneven / uneven.std()])
    for near in (four, seven):
        points = (near, 9.0 * near) if image == 0 else (9.0 * near, near)
        drawn = draw_samples(*points, sample_size=len(near), n_samples=5, neighbourhoods=None, min_spread=8.0)
        assert (len(drawn) > 0) == accepted
        assert accepted or reasons(drawn) == {"collinear"}


def reasons(drawn: MinimalSamples) -> set[str]:
    """Return why draws were rejected; all rows are rarely not drawn in time, which counts as repeated."""
    found = {reason for reason, count in drawn.rejected.items() if count}
    return found if len(found) < 2 and not len(drawn) else found - {"repeated"}


# Edges and errors


@pytest.mark.parametrize("n", [0, 1, 3, 4, 6, 7])
@pytest.mark.parametrize("sample_size", [4, 7])
def test_too_few_correspondences_give_no_samples(n: int, sample_size: int) -> None:
    drawn = draw_samples(scattered(n), scattered(n), sample_size=sample_size, n_samples=5)
    assert drawn.indices.shape[1] == sample_size
    assert n >= sample_size or len(drawn) == 0


def test_the_same_seed_draws_the_same_samples_and_points_stay_as_they_were() -> None:
    points = scattered(100)
    points.flags.writeable = False
    first, again = (draw_samples(points, points, sample_size=4, n_samples=50, rng=3).indices for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert (draw_samples(points, points, sample_size=4, n_samples=50, rng=4).indices != first).any()


# Neighbourhoods


@pytest.mark.parametrize("n", [20, 300, 4000])
def test_neighbours_are_the_nearest_whoever_looks_them_up(n: int) -> None:
    pairs = np.random.default_rng(n).uniform(-1, 1, (n, 4))
    rows = np.arange(0, n, 7)
    squares = ((pairs[rows, None] - pairs) ** 2).sum(axis=2)
    np.testing.assert_array_equal(nearest_rows(pairs, rows, 15), np.argsort(squares, axis=1)[:, :15])
    assert nearest_rows(pairs, rows, n + 1).shape == (len(rows), n)


@pytest.mark.parametrize("n", [30, 3000])
def test_neighbours_too_far_away_to_tell_are_rows(n: int) -> None:
    """Where squared distances overflow they are infinite, or the tree answers n, one row beyond the last, where a kernel would read."""
    points = np.random.default_rng(0).uniform(-1, 1, (n, 2)) * 1e200
    nearest = nearest_rows(np.hstack([points, points[::-1]]), np.arange(n), 11)
    assert nearest.shape == (n, 11)
    assert nearest.min() >= 0
    assert nearest.max() < n
    drawn = draw_samples(points, points[::-1], sample_size=4, n_samples=60, neighbourhoods=(5, 10))
    assert ((drawn.indices >= 0) & (drawn.indices < n)).all()


def test_what_has_no_weight_is_no_neighbour() -> None:
    """Every second match is weighed out: samples come from the nearest of the others, as many as without them."""
    pairs = np.random.default_rng(0).uniform(0, 600, (400, 4))
    pairs[:, 2:] = pairs[:, :2] + 5
    weights = np.arange(400) % 2.0
    drawn = draw_samples(pairs[:, :2], pairs[:, 2:], sample_size=4, n_samples=200, neighbourhoods=(8,), weights=weights)
    assert len(drawn) > 150
    kept = np.flatnonzero(weights)
    for seed, *others in drawn.indices:
        nearest = kept[np.argsort(np.linalg.norm(pairs[kept] - pairs[seed], axis=1))[1:9]]
        assert set(others) <= set(nearest.tolist())


def test_seeds_are_spread_over_the_matches_by_weight() -> None:
    """Stratified: of 100 seeds, heavy matches have three times as many as light ones, up to one each."""
    pairs = np.random.default_rng(0).uniform(0, 600, (100, 4))
    weights = np.where(np.arange(100) < 50, 3.0, 1.0)
    rng = np.random.default_rng(1)
    seeds = draw_from(pairs, 2, 100, [5], weights, 0.0, 1, False, rng).indices[:, 0]
    assert abs((seeds < 50).sum() - 75) <= 1


@pytest.mark.parametrize("heavy", [1e3, 1e9])
def test_a_huge_weight_elsewhere_does_not_starve_a_neighbourhood(heavy: float) -> None:
    """Wherever the seed is, the heaviest of its neighbours is always accepted."""
    pairs = np.random.default_rng(0).uniform(0, 600, (100, 4))
    pairs[-1] += 1e5
    weights = np.append(np.ones(99), heavy)
    for shares in (weights, weights / heavy):
        drawn = draw_from(pairs, 4, 50, [5], shares, 0.0, 1, False, np.random.default_rng(1))
        assert len(drawn) == 50
        assert drawn.rejected["repeated"] == 0


# Decoys


def shifted(n: int) -> np.ndarray:
    points = np.random.default_rng(n).uniform(0, 600, (n, 2))
    return np.hstack([points, points + [30, -4]])


def decoys_of(pairs: np.ndarray, n: int = 300, distance: float = 10.0, seed: int = 0) -> np.ndarray:
    return draw_decoys(pairs, n, distance, np.random.default_rng(seed))


def test_decoys_pair_points_of_two_matches_that_are_apart_in_both_images() -> None:
    pairs = np.random.default_rng(0).uniform(0, 600, (80, 4))
    decoys = decoys_of(pairs, distance=100.0)
    assert len(decoys) == 300
    firsts = [np.flatnonzero((pairs[:, :2] == decoy[:2]).all(axis=1))[0] for decoy in decoys]
    seconds = [np.flatnonzero((pairs[:, 2:] == decoy[2:]).all(axis=1))[0] for decoy in decoys]
    gaps = np.abs(pairs[firsts] - pairs[seconds])
    assert (gaps[:, :2].max(axis=1) >= 100).all()
    assert (gaps[:, 2:].max(axis=1) >= 100).all()


def test_every_match_lends_its_points_equally_often() -> None:
    pairs = shifted(20)
    decoys = decoys_of(pairs, n=20000, distance=0.0)
    counts = (decoys[:, None, 0] == pairs[None, :, 0]).sum(axis=0)
    # A match may meet itself where no distance is asked for: binomial(20000, 1/20), five standard deviations.
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(950) + 1


@pytest.mark.parametrize("n", [0, 1])
def test_one_match_alone_has_no_decoys(n: int) -> None:
    assert decoys_of(shifted(n)).shape == (0, 4)


def test_matches_at_one_position_have_no_decoys() -> None:
    assert decoys_of(np.full((30, 4), 5.0)).shape == (0, 4)


def test_the_same_seed_draws_the_same_decoys() -> None:
    np.testing.assert_array_equal(decoys_of(shifted(50)), decoys_of(shifted(50)))
    assert (decoys_of(shifted(50)) != decoys_of(shifted(50), seed=1)).any()
