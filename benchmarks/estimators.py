"""Estimators of one homography or one fundamental matrix behind one call; what is missing here is named, with the reason."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TypeAlias

import cv2
import numpy as np
from geometry import Matrix, Points
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Found: TypeAlias = tuple[Matrix | None, Mask]
"""A model, None where there is none, and its inliers."""
Estimator = Callable[[Points, Points, int], Found]
"""Points of both images and a seed."""
FEWEST = {"homography": 4, "fundamental": 8}

ABSENT: dict[str, str] = {}
"""Method -> why it did not run."""


def optional(name: str, method: str) -> ModuleType | None:
    """A module, None where it cannot be imported."""
    try:
        return importlib.import_module(name)
    except Exception as error:  # a wheel built for another numpy fails with more than ImportError
        ABSENT[method] = f"{type(error).__name__}: {error}".splitlines()[0]
        return None


poselib = optional("poselib", "PoseLib")
pydegensac = optional("pydegensac", "pydegensac")
pysuperansac = optional("pysuperansac", "SupeRANSAC")


def opencv(
    kind: str, flag: str, threshold: float, points1: Points, points2: Points, seed: int, **options: float
) -> Found:
    """`cv2.findHomography` or `cv2.findFundamentalMat`. USAC's flags take no seed."""
    nothing = None, np.zeros(len(points1), bool)
    if len(points1) < FEWEST[kind]:
        return nothing
    cv2.setRNGSeed(seed)
    find = cv2.findHomography if kind == "homography" else cv2.findFundamentalMat
    try:
        model, mask = find(points1, points2, getattr(cv2, flag), threshold, **options)
    except cv2.error:
        return nothing
    if model is None or model.shape != (3, 3) or mask is None:
        return nothing  # the mask is uninitialised then
    return model, mask.ravel() > 0


def of_poselib(kind: str, points1: Points, points2: Points, seed: int, **options: float) -> Found:
    """PoseLib's `estimate_homography` or `estimate_fundamental`, its own settings unless told."""
    if len(points1) < FEWEST[kind]:
        return None, np.zeros(len(points1), bool)
    estimate = poselib.estimate_homography if kind == "homography" else poselib.estimate_fundamental
    model, info = estimate(points1, points2, {"seed": seed, **options})
    mask = np.asarray(info["inliers"], bool)
    return (model if mask.any() else None), mask


def of_pydegensac(kind: str, threshold: float, points1: Points, points2: Points, seed: int) -> Found:
    """`pydegensac.findHomography` or `findFundamentalMatrix`."""
    if len(points1) < 8:
        return None, np.zeros(len(points1), bool)
    find = pydegensac.findHomography if kind == "homography" else pydegensac.findFundamentalMatrix
    model, mask = find(points1, points2, threshold, seed=seed)
    mask = np.asarray(mask, bool).ravel()
    return (np.asarray(model), mask) if mask.any() and np.isfinite(model).all() else (None, np.zeros(len(mask), bool))


def of_superansac(kind: str, threshold: float, points1: Points, points2: Points, seed: int) -> Found:
    """SupeRANSAC with its own settings, but for the threshold and for even samples: the matches are in no order. It takes no seed."""
    mask = np.zeros(len(points1), bool)
    if len(points1) < FEWEST[kind]:
        return None, mask
    settings = pysuperansac.RANSACSettings()
    settings.inlier_threshold, settings.sampler = threshold, pysuperansac.SamplerType.Uniform
    find = pysuperansac.estimateHomography if kind == "homography" else pysuperansac.estimateFundamentalMatrix
    sizes = [float(side) + 1 for points in (points1, points2) for side in points.max(axis=0)]
    model, inliers, _, _ = find(np.column_stack([points1, points2]), sizes, config=settings)
    mask[np.asarray(inliers, int)] = True
    return (model, mask) if mask.any() and np.isfinite(model).all() else (None, np.zeros(len(mask), bool))


def estimators(kind: str, flags: tuple[str, ...] = ("USAC_MAGSAC",), threshold: float = 1.0) -> dict[str, Estimator]:
    """Estimators of one kind of model by name, all at one threshold but PoseLib, which has its own."""
    found: dict[str, Estimator] = {}
    if poselib is not None:
        found["PoseLib"] = partial(of_poselib, kind)
    found |= {f"{flag} {threshold:g} px": partial(opencv, kind, flag, threshold) for flag in flags}
    if pydegensac is not None:
        found[f"pydegensac {threshold:g} px"] = partial(of_pydegensac, kind, threshold)
    if pysuperansac is not None:
        found[f"SupeRANSAC {threshold:g} px"] = partial(of_superansac, kind, threshold)
    return found
