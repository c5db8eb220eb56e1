"""Decoys are mismatches, of points that were there."""

from __future__ import annotations

import numpy as np
import pytest

from ruzhash_cv.decoys import draw_decoys


def shifted(n: int) -> np.ndarray:
    points = np.random.default_rng(n).uniform(0, 600, (n, 2))
    return np.hstack([points, points + [30, -4]])


def draw(pairs: np.ndarray, n: int = 300, reach: float = 10.0, seed: int = 0) -> np.ndarray:
    return draw_decoys(pairs, n, reach, np.random.default_rng(seed))


def test_decoys_pair_points_of_two_matches_that_are_apart_in_both_images() -> None:
    pairs = shifted(80)
    decoys = draw(pairs)
    assert len(decoys) == 300
    firsts = [np.flatnonzero((pairs[:, :2] == decoy[:2]).all(axis=1))[0] for decoy in decoys]
    seconds = [np.flatnonzero((pairs[:, 2:] == decoy[2:]).all(axis=1))[0] for decoy in decoys]
    gaps = np.abs(pairs[firsts] - pairs[seconds])
    assert (gaps[:, :2].max(axis=1) >= 10).all()
    assert (gaps[:, 2:].max(axis=1) >= 10).all()


def test_every_match_lends_its_points_equally_often() -> None:
    pairs = shifted(20)
    decoys = draw(pairs, n=20000, reach=0.0)
    counts = (decoys[:, None, 0] == pairs[None, :, 0]).sum(axis=0)
    # A match may not meet itself; the others are equally likely: binomial(20000, 1/20), five standard deviations.
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(950) + 1


@pytest.mark.parametrize("n", [0, 1])
def test_one_match_alone_has_no_decoys(n: int) -> None:
    assert draw(shifted(n)).shape == (0, 4)


def test_matches_at_one_place_have_no_decoys() -> None:
    assert draw(np.full((30, 4), 5.0)).shape == (0, 4)


def test_the_same_seed_draws_the_same_decoys() -> None:
    np.testing.assert_array_equal(draw(shifted(50)), draw(shifted(50)))
    assert (draw(shifted(50)) != draw(shifted(50), seed=1)).any()
