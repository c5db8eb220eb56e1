"""Keypoints and matches in every form OpenCV users hold them."""

from typing import Any

import cv2
import numpy as np
import pandas as pd
import pytest

from ruzhash_cv import as_correspondences, draw_matches, filter_matches, filter_points, select_matches

KP1 = np.array([[0.0, 1.0], [5.0, 6.0], [7.0, 8.0]])
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
        KP1, KP1.tolist(), KP1.astype(np.uint8), KP1[:, None].astype(np.float32), KP1[None], memoryview(KP1), list(np.ma.array(KP1)),
        KEYPOINTS, tuple(KEYPOINTS), objects(KEYPOINTS), list(KP1[:, None].astype(np.float32)),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "matches",
    [
        INDICES, np.array(INDICES), np.array(INDICES, np.uint8), np.array(INDICES)[None], [tuple(pair) for pair in INDICES],
        memoryview(np.array(INDICES)), COLUMNS, tuple(map(memoryview, COLUMNS)),
        FLAT, tuple(FLAT), objects(FLAT), KNN, np.array(KNN, object), [(match,) for match in FLAT],
        [[match, cv2.DMatch(0, 0, 9.0)] for match in FLAT],
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
    ("matches", "rows1", "rows2"),
    [
        *((matches, [0, 3, 1], [1, 2, 1]) for matches in (
            MASKED, np.ma.stack(MASKED), tuple(np.ma.stack(MASKED).T), [[0, 1], [2, np.nan], [1, 1]],
            pd.DataFrame([[0, 1], [2, pd.NA], [1, 1]], dtype="Int64"),
            np.ma.masked_equal([[0, 1], [2, 10**6], [1, 1]], 10**6),  # what a mask hides need not be an index
        )),
        # SuperGlue's matches0 give a row for each keypoint.
        *((matches0, [0, 3, 2], [1, 2, 0]) for matches0 in (np.array([1, -1, 0], np.int16), [1, -1, 0], np.array([[1, -1, 0]]))),
        ([(), (cv2.DMatch(1, 1, 0.5),), (cv2.DMatch(0, 1, 0.5),)], [3, 1, 0], [2, 1, 1]),
    ],
)  # fmt: skip
def test_a_masked_or_missing_index_or_neighbour_is_a_row_of_nan(matches: Any, rows1: Any, rows2: Any) -> None:
    pairs = as_correspondences(KP1[None], KP2[None], matches)
    np.testing.assert_array_equal(pairs.points1, np.vstack([KP1, NONE])[rows1])
    np.testing.assert_array_equal(pairs.points2, np.vstack([KP2, NONE])[rows2])
    assert repr(pairs) == "<Correspondences: 3 rows, 2 with a match>"


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


def test_more_than_two_neighbours_without_a_ratio_are_refused_and_a_result_stands_for_the_best_of_each_row() -> None:
    rows = [(cv2.DMatch(0, 0, 1.0), cv2.DMatch(0, 1, 2.0), cv2.DMatch(0, 1, 3.0)), (cv2.DMatch(1, 1, 1.0),), ()]
    for call in (as_correspondences, filter_points, filter_matches):
        for form in (rows, objects(rows)):
            with pytest.raises(
                ValueError, match=r"at most 2 neighbours per row, got 3: give `ratio`, or, .* a flat list"
            ):
                call(KP1, KP2, form)
    flat = [match for row in rows for match in row]
    assert len(as_correspondences(KP1, KP2, flat)) == 4
    assert as_correspondences(KP1, KP2, rows, ratio=0.8).points2[0].tolist() == KP2[0].tolist()
    image = np.zeros((100, 100, 3), np.uint8)
    assert draw_matches(image, KP1, image, KP2, rows, [True, True, False]).any()
    assert [match.trainIdx for match in select_matches(rows, [True, True, False])] == [0, 1]


def test_an_index_that_no_signed_integer_holds_is_named() -> None:
    for largest in (2**64 - 1, 2**63):
        with pytest.raises(IndexError, match=f"`matches` must hold indices of keypoints, got {largest}"):
            as_correspondences(KP1, KP2, np.array([[0, largest]], np.uint64))


def test_matches_of_one_train_image_are_looked_up_whatever_its_number() -> None:
    """A matcher that holds several images numbers them; a user passes the matches and the keypoints of one."""
    of_third = [cv2.DMatch(match.queryIdx, match.trainIdx, 2, match.distance) for match in FLAT]
    expected = as_correspondences(KP1, KP2, FLAT)
    assert as_correspondences(KP1, KP2, of_third) == as_correspondences(KP1, KP2, [of_third[0], *FLAT[1:]]) == expected


@pytest.mark.parametrize("matches", [[], (), np.zeros((0, 2), int), np.zeros((0, 2)), np.zeros((1, 0), int)])
@pytest.mark.parametrize("kp", [(), [], np.zeros(0), np.zeros((0, 2)), np.zeros((1, 0, 2))])
def test_no_matches_give_no_correspondences(matches: Any, kp: Any) -> None:
    pairs = as_correspondences(kp, kp, matches)
    assert pairs.points1.shape == pairs.points2.shape == (0, 2)


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
