"""Keypoints and matches of two pictures, by OpenCV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.cli.common import RATIO, InputError
from ruzhash_cv.correspondences import as_correspondences, select_matches

#: The strongest keypoints of an image, by kind of feature; brute-force matching of more takes minutes.
MOST_KEYPOINTS = {"sift": 10_000, "orb": 5_000}


def match_images(
    images: Sequence[NDArray[Any]], names: Sequence[object], features: str = "sift", ratio: float = RATIO
) -> tuple[Any, Any, list[cv2.DMatch]]:
    """Return the keypoints of both images and the matches that pass the ratio test."""
    most = MOST_KEYPOINTS[features]
    detector: Any = cv2.SIFT.create(most) if features == "sift" else cv2.ORB.create(most)
    (kp1, des1), (kp2, des2) = (detector.detectAndCompute(image, None) for image in images)
    for keypoints, name in zip((kp1, kp2), names, strict=True):
        if len(keypoints) == 0:
            raise InputError(f"no {features.upper()} keypoints in image {name}: is it blank?")
    rows = cv2.BFMatcher(cv2.NORM_L2 if features == "sift" else cv2.NORM_HAMMING).knnMatch(des1, des2, k=2)
    passed = np.isfinite(as_correspondences(kp1, kp2, rows, ratio=ratio).points1[:, 0])
    return kp1, kp2, select_matches(rows, passed)
