"""The picture of the front page: matches that OpenCV's MAGSAC, homographies in turn, and this package keep on the bundled desk.

python benchmarks/front_page.py    # prints the counts and writes docs/images/front.jpg
"""

from functools import partial
from pathlib import Path

import cv2
import matplotlib
import numpy as np
from matching import matches_of
from methods import ITERATIONS_IN_TURN, MANY, in_turn, of_poselib, opencv
from numpy.typing import NDArray
from problems import Problem

from ruzhash_cv import filter_points
from ruzhash_cv.datasets import ImagePair, load_pair

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "front.jpg"
TRUE, FALSE = "#00a651", "#ff2d95"
#: Tolerance of the truth. For both peers, of 1, 2, 3, 5 and 12 px and of 12, 15 and 20 inliers in turn what has the highest F1 here.
PIXELS, THRESHOLD, FEWEST = 3.0, 5.0, 15


def measure() -> tuple[ImagePair, NDArray[np.float64], NDArray[np.bool_], dict[str, NDArray[np.bool_]]]:
    """Return the pair, the first points of its matches, which matches are true, and the mask of each method."""
    pair = load_pair("desk")
    points1, points2 = np.hsplit(matches_of(pair.img1, pair.img2, "sift")[0][:, :4], 2)
    true = pair.labels(points1, points2, tolerance=PIXELS) >= 0
    problem = Problem("desk", "bundled", "homography", points1, points2, true.astype(np.intp), np.ones(len(true), bool))
    magsac = partial(opencv, "homography", "USAC_MAGSAC", THRESHOLD, **MANY)
    poselib = partial(of_poselib, "homography", threshold=THRESHOLD, max_iterations=ITERATIONS_IN_TURN)
    masks = {
        "OpenCV MAGSAC in turn": in_turn("homography", magsac, FEWEST, problem, 0).mask,
        "ruzhash_cv": filter_points(points1, points2).inlier_mask,
        "PoseLib in turn": in_turn("homography", poselib, FEWEST, problem, 0).mask,
    }
    return pair, points1, true, masks


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
