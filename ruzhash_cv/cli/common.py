"""What the commands share: errors of one line, numbers, messages, pictures in and out."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.pipelines.features import read_image, silent_opencv
from ruzhash_cv.pipelines.hosts import UnusableFile

#: What a command adds its parser to.
Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
#: Lowe's ratio test, where nothing else is asked for.
RATIO = 0.8


class InputError(Exception):
    """What the user gave cannot be used; the message is the one line they get."""


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        hint = f"; see {self.prog} --help" if "required" in message else ""
        self.exit(2, f"{self.prog}: error: {message}{hint}\n")


def number(
    requirement: str, most: float = sys.float_info.max, convert: type = float, *, least: float | None = None
) -> Callable[[str], Any]:
    """Return a parser of numbers at most `most`, and above 0 or at least `least`."""

    def parse(text: str) -> Any:
        with contextlib.suppress(ValueError):
            value = convert(text)
            if (value > 0 if least is None else value >= least) and value <= most:
                return value
        raise argparse.ArgumentTypeError(f"must be {requirement}, got {text}")

    return parse


def file(text: str) -> Path:
    """Parse the name of a file."""
    if not text:
        raise argparse.ArgumentTypeError("must be the name of a file, got nothing")
    return Path(text)


@contextlib.contextmanager
def told(failure: str) -> Iterator[None]:
    """Turn an error of the file system into one line for the user."""
    try:
        yield
    except BrokenPipeError:  # of stdout, which nobody reads any more
        raise
    except OSError as error:
        raise InputError(f"{failure}: {error.strerror}") from None


def say(message: str) -> None:
    """Tell the user something that is no result."""
    if sys.stderr is not None:
        print(message, file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Tell the user why the command fails."""
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
        if path.is_dir():
            raise InputError(f"cannot write {path}: it is a directory")
        if not path.parent.is_dir():
            raise InputError(f"cannot write {path}: there is no directory {path.parent}")
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"cannot write {path}: permission denied")


def _same_file(path: Path, other: Path) -> bool:
    """Return whether two names mean one file, links resolved; a file need not exist."""
    with contextlib.suppress(OSError):
        return path.samefile(other)
    return path.resolve() == other.resolve()


def check_picture_name(path: Path) -> None:
    """Raise unless a picture can be written under this name."""
    if not (path.suffix and cv2.haveImageWriter(path.name)):
        raise InputError(f"cannot tell the kind of picture from {path.name!r}: end it in .png or .jpg")
    if _encode(path, np.zeros((64, 64, 3), np.uint8)) is None:
        raise InputError(f"{path.suffix} holds no colours: end {path.name!r} in .png or .jpg")


def read_picture(path: Path) -> NDArray[np.uint8]:
    """Return a picture from a file, in colour."""
    try:
        return read_image(path)
    except UnusableFile as error:
        raise InputError(str(error)) from None


def write_picture(path: Path, picture: NDArray[np.uint8]) -> None:
    """Write a picture, in the format that its name ends in."""
    encoded = _encode(path, picture)
    if encoded is None:
        size = f"{picture.shape[1]} x {picture.shape[0]}"
        raise InputError(f"{path.suffix} holds no picture of {size} pixels: end {path.name!r} in .png")
    with told(f"cannot write {path}"):
        path.write_bytes(encoded)


def _encode(path: Path, picture: NDArray[np.uint8]) -> bytes | None:
    """Return what to write to a file of this name, None where its kind cannot hold the picture."""
    options = [cv2.IMWRITE_JPEG_QUALITY, 80] if path.suffix.lower() in (".jpg", ".jpeg") else []
    with contextlib.suppress(cv2.error), silent_opencv():  # some versions raise, others do not
        done, encoded = cv2.imencode(path.suffix, picture, options)
        if done:
            return encoded.tobytes()
    return None
