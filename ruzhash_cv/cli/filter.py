"""``ruzhash-cv filter``: two images matched, and their mismatches flagged."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ruzhash_cv.cli.common import (
    FILTERING,
    RATIO,
    Commands,
    InputError,
    Options,
    add_options,
    check_picture_name,
    file,
    number,
    say,
    write_picture,
)
from ruzhash_cv.drawing import draw_matches, draw_scores, draw_structures
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.foundation.arrays import Array, Rows
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.pipelines.features import MAX_SIZE, MOST_KEYPOINTS, Features, Image, detect, match, read_image
from ruzhash_cv.pipelines.files import as_unusable, check_writable, write_arrays, written_beside
from ruzhash_cv.report import write_html
from ruzhash_cv.results import printing
from ruzhash_cv.results.result import NOTHING_SHARED, FilterResult, Motion, Plane

LIMITS = ", ".join(f"{most} of {name.upper()}" for name, most in MOST_KEYPOINTS.items())

# fmt: off
MATCHING: Options = (
    ("--features", f"kind of feature, default sift; at most {LIMITS}",
     {"choices": tuple(MOST_KEYPOINTS), "default": "sift"}),
    ("--ratio", f"keep a match whose descriptor distance is below R times the second best one's, default {RATIO}; 1: nearly all",
     {"type": number("a number above 0 and at most 1", most=1), "default": RATIO, "metavar": "R"}),
    ("--max-size", f"detect features in images shrunk to this longer side, default {MAX_SIZE}; SIFT takes about 0.2 GB a megapixel",
     {"type": number("a whole number of at least 32", convert=int, least=32), "default": MAX_SIZE, "metavar": "PIXELS"}),
    ("--mask1", "a picture as large as the first image, black where it is to be ignored", {"type": file, "metavar": "PICTURE"}),
    ("--mask2", "a picture as large as the second image, black where it is to be ignored", {"type": file, "metavar": "PICTURE"}),
)
HARDER: Options = (
    ("--confidence", "search on until the smallest structure was sampled with this confidence, such as .99, where nothing is found",
     {"type": number("a number above 0 and below 1", most=1.0 - 1e-9), "metavar": "C"}),
)
OUTPUTS: Options = (
    ("-o --output", "draw kept and flagged matches, e.g. matches.png", {"type": file, "metavar": "PICTURE"}),
    ("--structures", "draw each motion and each plane in a separate colour", {"type": file, "metavar": "PICTURE"}),
    ("--scores", "draw matches in the colours of their anomaly scores", {"type": file, "metavar": "PICTURE"}),
    ("--html", "write a page on which every match can be looked at; needs the extra html", {"type": file, "metavar": "FILE.html"}),
    ("--save", "save points, mask, scores, motions and planes for numpy.load", {"type": file, "metavar": "FILE.npz"}),
    ("--json", "print one JSON object in place of the table", {"action": "store_true"}),
)
# fmt: on


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "filter",
        help="match two images and flag the mismatches",
        description="Match two images, flag the mismatches, and print the motions of the kept matches and their planes. "
        "All pixels are those of the images as a viewer shows them, turned by their EXIF data.",
        epilog="Exit status: 0; 2 if the input cannot be used.",
    )
    parser.add_argument("images", type=file, nargs=2, metavar="IMG", help="the two images, of any sizes")
    groups = {"matching": MATCHING, "filtering": FILTERING + HARDER, "output": OUTPUTS}
    for title, options in groups.items():
        add_options(parser.add_argument_group(title), options)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run the command."""
    _check(options)
    images = [read_image(path) for path in options.images]
    paths = options.mask1, options.mask2
    masks = [_read_mask(path, image, name) for path, image, name in zip(paths, images, options.images, strict=True)]
    if max(max(image.shape) for image in images) > options.max_size:
        say(f"features are detected in images shrunk to {options.max_size} pixels; --max-size changes it")
    kind, ratio = options.features, options.ratio
    first, second, matches = match_images(images, options.images, kind, ratio, options.max_size, masks)
    n_keypoints = f"{len(first)} and {len(second)} {kind.upper()} keypoints"
    say(f"{n_keypoints}, {len(matches)} matches pass the ratio test at {ratio:g}")
    points = first.points[matches[:, 0]], second.points[matches[:, 1]]
    result = filter_points(
        *points, model=options.model, threshold=options.threshold, pixel=max(first.pixel, second.pixel),
        keep_stationary=options.keep_stationary, confidence=options.confidence, rng=options.rng,
    )  # fmt: skip
    _print(result, images, options)
    if result.motions and result.evidence < NOTHING_SHARED:
        say(f"evidence below {NOTHING_SHARED:g}: the images may share nothing")
    _write(images, points, matches, result, options)


def _check(options: argparse.Namespace) -> None:
    """Raise, before any work, if an output could not be written in the end."""
    pictures = [path for path in (options.output, options.structures, options.scores) if path is not None]
    for path in pictures:
        check_picture_name(path)
    if options.html is not None:
        host("bokeh", "html")
    taken = [*options.images, *filter(None, (options.mask1, options.mask2))]
    for path in [*pictures, *filter(None, (options.html, options.save))]:
        check_writable(path, *taken)
        taken.append(path)


def _read_mask(path: Path | None, image: Image, name: Path) -> Image | None:
    if path is None:
        return None
    mask = cv2.cvtColor(read_image(path), cv2.COLOR_BGR2GRAY)
    if mask.shape != image.shape[:2]:
        sizes = [f"{shape[1]} x {shape[0]}" for shape in (mask.shape, image.shape)]
        raise InputError(f"mask {path} has {sizes[0]} pixels, but its image {name} has {sizes[1]}")
    # A mask that was saved as JPEG is only nearly black.
    return np.where(mask < 128, 0, 255).astype(np.uint8)


def _print(result: FilterResult, images: Sequence[Image], options: argparse.Namespace) -> None:
    if options.json:
        sizes = [image.shape[1::-1] for image in images]
        held = {"images": [str(path) for path in options.images], "sizes": sizes, **printing.as_dict(result)}
        print(json.dumps(held, indent=2))
        return
    print(result)
    print(f"seconds {sum(result.seconds.values()):.3f}")


def _write(
    images: Sequence[Image], points: tuple[Array, Array], matches: Rows, result: FilterResult,
    options: argparse.Namespace,
) -> None:  # fmt: skip
    """Write the outputs that are asked for, and say so."""
    drawn = images[0], points[0], images[1], points[1], None, result
    pictures = (options.output, draw_matches), (options.structures, draw_structures), (options.scores, draw_scores)
    for path, draw in pictures:
        if path is not None:
            write_picture(path, draw(*drawn))
    if options.html is not None:
        with as_unusable(f"cannot write {options.html}"), written_beside(options.html) as part:
            write_html(part, *drawn, names=(str(options.images[0]), str(options.images[1])))
    if options.save is not None:
        with as_unusable(f"cannot write {options.save}"):
            write_arrays(options.save, _arrays(points, matches, result))
    outputs = options.output, options.structures, options.scores, options.html, options.save
    if written := [str(path) for path in outputs if path is not None]:
        say(f"wrote {', '.join(written)}")


def _arrays(points: tuple[Array, Array], matches: Rows, result: FilterResult) -> dict[str, Any]:
    """Return the arrays that --save writes."""
    names = "inlier_mask", "anomaly_scores", "inlier_probabilities", "motion_labels", "evidence"
    planes = [(number, plane) for number, motion in enumerate(result.motions) for plane in motion.planes]
    plane_labels = np.full(len(result.inlier_mask), -1)
    for item, (_, plane) in enumerate(planes):
        plane_labels[plane.mask] = item
    return {
        **{"points1": points[0], "points2": points[1], "keypoint_indices": matches, "reason": result.reason or ""},
        **{name: getattr(result, name) for name in names},
        **_arrays_of("motion", result.motions),
        "motion_kinds": np.array([motion.kind for motion in result.motions], "U11"),
        "motion_stationary": np.array([motion.stationary for motion in result.motions], bool),
        "motion_evidences": np.array([motion.evidence for motion in result.motions], float),
        **_arrays_of("plane", [plane for _, plane in planes]),
        "plane_motions": np.array([number for number, _ in planes], int),
        "plane_labels": plane_labels,
    }


def _arrays_of(name: str, structures: Sequence[Motion | Plane]) -> dict[str, Any]:
    """Return the matrices (n, 3, 3), tolerances (n,) and noise scales (n,) of motions or of planes."""
    return {
        f"{name}s": np.array([of.matrix for of in structures]).reshape(-1, 3, 3),
        f"{name}_tolerances": np.array([of.tolerance for of in structures], float),
        f"{name}_noise_scales": np.array([of.noise_scale for of in structures], float),
    }


def match_images(
    images: Sequence[Image], names: Sequence[object], kind: str = "sift", ratio: float = RATIO,
    max_size: int = MAX_SIZE, masks: Sequence[Image | None] = (None, None),
) -> tuple[Features, Features, Rows]:  # fmt: skip
    """Return the features of both images and the index pairs (n, 2) of the matches that pass the ratio test."""
    features = []
    for image, name, mask in zip(images, names, masks, strict=True):
        features.append(detect(image, kind, max_size, mask))
        if len(features[-1]) == 0:
            raise InputError(f"no {kind.upper()} keypoints in image {name}: {_reason(image, mask)}")
    return features[0], features[1], match(features[0], features[1], kind, ratio)


def _reason(image: Image, mask: Image | None) -> str:
    """Return a likely reason why an image has no keypoints."""
    if mask is not None and not mask.any():
        return "its mask is black all over"
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    low, high = np.percentile(grey if mask is None else grey[mask > 0], [1, 99])
    return f"most of its {image.shape[1]} x {image.shape[0]} pixels are between {low:.0f} and {high:.0f} of 255 grey levels"
