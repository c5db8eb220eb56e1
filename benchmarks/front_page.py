"""The picture of the front page: matches that OpenCV's MAGSAC, homographies in turn, and this package keep on the bundled desk.

python benchmarks/front_page.py    # prints the counts and writes docs/images/front.jpg
"""

from __future__ import annotations

from pathlib import Path

import cv2
import matplotlib
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import as_correspondences, filter_points
from ruzhash_cv.datasets import ImagePair, load_pair

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "front.jpg"
TRUE, FALSE = "#00a651", "#ff2d95"
PIXELS = 3.0  # MAGSAC's threshold, and the tolerance of the truth
FEWEST = 15  # inliers of a homography; fewer keep more of both kinds


def magsac_in_turn(
    points1: NDArray[np.float64], points2: NDArray[np.float64], fewest: int = FEWEST
) -> NDArray[np.bool_]:
    """Return the mask of homographies by MAGSAC: the best one, the best one without its inliers, and so on."""
    mask, left = np.zeros(len(points1), bool), np.arange(len(points1))
    while len(left) >= fewest:
        options = {"maxIters": 100_000, "confidence": 0.9999}
        inliers = cv2.findHomography(points1[left], points2[left], cv2.USAC_MAGSAC, PIXELS, **options)[1]
        if inliers is None or np.sum(inliers) < fewest:
            break
        mask[left[inliers.ravel() > 0]] = True
        left = left[inliers.ravel() == 0]
    return mask


def measure() -> tuple[ImagePair, NDArray[np.float64], NDArray[np.bool_], dict[str, NDArray[np.bool_]]]:
    """Return the pair, the first points of its matches, which matches are true, and the mask of each method."""
    pair = load_pair("desk")
    sift = cv2.SIFT_create()
    (kp1, des1), (kp2, des2) = (sift.detectAndCompute(image, None) for image in (pair.img1, pair.img2))
    found = as_correspondences(kp1, kp2, cv2.BFMatcher().knnMatch(des1, des2, k=2), ratio=0.8)
    rows = np.isfinite(found.points1).all(axis=1)
    points1, points2 = found.points1[rows], found.points2[rows]
    masks = {
        "OpenCV MAGSAC in turn": magsac_in_turn(points1, points2),
        "ruzhash_cv": filter_points(points1, points2).inlier_mask,
        "OpenCV MAGSAC in turn, 12 inliers": magsac_in_turn(points1, points2, 12),
    }
    return pair, points1, pair.labels(points1, points2, tolerance=PIXELS) >= 0, masks


def main() -> None:
    """Print the counts and draw them."""
    pair, points, true, masks = measure()
    image = cv2.convertScaleAbs(pair.img1, alpha=1.15, beta=25)[:, :, ::-1]
    figure, axes = plt.subplots(1, 2, figsize=(16, 6.6), dpi=100, layout="constrained")
    for name, mask in masks.items():
        kept, wrong = (mask & true).sum(), (mask & ~true).sum()
        print(f"{name:33} keeps {kept} of {true.sum()} true matches, and {wrong} of {(~true).sum()} mismatches")
    # The last mask is printed only.
    for axis, (name, mask) in zip(axes, masks.items(), strict=False):
        kept, wrong = points[mask & true], points[mask & ~true]
        axis.imshow(image, interpolation="lanczos")
        for dots, colour in ((kept, TRUE), (wrong, FALSE)):
            axis.scatter(*dots.T, s=42, color=colour, edgecolors="white", linewidths=0.8)
        axis.set_title(f"{name}: {len(kept)} true, {len(wrong)} wrong", fontsize=24, fontweight="bold", pad=14)
        axis.set(xticks=[], yticks=[], xlim=(0, 800), ylim=(560, 100))
    marks = [plt.Line2D([], [], ls="", marker="o", ms=14, color=colour) for colour in (TRUE, FALSE)]
    titles = ["true match, kept", "mismatch, kept"]
    figure.legend(marks, titles, loc="outside lower center", ncols=2, fontsize=26, frameon=False)
    figure.savefig(PICTURE, bbox_inches="tight", pad_inches=0.05, pil_kwargs={"quality": 82})


if __name__ == "__main__":
    main()
