"""SIFT and ORB keypoints of pictures, their nearest neighbours, Lowe's ratio, and which choose each other."""

from __future__ import annotations

from typing import NamedTuple

import cv2
import numpy as np
from cache import Arrays
from geometry import Points
from numpy.typing import NDArray

RATIO = 0.8
N_ORB = 2000
WIDTHS = {"sift": 128, "orb": 32}  # bytes of a descriptor
Image = NDArray[np.uint8]


class Neighbours(NamedTuple):
    """Rows (n, 2) of the first picture's keypoints and of their nearest ones, Lowe's ratio, and whether they choose each other."""

    pairs: NDArray[np.intp]
    ratio: NDArray[np.float64]
    mutual: NDArray[np.bool_]


def detect(image: Image, features: str, n_features: int = 0) -> Arrays:
    """Places, sizes and descriptors of keypoints, one row each; `n_features` 0: all of SIFT, 2,000 of ORB."""
    detector = cv2.SIFT_create(n_features) if features == "sift" else cv2.ORB_create(nfeatures=n_features or N_ORB)
    keypoints, descriptors = detector.detectAndCompute(image, None)
    rows = np.reshape([] if descriptors is None else descriptors, (-1, WIDTHS[features])).astype(np.uint8)
    places = np.array([point.pt for point in keypoints], np.float64).reshape(-1, 2)
    return {"keypoints": places, "sizes": np.array([point.size for point in keypoints]), "descriptors": rows}


def nearest(first: Arrays, second: Arrays, features: str) -> Neighbours:
    """The nearest neighbour of each keypoint of the first picture."""
    norm, kind = (cv2.NORM_L2, np.float32) if features == "sift" else (cv2.NORM_HAMMING, np.uint8)
    one, two = (side["descriptors"].astype(kind) for side in (first, second))
    if min(len(one), len(two)) < 2:
        return Neighbours(np.zeros((0, 2), np.intp), np.zeros(0), np.zeros(0, bool))
    there, back = cv2.BFMatcher(norm).knnMatch(one, two, k=2), cv2.BFMatcher(norm).match(two, one)
    pairs = np.array([(a.queryIdx, a.trainIdx) for a, _ in there], np.intp)
    distances = np.array([(a.distance, b.distance) for a, b in there])
    # Of two that are the same none is better.
    ratio = np.divide(*distances.T, out=np.ones(len(distances)), where=distances[:, 1] > 0)
    best = np.array([match.trainIdx for match in back])
    return Neighbours(pairs, ratio, best[pairs[:, 1]] == pairs[:, 0])


def matches_of(img1: Image, img2: Image, features: str, n_features: int = 0) -> tuple[Points, Points]:
    """Points and sizes (n, 6), x1 y1 x2 y2 size1 size2, of what passes the ratio test, and of what chooses each other."""
    sides = [detect(image, features, n_features) for image in (img1, img2)]
    found = nearest(*sides, features)
    columns = [side[name][found.pairs[:, image]] for name in ("keypoints", "sizes") for image, side in enumerate(sides)]
    rows = np.column_stack(columns)
    return rows[found.ratio < RATIO], rows[found.mutual]
