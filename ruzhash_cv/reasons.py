"""Reasons that a result gives where nothing could be decided."""

from __future__ import annotations

import numpy as np

from ruzhash_cv._arrays import Mask
from ruzhash_cv._validation import largest_coordinate
from ruzhash_cv.method.matches import MatchSet

#: Fewer distinct correspondences than this decide nothing: 7 make a fundamental matrix, and one must agree with it.
MIN_MATCHES = 8
_IMAGES = ("first", "second")


def why_too_few(matches: MatchSet, pixels: tuple[float, float]) -> str:
    """Say why the matches are too few: there are few, they are all the same, or their unit is not the pixel."""
    reason = f"{matches.n_groups} distinct matches, at least {MIN_MATCHES} are needed"
    if len(matches) == 0 < len(matches.finite):
        relative = "" if pixels == (1.0, 1.0) else f" with `pixel` {min(pixels):.3g}"
        return (
            f"{reason}: no row has a match of finite coordinates below {largest_coordinate(min(pixels)):.3g}{relative}"
        )
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


def why_nothing(matches: MatchSet, pixels: tuple[float, float]) -> str:
    """Say why there are no structures: points are the same, on a line or not in pixels, or no model is better than chance."""
    given = zip(_IMAGES, matches.frame.leave(matches.coordinates), pixels, strict=True)
    for name, points, pixel in given:
        along, off = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) / np.sqrt(len(points))
        if along < pixel:
            is_one = np.ptp(points, axis=0).max() <= 1e-9 * np.abs(points).max(initial=pixel)
            return f"the points of the {name} image are all the same" if is_one else _units(matches)
        if off < pixel:
            return f"the points of the {name} image lie on a line"
    return "no model found that more matches agree with than chance would give"


def why_nothing_is_kept(keep: Mask, n_structures: int, false_discovery_rate: float | None) -> str | None:
    """Say why no match is kept although structures were found; None if some are."""
    if n_structures == 0:
        return "no match belongs to any of the structures found"
    if keep.any():
        return None
    if false_discovery_rate is not None:
        return f"no match is probable enough for `false_discovery_rate` {false_discovery_rate:g}"
    return "all matches that belong to a structure did not move, and `keep_stationary` is False"
