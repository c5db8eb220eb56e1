"""Keypoints and matches in every form OpenCV users hold them."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv import as_correspondences, select_matches

KP1 = np.array([[0.0, 1.0], [5.0, 6.0], [7.5, 8.0]])
KP2 = np.array([[2.0, 2.0], [9.0, 9.5]])
INDICES = [[0, 1], [2, 0], [1, 1]]


def keypoints(points: np.ndarray) -> tuple[cv2.KeyPoint, ...]:
    return tuple(cv2.KeyPoint(float(x), float(y), 3.0) for x, y in points)


def flat(indices: Any = INDICES) -> list[cv2.DMatch]:
    return [cv2.DMatch(i, j, 0.5 + row) for row, (i, j) in enumerate(indices)]


@pytest.mark.parametrize(
    "kp", [KP1, KP1.tolist(), keypoints(KP1), list(keypoints(KP1)), KP1[:, None].astype(np.float32)]
)
@pytest.mark.parametrize(
    "matches",
    [
        INDICES,
        np.array(INDICES),
        np.array(INDICES, np.uint8),
        [tuple(pair) for pair in INDICES],
        flat(),
        tuple(flat()),
        [(match,) for match in flat()],
        [[match, cv2.DMatch(0, 0, 9.0)] for match in flat()],
        [(match, cv2.DMatch(0, 0, 9.0), cv2.DMatch(0, 0, 9.5)) for match in flat()],
    ],
)
def test_every_form_gives_the_same_points(kp: Any, matches: Any) -> None:
    pairs = as_correspondences(kp, KP2, matches)
    assert len(pairs) == 3
    np.testing.assert_array_equal(pairs.points1, KP1[[0, 2, 1]])
    np.testing.assert_array_equal(pairs.points2, KP2[[1, 0, 1]])
    assert pairs.points1.dtype == pairs.points2.dtype == np.float64


def test_distances_come_along_where_there_are_any() -> None:
    assert as_correspondences(KP1, KP2, INDICES).distances is None
    distances = as_correspondences(KP1, KP2, flat()).distances
    assert distances is not None
    assert distances.tolist() == [0.5, 1.5, 2.5]


def test_a_row_without_neighbour_is_a_row_of_nan() -> None:
    pairs = as_correspondences(KP1, KP2, [(), (cv2.DMatch(1, 1, 0.5),)])
    assert np.isnan(pairs.points1[0]).all()
    assert np.isnan(pairs.points2[0]).all()
    assert pairs.points1[1].tolist() == [5, 6]
    assert len(as_correspondences(KP1, KP2, [(), ()])) == 2


def test_ratio_keeps_rows_whose_best_is_clearly_better_than_their_second() -> None:
    rows = [
        (cv2.DMatch(0, 0, 7.9), cv2.DMatch(0, 1, 10.0)),
        (cv2.DMatch(1, 0, 8.0), cv2.DMatch(1, 1, 10.0)),  # not below
        (cv2.DMatch(2, 0, 1.0),),  # cannot be tested
        (),
        (cv2.DMatch(2, 1, 0.0), cv2.DMatch(2, 0, 0.0)),  # two perfect neighbours
        (cv2.DMatch(2, 1, 1.0), cv2.DMatch(2, 0, 2.0), cv2.DMatch(2, 0, 2.0)),
    ]
    pairs = as_correspondences(KP1, KP2, rows, ratio=0.8)
    assert np.isfinite(pairs.points1[:, 0]).tolist() == [True, False, False, False, False, True]


def test_one_keypoint_in_the_second_image_leaves_nothing_to_test() -> None:
    rows = [(cv2.DMatch(0, 0, 1.0),), (cv2.DMatch(1, 0, 1.0),)]
    assert np.isnan(as_correspondences(KP1, KP2[:1], rows, ratio=0.8).points1).all()


def test_correspondences_are_shown_in_one_line() -> None:
    pairs = as_correspondences(KP1, KP2, [(), *((match,) for match in flat())])
    assert repr(pairs) == "<Correspondences: 4 rows, 3 with a match>"


@pytest.mark.parametrize("matches", [[], (), np.zeros((0, 2), int), np.zeros((0, 2))])
@pytest.mark.parametrize("kp", [KP1, (), [], np.zeros((0, 2)), None])
def test_no_matches_give_no_correspondences(matches: Any, kp: Any) -> None:
    if kp is None:
        with pytest.raises(TypeError, match=r"`kp1` must be .* got None"):
            as_correspondences(kp, KP2, matches)
        return
    pairs = as_correspondences(kp, kp, matches)
    assert pairs.points1.shape == pairs.points2.shape == (0, 2)


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([[0, 1], [3, 0]], r"`matches\[1\]` has queryIdx 3, but `kp1` has 3 keypoints"),
        ([[0, 1], [0, 2]], r"`matches\[1\]` has trainIdx 2, but `kp2` has 2 keypoints"),
        ([[0, -1]], r"`matches\[0\]` has trainIdx a negative index, but `kp2` has 2 keypoints"),
        (flat([[0, 1], [9, 0]]), r"`matches\[1\]` has queryIdx 9"),
        ([cv2.DMatch()], r"`matches\[0\]` has queryIdx a negative index"),
        ([(), (cv2.DMatch(0, 7, 1.0),)], r"`matches\[1\]` has trainIdx 7"),
    ],
)
def test_an_index_out_of_range_is_named(matches: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        as_correspondences(KP1, KP2, matches)


def test_keypoints_given_the_wrong_way_round_are_asked_about() -> None:
    matches = [[0, 1], [2, 0]]
    as_correspondences(KP1, KP2, matches)
    with pytest.raises(IndexError, match=r"`kp1` has 2 keypoints; are the images exchanged\?"):
        as_correspondences(KP2, KP1, matches)
    with pytest.raises(IndexError, match=r"`kp1` has 3 keypoints$"):
        as_correspondences(KP1, KP2, [[0, 1], [3, 0]])


@pytest.mark.parametrize(
    ("kp", "matches", "options", "error", "message"),
    [
        (KP1, 5, {}, TypeError, "`matches` must be a sequence, got int"),
        (KP1, np.zeros((2, 3), int), {}, ValueError, r"index pairs of shape \(n, 2\) or one .*, got \(2, 3\)"),
        (KP1, np.zeros((2, 3, 2), int), {}, ValueError, r"index pairs of shape \(n, 2\) or one .*, got \(2, 3, 2\)"),
        (KP1, np.zeros(4, int), {}, ValueError, r"one index for each of the 3 keypoints of `kp1`, got \(4,\)"),
        (KP1, [-1, -2, 0], {}, IndexError, r"`matches\[1\]` has trainIdx a negative index"),
        (KP1, [True, False, True], {}, TypeError, "`matches` must hold .* or integer indices, got a mask"),
        (np.stack([KP1, KP1]), INDICES, {}, ValueError, r"`kp1` must have shape \(n, 2\), got \(2, 3, 2\)"),
        (KP1, {1, 2}, {}, TypeError, "`matches` must be a sequence, got set"),
        (
            KP1,
            [None, None],
            {},
            TypeError,
            "`matches` must hold DMatch, knnMatch rows or index pairs, got list of NoneType",
        ),
        (
            {1, 2},
            INDICES,
            {},
            TypeError,
            r"`kp1` must be a sequence of cv2.KeyPoint or an array of shape \(n, 2\), got set",
        ),
        (KP1, [[0.0, 1.0]], {}, TypeError, "integer index pairs, got dtype float64"),
        (KP1, [*flat(), (cv2.DMatch(0, 0, 1.0),)], {}, TypeError, "got a mixture"),
        (KP1, flat(), {"ratio": 0.8}, ValueError, "`ratio` needs knnMatch output with k >= 2, got a flat sequence"),
        (KP1, INDICES, {"ratio": 0.8}, ValueError, "`ratio` needs knnMatch output with k >= 2, got an index array"),
        (KP1, [(match,) for match in flat()], {"ratio": 0.8}, ValueError, "with k >= 2, got rows of one DMatch"),
        (KP1, INDICES, {"ratio": 0.0}, ValueError, "`ratio` must lie between 0 and 1, got 0.0"),
        (KP1, INDICES, {"ratio": 1.2}, ValueError, "`ratio` must lie between 0 and 1, got 1.2"),
        (KP1, INDICES, {"ratio": "0.8"}, TypeError, "`ratio` must be a number, got '0.8'"),
        (KP1, INDICES, {"ration": 0.8}, TypeError, "ration"),
        (KP1.T, INDICES, {}, ValueError, r"`kp1` must have shape \(n, 2\), got \(2, 3\)"),
        ([[0, 1], [2]], INDICES, {}, ValueError, r"`kp1` must have shape \(n, 2\), got a ragged sequence"),
        (7, INDICES, {}, TypeError, "`kp1` must be a sequence of cv2.KeyPoint or an array"),
        ([*keypoints(KP1), None], INDICES, {}, TypeError, "`kp1` must hold only cv2.KeyPoint"),
        (np.array([["a", "b"]]), INDICES, {}, TypeError, "`kp1` must be an array of real numbers, got dtype"),
        (KP1 + 1j, INDICES, {}, TypeError, "`kp1` must be an array of real numbers, got dtype complex128"),
    ],
)
def test_bad_arguments_are_named(
    kp: Any, matches: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        as_correspondences(kp, KP2, matches, **options)


@pytest.mark.parametrize("batch", [False, True])
def test_superglue_s_matches0_give_a_row_for_each_keypoint(batch: bool) -> None:
    matches0 = np.array([1, -1, 0], np.int16)
    kp1, kp2, matches = (each[None] if batch else each for each in (KP1, KP2, matches0))
    pairs = as_correspondences(kp1, kp2, matches)
    assert len(pairs) == 3
    np.testing.assert_array_equal(pairs.points1, [KP1[0], [np.nan] * 2, KP1[2]])
    np.testing.assert_array_equal(pairs.points2, [KP2[1], [np.nan] * 2, KP2[0]])
    assert as_correspondences(KP1, KP2, matches0.tolist()) == pairs


def test_a_batch_of_one_pair_is_that_pair() -> None:
    batch = as_correspondences(KP1[None], KP2[None], np.array(INDICES)[None])
    assert batch == as_correspondences(KP1, KP2, INDICES)
    nothing = as_correspondences(np.zeros((1, 0, 2)), np.zeros((1, 0, 2)), np.zeros((1, 0, 2), int))
    assert len(nothing) == len(as_correspondences(np.zeros((1, 0, 2)), KP2[None], np.zeros((1, 0), int))) == 0


def test_inputs_stay_as_they_were() -> None:
    indices, kp = np.array(INDICES), KP1.copy()
    indices.flags.writeable = kp.flags.writeable = False
    pairs = as_correspondences(kp, kp, indices)
    pairs.points1[:] = 0
    np.testing.assert_array_equal(kp, KP1)


def test_selected_matches_are_the_kept_ones_in_order() -> None:
    matches = flat()
    for mask in ([True, False, True], np.array([[1], [0], [1]], np.uint8)):
        assert select_matches(matches, mask) == [matches[0], matches[2]]
    knn = [(matches[0], matches[1]), (), (matches[2],)]
    assert select_matches(knn, [True, False, True]) == [matches[0], matches[2]]
    assert select_matches([], []) == []
    with pytest.raises(ValueError, match=r"`inlier_mask` must have one entry per match, shape \(3,\), got \(2,\)"):
        select_matches(matches, [True, False])


def test_an_array_of_keypoints_is_as_good_as_a_list() -> None:
    keypoints = [cv2.KeyPoint(float(x), float(y), 1) for x, y in KP1]
    array = np.empty(len(keypoints), object)
    array[:] = keypoints
    for kp1 in (keypoints, array):
        np.testing.assert_array_equal(as_correspondences(kp1, kp1, [[0, 0]]).points1, KP1[:1])


def test_matches_as_an_object_array_are_as_good_as_a_list() -> None:
    knn = [(cv2.DMatch(0, 1, 0.5), cv2.DMatch(0, 0, 0.9)), (cv2.DMatch(1, 0, 0.5), cv2.DMatch(1, 1, 0.55))]
    for matches in (knn, [row[0] for row in knn]):
        for ratio in (None, 0.8) if matches is knn else (None,):
            expected = as_correspondences(KP1, KP1, matches, ratio=ratio)
            assert as_correspondences(KP1, KP1, np.array(matches, object), ratio=ratio) == expected
