"""Read and write files: errors of one line, atomic writes, locks."""

from __future__ import annotations

import io
import os
import secrets
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

#: Bytes of a disk that stay free; libraries buffer fewer than these.
SPARE = 2**26


class UnusableFile(ValueError):  # noqa: N818
    """A file that cannot be read or written as asked; the message is one line that names it."""


@contextmanager
def as_unusable(failure: str, *kinds: type[Exception]) -> Iterator[None]:
    """Turn errors of the file system, and of other kinds, into an `UnusableFile`."""
    caught: tuple[type[Exception], ...] = (OSError, *kinds)
    try:
        yield
    except (UnusableFile, BrokenPipeError):  # the latter of stdout, which nobody reads any more
        raise
    except caught as error:
        raise UnusableFile(f"{failure}: {reason_of(error)}") from None


@contextmanager
def silent(pycolmap: Any) -> Iterator[None]:
    """Keep COLMAP from logging what it raises too: the caller reports in one line."""
    level, pycolmap.logging.minloglevel = pycolmap.logging.minloglevel, 4
    try:
        yield
    finally:
        pycolmap.logging.minloglevel = level


def reason_of(error: Exception) -> str:
    """Return the message of a library's error in one line, of COLMAP's the last without the source location in brackets before it."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    last = lines[-1].rpartition("] ")[2] if lines and "] " in lines[-1] else " ".join(" ".join(lines).split())
    return last or type(error).__name__


def check_space(path: Path, size: int = 0) -> None:
    """Raise `UnusableFile` unless the disk of a file has room for `size` bytes and some to spare.

    Without this check a full disk makes COLMAP and HDF5 end the process, and HDF5 corrupts its file.
    """
    if shutil.disk_usage(path.parent).free < size + SPARE:
        raise UnusableFile(f"cannot write to {path}: less than {SPARE >> 20} MB are left on its disk")


def check_writable(path: Path, *taken: Path) -> None:
    """Raise `UnusableFile` unless a file can be written, a new one or in place of an old one, and is none of those `taken`."""
    folder = Path(os.path.realpath(path)).parent  # of what a link leads to
    if path.is_dir():
        raise UnusableFile(f"cannot write {path}: it is a directory")
    if not folder.is_dir():
        raise UnusableFile(f"cannot write {path}: there is no directory {folder}")
    if not all(os.access(place, os.W_OK) for place in (path, folder) if place.exists()):
        raise UnusableFile(f"cannot write {path}: permission denied")
    for other in taken:
        is_hard_link = path.exists() and other.exists() and path.samefile(other)
        if is_hard_link or os.path.realpath(path) == os.path.realpath(other):
            raise UnusableFile(f"cannot write {path}: it is an input, or another output")


@contextmanager
def locked(path: Path, output: Path | None = None) -> Iterator[bool]:
    """Lock a file of an `output`; `UnusableFile` if another run has locked it, or removed it as a dead run's.

    False on Windows and on disks without locks.
    """
    try:
        import fcntl
    except ImportError:
        yield False
        return
    with path.open("rb") as file:
        held, is_free = True, True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_free = path.exists()
        except BlockingIOError:
            is_free = False
        except OSError:
            held = False
        if not is_free:
            raise UnusableFile(f"{output or path} is in use by another run")
        yield held


def parts_of(path: Path) -> Iterator[Path]:
    """Yield the unfinished files of `written_beside`."""
    return path.parent.glob(_part_name(path, "*"))


def _part_name(path: Path, unique: str) -> str:
    """Return a name for an unfinished file, short for long names."""
    return f".ruzhash_cv_{zlib.crc32(os.fsencode(path.name)):08x}_{unique}.part"


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Give a new file with a unique name to write to, which is renamed to `path` at the end of the block.

    It is removed if the block fails. Of a link the target is written.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():  # /dev/null
        yield path
        return
    part = path.with_name(_part_name(path, secrets.token_hex(4)))
    part.touch(exist_ok=False)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file; it takes the place of an old one only when it is complete."""
    with written_beside(path) as part:
        part.write_text(text, encoding="utf-8")


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an .npz file; it takes the place of an old one only when it is complete.

    It is made in memory: if a write fails, NumPy 2.0 leaves a `ZipFile` open, which reports an error of its own later.
    """
    made = io.BytesIO()
    np.savez_compressed(made, **arrays)
    with written_beside(path) as part:
        part.write_bytes(made.getbuffer())
