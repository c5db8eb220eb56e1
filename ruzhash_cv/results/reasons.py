"""Reasons that a result gives where nothing could be decided, and warnings about input that is probably wrong."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

import numpy as np

from ruzhash_cv.core.families import FAMILIES, RAY_FAMILIES
from ruzhash_cv.core.families.base import TwoViewFamily
from ruzhash_cv.core.method.estimate import Estimate
from ruzhash_cv.core.method.fits import log_likelihoods, refine, refined_samples
from ruzhash_cv.core.method.matches import MatchSet, floored
from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.foundation.validation import largest_coordinate
from ruzhash_cv.input.cameras import Camera, Cameras

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
#: Standard deviation of the logarithm of a focal length that matches hardly show.
_UNCERTAIN = 0.1
#: How many times likelier each match is with any cameras, beyond what a motion costs, if the given ones do not fit.
_LIKELIER = 1.5
_HELD: ContextVar[list[str] | None] = ContextVar("_HELD", default=None)


def why_too_few(matches: MatchSet, pixels: tuple[float, float], rows: Array, ratio: float | None) -> str:
    """Say why the matches are too few: there are few, they are all the same, or their unit is not the pixel.

    `rows` (n, 4) are the points as they were given, NaN where the ratio test or the caller left out a match.
    """
    reason = f"{matches.n_groups} distinct {'match' if matches.n_groups == 1 else 'matches'}, at least {MIN_MATCHES} are needed"
    if len(matches) == 0 < len(matches.finite):
        return f"{reason}: {_why_none(pixels, rows, ratio)}"
    if len(matches) == 1 < len(matches.where):
        return f"{reason}: all points are the same"
    if len(matches) >= MIN_MATCHES:
        return f"{reason}: {_units(matches)}"
    return reason


def _why_none(pixels: tuple[float, float], rows: Array, ratio: float | None) -> str:
    """Say why no row is a match: it was left out, has no coordinates in an image, or no ray of the cameras."""
    if np.isnan(rows).all():
        return "no row has a match" if ratio is None else f"all {len(rows)} rows fail `ratio` {ratio:g}"
    largest, relative = [largest_coordinate(pixel) for pixel in pixels], f" with `pixel` {min(pixels):.3g}"
    if (np.abs(rows) < np.repeat(largest, 2)).all(axis=1).any():
        return f"at every match, `cameras` have no ray, or at least {min(largest):.3g} pixels per radian"
    return (
        f"no row has a match of finite coordinates below {min(largest):.3g}{relative if pixels != (1.0, 1.0) else ''}"
    )


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


@contextmanager
def held_warnings() -> Iterator[list[str]]:
    """Collect the messages of `warn` within the block, in this thread, in place of warning."""
    messages: list[str] = []
    token = _HELD.set(messages)
    try:
        yield messages
    finally:
        _HELD.reset(token)


def warn(message: str | None) -> None:
    """Warn in the line that called the package; Python shows one message once for each such line."""
    if message is None:
        return
    if (held := _HELD.get()) is not None:
        held.append(message)
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


def sign_of_image_size(camera: Camera, points1: Array, points2: Array) -> str | None:
    """Say that points (n, 2) do not lie in images of the size of a camera whose principal point is in the middle."""
    width, height = size = 2.0 * camera.matrix[:2, 2] + 1.0
    points = np.vstack([points1, points2])
    outside = ((points < -1.0) | (points > size)).any(axis=1)
    images = f"images of {width:g} by {height:g} pixels"
    if np.count_nonzero(outside) > (1.0 - _MOST) * len(points):
        x, y = points[outside][0]
        return (
            f"points lie outside of {images}, one of them at ({x:.0f}, {y:.0f}): is `image_size` their (width, height)?"
        )
    if len(points) >= MIN_MATCHES and (points < 0.5 * size).all():
        return f"all points lie in the first quarter of {images}: is `image_size` their size?"
    return None


def sign_of_no_focal_length(spread: float) -> str | None:
    """Say that matches hardly show the focal length that was estimated, by the standard deviation of its logarithm."""
    if spread <= _UNCERTAIN:
        return None
    return (
        f"the matches show the focal length only to about {100.0 * spread:.0f} %, as of a camera that moved ahead or did not turn: "
        "give cameras, or another pair"
    )


def sign_of_other_cameras(estimate: Estimate, motion: int) -> str | None:
    """Say that a fundamental matrix, of any cameras, explains the matches of a motion far better than known cameras do.

    Cameras with which a motion has little noise are right enough.
    """
    scene, matches, parameters = estimate.scene, estimate.matches, estimate.parameters
    is_plane = bool(estimate.families.is_plane(scene)[motion])
    least = parameters.min_height if is_plane else parameters.least_noise
    if not matches.calibrated or scene.noise[motion] <= least * matches.unit:
        return None
    of_motion, of_any = (
        estimate.probabilities[:, rows].sum(axis=1) for rows in (scene.owners == motion, scene.owners >= 0)
    )
    labels = np.where(of_motion > 0.0, motion, -1)
    weighted = replace(matches, weights=matches.weights * np.minimum(of_motion, 1.0))
    # The members of a motion that is wrong are few of the true matches: what belongs to no other motion counts.
    counted = replace(matches, weights=matches.weights * (1.0 - np.minimum(of_any - of_motion, 1.0)))

    def explained(family: TwoViewFamily, models: Array, is_sampled: bool) -> Array:
        """Squared residuals (n,) to the likeliest of models and, if it is sampled, of samples."""
        if is_sampled:
            models, _, near = refined_samples(models, labels, weighted, family, parameters, np.random.default_rng(0))
            models = models[np.argsort(-log_likelihoods(near, weighted.weights, matches.unit, 1))[:1]]
        refined, _ = refine(family, models, counted, np.full(len(models), matches.unit), parameters)
        return np.asarray(family.squared_residuals(matches.data, refined).min(axis=0, initial=np.inf))

    own = scene.matrices[[motion] if not is_plane else []]
    of_any_camera = explained(FAMILIES["fundamental"], own, True)
    # The motion's matrix is the likeliest essential one as a rule: samples are drawn only if it gives reason to warn.
    for is_sampled in (True,) if is_plane else (False, True):
        given, n = explained(RAY_FAMILIES["essential"], own, is_sampled), float(weighted.weights.sum())
        reason = _sign_of_likelier(given, of_any_camera, counted.weights, n, estimate)
        if reason is None:
            return None
    return reason


def sign_of_other_camera_matrices(estimate: Estimate, motion: int, squared: Array) -> str | None:
    """Say the same of cameras that a motion was estimated without, from squared residuals (n,) to its pose by them."""
    scene, matches = estimate.scene, estimate.matches
    family = estimate.families[scene.family_ids[motion]]
    if family.name != "fundamental":
        return None
    weights = matches.weights * np.minimum(estimate.probabilities[:, scene.owners == motion].sum(axis=1), 1.0)
    of_any = family.squared_residuals(matches.data, scene.matrices[[motion]])[0]
    return _sign_of_likelier(squared, of_any, weights, float(weights.sum()), estimate)


def _sign_of_likelier(given: Array, of_any: Array, weights: Array, n: float, estimate: Estimate) -> str | None:
    """Say that other cameras are likelier for n of weighted matches, from squared residuals (n,) by the given and by any cameras."""
    matches, squared = estimate.matches, np.vstack([given, of_any])
    known, free = log_likelihoods(floored(squared, matches), weights, matches.unit, 1)
    if free <= known + estimate.parameters.motion_cost + np.log(_LIKELIER) * n:
        return None
    return (
        "a fundamental matrix, of any cameras, explains the matches far better than these cameras do: are they those of these images, "
        "at their size in pixels?"
    )


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
