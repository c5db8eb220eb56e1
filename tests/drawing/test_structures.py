"""Motions and planes in separate colours, distinct without red-green vision too."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv import FilterResult, Motion, Plane, draw_structures
from ruzhash_cv.drawing import pictures
from ruzhash_cv.results.printing import table

WIDTH, HEIGHT = 400, 300
N = 40
IMAGE = np.full((HEIGHT, WIDTH), 128, np.uint8)
# Rows of points at four heights: two structures, kept matches of none, and mismatches.
POINTS = np.column_stack([np.tile(np.linspace(20, 380, 10), 4), np.repeat([40.0, 110.0, 180.0, 250.0], 10)])
LABELS = np.repeat([0, 1, -1, -1], 10)
FIRST, SECOND, THIRD = pictures.STRUCTURES[:3]

# Linear RGB as the colour-blind see it, of severity 1: Machado, Oliveira and Fernandes, "A physiologically-based model for
# simulation of color vision deficiency" (2009).
EYES = {
    "all cones": np.eye(3),
    "no long": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no medium": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no short": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def motion(of: np.ndarray, kind: str = "homography", **changed: Any) -> Motion:
    return Motion(np.eye(3), kind, of, 0.7, 2.5, 50.0, **changed)


def result(labels: np.ndarray = LABELS, *, motions: Any = None) -> FilterResult:
    """Return a result of planes that move apart, or of other `motions`."""
    kept = np.repeat([True, True, True, False], 10)
    motions = motions or tuple(motion(labels == item) for item in range(labels.max() + 1))
    return FilterResult(kept, np.full(N, 0.5), np.full(N, 0.5), np.ones(N, bool), motions)


def draw(given: FilterResult, **options: Any) -> np.ndarray:
    return draw_structures(IMAGE, POINTS, IMAGE, POINTS, None, given, **options)


def colours_at(picture: np.ndarray, row: int) -> np.ndarray:
    """Colours of the markers of one of the four rows of points, in both images, shape (20, 3)."""
    x, y = POINTS[10 * row : 10 * row + 10].astype(int).T
    return np.vstack([picture[y, x], picture[y, x + WIDTH]]).astype(int)


STILL = result(motions=(motion(LABELS == 0, stationary=True), motion(LABELS == 1)))
ROWS = np.repeat(np.arange(4), 10)
PLANES = tuple(Plane(np.eye(3), row, 0.7, 2.5) for row in (ROWS == 1, ROWS == 2))
RIGID = result(motions=(motion(ROWS < 3, "fundamental", planes=PLANES),))


@pytest.mark.parametrize(
    ("given", "colours"),
    [
        pytest.param(result(), (FIRST, SECOND, pictures.NO_MOTION), id="two motions"),
        pytest.param(RIGID, (FIRST, SECOND, THIRD), id="matches off the planes of a motion, and two planes"),
        pytest.param(STILL, (pictures.NO_MOTION, FIRST, pictures.NO_MOTION), id="a stationary structure"),
    ],
)
def test_each_motion_and_plane_has_a_colour_and_mismatches_are_grey(given: FilterResult, colours: Any) -> None:
    picture = draw(given)
    for row, colour in enumerate((*colours, pictures.MISMATCH)):
        assert np.abs(np.median(colours_at(picture, row), axis=0) - colour).max() < 12


def test_the_caption_takes_as_many_rows_as_it_needs() -> None:
    few, many = draw(result()), draw(result(np.where(LABELS < 0, -1, np.arange(N))))
    assert few.shape[1] == many.shape[1] == 2 * WIDTH
    row = 30  # px
    assert few.shape[0] - HEIGHT in (row, 2 * row)
    # Letters of OpenCV 4 are wider: at most a row for each of 22 groups.
    assert 5 <= (many.shape[0] - HEIGHT) / row <= 22


def test_no_structures_leave_grey_mismatches() -> None:
    undecided = replace(result(np.full(N, -1)), inlier_mask=np.zeros(N, bool))
    assert np.ptp(draw(undecided).astype(int), axis=2).max() < 10


def test_rows_without_a_match_are_not_drawn() -> None:
    given = result()
    given.has_match[30:] = False
    assert np.ptp(colours_at(draw(given), 3), axis=0).max() < 8  # no marker: the colour of the image
    assert np.median(colours_at(draw(given), 3)) != pictures.MISMATCH[0]


@pytest.mark.parametrize("given", [result(), RIGID, STILL])
def test_the_legend_has_what_the_result_prints(given: FilterResult, monkeypatch: pytest.MonkeyPatch) -> None:
    legend: list[str] = []
    keep = lambda canvas, groups: legend.extend(group.text for group in groups) or canvas.strip(1)  # noqa: E731
    monkeypatch.setattr(pictures, "caption", keep)
    draw(given)
    named = [text for text in legend if text.startswith(("motion", "plane"))]
    for text, row in zip(named, table(given), strict=True):
        name, kind, matches, *_, remark = (cell.strip() for cell in row.cells())
        what = "" if row.is_plane else f", {' '.join(filter(None, (remark, kind)))}"
        assert text == f"{name}{what}: {matches}{', 10 off its planes' * (kind == 'fundamental')}"
    assert legend[-1] == "10 flagged"


def test_max_lines_leaves_the_markers() -> None:
    bare, lined = draw(result(), max_lines=0), draw(result())
    between = (slice(None, HEIGHT), slice(WIDTH - 10, WIDTH - 4))
    assert np.ptp(bare[between].astype(int), axis=2).max() < 10
    assert np.ptp(lined[between].astype(int), axis=2).max() > 40
    np.testing.assert_array_equal(colours_at(bare, 0), colours_at(lined, 0))


@pytest.mark.parametrize("eyes", EYES)
def test_colours_are_distinct_for_the_colour_blind(eyes: str) -> None:
    others = pictures.NO_MOTION, pictures.MISMATCH
    assert least_difference(np.array([*pictures.STRUCTURES[:7], *others]), eyes) > 25
    assert least_difference(np.array([*pictures.STRUCTURES, *others]), eyes) > 13
    assert least_difference(np.array([pictures.KEPT, pictures.FLAGGED]), eyes) > 35


def test_no_two_motions_or_planes_of_a_result_have_one_colour() -> None:
    """Of as many as there may be: 8 motions with 12 planes each."""
    assert len({pictures.colour_of(number) for number in range(104)} | {pictures.NO_MOTION, pictures.MISMATCH}) == 106


def least_difference(bgr: np.ndarray, eyes: str) -> float:
    rgb = bgr[:, ::-1] / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.transpose(EYES[eyes]), 0, 1)
    encoded = np.where(seen <= 0.0031308, seen * 12.92, 1.055 * seen ** (1 / 2.4) - 0.055)
    lab = cv2.cvtColor(encoded[None].astype(np.float32), cv2.COLOR_RGB2LAB)[0]
    return min(float(np.linalg.norm(one - other)) for one, other in combinations(lab, 2))
