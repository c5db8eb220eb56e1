"""``ruzhash-cv filter``: two images matched, and their mismatches flagged."""

from __future__ import annotations

import argparse
import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import printing
from ruzhash_cv._arrays import Array, Rows
from ruzhash_cv._extras import host
from ruzhash_cv.cli.common import (
    RATIO,
    Commands,
    InputError,
    add_filtering_options,
    add_matching_options,
    check_outputs,
    check_picture_name,
    count,
    file,
    say,
    write_picture,
)
from ruzhash_cv.drawing import draw_matches, draw_scores, draw_structures
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.pipelines.features import MAX_SIZE, Features, detect, match, read_image
from ruzhash_cv.pipelines.files import as_unusable, write_arrays, written_beside
from ruzhash_cv.pipelines.selection import LEAST_EVIDENCE
from ruzhash_cv.report import write_html
from ruzhash_cv.result import FilterResult, Structure

Image: TypeAlias = NDArray[np.uint8]

#: Grey levels between an image's darkest and its brightest hundredth. SIFT's own threshold on the contrast of a keypoint is about 3.
LOW_CONTRAST = 30
#: Exit status where fewer matches are kept than asked for.
FEW_KEPT = 1


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "filter",
        help="match two images and flag the mismatches",
        description="Match two images, flag the mismatches, and print the structures of the kept matches: planes and rigid motions. "
        "All pixels are those of the images as given, also where features are looked for in smaller ones.",
        epilog="Exit status: 0; 1 where --fail-below asks for it; 2 where the input cannot be used.",
    )
    parser.add_argument("images", type=file, nargs=2, metavar="IMG", help="the two images, of any sizes")
    _add_matching(parser)
    _add_filtering(parser)
    _add_outputs(parser)
    parser.set_defaults(run=run)


def _add_matching(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("matching")
    add_matching_options(group)
    for image, name in (("1", "first"), ("2", "second")):
        group.add_argument(
            f"--mask{image}", type=file, metavar="PICTURE",
            help=f"a picture as large as the {name} image, black where it is to be ignored",
        )  # fmt: skip


def _add_filtering(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("filtering")
    add_filtering_options(group)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument(
        "-o", "--output", type=file, metavar="PICTURE", help="draw kept and flagged matches, e.g. matches.png"
    )
    group.add_argument("--show", choices=("both", "kept", "flagged"), help="which matches --output draws, default both")
    group.add_argument("--structures", type=file, metavar="PICTURE", help="draw each structure in a colour of its own")
    group.add_argument(
        "--scores", type=file, metavar="PICTURE", help="draw matches in the colours of their anomaly scores"
    )
    group.add_argument(
        "--html", type=file, metavar="FILE.html",
        help="write a page on which every match can be looked at, for any browser; needs the extra html",
    )  # fmt: skip
    group.add_argument(
        "--save", type=file, metavar="FILE.npz", help="save points, mask, scores, models and motions for numpy.load"
    )
    group.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    group.add_argument(
        "--fail-below", type=count, metavar="N", help="exit with status 1 where fewer than N matches are kept"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    _check(options)
    images = [read_image(path) for path in options.images]
    masks = [_read_mask(*given) for given in zip((options.mask1, options.mask2), images, options.images, strict=True)]
    if max(max(image.shape) for image in images) > options.max_size:
        say(f"features are looked for in images shrunk to {options.max_size} pixels; --max-size changes it")
    kind, ratio = options.features, options.ratio
    first, second, matches = match_images(images, options.images, kind, ratio, options.max_size, masks)
    say(
        f"{len(first)} and {len(second)} {kind.upper()} keypoints, {len(matches)} matches pass the ratio test at {ratio:g}"
    )
    points1, points2 = first.points[matches[:, 0]], second.points[matches[:, 1]]
    result = filter_points(
        points1,
        points2,
        model=options.model,
        threshold=options.threshold,
        pixel=max(first.pixel, second.pixel),
        keep_stationary=options.keep_stationary,
        rng=options.rng,
    )
    _print(result, images, options)
    if result.models and result.evidence < LEAST_EVIDENCE:
        say(f"evidence below {LEAST_EVIDENCE:g}: the images may show nothing in common")
    _write(images, (points1, points2), matches, result, options)
    kept = int(result.inlier_mask.sum())
    if options.fail_below is not None and kept < options.fail_below:
        say(f"{kept} matches are kept, fewer than {options.fail_below}")
        return FEW_KEPT
    return 0


def _check(options: argparse.Namespace) -> None:
    """Raise, before any work, where an output could not be written in the end."""
    if options.show is not None and options.output is None:
        raise InputError("--show chooses what --output draws, and there is no --output")
    pictures = {"--output": options.output, "--structures": options.structures, "--scores": options.scores}
    for path in pictures.values():
        if path is not None:
            check_picture_name(path)
    inputs = {"the first image": options.images[0], "the second image": options.images[1]}
    if options.html is not None:
        host("bokeh", "html")
    others = {"--html": options.html, "--save": options.save}
    check_outputs({**pictures, **others}, {**inputs, "--mask1": options.mask1, "--mask2": options.mask2})


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
    images: Sequence[Image],
    points: tuple[Array, Array],
    matches: Rows,
    result: FilterResult,
    options: argparse.Namespace,
) -> None:
    """Write the outputs that are asked for, and say so."""
    drawn = images[0], points[0], images[1], points[1], None, result
    show_matches = functools.partial(draw_matches, show=options.show or "both")
    pictures = (options.output, show_matches), (options.structures, draw_structures), (options.scores, draw_scores)
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
    written = [path for path in outputs if path is not None]
    if written:
        say(f"wrote {', '.join(map(str, written))}")


def _arrays(points: tuple[Array, Array], matches: Rows, result: FilterResult) -> dict[str, Any]:
    """Return the arrays that --save writes."""
    names = "inlier_mask", "anomaly_scores", "inlier_probabilities", "labels", "motion_labels"
    return {
        "points1": points[0],
        "points2": points[1],
        "keypoint_indices": matches,
        **{name: getattr(result, name) for name in names},
        **_arrays_of("model", result.models),
        **_arrays_of("motion", result.motions),
        "evidence": np.array(result.evidence),
        "reason": np.array(result.reason or "", dtype=np.str_),
    }


def _arrays_of(name: str, structures: Sequence[Structure]) -> dict[str, Any]:
    """Return the matrices (n, 3, 3) of structures, or of motions, and arrays (n,) of what else is known of each."""
    numbers = ("tolerance", "noise_scale", "evidence")
    return {
        f"{name}s": np.array([of.matrix for of in structures]).reshape(-1, 3, 3),
        f"{name}_kinds": np.array([of.kind for of in structures], dtype="U11"),
        **{f"{name}_{number}s": np.array([getattr(of, number) for of in structures], float) for number in numbers},
        f"{name}_stationary": np.array([of.stationary for of in structures], bool),
    }


def match_images(
    images: Sequence[Image],
    names: Sequence[object],
    kind: str = "sift",
    ratio: float = RATIO,
    max_size: int = MAX_SIZE,
    masks: Sequence[Image | None] = (None, None),
) -> tuple[Features, Features, Rows]:
    """Return the features of both images and the index pairs (n, 2) of the matches that pass the ratio test."""
    found = []
    for image, name, mask in zip(images, names, masks, strict=True):
        found.append(detect(image, kind, max_size, mask))
        if len(found[-1]) == 0:
            raise InputError(f"no {kind.upper()} keypoints in image {name}: {_reason(image, mask)}")
    return found[0], found[1], match(found[0], found[1], kind, ratio)


def _reason(image: Image, mask: Image | None) -> str:
    """Return a likely reason why an image has no keypoints."""
    if mask is not None and not mask.any():
        return "its mask is black all over"
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    seen = grey if mask is None else grey[mask > 0]
    low, high = np.percentile(seen, [1, 99])
    where = "" if mask is None else " where its mask is not black"
    if seen.min() == seen.max():
        return f"it is blank{where}"
    if high - low < LOW_CONTRAST:
        return f"its contrast is low{where}, most of it between {low:.0f} and {high:.0f} of 255 grey levels; stretch it first"
    return f"nothing stands out{where} in its {image.shape[1]} x {image.shape[0]} pixels"
