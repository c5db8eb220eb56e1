"""vismatch's matchers with this package in place of their RANSAC. Its older name is image-matching-models."""

from __future__ import annotations

from types import MethodType
from typing import Any, TypeVar

import numpy as np

from ruzhash_cv._arrays import Array
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.opencv import find_homography, scaled

Matcher = TypeVar("Matcher")


def replace_ransac(matcher: Matcher, *, all_structures: bool = False) -> Matcher:
    """Return a matcher whose ``compute_ransac`` is done by this package.

    Parameters
    ----------
    matcher : vismatch.BaseMatcher
        What ``vismatch.get_matcher(...)`` returns. It is changed, not copied.
    all_structures : bool
        False: inliers are those of one homography, by `find_homography`; the threshold is the matcher's ``ransac_reproj_thresh``.
        True: inliers are those of every plane and every motion, by `filter_points`. ``H`` is then that of the strongest plane, None
        where there is none.

    Raises
    ------
    TypeError
        The matcher has no ``compute_ransac``.
    """
    if not hasattr(matcher, "compute_ransac"):
        raise TypeError(f"`matcher` must be one of vismatch's, with `compute_ransac`, got {type(matcher).__name__}")
    matcher.compute_ransac = MethodType(_all_structures if all_structures else _one_homography, matcher)
    return matcher


def _one_homography(matcher: Any, points1: Array, points2: Array) -> tuple[Array | None, Array, Array]:
    """Return H and the inliers of both images, (k, 2) each."""
    if matcher.skip_ransac:
        return None, np.empty((0, 2)), np.empty((0, 2))
    model, mask = find_homography(points1, points2, threshold=matcher.ransac_reproj_thresh)
    kept = mask[:, 0] > 0
    return model, points1[kept], points2[kept]


def _all_structures(matcher: Any, points1: Array, points2: Array) -> tuple[Array | None, Array, Array]:
    """Return the strongest H and the inliers of both images, (k, 2) each."""
    if matcher.skip_ransac:
        return None, np.empty((0, 2)), np.empty((0, 2))
    result = filter_points(points1, points2)
    planes = [scaled(model.matrix) for model in result.models if model.kind == "homography"]
    return planes[0] if planes else None, points1[result.inlier_mask], points2[result.inlier_mask]
