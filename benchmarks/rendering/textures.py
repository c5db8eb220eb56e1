"""Procedural pictures of walls, floors and printed things, with enough that is distinct for keypoints.

A painter takes a height and width in texels, how many texels a metre has, and a Generator, and returns BGR uint8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Image: TypeAlias = NDArray[np.uint8]
WORDS = (
    "harbour", "orchard", "lantern", "meridian", "granite", "willow", "atlas", "compass", "heron", "summit", "copper", "marble",
)  # fmt: skip
INK, PAPER = (40, 36, 34), (236, 240, 242)


def colour(rng: np.random.Generator, saturation: float = 0.5, value: float = 0.6) -> tuple[int, int, int]:
    """A BGR colour of any hue, about so saturated and bright."""
    hsv = rng.uniform(0, 180), 255 * (saturation + rng.normal(0, 0.1)), 255 * (value + rng.normal(0, 0.12))
    b, g, r = cv2.cvtColor(np.clip(hsv, 0, 255)[None, None].astype(np.uint8), cv2.COLOR_HSV2BGR)[0, 0]
    return int(b), int(g), int(r)


def blobs(height: int, width: int, cell: float, rng: np.random.Generator, octaves: int = 4) -> NDArray[np.float32]:
    """Smooth noise of about unit deviation whose largest patches are about `cell` texels across."""
    total: Any = np.zeros((height, width), np.float32)
    for octave in range(octaves):
        size = max(1.5, cell / 2**octave)
        grid = rng.standard_normal((int(height / size) + 3, int(width / size) + 3)).astype(np.float32)
        total += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * 0.6**octave
    return np.asarray(total / max(float(total.std()), 1e-6), np.float32)


def shaded(image: NDArray[Any], change: NDArray[Any]) -> Image:
    """The image with `change` (h, w) in grey levels added."""
    return np.asarray(np.clip(image + change[..., None], 0, 255), np.uint8)


def plain(
    height: int, width: int, fill: tuple[int, int, int], cell: float, rng: np.random.Generator, strength: float = 7
) -> Image:
    """One colour with stains."""
    stains = strength * blobs(height, width, cell, rng) + rng.normal(0, 3, (height, width))
    return shaded(np.full((height, width, 3), fill, np.uint8), stains)


def rectangle(image: Image, box: tuple[float, float, float, float], fill: tuple[int, int, int]) -> None:
    """Fill left, top, right, bottom, in texels rounded."""
    left, top, right, bottom = map(round, box)
    cv2.rectangle(image, (left, top), (right - 1, bottom - 1), fill, -1)


def write(
    image: Image, place: tuple[float, float], height: float, fill: tuple[int, int, int], rng: np.random.Generator
) -> None:
    """Write a word with its lower left corner at a place, `height` texels high."""
    corner, thickness = (round(place[0]), round(place[1])), max(1, round(height / 11))
    font = (cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_TRIPLEX)[int(rng.integers(2))]
    cv2.putText(image, str(rng.choice(WORDS)), corner, font, height / 22, fill, thickness, cv2.LINE_AA)


def mark(image: Image, count: int, size: float, rng: np.random.Generator) -> Image:
    """Draw bars, discs and words of about `size` texels anywhere."""
    height, width = image.shape[:2]
    for kind in rng.integers(0, 3, count):
        x, y, extent = rng.uniform(0, width), rng.uniform(0, height), size * rng.uniform(0.5, 1.5)
        fill = colour(rng, 0.6, rng.uniform(0.2, 0.9))
        if kind == 0:
            rectangle(image, (x, y, x + extent, y + extent * rng.uniform(0.3, 1.2)), fill)
        elif kind == 1:
            axes = max(1, round(extent / 2)), max(1, round(extent / 4))
            cv2.ellipse(image, (round(x), round(y)), axes, rng.uniform(0, 180), 0, 360, fill, -1, cv2.LINE_AA)
        else:
            write(image, (x, y), 0.5 * extent, fill, rng)
    return image


def window(height: int, width: int, frame: tuple[int, int, int], rng: np.random.Generator, things: int) -> Image:
    """Six panes in a frame, with some things behind them."""
    image = plain(height, width, frame, height, rng, 2)
    for index in range(6):
        x, y = index % 2 * width / 2, index // 2 * height / 3
        top, left = round(y + 0.03 * height), round(x + 0.06 * width)
        pane = image[top : round(y + 0.3 * height), left : round(x + 0.44 * width)]
        pane[:] = plain(*pane.shape[:2], (96, 84, 74), pane.shape[1], rng, 16)
        mark(pane, things, 0.5 * pane.shape[1], rng)
    return image


def wall(
    height: int, width: int, scale: float, rng: np.random.Generator, columns: int, rows: int, is_repeated: bool
) -> Image:
    """A grid of windows in plaster; they differ, or are one window over and over but for blinds in some."""
    image = plain(height, width, colour(rng, 0.2, 0.7), scale, rng)
    storey, bay, frame = height / rows, width / columns, colour(rng, 0.15, 0.85)
    size = max(4, round(0.6 * storey)), max(4, round(0.55 * bay))
    panes = window(*size, frame, rng, 0 if is_repeated else 2)
    for row in range(rows):
        for column in range(columns):
            panes = panes if is_repeated else window(*size, frame, rng, 2)
            top, left = round((row + 0.2) * storey), round((column + 0.22) * bay)
            image[top : top + size[0], left : left + size[1]] = panes[: height - top, : width - left]
            if is_repeated and rng.random() < 0.45:
                drop, tone = rng.uniform(0.1, 0.8) * size[0], int(rng.integers(150, 226))
                blind = left + 0.1 * size[1], top, left + 0.9 * size[1], top + drop
                rectangle(image, blind, (tone - 14, tone - 4, tone))
        if not is_repeated:
            mark(image[round((row + 0.82) * storey) : round((row + 0.98) * storey)], 3 * columns, 0.4 * scale, rng)
    return image


def floor(height: int, width: int, scale: float, rng: np.random.Generator, tile: float, marks: float) -> Image:
    """Tiles of `tile` metres, each a little different, and `marks` on a square metre."""
    y, x = np.mgrid[:height, :width].astype(np.float32) / (tile * scale)
    number = np.floor(x).astype(int) * 1049 + np.floor(y).astype(int) * 7919
    tones = rng.normal(0, 16, 4093).astype(np.float32)[number % 4093]
    joints = np.minimum(x % 1, y % 1) < 0.06
    image = shaded(plain(height, width, (120, 126, 132), scale, rng), tones - 40 * joints)
    return mark(image, int(marks * height * width / scale**2), 0.25 * scale, rng)


def wood(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Grain along x, and knots."""
    streaks = blobs(height, max(8, width // 20), 0.01 * scale, rng)
    grain = cv2.resize(streaks, (width, height), interpolation=cv2.INTER_CUBIC)
    image = shaded(plain(height, width, (88, 128, 164), 0.3 * scale, rng), 12 * grain)
    for _ in range(int(2 * height * width / scale**2)):
        x, y, size = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.006, 0.014) * scale
        axes = max(1, round(1.9 * size)), max(1, round(size))
        cv2.ellipse(image, (round(x), round(y)), axes, 0, 0, 360, (48, 76, 104), -1, cv2.LINE_AA)
    return image


def printed(height: int, width: int, scale: float, rng: np.random.Generator, lines: int, marks: int) -> Image:
    """A coloured sheet with lines of words and other marks: pages, covers, parcels."""
    base = PAPER if lines > 8 else colour(rng, 0.45, 0.65)
    image = plain(height, width, base, max(height, width) / 2, rng, 4)
    for line in range(lines):
        for word in range(4):
            place = (0.08 + 0.23 * word) * width, (line + 0.8) / (lines + 0.5) * height
            write(image, place, 0.5 * height / lines, INK, rng)
    return mark(image, marks, 0.2 * min(height, width), rng)


PAINTERS: dict[str, Callable[..., Image]] = {
    "house": lambda *given, columns, rows: wall(*given, columns, rows, False),
    "offices": lambda *given, columns, rows: wall(*given, columns, rows, True),
    "paving": lambda *given, **_: floor(*given, 0.6, 5.0),
    "concrete": lambda *given, **_: floor(*given, 1.0, 1.5),
    "wood": lambda *given, **_: wood(*given),
    "cover": lambda *given, **_: printed(*given, 3, 24),
    "page": lambda *given, **_: printed(*given, 14, 2),
    "pages": lambda *given, **_: printed(*given, 1, 0),
    "parcel": lambda *given, **_: printed(*given, 4, 24),
    "carton": lambda *given, **_: printed(*given, 2, 24),
}
"""By the kind of a face's texture."""
