"""Matches in the colours of the structures they belong to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Mask
from ruzhash_cv.correspondences import Keypoints, Matches
from ruzhash_cv.drawing.canvas import Picture, check_result, lay_out, lines_of, with_match
from ruzhash_cv.drawing.marks import Colour, Group, caption, draw, opacity
from ruzhash_cv.printing import as_length
from ruzhash_cv.result import FilterResult, Structure

#: BGR of one motion after the other, from the first again after the last. Any two, and each and the colours below, are apart by a
#: CIE76 difference of 25 in the eyes of the colour-blind, as simulated by Machado, Oliveira and Fernandes (2009).
MOTIONS: tuple[Colour, ...] = (
    (255, 186, 76),
    (0, 129, 228),
    (125, 255, 0),
    (169, 81, 167),
    (0, 216, 255),
    (60, 1, 232),
    (255, 84, 110),
)
NO_STRUCTURE: Colour = (235, 235, 235)
MISMATCH: Colour = (140, 140, 140)
#: Of lines: what matters are the markers.
OPACITY = 0.55
#: Of a motion's planes, which shades alone would not tell apart.
MARKERS = ("square", "diamond", "triangle")


@dataclass(frozen=True)
class Part:
    """Kept matches that are drawn alike: which of the rows (n,), BGR colour, marker, how opaque their lines are, and words.

    `count` are the matches of what the words name: of a motion, also those on its planes, which are parts of their own.
    """

    rows: Mask
    colour: Colour
    marker: str
    title: str
    remark: str
    count: int
    opacity: float = OPACITY

    @property
    def text(self) -> str:
        """What the caption says."""
        return f"{self.title}: {self.count}{self.remark}"


def draw_structures(
    img1: NDArray[Any],
    kp1: Keypoints,
    img2: NDArray[Any],
    kp2: Keypoints,
    matches: Matches | None,
    result: FilterResult,
    *,
    ratio: float | None = None,
    max_lines: int | None = 40,
    max_width: int | None = 2400,
) -> Picture:
    """Draw every motion in a colour of its own, its planes in shades of it, and mismatches in grey.

    The strip below names each motion by its number among the result's motions, and each plane by its number among its models, with its
    kind, its matches and its tolerance, as the result prints them.

    Parameters
    ----------
    img1, kp1, img2, kp2, matches, ratio, max_lines, max_width
        As for `draw_matches`.
    result : FilterResult
        Of these matches.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        As of `draw_matches`, with the structures below.

    Raises
    ------
    IndexError, TypeError, ValueError
        The message names the argument, what it must be and what arrived.

    Examples
    --------
    >>> from ruzhash_cv import filter_points
    >>> points = np.random.default_rng(0).uniform(0, 480, (60, 2))
    >>> image, moved = np.full((480, 640), 90, np.uint8), points + [40.0, 5.0]
    >>> draw_structures(image, points, image, moved, None, filter_points(points, moved)).shape[1:]
    (1280, 3)
    """
    canvas = lay_out(img1, img2, max_width, max_lines)
    lines, drawn = lines_of(canvas, kp1, kp2, matches, ratio)
    check_result(result, len(lines))
    drawn = with_match(drawn, result)
    flagged = lines[drawn & ~result.inlier_mask]
    mismatches = Group(flagged, MISMATCH, "cross", f"{len(flagged)} flagged", 0.5 * opacity(len(flagged)))
    kept = [
        Group(lines[part.rows], part.colour, part.marker, part.text, part.opacity) for part in parts_of(result, drawn)
    ]
    draw(canvas, [mismatches, *kept], markers_last=True)
    return np.vstack([canvas.picture, caption(canvas, [*kept, mismatches])])


def parts_of(result: FilterResult, drawn: Mask) -> Iterator[Part]:
    """Yield the kept matches of no motion, then motion after motion, each before its planes; of the rows that are `drawn`."""
    labels = result.motion_labels
    # Stationary structures are part of no motion.
    for item in range(-1, len(result.models)):
        rows = drawn & result.inlier_mask & (labels < 0) & (result.labels == item)
        if rows.any():
            title, remark = (
                ("kept, of no structure", "") if item < 0 else _words("structure", item, result.models[item])
            )
            count = int(rows.sum())
            marker = "dot" if item < 0 else "square"
            yield Part(rows, NO_STRUCTURE, marker, title, remark, count, opacity(count))
    for item, motion in enumerate(result.motions):
        colour, held = MOTIONS[item % len(MOTIONS)], drawn & (labels == item)
        planes = [part for part in motion.parts if motion.kind != result.models[part].kind]
        if len(planes) == 1 and (result.labels[held] == planes[0]).all():  # a plane is all there is of it
            planes = []
        off_planes = held & ~np.isin(result.labels, planes)
        yield Part(off_planes, colour, "disc", *_words("motion", item, motion), int(held.sum()))
        for number, (part, shade) in enumerate(zip(planes, _shades(colour, len(planes)), strict=True)):
            rows = held & (result.labels == part)
            marker = MARKERS[number % len(MARKERS)]
            yield Part(rows, shade, marker, *_words("plane", part, result.models[part]), int(rows.sum()))


def _words(name: str, item: int, structure: Structure) -> tuple[str, str]:
    """Return what a structure is called, and its tolerance."""
    still = "stationary " if structure.stationary else ""
    return f"{name} {item} {still}{structure.kind}", f", tolerance {as_length(structure.tolerance)}"


def _shades(colour: Colour, n: int) -> list[Colour]:
    """Return shades of a colour from dark to pale; one alone is pale."""
    shades = []
    for share in np.linspace(-0.4, 0.55, n) if n != 1 else [0.45]:
        paler = [channel + share * (255 - channel) if share > 0 else channel * (1 + share) for channel in colour]
        shades.append((round(paler[0]), round(paler[1]), round(paler[2])))
    return shades
