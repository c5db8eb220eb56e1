"""Lines and end markers of matches on a canvas, and captions that explain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array
from ruzhash_cv.drawing.canvas import ROW, Canvas, Picture

Colour: TypeAlias = tuple[int, int, int]

_SHIFT = 4  # bits of sub-pixel position in OpenCV's drawing functions
_OUTLINE = (20, 20, 20)
_ANGLES = np.linspace(0, 2 * np.pi, 16, endpoint=False)
_CIRCLE = np.column_stack([np.cos(_ANGLES), np.sin(_ANGLES)])
#: Corners of the filled markers in half-widths; a cross is two lines. OpenCV's own small circles look like diamonds.
_CORNERS = {
    "dot": _CIRCLE / 1.5,
    "disc": _CIRCLE,
    "square": np.array([(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
    "diamond": np.array([(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
    "triangle": np.array([(0.0, -1.2), (1.2, 0.9), (-1.2, 0.9)]),
}


@dataclass(frozen=True)
class Group:
    """Matches drawn alike: lines (n, 4) on the canvas, one colour or one for each, a marker at the ends, words for the caption."""

    lines: Array
    colour: Any
    marker: str
    text: str
    opacity: float = 0.8


def draw(canvas: Canvas, groups: Sequence[Group], *, markers_last: bool = False) -> None:
    """Draw one group after the other, so that the lines of a later one lie on the markers of those before.

    `markers_last`: first the lines of all groups, then their markers, which are equally large.
    """
    most = np.inf if canvas.max_lines is None else canvas.max_lines
    thickness = _breadth(canvas, sum(min(len(group.lines), most) for group in groups))
    for group in groups:
        _draw_lines(canvas, group, max(1, round(thickness)))
        if not markers_last:
            _draw_markers(canvas, group, _breadth(canvas, len(group.lines)))
    if markers_last:
        breadth = _breadth(canvas, sum(len(group.lines) for group in groups) // 3)
        for group in groups:
            _draw_markers(canvas, group, breadth)


def opacity(n_lines: int, max_lines: int | None = None) -> float:
    """Return how opaque a layer of so many lines may be without hiding what lies beneath."""
    n_lines = n_lines if max_lines is None else min(n_lines, max_lines)
    return float(np.clip(np.sqrt(60 / max(n_lines, 1)), 0.2, 0.8))


def caption(canvas: Canvas, groups: Sequence[Group]) -> Picture:
    """Return the strip that shows what each group looks like, in as many rows as it takes."""
    row, width = len(canvas.strip(ROW)), canvas.picture.shape[1]
    places, x, y = [], row // 4, 0
    for group in groups:
        needed = row + canvas.text_width(group.text)
        if x + needed > width and x > row // 4:
            x, y = row // 4, y + row
        places.append((x, y))
        x += needed + row // 2
    strip = np.vstack([canvas.strip(ROW)] * (1 + y // row))
    for group, (x, y) in zip(groups, places, strict=True):
        at = (x + row // 4) << _SHIFT, (y + row // 2) << _SHIFT
        _draw_marker(strip, *at, row << _SHIFT >> 2, group.colour, 2 * max(1, round(canvas.unit)), group.marker)
        canvas.write(strip, group.text, x + 0.75 * row, y + 0.65 * row)
    return strip


def _breadth(canvas: Canvas, n_matches: float) -> float:
    """Return a line width that suits so many matches."""
    return canvas.unit * float(np.clip(np.cbrt(300 / max(n_matches, 1)), 0.55, 1.3))


def _spread(lines: Array, most: int | None) -> NDArray[np.intp]:
    """Return the row numbers of at most so many lines, evenly from all over the first image."""
    if most is None or len(lines) <= most:
        return np.arange(len(lines))
    cells = np.floor(lines[:, :2] / max(float(np.ptp(lines[:, :2], axis=0).max()), 1.0) * 20)
    order = np.lexsort((lines[:, 1], cells[:, 0], cells[:, 1]))
    return np.sort(order[np.linspace(0, len(lines) - 1, most).astype(np.intp)])


def _fixed(lines: Array) -> list[list[list[int]]]:
    rows: list[list[list[int]]] = np.round(lines * 2**_SHIFT).astype(int).reshape(-1, 2, 2).tolist()
    return rows


def _draw_lines(canvas: Canvas, group: Group, thickness: int) -> None:
    chosen = _spread(group.lines, canvas.max_lines)
    colours = np.broadcast_to(group.colour, (len(group.lines), 3))[chosen].tolist()
    layer = canvas.picture.copy()
    for (start, end), colour in zip(_fixed(group.lines[chosen]), colours, strict=True):
        cv2.line(layer, start, end, colour, thickness, cv2.LINE_AA, _SHIFT)
    cv2.addWeighted(layer, group.opacity, canvas.picture, 1 - group.opacity, 0, dst=canvas.picture)


def _draw_markers(canvas: Canvas, group: Group, breadth: float) -> None:
    size, thickness = round(2.5 * breadth * 2**_SHIFT), max(1, round(breadth))
    colours = np.broadcast_to(group.colour, (len(group.lines), 3)).tolist()
    for ends, colour in zip(_fixed(group.lines), colours, strict=True):
        for x, y in ends:
            _draw_marker(canvas.picture, x, y, size, colour, thickness, group.marker)


def _draw_marker(picture: Picture, x: int, y: int, size: int, colour: Any, thickness: int, marker: str) -> None:
    """Draw a marker of half-width `size`; positions in fixed point."""
    if marker == "cross":
        cv2.line(picture, (x - size, y - size), (x + size, y + size), colour, thickness, cv2.LINE_AA, _SHIFT)
        cv2.line(picture, (x - size, y + size), (x + size, y - size), colour, thickness, cv2.LINE_AA, _SHIFT)
        return
    for extent, shade in ((1.5, _OUTLINE), (1.05, colour)):
        corners = _CORNERS[marker] * (extent * size) + [x, y]
        cv2.fillConvexPoly(picture, np.round(corners).astype(np.int32), shade, cv2.LINE_AA, _SHIFT)
