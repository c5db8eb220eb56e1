"""Kept and flagged matches in two colours, and matches coloured by their anomaly scores."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv import draw_matches, draw_scores, filter_points
from ruzhash_cv.drawing.marks import CELLS, spread

WIDTH, HEIGHT = 400, 300
# Two matches that cross in the middle of the picture, at (400, 150).
KP1 = np.array([[100.0, 50.0], [100.0, 250.0]])
KP2 = np.array([[300.0, 250.0], [300.0, 50.0]])


def grey_image(width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    return np.full((height, width), 128, np.uint8)


def pairs(n: int) -> np.ndarray:
    return np.repeat(np.arange(n)[:, None], 2, axis=1)


def excess(channel: int, picture: np.ndarray) -> np.ndarray:
    """Return how much brighter one channel is than the other two."""
    return np.asarray(picture[..., channel].astype(int) - np.delete(picture, channel, axis=-1).max(axis=-1))


greenness, redness = partial(excess, 1), partial(excess, 2)


def on_line(picture: np.ndarray, start: tuple[float, float], end: tuple[float, float]) -> np.ndarray:
    """Pixels along a segment, its ends and its middle left out."""
    shares = np.r_[np.linspace(0.1, 0.4, 40), np.linspace(0.6, 0.9, 40)][:, None]
    x, y = np.round((1 - shares) * start + shares * np.array(end)).astype(int).T
    return np.asarray(picture[y, x])


IMAGE = grey_image()
DIAGONAL, OTHER = ((100, 50), (700, 250)), ((100, 250), (700, 50))
MASK = [True, False]
#: The second row has no match, the third fails the ratio test.
KNN = [(cv2.DMatch(0, 0, 1.0), cv2.DMatch(0, 1, 9.0)), (), (cv2.DMatch(1, 1, 8.0), cv2.DMatch(1, 0, 9.0))]


def crossing(mask: Any = MASK, **options: Any) -> np.ndarray:
    return draw_matches(IMAGE, KP1, IMAGE, KP2, pairs(2), mask, **options)


def scored(scores: Any, **options: Any) -> np.ndarray:
    return draw_scores(IMAGE, KP1, IMAGE, KP2, pairs(2), scores, **options)


@pytest.mark.parametrize("mask", [[True, False], [False, True]])
def test_kept_matches_are_green_and_flagged_ones_red_and_on_top_of_as_many(mask: list[bool]) -> None:
    picture = crossing(mask)
    kept, flagged = (DIAGONAL, OTHER) if mask[0] else (OTHER, DIAGONAL)
    assert greenness(on_line(picture, *kept)).min() > 40
    assert redness(on_line(picture, *flagged)).min() > 40
    assert redness(picture[150:151, 400:401]).item() > 40


def test_the_picture_holds_both_images_and_a_caption() -> None:
    picture = crossing()
    assert (picture.dtype, picture.shape[1:], picture.flags.writeable) == (np.uint8, (2 * WIDTH, 3), True)
    assert HEIGHT < picture.shape[0] < HEIGHT + 60


@pytest.mark.parametrize(
    "mask",
    [
        np.array([True, False]), np.array([[True], [False]]), np.array([1, 0], np.uint8), np.array([[255], [0]], np.uint8),
        SimpleNamespace(inlier_mask=np.array([True, False])),
    ],
)  # fmt: skip
def test_every_form_of_mask_gives_the_same_picture(mask: Any) -> None:
    np.testing.assert_array_equal(crossing(mask), crossing())


def test_every_form_of_image_gives_the_same_picture_and_stays_as_it_was() -> None:
    bgr, bgra = cv2.cvtColor(IMAGE, cv2.COLOR_GRAY2BGR), cv2.cvtColor(IMAGE, cv2.COLOR_GRAY2BGRA)
    for image in (IMAGE[..., None], bgr, bgra, np.dstack([bgr, bgr])[..., ::2]):
        image.setflags(write=False)
        np.testing.assert_array_equal(draw_matches(image, KP1, IMAGE, KP2, pairs(2), MASK), crossing())
    noise = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    before = noise.copy()
    draw_matches(noise, KP1, noise, KP2, pairs(2), MASK)
    np.testing.assert_array_equal(noise, before)


def test_images_of_different_size_stand_at_one_height_and_the_lines_fit_both() -> None:
    picture = draw_matches(grey_image(WIDTH // 2, HEIGHT // 2), KP1 / 2 - 0.25, IMAGE, KP2, pairs(2), MASK)
    np.testing.assert_array_equal(picture, crossing())


def test_large_photographs_are_shrunk_and_the_lines_with_them() -> None:
    image = np.full((3000, 4000), 128, np.uint8)
    picture = draw_matches(image, KP1 * 10, image, KP2 * 10, pairs(2), MASK)
    assert picture.shape[1] == 2400
    assert greenness(on_line(picture, (300, 150), (2100, 750))).min() > 40
    assert redness(on_line(picture, (300, 750), (2100, 150))).min() > 40
    assert draw_matches(image, KP1, image, KP2, pairs(2), MASK, max_width=900).shape[1] <= 900


@pytest.mark.parametrize(("width", "height"), [(1, 1), (2, 9), (30, 20), (150, 3)])
@pytest.mark.parametrize("max_width", [240, 2400, None])
def test_tiny_images_give_a_picture_wide_enough_for_its_caption(width: int, height: int, max_width: int | None) -> None:
    image = grey_image(width, height)
    for draw, value in ((draw_matches, True), (draw_scores, 0.5)):
        picture = draw(image, [[0, 0]], image, [[0, 0]], [[0, 0]], [value], max_width=max_width)  # type: ignore[operator]
        assert 240 <= picture.shape[1] <= 640
        assert picture.shape[0] > 30


def test_two_thousand_kept_matches_leave_the_photograph_visible() -> None:
    checks = np.kron(np.indices((30, 40)).sum(0) % 2, np.ones((20, 20))).astype(np.uint8) * 255
    points = np.random.default_rng(0).uniform([0, 0], [800, 600], (2000, 2))
    picture = draw_matches(checks, points, checks, points, None, np.ones(2000, bool))
    plain = draw_matches(checks, points[:0], checks, points[:0], [], [])
    shown, contrast = picture[:600].mean(2).ravel(), plain[:600].mean(2).ravel()
    assert np.corrcoef(shown, contrast)[0, 1] > 0.7


def test_one_flagged_match_is_seen_among_two_thousand_kept() -> None:
    points1, points2 = np.random.default_rng(0).uniform([0, 0], [800, 600], (2, 2001, 2))
    points1[1000], points2[1000] = (50, 50), (750, 550)
    image, mask = grey_image(800, 600), np.arange(2001) != 1000
    picture = draw_matches(image, points1, image, points2, None, mask)
    assert redness(on_line(picture, (50, 50), (1550, 550))).min() > 40


@pytest.mark.parametrize(("few", "colour"), [(True, greenness), (False, redness)])
def test_the_fewer_lie_on_top(few: bool, colour: Callable[[np.ndarray], np.ndarray]) -> None:
    bundle = np.column_stack([np.full(40, 200.0), np.linspace(145, 155, 40)])
    points1, points2 = np.vstack([KP1[:1], bundle]), np.vstack([KP2[:1], bundle])
    picture = draw_matches(IMAGE, points1, IMAGE, points2, None, np.arange(41) == 0 if few else np.arange(41) > 0)
    assert colour(picture[150:151, 400:401]).item() > 40


def test_kept_and_flagged_differ_in_brightness_too() -> None:
    """For readers who do not tell red from green."""
    kept, flagged = (cv2.cvtColor(crossing(mask), cv2.COLOR_BGR2GRAY) for mask in ([True] * 2, [False] * 2))
    assert on_line(kept, *DIAGONAL).min() > on_line(flagged, *DIAGONAL).max() + 40


def test_positions_that_are_not_finite_are_left_out() -> None:
    broken = np.array([KP1[0], [np.nan, np.inf]])
    picture = draw_matches(IMAGE, broken, IMAGE, KP2, pairs(2), MASK)
    np.testing.assert_array_equal(picture, draw_matches(IMAGE, KP1[:1], IMAGE, KP2[:1], pairs(1), [True]))
    for missing in (np.nan, np.inf):
        alone = draw_scores(IMAGE, KP1[:1], IMAGE, KP2[:1], pairs(1), [0.4])
        np.testing.assert_array_equal(scored([0.4, missing]), alone)


def test_rows_without_a_match_and_rows_that_fail_the_ratio_are_left_out() -> None:
    given, result = (IMAGE, KP1, IMAGE, KP2, KNN), filter_points(KP1, KP2, KNN, ratio=0.8)
    picture = draw_matches(*given, result.inlier_mask, ratio=0.8)
    assert np.array_equal(picture, draw_matches(*given, result))
    assert redness(draw_matches(*given, [True, False, False], ratio=0.8)[:HEIGHT]).max() < 10
    assert redness(draw_matches(*given, [True, False, False])[:HEIGHT]).max() > 40
    np.testing.assert_array_equal(draw_scores(*given, result), draw_scores(*given, result.anomaly_scores, ratio=0.8))


def test_no_matches_give_the_bare_pair() -> None:
    empty = np.zeros((0, 2))
    for picture in (draw_matches(IMAGE, (), IMAGE, (), (), []), draw_scores(IMAGE, empty, IMAGE, empty, [], [])):
        assert np.ptp(picture[:HEIGHT].astype(int), axis=2).max() == 0


@pytest.mark.parametrize(
    ("show", "green", "red"), [("both", True, True), ("kept", True, False), ("flagged", False, True)]
)
def test_show_selects_the_matches_that_are_drawn(show: str, green: bool, red: bool) -> None:
    picture = crossing(show=show)[:HEIGHT]
    assert (greenness(picture).max() > 40, redness(picture).max() > 40) == (green, red)


def test_drawn_apart_kept_matches_are_above_flagged_ones() -> None:
    picture, one = crossing(show="apart"), crossing()
    assert len(picture) == len(one) + HEIGHT
    for show, part in (("kept", picture[:HEIGHT]), ("flagged", picture[HEIGHT : 2 * HEIGHT])):
        np.testing.assert_array_equal(part, crossing(show=show)[:HEIGHT])
    np.testing.assert_array_equal(picture[2 * HEIGHT :], one[HEIGHT:])


def test_of_many_matches_all_markers_and_some_lines_are_drawn() -> None:
    points, mask = np.random.default_rng(0).uniform([0, 0], [400, 300], (3000, 2)), np.ones(3000, bool)
    plain, none, some, every = (
        draw_matches(IMAGE, points, IMAGE, points, None, mask, **options)  # type: ignore[arg-type]
        for options in ({"show": "flagged"}, {"max_lines": 0}, {"max_lines": 100}, {"max_lines": None})
    )
    x, y = np.round(points[points[:, 0] < 398]).astype(int).T
    for picture in (some, none):
        assert (greenness(picture[np.minimum(y, HEIGHT - 1), x]) > 20).mean() > 0.9
    changed = [float((picture[:HEIGHT] != plain[:HEIGHT]).any(2).mean()) for picture in (none, some, every)]
    assert changed[0] < changed[1] < changed[2]


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_every_beginning_of_the_spread_order_covers_the_image(share: float) -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.uniform(0, 10, (900, 2)), rng.uniform(0, 400, (100, 2))])
    places = spread(points)
    np.testing.assert_array_equal(np.sort(places), np.arange(1000))
    cells = np.floor(points / (400 / CELLS))
    occupied, seen = (len(np.unique(cells[rows], axis=0)) for rows in (places >= 0, places < share * 1000))
    assert seen >= 0.9 * min(share * 1000, occupied)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_the_spread_order_of_one_place_is_an_order(n: int) -> None:
    np.testing.assert_array_equal(np.sort(spread(np.zeros((n, 2)))), np.arange(n))


def test_high_scores_are_bright_and_on_top() -> None:
    for scores, high, low in (([0.3, 0.7], OTHER, DIAGONAL), ([0.7, 0.3], DIAGONAL, OTHER)):
        picture = scored(scores)
        assert on_line(picture, *high)[:, 2].min() > on_line(picture, *low)[:, 2].max()
        middle = picture[150, 400].astype(int)
        assert middle[2] - middle[0] > 80  # yellow, not violet
    np.testing.assert_array_equal(scored(SimpleNamespace(anomaly_scores=np.array([0.7, 0.3]))), picture)
    assert np.ptp(scored([0.5, 0.5])[:HEIGHT].astype(int), axis=2).max() > 50


def test_the_picture_of_scores_has_a_colour_bar_below() -> None:
    strip = scored([0.3, 0.7])[HEIGHT:].astype(int)
    row = strip[np.argmax(np.ptp(strip, axis=2).sum(1))]
    coloured = np.flatnonzero(np.ptp(row, axis=1) > 50)
    assert len(coloured) > WIDTH
    assert row[coloured[0], 0] > row[coloured[0], 2]  # violet
    assert row[coloured[-1], 2] > row[coloured[-1], 0] + 100  # yellow
