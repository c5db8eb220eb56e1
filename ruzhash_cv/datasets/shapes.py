"""Lines and circles in the plane, the paper's synthetic data: a loader of the published points, and generators of such shapes."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._validation import RNG, as_generator, check_choice, check_real
from ruzhash_cv.datasets.adelaidermf import DatasetError

ShapeKind: TypeAlias = Literal["line", "circle"]

LINE_SHAPES: tuple[str, ...] = ("stair3", "stair4", "star5", "star11")
"""Shapes of segments: the steps of a stair, the strokes of a star."""

CIRCLE_SHAPES: tuple[str, ...] = ("circle3", "circle4", "circle5")
"""Shapes of circles."""

SHAPE_NAMES: tuple[str, ...] = LINE_SHAPES + CIRCLE_SHAPES
"""All shapes."""

# Per circle: centre x, y, radius, points.
_CIRCLES = {
    "circle3": [(1.0, 0.0, 1.0, 80), (-0.5, 0.866, 1.0, 340), (-0.5, -0.866, 1.0, 80)],
    "circle4": [(0.175, 0.146, 0.55, 50), (0.57, 0.972, 0.334, 50), (0.448, 0.578, 0.146, 50), (0.356, 0.897, 0.595, 50)],
    "circle5": [(-0.5, -0.5, 0.25, 50), (-0.5, 0.5, 0.3, 50), (0.5, -0.5, 0.2, 50), (0.5, 0.5, 0.4, 50), (0.0, 0.0, 0.25, 50)],
}  # fmt: skip
# Per stair: where each step begins and ends, its height, its points.
_STEPS = {
    "stair3": [(0.0, 0.333, 0.0, 50), (0.333, 0.667, 0.3, 50), (0.667, 1.0, 0.6, 300)],
    "stair4": [(0.0, 0.25, 0.2, 50), (0.25, 0.5, 0.4, 50), (0.5, 0.75, 0.6, 50), (0.75, 1.0, 0.8, 50)],
}
# Per star: how many tips the stroke from a tip passes over to the next.
_STARS = {"star5": (5, 2, 0.98), "star11": (11, 5, 0.98)}
_NOISE = {"stair3": 0.005, "stair4": 0.007, "star5": 0.0135, "star11": 0.0075}
_CIRCLE_NOISE = {"circle3": 0.0107, "circle4": 0.0067, "circle5": 0.0048}


@dataclass(frozen=True, eq=False)
class Shape:
    """Points on several lines or circles, among anomalies.

    Attributes
    ----------
    name : str
        Name of the shape.
    kind : {"line", "circle"}
        What its structures are.
    points : ndarray of float64, shape (n, 2)
        The structures' points first, then the anomalies.
    labels : ndarray of int64, shape (n,)
        -1 for an anomaly, k >= 0 for a point of structure k.
    """

    name: str
    kind: ShapeKind
    points: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)


def load_shape(name: str, folder: str | os.PathLike[str], *, anomalies: float = 1.0, rng: RNG = 0) -> Shape:
    """Read a shape's published points and draw anomalies around them.

    Parameters
    ----------
    name : str
        One of `SHAPE_NAMES`, for example ``"star5"``.
    folder : path-like
        Directory that holds ``star5.csv`` (two lines: x, y) and ``star5_gt.csv`` (a structure's number from 1 for each point), ...
    anomalies : float
        Anomalies per genuine point, uniform in the genuine points' bounding box; 1 in the paper (half of all points).
    rng : int, numpy.random.Generator or None
        Of the anomalies.

    Returns
    -------
    Shape

    Raises
    ------
    DatasetError
        If a file is missing or holds something else. It is an `OSError`.

    Examples
    --------
    >>> from ruzhash_cv.datasets import load_shape
    >>> load_shape("star5", "synthetic2d").points.shape  # doctest: +SKIP
    (500, 2)
    """
    check_choice(name, "name", SHAPE_NAMES)
    points, numbers = (_read(Path(folder) / f"{name}{suffix}.csv") for suffix in ("", "_gt"))
    labels = numbers.ravel() - 1
    if points.shape[0] != 2 or len(labels) != points.shape[1]:
        raise DatasetError(
            f"{name}.csv and {name}_gt.csv in {folder} must hold as many labels as points, got {points.shape} and {numbers.shape}"
        )
    return _among_anomalies(name, points.T, labels, anomalies, rng)


def make_shape(name: str, *, anomalies: float = 1.0, noise: float | None = None, rng: RNG = 0) -> Shape:
    """Draw a shape like the published one: the same structures and numbers of points, other points.

    Parameters
    ----------
    name : str
        One of `SHAPE_NAMES`.
    anomalies : float
        Anomalies per genuine point, uniform in the genuine points' bounding box.
    noise : float, optional
        Standard deviation of the noise across the structures. Default: as measured on the published points, 0.005 to 0.014.
    rng : int, numpy.random.Generator or None
        The same int gives the same points.

    Returns
    -------
    Shape

    Examples
    --------
    >>> shape = make_shape("star5")
    >>> shape.kind, shape.points.shape, int((shape.labels == -1).sum())
    ('line', (500, 2), 250)
    """
    check_choice(name, "name", SHAPE_NAMES)
    generator = as_generator(rng)
    if noise is None:
        noise = (_NOISE | _CIRCLE_NOISE)[name]
    noise = check_real(noise, "noise", inclusive=True)
    curves = _circles(name, generator) if name in CIRCLE_SHAPES else _segments(name, generator)
    points = np.vstack([curve + noise * across * generator.normal(size=(len(curve), 1)) for curve, across in curves])
    labels = np.repeat(np.arange(len(curves)), [len(curve) for curve, _ in curves])
    return _among_anomalies(name, points, labels, anomalies, generator)


def _segments(name: str, rng: np.random.Generator) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return for each segment points on it and the unit normal."""
    if name in _STEPS:
        ends = [((begin, height), (end, height), count) for begin, end, height, count in _STEPS[name]]
    else:
        n_tips, stride, radius = _STARS[name]
        angles = 2 * np.pi * stride * np.arange(n_tips + 1) / n_tips
        tips = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        ends = [(tuple(tips[i]), tuple(tips[i + 1]), 50) for i in range(n_tips)]
    curves = []
    for begin, end, count in ends:
        first, along = np.array(begin), np.subtract(end, begin)
        normal = np.array([-along[1], along[0]]) / np.hypot(*along)
        curves.append((first + rng.random((count, 1)) * along, np.tile(normal, (count, 1))))
    return curves


def _circles(name: str, rng: np.random.Generator) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Return for each circle points on it and the unit normals there."""
    curves = []
    for x, y, radius, count in _CIRCLES[name]:
        angles = rng.uniform(0, 2 * np.pi, count)
        outwards = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        curves.append((np.array([x, y]) + radius * outwards, outwards))
    return curves


def _among_anomalies(
    name: str, points: NDArray[np.float64], labels: NDArray[np.float64] | NDArray[np.int64], share: float, rng: RNG
) -> Shape:
    share = check_real(share, "anomalies", inclusive=True)
    alone = as_generator(rng).uniform(points.min(axis=0), points.max(axis=0), (round(share * len(points)), 2))
    return Shape(
        name=name,
        kind="line" if name in LINE_SHAPES else "circle",
        points=np.vstack([points, alone]),
        labels=np.concatenate([labels, np.full(len(alone), -1)]).astype(np.int64),
    )


def _read(path: Path) -> NDArray[np.float64]:
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except (OSError, ValueError) as error:
        raise DatasetError(f"shape file {path} cannot be read: {error}; `make_shape` draws shapes like it") from error
