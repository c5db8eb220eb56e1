"""Printed matter: book covers, page edges, typed pages, parcels and cartons."""

from __future__ import annotations

import cv2
import numpy as np

from rendering.textures import Colour, Image, blobs, colour, plain, rectangle, shade, text

_NOUNS = (
    "HARBOUR ORCHARD LANTERN MERIDIAN GRANITE WILLOW ATLAS COMPASS HERON SUMMIT COPPER VELVET TUNDRA MARBLE "
    "SPARROW CINDER PRAIRIE LAGOON JUNIPER QUARTZ FALCON AMBER RIVER SIGNAL THISTLE MOSAIC ALMOND BASALT"
)
_SMALL = (
    "the of and in with from line plane hash forest tree match point image view cell depth sample robust residual "
    "camera stone paper light model vote epipolar planar scene motion edge corner score branch leaf"
)
NOUNS, SMALL = _NOUNS.split(), _SMALL.split()
BLACK, WHITE = (32, 30, 30), (240, 243, 245)


def words(count: int, rng: np.random.Generator) -> str:
    """Return `count` small words."""
    return " ".join(str(word) for word in rng.choice(SMALL, count))


def noun(rng: np.random.Generator) -> str:
    """Return one word in capitals."""
    return str(rng.choice(NOUNS))


def ink_hue(rng: np.random.Generator) -> float:
    """Return a hue printers like: reds, oranges, yellows, a dull green, teals and blues; no magenta."""
    return float(rng.choice([0.0, 0.02, 0.05, 0.09, 0.12, 0.15, 0.27, 0.47, 0.54, 0.58, 0.62])) + rng.uniform(
        -0.012, 0.012
    )


def used(image: Image, rng: np.random.Generator, strength: float = 1.0) -> Image:
    """Return the print after some handling: uneven ink, rubbed edges, a few scuffs and specks."""
    h, w = image.shape[:2]
    change = blobs(h, w, max(h, w) / 3, rng, 4) * 4 * strength + rng.normal(0, 2.5, (h, w))
    y, x = np.mgrid[:h, :w]
    border = np.minimum.reduce([x, y, w - 1 - x, h - 1 - y])
    change += np.where(border < 1 + blobs(h, w, 12, rng) * 0.5, 20, 0)
    marks = np.zeros((h, w), np.uint8)
    for _ in range(int(14 * strength)):
        x0, y0 = rng.uniform(0, w), rng.uniform(0, h)
        dx, dy = rng.normal(0, 0.06 * w, 2)
        cv2.line(marks, (int(x0), int(y0)), (int(x0 + dx), int(y0 + dy)), int(rng.integers(10, 32)), 1, cv2.LINE_AA)
    return shade(image, change + marks * rng.choice([-1, 1]))


def barcode(image: Image, left: float, top: float, width: float, height: float, rng: np.random.Generator) -> None:
    """Print a bar code with its digits on white."""
    rectangle(image, left, top, left + width, top + height, WHITE)
    x = left + 0.06 * width
    while x < left + 0.9 * width:
        bar = width / 90 * rng.integers(1, 4)
        rectangle(image, x, top + 0.08 * height, x + max(bar, 1), top + 0.74 * height, BLACK)
        x += bar + width / 90 * rng.integers(1, 4)
    digits = "".join(str(d) for d in rng.integers(0, 10, 12))
    text(image, digits, left + 0.08 * width, top + 0.8 * height, 0.15 * height, BLACK, width=0.84 * width)


def paragraph(
    image: Image, box: tuple[float, float, float, float], line: float, ink: Colour, rng: np.random.Generator
) -> None:
    """Fill the box (left, top, right, bottom) with lines of text `line` texels high."""
    left, top, right, bottom = box
    y = top
    while y + line <= bottom:
        end = right if rng.random() < 0.85 else left + (right - left) * rng.uniform(0.4, 0.8)
        text(image, words(max(2, round((end - left) / line / 5.2)), rng), left, y, line, ink, width=end - left, font=2)
        y += 1.75 * line


def emblem(image: Image, x: float, y: float, size: float, hue: float, rng: np.random.Generator) -> None:
    """Draw a picture about `size` texels across: hills and a sun, rings, a leaf spray, tiles or a fan."""
    kind = rng.integers(5)
    a, b, c = (colour(h, rng.uniform(0.4, 0.8), rng.uniform(0.5, 0.95)) for h in (hue, ink_hue(rng), ink_hue(rng)))
    centre = (round(x), round(y))
    if kind == 0:
        half = size / 2
        rectangle(image, x - half, y - half, x + half, y + half, colour(0.55, 0.2, 0.93))
        cv2.circle(image, (round(x + 0.2 * size), round(y - 0.2 * size)), round(0.13 * size), c, -1, cv2.LINE_AA)
        for k, tone in enumerate((b, a, BLACK)):
            xs = np.linspace(x - half, x + half, 24)
            ridge = (
                y + half - size * (0.5 - 0.15 * k) * (0.55 + 0.25 * np.sin(np.linspace(k, k + rng.uniform(4, 9), 24)))
            )
            outline = np.column_stack([np.r_[xs, x + half, x - half], np.r_[ridge, y + half, y + half]])
            cv2.fillPoly(image, [outline.round().astype(np.int32)], tone, cv2.LINE_AA)
    elif kind == 1:
        for k in range(7, 0, -1):
            cv2.circle(image, centre, round(size * k / 14), (a, b, c, WHITE)[(k * 3) % 4], -1, cv2.LINE_AA)
    elif kind == 2:
        for angle in np.arange(0, 360, 360 / rng.integers(7, 13)):
            tip = (round(x + 0.3 * size * np.cos(np.radians(angle))), round(y + 0.3 * size * np.sin(np.radians(angle))))
            tone = (a, b, c)[int(rng.integers(3))]
            cv2.ellipse(image, tip, (round(0.2 * size), round(0.07 * size)), angle, 0, 360, tone, -1, cv2.LINE_AA)
        cv2.circle(image, centre, round(0.1 * size), c, -1, cv2.LINE_AA)
    elif kind == 3:
        n = int(rng.integers(4, 7))
        for i in range(n):
            for j in range(n):
                px, py, s = x - size / 2 + i * size / n, y - size / 2 + j * size / n, size / n
                tone = (a, b, c, WHITE, BLACK)[int(rng.integers(5))]
                corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]])[rng.permutation(4)[: 3 + int(rng.random() < 0.4)]]
                cv2.fillConvexPoly(image, cv2.convexHull((corners * s + [px, py]).astype(np.int32)), tone, cv2.LINE_AA)
    else:
        for k in range(9):
            tone = (a, b, c, WHITE)[k % 4]
            cv2.ellipse(image, centre, (round(size / 2),) * 2, -90 + 40 * k, 0, 40, tone, -1, cv2.LINE_AA)
        cv2.circle(image, centre, round(size / 6), BLACK, -1, cv2.LINE_AA)


def cover(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Print a book cover: title, picture, author."""
    hue = ink_hue(rng)
    dark = rng.random() < 0.55
    ground = colour(hue, rng.uniform(0.45, 0.8), rng.uniform(0.25, 0.45) if dark else rng.uniform(0.72, 0.92))
    image = plain(height, width, ground)
    ink = WHITE if dark else BLACK
    unit = width / 100
    for k in range(rng.integers(3, 9)):
        y = height * (0.34 + 0.045 * k)
        rectangle(
            image, 0, y, width, y + 0.6 * unit * (1 + k % 3), colour(hue + 0.08 * (k % 3), 0.5, 0.6 if dark else 0.5)
        )
    rectangle(image, 4 * unit, 4 * unit, 96 * unit, 4.8 * unit, ink)
    text(image, noun(rng), 8 * unit, 9 * unit, 11 * unit, ink, width=84 * unit, font=1)
    text(image, "& " + noun(rng), 8 * unit, 25 * unit, 9 * unit, ink, width=84 * unit, font=1)
    emblem(image, width / 2, height * 0.56, 56 * unit, ink_hue(rng), rng)
    paragraph(image, (14 * unit, height * 0.79, 86 * unit, height * 0.86), 3.0 * unit, ink, rng)
    text(image, f"{noun(rng)[0]}. {noun(rng).title()}", 26 * unit, height * 0.89, 6 * unit, ink, width=50 * unit)
    rectangle(image, 4 * unit, height - 4.8 * unit, 96 * unit, height - 4 * unit, ink)
    rectangle(image, 0, 0, 1.6 * unit, height, colour(hue, 0.7, 0.22))
    return used(image, rng)


def pages(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Draw the edge of a closed book between its two boards."""
    image = plain(height, width, (196, 214, 222))
    lines = cv2.resize(rng.normal(0, 13, (height, 6)), (width, height), interpolation=cv2.INTER_CUBIC)
    image = shade(image, lines + rng.normal(0, 4, (height, width)))
    board = max(1, round(0.09 * height))
    image[:board] = image[-board:] = colour(rng.random(), 0.6, 0.35)
    return image


def page(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Print a page of a report: heading, columns of text, a figure or a table."""
    image = plain(height, width, (226, 234, 238))
    unit = width / 100
    text(image, f"{noun(rng).title()} {words(2, rng)}", 10 * unit, 8 * unit, 5 * unit, BLACK, width=80 * unit, font=1)
    paragraph(image, (10 * unit, 18 * unit, 90 * unit, 44 * unit), 2.2 * unit, BLACK, rng)
    if rng.random() < 0.6:
        emblem(image, 32 * unit, 68 * unit, 38 * unit, ink_hue(rng), rng)
        paragraph(image, (56 * unit, 50 * unit, 91 * unit, 88 * unit), 2.0 * unit, BLACK, rng)
    else:
        for k in range(7):
            y = (50 + 5.4 * k) * unit
            rectangle(image, 10 * unit, y, 90 * unit, y + 0.5 * unit, BLACK)
            for column in range(4):
                text(image, str(rng.integers(10, 9999)), (13 + 20 * column) * unit, y + 1.6 * unit, 2.4 * unit, BLACK)
    paragraph(image, (10 * unit, 94 * unit, 90 * unit, min(132 * unit, height - 8 * unit)), 2.2 * unit, BLACK, rng)
    if rng.random() < 0.6:
        mark = tuple(round(v * unit) for v in (*rng.uniform(25, 75, 1), *rng.uniform(30, 120, 1)))
        cv2.ellipse(
            image, (mark[0], mark[1]), (round(16 * unit), round(6 * unit)), 8, 0, 350, (40, 40, 200), 2, cv2.LINE_AA
        )
    return used(image, rng, 0.4)


def parcel(height: int, width: int, scale: float, rng: np.random.Generator) -> Image:
    """Draw one side of a cardboard parcel: tape, address label, stamps."""
    image = plain(height, width, colour(rng.uniform(0.075, 0.09), rng.uniform(0.36, 0.46), rng.uniform(0.58, 0.72)))
    image = shade(image, cv2.resize(rng.normal(0, 4, (height, 3)), (width, height)))
    u = min(width, height) / 100
    tape = 0.5 * height + rng.uniform(-0.1, 0.1) * height
    rectangle(image, 0, tape - 6 * u, width, tape + 6 * u, colour(0.09, 0.3, 0.78))
    for x in np.arange(rng.uniform(0, 20) * u, width, 44 * u):
        text(image, noun(rng), x, tape - 2.5 * u, 5 * u, (60, 60, 170), width=34 * u)
    left, top = rng.uniform(4, 20) * u, rng.uniform(3, 12) * u
    w, h = min(0.66 * width, 90 * u), 52 * u
    rectangle(image, left, top, left + w, top + h, WHITE)
    text(image, f"{noun(rng)} {rng.integers(10, 99)}", left + 3 * u, top + 4 * u, 8 * u, BLACK, width=0.62 * w)
    paragraph(image, (left + 3 * u, top + 16 * u, left + 0.6 * w, top + 30 * u), 3.4 * u, BLACK, rng)
    barcode(image, left + 0.05 * w, top + 31 * u, 0.9 * w, 19 * u, rng)
    rectangle(image, left + 0.7 * w, top + 4 * u, left + 0.95 * w, top + 0.25 * w + 2 * u, (70, 120, 240))
    text(image, str(rng.integers(1, 99)), left + 0.74 * w, top + 8 * u, 12 * u, WHITE, width=0.18 * w)
    ink = [(50, 50, 60), (40, 40, 170), (140, 60, 30)][int(rng.integers(3))]
    stamp = (round(width * rng.uniform(0.55, 0.9)), round(height * rng.uniform(0.72, 0.85)))
    cv2.circle(image, stamp, round(13 * u), ink, max(1, round(u)), cv2.LINE_AA)
    text(image, noun(rng), stamp[0] - 10 * u, stamp[1] - 3 * u, 6 * u, ink, width=20 * u)
    text(
        image,
        "FRAGILE" if rng.random() < 0.5 else "THIS SIDE UP",
        6 * u,
        height - 20 * u,
        12 * u,
        ink,
        width=0.45 * width,
    )
    return used(image, rng, 1.5)


def carton(height: int, width: int, scale: float, rng: np.random.Generator, palette: int = 0) -> Image:
    """Print one side of a product box; the sides of one box share colours and brand through `palette`."""
    brand = np.random.default_rng(palette)
    hue, name = ink_hue(brand), noun(brand)
    image = plain(height, width, colour(hue, brand.uniform(0.3, 0.7), brand.uniform(0.6, 0.92)))
    second = colour(ink_hue(brand), 0.6, 0.8)
    u = min(width, height) / 100
    slope = rng.uniform(-0.3, 0.3) * height
    band = np.array([[0, 0.62 * height + slope], [width, 0.62 * height - slope], [width, height], [0, height]])
    cv2.fillPoly(image, [band.astype(np.int32)], second, cv2.LINE_AA)
    rectangle(image, 0, 6 * u, width, 32 * u, colour(ink_hue(brand), 0.8, 0.32))
    text(image, name, 6 * u, 11 * u, 16 * u, WHITE, width=width - 12 * u, font=int(brand.integers(2)))
    text(image, f"{words(2, rng)} No.{rng.integers(1, 99)}", 6 * u, 36 * u, 6 * u, BLACK, width=0.8 * width)
    emblem(image, width * rng.uniform(0.25, 0.4), height - 29 * u, 46 * u, ink_hue(rng), rng)
    x = 0.56 * width
    rectangle(image, x, height - 50 * u, width - 4 * u, height - 24 * u, WHITE)
    paragraph(image, (x + 2 * u, height - 48 * u, width - 6 * u, height - 25 * u), 3.2 * u, BLACK, rng)
    barcode(image, x, height - 22 * u, width - 4 * u - x, 18 * u, rng)
    cv2.circle(image, (round(width - 14 * u), round(46 * u)), round(9 * u), (60, 70, 215), -1, cv2.LINE_AA)
    text(image, f"{rng.integers(5, 95)}%", width - 21 * u, 43 * u, 6 * u, WHITE, width=14 * u)
    return used(image, rng)
