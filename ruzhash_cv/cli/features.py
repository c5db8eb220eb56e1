"""Keypoints and matches of two pictures, by OpenCV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.cli.common import RATIO, InputError
from ruzhash_cv.correspondences import as_correspondences, select_matches
from ruzhash_cv.pipelines.features import detector, matcher


def match_images(
    images: Sequence[NDArray[Any]], names: Sequence[object], features: str = "sift", ratio: float = RATIO
) -> tuple[Any, Any, list[cv2.DMatch]]:
    """Return the keypoints of both images and the matches that pass the ratio test."""
    found = detector(features)
    (kp1, des1), (kp2, des2) = (found.detectAndCompute(image, None) for image in images)
    for keypoints, name in zip((kp1, kp2), names, strict=True):
        if len(keypoints) == 0:
            raise InputError(f"no {features.upper()} keypoints in image {name}: is it blank?")
    rows = matcher(features).knnMatch(des1, des2, k=2)
    passed = np.isfinite(as_correspondences(kp1, kp2, rows, ratio=ratio).points1[:, 0])
    return kp1, kp2, select_matches(rows, passed)
