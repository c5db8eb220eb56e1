"""``ruzhash-cv filter``: two images matched, and their mismatches flagged."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv import printing
from ruzhash_cv.cli.common import (
    Commands,
    InputError,
    check_outputs,
    check_picture_name,
    file,
    number,
    read_picture,
    say,
    told,
    write_picture,
)
from ruzhash_cv.cli.features import Image, match_images
from ruzhash_cv.cli.options import add_matching_options, add_model_options, add_seed_option
from ruzhash_cv.correspondences import Correspondences, as_correspondences
from ruzhash_cv.drawing import draw_matches, draw_scores, draw_structures
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.result import FilterResult

#: Exit status where fewer matches are kept than asked for.
FEW_KEPT = 1


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "filter",
        help="match two images and flag the mismatches",
        description="Match two images, flag the mismatches, and print the structures behind the rest: planes and rigid motions. "
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
    add_model_options(group)
    group.add_argument(
        "--drop-stationary",
        action="store_true",
        help="flag what did not move while other things did: watermarks, time stamps, borders, the bonnet of the car",
    )
    add_seed_option(group)
    group.add_argument(
        "--n-jobs", type=number("a whole number above 0", convert=int), metavar="N",
        help="threads, default one for each processor; the result is the same",
    )  # fmt: skip


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
        "--save", type=file, metavar="FILE.npz", help="save points, mask, scores and models for numpy.load"
    )
    group.add_argument("--json", action="store_true", help="print one JSON object in place of the table")
    least = number("a whole number above 0", convert=int)
    group.add_argument(
        "--fail-below", type=least, metavar="N", help="exit with status 1 where fewer than N matches are kept"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return its exit status."""
    _check(options)
    images = [read_picture(path) for path in options.images]
    masks = [_read_mask(*given) for given in zip((options.mask1, options.mask2), images, options.images, strict=True)]
    if max(max(image.shape) for image in images) > options.max_size:
        say(f"features are looked for in images shrunk to {options.max_size} pixels; --max-size changes it")
    found = match_images(images, options.images, options.features, options.ratio, options.max_size, masks)
    first, second, matches = found
    kind, ratio = options.features.upper(), options.ratio
    say(f"{len(first)} and {len(second)} {kind} keypoints, {len(matches)} matches pass the ratio test at {ratio:g}")
    pairs = as_correspondences(first.points, second.points, matches)
    result = filter_points(
        pairs.points1,
        pairs.points2,
        model=options.model,
        threshold=options.threshold,
        pixel=max(first.pixel, second.pixel),
        keep_stationary=not options.drop_stationary,
        rng=options.rng,
        n_jobs=options.n_jobs,
    )
    _print(result, options, images)
    _write(options, images, found, pairs, result)
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
    check_outputs({**pictures, "--save": options.save}, {**inputs, "--mask1": options.mask1, "--mask2": options.mask2})


def _read_mask(path: Path | None, image: Image, name: Path) -> Image | None:
    if path is None:
        return None
    mask = cv2.cvtColor(read_picture(path), cv2.COLOR_BGR2GRAY)
    if mask.shape != image.shape[:2]:
        sizes = [f"{shape[1]} x {shape[0]}" for shape in (mask.shape, image.shape)]
        raise InputError(f"mask {path} has {sizes[0]} pixels, but its image {name} has {sizes[1]}")
    # A mask that was saved as JPEG is only nearly black.
    return np.where(mask < 128, 0, 255).astype(np.uint8)


def _print(result: FilterResult, options: argparse.Namespace, images: Sequence[Image]) -> None:
    if options.json:
        print(json.dumps(_as_json(result, options, images), indent=2))
    else:
        print(result)
        if result.motions:
            print(printing.motions_as_text(result))
        print(f"seconds {sum(result.seconds.values()):.3f}")


def _as_json(result: FilterResult, options: argparse.Namespace, images: Sequence[Image]) -> dict[str, Any]:
    kept = int(result.inlier_mask.sum())
    return {
        "images": [str(path) for path in options.images],
        "sizes": [list(image.shape[1::-1]) for image in images],
        "matches": len(result.inlier_mask),
        "kept": kept,
        "flagged": len(result.inlier_mask) - kept,
        "reason": result.reason,
        "seconds": result.seconds,
        "evidence": result.evidence,
        "structures": [{**vars(model), "matrix": model.matrix.tolist()} for model in result.models],
        "motions": [{**vars(motion), "matrix": motion.matrix.tolist()} for motion in result.motions],
    }


def _write(
    options: argparse.Namespace, images: Sequence[Image], found: Any, pairs: Correspondences, result: FilterResult
) -> None:
    """Write the outputs that are asked for, and say so."""
    first, second, matches = found
    drawn = images[0], first.points, images[1], second.points, matches, result
    if options.output is not None:
        write_picture(options.output, draw_matches(*drawn, show=options.show or "both"))
    if options.structures is not None:
        write_picture(options.structures, draw_structures(*drawn))
    if options.scores is not None:
        write_picture(options.scores, draw_scores(*drawn))
    if options.save is not None:
        _save(options.save, pairs, matches, result)
    written = [path for path in (options.output, options.structures, options.scores, options.save) if path is not None]
    if written:
        say(f"wrote {', '.join(map(str, written))}")


def _save(path: Path, pairs: Correspondences, matches: NDArray[np.int64], result: FilterResult) -> None:
    verdict = {name: getattr(result, name) for name in ("inlier_mask", "anomaly_scores", "p_values", "labels")}
    with told(f"cannot write {path}"), path.open("wb") as opened:  # a file, because a name would get a second suffix
        np.savez_compressed(
            opened,
            points1=pairs.points1,
            points2=pairs.points2,
            keypoint_indices=matches,
            models=np.array([model.matrix for model in result.models]).reshape(-1, 3, 3),
            model_kinds=np.array([model.kind for model in result.models], dtype="U11"),
            **verdict,
        )
