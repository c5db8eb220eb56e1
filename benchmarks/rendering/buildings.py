"""Painted fronts, houses with shops and office blocks that repeat one window, and the square before them."""

from __future__ import annotations

import cv2
import numpy as np

from rendering.prints import WHITE, emblem, ink_hue, noun
from rendering.textures import (
    Colour,
    Image,
    ashlar,
    blobs,
    bricks,
    colour,
    masonry,
    plain,
    plaster,
    rectangle,
    shade,
    text,
)

Box = tuple[float, float, float, float]  # left, top, right, bottom in texels


def shadow(image: Image, box: Box, depth: float, strength: float = 0.45) -> None:
    """Darken a strip below the box, as a ledge does."""
    left, _, right, bottom = (round(v) for v in box)
    strip = image[bottom : bottom + max(1, round(depth)), max(left, 0) : right]
    strip[:] = (strip * (1 - strength * np.linspace(1, 0.2, max(1, len(strip)))[:, None, None])[: len(strip)]).astype(
        np.uint8
    )


def glass(image: Image, box: Box, rng: np.random.Generator) -> None:
    """Paint a pane: the sky reflected above, the dark room below, a slanted streak of light."""
    left, top, right, bottom = (round(v) for v in box)
    h, w = bottom - top, right - left
    if h < 2 or w < 2:
        return
    fade = np.linspace(rng.uniform(0.35, 0.62), rng.uniform(0.1, 0.22), h)[:, None, None]
    pane = fade * np.array([255.0, 236, 214]) + np.zeros((h, w, 1)) + blobs(h, w, max(h, w) / 2, rng, 2)[..., None] * 9
    y, x = np.mgrid[:h, :w]
    streak = np.abs(x + 0.6 * y - rng.uniform(0, w + 0.6 * h)) < rng.uniform(0.04, 0.2) * w
    image[top:bottom, left:right] = np.clip(pane + 30 * streak[..., None], 0, 255).astype(np.uint8)


def window(
    image: Image, box: Box, frame: Colour, scale: float, rng: np.random.Generator, *, style: int, bare: bool = False
) -> None:
    """Paint a sash or casement window in its reveal, with curtains or flowers that differ unless `bare`."""
    left, top, right, bottom = box
    w, h, f = right - left, bottom - top, max(1.5, 0.06 * scale)
    rectangle(image, left - 2 * f, top - 3 * f, right + 2 * f, top, tuple(min(255, c + 20) for c in frame))  # type: ignore[arg-type]
    rectangle(image, left, top, right, bottom, tuple(c // 3 for c in frame))  # type: ignore[arg-type]
    rectangle(image, left + f / 2, top + f, right, bottom, frame)
    columns, rows = ((2, 3), (2, 2), (3, 2), (1, 2))[style]
    for i in range(columns):
        for j in range(rows):
            x0, y0 = left + f + i * (w - f) / columns, top + 1.6 * f + j * (h - 1.6 * f) / rows
            pane = (x0, y0, x0 + (w - f) / columns - f * 0.6, y0 + (h - 1.6 * f) / rows - f * 0.6)
            glass(image, pane, rng)
            if j == 0 and not bare and rng.random() < 0.5:
                cloth = colour(rng.choice([0.08, 0.12, 0.6, 0.0]), rng.uniform(0.05, 0.3), rng.uniform(0.6, 0.9))
                drop = rng.uniform(0.25, 1.0) * (pane[3] - pane[1])
                share = rng.uniform(0.25, 1.0) * (pane[2] - pane[0])
                start = pane[0] if i == 0 else pane[2] - share
                rectangle(image, start, pane[1], start + share, pane[1] + drop, cloth)
    sill = (left - 2 * f, bottom, right + 2 * f, bottom + 1.6 * f)
    rectangle(image, *sill, (196, 204, 208))
    shadow(image, sill, 3 * f)
    if not bare and rng.random() < 0.3:
        for x in np.arange(left, right, 0.7 * f):
            bloom = colour(rng.choice([0.33, 0.3, 0.95, 0.02, 0.13]), 0.75, rng.uniform(0.4, 0.85))
            cv2.circle(
                image, (round(x), round(bottom - rng.uniform(0, 3) * f)), round(rng.uniform(0.4, 1.0) * f), bloom, -1
            )


def shop(image: Image, box: Box, scale: float, rng: np.random.Generator) -> None:
    """Paint a shop front: sign, striped awning, display, door."""
    left, top, right, bottom = box
    hue = ink_hue(rng)
    paint = colour(hue, rng.uniform(0.4, 0.75), rng.uniform(0.25, 0.5))
    rectangle(image, left, top, right, bottom, paint)
    sign = 0.55 * scale
    text(
        image,
        f"{noun(rng)} & {noun(rng).title()}",
        left + 0.3 * scale,
        top + 0.14 * scale,
        0.3 * scale,
        WHITE,
        width=right - left - 0.6 * scale,
        font=1,
    )
    cloth = colour(ink_hue(rng), 0.6, 0.72)
    for k, x in enumerate(np.arange(left + 0.1 * scale, right - 0.2 * scale, 0.22 * scale)):
        rectangle(image, x, top + sign, x + 0.22 * scale, top + sign + 0.4 * scale, cloth if k % 2 else WHITE)
    shadow(image, (left, top, right, top + sign + 0.4 * scale), 0.25 * scale)
    door = left + rng.uniform(0.1, 0.7) * (right - left - 1.1 * scale)
    x = left + 0.15 * scale
    while x < right - 0.5 * scale:
        wide = min(1.1 * scale, right - 0.15 * scale - x)
        is_door = x <= door < x + wide
        foot = bottom - (0.05 if is_door else 0.5) * scale
        glass(image, (x, top + sign + 0.5 * scale, x + wide - 0.1 * scale, foot), rng)
        for _ in range(0 if is_door else 9):
            goods = colour(ink_hue(rng), 0.6, rng.uniform(0.4, 0.95))
            gx, size = x + rng.uniform(0.02, 0.75) * wide, rng.uniform(0.08, 0.2) * scale
            rectangle(image, gx, foot - size * rng.uniform(1, 2.2), gx + size, foot, goods)
        x += wide
    if rng.random() < 0.8:
        text(image, "OPEN", door + 0.15 * scale, top + sign + 0.8 * scale, 0.14 * scale, WHITE)


def house(height: int, width: int, scale: float, rng: np.random.Generator, columns: int = 3, rows: int = 3) -> Image:
    """Paint a town house: shop at street level, a grid of windows above, string courses and a cornice."""
    image = (bricks, plaster, ashlar, bricks)[int(rng.integers(4))](height, width, scale, rng)
    storey, bay = height / rows, width / columns
    style, frame = int(rng.integers(4)), colour(rng.random(), rng.uniform(0, 0.25), rng.uniform(0.75, 0.95))
    w, h = min(0.55 * bay, 1.25 * scale), 0.6 * storey
    for row in range(rows - 1):
        for column in range(columns):
            x, y = (column + 0.5) * bay, (row + 0.57) * storey
            window(image, (x - w / 2, y - h / 2, x + w / 2, y + h / 2), frame, scale, rng, style=style)
        course = (0.0, (row + 1) * storey - 0.1 * scale, float(width), (row + 1) * storey)
        rectangle(image, *course, (188, 198, 204))
        shadow(image, course, 0.1 * scale)
    shop(image, (0.12 * scale, height - storey + 0.15 * scale, width - 0.12 * scale, height - 0.12 * scale), scale, rng)
    rectangle(image, 0, height - 0.15 * scale, width, height, (104, 110, 116))
    cornice(image, scale)
    pipe = round((columns > 1) * bay)
    rectangle(image, pipe - 0.06 * scale, 0.3 * scale, pipe + 0.06 * scale, height - storey, (70, 74, 70))
    return shade(image, rng.normal(0, 3, (height, width)))


def cornice(image: Image, scale: float) -> None:
    """Paint the moulding under the eaves, with dentils."""
    width = image.shape[1]
    rectangle(image, 0, 0, width, 0.3 * scale, (206, 214, 218))
    for x in np.arange(0.06 * scale, width, 0.24 * scale):
        rectangle(image, x, 0.16 * scale, x + 0.12 * scale, 0.3 * scale, (150, 160, 166))
    shadow(image, (0.0, 0.0, float(width), 0.3 * scale), 0.18 * scale)


def offices(height: int, width: int, scale: float, rng: np.random.Generator, columns: int = 8, rows: int = 5) -> Image:
    """Paint an office block: one window over and over; only blinds, dirt and a few open lights differ."""
    image = ashlar(height, width, scale, rng)
    storey, bay = height / rows, width / columns
    w, h, f = 0.62 * bay, 0.6 * storey, 0.07 * scale
    pattern = plain(round(storey), round(bay), (0, 0, 0))
    x, y = (bay - w) / 2, (storey - h) / 2
    window(pattern, (x, y, x + w, y + h), (70, 82, 66), scale, rng, style=2, bare=True)
    rectangle(pattern, x, y + h + 0.22 * scale, x + w, y + h + 0.5 * scale, (120, 84, 62))
    for k in range(5):
        cv2.circle(
            pattern,
            (round(x + w * (k + 0.5) / 5), round(y + h + 0.36 * scale)),
            round(0.09 * scale),
            (190, 204, 214),
            -1,
            cv2.LINE_AA,
        )
    drawn = pattern.max(axis=2) > 0
    for row in range(rows):
        for column in range(columns):
            left, top = round(column * bay), round(row * storey)
            cell = image[top : top + len(pattern), left : left + pattern.shape[1]]
            inside = drawn[: len(cell), : cell.shape[1]]
            cell[inside] = pattern[: len(cell), : cell.shape[1]][inside]
            if rng.random() < 0.45:
                drop = rng.uniform(0.1, 0.8) * h
                tone = int(rng.integers(150, 226))
                blind = (left + x + f, top + y + 1.6 * f, left + x + w - f, top + y + 1.6 * f + drop)
                rectangle(image, *blind, (tone - 14, tone - 4, tone))
                for line in np.arange(blind[1], blind[3], 0.08 * scale):
                    rectangle(image, blind[0], line, blind[2], line + 1, (tone - 50, tone - 42, tone - 40))
    cornice(image, scale)
    stains = blobs(height, width, 2.5 * scale, rng, 4) * 5 + rng.normal(0, 3, (height, width))
    return shade(image, stains)


def chalked(image: Image, count: int, scale: float, rng: np.random.Generator) -> Image:
    """Return a pavement on which children have drawn and written."""
    height, width = image.shape[:2]
    drawn = image.copy()
    for _ in range(count):
        x, y, size = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0.8, 1.6) * scale
        if rng.random() < 0.75:
            emblem(drawn, x, y, size, ink_hue(rng), rng)
        else:
            text(drawn, noun(rng), x, y, 0.3 * size, WHITE, font=1)
    return np.asarray(cv2.addWeighted(image, 0.5, drawn, 0.5, 0), dtype=np.uint8)


def paving(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Paint flagstones, every one a little different, with chalk drawings, drain covers and fallen leaves."""
    stone, inside = masonry(height, width, 0.5 * scale, 0.75 * scale, 0.05 * scale, rng)
    tones, warm = rng.normal(0, 22, 4093), rng.normal(0, 7, 4093)
    palette = np.array([126.0, 132, 138]) + tones[:, None] + warm[:, None] * np.array([-1.0, 0.0, 1.0])
    ground = palette.astype(np.float32)[stone]
    ground *= np.asarray(np.clip(0.6 + inside / (0.06 * scale), 0.6, 1.0), np.float32)[..., None]
    wear = cv2.resize(blobs(height // 4, width // 4, 0.5 * scale, rng, 4), (width, height)) * 9
    image = shade(ground, wear + rng.normal(0, 6, (height, width)).astype(np.float32))
    area = height * width / scale**2
    image = chalked(image, int(area / 9), scale, rng)
    for _ in range(int(area / 60)):
        x, y, r = round(rng.uniform(0, width)), round(rng.uniform(0, height)), rng.uniform(0.25, 0.4) * scale
        for k, grey in enumerate((56, 88, 66, 92, 60)):
            cv2.circle(image, (x, y), round(r * (1 - 0.19 * k)), (grey, grey + 2, grey + 6), -1, cv2.LINE_AA)
    for _ in range(int(area * 2.5)):
        x, y = round(rng.uniform(0, width)), round(rng.uniform(0, height))
        axes = (round(rng.uniform(0.06, 0.15) * scale), round(rng.uniform(0.03, 0.07) * scale))
        leaf = colour(rng.uniform(0.03, 0.16), rng.uniform(0.4, 0.75), rng.uniform(0.35, 0.75))
        cv2.ellipse(image, (x, y), axes, rng.uniform(0, 180), 0, 360, leaf, -1, cv2.LINE_AA)
    return image
