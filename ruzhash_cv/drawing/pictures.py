"""The three pictures: kept and flagged matches, anomaly scores, structures."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.drawing.canvas import Canvas, Picture, check_result, lay_out, rows_to_draw
from ruzhash_cv.drawing.marks import Group, caption, draw, opacity
from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.foundation.validation import arrived, as_array, as_mask, check_choice
from ruzhash_cv.input.correspondences import Keypoints, Matches
from ruzhash_cv.results import printing
from ruzhash_cv.results.result import FilterResult

Colour: TypeAlias = tuple[int, int, int]

# BGR. Kept is light with dots, flagged dark with crosses: they stay apart without red-green vision and in grey print.
KEPT: Colour = (140, 230, 100)
FLAGGED: Colour = (40, 30, 255)
#: Colours of scores: plasma without its darkest end, which is lost on a dark photograph.
PLASMA = cv2.applyColorMap(np.arange(38, 256, dtype=np.uint8)[None], cv2.COLORMAP_PLASMA)[0]
#: BGR of motions and planes in the order of the result's table. Any two of the first seven and the colours below are apart by a CIE76
#: difference of 25 in the eyes of the colour-blind, as simulated by Machado, Oliveira and Fernandes (2009); of all, by 13.
STRUCTURES: tuple[Colour, ...] = (
    *((255, 186, 76), (0, 129, 228), (125, 255, 0), (169, 81, 167), (0, 216, 255), (60, 1, 232), (255, 84, 110)),
    *((153, 204, 153), (68, 0, 170), (187, 68, 102), (0, 102, 0), (204, 153, 238), (102, 34, 153), (187, 255, 204)),
    *((255, 136, 102), (102, 136, 170), (68, 204, 51), (255, 204, 255), (204, 17, 119), (221, 102, 255), (238, 0, 102)),
    *((119, 187, 187), (170, 102, 204), (102, 255, 153)),
)
#: Brightness of the colours after the last one, in which all of them return.
DARKER = 0.8
NO_MOTION: Colour = (235, 235, 235)
MISMATCH: Colour = (140, 140, 140)
#: Markers of the planes of a motion; matches off the planes have discs.
PLANE_MARKERS = ("square", "diamond", "triangle")
#: Of the lines of a structure: the markers matter more.
LINE_OPACITY = 0.55


def draw_matches(
    img1: NDArray[Any] | None,
    kp1: Keypoints,
    img2: NDArray[Any] | None,
    kp2: Keypoints,
    matches: Matches | None,
    result_or_mask: Any,
    *,
    ratio: float | None = None,
    show: str = "both",
    max_lines: int | None = 60,
    max_width: int | None = 2400,
) -> Picture:
    """Draw kept matches in green with dots and flagged matches in red with crosses.

    The images stand side by side at the same height, in dimmed colours. Line width and opacity depend on the size of the picture and
    the number of matches. The kind with fewer matches is drawn on top. The caption counts both kinds, and the lines drawn.

    Parameters
    ----------
    img1, img2 : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, BGR or BGRA; they may differ in size.
    kp1, kp2, matches
        As for `filter_matches`. If `matches` is None, row i of the points corresponds to row i. Rows without a match or without
        finite positions are left out.
    result_or_mask : FilterResult, or array_like of shape (n,) or (n, 1)
        The result, anything else with an attribute ``inlier_mask``, or the mask: bool or OpenCV's uint8, non-zero = keep.
    ratio : float, optional
        If you pass a mask, the `ratio` given to `filter_matches`: rows that fail the ratio test are left out.
    show : {"both", "apart", "kept", "flagged"}
        Which matches to draw. ``"apart"`` draws the image pair twice, kept matches above flagged ones.
    max_lines : int or None, default 60
        Largest number of lines of each kind, spread evenly over the first image. Markers are drawn for all matches. None: all lines.
    max_width : int or None, default 2400
        Largest width of the picture in pixels, at least 240. Wider pictures are shrunk, and pictures narrower than 640 px are
        enlarged. None keeps the pixels of the taller image.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        BGR, `img1` on the left, `img2` on the right, the caption below.

    Raises
    ------
    IndexError, TypeError, ValueError
        The message names the argument, what it must be and what arrived.

    Examples
    --------
    >>> img1, img2 = np.full((480, 640, 3), 90, np.uint8), np.full((480, 640), 120, np.uint8)
    >>> kp1, kp2 = np.array([[100, 100], [200, 300]]), np.array([[110, 100], [20, 40]])
    >>> draw_matches(img1, kp1, img2, kp2, [[0, 0], [1, 1]], [True, False]).shape[1:]
    (1280, 3)
    """
    canvas = lay_out(img1, kp1, img2, kp2, matches, ratio, max_lines, max_width)
    mask, drawn = as_mask(result_or_mask, "result_or_mask", len(canvas.lines)), rows_to_draw(canvas, result_or_mask)
    check_choice(show, "show", ("kept", "flagged", "both", "apart"))
    groups = []
    for name, chosen, colour, marker, least in (
        ("kept", mask, KEPT, "dot", 0.0),
        ("flagged", ~mask, FLAGGED, "cross", 0.25),
    ):
        rows, words = np.flatnonzero(drawn & chosen), ""
        if show not in (name, "both", "apart"):
            words = ", not drawn"
        elif max_lines is not None and len(rows) > max_lines:
            words = f", {max_lines} lines drawn"
        opaque = least + (1 - least) * opacity(len(rows), max_lines)
        groups.append(Group(rows, colour, marker, f"{len(rows)} {name}{words}", opaque))
    strip = caption(canvas, groups)
    if show == "apart":
        below = replace(canvas, picture=canvas.picture.copy())
        return np.vstack([draw(canvas, groups[:1], canvas.strip(0)), draw(below, groups[1:], strip)])
    # The fewer on top: they would be lost beneath the many.
    shown = sorted(groups if show == "both" else [groups[show == "flagged"]], key=lambda group: -len(group.rows))
    return draw(canvas, shown, strip)


def draw_scores(
    img1: NDArray[Any] | None,
    kp1: Keypoints,
    img2: NDArray[Any] | None,
    kp2: Keypoints,
    matches: Matches | None,
    result_or_scores: Any,
    *,
    ratio: float | None = None,
    max_lines: int | None = 100,
    max_width: int | None = 2400,
) -> Picture:
    """Draw every match in the colour of its anomaly score, the highest scores on top, with a colour bar below.

    Parameters
    ----------
    img1, kp1, img2, kp2, matches, ratio, max_lines, max_width
        As for `draw_matches`.
    result_or_scores : FilterResult, or array_like of float, shape (n,)
        The result, anything else with an attribute ``anomaly_scores``, or the scores; high = mismatch. Matches without a finite score
        are left out. The colours span the scores that are drawn.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        BGR, as from `draw_matches`, with the colour bar below.

    Examples
    --------
    >>> image, corners = np.full((480, 640), 90, np.uint8), [[100, 100], [200, 300]]
    >>> draw_scores(image, corners, image, corners, [[0, 0], [1, 1]], [0.4, 0.7]).shape[1:]
    (1280, 3)
    """
    canvas = lay_out(img1, kp1, img2, kp2, matches, ratio, max_lines, max_width)
    scores = _as_scores(result_or_scores, len(canvas.lines))
    drawn = rows_to_draw(canvas, result_or_scores) & np.isfinite(scores)
    order = np.flatnonzero(drawn)[np.argsort(scores[drawn], kind="stable")]
    low, high = (float(scores[order[0]]), float(scores[order[-1]])) if len(order) else (0.0, 1.0)
    if high - low <= 1e-9 * abs(low):
        low, high = low - max(0.01, 0.01 * abs(low)), high + max(0.01, 0.01 * abs(high))
    levels = (scores[order] - low) / (high - low)
    colours = PLASMA[np.round(levels * (len(PLASMA) - 1)).astype(int)]
    # Layers of rising opacity: the many low scores stay a veil, the few high ones come out.
    cuts, veil = np.searchsorted(levels, [0.25, 0.5, 0.75]), opacity(len(levels), max_lines)
    layers = enumerate(zip(np.split(order, cuts), np.split(colours, cuts), strict=True))
    groups = [Group(rows, shades, "dot", "", min(0.9, veil + 0.2 * number)) for number, (rows, shades) in layers]
    return draw(canvas, groups, _colour_bar(canvas, low, high))


def _as_scores(value: Any, n_matches: int) -> Array:
    scores = as_array(getattr(value, "anomaly_scores", value), "result_or_scores", f"({n_matches},)")
    if scores.dtype.kind not in "fiu" and scores.size:
        raise TypeError(f"`result_or_scores` must be a FilterResult or scores of float, got {arrived(value, scores)}")
    if scores.shape != (n_matches,):
        raise ValueError(f"`result_or_scores` must have one entry per match, shape ({n_matches},), got {scores.shape}")
    return scores.astype(np.float64)


def _colour_bar(canvas: Canvas, low: float, high: float) -> Picture:
    strip = canvas.strip(84)
    height, left, right = len(strip), len(strip) // 2, strip.shape[1] - len(strip) // 2
    strip[height // 6 : height // 2, left:right] = cv2.resize(PLASMA[None], (right - left, 1))
    texts = f"{low:.3g}, agrees with others", "anomaly score, not the mask", f"isolated, {high:.3g}"
    if sum(map(canvas.text_width, texts)) > 0.9 * (right - left):
        texts = f"{low:.3g}, agrees", "", f"isolated, {high:.3g}"
    for text, align in zip(texts, (0.0, 0.5, 1.0), strict=True):
        canvas.write(strip, text, left + align * (right - left - canvas.text_width(text)), 0.85 * height)
    return strip


def draw_structures(
    img1: NDArray[Any] | None,
    kp1: Keypoints,
    img2: NDArray[Any] | None,
    kp2: Keypoints,
    matches: Matches | None,
    result: FilterResult,
    *,
    ratio: float | None = None,
    max_lines: int | None = 40,
    max_width: int | None = 2400,
) -> Picture:
    """Draw each motion and each of its planes in a separate colour, and flagged matches in grey.

    The caption has the kind and the number of matches of each, with the numbers of the printed result: motion 0 is
    `motions[0]`, plane 0:1 is its `planes[1]`.

    Parameters
    ----------
    img1, kp1, img2, kp2, matches, ratio, max_lines, max_width
        As for `draw_matches`, with the same errors.
    result : FilterResult
        The result of these matches.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        BGR, as from `draw_matches`, with the structures below.

    Examples
    --------
    >>> from ruzhash_cv import filter_points
    >>> points = np.random.default_rng(0).uniform(0, 480, (60, 2))
    >>> image, moved = np.full((480, 640), 90, np.uint8), points + [40.0, 5.0]
    >>> draw_structures(image, points, image, moved, None, filter_points(points, moved)).shape[1:]
    (1280, 3)
    """
    canvas = lay_out(img1, kp1, img2, kp2, matches, ratio, max_lines, max_width)
    check_result(result, len(canvas.lines))
    drawn = rows_to_draw(canvas, result)
    flagged = np.flatnonzero(drawn & ~result.inlier_mask)
    mismatches = Group(flagged, MISMATCH, "cross", f"{len(flagged)} flagged", 0.5 * opacity(len(flagged)))
    kept = list(groups_of(result, drawn))
    return draw(canvas, [mismatches, *kept], caption(canvas, [*kept, mismatches]), markers_last=True)


def colour_of(number: int) -> Colour:
    """Return the colour of the motion or plane of a number; no other number has it."""
    turn, place = divmod(number, len(STRUCTURES))
    blue, green, red = (round(DARKER**turn * channel) for channel in STRUCTURES[place])
    return blue, green, red


def groups_of(result: FilterResult, drawn: Mask) -> Iterator[Group]:
    """Yield the kept matches in no motion, then those of each row of the table of motions and planes; only `drawn` matches.

    The group of a motion with planes has its off-plane matches; its text counts both, all of its matches and these.
    """
    kept, table = drawn & result.inlier_mask, printing.table(result)
    rows = np.flatnonzero(kept & ~np.any([row.alone for row in table], axis=0))
    if len(rows):
        yield Group(rows, NO_MOTION, "dot", f"kept, in no motion: {len(rows)}", opacity(len(rows)))
    colours, markers = map(colour_of, itertools.count()), itertools.cycle(PLANE_MARKERS)
    for row in table:
        if not row.is_plane:
            markers = itertools.cycle(PLANE_MARKERS)
        stationary, alone = not row.is_plane and row.structure.stationary, np.flatnonzero(kept & row.alone)
        what = "" if row.is_plane else f", {'stationary ' * stationary}{row.words}"
        off_planes = "" if row.is_plane or not row.structure.planes else f", {len(alone)} off its planes"
        colour, marker = NO_MOTION if stationary else next(colours), next(markers) if row.is_plane else "disc"
        yield Group(alone, colour, marker, f"{row.name}{what}: {row.n_matches}{off_planes}", LINE_OPACITY)
