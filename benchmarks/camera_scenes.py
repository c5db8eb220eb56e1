"""The drawn pairs of `pose_scenes` seen through lenses: barrel and cushion distortion, and fisheyes of nearly 180 degrees."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import cv2
import numpy as np
from geometry import Matrix, Points
from numpy.typing import NDArray
from pose_scenes import SIZE, draw
from pose_worlds import MOTIONS, RIGID
from problems import Problem, first_seed

K1 = (-0.3, 0.1)  # of a distortion polynomial, uniform; the next coefficient undoes a little of it
FISHEYE_FOCAL = (230.0, 320.0)  # pixels, for pictures of 800 by 600
MOST = 0.9  # of the radius at which a distortion folds


def through(points: NDArray[np.float64], K: Matrix, distortion: tuple[float, ...], fisheye: bool) -> Points:
    """Pixels (n, 2) of points (n, 3); NaN outside the picture, nearer than 10 cm, or where the distortion has folded."""
    depth = np.where(points[:, 2] > 0.1, points[:, 2], np.nan)
    plane = points[:, :2] / depth[:, None]
    radius = np.linalg.norm(plane, axis=1)
    usable = np.isfinite(radius) & (radius < (10.0 if fisheye else folds_at(distortion)))
    given = np.where(usable[:, None], plane, 0.0)[:, None]
    still, numbers = np.zeros(3), np.array(distortion)
    if fisheye:
        pixels = cv2.fisheye.distortPoints(given, K, numbers)[:, 0]
    else:
        pixels = cv2.projectPoints(cv2.convertPointsToHomogeneous(given), still, still, K, numbers)[0][:, 0]
    usable &= ((pixels >= 0) & (pixels <= SIZE - 1)).all(axis=1)
    return np.where(usable[:, None], pixels, np.nan)


def folds_at(distortion: tuple[float, ...]) -> float:
    """A radius below the one at which r (1 + k1 r^2 + k2 r^4) stops growing, at most 2."""
    radii = np.linspace(0.0, 2.0, 401)
    slopes = 1.0 + 3.0 * distortion[0] * radii**2 + 5.0 * distortion[1] * radii**4
    return MOST * float(radii[np.argmax(slopes <= 0.0)]) if (slopes <= 0.0).any() else 2.0


def seen(
    make: Callable[[np.random.Generator], tuple[tuple[float, ...], bool]],
    title: str,
    half: str,
    per_cell: int,
    **options: Any,
) -> Iterator[Problem]:
    """`per_cell` pairs of every scene and motion through lenses that `make` draws, one for both images of a pair."""
    for scene, motion, index in product(RIGID, MOTIONS, range(per_cell)):
        seed = first_seed(half) + index
        distortion, fisheye = make(np.random.default_rng([seed, len(scene), len(motion)]))
        pair = draw(scene, motion, seed, partial(through, distortion=distortion, fisheye=fisheye), **options)
        yield replace(pair, suite=title, cameras=replace(pair.cameras, distortion=distortion, fisheye=fisheye))


def barrel_or_cushion(rng: np.random.Generator) -> tuple[tuple[float, ...], bool]:
    """k1 of `K1`, k2 of -k1 / 5, little tangential distortion."""
    k1 = float(rng.uniform(*K1))
    return (k1, -0.2 * k1, *rng.normal(0, 0.0005, 2).tolist()), False


def fisheye_lens(rng: np.random.Generator) -> tuple[tuple[float, ...], bool]:
    """Nearly equidistant."""
    return (*rng.normal(0, [0.02, 0.004, 0.001, 0.0002]).tolist(),), True


def distorted(half: str, per_cell: int) -> Iterator[Problem]:
    """Pairs of distorted images."""
    return seen(barrel_or_cushion, "synthetic poses, distorted", half, per_cell)


def fisheyes(half: str, per_cell: int) -> Iterator[Problem]:
    """Pairs of fisheyes."""
    return seen(fisheye_lens, "synthetic poses, fisheye", half, per_cell, focals=FISHEYE_FOCAL)
