"""Two families of models, homographies and fundamental matrices, by OpenCV's minimal solvers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruzhash_cv._interrupts import uninterrupted
from ruzhash_cv._validation import as_points, as_row_numbers, check_choice, check_same_length

HOMOGRAPHY, FUNDAMENTAL = 0, 1
KINDS = ("homography", "fundamental")
SAMPLE_SIZE = {"homography": 4, "fundamental": 7}


@dataclass(frozen=True)
class Models:
    """Models of one family, and the samples they came from.

    Attributes
    ----------
    matrices : ndarray of float64, shape (m, 3, 3)
        Homographies (x2 ~ H x1) or fundamental matrices (x2^T F x1 = 0), of unit Frobenius norm.
    sample_index : ndarray of int64, shape (m,)
        The sample each model was solved from; a fundamental matrix's sample gives up to three.
    kind : str
        ``"homography"`` or ``"fundamental"``.
    n_degenerate : int
        Samples for which the solver gave no finite, invertible model.
    """

    matrices: NDArray[np.float64]
    sample_index: NDArray[np.int64]
    kind: str
    n_degenerate: int = 0

    def __len__(self) -> int:
        return len(self.matrices)


@dataclass(frozen=True)
class Frame:
    """A shift and one common scale that bring pixels of both images near the unit square.

    One scale for both images keeps residuals comparable: a residual in the frame is `scale` times its pixels.
    """

    centre1: NDArray[np.float64]
    centre2: NDArray[np.float64]
    scale: float

    @classmethod
    def around(cls, points1: NDArray[np.float64], points2: NDArray[np.float64]) -> Frame:
        """Return the frame in which the points of both images have a median distance of about 1 from their centres.

        Medians, so that a few coordinates far from any image change nothing.
        """
        if len(points1) == 0:
            return cls(np.zeros(2), np.zeros(2), 1.0)
        centre1, centre2 = _medians(points1), _medians(points2)
        away = np.abs(points1 - centre1), np.abs(points2 - centre2)
        spread = max(_medians(away[0]).mean(), _medians(away[1]).mean())
        if spread == 0.0:  # most points are one
            spread = max(away[0].mean(), away[1].mean())
        # Beyond these the frame's own squares would overflow.
        scale = 1.0 / spread if 1e-100 < spread < 1e100 else 1.0
        return cls(centre1, centre2, float(scale))

    def enter(self, points1: NDArray[np.float64], points2: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return correspondences in the frame, shape (n, 4)."""
        return np.hstack([(points1 - self.centre1) * self.scale, (points2 - self.centre2) * self.scale])

    def leave(self, matrices: NDArray[np.float64], kind: str) -> NDArray[np.float64]:
        """Return models of correspondences in the frame as models of pixels."""
        s, (x1, y1), (x2, y2) = self.scale, self.centre1, self.centre2
        into1 = np.array([[s, 0.0, -s * x1], [0.0, s, -s * y1], [0.0, 0.0, 1.0]])
        if kind == "homography":
            from2 = np.array([[1.0 / s, 0.0, x2], [0.0, 1.0 / s, y2], [0.0, 0.0, 1.0]])
        else:
            from2 = np.array([[s, 0.0, 0.0], [0.0, s, 0.0], [-s * x2, -s * y2, 1.0]])
        return unit_norm(from2 @ matrices @ into1)


def solve_models(points1: ArrayLike, points2: ArrayLike, samples: ArrayLike, *, kind: str) -> Models:
    """Solve one model (three at most for ``"fundamental"``) per minimal sample set.

    Parameters
    ----------
    points1, points2 : array_like, shape (n, 2)
        Corresponding points, pixels; finite.
    samples : array_like of int, shape (m, 4) or (m, 7)
        Row numbers, as from `draw_samples`.
    kind : {"homography", "fundamental"}
        `cv2.getPerspectiveTransform` on 4 correspondences, or `cv2.findFundamentalMat` (FM_7POINT) on 7. Both work in
        float32: points are shifted and scaled first.

    Returns
    -------
    Models

    Examples
    --------
    >>> square = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
    >>> models = solve_models(square, 2 * square, [[0, 1, 2, 3]], kind="homography")
    >>> H = models.matrices[0]
    >>> np.allclose(H / H[2, 2], np.diag([2.0, 2.0, 1.0]))
    True
    """
    check_choice(kind, "kind", KINDS)
    first, second = as_points(points1, "points1", finite=True), as_points(points2, "points2", finite=True)
    check_same_length(first, second, "`points1` and `points2`")
    rows = as_row_numbers(samples, "samples", ("m", SAMPLE_SIZE[kind]), len(first))
    # Points too far apart for squares leave no finite model, which is a degenerate sample as any other.
    with np.errstate(all="ignore"):
        frame = Frame.around(first, second)
        solved = solve_in_frame(frame.enter(first, second), rows, kind)
        matrices, owner = frame.leave(solved.matrices, kind), solved.sample_index
    usable = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    owner = owner[usable]
    return Models(matrices[usable], owner, kind, len(rows) - len(np.unique(owner)))


def solve_in_frame(pairs: NDArray[np.float64], samples: NDArray[np.int64], kind: str) -> Models:
    """Solve models of correspondences (n, 4) that are already near the unit square.

    OpenCV's bindings do not expect a KeyboardInterrupt while they convert arguments, and crash.
    """
    sources, targets = (points.astype(np.float32).take(samples, axis=0) for points in (pairs[:, :2], pairs[:, 2:]))
    if kind == "homography":
        solved: list[Any] = uninterrupted(list, map(cv2.getPerspectiveTransform, sources, targets))
        matrices, owner = np.array(solved).reshape(len(samples), 3, 3), np.arange(len(samples))
    else:
        found: list[Any] = uninterrupted(list, map(cv2.findFundamentalMat, sources, targets, repeat(cv2.FM_7POINT)))
        stacks = [np.zeros((0, 3)) if stack is None else stack for stack, _ in found]
        matrices = np.vstack(stacks).reshape(-1, 3, 3) if stacks else np.zeros((0, 3, 3))
        owner = np.repeat(np.arange(len(samples)), [len(stack) // 3 for stack in stacks])
    matrices = unit_norm(matrices)
    usable: NDArray[np.bool_] = np.asarray(np.isfinite(matrices).all(axis=(1, 2)))
    if kind == "homography":
        a, b, c, d, e, f, g, h, i = matrices.reshape(-1, 9).T
        with np.errstate(invalid="ignore"):
            usable &= np.abs(a * (e * i - f * h) + b * (f * g - d * i) + c * (d * h - e * g)) > 1e-9
    owner = owner[usable].astype(np.int64)
    n_degenerate = int(np.count_nonzero(np.bincount(owner, minlength=len(samples)) == 0))
    return Models(matrices[usable], owner, kind, n_degenerate)


def _medians(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each column; numpy's own takes several times as long."""
    low, high = (len(points) - 1) // 2, len(points) // 2
    ranked = np.partition(points, (low, high), axis=0)
    medians: NDArray[np.float64] = 0.5 * ranked[low] + 0.5 * ranked[high]
    return medians


def unit_norm(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the matrices divided by their Frobenius norms; a zero matrix becomes NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        flat = matrices.reshape(len(matrices), 9)
        scaled: NDArray[np.float64] = flat / np.sqrt(np.einsum("mi,mi->m", flat, flat))[:, None]
    return scaled.reshape(-1, 3, 3)
