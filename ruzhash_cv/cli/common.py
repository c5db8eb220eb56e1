"""What the commands share: options, errors of one line, messages, pictures written."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import cv2
import numpy as np

from ruzhash_cv.pipelines.features import Image, silent_opencv
from ruzhash_cv.pipelines.files import as_unusable, written_beside

#: What a command adds its parser to.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
#: The largest integer that the library takes, and the most processes.
MOST_INT, MOST_JOBS = 2**31 - 1, 4096
#: Lowe's ratio test, by default.
RATIO = 0.8


class InputError(Exception):
    """The input cannot be used; the message is the one line that is printed."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        hint = f"; see {self.prog} --help" if "required" in message else ""
        self.exit(2, f"{self.prog}: error: {one_line(message)}{hint}\n")


def number(
    requirement: str, most: float | None = None, convert: type = float, *, least: float | None = None
) -> Callable[[str], Any]:
    """Return a parser of numbers at most `most`, and above 0 or at least `least`."""
    limit = (sys.float_info.max if convert is float else MOST_INT) if most is None else most

    def parse(text: str) -> Any:
        needed = requirement
        with contextlib.suppress(ValueError):
            value = convert(text)
            if value > limit:
                needed = f"at most {limit}"
            elif value > 0 if least is None else value >= least:
                return value
        raise argparse.ArgumentTypeError(f"must be {needed}, got {text:.40}")

    return parse


#: Parses a number of things.
count = number("a whole number above 0", convert=int)


def file(text: str) -> Path:
    """Parse the name of a file."""
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a file, got nothing")
    return Path(text)


#: Options: their names, what they do, and how `add_argument` is to take them.
Options: TypeAlias = tuple[tuple[str, str, dict[str, Any]], ...]

# fmt: off
#: Of every command that filters.
FILTERING: Options = (
    ("--model", "models to search for: planes (homography), rigid motions (fundamental), or both (auto, the default)",
     {"choices": ("auto", "homography", "fundamental"), "default": "auto"}),
    ("--threshold", "as RANSAC's: largest distance of a kept match from a rigid motion or a lone plane; default: keep probable matches",
     {"type": number("a number above 0"), "metavar": "PIXELS"}),
    ("--drop-stationary", "flag static matches if others moved: watermarks, time stamps, borders, the bonnet of a car",
     {"action": "store_false", "dest": "keep_stationary"}),
    ("--rng", "seed of the random samples, default 0; the same seed gives the same result",
     {"type": number("a whole number from 0 on", convert=int, least=0), "default": 0, "metavar": "SEED"}),
)
# fmt: on


def add_options(group: argparse._ActionsContainer, options: Options) -> None:
    """Add options to a parser, or to a group of one."""
    for names, words, settings in options:
        group.add_argument(*names.split(), help=words, **settings)


def one_line(message: str) -> str:
    """Return a message in one line, whatever the names in it hold."""
    return message.replace("\n", "\\n").replace("\r", "\\r")


def say(message: str) -> None:
    """Print a message to stderr, if that can be written to."""
    with contextlib.suppress(OSError):
        print(one_line(message), file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print why the command fails."""
    say(f"ruzhash-cv: error: {message}")


def check_picture_name(path: Path) -> None:
    """Raise unless a picture can be written under this name."""
    # OpenCV gets the suffix alone: it crashes on names that are not valid text.
    if not (path.suffix.isascii() and path.suffix and cv2.haveImageWriter(f"picture{path.suffix}")):
        raise InputError(f"cannot tell the kind of picture from {path.name!r}: end it in .png or .jpg")
    if _encode(path, np.zeros((64, 64, 3), np.uint8)) is None:
        raise InputError(f"{path.suffix} holds no colours: end {path.name!r} in .png or .jpg")


def write_picture(path: Path, picture: Image) -> None:
    """Write a picture, in the format that its name ends in."""
    encoded = _encode(path, picture)
    if encoded is None:
        size = f"{picture.shape[1]} x {picture.shape[0]}"
        raise InputError(f"{path.suffix} holds no picture of {size} pixels: end {path.name!r} in .png")
    with as_unusable(f"cannot write {path}"), written_beside(path) as part:
        part.write_bytes(encoded)


def _encode(path: Path, picture: Image) -> bytes | None:
    """Return what to write to a file of this name, None if its kind cannot hold the picture."""
    options = [cv2.IMWRITE_JPEG_QUALITY, 80] if path.suffix.lower() in (".jpg", ".jpeg") else []
    with contextlib.suppress(cv2.error), silent_opencv():  # some versions raise, others do not
        done, encoded = cv2.imencode(path.suffix, picture, options)
        if done:
            return encoded.tobytes()
    return None
