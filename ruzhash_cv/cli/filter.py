"""``ruzhash-cv filter``: two images matched, and their mismatches flagged."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from ruzhash_cv.cli.common import RATIO, Commands, InputError, number, read_picture, say, told, write_picture
from ruzhash_cv.cli.features import match_images
from ruzhash_cv.correspondences import Correspondences, as_correspondences
from ruzhash_cv.drawing import draw_matches
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.pipelines.features import MOST_KEYPOINTS
from ruzhash_cv.result import FilterResult

MODELS = ("auto", "homography", "fundamental")


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("filter", help="match two images and flag the mismatches")
    parser.add_argument("images", type=Path, nargs=2, metavar="IMG")
    limits = ", ".join(f"{name.upper()}: {most}" for name, most in MOST_KEYPOINTS.items())
    parser.add_argument("--features", choices=tuple(MOST_KEYPOINTS), default="sift", help=f"at most, {limits}")
    ratio = number("a number above 0 and at most 1", most=1)
    parser.add_argument("--ratio", type=ratio, default=RATIO, help="of the ratio test, default 0.8; 1 = nearly all")
    parser.add_argument("--model", choices=MODELS, default="auto")
    threshold = number("a number above 0")
    parser.add_argument("--threshold", type=threshold, metavar="PIXELS", help="default: as the matches ask for")
    parser.add_argument("-o", "--output", type=Path, metavar="PICTURE", help="draw the matches, e.g. out.png")
    parser.add_argument("--save", type=Path, metavar="FILE.npz", help="save points, mask, scores and models")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    if options.output is not None and not (options.output.suffix and cv2.haveImageWriter(options.output.name)):
        raise InputError(f"cannot tell the kind of picture from {options.output.name!r}: end it in .png or .jpg")
    img1, img2 = (read_picture(path) for path in options.images)
    kp1, kp2, matches = match_images((img1, img2), options.images, options.features, options.ratio)
    say(f"{len(matches)} matches pass the ratio test at {options.ratio:g}")
    pairs = as_correspondences(kp1, kp2, matches)
    result = filter_points(pairs.points1, pairs.points2, model=options.model, threshold=options.threshold)
    print(result)
    print(f"seconds {sum(result.seconds.values()):.3f}")
    if options.output is not None:
        write_picture(options.output, draw_matches(img1, kp1, img2, kp2, matches, result))
    if options.save is not None:
        _save(options.save, pairs, matches, result)


def _save(path: Path, pairs: Correspondences, matches: Sequence[cv2.DMatch], result: FilterResult) -> None:
    verdict = {name: getattr(result, name) for name in ("inlier_mask", "anomaly_scores", "p_values", "labels")}
    with told(f"cannot write {path}"), path.open("wb") as file:  # a file, because a name would get a second suffix
        np.savez_compressed(
            file,
            points1=pairs.points1,
            points2=pairs.points2,
            keypoint_indices=np.array([(m.queryIdx, m.trainIdx) for m in matches], np.int64).reshape(-1, 2),
            models=np.array([model.matrix for model in result.models]).reshape(-1, 3, 3),
            model_kinds=np.array([model.kind for model in result.models], dtype="U11"),
            **verdict,
        )
