"""Two images side by side at one height, the matches as lines on them, and strips of text below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.foundation.validation import check_int
from ruzhash_cv.input.correspondences import Keypoints, Matches, look_up
from ruzhash_cv.results.result import FilterResult

Picture: TypeAlias = NDArray[np.uint8]

_BACKGROUND = (28, 28, 28)
_TEXT = (235, 235, 235)
#: Height of a row of text in text units; on a page of half the picture's width it is still legible.
ROW = 45
_LEAST_WIDTH = 640  # a narrower pair is enlarged
_NARROWEST = 240  # the captions need as much
_MOST_ENLARGED = 8.0  # to the height of the other image; a strip of a few rows would become a picture of gigabytes
_FAR = 2.0**20  # beyond it the fixed-point coordinates of OpenCV's drawing functions would overflow


@dataclass(frozen=True)
class Canvas:
    """A picture (height, width, 3) in BGR, and the matches as `lines` (n, 4): x1, y1, x2, y2 on the picture, NaN without a match.

    `max_lines` is the largest number of lines that are drawn of a group, None: all.
    """

    picture: Picture
    lines: Array
    max_lines: int | None = None

    @property
    def unit(self) -> float:
        """Line width in pixels that looks thin on this canvas."""
        return max(float(self.picture.shape[1]) / 1600, 1.0)

    @property
    def text_unit(self) -> float:
        """A pixel of text on a canvas of 1600; small pictures are shown at their own size and get smaller text."""
        return max(float(self.picture.shape[1]) / 1600, 2 / 3)

    def strip(self, height: float) -> Picture:
        """Return an empty strip as wide as the canvas, its height in text units."""
        return np.full((round(height * self.text_unit), self.picture.shape[1], 3), _BACKGROUND, np.uint8)

    def text_width(self, text: str) -> int:
        return int(cv2.getTextSize(text, cv2.FONT_HERSHEY_SIMPLEX, *self._font())[0][0])

    def write(self, strip: Picture, text: str, x: float, y: float) -> None:
        """Write from (x, y), the left end of the baseline."""
        size, thickness = self._font()
        at = (round(x), round(y))
        cv2.putText(strip, text, at, cv2.FONT_HERSHEY_SIMPLEX, size, _TEXT, thickness, cv2.LINE_AA)

    def _font(self) -> tuple[float, int]:
        return 0.75 * self.text_unit, max(1, round(1.3 * self.text_unit))


def lay_out(
    img1: NDArray[Any] | None, kp1: Keypoints, img2: NDArray[Any] | None, kp2: Keypoints, matches: Matches | None, ratio: float | None,
    max_lines: int | None, max_width: int | None,
) -> Canvas:  # fmt: skip
    """Return the images side by side at one height, darker and paler so that no colour competes with the lines."""
    images = [as_bgr(img1, "img1"), as_bgr(img2, "img2")]
    height = max(image.shape[0] for image in images)
    factors = [min(height / image.shape[0], _MOST_ENLARGED) for image in images]
    scale = _scale(sum(image.shape[1] * factor for image, factor in zip(images, factors, strict=True)), max_width)
    # Rounded down, unless rounding errors made a whole number a little smaller.
    sizes = [
        tuple(max(1, int(side * factor * scale + 1e-6)) for side in image.shape[1::-1])
        for image, factor in zip(images, factors, strict=True)
    ]
    offsets = 0, sizes[0][0]
    picture_size = max(h for _, h in sizes), max(_NARROWEST, sizes[0][0] + sizes[1][0]), 3
    picture = np.full(picture_size, _BACKGROUND, np.uint8)
    max_lines = None if max_lines is None else check_int(max_lines, "max_lines", at_least=0)
    pairs = look_up(kp1, kp2, matches, ratio, ("kp1", "kp2"), filtered=True)
    ends = []
    for image, (w, h), offset, points in zip(images, sizes, offsets, (pairs.points1, pairs.points2), strict=True):
        resized = cv2.resize(image, (w, h), interpolation=cv2.INTER_AREA if h < len(image) else cv2.INTER_LINEAR)
        grey = cv2.cvtColor(cv2.cvtColor(resized, cv2.COLOR_BGR2GRAY), cv2.COLOR_GRAY2BGR)
        picture[:h, offset : offset + w] = cv2.addWeighted(resized, 0.42, grey, 0.46, 0)
        per_pixel = np.array((w, h)) / image.shape[1::-1]
        # Pixel centres have whole coordinates on the canvas as in the images.
        ends.append((np.clip(points, -_FAR / per_pixel, _FAR / per_pixel) + 0.5) * per_pixel - 0.5 + [offset, 0])
    finite = np.isfinite(np.hstack([pairs.points1, pairs.points2])).all(axis=1, keepdims=True)
    canvas = Canvas(picture, np.where(finite, np.hstack(ends), np.nan), max_lines)
    seam = round(canvas.unit)
    picture[:, max(0, offsets[1] - seam) : offsets[1] + seam] = _BACKGROUND
    return canvas


def _scale(width: float, max_width: int | None) -> float:
    if max_width is None:
        return 1.0
    max_width = check_int(max_width, "max_width", at_least=_NARROWEST)
    return max_width / width if width > max_width else max(1.0, min(_LEAST_WIDTH, max_width) // width)


def as_bgr(image: Any, name: str) -> NDArray[Any]:
    """Return a grey, BGR or BGRA image of uint8 as BGR (h, w, 3)."""
    if image is None:
        raise TypeError(f"`{name}` must be an image, got None, which cv2.imread returns for a file it cannot read")
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8:
        arrived = f"dtype {image.dtype}" if isinstance(image, np.ndarray) else type(image).__name__
        hint = "; read a file by cv2.imread" if isinstance(image, str) or hasattr(image, "__fspath__") else ""
        raise TypeError(f"`{name}` must be an array of uint8, got {arrived}{hint}")
    channels = 1 if image.ndim == 2 else image.shape[2] if image.ndim == 3 else 0
    if channels not in (1, 3, 4) or image.size == 0:
        raise ValueError(f"`{name}` must have shape (h, w), (h, w, 3) or (h, w, 4), not empty, got {image.shape}")
    conversion = {1: cv2.COLOR_GRAY2BGR, 4: cv2.COLOR_BGRA2BGR}.get(channels)
    image = np.ascontiguousarray(image)
    return image if conversion is None else np.asarray(cv2.cvtColor(image, conversion))


def titled(picture: Picture, title: str) -> Picture:
    """Return a picture below a strip with its title."""
    canvas = Canvas(picture, np.zeros((0, 4)))
    strip = canvas.strip(ROW)
    canvas.write(strip, title, 0.25 * len(strip), 0.65 * len(strip))
    return np.vstack([strip, picture])


def rows_to_draw(canvas: Canvas, result: Any) -> Mask:
    """Return which lines have finite ends and, in a result, a match."""
    finite = np.asarray(np.isfinite(canvas.lines[:, 0]))
    return finite & result.has_match if isinstance(result, FilterResult) else finite


def check_result(result: Any, n_matches: int) -> None:
    """Raise unless `result` is a FilterResult of `n_matches`."""
    if not isinstance(result, FilterResult):
        raise TypeError(f"`result` must be a FilterResult, got {type(result).__name__}")
    if len(result.inlier_mask) != n_matches:
        raise ValueError(f"`result` must have one entry per match, {n_matches}, got {len(result.inlier_mask)}")
