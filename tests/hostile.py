"""Hostile arguments as hypothesis strategies: legal ones in every form, and now and then an absurd one."""

import warnings
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from hypothesis import strategies as st
from scipy import sparse

Array = np.ndarray[Any, Any]
HUGE = 10**30
SIZES = (0, 1, 3, 7, 8, 9, 12, 30, 60, 150, 300, 700)
DTYPES = ("f8", "f4", "f2", ">f8", "i8", "i4", ">i2", "u1", "u8", "g", "?")
FORMS = ("plain", "fortran", "reversed", "strided", "frozen", "unaligned", "list", "masked")


class Draw:
    """The choices of one example. `legal` turns False with the first argument that may be answered by an exception."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.legal = True

    def pick(self, items: Sequence[Any]) -> Any:
        return items[self._draw(st.integers(0, len(items) - 1))]

    def chance(self, one_in: int) -> bool:
        return bool(self._draw(st.integers(0, one_in - 1)) == one_in - 1)

    def option(self, legal: Sequence[Any], absurd: Sequence[Any]) -> Any:
        """Return one of `legal`, now and then one of `absurd`."""
        if not self.chance(20):
            return self.pick(legal)
        self.legal = False
        return self.pick([*absurd, "3", {}, 1j, object(), np.zeros(2)])

    def some(self, **options: Any) -> dict[str, Any]:
        """Return some of the options: the others keep their defaults."""
        return {name: value for name, value in options.items() if self.chance(2)}

    def seed(self) -> Any:
        seeds = (0, 1, np.uint8(200), 2**63, HUGE, np.random.default_rng(5), None)
        return self.option(seeds, (-1, 1.0, True, np.random.RandomState(0)))

    def threshold(self) -> Any:
        return self.option((None, 1e-300, 0.5, 3, np.float32(3), 1e300), (0, -1.0, np.nan, np.inf, True, 10**600))


@st.composite
def draws(draw: Any) -> Draw:
    return Draw(draw)


# Correspondences (n, 4) in pixels


def planes(draw: Draw, n: int) -> Array:
    """One or more planes, with noise."""
    first, second = draw.rng.uniform(0, 800, (n, 2)), np.empty((n, 2))
    which = draw.rng.integers(draw.pick([1, 2, 5]), size=n)
    for plane in np.unique(which):
        H = np.eye(3) + draw.rng.normal(0, 1, (3, 3)) * [[0.2, 0.2, 60], [0.2, 0.2, 60], [1e-4, 1e-4, 0]]
        mapped = np.column_stack([first[which == plane], np.ones((which == plane).sum())]) @ H.T
        second[which == plane] = mapped[:, :2] / mapped[:, 2:]
    return np.hstack([first, second + draw.rng.normal(0, draw.pick([0, 0.3, 2.0]), (n, 2))])


def rigid(draw: Draw, n: int) -> Array:
    """Points in space, some nearly flat, seen by two cameras; sometimes the second only turns."""
    X = draw.rng.uniform([-1, -1, 2], [1, 1, draw.pick([2.001, 8])], (n, 3))
    Y = X @ cv2.Rodrigues(draw.rng.normal(0, 0.1, 3))[0].T + draw.rng.normal(0, 0.3, 3) * draw.pick([0, 1])
    return np.hstack([600 * X[:, :2] / X[:, 2:], 600 * Y[:, :2] / Y[:, 2:]]) + 400


def affine(draw: Draw, n: int) -> Array:
    """Identity, a mirror image, or a shrinking to a point or a line; near or far."""
    first = draw.rng.uniform(0, 800, (n, 2))
    matrix = draw.pick([np.eye(2), np.diag([-1.0, 1.0]), np.zeros((2, 2)), np.ones((2, 2))])
    return np.hstack([first, first @ matrix + draw.pick([0, 5, 1e6])])


def mismatches(draw: Draw, n: int) -> Array:
    return draw.rng.uniform(0, draw.pick([1, 800, 1e5]), (n, 4))


def degenerate(draw: Draw, n: int) -> Array:
    """All in one place, on one line, in few places, on a grid, or degenerate in one image."""
    points = draw.rng.uniform(0, 800, (n, 4))
    line = np.outer(np.arange(n), draw.rng.normal(0, 1, 4)) + 100
    few = points[draw.rng.integers(max(1, n // 20), size=n)] if n else points
    grid = np.floor(points / draw.pick([20, 50])) * 50
    return draw.pick([np.repeat(points[:1], n, axis=0), line, few, grid, points * [1, draw.pick([0, 1]), 0, 0]])


def correspondences(draw: Draw, sizes: Sequence[int] = SIZES) -> Array:
    """Return correspondences (n, 4), some with mismatches and duplicates, some scaled, some without numbers."""
    n = draw.pick(sizes)
    pairs = draw.pick((planes, rigid, affine, mismatches, degenerate))(draw, n)
    if draw.chance(2):
        wrong = draw.rng.random(n) < draw.pick([0.1, 0.5, 0.9])
        pairs[wrong, 2:] = draw.rng.uniform(0, 800, (int(wrong.sum()), 2))
    if n and draw.chance(5):
        again = draw.rng.random(n) < draw.pick([0.1, 0.9])
        pairs[again] = pairs[draw.rng.integers(n, size=int(again.sum()))]
    if draw.chance(4):
        pairs = pairs * draw.pick([1e-320, 1e-310, 1e-200, 1e-20, 1e-3, 1e3, 1e9, 1e20, 1e150, 1e300])
    if draw.chance(4):
        hit = draw.rng.random(pairs.shape) < draw.pick([0.01, 0.3, 1.0])
        values = [np.nan, np.inf, -np.inf, 5e-324, -0.0, 1e300, 1.7e308, 1e11, -9.9e11, 1e13]
        pairs[hit] = draw.rng.choice(values, int(hit.sum()))
    return pairs


# The same numbers in any form


def cast(array: Array, dtype: str) -> Array:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return array.astype(dtype)


def dressed(draw: Draw, array: Array) -> Any:
    """Return a 2-D array with another dtype, other strides, or as a list."""
    if draw.chance(3):
        array = cast(array, draw.pick(DTYPES))
    form = draw.pick(FORMS)
    if form == "fortran":
        return np.asfortranarray(array)
    if form == "reversed":
        return array[::-1, ::-1].copy()[::-1, ::-1]
    if form == "strided":
        wide = np.zeros((2 * array.shape[0], 3 * array.shape[1]), array.dtype)
        wide[::2, ::3] = array
        return wide[::2, ::3]
    if form == "frozen":
        array = array.copy()
        array.setflags(write=False)
    if form == "unaligned":
        raw = np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)
        raw[...] = array
        return raw
    if form == "list" and len(array):
        return array.tolist()
    return np.ma.asarray(array) if form == "masked" else array


def points_of(draw: Draw, array: Array) -> Any:
    """Return points in any form, now and then something that is not points."""
    if draw.chance(20):
        draw.legal = False
        return draw.pick(
            [None, 3, "points", [], [[1, 2], [3]], {"x": 1}, object(), np.array(5.0), array.T, array[:, :1], array[None],
             array.astype(object), array.astype("U5"), cast(array, "c16"), cast(array, "M8[s]"), [None] * len(array),
             np.zeros((len(array), 2, 2)), iter([(1, 2)]), array[: len(array) // 2], [[10**400, 1.0]],
             sparse.csr_array(np.nan_to_num(array))]
        )  # fmt: skip
    return array[:, None] if draw.chance(10) else dressed(draw, array)


def both_points(draw: Draw, sizes: Sequence[int] = SIZES) -> tuple[Any, Any]:
    pairs = correspondences(draw, sizes)
    return points_of(draw, pairs[:, :2]), points_of(draw, pairs[:, 2:])


def keypoints_of(draw: Draw, points: Array) -> Any:
    """Return cv2.KeyPoint or an array."""
    if draw.chance(2):
        return points_of(draw, points)
    keypoints: list[Any] = [cv2.KeyPoint(float(x), float(y), 1.0) for x, y in np.clip(points, -1e30, 1e30)]
    if keypoints and draw.chance(30):
        draw.legal = False
        keypoints[draw.rng.integers(len(keypoints))] = draw.pick([None, 3, (1.0, 2.0)])
    return tuple(keypoints) if draw.chance(3) else keypoints


def matches_of(draw: Draw, n: int) -> tuple[Any, float | None]:
    """Return matches of two times n keypoints in any form, and a ratio."""
    indices = draw.rng.integers(n, size=(draw.pick([1, n, 2 * n]), 2)) if n else np.zeros((0, 2), np.int64)
    if len(indices) and draw.chance(20):
        draw.legal = False
        indices[draw.rng.integers(len(indices)), draw.rng.integers(2)] = draw.pick([-1, n, 2**31 - 1, -(2**31)])
    ratio = draw.option((None, 1, 0.8, 1e-300), (0, -1, np.nan, np.inf, 1.5, True))
    form = draw.pick(["flat", "knn", "array", "list", "bad" if draw.chance(10) else "knn"])
    if form != "knn" and ratio is not None:
        draw.legal = False
    distances = draw.rng.choice([0.0, 0.3, 0.5, np.inf, np.nan, -1.0], len(indices))
    flat = [cv2.DMatch(int(i), int(j), float(d)) for (i, j), d in zip(indices, distances, strict=True)]
    if form == "flat":
        return draw.pick([flat, tuple(flat)]), ratio
    if form == "knn":
        rows = [tuple(flat[row : row + int(draw.rng.integers(4))]) for row in range(len(flat))]
        several = len({match.trainIdx for row in rows for match in row}) > 1
        if ratio is not None and several and all(len(row) < 2 for row in rows):
            draw.legal = False  # nothing to compare a first neighbour with
        return draw.pick([rows, tuple(rows), [list(row) for row in rows]]), ratio
    if form == "bad":
        draw.legal = False
        bad = [None, 3, "matches", {}, {"a": 1}, [None], [*flat, None], [*flat, ()], np.zeros((2, 3), int), [[1]], [[1, 2], [3]],
               indices * 0.5, indices.astype(object), indices[0] if len(indices) else 0, iter(flat), object()]  # fmt: skip
        return draw.pick(bad), ratio
    kinds = ("i8", "i4", "u4", ">i8", "u8") if draw.legal else ("i8",)
    return (indices.tolist() if form == "list" else indices.astype(draw.pick(kinds))), ratio


def matched(draw: Draw) -> tuple[Any, Any, Any, float | None]:
    """Return keypoints of two images, matches and a ratio."""
    pairs = correspondences(draw)
    matches, ratio = matches_of(draw, len(pairs))
    return keypoints_of(draw, pairs[:, :2]), keypoints_of(draw, pairs[:, 2:]), matches, ratio


def camera_of(draw: Draw) -> Any:
    """Return what stands for a camera, with a little distortion, much of it, or a fisheye's."""
    import ruzhash_cv

    f = draw.pick((1e-3, 300.0, 700.0, 1e6))
    matrix = np.array([[f, 0.0, 320.0], [0.0, f, 240.0], [0.0, 0.0, 1.0]])
    numbers = np.zeros((3, 3)), -matrix, np.full((3, 3), np.nan), np.eye(2), matrix.T
    bad = [*numbers, None, (matrix, [0.1]), (matrix, [np.nan] * 4)]
    little, much = draw.rng.normal(0, 0.05, 5), draw.rng.normal(0, 5.0, draw.pick([4, 8, 12, 14]))
    made = ruzhash_cv.Camera(matrix, [0.05, 0.0, 0.0, 0.0], fisheye=True), ruzhash_cv.Camera.equirectangular(640)
    return draw.option((matrix, matrix.tolist(), (matrix, None), (matrix, little), (matrix, much), *made), bad)


def check_matrix(matrix: Any, mask: Array, n: int) -> None:
    """Assert OpenCV's contract of a model and its mask of n matches."""
    assert (mask.shape, mask.dtype) == ((n, 1), np.uint8)
    assert (mask <= (matrix is not None)).all()
    assert matrix is None or ((matrix.shape, matrix.dtype) == ((3, 3), np.float64) and np.isfinite(matrix).all())
