"""Keypoints and matches, in any form OpenCV users hold them, to correspondences; and a mask back to matches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._arrays import Array, Mask, Record, Rows
from ruzhash_cv._validation import arrived, as_array, as_mask, as_points, check_real

Keypoints: TypeAlias = Sequence[cv2.KeyPoint] | ArrayLike
Matches: TypeAlias = Sequence[cv2.DMatch] | Sequence[Sequence[cv2.DMatch]] | ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Correspondences(Record):
    """Pairs of points, one row per match.

    Attributes
    ----------
    points1, points2 : ndarray of float64, shape (n, 2)
        Pixel (x, y) in the first and the second image; NaN in rows without a match (an empty knnMatch row, or one that
        fails the ratio test, or is masked).
    distances : ndarray of float64, shape (n,), or None
        Descriptor distances, None where the matches came as indices.

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
        Keypoints of the two images, or their pixel positions (x, y), in an array of any library: NumPy, torch on any device,
        jax, pandas.
    matches : sequence of cv2.DMatch, knnMatch output, or array_like of int, shape (n, 2), (1, n, 2), (len(kp1),) or (1, len(kp1))
        knnMatch output (a tuple of 0, 1, 2 or more DMatch per query row) gives one row per query, its best neighbour.
        Index pairs are (index into `kp1`, index into `kp2`); a row with a masked or missing one has no match. An array of one number
        for each keypoint of `kp1` is SuperGlue's ``matches0``: the index into `kp2`, -1 for none. It gives one row per keypoint.
    ratio : float in (0, 1], optional
        Lowe's ratio test on knnMatch output: a row passes when its best distance is below `ratio` times its second
        best. A row with fewer than two neighbours cannot be tested and does not pass; rows of which none has two are an error.

    Returns
    -------
    Correspondences
        As many rows as `matches`.

    Raises
    ------
    IndexError
        An index points outside its keypoints.
    TypeError, ValueError
        Another argument is not of a form above; the message says which and what arrived.

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
    kp1: Keypoints, kp2: Keypoints, matches: Matches, ratio: float | None, names: tuple[str, str]
) -> Correspondences:
    """Do as `as_correspondences` does; errors call the keypoints by the names given."""
    positions = as_positions(kp1, names[0]), as_positions(kp2, names[1])
    indices, present, distances = as_indices(matches, ratio, (len(positions[0]), names[0]))
    sides = zip(indices.T, positions, ("queryIdx", "trainIdx"), names, strict=True)
    try:
        points1, points2 = (_points_at(column, own, present, field, name) for column, own, field, name in sides)
    except IndexError as error:
        inside = (indices[present] >= 0) & (indices[present] < (len(positions[1]), len(positions[0])))
        if inside.all():
            raise IndexError(f"{error}; are the images exchanged?") from None
        raise
    return Correspondences(points1, points2, distances)


def as_positions(keypoints: Keypoints, name: str) -> Array:
    """Return keypoint positions, float64 of shape (n, 2), from KeyPoints or an array."""
    if isinstance(keypoints, (str, Set, Mapping)) or not (hasattr(keypoints, "ndim") or hasattr(keypoints, "__len__")):
        got = type(keypoints).__name__
        raise TypeError(f"`{name}` must be a sequence of cv2.KeyPoint or an array of shape (n, 2), got {got}")
    return as_points(keypoints, name)


def select_matches(matches: Matches, inlier_mask: Any) -> list[cv2.DMatch]:
    """Return the kept matches as a flat list, the best neighbour of each kept row for knnMatch output.

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
    if isinstance(matches, (str, Set, Mapping)) or not hasattr(matches, "__len__") or getattr(matches, "ndim", 1) == 0:
        raise TypeError(f"`matches` must be a sequence, got {type(matches).__name__}")
    if isinstance(matches, np.ndarray) and matches.dtype == np.object_:  # what it makes of knnMatch output
        matches = matches.tolist()
    rows: Sequence[Any] = matches if not hasattr(matches, "ndim") else as_array(matches, "matches", "(n, 2)")  # type: ignore[assignment]
    return rows


def as_indices(
    matches: Matches, ratio: float | None = None, queries: tuple[int, str] | None = None
) -> tuple[Rows, Mask, Array | None]:
    """Return index pairs (n, 2), which rows have a match at all, and descriptor distances.

    `queries` are how many keypoints the first image has, and their name in messages.
    """
    if ratio is not None:
        ratio = check_real(ratio, "ratio", above=0.0, below=1.0 + 1e-12)
    rows = _as_sequence(matches)
    flat = len(rows) > 0 and isinstance(rows[0], cv2.DMatch)
    knn = all(isinstance(row, (tuple, list)) and all(isinstance(m, cv2.DMatch) for m in row) for row in rows)
    if ratio is not None and not knn:
        form = "a flat sequence of DMatch" if flat else "an index array"
        raise ValueError(f"`ratio` needs knnMatch output with k >= 2, got {form}")
    if ratio is not None and _without_seconds(rows):
        raise ValueError("`ratio` needs knnMatch output with k >= 2, got rows of one DMatch")
    if knn:
        rows = [_best_neighbour(row, ratio) for row in rows]
    elif not flat:
        return *_as_index_array(rows, queries), None
    try:
        fields = [(-1, -1, np.inf) if row is None else (row.queryIdx, row.trainIdx, row.distance) for row in rows]
    except AttributeError:
        raise TypeError("`matches` must hold only cv2.DMatch, or only knnMatch rows, got a mixture") from None
    table = np.array(fields, np.float64).reshape(-1, 3)
    return table[:, :2].astype(np.int64), np.array([row is not None for row in rows], bool), table[:, 2]


def _without_seconds(rows: Sequence[Sequence[cv2.DMatch]]) -> bool:
    """Return whether no row has a second neighbour although `kp2` has, as several keypoints are matched."""
    return all(len(row) < 2 for row in rows) and len({match.trainIdx for row in rows for match in row}) > 1


def _best_neighbour(row: Sequence[cv2.DMatch], ratio: float | None) -> cv2.DMatch | None:
    if ratio is None:
        return row[0] if row else None
    return row[0] if len(row) >= 2 and row[0].distance < ratio * row[1].distance else None


def _as_index_array(rows: Sequence[Any], queries: tuple[int, str] | None) -> tuple[Rows, Mask]:
    """Return index pairs (n, 2), and which of them are a match: those of which nothing is masked, missing or -1 for none."""
    indices = as_array(rows, "matches", "(n, 2)")
    if indices.dtype == object:
        raise TypeError(f"`matches` must hold DMatch, knnMatch rows or index pairs, got {arrived(rows, indices)}")
    if indices.shape[:1] == (1,) and indices.ndim == (2 if indices.shape[-1] != 2 else 3):  # a batch of one pair
        indices = indices[0]
    if indices.ndim == 1:
        return _as_partners(indices, queries)
    if indices.ndim != 2 or indices.shape[1] != 2:
        raise ValueError(
            "`matches` must hold DMatch, knnMatch rows, index pairs of shape (n, 2) or one index for each keypoint, "
            f"got {indices.shape}"
        )
    return _as_index_pairs(indices)


def _as_partners(partners: NDArray[Any], queries: tuple[int, str] | None) -> tuple[Rows, Mask]:
    """Return index pairs (n, 2) of SuperGlue's `matches0`, and which of them are a match."""
    if queries is not None and len(partners) != queries[0]:
        n, name = queries
        raise ValueError(
            f"`matches` must hold one index for each of the {n} keypoints of `{name}`, got {partners.shape}"
        )
    if partners.dtype.kind == "b":
        raise TypeError("`matches` must hold DMatch, knnMatch rows or integer indices, got a mask")
    pairs, present = _as_index_pairs(np.stack([np.arange(len(partners)), partners], axis=1))
    return pairs, present & (pairs[:, 1] != -1)


def _as_index_pairs(indices: NDArray[Any]) -> tuple[Rows, Mask]:
    present = np.ones(len(indices), bool)
    if indices.dtype.kind == "f" and np.isnan(indices).any():  # masked integers come as these
        present = ~np.isnan(indices).any(axis=1)
        whole = np.where(present[:, None], indices, -1)
        indices = whole.astype(np.int64) if (np.abs(whole) < 2**53).all() and (whole % 1 == 0).all() else indices
    if indices.dtype.kind not in "iu":
        raise TypeError(f"`matches` must hold integer index pairs, got dtype {indices.dtype}")
    return indices.astype(np.int64), present


def _points_at(indices: Rows, positions: Array, present: Mask, field: str, name: str) -> Array:
    """Return the positions that `indices` number, NaN where no match is `present`."""
    outside = np.flatnonzero(present & ((indices < 0) | (indices >= len(positions))))
    if len(outside):
        index = int(indices[outside[0]])
        shown = "a negative index" if index < 0 else str(index)
        raise IndexError(f"`matches[{outside[0]}]` has {field} {shown}, but `{name}` has {len(positions)} keypoints")
    points = np.full((len(indices), 2), np.nan)
    points[present] = positions[indices[present]]
    return points
