"""Kept and flagged matches in two colours."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from drawn_pairs import HEIGHT, KP1, KP2, WIDTH, greenness, grey_image, on_line, pairs, redness

from ruzhash_cv.datasets import AdelaideScene
from ruzhash_cv.drawing import draw_matches, draw_scores
from ruzhash_cv.filtering import filter_points


def crossing(mask: Any, **options: Any) -> np.ndarray:
    image = grey_image()
    return draw_matches(image, KP1, image, KP2, pairs(2), mask, **options)


def test_kept_matches_are_green_and_flagged_ones_red() -> None:
    picture = crossing([True, False])
    assert greenness(on_line(picture, (100, 50), (700, 250))).min() > 40
    assert redness(on_line(picture, (100, 250), (700, 50))).min() > 40


@pytest.mark.parametrize("mask", [[True, False], [False, True]])
def test_flagged_matches_lie_on_as_many_kept_ones(mask: list[bool]) -> None:
    assert redness(crossing(mask)[150:151, 400:401]).item() > 40


def test_picture_holds_both_images_and_a_caption() -> None:
    image = grey_image()
    picture = draw_matches(image, KP1, image, KP2, pairs(2), [True, True])
    assert picture.dtype == np.uint8
    assert picture.shape[1:] == (2 * WIDTH, 3)
    assert HEIGHT < picture.shape[0] < HEIGHT + 60
    assert picture.flags.writeable


@pytest.mark.parametrize(
    "mask",
    [
        [True, False],
        np.array([True, False]),
        np.array([[True], [False]]),
        np.array([1, 0], np.uint8),
        np.array([[255], [0]], np.uint8),
        SimpleNamespace(inlier_mask=np.array([True, False])),
    ],
)
def test_every_form_of_mask_gives_the_same_picture(mask: Any) -> None:
    np.testing.assert_array_equal(crossing(mask), crossing([True, False]))


def test_every_form_of_matches_gives_the_same_picture() -> None:
    image = grey_image()
    kp1: Any
    kp2: Any
    kp1, kp2 = ([cv2.KeyPoint(float(x), float(y), 1) for x, y in points] for points in (KP1, KP2))
    flat = [cv2.DMatch(0, 0, 1.0), cv2.DMatch(1, 1, 1.0)]
    knn = [(flat[0], cv2.DMatch(0, 1, 9.0)), (flat[1],)]
    for matches in (flat, tuple(flat), knn):
        picture = draw_matches(image, kp1, image, kp2, matches, [True, False])
        np.testing.assert_array_equal(picture, crossing([True, False]))


def test_every_form_of_image_gives_the_same_picture() -> None:
    grey = grey_image()
    bgr, bgra = cv2.cvtColor(grey, cv2.COLOR_GRAY2BGR), cv2.cvtColor(grey, cv2.COLOR_GRAY2BGRA)
    read_only = bgr.copy()
    read_only.setflags(write=False)
    strided = np.dstack([bgr, bgr])[..., ::2]
    for image in (grey[..., None], bgr, bgra, read_only, strided):
        np.testing.assert_array_equal(
            draw_matches(image, KP1, grey, KP2, pairs(2), [True, False]), crossing([True, False])
        )


def test_images_are_left_as_they_were() -> None:
    image = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    before = image.copy()
    draw_matches(image, KP1, image, KP2, pairs(2), [True, False])
    np.testing.assert_array_equal(image, before)


def test_images_of_different_size_stand_at_one_height_and_the_lines_fit_both() -> None:
    small, large = grey_image(WIDTH // 2, HEIGHT // 2), grey_image()
    picture = draw_matches(small, KP1 / 2 - 0.25, large, KP2, pairs(2), [True, False])
    np.testing.assert_array_equal(picture, crossing([True, False]))


def test_large_photographs_are_shrunk_and_the_lines_with_them() -> None:
    image = np.full((3000, 4000), 128, np.uint8)
    picture = draw_matches(image, KP1 * 10, image, KP2 * 10, pairs(2), [True, False])
    assert picture.shape[1] == 2400
    assert greenness(on_line(picture, (300, 150), (2100, 750))).min() > 40
    assert redness(on_line(picture, (300, 750), (2100, 150))).min() > 40
    assert draw_matches(image, KP1, image, KP2, pairs(2), [True, False], max_width=900).shape[1] <= 900


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 9), (30, 20), (150, 3)])
@pytest.mark.parametrize("max_width", [240, 2400, None])
def test_tiny_images_give_a_picture_wide_enough_for_its_caption(width: int, height: int, max_width: int | None) -> None:
    image = grey_image(width, height)
    for picture in (
        draw_matches(image, [[0, 0]], image, [[0, 0]], [[0, 0]], [True], max_width=max_width),
        draw_scores(image, [[0, 0]], image, [[0, 0]], [[0, 0]], [0.5], max_width=max_width),
    ):
        assert 240 <= picture.shape[1] <= 640
        assert picture.shape[0] > 30


def test_two_thousand_kept_matches_leave_the_photograph_visible() -> None:
    rng = np.random.default_rng(0)
    checks = np.kron(np.indices((30, 40)).sum(0) % 2, np.ones((20, 20))).astype(np.uint8) * 255
    points = rng.uniform([0, 0], [800, 600], (2000, 2))
    picture = draw_matches(checks, points, checks, points, pairs(2000), np.ones(2000, bool))
    plain = draw_matches(checks, points[:0], checks, points[:0], [], [])
    shown, contrast = picture[:600].mean(2).ravel(), plain[:600].mean(2).ravel()
    assert np.corrcoef(shown, contrast)[0, 1] > 0.7


def test_one_flagged_match_is_seen_among_two_thousand_kept() -> None:
    rng = np.random.default_rng(0)
    image = grey_image(800, 600)
    points1, points2 = rng.uniform([0, 0], [800, 600], (2, 2001, 2))
    points1[1000], points2[1000] = (50, 50), (750, 550)
    mask = np.ones(2001, bool)
    mask[1000] = False
    picture = draw_matches(image, points1, image, points2, pairs(2001), mask)
    assert redness(on_line(picture, (50, 50), (1550, 550))).min() > 40


def test_kept_and_flagged_differ_in_brightness_too() -> None:
    """For readers who do not tell red from green."""
    kept, flagged = (cv2.cvtColor(crossing(mask), cv2.COLOR_BGR2GRAY) for mask in ([True] * 2, [False] * 2))
    light, dark = on_line(kept, (100, 50), (700, 250)), on_line(flagged, (100, 50), (700, 250))
    assert light.min() > dark.max() + 40


def test_positions_that_are_not_finite_are_left_out() -> None:
    image = grey_image()
    broken = KP1.copy()
    broken[1] = [np.nan, np.inf]
    picture = draw_matches(image, broken, image, KP2, pairs(2), [True, False])
    assert redness(picture[:HEIGHT]).max() < 10
    np.testing.assert_array_equal(picture, draw_matches(image, KP1[:1], image, KP2[:1], pairs(1), [True]))


def test_rows_without_a_match_and_rows_that_fail_the_ratio_are_left_out() -> None:
    image = grey_image()
    knn = [
        (cv2.DMatch(0, 0, 1.0), cv2.DMatch(0, 1, 9.0)),
        (),
        (cv2.DMatch(1, 1, 8.0), cv2.DMatch(1, 0, 9.0)),
    ]
    mask = [True, False, False]
    picture = draw_matches(image, KP1, image, KP2, knn, mask, ratio=0.8)
    assert redness(picture[:HEIGHT]).max() < 10
    assert redness(draw_matches(image, KP1, image, KP2, knn, mask)[:HEIGHT]).max() > 40


def test_a_result_is_drawn_without_the_ratio_that_it_was_made_with() -> None:
    knn = [(cv2.DMatch(0, 0, 1.0), cv2.DMatch(0, 1, 9.0)), (), (cv2.DMatch(1, 1, 8.0), cv2.DMatch(1, 0, 9.0))]
    image, result = grey_image(), filter_points(KP1, KP2, knn, ratio=0.8)
    given = image, KP1, image, KP2, knn
    np.testing.assert_array_equal(draw_matches(*given, result), draw_matches(*given, result.inlier_mask, ratio=0.8))
    np.testing.assert_array_equal(draw_scores(*given, result), draw_scores(*given, result.anomaly_scores, ratio=0.8))


def test_no_matches_give_the_bare_pair() -> None:
    image, empty = grey_image(), np.zeros((0, 2))
    for picture in (draw_matches(image, (), image, (), (), []), draw_scores(image, empty, image, empty, [], [])):
        assert np.ptp(picture[:HEIGHT].astype(int), axis=2).max() == 0


def test_without_matches_row_i_belongs_to_row_i() -> None:
    image = grey_image()
    np.testing.assert_array_equal(draw_matches(image, KP1, image, KP2, None, [True, False]), crossing([True, False]))
    with pytest.raises(ValueError, match="without `matches`, `kp1` and `kp2` must have the same length, got 2 and 1"):
        draw_matches(image, KP1, image, KP2[:1], None, [True, False])


@pytest.mark.parametrize(
    ("show", "green", "red"), [("both", True, True), ("kept", True, False), ("flagged", False, True)]
)
def test_show_says_which_matches_are_drawn(show: str, green: bool, red: bool) -> None:
    picture = crossing([True, False], show=show)[:HEIGHT]
    assert (greenness(picture).max() > 40, redness(picture).max() > 40) == (green, red)


@pytest.mark.parametrize(("few", "colour"), [(True, greenness), (False, redness)])
def test_the_fewer_lie_on_top(few: bool, colour: Callable[[np.ndarray], np.ndarray]) -> None:
    image, bundle = grey_image(), np.column_stack([np.full(40, 200.0), np.linspace(145, 155, 40)])
    points1, points2 = np.vstack([KP1[:1], bundle]), np.vstack([KP2[:1], bundle])
    picture = draw_matches(image, points1, image, points2, None, np.arange(41) == 0 if few else np.arange(41) > 0)
    assert colour(picture[150:151, 400:401]).item() > 40


def test_of_many_matches_all_markers_and_some_lines_are_drawn() -> None:
    rng = np.random.default_rng(0)
    image, points = grey_image(), rng.uniform([0, 0], [400, 300], (3000, 2))
    some, none, every = (
        draw_matches(image, points, image, points, None, np.ones(3000, bool), max_lines=most) for most in (100, 0, None)
    )
    for picture in (some, none):
        x, y = np.round(points[points[:, 0] < 398]).astype(int).T
        assert (greenness(picture[np.minimum(y, HEIGHT - 1), x]) > 20).mean() > 0.9
    plain = draw_matches(image, points, image, points, None, np.ones(3000, bool), show="flagged")
    changed = [float((picture[:HEIGHT] != plain[:HEIGHT]).any(2).mean()) for picture in (none, some, every)]
    assert changed[0] < changed[1] < changed[2]
    assert (every != some).any()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"show": "all"}, ValueError, "`show` must be one of 'kept', 'flagged', 'both', got 'all'"),
        ({"max_lines": -1}, ValueError, "`max_lines` must be at least 0, got -1"),
        ({"max_lines": 2.5}, TypeError, r"`max_lines` must be an integer, got 2\.5"),
    ],
)
def test_bad_option_is_named(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        crossing([True, False], **options)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        ([True], ValueError, r"one entry per match, shape \(2,\), got \(1,\)"),
        (np.ones((1, 2), bool), ValueError, r"one entry per match, shape \(2,\), got \(1, 2\)"),
        (
            [0.2, 0.9],
            TypeError,
            "`result_or_mask` must be a FilterResult or a mask of bool or uint8, got dtype float64",
        ),
        (None, TypeError, "got NoneType"),
    ],
)
def test_bad_mask_is_named(mask: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        crossing(mask)


def test_bad_max_width_is_named() -> None:
    with pytest.raises(ValueError, match="`max_width` must be at least 240, got 239"):
        crossing([True, False], max_width=239)
    with pytest.raises(TypeError, match=r"`max_width` must be an integer, got 800\.0"):
        crossing([True, False], max_width=800.0)


# Real data


def test_unihouse_with_2084_matches_shows_its_345_mismatches(scene: Callable[[str], AdelaideScene]) -> None:
    pair = scene("unihouse")
    picture = draw_matches(pair.img1, pair.points1, pair.img2, pair.points2, pairs(len(pair.labels)), pair.labels > 0)
    width = pair.img1.shape[1]
    flagged = pair.labels == 0
    for points, offset in ((pair.points1, 0), (pair.points2, width)):
        x, y = np.round(points[flagged]).astype(int).T
        assert np.median(redness(picture[y, x + offset])) > 150
