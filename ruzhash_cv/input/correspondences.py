"""Correspondences from keypoints and matches in any of OpenCV's forms; and the kept matches from a mask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import ArrayLike

from ruzhash_cv.foundation.arrays import Array, Mask, Record, Rows
from ruzhash_cv.foundation.validation import (
    arrived,
    as_array,
    as_mask,
    as_points,
    as_sizes,
    check_real,
    check_same_length,
)

Keypoints: TypeAlias = Sequence[cv2.KeyPoint] | ArrayLike
Matches: TypeAlias = Sequence[cv2.DMatch] | Sequence[Sequence[cv2.DMatch]] | ArrayLike
#: A sequence or an array has one of these at least.
_OF_ARRAYS = ("ndim", "__len__", "__array__")
#: Entries of `matches` that are a row of it: two of anything else may be its two columns.
_ROWS = (tuple, list, cv2.DMatch)


@dataclass(frozen=True, eq=False, repr=False)
class Correspondences(Record):
    """Pairs of points, one row per match.

    Attributes
    ----------
    points1, points2 : ndarray of float64, shape (n, 2)
        Pixel (x, y) in the first and the second image. NaN in rows without a match: the knnMatch row is empty, fails the ratio test, or
        is masked.
    distances : ndarray of float64, shape (n,), or None
        Descriptor distances; None if the matches were given as indices.
    sizes : pair of ndarray of float64, shape (n,), or None
        Sizes of the keypoints in the first and the second image, 1 in rows without a match; None if neither image has cv2.KeyPoint.

    Examples
    --------
    >>> pairs = as_correspondences([[0.0, 1.0], [5.0, 6.0]], [[2.0, 2.0]], [[1, 0]])
    >>> pairs
    <Correspondences: 1 rows, 1 with a match>
    >>> pairs.points1, pairs.points2
    (array([[5., 6.]]), array([[2., 2.]]))
    """

    points1: Array
    points2: Array
    distances: Array | None = None
    sizes: tuple[Array, Array] | None = None

    def __len__(self) -> int:
        return len(self.points1)

    def __repr__(self) -> str:
        return f"<Correspondences: {len(self)} rows, {np.isfinite(self.points1[:, 0]).sum()} with a match>"


def as_correspondences(
    kp1: Keypoints, kp2: Keypoints, matches: Matches, *, ratio: float | None = None
) -> Correspondences:
    """Look up the points of every match.

    Parameters
    ----------
    kp1, kp2 : sequence of cv2.KeyPoint, or array_like of shape (n, 2) or (1, n, 2)
        Keypoints of the two images, or their pixel positions (x, y), as an array of any library: NumPy, torch, jax, CuPy, pandas.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2), (1, n, 2), (len(kp1),) or (1, len(kp1))
        - knnMatch output, a tuple of DMatch per query, gives a row per query: its best neighbour. Rows of three or more need `ratio`;
          to take all neighbours, give a flat list. All matches must have one train image (``imgIdx``), that of `kp2`.
        - Index pairs are (index into `kp1`, index into `kp2`). A row with a masked or missing index has no match. A tuple of two arrays
          of shape (n,) holds the indices into `kp1` and into `kp2`, as XFeat and ``np.nonzero`` return them.
        - An array with a number for each keypoint of `kp1` is SuperGlue's ``matches0``: the index into `kp2`, -1 for none.
    ratio : float in (0, 1], optional
        Lowe's ratio test on knnMatch output: a row passes if its best distance is below `ratio` times the second best. A row with fewer
        than two neighbours does not pass. If no row has two, an error is raised.

    Returns
    -------
    Correspondences
        As many rows as `matches`.

    Raises
    ------
    IndexError
        An index points outside its keypoints.
    TypeError, ValueError
        Another argument has none of these forms; the message names the argument and what arrived.

    Examples
    --------
    >>> pairs = as_correspondences([[0.0, 1.0], [5.0, 6.0]], [[2.0, 2.0]], [[1, 0]])
    >>> pairs.points1
    array([[5., 6.]])
    >>> as_correspondences([[0.0, 1.0], [5.0, 6.0]], [[2.0, 2.0]], [-1, 0])
    <Correspondences: 2 rows, 1 with a match>
    """
    return look_up(kp1, kp2, matches, ratio, ("kp1", "kp2"))


def look_up(
    kp1: Keypoints, kp2: Keypoints, matches: Matches | None, ratio: float | None, names: tuple[str, str], sizes: Any = None,
    filtered: bool = False,
) -> Correspondences:  # fmt: skip
    """Return what `as_correspondences` returns, with `sizes` of the keypoints if given; errors have `names` for the keypoints.

    Without `matches` row i of the points corresponds to row i. `filtered`: as of `as_indices`.
    """
    if matches is None and ratio is not None:
        raise ValueError("`ratio` needs `matches` that are knnMatch output with k >= 2, got None")
    as_read = as_points if matches is None else as_positions
    positions = as_read(kp1, names[0]), as_read(kp2, names[1])
    counts = len(positions[0]), len(positions[1])
    if matches is None:
        check_same_length(*positions, f"without `matches`, `{names[0]}` and `{names[1]}`")
        return Correspondences(*positions, None, as_sizes(sizes, kp1, kp2, counts))
    indices, present, distances = as_indices(matches, ratio, (counts[0], names[0]), filtered)
    of_keypoints = as_sizes(sizes, kp1, kp2, counts)
    outside = np.argwhere(present[:, None] & ((indices < 0) | (indices >= counts)))
    if len(outside):
        row, side = min(outside.tolist(), key=lambda place: place[1])
        index = int(indices[row, side])
        field = ("queryIdx", "trainIdx")[side]
        fits_exchanged = ((indices[present] >= 0) & (indices[present] < counts[::-1])).all()
        hint = "; are the images exchanged?" if fits_exchanged else ""
        there = f"`{names[side]}` has {counts[side]} keypoints"
        raise IndexError(f"`matches[{row}]` has {field} {index}, but {there}{hint}")
    points1, points2 = np.full((2, len(indices), 2), np.nan)
    points1[present], points2[present] = positions[0][indices[present, 0]], positions[1][indices[present, 1]]
    if of_keypoints is None:
        return Correspondences(points1, points2, distances)
    of_rows = np.ones((2, len(indices)))
    for side, each in enumerate(of_keypoints):
        of_rows[side, present] = each[indices[present, side]]
    return Correspondences(points1, points2, distances, (of_rows[0], of_rows[1]))


def as_positions(keypoints: Keypoints, name: str) -> Array:
    """Return keypoint positions, float64 of shape (n, 2), from KeyPoints or an array."""
    if isinstance(keypoints, (str, Set, Mapping)) or not any(hasattr(keypoints, name) for name in _OF_ARRAYS):
        got = type(keypoints).__name__
        raise TypeError(f"`{name}` must be a sequence of cv2.KeyPoint or an array of shape (n, 2), got {got}")
    return as_points(keypoints, name)


def select_matches(matches: Matches, inlier_mask: Any) -> list[cv2.DMatch]:
    """Return the kept matches as a flat list; for knnMatch output, the best neighbour of each kept row.

    Parameters
    ----------
    matches : sequence of cv2.DMatch, or knnMatch output
    inlier_mask : FilterResult, or array_like of bool, shape (len(matches),)

    Examples
    --------
    >>> import cv2
    >>> matches = [cv2.DMatch(0, 3, 0.5), cv2.DMatch(1, 2, 0.7)]
    >>> [match.trainIdx for match in select_matches(matches, [False, True])]
    [2]
    """
    rows = _as_sequence(matches)
    kept = []
    for number in np.flatnonzero(as_mask(inlier_mask, "inlier_mask", len(rows))).tolist():
        row = rows[number]
        best = row[0] if isinstance(row, (tuple, list)) and row else row
        if not isinstance(best, cv2.DMatch):
            raise TypeError(f"`matches[{number}]` is kept by `inlier_mask` and must hold a cv2.DMatch, got {row!r}")
        kept.append(best)
    return kept


def _as_sequence(matches: Any) -> Sequence[Any]:
    """Return matches with a row per match: a tuple of two index columns becomes an array (n, 2)."""
    if hasattr(matches, "__array__") and not hasattr(matches, "ndim"):
        matches = as_array(matches, "matches", "(n, 2)")
    if isinstance(matches, (str, Set, Mapping)) or not hasattr(matches, "__len__") or getattr(matches, "ndim", 1) == 0:
        raise TypeError(f"`matches` must be a sequence, got {type(matches).__name__}")
    if isinstance(matches, np.ndarray) and matches.dtype == np.object_:  # np.array(knnMatch output, object)
        matches = matches.tolist()
    if isinstance(matches, tuple) and len(matches) == 2 and not any(isinstance(item, _ROWS) for item in matches):
        first, second = (as_array(column, "matches", "(n, 2)") for column in matches)
        if first.ndim == second.ndim == 1:
            check_same_length(first, second, "the two index arrays of `matches`")
            return np.stack([first, second], axis=1)  # type: ignore[return-value]
    return as_array(matches, "matches", "(n, 2)") if hasattr(matches, "ndim") else matches  # type: ignore[return-value]


def as_indices(
    matches: Matches, ratio: float | None = None, queries: tuple[int, str] | None = None, filtered: bool = False
) -> tuple[Rows, Mask, Array | None]:
    """Return index pairs (n, 2), a mask of the rows that have a match, and descriptor distances.

    `queries` is the number of keypoints of the first image, and their name in messages. `filtered`: there is a mask of the rows, so
    that each stands for its best neighbour.
    """
    if ratio is not None:
        ratio = check_real(ratio, "ratio", above=0.0, below=1.0 + 1e-12)
    rows = _as_sequence(matches)
    is_flat = len(rows) > 0 and isinstance(rows[0], cv2.DMatch)
    is_knn = all(isinstance(row, (tuple, list)) and all(isinstance(m, cv2.DMatch) for m in row) for row in rows)
    if ratio is not None:
        form = "" if is_knn else "a flat sequence of DMatch" if is_flat else "an index array"
        if is_knn and all(len(row) < 2 for row in rows) and len({m.trainIdx for row in rows for m in row}) > 1:
            form = "rows of one DMatch"  # though `kp2` has several keypoints
        if form:
            raise ValueError(f"`ratio` needs knnMatch output with k >= 2, got {form}")
    if is_knn and ratio is None and not filtered and any(len(row) > 2 for row in rows):
        raise ValueError(
            f"`matches` must have at most 2 neighbours per row, got {max(map(len, rows))}: give `ratio`, or, to filter all neighbours, "
            "a flat list, [match for row in matches for match in row]"
        )
    if is_knn:
        rows = [_best_neighbour(row, ratio) for row in rows]
    elif not is_flat:
        return *_as_index_pairs(rows, queries), None
    try:
        fields = [
            (-1, -1, -1, np.inf) if row is None else (row.queryIdx, row.trainIdx, row.imgIdx, row.distance)
            for row in rows
        ]
    except AttributeError:
        raise TypeError("`matches` must hold only cv2.DMatch, or only knnMatch rows, got a mixture") from None
    table = np.array(fields, np.float64).reshape(-1, 4)
    _check_one_image(table[:, 2])
    return table[:, :2].astype(np.int64), np.array([row is not None for row in rows], bool), table[:, 3]


def _check_one_image(numbers: Array) -> None:
    """Raise unless all matches are of one train image: keypoint numbers of another one mean nothing here; -1 is of any."""
    images = np.unique(numbers[numbers >= 0]).astype(int).tolist()
    if len(images) > 1:
        raise ValueError(
            f"`matches` must be of one train image, got imgIdx {', '.join(map(str, images[:4]))}{', ...' * (len(images) > 4)}: "
            f"filter each separately, such as [match for match in matches if match.imgIdx == {images[0]}] with its keypoints"
        )


def _best_neighbour(row: Sequence[cv2.DMatch], ratio: float | None) -> cv2.DMatch | None:
    if ratio is None:
        return row[0] if row else None
    return row[0] if len(row) >= 2 and row[0].distance < ratio * row[1].distance else None


def _as_index_pairs(rows: Sequence[Any], queries: tuple[int, str] | None) -> tuple[Rows, Mask]:
    """Return index pairs (n, 2), and which of them are a match: no index is masked, missing or SuperGlue's -1."""
    indices = as_array(rows, "matches", "(n, 2)")
    if indices.dtype == object:
        raise TypeError(f"`matches` must hold DMatch, knnMatch rows or index pairs, got {arrived(rows, indices)}")
    if indices.shape[:1] == (1,) and indices.ndim == (2 if indices.shape[-1] != 2 else 3):  # a batch of one pair
        indices = indices[0]
    has_partners = indices.ndim == 1  # SuperGlue's `matches0`
    if has_partners:
        if queries is not None and len(indices) != queries[0]:
            raise ValueError(
                f"`matches` must hold one index for each of the {queries[0]} keypoints of `{queries[1]}`, got {indices.shape}"
            )
        if indices.dtype.kind == "b":
            raise TypeError("`matches` must hold DMatch, knnMatch rows or integer indices, got a mask")
        indices = np.stack([np.arange(len(indices)), indices], axis=1)
    if indices.ndim != 2 or indices.shape[1] != 2:
        raise ValueError(
            "`matches` must hold DMatch, knnMatch rows, index pairs of shape (n, 2) or one index for each keypoint, "
            f"got {indices.shape}"
        )
    present = np.ones(len(indices), bool)
    if indices.dtype.kind == "f" and np.isnan(indices).any():  # masked integers arrive as floats with NaN
        present = ~np.isnan(indices).any(axis=1)
        whole = np.where(present[:, None], indices, -1)
        indices = whole.astype(np.int64) if (np.abs(whole) < 2**53).all() and (whole % 1 == 0).all() else indices
    if indices.dtype.kind not in "iu":
        raise TypeError(f"`matches` must hold integer index pairs, got dtype {indices.dtype}")
    if (indices > np.iinfo(np.int64).max).any():  # would become negative
        raise IndexError(f"`matches` must hold indices of keypoints, got {indices.max()}")
    indices = indices.astype(np.int64)
    return indices, present & (indices[:, 1] != -1) if has_partners else present
