"""Pictures of matches: kept and flagged, or coloured by anomaly score, on the two images side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._core.validation import as_array, as_mask, check_int
from ruzhash_cv.correspondences import Keypoints, Matches, as_correspondences

Picture = NDArray[np.uint8]

# BGR. Kept is light with dots, flagged dark with crosses: they stay apart without red-green vision and in grey print.
_KEPT = (140, 230, 100)
_FLAGGED = (40, 30, 255)
_BACKGROUND = (28, 28, 28)
_TEXT = (235, 235, 235)
#: Colours of scores: plasma without its darkest end, which is lost on a dark photograph.
_PLASMA = cv2.applyColorMap(np.arange(38, 256, dtype=np.uint8)[None], cv2.COLORMAP_PLASMA)[0]
_LEAST_WIDTH = 640  # a pair narrower than this is enlarged
_NARROWEST = 240  # the captions need as much
_SHIFT = 4  # bits of sub-pixel position in OpenCV's drawing functions
_FAR = 2.0**20  # beyond it their fixed-point coordinates would overflow


def draw_matches(
    img1: NDArray[Any],
    kp1: Keypoints,
    img2: NDArray[Any],
    kp2: Keypoints,
    matches: Matches,
    result_or_mask: Any,
    *,
    ratio: float | None = None,
    max_width: int | None = 2400,
) -> Picture:
    """Draw kept matches in green and, on top of them, flagged mismatches in red.

    The photographs are toned down so that the lines stand out; thickness and opacity follow the size of the picture and
    the number of matches. A strip below the images counts both kinds.

    Parameters
    ----------
    img1, img2 : ndarray of uint8, shape (h, w), (h, w, 3) or (h, w, 4)
        Grey, BGR or BGRA; they may differ in size.
    kp1, kp2, matches
        As for `filter_matches`. Matches whose position is not finite and knnMatch rows without a match are left out.
    result_or_mask : FilterResult, or array_like of shape (n,) or (n, 1)
        Anything with an attribute ``inlier_mask``, or the mask itself: bool or OpenCV's uint8, non-zero = keep.
    ratio : float, optional
        The `ratio` given to `filter_matches`: rows that fail the ratio test are left out.
    max_width : int or None, default 2400
        Largest width of the picture in pixels, at least 240: large photographs are shrunk to it, small images (together
        narrower than 640 px) are enlarged. None keeps the images' own pixels.

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
    pair = _lay_out(img1, img2, max_width)
    lines, drawn = _lines(pair, kp1, kp2, matches, ratio)
    given = getattr(result_or_mask, "inlier_mask", result_or_mask)
    mask = as_mask(given, "result_or_mask", len(lines), also="a FilterResult or ")
    kept, flagged = lines[drawn & mask], lines[drawn & ~mask]
    _draw_layer(pair, kept, _KEPT, _opacity(len(kept)), "dot")
    _draw_layer(pair, flagged, _FLAGGED, 0.25 + 0.75 * _opacity(len(flagged)), "cross")
    return np.vstack([pair.canvas, _caption(pair, len(kept), len(flagged))])


def draw_scores(
    img1: NDArray[Any],
    kp1: Keypoints,
    img2: NDArray[Any],
    kp2: Keypoints,
    matches: Matches,
    result_or_scores: Any,
    *,
    ratio: float | None = None,
    max_width: int | None = 2400,
) -> Picture:
    """Draw every match in the colour of its anomaly score, the highest on top, with a colour bar below.

    Parameters
    ----------
    img1, kp1, img2, kp2, matches, ratio, max_width
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
    pair = _lay_out(img1, img2, max_width)
    lines, drawn = _lines(pair, kp1, kp2, matches, ratio)
    scores = _as_scores(getattr(result_or_scores, "anomaly_scores", result_or_scores), len(lines))
    drawn &= np.isfinite(scores)
    order = np.flatnonzero(drawn)[np.argsort(scores[drawn], kind="stable")]
    lines, scores = lines[order], scores[order]
    low, high = (float(scores[0]), float(scores[-1])) if len(scores) else (0.0, 1.0)
    if high - low <= 1e-9 * abs(low):
        low, high = low - max(0.01, 0.01 * abs(low)), high + max(0.01, 0.01 * abs(high))
    levels = (scores - low) / (high - low)
    colours = _PLASMA[np.round(levels * (len(_PLASMA) - 1)).astype(int)]
    # Layers of rising opacity: the many low scores stay a veil, the few high ones come out.
    for number, layer in enumerate(np.split(np.arange(len(levels)), np.searchsorted(levels, [0.25, 0.5, 0.75]))):
        _draw_layer(pair, lines[layer], colours[layer], min(0.9, _opacity(len(levels)) + 0.2 * number), "dot")
    return np.vstack([pair.canvas, _colour_bar(pair, low, high)])


@dataclass(frozen=True)
class _Pair:
    """The two images on one canvas, and how pixel positions map onto it."""

    canvas: Picture
    scale: float
    offset: int  # of the second image, in canvas pixels

    @property
    def unit(self) -> float:
        """Line width in pixels that looks thin on this canvas."""
        return max(float(self.canvas.shape[1]) / 1600, 1.0)

    def place(self, points: NDArray[np.float64], offset: int) -> NDArray[np.float64]:
        """Map pixel positions of one image to the canvas; pixel centres have whole coordinates in both."""
        far = _FAR / self.scale
        placed: NDArray[np.float64] = (np.clip(points, -far, far) + 0.5) * self.scale - 0.5 + [offset, 0]
        return placed

    def strip(self, height: float) -> Picture:
        """Return an empty strip as wide as the canvas, its height in thin lines."""
        return np.full((round(height * self.unit), self.canvas.shape[1], 3), _BACKGROUND, np.uint8)

    def write(self, strip: Picture, text: str, x: float, y: float, *, align: float = 0.0) -> int:
        """Write from (x, y) on, or further left by a share `align` of the text's width, and return the width."""
        size, thickness = 0.5 * self.unit, max(1, round(self.unit))
        width = cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, size, thickness)[0][0]
        at = (round(x - align * width), round(y))
        cv2.putText(strip, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, _TEXT, thickness, cv2.LINE_AA)
        return width


def _lay_out(img1: NDArray[Any], img2: NDArray[Any], max_width: int | None) -> _Pair:
    """Return the two images side by side at the width to draw at, darker and paler, so that no colour competes with the lines."""
    images = [_as_bgr(img1, "img1"), _as_bgr(img2, "img2")]
    width, scale = sum(image.shape[1] for image in images), 1.0
    if max_width is not None:
        max_width = check_int(max_width, "max_width", at_least=_NARROWEST)
        if width > max_width:
            scale = max_width / width
        elif width < _LEAST_WIDTH:
            scale = max(1.0, min(_LEAST_WIDTH, max_width) // width)
    sizes = [tuple(max(1, int(side * scale)) for side in image.shape[1::-1]) for image in images]
    width, height = max(_NARROWEST, sum(w for w, _ in sizes)), max(h for _, h in sizes)
    canvas = np.full((height, width, 3), _BACKGROUND, np.uint8)
    for image, (w, h), offset in zip(images, sizes, (0, sizes[0][0]), strict=True):
        resized = cv2.resize(image, (w, h), interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST)
        grey = cv2.cvtColor(cv2.cvtColor(resized, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
        canvas[:h, offset : offset + w] = cv2.addWeighted(resized, 0.3, grey, 0.35, 0)
    return _Pair(canvas, scale, sizes[0][0])


def _as_bgr(image: Any, name: str) -> NDArray[Any]:
    if image is None:
        raise TypeError(f"`{name}` must be an image, got None, which cv2.imread returns for a file it cannot read")
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        arrived = f"dtype {image.dtype}" if isinstance(image, np.ndarray) else type(image).__name__
        raise TypeError(f"`{name}` must be an array of uint8, got {arrived}")
    channels = 1 if image.ndim == 2 else image.shape[2] if image.ndim == 3 else 0
    if channels not in (1, 3, 4) or image.size == 0:
        raise ValueError(f"`{name}` must have shape (h, w), (h, w, 3) or (h, w, 4), not empty, got {image.shape}")
    image = np.ascontiguousarray(image)
    conversion = {1: cv2.COLOR_GRAY2BGR, 4: cv2.COLOR_BGRA2BGR}.get(channels)
    return image if conversion is None else np.asarray(cv2.cvtColor(image, conversion))


def _lines(
    pair: _Pair, kp1: Keypoints, kp2: Keypoints, matches: Matches, ratio: float | None
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the matches as lines (x1, y1, x2, y2) on the canvas, and which of them have finite ends."""
    correspondences = as_correspondences(kp1, kp2, matches, ratio=ratio)
    points1, points2 = correspondences.points1, correspondences.points2
    finite = np.asarray(np.isfinite(np.hstack([points1, points2])).all(axis=1))
    return np.hstack([pair.place(points1, 0), pair.place(points2, pair.offset)]), finite


def _as_scores(value: Any, n_matches: int) -> NDArray[np.float64]:
    scores = as_array(value, "result_or_scores", f"({n_matches},)")
    if scores.dtype.kind not in "fiu":
        raise TypeError(f"`result_or_scores` must be a FilterResult or scores of float, got dtype {scores.dtype}")
    if scores.shape != (n_matches,):
        raise ValueError(f"`result_or_scores` must have one entry per match, shape ({n_matches},), got {scores.shape}")
    return scores.astype(np.float64)


def _opacity(n_lines: int) -> float:
    """Return how opaque a layer of so many lines may be without hiding what lies beneath."""
    return float(np.clip(np.sqrt(60 / max(n_lines, 1)), 0.2, 0.8))


def _draw_layer(pair: _Pair, lines: NDArray[np.float64], colours: Any, opacity: float, marker: str) -> None:
    """Blend lines into the canvas as one layer, their end markers opaque on top; `colours` are one or one a line."""
    breadth = pair.unit * float(np.clip(np.sqrt(300 / max(len(lines), 1)), 0.7, 1.3))
    thickness, size = max(1, round(breadth)), round(2.5 * breadth * 2**_SHIFT)
    ends = np.round(lines * 2**_SHIFT).astype(int).reshape(-1, 2, 2).tolist()
    drawn = list(zip(ends, np.broadcast_to(colours, (len(lines), 3)).tolist(), strict=True))
    layer = pair.canvas.copy()
    for (start, end), colour in drawn:
        cv2.line(layer, start, end, colour, thickness, cv2.LINE_AA, _SHIFT)
    cv2.addWeighted(layer, opacity, pair.canvas, 1 - opacity, 0, dst=pair.canvas)
    for both, colour in drawn:
        for x, y in both:
            _draw_marker(pair.canvas, x, y, size, colour, thickness, marker)


def _draw_marker(canvas: Picture, x: int, y: int, size: int, colour: Any, thickness: int, marker: str) -> None:
    """Draw a dot or a cross of half-width `size`; positions in fixed point."""
    if marker == "dot":
        cv2.circle(canvas, (x, y), size * 5 // 8, colour, cv2.FILLED, cv2.LINE_AA, _SHIFT)
    else:
        cv2.line(canvas, (x - size, y - size), (x + size, y + size), colour, thickness, cv2.LINE_AA, _SHIFT)
        cv2.line(canvas, (x - size, y + size), (x + size, y - size), colour, thickness, cv2.LINE_AA, _SHIFT)


def _caption(pair: _Pair, n_kept: int, n_flagged: int) -> Picture:
    """Return the strip that explains the colours and counts the matches."""
    strip = pair.strip(30)
    height = len(strip)
    x = height // 2
    for text, colour, marker in ((f"{n_kept} kept", _KEPT, "dot"), (f"{n_flagged} flagged", _FLAGGED, "cross")):
        thickness = 2 * max(1, round(pair.unit))
        _draw_marker(strip, x << _SHIFT, height << _SHIFT >> 1, height << _SHIFT >> 2, colour, thickness, marker)
        x += height // 2
        x += pair.write(strip, text, x, 0.65 * height) + height
    return strip


def _colour_bar(pair: _Pair, low: float, high: float) -> Picture:
    """Return the strip with the colour bar."""
    strip = pair.strip(56)
    height, left, right = len(strip), len(strip) // 2, strip.shape[1] - len(strip) // 2
    strip[height // 6 : height // 2, left:right] = cv2.resize(_PLASMA[None], (right - left, 1))
    for text, align in ((f"{low:.3g}", 0.0), ("anomaly score", 0.5), (f"{high:.3g}", 1.0)):
        pair.write(strip, text, left + align * (right - left), 0.85 * height, align=align)
    return strip
