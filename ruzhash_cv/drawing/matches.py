"""Matches in two colours: kept and flagged."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._validation import as_mask, check_choice
from ruzhash_cv.correspondences import Keypoints, Matches
from ruzhash_cv.drawing.canvas import Picture, lay_out, lines_of, with_match
from ruzhash_cv.drawing.marks import Colour, Group, caption, draw, opacity

# BGR. Kept is light with dots, flagged dark with crosses: they stay apart without red-green vision and in grey print.
KEPT: Colour = (140, 230, 100)
FLAGGED: Colour = (40, 30, 255)


def draw_matches(
    img1: NDArray[Any],
    kp1: Keypoints,
    img2: NDArray[Any],
    kp2: Keypoints,
    matches: Matches | None,
    result_or_mask: Any,
    *,
    ratio: float | None = None,
    show: str = "both",
    max_lines: int | None = 100,
    max_width: int | None = 2400,
) -> Picture:
    """Draw kept matches in green with dots and flagged mismatches in red with crosses, the fewer on top.

    The images stand at one height, toned down so that the lines stand out; thickness and opacity follow the size of the picture and
    the number of matches. A strip below the images counts both kinds.

    Parameters
    ----------
    img1, img2 : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, BGR or BGRA; they may differ in size.
    kp1, kp2, matches
        As for `filter_matches`; None matches row i with row i of points or keypoints. Matches whose position is not finite and
        knnMatch rows without a match are left out.
    result_or_mask : FilterResult, or array_like of shape (n,) or (n, 1)
        Anything with an attribute ``inlier_mask``, or the mask itself: bool or OpenCV's uint8, non-zero = keep.
    ratio : float, optional
        The `ratio` given to `filter_matches`, with a mask: rows that fail the ratio test are left out. A FilterResult knows them.
    show : {"both", "kept", "flagged"}
        Which matches to draw; the caption counts both.
    max_lines : int or None, default 100
        Lines drawn of each kind, taken evenly from all over the first image; the markers at the ends are drawn of all. None: all lines.
    max_width : int or None, default 2400
        Largest width of the picture in pixels, at least 240: large photographs are shrunk to it, small images (together
        narrower than 640 px) are enlarged. None keeps the pixels of the higher image.

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
    canvas = lay_out(img1, img2, max_width, max_lines)
    lines, drawn = lines_of(canvas, kp1, kp2, matches, ratio)
    mask = as_mask(result_or_mask, "result_or_mask", len(lines))
    drawn = with_match(drawn, result_or_mask)
    check_choice(show, "show", ("kept", "flagged", "both"))
    kept, flagged = lines[drawn & mask], lines[drawn & ~mask]
    opaque = opacity(len(kept), max_lines), 0.25 + 0.75 * opacity(len(flagged), max_lines)
    groups = {
        "kept": Group(kept, KEPT, "dot", _words(len(kept), "kept", show, max_lines), opaque[0]),
        "flagged": Group(flagged, FLAGGED, "cross", _words(len(flagged), "flagged", show, max_lines), opaque[1]),
    }
    # The fewer on top: they would be lost beneath the many.
    order = sorted(groups, key=lambda name: -len(groups[name].lines))
    draw(canvas, [groups[name] for name in order if show in (name, "both")])
    return np.vstack([canvas.picture, caption(canvas, list(groups.values()))])


def _words(n: int, name: str, show: str, max_lines: int | None) -> str:
    if show not in (name, "both"):
        return f"{n} {name}, not drawn"
    return f"{n} {name}" if max_lines is None or n <= max_lines else f"{n} {name}, {max_lines} lines"
