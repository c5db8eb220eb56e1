"""Matches coloured by their anomaly scores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from drawn_pairs import HEIGHT, KP1, KP2, WIDTH, grey_image, on_line, pairs

from ruzhash_cv import draw_scores


def scored(scores: Any) -> np.ndarray:
    image = grey_image()
    return draw_scores(image, KP1, image, KP2, pairs(2), scores)


def test_high_scores_are_bright_and_on_top() -> None:
    for scores, high, low in (
        ([0.3, 0.7], ((100, 250), (700, 50)), ((100, 50), (700, 250))),
        ([0.7, 0.3], ((100, 50), (700, 250)), ((100, 250), (700, 50))),
    ):
        picture = scored(scores)
        assert on_line(picture, *high)[:, 2].min() > on_line(picture, *low)[:, 2].max()
        middle = picture[150, 400].astype(int)
        assert middle[2] - middle[0] > 80  # yellow, not violet


def test_scores_come_from_an_array_or_a_result() -> None:
    np.testing.assert_array_equal(scored(SimpleNamespace(anomaly_scores=np.array([0.3, 0.7]))), scored([0.3, 0.7]))


def test_scores_picture_has_a_colour_bar_below() -> None:
    strip = scored([0.3, 0.7])[HEIGHT:].astype(int)
    row = strip[np.argmax(np.ptp(strip, axis=2).sum(1))]
    coloured = np.flatnonzero(np.ptp(row, axis=1) > 50)
    assert len(coloured) > WIDTH
    assert row[coloured[0], 0] > row[coloured[0], 2]  # violet
    assert row[coloured[-1], 2] > row[coloured[-1], 0] + 100  # yellow


def test_equal_scores_and_scores_that_are_not_finite_are_drawn_or_left_out() -> None:
    assert np.ptp(scored([0.5, 0.5])[:HEIGHT].astype(int), axis=2).max() > 50
    assert np.ptp(scored([np.nan, np.inf])[:HEIGHT].astype(int), axis=2).max() == 0
    alone = draw_scores(grey_image(), KP1[:1], grey_image(), KP2[:1], pairs(1), [0.4])
    for missing in (np.nan, np.inf):
        np.testing.assert_array_equal(scored([0.4, missing]), alone)


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([0.5], ValueError, r"`result_or_scores` must have one entry per match, shape \(2,\), got \(1,\)"),
        ([True, False], TypeError, "`result_or_scores` must be a FilterResult or scores of float, got dtype bool"),
        (None, TypeError, "got NoneType"),
    ],
)
def test_bad_scores_are_named(scores: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        scored(scores)


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (None, TypeError, "`img1` must be an image, got None, which cv2.imread returns"),
        ("a.png", TypeError, "`img1` must be an array of uint8, got str; read a file by cv2.imread"),
        ((image for image in ()), TypeError, "`img1` must be an array of uint8, got generator"),
        (np.zeros((9, 9)), TypeError, "`img1` must be an array of uint8, got dtype float64"),
        (np.zeros(9, np.uint8), ValueError, r"`img1` must have shape \(h, w\), .* got \(9,\)"),
        (np.zeros((9, 9, 2), np.uint8), ValueError, r"`img1` must have shape .* got \(9, 9, 2\)"),
        (np.zeros((0, 9, 3), np.uint8), ValueError, r"`img1` must .* not empty, got \(0, 9, 3\)"),
    ],
)
def test_bad_image_is_named(image: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        draw_scores(image, KP1, grey_image(), KP2, pairs(2), [0.4, 0.5])
    with pytest.raises(error, match=message.replace("img1", "img2")):
        draw_scores(grey_image(), KP1, image, KP2, pairs(2), [0.4, 0.5])
