"""Two planes that move apart and mismatches, with photographs, for the pages."""

import functools
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv.filtering import filter_points
from ruzhash_cv.report.photos import Photo
from ruzhash_cv.results.result import FilterResult

WIDTH, HEIGHT = 400, 300
#: Of the case, with nothing to show.
PHOTOS = Photo("a.jpg", None, WIDTH, HEIGHT), Photo("b.jpg", None, WIDTH // 2, HEIGHT // 2)


class Case(NamedTuple):
    """A pair as the functions that draw take it, and its result."""

    img1: np.ndarray
    points1: np.ndarray
    img2: np.ndarray
    points2: np.ndarray
    result: FilterResult

    @property
    def drawn(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, None, FilterResult]:
        return *self[:4], None, self.result


@functools.cache
def two_planes(n: int = 200, size: tuple[int, int] = (WIDTH, HEIGHT)) -> Case:
    """Return n matches, a quarter of them wrong; the second photograph is half as large in pixels."""
    rng = np.random.default_rng(0)
    width, height = size
    points1 = rng.uniform([20, 20], [width - 20, height - 20], (n, 2))
    turned = points1 @ [[0.94, 0.34], [-0.34, 0.94]] + [60.0, -95.0]
    points2 = np.where(points1[:, :1] < width / 2, points1 + [14.0, 4.0], turned) + rng.normal(0, 0.3, (n, 2))
    points2[: n // 4] = rng.uniform([0, 0], size, (n // 4, 2))
    points2 = points2 / 2
    blotches = rng.integers(0, 255, (height // 10, width // 10, 3), dtype=np.uint8)
    img1 = np.kron(blotches, np.ones((10, 10, 1), np.uint8))
    return Case(img1, points1, img1[::2, ::2], points2, filter_points(points1, points2))


def shown(page: Any) -> int:
    """Return how many pairs or matches a page says that it shows."""
    return int(page.inner_text("#shown").split()[0])
