"""Two grey images, two matches that cross between them, and the colours of pixels."""

from __future__ import annotations

import numpy as np

WIDTH, HEIGHT = 400, 300
# Two matches that cross in the middle of the picture, at (400, 150).
KP1 = np.array([[100.0, 50.0], [100.0, 250.0]])
KP2 = np.array([[300.0, 250.0], [300.0, 50.0]])


def grey_image(width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    return np.full((height, width), 128, np.uint8)


def pairs(n: int) -> np.ndarray:
    return np.repeat(np.arange(n)[:, None], 2, axis=1)


def redness(picture: np.ndarray) -> np.ndarray:
    blue, green, red = (picture[..., channel].astype(int) for channel in range(3))
    return np.asarray(red - np.maximum(blue, green))


def greenness(picture: np.ndarray) -> np.ndarray:
    blue, green, red = (picture[..., channel].astype(int) for channel in range(3))
    return np.asarray(green - np.maximum(blue, red))


def on_line(picture: np.ndarray, start: tuple[float, float], end: tuple[float, float]) -> np.ndarray:
    """Pixels along a segment, its ends and its middle left out."""
    shares = np.r_[np.linspace(0.1, 0.4, 40), np.linspace(0.6, 0.9, 40)][:, None]
    x, y = np.round((1 - shares) * start + shares * np.array(end)).astype(int).T
    return np.asarray(picture[y, x])
