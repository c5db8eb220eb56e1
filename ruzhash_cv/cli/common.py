"""What the commands share: options, errors of one line, messages, pictures written."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.pipelines.features import MAX_SIZE, MOST_KEYPOINTS, silent_opencv
from ruzhash_cv.pipelines.files import as_unusable, check_writable, written_beside

#: What a command adds its parser to.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
#: The largest integer that the library takes, and the most processes.
MOST_INT, MOST_JOBS = 2**31 - 1, 4096
#: Lowe's ratio test, where nothing else is asked for.
RATIO = 0.8


class InputError(Exception):
    """The input cannot be used; the message is the one line that is printed."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        hint = f"; see {self.prog} --help" if "required" in message else ""
        self.exit(2, f"{self.prog}: error: {message}{hint}\n")


def number(
    requirement: str, most: float = sys.float_info.max, convert: type = float, *, least: float | None = None
) -> Callable[[str], Any]:
    """Return a parser of numbers at most `most`, and above 0 or at least `least`."""

    def parse(text: str) -> Any:
        needed = requirement
        with contextlib.suppress(ValueError):
            value = convert(text)
            if value > most:
                needed = f"at most {most}"
            elif value > 0 if least is None else value >= least:
                return value
        raise argparse.ArgumentTypeError(f"must be {needed}, got {text:.40}")

    return parse


#: Parses a number of things.
count = number("a whole number above 0", MOST_INT, int)


def file(text: str) -> Path:
    """Parse the name of a file."""
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a file, got nothing")
    return Path(text)


def add_matching_options(group: argparse._ActionsContainer) -> None:
    """Add the options of feature detection and matching."""
    limits = ", ".join(f"{most} of {name.upper()}" for name, most in MOST_KEYPOINTS.items())
    words = f"kind of feature, default sift; at most {limits}"
    group.add_argument("--features", choices=tuple(MOST_KEYPOINTS), default="sift", help=words)
    ratio = number("a number above 0 and at most 1", most=1)
    group.add_argument(
        "--ratio", type=ratio, default=RATIO, metavar="R",
        help=f"keep a match whose descriptor distance is below R times that of the second best, default {RATIO}; 1: nearly all",
    )  # fmt: skip
    size = number("a whole number of at least 32", MOST_INT, int, least=32)
    group.add_argument(
        "--max-size", type=size, default=MAX_SIZE, metavar="PIXELS",
        help=f"look for features in images shrunk to this longer side, default {MAX_SIZE}; SIFT takes about 0.2 GB a megapixel",
    )  # fmt: skip


def add_filtering_options(group: argparse._ActionsContainer) -> None:
    """Add `model`, `threshold`, `keep_stationary` and `rng` of `filter_points`, which mean the same in every command."""
    group.add_argument(
        "--model", choices=("auto", "homography", "fundamental"), default="auto",
        help="models to search for: planes (homography), rigid motions (fundamental), or whichever the matches support (auto, "
        "the default)",
    )  # fmt: skip
    group.add_argument(
        "--threshold", type=number("a number above 0"), metavar="PIXELS",
        help="as RANSAC's: largest distance of a kept match from its structure; default: estimated for each structure",
    )  # fmt: skip
    group.add_argument(
        "--drop-stationary", action="store_false", dest="keep_stationary",
        help="flag matches that did not move while others did, such as watermarks, time stamps, borders, the bonnet of a car",
    )  # fmt: skip
    group.add_argument(
        "--rng", type=number("a whole number from 0 on", MOST_INT, int, least=0), default=0, metavar="SEED",
        help="seed of the random samples, default 0; the same seed gives the same result",
    )  # fmt: skip


def add_jobs_option(group: argparse._ActionsContainer) -> None:
    """Add how many processes work."""
    group.add_argument(
        "--n-jobs", type=number("a whole number above 0", MOST_JOBS, int), default=-1, metavar="N",
        help="processes, default one for each processor; the result is the same",
    )  # fmt: skip


def say(message: str) -> None:
    """Print a message to stderr."""
    print(message, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print why the command fails."""
    say(f"ruzhash-cv: error: {message}")


def check_outputs(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Raise unless every output, by the option it was given as, can be written and is neither an input nor another output."""
    given = {option: path for option, path in outputs.items() if path is not None}
    seen = {name: path for name, path in inputs.items() if path is not None}
    for option, path in given.items():
        for other, taken in seen.items():
            if _same_file(path, taken):
                raise InputError(f"{option} {path} would write over {other} {taken}")
        seen[option] = path
        check_writable(path)


def _same_file(path: Path, other: Path) -> bool:
    """Return whether two names mean one file, links resolved; a file need not exist."""
    with contextlib.suppress(OSError):
        return path.samefile(other)
    return path.resolve() == other.resolve()


def check_picture_name(path: Path) -> None:
    """Raise unless a picture can be written under this name."""
    # OpenCV gets the suffix alone: it crashes on names that are not valid text.
    if not (path.suffix.isascii() and path.suffix and cv2.haveImageWriter(f"picture{path.suffix}")):
        raise InputError(f"cannot tell the kind of picture from {path.name!r}: end it in .png or .jpg")
    if _encode(path, np.zeros((64, 64, 3), np.uint8)) is None:
        raise InputError(f"{path.suffix} holds no colours: end {path.name!r} in .png or .jpg")


def write_picture(path: Path, picture: NDArray[np.uint8]) -> None:
    """Write a picture, in the format that its name ends in."""
    encoded = _encode(path, picture)
    if encoded is None:
        size = f"{picture.shape[1]} x {picture.shape[0]}"
        raise InputError(f"{path.suffix} holds no picture of {size} pixels: end {path.name!r} in .png")
    with as_unusable(f"cannot write {path}"), written_beside(path) as part:
        part.write_bytes(encoded)


def _encode(path: Path, picture: NDArray[np.uint8]) -> bytes | None:
    """Return what to write to a file of this name, None where its kind cannot hold the picture."""
    options = [cv2.IMWRITE_JPEG_QUALITY, 80] if path.suffix.lower() in (".jpg", ".jpeg") else []
    with contextlib.suppress(cv2.error), silent_opencv():  # some versions raise, others do not
        done, encoded = cv2.imencode(path.suffix, picture, options)
        if done:
            return encoded.tobytes()
    return None
