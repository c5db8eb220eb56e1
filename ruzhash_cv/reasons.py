"""Reasons that a result gives where nothing could be decided, and warnings about input that is probably wrong."""

from __future__ import annotations

import sys
import warnings

import numpy as np

from ruzhash_cv._arrays import Array, Mask
from ruzhash_cv._validation import largest_coordinate
from ruzhash_cv.cameras import Cameras
from ruzhash_cv.core.method.matches import MatchSet

#: Fewer distinct correspondences than this decide nothing: 7 make a fundamental matrix, and one must agree with it.
MIN_MATCHES = 8
_IMAGES = ("first", "second")
#: Pixels: photographs whose points are closer together are tiny.
_SMALL = 10.0
#: Focal lengths in image widths: fields of view of 147 and 9.5 degrees.
_SHORTEST, _LONGEST = 0.15, 6.0
#: Share of the points that lie in the image whatever the others are, and of triangles that are mirrored.
_MOST = 0.9
_N_TRIANGLES = 64


def why_too_few(matches: MatchSet, pixels: tuple[float, float]) -> str:
    """Say why the matches are too few: there are few, they are all the same, or their unit is not the pixel."""
    reason = f"{matches.n_groups} distinct {'match' if matches.n_groups == 1 else 'matches'}, at least {MIN_MATCHES} are needed"
    if len(matches) == 0 < len(matches.finite):
        largest = f"{largest_coordinate(min(pixels)):.3g}"
        relative = "" if pixels == (1.0, 1.0) else f" with `pixel` {min(pixels):.3g}"
        return f"{reason}: no row has a match of finite coordinates below {largest}{relative}"
    if len(matches) == 1 < len(matches.where):
        return f"{reason}: all points are the same"
    if len(matches) >= MIN_MATCHES:
        return f"{reason}: {_units(matches)}"
    return reason


def _units(matches: MatchSet) -> str:
    """Say how far apart the points of the image are whose unit is not the pixel."""
    spans = [np.ptp(points, axis=0).max() for points in matches.frame.leave(matches.coordinates)]
    image = int(np.argmin(spans))
    return (
        f"all points of the {_IMAGES[image]} image lie within {spans[image]:.3g} units; "
        "if the unit is not the pixel, give `pixel`, the size of one, or a pair, one for each image"
    )


def why_nothing(matches: MatchSet, pixels: tuple[float, float], n_models: int) -> str:
    """Say why there are no structures: points are the same, on a line or not in pixels, or no model has evidence."""
    for name, points, pixel in zip(_IMAGES, matches.frame.leave(matches.coordinates), pixels, strict=True):
        along, off = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) / np.sqrt(len(points))
        if along < pixel:
            is_one = np.ptp(points, axis=0).max() <= 1e-9 * np.abs(points).max(initial=pixel)
            return f"the points of the {name} image are all the same" if is_one else _units(matches)
        if off < pixel:
            return f"the points of the {name} image lie on a line"
    return f"no structure among the {n_models} models tried" if n_models else "all minimal samples are degenerate"


def why_nothing_is_kept(keep: Mask, n_structures: int, false_discovery_rate: float | None) -> str | None:
    """Say why no match is kept although structures were found; None if some are."""
    if n_structures == 0:
        return "no match belongs to any of the structures found"
    if keep.any():
        return None
    if false_discovery_rate is not None:
        return f"no match is probable enough for `false_discovery_rate` {false_discovery_rate:g}"
    return "all matches that belong to a structure did not move, and `keep_stationary` is False"


def warn(message: str | None) -> None:
    """Warn in the line that called the package; Python shows one message once for each such line."""
    if message is None:
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].partition(".")[0] == "ruzhash_cv":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def sign_of_units(matches: MatchSet, pixels: tuple[float, float]) -> str | None:
    """Say that the unit is not the pixel if many matches lie within a few pixels."""
    if len(matches) < MIN_MATCHES:
        return None
    given = zip(matches.frame.leave(matches.coordinates), pixels, strict=True)
    return _units(matches) if any(np.ptp(points, axis=0).max() < _SMALL * pixel for points, pixel in given) else None


def sign_of_focal_length(cameras: Cameras, points1: Array, points2: Array) -> str | None:
    """Say that a camera which is no fisheye sees an angle that few lenses do."""
    for name, camera, points in zip(_IMAGES, cameras, (points1, points2), strict=True):
        given = points[np.isfinite(points).all(axis=1)]
        if camera is None or camera.is_wide or len(given) < MIN_MATCHES:
            continue
        focal, centre = camera.matrix[0, 0], camera.matrix[:2, 2]
        reach = max(np.quantile(np.abs(given - centre).max(axis=1), _MOST), *np.abs(centre))
        if not _SHORTEST < 0.5 * focal / reach < _LONGEST:
            if np.abs(centre).max() >= reach and _SHORTEST < focal / np.ptp(given, axis=0).max() < _LONGEST:
                point = ", ".join(f"{value:g}" for value in centre)
                return f"the {name} camera has its principal point at ({point}), far from its points: is it of this image, in pixels?"
            degrees, than = ("9.5", "less") if focal > reach else ("147", "more")
            return f"the {name} camera sees {than} than {degrees} degrees: is its focal length, {focal:g}, in pixels?"
    return None


def sign_of_exchanged_axes(points1: Array, points2: Array) -> str | None:
    """Say that most triangles of the matches (n, 2) of a motion are mirrored, which no camera does."""
    if len(points1) < MIN_MATCHES:
        return None
    corners = np.random.default_rng(0).integers(len(points1), size=(3, _N_TRIANGLES))
    areas = []
    for points in (points1, points2):
        (x1, y1), (x2, y2) = (np.transpose(points[each] - points[corners[0]]) for each in corners[1:])
        areas.append(np.sign(x1 * y2 - x2 * y1))
    turned = areas[0] * areas[1]
    if np.count_nonzero(turned < 0.0) <= _MOST * np.count_nonzero(turned):
        return None
    return "the second image mirrors the first: are the points of one image (row, column) in place of (x, y)?"
