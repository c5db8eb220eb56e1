"""What the commands share: errors of one line, numbers, messages, pictures in and out."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.pipelines.features import read_image
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
        self.exit(2, f"{self.prog}: error: {message}\n")


def number(requirement: str, most: float = sys.float_info.max, convert: type = float) -> Callable[[str], Any]:
    """Return a parser of numbers above 0 and at most `most`."""

    def parse(text: str) -> Any:
        with contextlib.suppress(ValueError):
            value = convert(text)
            if 0 < value <= most:
                return value
        raise argparse.ArgumentTypeError(f"must be {requirement}, got {text}")

    return parse


@contextlib.contextmanager
def told(failure: str) -> Iterator[None]:
    """Turn an error of the file system into one line for the user."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{failure}: {error.strerror}") from None


def say(message: str) -> None:
    """Tell the user something that is no result."""
    print(message, file=sys.stderr, flush=True)


def read_picture(path: Path) -> NDArray[Any]:
    """Return a picture from a file."""
    try:
        return read_image(path)
    except UnusableFile as error:
        raise InputError(str(error)) from None


def write_picture(path: Path, picture: NDArray[np.uint8]) -> None:
    options = [cv2.IMWRITE_JPEG_QUALITY, 80] if path.suffix.lower() in (".jpg", ".jpeg") else []
    done, encoded = cv2.imencode(path.suffix, picture, options)
    if not done:
        raise InputError(f"{path.suffix} holds no colours: end {path.name!r} in .png or .jpg")
    with told(f"cannot write {path}"):
        path.write_bytes(encoded.tobytes())
