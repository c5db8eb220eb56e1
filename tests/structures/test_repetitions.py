"""Structures that lie among the matches of stronger ones and compete with them for keypoints are no surfaces."""

from __future__ import annotations

import numpy as np
import pytest
from ruzhash_cv.families.solving import FAMILIES
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.structures import refinement
from ruzhash_cv.structures.refinement import N_NEIGHBOURS, SMALL, lie_among, own_share, tell_repetitions
from ruzhash_cv.structures.search import Search
from two_views import one_window_off, shifted_along_lines

from ruzhash_cv import filter_points

OWN_KEYPOINTS = np.tile(np.arange(90), (2, 1))
NONE = np.zeros(2, bool)


def share_twin(points: np.ndarray, own: np.ndarray, around: np.ndarray, same: float) -> float:
    said: list[bool] = []
    among = np.flatnonzero(around)
    for row in np.flatnonzero(own):
        lengths = np.linalg.norm(points[among] - points[row], axis=1)
        said += list(own[among[lengths > same][np.argsort(lengths[lengths > same])][:N_NEIGHBOURS]])
    return float(np.mean(said)) if said else 1.0


@pytest.mark.parametrize("n", [2, 3, 5, 40, 200])
def test_the_share_equals_its_twin(n: int) -> None:
    rng = np.random.default_rng(n)
    points, own = rng.uniform(0, 100, (n, 2)), rng.random(n) < 0.5
    own[0] = True
    around = own | (rng.random(n) < 0.7)
    for same in (0.0, 3.0):
        assert own_share(points, own, around, same) == pytest.approx(share_twin(points, own, around, same))


def two(
    apart: bool, n: int = 200, n_weaker: int = 60, n_wrong: int = 40, n_contested: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two planes beside each other, or one with some of its matches a period off; mismatches come last.

    Of the stronger plane `n_contested` matches end at second points of the weaker one's.
    """
    rng = np.random.default_rng(5)
    points1 = rng.uniform(0, 500, (n + n_wrong, 2))
    points2 = points1 * 1.1 + 20.0 + rng.normal(0, 0.3, points1.shape)
    weaker = points1[:n, 0] < np.sort(points1[:n, 0])[n_weaker] if apart else np.arange(n) < n_weaker
    points2[:n][weaker] += [70.0, 0.0]
    points2[n:] = rng.uniform(0, 550, (n_wrong, 2))
    taken, rivals = np.flatnonzero(weaker)[:n_contested], np.flatnonzero(~weaker)[:n_contested]
    points2[rivals], points1[rivals] = points2[taken], (points2[taken] - 20.0) / 1.1
    return points1, points2, np.append(weaker, np.zeros(n_wrong, bool))


# Of filter_points


@pytest.mark.parametrize("n_contested", [0, 10])
def test_a_plane_beside_another_stays(n_contested: int) -> None:
    points1, points2, weaker = two(apart=True, n_contested=n_contested)
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[weaker].mean() > 0.8
    assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.9


@pytest.mark.parametrize(("n_weaker", "n_contested"), [(60, 10), (20, 0)])
def test_matches_one_period_off_are_no_plane(n_weaker: int, n_contested: int) -> None:
    for seed in range(4):
        points1, points2, weaker = two(apart=False, n_weaker=n_weaker, n_contested=n_contested)
        result = filter_points(points1, points2, rng=seed)
        assert len(result.models) == 1
        assert result.inlier_mask[weaker].mean() < 0.1
        assert result.inlier_mask[:200][~weaker[:200]].mean() > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_a_texture_repeated_in_one_direction_is_no_motion(seed: int) -> None:
    result = filter_points(*shifted_along_lines(seed, contested=True))
    assert [model.kind for model in result.models] == ["homography"]
    assert result.inlier_mask[:100].mean() > 0.95
    assert result.inlier_mask[100:210].mean() < 0.1
    assert (result.p_values[100:210] < 0.05).mean() < 0.2


def test_what_moves_along_lines_and_has_keypoints_of_its_own_is_a_motion() -> None:
    """Parallax, seen through a fence."""
    result = filter_points(*shifted_along_lines(0, contested=False))
    assert [model.kind for model in result.models] == ["fundamental"]
    assert result.inlier_mask[:210].mean() > 0.8


def test_without_repetitions_the_decoys_are_those_that_their_scores_are_of(monkeypatch: pytest.MonkeyPatch) -> None:
    points1, points2, _ = two(apart=False, n_contested=10)
    families = FAMILIES["homography"], FAMILIES["fundamental"]
    search = Search(MatchSet.of(points1, points2), families, families, np.random.default_rng(0), 1)
    monkeypatch.setattr(Search, "_without_repetitions", lambda self, found: found)
    before = search.run()
    monkeypatch.undo()
    found = search._without_repetitions(before)
    assert (len(before.structures), len(found.structures)) == (2, 1)
    nowhere = np.full(len(found.null), -2)
    np.testing.assert_array_equal(found.scorer.others(found.null, nowhere), found.null_scores)


def test_a_plane_seen_through_another_stays_where_they_share_no_keypoint() -> None:
    """A fence, the panes of a wall, parallax."""
    points1, points2, weaker = two(apart=False)
    result = filter_points(points1, points2)
    assert len(result.models) == 2
    assert result.inlier_mask[weaker].mean() > 0.9


def test_of_two_planes_in_one_place_the_one_that_moves_with_more_is_true() -> None:
    """Or both stay, where they look like parts of one motion; the true one never goes."""
    n_told = 0
    for seed in range(8):
        points1, points2, _ = one_window_off(seed=seed)
        result = filter_points(points1, points2, rng=seed)
        wall, things, copy = (part.mean() for part in np.split(result.inlier_mask, [80, 140, 250])[:3])
        assert wall > 0.9
        if copy < 0.1:
            n_told += 1
            assert things > 0.9
            assert (result.p_values[140:250] < 0.01).mean() < 0.1
    assert n_told >= 4


@pytest.mark.parametrize("seed", [3, 6])
def test_a_plane_that_goes_takes_no_other_with_it(seed: int) -> None:
    """Two planes side by side, and one all over both: the larger one drops it, so that the smaller one has its place to itself."""
    rng = np.random.default_rng(seed)
    first = [
        rng.uniform([low, 0], [high, 480], (n, 2)) for low, high, n in ((0, 400, 150), (100, 800, 120), (500, 800, 60))
    ]
    wrong = rng.uniform([0, 0], [800, 480], (2, 40, 2))
    second = []
    for points, angle, scale, shift in zip(first, (0.1, -0.2, 0.25), (1.1, 0.9, 1.2), (30, -40, 10), strict=True):
        cosine, sine = scale * np.cos(angle), scale * np.sin(angle)
        middle = points.mean(axis=0)
        second.append((points - middle) @ [[cosine, sine], [-sine, cosine]] + middle + [shift, 0.5 * shift])
    points2 = np.vstack([*second, wrong[1]])
    mask = filter_points(
        np.vstack([*first, wrong[0]]), points2 + rng.normal(0, 0.4, points2.shape), rng=seed
    ).inlier_mask
    parts = [part.mean() for part in np.split(mask, [150, 270, 330])[:3]]
    np.testing.assert_allclose(parts, [1, 0, 1], atol=0.1)


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


# Of the rule


def scattered(n: int = 90) -> np.ndarray:
    return np.random.default_rng(2).uniform(0, 100, (n, 4))


@pytest.mark.parametrize("to_the_stronger", [5.0, 0.5])
def test_the_few_matches_of_an_interleaved_structure_are_lost(to_the_stronger: float) -> None:
    """Whether or not it holds the stronger one's matches too."""
    few = int(SMALL / (1.0 + SMALL) * 90) - 1
    distances = np.full((90, 2), 0.5)
    distances[90 - few :, 0], distances[: 90 - few, 1] = 5.0, to_the_stronger
    assert tell_repetitions(scattered(), distances, OWN_KEYPOINTS, 1.0, NONE)[0].tolist() == [False, True]


def test_the_many_matches_of_an_interleaved_structure_are_not() -> None:
    many = int(SMALL / (1.0 + SMALL) * 90) + 1
    distances = np.full((90, 2), 0.5)
    distances[90 - many :, 0] = distances[: 90 - many, 1] = 5.0
    assert not tell_repetitions(scattered(), distances, OWN_KEYPOINTS, 1.0, NONE)[0].any()


@pytest.mark.parametrize("image", [0, 1])
def test_a_structure_that_competes_for_keypoints_goes(image: int) -> None:
    distances = np.full((90, 2), 5.0)
    distances[:60, 0] = distances[60:, 1] = 0.5
    assert not tell_repetitions(scattered(), distances, OWN_KEYPOINTS, 1.0, NONE)[0].any()
    shared = OWN_KEYPOINTS.copy()
    shared[image, 89] = 0
    assert tell_repetitions(scattered(), distances, shared, 1.0, NONE)[0].tolist() == [False, True]
    # Of some of many matches the keypoints' numbers exceed theirs.
    assert tell_repetitions(scattered(), distances, shared + [[500], [900]], 1.0, NONE)[0].tolist() == [False, True]


def test_a_structure_in_a_place_of_its_own_stays_whatever_it_competes_for() -> None:
    data, distances, shared = scattered(), np.full((90, 2), 5.0), OWN_KEYPOINTS.copy()
    distances[:60, 0] = distances[60:, 1] = 0.5
    shared[:, 60:] = np.arange(30)
    assert tell_repetitions(data, distances, shared, 1.0, NONE)[0].tolist() == [False, True]
    data[60:] += 1000.0
    assert tell_repetitions(data, distances, shared, 1.0, NONE)[0].tolist() == [False, False]


def test_any_structure_may_be_asked() -> None:
    data, distances = np.random.default_rng(0).uniform(0, 100, (120, 4)), np.full((120, 4), 5.0)
    for structure, (first, last) in enumerate(((0, 50), (50, 80), (80, 100), (100, 120))):
        distances[first:last, structure] = 0.5
    data[50:80] += 1000.0
    data[100:] += 2000.0
    keypoints = np.tile(np.arange(120), (2, 1))
    keypoints[:, 80] = 0
    repeated, _ = tell_repetitions(data, distances, keypoints, 1.0, np.zeros(4, bool))
    assert repeated.tolist() == [False, False, True, False]


@pytest.mark.parametrize("axis", [0, 1])
def test_neighbours_are_asked_only_where_others_are_within_bounds(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data, distances, asked = scattered(), np.full((90, 2), 5.0), []
    distances[:60, 0] = distances[60:, 1] = 0.5
    monkeypatch.setattr(refinement, "own_share", lambda *given: asked.append(given) or 0.0)
    shared = np.tile(np.arange(90) % 60, (2, 1))
    assert tell_repetitions(data, distances, shared, 1.0, ~NONE)[0].tolist() == [False, True]
    assert len(asked) == 1
    data[60:, [axis, 2 + axis]] += 1000.0
    assert not tell_repetitions(data, distances, shared, 1.0, ~NONE)[0].any()
    assert len(asked) == 1


def test_what_is_interleaved_in_one_image_alone_goes_too() -> None:
    data, distances, shared = scattered(), np.full((90, 2), 5.0), OWN_KEYPOINTS.copy()
    distances[:60, 0] = distances[60:, 1] = 0.5
    shared[:, 60:] = np.arange(30)
    data[60:, 2:] += 1000.0
    assert tell_repetitions(data, distances, shared, 1.0, NONE)[0].tolist() == [False, True]


def test_planes_are_mixed_where_the_smaller_lies_among_the_larger() -> None:
    data, distances, planes = scattered(), np.full((90, 3), 5.0), np.ones(3, bool)
    distances[:50, 0] = distances[50:70, 1] = distances[70:, 2] = 0.5
    distances[:50, 1] = 0.5  # they belong to the first structure that holds them

    def mixed() -> np.ndarray:
        repeated, told = tell_repetitions(data, distances, OWN_KEYPOINTS, 1.0, planes)
        assert not repeated.any()
        return told

    every = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(mixed(), every)
    planes[1] = False
    np.testing.assert_array_equal(mixed(), every & np.outer(planes, planes))
    planes[1] = True
    data[70:] += 1000.0
    np.testing.assert_array_equal(mixed(), every & (np.arange(3) < 2) & (np.arange(3) < 2)[:, None])
    distances[51:70, 1] = 5.0
    assert not mixed().any()  # one match lies nowhere


def test_a_large_plane_around_a_small_one_is_not_mixed_with_it() -> None:
    data, distances = np.random.default_rng(0).uniform(0, 100, (90, 4)), np.full((90, 2), 5.0)
    data[60:] = 48.0 + 0.04 * data[60:]
    distances[:60, 0] = distances[60:, 1] = 0.5
    assert not tell_repetitions(data, distances, OWN_KEYPOINTS, 1.0, ~NONE)[1].any()


def test_nothing_lies_among_nothing() -> None:
    nobody = np.zeros(90, bool)
    assert not lie_among(scattered(), nobody, nobody, 1.0)


def test_one_match_is_not_judged_and_the_strongest_structure_never_goes() -> None:
    distances = np.full((90, 2), 5.0)
    distances[:89, 0], distances[89, 1] = 0.5, 0.5
    assert not tell_repetitions(scattered(), distances, OWN_KEYPOINTS, 1.0, NONE)[0].any()
    assert not tell_repetitions(scattered(), np.full((90, 2), 5.0), OWN_KEYPOINTS, 1.0, NONE)[0].any()
    everything = np.full((90, 3), 0.5)
    assert tell_repetitions(scattered(), everything, OWN_KEYPOINTS, 1.0, np.zeros(3, bool))[0].tolist() == [
        False,
        False,
        False,
    ]
