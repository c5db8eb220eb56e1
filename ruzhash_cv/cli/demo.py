"""``ruzhash-cv demo``: this package beside OpenCV's RANSAC and MAGSAC on the bundled image pairs."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv._arrays import Mask
from ruzhash_cv.cli.common import RATIO, Commands, InputError, file, say, write_picture
from ruzhash_cv.cli.filter import match_images
from ruzhash_cv.drawing import draw_matches, draw_scores, draw_structures
from ruzhash_cv.drawing.canvas import titled
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.pipelines.files import as_unusable

if TYPE_CHECKING:
    from ruzhash_cv.datasets import ImagePair

#: RANSAC's threshold and the tolerance of the truth.
PIXELS = 3.0
OPENCV = {"cv2.RANSAC": cv2.RANSAC, "cv2.USAC_MAGSAC": cv2.USAC_MAGSAC}


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    words = "compare with OpenCV's RANSAC and MAGSAC on the bundled image pairs"
    description = f"{words[0].upper()}{words[1:]}; draw what each makes of them."
    parser = commands.add_parser("demo", help=words, description=description)
    folder = Path("ruzhash_cv_demo")
    words = f"where pictures go, default {folder}"
    parser.add_argument("-o", "--output", type=file, default=folder, metavar="DIR", help=words)
    parser.add_argument("--pair", action="append", metavar="NAME", help="only this pair, e.g. desk; may be repeated")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Compare with OpenCV on the bundled pairs."""
    from ruzhash_cv.datasets import PAIR_NAMES, load_pair

    names = options.pair or PAIR_NAMES
    if unknown := [name for name in names if name not in PAIR_NAMES]:
        raise InputError(f"there is no pair {unknown[0]!r}; the bundled ones are {', '.join(PAIR_NAMES)}")
    with as_unusable(f"cannot make the directory {options.output}"):
        options.output.mkdir(parents=True, exist_ok=True)
    pixels = f"{PIXELS:g} px"
    say(f"SIFT, ratio test {RATIO}; OpenCV's threshold {pixels}; a match is true within {pixels} of the truth")
    print(f"{'pair':8} {'method':28} matches  kept flagged precision recall    F1      ms")
    for name in names:
        _compare(load_pair(name), options.output)
    say(f"pictures are in {options.output}")


def _compare(pair: ImagePair, folder: Path) -> None:
    """Print a row for every method, and draw what this package and the better MAGSAC made of the pair."""
    first, second, matches = match_images((pair.img1, pair.img2), ("1", "2"))
    points = first.points[matches[:, 0]], second.points[matches[:, 1]]
    truth = pair.labels(*points, tolerance=PIXELS) >= 0
    filter_points(*points)  # a process's first call is slower
    since = time.perf_counter()
    result = filter_points(*points)
    own = _print_row(pair.name, "ruzhash_cv", result.inlier_mask, truth, time.perf_counter() - since)
    magsac, best, asked = np.zeros(len(truth), bool), -1.0, ""
    for method, flag in OPENCV.items():
        for family in ("homography", "fundamental"):
            since = time.perf_counter()
            mask = _opencv_mask(family, flag, *points)
            f1 = _print_row(pair.name, f"{method} {family}", mask, truth, time.perf_counter() - since)
            if flag == cv2.USAC_MAGSAC and f1 > best:
                magsac, best, asked = mask, f1, family
    drawn = pair.img1, points[0], pair.img2, points[1], None
    model = "fundamental matrix" if asked == "fundamental" else asked
    pictures = {
        "": (draw_matches(*drawn, result), f"ruzhash_cv, F1 {own:.3f}: kept and flagged matches"),
        "_structures": (draw_structures(*drawn, result), "ruzhash_cv: kept matches by what moved as one"),
        "_scores": (draw_scores(*drawn, result), "ruzhash_cv: anomaly scores"),
        "_magsac": (draw_matches(*drawn, magsac), f"cv2.USAC_MAGSAC, one {model}, {PIXELS:g} px, F1 {best:.3f}"),
    }
    for suffix, (picture, title) in pictures.items():
        write_picture(folder / f"{pair.name}{suffix}.jpg", titled(picture, title))


def _opencv_mask(family: str, method: int, points1: NDArray[Any], points2: NDArray[Any]) -> Mask:
    """Return OpenCV's inlier mask; empty on failure, where OpenCV leaves it uninitialised."""
    cv2.setRNGSeed(0)
    estimate: Any = cv2.findHomography if family == "homography" else cv2.findFundamentalMat
    matrix, mask = estimate(points1, points2, method, PIXELS)
    return np.zeros(len(points1), bool) if matrix is None or mask is None else np.asarray(mask.reshape(-1) > 0)


def _print_row(pair: str, method: str, mask: Mask, truth: Mask, seconds: float) -> float:
    """Print one row of the demo's table and return its F1."""
    both, kept, true = int((mask & truth).sum()), int(mask.sum()), int(truth.sum())
    f1 = 2 * both / max(kept + true, 1)
    print(
        f"{pair:8} {method:28} {len(mask):7} {kept:5} {len(mask) - kept:7} {both / max(kept, 1):9.3f}"
        f" {both / max(true, 1):6.3f} {f1:5.3f} {1000 * seconds:7.1f}",
        flush=True,
    )
    return f1
