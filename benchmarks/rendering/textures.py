"""Procedural materials: brick, plaster, stone, wood, concrete; and the tools the painters share.

A painter takes a height and width in texels, how many texels a metre has, and a Generator, and returns BGR uint8.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

Image: TypeAlias = NDArray[np.uint8]
Float: TypeAlias = NDArray[np.float32]
Colour: TypeAlias = tuple[int, int, int]


def colour(hue: float, saturation: float, value: float) -> Colour:
    """Return the BGR colour of a hue in [0, 1) and a saturation and value in [0, 1]."""
    hsv = np.array([[[hue % 1.0 * 180, np.clip(saturation, 0, 1) * 255, np.clip(value, 0, 1) * 255]]])
    b, g, r = cv2.cvtColor(hsv.astype(np.uint8), cv2.COLOR_HSV2BGR)[0, 0]
    return int(b), int(g), int(r)


def blobs(height: int, width: int, cell: float, rng: np.random.Generator, octaves: int = 3) -> Float:
    """Return smooth noise of unit deviation whose largest patches are about `cell` texels across."""
    total: Any = np.zeros((height, width), np.float32)
    for octave in range(octaves):
        size = max(1.5, cell / 2**octave)
        grid = rng.standard_normal((int(height / size) + 3, int(width / size) + 3)).astype(np.float32)
        total += cv2.resize(grid, (width, height), interpolation=cv2.INTER_CUBIC) * 0.6**octave
    return np.asarray(total / max(float(total.std()), 1e-6), dtype=np.float32)


def shade(image: NDArray[Any], change: NDArray[Any]) -> Image:
    """Add `change`, (h, w) or (h, w, 3) in grey levels, and round to uint8."""
    extra = change[..., None] if change.ndim == 2 else change
    return np.asarray(np.clip(image + extra, 0, 255), dtype=np.uint8)


def plain(height: int, width: int, fill: Colour) -> Image:
    """Return one colour."""
    return np.full((height, width, 3), fill, np.uint8)


def rectangle(image: Image, left: float, top: float, right: float, bottom: float, fill: Colour) -> None:
    """Fill a rectangle, corners in texels rounded."""
    cv2.rectangle(image, (round(left), round(top)), (round(right) - 1, round(bottom) - 1), fill, -1)


def text(
    image: Image, words: str, left: float, top: float, height: float, fill: Colour, *, width: float = 1e9, font: int = 0
) -> float:
    """Write `words` with its top left corner at (left, top), `height` texels high; return the width taken.

    Narrower than `width` in any case.
    """
    face = [cv2.FONT_HERSHEY_DUPLEX, cv2.FONT_HERSHEY_TRIPLEX, cv2.FONT_HERSHEY_SIMPLEX, cv2.FONT_HERSHEY_COMPLEX][font]
    thickness = max(1, round(height / 11))
    (unit_width, unit_height), _ = cv2.getTextSize(words, face, 1.0, 1)
    scale = min(height / max(unit_height, 1), width / max(unit_width, 1))
    bottom = round(top + unit_height * scale)
    cv2.putText(image, words, (round(left), bottom), face, scale, fill, thickness, cv2.LINE_AA)
    return unit_width * scale


def masonry(
    height: int, width: int, course: float, length: float, joint: float, rng: np.random.Generator
) -> tuple[Any, Any]:
    """Return the number of the stone at each texel and how far (in texels) inside its joints it lies."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    row = np.floor(y / course)
    x = x + (row % 2) * length / 2 + blobs(height, width, course * 3, rng, 2) * joint * 0.15
    column = np.floor(x / length)
    inside = np.minimum.reduce(
        [y - row * course, (row + 1) * course - y, x - column * length, (column + 1) * length - x]
    )
    stone = (row.astype(np.int32) * 7919 + column.astype(np.int32) * 1049) % 4093
    return stone, inside - np.float32(joint / 2)


def bricks(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Paint a brick wall."""
    stone, inside = masonry(height, width, 0.11 * scale, 0.36 * scale, 0.022 * scale, rng)
    hue, dark = rng.uniform(0.01, 0.05), rng.uniform(0.5, 0.68)
    palette = np.array(
        [colour(hue + h, s, dark + v) for h, s, v in rng.normal([0, 0.5, 0], [0.008, 0.06, 0.07], (61, 3))]
    )
    wall = palette[stone % 61].astype(np.float32)
    wall[inside < 0] = np.array(colour(0.09, 0.14, dark + 0.12))
    grime = blobs(height, width, 1.8 * scale, rng, 4) * 7 + rng.normal(0, 5, (height, width))
    return shade(wall, grime)


def ashlar(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Paint a wall of dressed stone."""
    stone, inside = masonry(height, width, 0.36 * scale, 0.8 * scale, 0.03 * scale, rng)
    value = rng.uniform(0.62, 0.75)
    tones = rng.normal(0, 9, 61)
    wall = (
        plain(height, width, colour(rng.uniform(0.08, 0.12), rng.uniform(0.12, 0.25), value))
        + tones[stone % 61][..., None]
    )
    wall[inside < 0] *= 0.72
    return shade(wall, blobs(height, width, 0.5 * scale, rng, 4) * 7 + rng.normal(0, 4, (height, width)))


def plaster(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Paint a rendered wall, weathered below the sills and at the foot."""
    base = plain(
        height,
        width,
        colour(rng.choice([0.04, 0.08, 0.11, 0.13, 0.56]), rng.uniform(0.12, 0.32), rng.uniform(0.66, 0.82)),
    )
    stains = blobs(height, width, 1.6 * scale, rng, 5) * 6
    streaks = cv2.resize(blobs(max(2, height // 12), width, 0.3 * scale, rng), (width, height)) * 4
    cracks = np.where(np.abs(blobs(height, width, 1.2 * scale, rng, 4)) < 0.012, -22, 0)
    return shade(base, stains + streaks + cracks + rng.normal(0, 4, (height, width)))


def concrete(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Paint a smooth floor with faint stains."""
    return shade(
        plain(height, width, (112, 118, 122)),
        blobs(height, width, 0.7 * scale, rng, 4) * 6 + rng.normal(0, 2, (height, width)),
    )


def wood(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Paint glued oak staves with grain along x and some knots."""
    y, x = np.mgrid[:height, :width].astype(np.float32)
    stave = np.floor(y / (0.13 * scale)).astype(np.int64)
    joint = y - stave * 0.13 * scale
    grain = blobs(height, max(8, width // 14), 0.012 * scale, rng, 3)
    fine = blobs(height, max(8, width // 40), 0.004 * scale, rng, 2)
    long, thin = (cv2.resize(layer, (width, height), interpolation=cv2.INTER_CUBIC) for layer in (grain, fine))
    wave = np.sin((y + 0.03 * scale * blobs(height, width, 0.35 * scale, rng, 2)) / (0.0065 * scale) + stave * 1.7)
    oak = np.array(colour(rng.uniform(0.07, 0.085), rng.uniform(0.5, 0.6), rng.uniform(0.58, 0.68)), np.float64)
    tone = rng.normal(0, 7, int(stave.max()) + 1)[stave] + 7 * long + 6 * thin + 6 * wave
    for _ in range(int(height * width / scale**2 * 2.2)):
        column, row, size = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.006, 0.014) * scale
        rows = slice(max(0, int(row - 4 * size)), int(row + 4 * size))
        columns = slice(max(0, int(column - 7 * size)), int(column + 7 * size))
        knot = np.hypot((x[rows, columns] - column) / 1.9, y[rows, columns] - row) / size
        tone[rows, columns] -= 55 * np.exp(-(knot**2)) + 12 * np.exp(-(((knot - 1.6) / 0.4) ** 2))
    tone[joint < 0.002 * scale] -= 45
    tint = np.array([0.8, 0.95, 1.05], np.float32)
    return shade(oak.astype(np.float32), tone.astype(np.float32)[..., None] * tint)
