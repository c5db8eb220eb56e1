"""Places, keypoints and their votes, against a plain twin and cases whose answer is known."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from ruzhash_cv.places import find_keypoints, find_places, votes_of


def places_twin(pairs: np.ndarray, radius: float) -> np.ndarray:
    place = np.full(len(pairs), -1)
    for row in range(len(pairs)):
        if place[row] < 0:
            near = (np.abs(pairs - pairs[row]) <= radius).all(axis=1)
            place[near & (place < 0)] = place.max() + 1
    return place


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(0, 60), crowd=st.sampled_from([1.0, 10.0, 100.0]))
def test_places_equal_their_twin(seed: int, n: int, crowd: float) -> None:
    rng = np.random.default_rng(seed)
    pairs = rng.uniform(0, crowd, (n, 4))
    pairs[n // 2 :] = pairs[rng.integers(0, max(n, 1), n - n // 2)] if n else 0
    np.testing.assert_array_equal(find_places(pairs, 3.0), places_twin(pairs, 3.0))


def test_a_keypoint_repeated_many_times_is_one_place() -> None:
    rng = np.random.default_rng(0)
    pairs = np.vstack([rng.uniform(0, 1, (500, 4)), 100 + rng.uniform(0, 1, (40, 4))])
    assert len(np.unique(find_places(pairs, 3.0))) == 2


def test_places_too_far_out_to_count_strips() -> None:
    pairs = np.array([[1e12, 0, 0, 0], [1e12, 0, 0, 0], [-1e12, 0, 0, 0], [0, 0, 0, 0], [2e12, 0, 0, 0]])
    assert find_places(pairs, 1e-300).tolist() == [0, 0, 1, 2, 3]


def test_matches_near_in_one_image_only_are_two_places() -> None:
    assert find_places(np.array([[0, 0, 0, 0], [0, 1, 50, 0], [1, 0, 0, 1.0]]), 3.0).tolist() == [0, 1, 0]


def test_without_a_radius_only_equal_rows_share_a_place() -> None:
    assert len(np.unique(find_places(np.array([[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1e-9]]), 0.0))) == 2


def test_matches_that_end_at_the_same_position_share_a_keypoint() -> None:
    pairs = np.array([[1.0, 2, 8, 9], [1, 2, 3, 4], [1, 3, 3, 4], [2, 1, 8, 9], [1, 2, 3, 4]])
    first, second = find_keypoints(pairs)
    np.testing.assert_array_equal(first[:, None] == first, (pairs[:, None, :2] == pairs[:, :2]).all(axis=2))
    np.testing.assert_array_equal(second[:, None] == second, (pairs[:, None, 2:] == pairs[:, 2:]).all(axis=2))
    assert [len(points) for points in find_keypoints(np.zeros((0, 4)))] == [0, 0]


def test_a_place_has_one_vote_and_so_has_a_keypoint() -> None:
    """Three matches are one place, one of two keypoints; a fourth pairs one of these with another place."""
    pairs = np.array([[0.0, 0, 50, 50], [1, 0, 50, 50], [1, 0, 51, 50], [1, 0, 90, 90], [200, 0, 300, 0]])
    places = find_places(pairs, 3.0)
    assert places.tolist() == [0, 0, 0, 1, 2]
    np.testing.assert_allclose(votes_of(places), [1 / 3, 1 / 3, 1 / 3, 1, 1])
    np.testing.assert_allclose(votes_of(places, find_keypoints(pairs)), [1 / 3, 1 / 5, 1 / 5, 3 / 5, 1])
