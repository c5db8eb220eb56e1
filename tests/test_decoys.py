"""Decoys are mismatches of points that were there, made of what no structure explains where this is enough."""

from __future__ import annotations

import numpy as np
import pytest
from stage_cases import matches_of, mismatches

from ruzhash_cv.decoys import decoys_of_unexplained, draw_decoys
from ruzhash_cv.filtering import PARAMETERS


def shifted(n: int) -> np.ndarray:
    points = np.random.default_rng(n).uniform(0, 600, (n, 2))
    return np.hstack([points, points + [30, -4]])


def decoys_of(pairs: np.ndarray, n: int = 300, distance: float = 10.0, seed: int = 0) -> np.ndarray:
    return draw_decoys(pairs, n, distance, np.random.default_rng(seed))


def owners(points: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Return the row of each of `points` in `of`."""
    return np.argmax((points[:, None] == of[None]).all(axis=2), axis=1)


def test_decoys_pair_points_of_two_matches_that_are_apart_in_both_images() -> None:
    pairs = mismatches(80)
    decoys = decoys_of(pairs, distance=100.0)
    assert len(decoys) == 300
    gaps = np.abs(pairs[owners(decoys[:, :2], pairs[:, :2])] - pairs[owners(decoys[:, 2:], pairs[:, 2:])])
    assert (gaps.reshape(-1, 2, 2).max(axis=2) >= 100).all()


def test_every_match_lends_its_points_equally_often() -> None:
    pairs = shifted(20)
    decoys = decoys_of(pairs, n=20000, distance=0.0)
    counts = (decoys[:, None, 0] == pairs[None, :, 0]).sum(axis=0)
    # A match may meet itself where no distance is asked for: binomial(20000, 1/20), five standard deviations.
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(950) + 1


@pytest.mark.parametrize("pairs", [shifted(0), shifted(1), np.full((30, 4), 5.0)], ids=["none", "one", "one place"])
def test_matches_of_one_place_have_no_decoys(pairs: np.ndarray) -> None:
    assert decoys_of(pairs).shape == (0, 4)


def test_the_same_seed_draws_the_same_decoys() -> None:
    np.testing.assert_array_equal(decoys_of(shifted(50)), decoys_of(shifted(50)))
    assert (decoys_of(shifted(50)) != decoys_of(shifted(50), seed=1)).any()


@pytest.mark.parametrize("n_beyond", [0, 10, 120])
def test_the_more_is_unexplained_the_more_decoys_are_made_of_it(n_beyond: int) -> None:
    """A share n / (n + 40) of them, and the rest of any matches."""
    matches = matches_of(mismatches(160))
    unexplained = np.where(np.arange(160) < n_beyond, matches.weights, 0.0)
    decoys = decoys_of_unexplained(matches, unexplained, PARAMETERS, np.random.default_rng(0))
    assert len(decoys) == PARAMETERS.n_decoys
    beyond = [owners(decoys[:, part], matches.data[:, part]) < n_beyond for part in (slice(2), slice(2, 4))]
    n_first = round(PARAMETERS.n_decoys * n_beyond / (n_beyond + PARAMETERS.prior_matches))
    assert np.all(beyond, axis=0)[:n_first].all()
    if n_first > 0:
        assert not np.all(beyond, axis=0)[n_first:].all()
