"""One problem of the comparison: correspondences, the truth about them, and which of them count."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import cv2
import numpy as np
from geometry import Matrix, Points, apply_homography, sampson_distance
from numpy.typing import NDArray
from patches import Image, agreements, is_shifted

JUDGE_SEED = 10_000
"""Rendered problems with seeds from 0 on are for tuning, from here on for judging."""

UNJUDGED_WITHIN = 3.0
"""Pixels (Sampson) from the one fundamental matrix of a static scene. A match off its labelled planes is not judged within them."""
FEWEST_MATCHES = 8
"""For a fundamental matrix."""


def first_seed(half: str) -> int:
    """The seeds of the two halves never meet."""
    return JUDGE_SEED if half == "judge" else 0


@dataclass(frozen=True)
class Cameras:
    """Two known cameras, x2 ~ K2 (R X + t); `t` is 0 for a pure rotation.

    Both images have the `distortion` of OpenCV's model, or of its `fisheye`'s.
    """

    K1: Matrix
    K2: Matrix
    R: Matrix
    t: NDArray[np.float64]
    distortion: tuple[float, ...] = ()
    fisheye: bool = False


@dataclass(frozen=True)
class Problem:
    """Correspondences with ground truth.

    `labels`: 0 = mismatch, k = structure k. `judged`: the matches that count. `kind`: what one structure is,
    "homography" or "fundamental". `models`: the true matrix of each structure, if known. `exact1`, `exact2`:
    noise-free true correspondences, for errors of models. `moved`: near misses among the matches; where a scene's planes are
    labelled, the matches off them that one motion explains and that are not judged; `shifted`: those of them that the pictures
    show on a plane, a whole period of its pattern away.
    `settings`: what the problem was made with.
    """

    name: str
    suite: str
    kind: str
    points1: Points
    points2: Points
    labels: NDArray[np.intp]
    judged: NDArray[np.bool_]
    models: tuple[Matrix, ...] = ()
    exact1: Points | None = None
    exact2: Points | None = None
    settings: dict[str, float | str] = field(default_factory=dict)
    cameras: Cameras | None = None
    moved: NDArray[np.bool_] | None = None
    shifted: NDArray[np.bool_] | None = None

    @property
    def mismatch_rate(self) -> float:
        """Share of mismatches among the judged matches."""
        return float(np.mean(self.labels[self.judged] == 0))

    def shuffled(self, seed: int) -> Problem:
        """The same problem with its rows in another order: how a seed reaches methods that take none."""
        order = np.random.default_rng(seed).permutation(len(self.labels))
        names = ("points1", "points2", "labels", "judged", "moved", "shifted")
        return replace(self, **{name: getattr(self, name)[order] for name in names if getattr(self, name) is not None})

    def with_off_plane_unjudged(self, images: tuple[Image, Image] | None = None) -> Problem:
        """The problem of a static scene that judges no match off its labelled planes that one fundamental matrix explains.

        Labels of planes say nothing of the rest of the scene: what they call a mismatch may be a true match off them. `moved` marks
        these matches. The matrix is OpenCV's for all matches, which is the same whenever the matches are. With the pictures,
        `shifted` marks those that are no true ones after all.
        """
        if len(self.labels) < FEWEST_MATCHES:
            return self
        F, _ = cv2.findFundamentalMat(self.points1, self.points2, cv2.USAC_MAGSAC, 1.0, 0.9999, 100_000)
        if F is None or F.shape != (3, 3):
            return self
        near = sampson_distance(F, self.points1, self.points2) < UNJUDGED_WITHIN
        off_plane = self.judged & (self.labels == 0) & near
        shifted = np.zeros_like(off_plane)
        if images is not None:
            found = agreements(images, self.models, self.points1[off_plane], self.points2[off_plane])
            shifted[off_plane] = is_shifted(found)
        return replace(self, judged=self.judged & ~off_plane, moved=off_plane, shifted=shifted)

    def with_near_misses(
        self, share: float = 0.2, nearest: float = 6.0, farthest: float = 20.0, seed: int = 0
    ) -> Problem:
        """The problem with a share of its true matches moved by `nearest` to `farthest` pixels, which makes them false."""
        rng, true = np.random.default_rng(seed), np.flatnonzero(self.labels > 0)
        rows = rng.choice(true, int(share * len(true)), replace=False)
        angle, step = rng.uniform(0, 2 * np.pi, len(rows)), rng.uniform(nearest, farthest, len(rows))
        points2, moved = self.points2.copy(), np.isin(np.arange(len(self.labels)), rows)
        points2[rows] += np.column_stack([np.cos(angle), np.sin(angle)]) * step[:, None]
        return replace(self, points2=points2, labels=np.where(moved, 0, self.labels), moved=moved)


def four_planes(n: int, seed: int = 0) -> tuple[Points, Points]:
    """What times are taken on: four quadrants, a homography each, noise of 1 px, 40 % replaced at random."""
    rng, size = np.random.default_rng(seed), 1000.0
    points1 = rng.uniform(0, size, (n, 2))
    quadrant = (points1[:, 0] > size / 2) * 2 + (points1[:, 1] > size / 2)
    points2 = np.empty_like(points1)
    for index in range(4):
        H = np.eye(3) + rng.normal(0, 1, (3, 3)) * [[0.05, 0.05, 20], [0.05, 0.05, 20], [3e-5, 3e-5, 0]]
        points2[quadrant == index] = apply_homography(H, points1[quadrant == index])
    points2 += rng.normal(0, 1, points2.shape)
    wrong = rng.random(n) < 0.4
    points2[wrong] = rng.uniform(0, size, (int(wrong.sum()), 2))
    return points1, points2
