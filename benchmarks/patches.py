"""What pictures say of matches off the labelled planes: whether they lie off them, or on them, a whole period of a pattern away.

A patch of the first picture is warped by a plane and compared with the second picture at two places: where the match goes, and where
the plane puts its first point. Off the plane it agrees better where the match goes. On the plane it agrees better where the plane puts
it: then the match is a mismatch. One fundamental matrix may hold it all the same, for shifts along one direction look like parallax.
"""

import cv2
import numpy as np
from geometry import Matrix, Points, apply_homography
from numpy.typing import NDArray

Image = NDArray[np.uint8]
RADIUS, SEARCH = 30, 4  # pixels: of a patch, and of the offsets tried
FLAT = 4.0
"""Grey values; a patch of smaller standard deviation says nothing."""
HIDDEN = 0.3
"""Nor does a patch of which a larger share lies beyond the picture."""
CLEAR = 0.1
"""Difference of two correlations from which one place is better than the other."""


def agreement(images: tuple[Image, Image], H: Matrix, point1: Points, point2: Points) -> float:
    """The best normalised correlation near `point2` of the patch around `point1` warped by H; NaN if it is flat or hidden."""
    size, place = 2 * RADIUS + 1, apply_homography(H, point1[None])[0]
    if not (np.isfinite(place).all() and np.abs(place).max() < 1e5):
        return float("nan")
    warp = np.array([[1, 0, RADIUS - place[0]], [0, 1, RADIUS - place[1]], [0, 0, 1.0]]) @ H
    patch = cv2.warpPerspective(images[0], warp, (size, size))
    seen = cv2.warpPerspective(np.full_like(images[0], 255), warp, (size, size), flags=cv2.INTER_NEAREST)
    if (seen == 0).mean() > HIDDEN or patch.std() < FLAT:
        return float("nan")
    around = cv2.getRectSubPix(images[1], (size + 2 * SEARCH,) * 2, (float(point2[0]), float(point2[1])))
    return float(cv2.matchTemplate(around, patch, cv2.TM_CCOEFF_NORMED).max())


def agreements(images: tuple[Image, Image], planes: tuple[Matrix, ...], points1: Points, points2: Points) -> Points:
    """Shape (n, 2): agreement where a match goes, and where a plane puts its first point; the best over planes of each."""
    found = np.full((len(points1), 2), -np.inf)
    for row, (one, two) in enumerate(zip(points1, points2, strict=True)):
        for H in planes:
            pair = agreement(images, H, one, two), agreement(images, H, one, apply_homography(H, one[None])[0])
            found[row] = np.fmax(found[row], pair) if np.isfinite(pair).all() else found[row]
    return np.where(np.isfinite(found), found, np.nan)


def is_shifted(found: Points) -> NDArray[np.bool_]:
    """Matches whose pictures agree clearly better on a plane; False if nothing is known."""
    return found[:, 1] > found[:, 0] + CLEAR
