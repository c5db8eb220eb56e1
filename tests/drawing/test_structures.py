"""Structures in colours of their own, told apart without red-green vision too."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv import FilterResult, Structure, draw_structures
from ruzhash_cv.drawing import matches, structures
from ruzhash_cv.result import Motion

WIDTH, HEIGHT = 400, 300
N = 40
IMAGE = np.full((HEIGHT, WIDTH), 128, np.uint8)
# Rows of points at four heights: two structures, kept matches of none, and mismatches.
POINTS = np.column_stack([np.tile(np.linspace(20, 380, 10), 4), np.repeat([40.0, 110.0, 180.0, 250.0], 10)])
LABELS = np.repeat([0, 1, -1, -1], 10)

# Linear RGB as the colour-blind see it, of severity 1: Machado, Oliveira and Fernandes, "A physiologically-based model for
# simulation of color vision deficiency" (2009).
EYES = {
    "all cones": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no medium": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def structure(kind: str = "homography", tolerance: float = 2.5, **more: Any) -> Structure:
    return Structure(np.eye(3), kind, 10, tolerance, 0.7, 50.0, **more)


def moved(*parts: int, kind: str = "homography") -> Motion:
    return Motion(np.eye(3), kind, 10, 2.5, 0.7, 50.0, parts=parts)


def result(labels: np.ndarray = LABELS, n: int = 2, **more: Any) -> FilterResult:
    """Return a result of `n` structures, which move apart unless `motions` says otherwise."""
    kept = np.repeat([True, True, True, False], 10)
    motions = more.pop("motions", tuple(moved(item) for item in range(n)))
    models = more.pop("models", tuple(structure() for _ in range(n)))
    found = FilterResult(kept, np.full(N, 0.5), np.full(N, 0.5), labels, np.ones(N, bool), models)
    vars(found)["_motions"] = motions, more.pop("motion_labels", labels)  # as once they have been searched for
    return found


def draw(found: FilterResult, **options: Any) -> np.ndarray:
    return draw_structures(IMAGE, POINTS, IMAGE, POINTS, None, found, **options)


def colours_at(picture: np.ndarray, row: int) -> np.ndarray:
    """Colours of the markers of one of the four rows of points, in both images, shape (20, 3)."""
    x, y = POINTS[10 * row : 10 * row + 10].astype(int).T
    return np.vstack([picture[y, x], picture[y, x + WIDTH]]).astype(int)


def distance(colour: Any, other: Any) -> float:
    return float(np.abs(np.subtract(colour, other)).max())


def test_each_structure_has_a_colour_and_mismatches_are_grey() -> None:
    picture = draw(result())
    for row, colour in enumerate((*structures.MOTIONS[:2], structures.NO_STRUCTURE)):
        assert distance(np.median(colours_at(picture, row), axis=0), colour) < 12
    assert np.ptp(colours_at(picture, 3), axis=1).max() < 8
    assert np.median(colours_at(picture, 3)) == structures.MISMATCH[0]


def test_planes_of_a_motion_are_shades_of_its_colour() -> None:
    labels = np.repeat([0, 0, 0, -1], 10)
    picture = draw(result(motions=(moved(0, 1, kind="fundamental"),), motion_labels=labels))
    dark, pale, own = (np.median(colours_at(picture, row), axis=0) for row in range(3))
    assert distance(own, structures.MOTIONS[0]) < 12
    assert dark.sum() < own.sum() < pale.sum()
    assert dark.argmax() == pale.argmax() == own.argmax()


def test_a_motion_of_one_plane_alone_is_drawn_as_one() -> None:
    rigid = draw(result(motions=(moved(0, kind="fundamental"), moved(1, kind="fundamental"))))
    np.testing.assert_array_equal(rigid[:HEIGHT], draw(result())[:HEIGHT])


def test_stationary_structures_are_of_no_motion_and_white() -> None:
    labels = np.where(LABELS == 0, -1, LABELS - 1)
    models = structure(stationary=True), structure()
    picture = draw(result(models=models, motions=(moved(1),), motion_labels=labels))
    assert distance(np.median(colours_at(picture, 0), axis=0), structures.NO_STRUCTURE) < 12
    assert distance(np.median(colours_at(picture, 1), axis=0), structures.MOTIONS[0]) < 12


def test_the_caption_takes_as_many_rows_as_it_needs() -> None:
    labels = np.where(LABELS < 0, -1, np.arange(N))
    few, many = draw(result()), draw(result(labels, 20))
    assert few.shape[1] == many.shape[1] == 2 * WIDTH
    assert few.shape[0] < HEIGHT + 70
    assert HEIGHT + 120 < many.shape[0] < HEIGHT + 350


def test_no_structures_leave_grey_mismatches() -> None:
    undecided = replace(result(np.full(N, -1), 0), inlier_mask=np.zeros(N, bool))
    assert np.ptp(draw(undecided).astype(int), axis=2).max() < 10


def test_rows_without_a_match_are_not_drawn() -> None:
    found = result()
    found.has_match[30:] = False
    assert np.ptp(colours_at(draw(found), 3), axis=0).max() < 8  # no marker: the colour of the image
    assert np.median(colours_at(draw(found), 3)) != structures.MISMATCH[0]


def test_the_legend_has_the_numbers_that_the_result_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    legend: list[str] = []
    monkeypatch.setattr(
        structures, "caption", lambda canvas, groups: legend.extend(group.text for group in groups) or canvas.strip(1)
    )
    found = result(models=(structure(tolerance=0.0046451), structure()), motions=(), motion_labels=np.full(N, -1))
    found.has_match[35:] = False
    draw(found)
    assert legend == [
        "kept, of no structure: 10",
        "structure 0 homography: 10, tolerance 0.00465",
        "structure 1 homography: 10, tolerance 2.50",
        "5 flagged",
    ]
    printed = [line.split() for line in str(found).splitlines()]
    assert [row[2:4] for row in printed[-2:]] == [["10", "0.00465"], ["10", "2.50"]]
    assert ["flagged", "5"] in printed


def test_max_lines_leaves_the_markers() -> None:
    bare, lined = draw(result(), max_lines=0), draw(result())
    between = (slice(None, HEIGHT), slice(WIDTH - 10, WIDTH - 4))
    assert np.ptp(bare[between].astype(int), axis=2).max() < 10
    assert np.ptp(lined[between].astype(int), axis=2).max() > 40
    np.testing.assert_array_equal(colours_at(bare, 0), colours_at(lined, 0))


@pytest.mark.parametrize("eyes", EYES)
def test_colours_are_told_apart_by_the_colour_blind(eyes: str) -> None:
    drawn = np.array([*structures.MOTIONS, structures.NO_STRUCTURE, structures.MISMATCH])
    assert least_difference(drawn, eyes) > 25
    assert least_difference(np.array([matches.KEPT, matches.FLAGGED]), eyes) > 35


def least_difference(bgr: np.ndarray, eyes: str) -> float:
    rgb = bgr[:, ::-1] / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(EYES[eyes]), 0, 1)
    encoded = np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055)
    lab = cv2.cvtColor(encoded[None].astype(np.float32), cv2.COLOR_RGB2LAB)[0]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(lab, 2))


@pytest.mark.parametrize(
    ("found", "error", "message"),
    [
        (None, TypeError, "`result` must be a FilterResult, got NoneType"),
        (np.ones(N, bool), TypeError, "`result` must be a FilterResult, got ndarray"),
        (result(LABELS[:10]), ValueError, "`result` must have one entry per match, 40, got 10"),
    ],
)
def test_bad_result_is_named(found: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        draw(found)
