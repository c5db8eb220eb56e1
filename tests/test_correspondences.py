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
COLUMNS = tuple(np.transpose(INDICES))
NONE = [np.nan] * 2


def objects(items: Any) -> np.ndarray:
    array = np.empty(len(items), object)
    array[:] = items
    return array


KEYPOINTS = [cv2.KeyPoint(float(x), float(y), 3.0) for x, y in KP1]
FLAT = [cv2.DMatch(i, j, 0.5 + row) for row, (i, j) in enumerate(INDICES)]
KNN = [(match, cv2.DMatch(0, 0, 9.0)) for match in FLAT]
MASKED = [np.ma.array([0, 1]), np.ma.array([2, 0], mask=[False, True]), np.ma.array([1, 1])]


@pytest.mark.parametrize(
    "kp",
    [
        KP1, KP1.tolist(), KP1[:, None].astype(np.float32), KP1[None], memoryview(KP1), list(np.ma.array(KP1)),
        KEYPOINTS, tuple(KEYPOINTS), objects(KEYPOINTS),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "matches",
    [
        INDICES, np.array(INDICES), np.array(INDICES, np.uint8), np.array(INDICES)[None], [tuple(pair) for pair in INDICES],
        memoryview(np.array(INDICES)), COLUMNS, tuple(map(memoryview, COLUMNS)),
        FLAT, tuple(FLAT), objects(FLAT), KNN, np.array(KNN, object), [(match,) for match in FLAT],
        [[match, cv2.DMatch(0, 0, 9.0), cv2.DMatch(0, 0, 9.5)] for match in FLAT],
    ],
)  # fmt: skip
def test_every_form_gives_the_same_points(kp: Any, matches: Any) -> None:
    pairs = as_correspondences(kp, KP2, matches)
    np.testing.assert_array_equal(pairs.points1, KP1[[0, 2, 1]])
    np.testing.assert_array_equal(pairs.points2, KP2[[1, 0, 1]])
    assert pairs.points1.dtype == pairs.points2.dtype == np.float64
    assert pairs.distances is None or pairs.distances.tolist() == [0.5, 1.5, 2.5]


def test_two_pairs_as_a_tuple_of_columns_are_not_taken_for_rows() -> None:
    columns = np.nonzero([[False, True], [False, False], [True, False]])
    assert as_correspondences(KP1, KP2, columns) == as_correspondences(KP1, KP2, [[0, 1], [2, 0]])
    assert as_correspondences(KP1, KP2, ((0, 1), (2, 0))) == as_correspondences(KP1, KP2, [[0, 1], [2, 0]])


@pytest.mark.parametrize(
    "matches", [MASKED, np.ma.stack(MASKED), tuple(np.ma.stack(MASKED).T), [[0, 1], [2, np.nan], [1, 1]]]
)
def test_a_masked_or_missing_index_is_no_match(matches: Any) -> None:
    pairs = as_correspondences(KP1, KP2, matches)
    np.testing.assert_array_equal(pairs.points1, [KP1[0], NONE, KP1[1]])
    np.testing.assert_array_equal(pairs.points2, [KP2[1], NONE, KP2[1]])


@pytest.mark.parametrize("matches0", [np.array([1, -1, 0], np.int16), [1, -1, 0], np.array([[1, -1, 0]])])
def test_superglue_s_matches0_give_a_row_for_each_keypoint(matches0: Any) -> None:
    pairs = as_correspondences(KP1[None], KP2[None], matches0)
    np.testing.assert_array_equal(pairs.points1, [KP1[0], NONE, KP1[2]])
    np.testing.assert_array_equal(pairs.points2, [KP2[1], NONE, KP2[0]])


def test_a_row_without_neighbour_is_a_row_of_nan() -> None:
    pairs = as_correspondences(KP1, KP2, [(), (cv2.DMatch(1, 1, 0.5),)])
    np.testing.assert_array_equal(pairs.points1, [NONE, KP1[1]])
    np.testing.assert_array_equal(pairs.points2, [NONE, KP2[1]])
    assert repr(pairs) == "<Correspondences: 2 rows, 1 with a match>"


def test_ratio_keeps_rows_whose_best_is_clearly_better_than_their_second() -> None:
    rows = [
        (cv2.DMatch(0, 0, 7.9), cv2.DMatch(0, 1, 10.0)),
        (cv2.DMatch(1, 0, 8.0), cv2.DMatch(1, 1, 10.0)),  # not below
        (cv2.DMatch(2, 0, 1.0),),  # cannot be tested
        (),
        (cv2.DMatch(2, 1, 0.0), cv2.DMatch(2, 0, 0.0)),  # two perfect neighbours
        (cv2.DMatch(2, 1, 1.0), cv2.DMatch(2, 0, 2.0), cv2.DMatch(2, 0, 2.0)),
    ]
    for form in (rows, objects(rows)):
        pairs = as_correspondences(KP1, KP2, form, ratio=0.8)
        assert np.isfinite(pairs.points1[:, 0]).tolist() == [True, False, False, False, False, True]
    # A single keypoint in the second image leaves nothing to test.
    rows = [(cv2.DMatch(0, 0, 1.0),), (cv2.DMatch(1, 0, 1.0),)]
    assert np.isnan(as_correspondences(KP1, KP2[:1], rows, ratio=0.8).points1).all()


@pytest.mark.parametrize("matches", [[], (), np.zeros((0, 2), int), np.zeros((0, 2)), np.zeros((1, 0), int)])
@pytest.mark.parametrize("kp", [(), [], np.zeros((0, 2)), np.zeros((1, 0, 2))])
def test_no_matches_give_no_correspondences(matches: Any, kp: Any) -> None:
    pairs = as_correspondences(kp, kp, matches)
    assert pairs.points1.shape == pairs.points2.shape == (0, 2)


@pytest.mark.parametrize(
    ("matches", "message"),
    [
        ([[0, 1], [3, 0]], r"`matches\[1\]` has queryIdx 3, but `kp1` has 3 keypoints$"),
        ([[0, 1], [0, 2]], r"`matches\[1\]` has trainIdx 2, but `kp2` has 2 keypoints; are the images exchanged\?$"),
        ([[0, -1]], r"`matches\[0\]` has trainIdx a negative index, but `kp2` has 2 keypoints$"),
        ([-1, -2, 0], r"`matches\[1\]` has trainIdx a negative index"),
        ([cv2.DMatch(0, 1, 0.5), cv2.DMatch(9, 0, 0.5)], r"`matches\[1\]` has queryIdx 9"),
        ([cv2.DMatch()], r"`matches\[0\]` has queryIdx a negative index"),
        ([(), (cv2.DMatch(0, 7, 1.0),)], r"`matches\[1\]` has trainIdx 7"),
    ],
)
def test_an_index_out_of_range_is_named(matches: Any, message: str) -> None:
    with pytest.raises(IndexError, match=message):
        as_correspondences(KP1, KP2, matches)


@pytest.mark.parametrize(
    ("matches", "options", "error", "message"),
    [
        (5, {}, TypeError, "`matches` must be a sequence, got int"),
        ({1, 2}, {}, TypeError, "`matches` must be a sequence, got set"),
        (np.zeros((2, 3), int), {}, ValueError, r"index pairs of shape \(n, 2\) or one .*, got \(2, 3\)"),
        (np.zeros((2, 3, 2), int), {}, ValueError, r"index pairs of shape \(n, 2\) or one .*, got \(2, 3, 2\)"),
        (np.zeros(4, int), {}, ValueError, r"one index for each of the 3 keypoints of `kp1`, got \(4,\)"),
        ((COLUMNS[0], COLUMNS[1][:2]), {}, ValueError, "index arrays of `matches` must have the same length, got 3 and 2"),
        ([True, False, True], {}, TypeError, "`matches` must hold .* or integer indices, got a mask"),
        ([None, None], {}, TypeError, "`matches` must hold DMatch, .* or index pairs, got list of NoneType"),
        ([[0.0, 1.0]], {}, TypeError, "integer index pairs, got dtype float64"),
        ([*FLAT, KNN[0]], {}, TypeError, "got a mixture"),
        (FLAT, {"ratio": 0.8}, ValueError, "`ratio` needs knnMatch output with k >= 2, got a flat sequence"),
        (INDICES, {"ratio": 0.8}, ValueError, "`ratio` needs knnMatch output with k >= 2, got an index array"),
        ([(match,) for match in FLAT], {"ratio": 0.8}, ValueError, "with k >= 2, got rows of one DMatch"),
        (INDICES, {"ratio": 0.0}, ValueError, "`ratio` must lie between 0 and 1, got 0.0"),
        (INDICES, {"ratio": 1.2}, ValueError, "`ratio` must lie between 0 and 1, got 1.2"),
        (INDICES, {"ratio": "0.8"}, TypeError, "`ratio` must be a number, got '0.8'"),
        (INDICES, {"ration": 0.8}, TypeError, "ration"),
    ],
)  # fmt: skip
def test_bad_matches_are_named(matches: Any, options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_correspondences(KP1, KP2, matches, **options)


@pytest.mark.parametrize(
    ("kp", "error", "message"),
    [
        (None, TypeError, "`kp1` must be a sequence of cv2.KeyPoint or an array .* got None"),
        (7, TypeError, "`kp1` must be a sequence of cv2.KeyPoint or an array"),
        ({1, 2}, TypeError, r"`kp1` must be a sequence of cv2.KeyPoint or an array of shape \(n, 2\), got set"),
        (np.stack([KP1, KP1]), ValueError, r"`kp1` must have shape \(n, 2\), got \(2, 3, 2\)"),
        (KP1.T, ValueError, r"`kp1` must have shape \(n, 2\), got \(2, 3\)"),
        ([[0, 1], [2]], ValueError, r"`kp1` must have shape \(n, 2\), got a ragged sequence"),
        ([*KEYPOINTS, None], TypeError, "`kp1` must hold only cv2.KeyPoint"),
        (np.array([["a", "b"]]), TypeError, "`kp1` must be an array of real numbers, got dtype"),
        (KP1 + 1j, TypeError, "`kp1` must be an array of real numbers, got dtype complex128"),
    ],
)
def test_bad_keypoints_are_named(kp: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        as_correspondences(kp, KP2, INDICES)


def test_inputs_stay_as_they_were() -> None:
    indices, kp = np.array(INDICES), KP1.copy()
    indices.flags.writeable = kp.flags.writeable = False
    as_correspondences(kp, kp, indices).points1[:] = 0
    np.testing.assert_array_equal(kp, KP1)


def test_selected_matches_are_the_kept_ones_in_order() -> None:
    for mask in ([True, False, True], np.array([[1], [0], [1]], np.uint8)):
        assert select_matches(FLAT, mask) == [FLAT[0], FLAT[2]]
        assert select_matches([(FLAT[0], FLAT[1]), (), (FLAT[2],)], mask) == [FLAT[0], FLAT[2]]
    assert select_matches([], []) == []
    with pytest.raises(ValueError, match=r"`inlier_mask` must have one entry per match, shape \(3,\), got \(2,\)"):
        select_matches(FLAT, [True, False])
