"""Structures that lie among the matches of stronger ones and compete with them for keypoints are no surfaces."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from stage_cases import in_pixels
from two_views import shifted_along_lines, two_planes

from ruzhash_cv import filter_points
from ruzhash_cv.filtering import PARAMETERS
from ruzhash_cv.repetition import Neighbours, find_repetitions, interleaved, own_share

SMALL = PARAMETERS.small_share
RULE = Neighbours(PARAMETERS.interleaved_share, 1.0)
OWN_KEYPOINTS = np.tile(np.arange(90), (2, 1))
#: Sixty matches of a stronger structure, thirty of a weaker one.
TWO = np.array([np.arange(90) < 60, np.arange(90) >= 60])


def scattered(n: int = 90) -> np.ndarray:
    return np.random.default_rng(2).uniform(0, 100, (n, 4))


def found_in(
    data: np.ndarray, within: np.ndarray, keypoints: np.ndarray = OWN_KEYPOINTS, planes: np.ndarray | None = None
) -> tuple[list[bool], np.ndarray]:
    planes = np.zeros(len(within), bool) if planes is None else planes
    matches = in_pixels(data, keypoints=keypoints)
    repeated, overlapping = find_repetitions(matches, within, planes, RULE, SMALL)
    return repeated.tolist(), overlapping


@pytest.mark.parametrize("n", [2, 3, 5, 40, 200])
def test_the_share_of_own_neighbours_equals_its_twin(n: int) -> None:
    rng = np.random.default_rng(n)
    points, own = rng.uniform(0, 100, (n, 2)), rng.random(n) < 0.5
    own[0] = True
    around = own | (rng.random(n) < 0.7)
    for same in (0.0, 3.0):
        expected = naive.own_share(points, own, around, same)
        assert own_share(points, own, around, RULE._replace(same=same)) == pytest.approx(expected)


# What goes


@pytest.mark.parametrize("holds_the_stronger", [False, True])
@pytest.mark.parametrize(("more", "goes"), [(-1, True), (1, False)])
def test_an_interleaved_structure_of_few_matches_goes_and_one_of_many_stays(
    holds_the_stronger: bool, more: int, goes: bool
) -> None:
    n_weaker = int(SMALL / (1.0 + SMALL) * 90) + more
    stronger = np.arange(90) < 90 - n_weaker
    within = np.array([stronger, ~stronger | holds_the_stronger])
    assert found_in(scattered(), within)[0] == [False, goes]


@pytest.mark.parametrize("image", [0, 1])
def test_an_interleaved_structure_that_competes_for_keypoints_goes(image: int) -> None:
    assert found_in(scattered(), TWO)[0] == [False, False]
    shared = OWN_KEYPOINTS.copy()
    shared[image, 89] = 0
    assert found_in(scattered(), TWO, shared)[0] == [False, True]
    # Of some of many matches the keypoints' numbers exceed theirs.
    assert found_in(scattered(), TWO, shared + [[500], [900]])[0] == [False, True]


@pytest.mark.parametrize(("moved", "goes"), [(slice(0), True), (slice(2, 4), True), (slice(4), False)])
def test_a_structure_in_a_place_of_its_own_in_both_images_stays_whatever_it_competes_for(
    moved: slice, goes: bool
) -> None:
    data, shared = scattered(), np.tile(np.arange(90) % 60, (2, 1))
    data[60:, moved] += 1000.0
    assert found_in(data, TWO, shared)[0] == [False, goes]


def test_any_structure_but_the_strongest_may_go() -> None:
    data, within = np.random.default_rng(0).uniform(0, 100, (120, 4)), np.zeros((4, 120), bool)
    for structure, (first, last) in enumerate(((0, 50), (50, 80), (80, 100), (100, 120))):
        within[structure, first:last] = True
    data[50:80] += 1000.0
    data[100:] += 2000.0
    keypoints = np.tile(np.arange(120), (2, 1))
    keypoints[:, 80] = 0
    assert found_in(data, within, keypoints)[0] == [False, False, True, False]


def test_one_match_or_none_is_not_judged() -> None:
    one = np.array([np.arange(90) < 89, np.arange(90) == 89])
    for within in (one, np.zeros((2, 90), bool), np.ones((2, 90), bool)):
        assert found_in(scattered(), within)[0] == [False, False]
    assert not interleaved(scattered(), np.zeros(90, bool), np.zeros(90, bool), RULE)


# What overlaps


def test_planes_overlap_where_the_smaller_lies_among_the_larger() -> None:
    """Matches belong to the first structure that holds them."""
    data, rows = scattered(), np.arange(90)
    within = np.array([rows < 50, rows < 70, rows >= 70])
    every = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(found_in(data, within, planes=np.ones(3, bool))[1], every)
    planes = np.array([True, False, True])
    np.testing.assert_array_equal(found_in(data, within, planes=planes)[1], every & np.outer(planes, planes))
    data[70:] += 1000.0
    first_two = rows[:3] < 2
    np.testing.assert_array_equal(
        found_in(data, within, planes=np.ones(3, bool))[1], every & np.outer(first_two, first_two)
    )
    within[1, 51:] = False  # one match lies nowhere
    assert not found_in(data, within, planes=np.ones(3, bool))[1].any()


def test_a_large_plane_around_a_small_one_does_not_overlap_it() -> None:
    data = np.random.default_rng(0).uniform(0, 100, (90, 4))
    data[60:] = 48.0 + 0.04 * data[60:]
    assert not found_in(data, TWO, planes=np.ones(2, bool))[1].any()


# Of filter_points


@pytest.mark.parametrize("n_contested", [0, 10])
def test_a_plane_beside_another_stays(n_contested: int) -> None:
    pairs, weaker = two_planes(apart=True, n_contested=n_contested)
    result = filter_points(pairs[:, :2], pairs[:, 2:])
    assert len(result.models) == 2
    assert result.inlier_mask[weaker].mean() > 0.8
    assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.9


@pytest.mark.parametrize(("n_weaker", "n_contested"), [(60, 10), (20, 0)])
def test_matches_one_period_off_are_no_plane(n_weaker: int, n_contested: int) -> None:
    pairs, weaker = two_planes(apart=False, n_weaker=n_weaker, n_contested=n_contested)
    for seed in range(4):
        result = filter_points(pairs[:, :2], pairs[:, 2:], rng=seed)
        assert len(result.models) == 1
        assert result.inlier_mask[weaker].mean() < 0.1
        assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_a_texture_repeated_in_one_direction_is_no_motion(seed: int) -> None:
    result = filter_points(*shifted_along_lines(seed, contested=True))
    assert [model.kind for model in result.models] == ["homography"]
    assert result.inlier_mask[:100].mean() > 0.95
    assert result.inlier_mask[100:210].mean() < 0.1
    assert result.inlier_probabilities[100:210].mean() < 0.2


def test_what_is_seen_through_a_fence_and_has_keypoints_of_its_own_stays() -> None:
    """Parallax along lines is a motion; window panes are a second plane."""
    parallax = filter_points(*shifted_along_lines(0, contested=False))
    assert [model.kind for model in parallax.models] == ["fundamental"]
    assert parallax.inlier_mask[:210].mean() > 0.8
    pairs, weaker = two_planes(apart=False)
    panes = filter_points(pairs[:, :2], pairs[:, 2:])
    assert len(panes.models) == 2
    assert panes.inlier_mask[weaker].mean() > 0.9


def test_strips_narrower_than_the_distance_of_matches_stay() -> None:
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, [640, 480], (400, 2))
    strip = points1[:, 1] // 30 % 2 == 1
    points2 = points1 * 1.05 + [20, 10] + strip[:, None] * [25, 4] + rng.normal(0, 0.5, points1.shape)
    points2[300:] = rng.uniform(0, [640, 480], (100, 2))
    mask = filter_points(points1, points2).inlier_mask[:300]
    assert min(mask[strip[:300]].mean(), mask[~strip[:300]].mean()) > 0.9


def test_a_plane_in_the_midst_of_another_stays() -> None:
    """What is in front hides what is behind."""
    rng = np.random.default_rng(1)
    points1 = rng.uniform(0, 500, (400, 2))
    inside = (np.abs(points1 - 250) < 90).all(axis=1)
    points2 = points1 + np.where(inside[:, None], [35.0, -20.0], [5.0, 5.0]) + rng.normal(0, 0.3, (400, 2))
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[inside].mean() > 0.9
