"""Matches in the colours of their anomaly scores."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Array
from ruzhash_cv._validation import arrived, as_array
from ruzhash_cv.correspondences import Keypoints, Matches
from ruzhash_cv.drawing.canvas import Canvas, Picture, lay_out, lines_of, with_match
from ruzhash_cv.drawing.marks import Group, draw, opacity

#: Colours of scores: plasma without its darkest end, which is lost on a dark photograph.
PLASMA = cv2.applyColorMap(np.arange(38, 256, dtype=np.uint8)[None], cv2.COLORMAP_PLASMA)[0]


def draw_scores(
    img1: NDArray[Any],
    kp1: Keypoints,
    img2: NDArray[Any],
    kp2: Keypoints,
    matches: Matches | None,
    result_or_scores: Any,
    *,
    ratio: float | None = None,
    max_lines: int | None = 100,
    max_width: int | None = 2400,
) -> Picture:
    """Draw every match in the colour of its anomaly score, the highest on top, with a colour bar below.

    Parameters
    ----------
    img1, kp1, img2, kp2, matches, ratio, max_lines, max_width
        As for `draw_matches`.
    result_or_scores : FilterResult, or array_like of float, shape (n,)
        Anything with an attribute ``anomaly_scores``, or the scores themselves; high = mismatch. Matches whose score is
        not finite are left out. The colours span the scores that are drawn.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        As of `draw_matches`, with the colour bar below.

    Examples
    --------
    >>> image, corners = np.full((480, 640), 90, np.uint8), [[100, 100], [200, 300]]
    >>> draw_scores(image, corners, image, corners, [[0, 0], [1, 1]], [0.4, 0.7]).shape[1:]
    (1280, 3)
    """
    canvas = lay_out(img1, img2, max_width, max_lines)
    lines, drawn = lines_of(canvas, kp1, kp2, matches, ratio)
    scores = _as_scores(result_or_scores, len(lines))
    drawn = with_match(drawn, result_or_scores) & np.isfinite(scores)
    order = np.flatnonzero(drawn)[np.argsort(scores[drawn], kind="stable")]
    lines, scores = lines[order], scores[order]
    low, high = (float(scores[0]), float(scores[-1])) if len(scores) else (0.0, 1.0)
    if high - low <= 1e-9 * abs(low):
        low, high = low - max(0.01, 0.01 * abs(low)), high + max(0.01, 0.01 * abs(high))
    levels = (scores - low) / (high - low)
    colours = PLASMA[np.round(levels * (len(PLASMA) - 1)).astype(int)]
    # Layers of rising opacity: the many low scores stay a veil, the few high ones come out.
    layers = np.split(np.arange(len(levels)), np.searchsorted(levels, [0.25, 0.5, 0.75]))
    veil = opacity(len(levels), max_lines)
    opaque = [min(0.9, veil + 0.2 * number) for number in range(len(layers))]
    groups = [Group(lines[rows], colours[rows], "dot", "", share) for rows, share in zip(layers, opaque, strict=True)]
    draw(canvas, groups)
    return np.vstack([canvas.picture, _colour_bar(canvas, low, high)])


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
    for text, align in ((f"{low:.3g}", 0.0), ("anomaly score", 0.5), (f"{high:.3g}", 1.0)):
        canvas.write(strip, text, left + align * (right - left - canvas.text_width(text)), 0.85 * height)
    return strip
