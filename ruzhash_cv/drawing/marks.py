"""Groups of matches as lines with markers at their ends, and the caption that explains them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from ruzhash_cv.drawing.canvas import ROW, Canvas, Picture
from ruzhash_cv.foundation.arrays import Array, Rows

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


#: Cells along the longer side of the first image, in which `spread` takes turns.
CELLS = 16


@dataclass(frozen=True)
class Group:
    """Matches in one style: their row numbers (n,), one BGR colour or (n, 3), a marker, words for the caption."""

    rows: Rows
    colour: Any
    marker: str
    text: str
    opacity: float


def draw(canvas: Canvas, groups: Sequence[Group], strip: Picture, *, markers_last: bool = False) -> Picture:
    """Draw one group after the other and return the picture with a strip below.

    `markers_last`: first the lines of all groups, then their markers, all of one size.
    """
    sizes = [len(group.rows) for group in groups]
    most = np.inf if canvas.max_lines is None else canvas.max_lines
    thickness = max(1, round(_breadth(canvas, sum(min(size, most) for size in sizes))))
    breadths = [_breadth(canvas, sum(sizes) // 3 if markers_last else size) for size in sizes]
    styled = [*zip(groups, breadths, strict=True)]
    for layer in [styled] if markers_last else [[each] for each in styled]:
        for group, _ in layer:
            _draw_lines(canvas, group, thickness)
        for group, breadth in layer:
            _draw_markers(canvas, group, breadth)
    return np.vstack([canvas.picture, strip])


def opacity(n_lines: int, max_lines: int | None = None) -> float:
    """Return the opacity at which `n_lines` do not hide the layers below."""
    n_lines = n_lines if max_lines is None else min(n_lines, max_lines)
    return float(np.clip(np.sqrt(60 / max(n_lines, 1)), 0.2, 0.8))


def caption(canvas: Canvas, groups: Sequence[Group]) -> Picture:
    """Return a strip with the marker, the colour and the words of each group, in as many rows as it takes."""
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
    """Return a line width for `n_matches`."""
    return canvas.unit * float(np.clip(np.cbrt(300 / max(n_matches, 1)), 0.55, 1.3))


def spread(points: Array) -> Rows:
    """Return the place (n,) of each point in an order of which every beginning is spread evenly: cells of a grid take turns."""
    if len(points) == 0:
        return np.zeros(0, np.int64)
    length = max(float(np.ptp(points, axis=0).max()), 1e-9) / CELLS
    cells = np.floor((points - points.min(axis=0)) / length).astype(np.int64) @ [1, 2 * CELLS]
    shuffled = np.random.default_rng(0).permutation(len(points))
    by_cell = shuffled[np.argsort(cells[shuffled], kind="stable")]
    _, starts, counts = np.unique(cells[by_cell], return_index=True, return_counts=True)
    turn = np.empty(len(points), np.int64)
    turn[by_cell] = np.arange(len(points)) - np.repeat(starts, counts)
    places = np.empty(len(points), np.int64)
    places[shuffled[np.argsort(turn[shuffled], kind="stable")]] = np.arange(len(points))
    return places


def _fixed(lines: Array) -> list[list[list[int]]]:
    rows: list[list[list[int]]] = np.round(lines * 2**_SHIFT).astype(int).reshape(-1, 2, 2).tolist()
    return rows


def _draw_lines(canvas: Canvas, group: Group, thickness: int) -> None:
    """Draw the lines of a group, at most `max_lines`, evenly from all over the first image."""
    lines, layer = canvas.lines[group.rows], canvas.picture.copy()
    chosen = np.ones(len(lines), bool) if canvas.max_lines is None else spread(lines[:, :2]) < canvas.max_lines
    colours = np.broadcast_to(group.colour, (len(lines), 3))[chosen].tolist()
    for (start, end), colour in zip(_fixed(lines[chosen]), colours, strict=True):
        cv2.line(layer, start, end, colour, thickness, cv2.LINE_AA, _SHIFT)
    cv2.addWeighted(layer, group.opacity, canvas.picture, 1 - group.opacity, 0, dst=canvas.picture)


def _draw_markers(canvas: Canvas, group: Group, breadth: float) -> None:
    size, thickness = round(2.5 * breadth * 2**_SHIFT), max(1, round(breadth))
    colours = np.broadcast_to(group.colour, (len(group.rows), 3)).tolist()
    for ends, colour in zip(_fixed(canvas.lines[group.rows]), colours, strict=True):
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
