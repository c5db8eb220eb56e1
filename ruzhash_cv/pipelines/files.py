"""Read and write files: errors of one line, atomic writes, locks."""

from __future__ import annotations

import io
import math
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from ruzhash_cv.pipelines.hosts import host

#: Bytes of a disk that stay free; libraries buffer fewer than these.
SPARE = 2**26


class UnusableFile(ValueError):  # noqa: N818
    """A file that cannot be read or written as asked; the message is one line that names it."""


@contextmanager
def as_unusable(failure: str) -> Iterator[None]:
    """Turn an error of the file system into an `UnusableFile`."""
    try:
        yield
    except BrokenPipeError:  # of stdout, which nobody reads any more
        raise
    except OSError as error:
        raise UnusableFile(f"{failure}: {error.strerror or in_one_line(error)}") from None


def in_one_line(error: Exception) -> str:
    """Return the message of a library's error in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def check_space(path: Path, size: int = 0) -> None:
    """Raise `UnusableFile` where the disk of a file, or its largest length, has no room for `size` bytes and some to spare.

    Without this check a full disk makes COLMAP and HDF5 end the process, and HDF5 corrupts its file.
    """
    if shutil.disk_usage(path.parent).free < size + SPARE:
        raise UnusableFile(f"cannot write to {path}: less than {SPARE >> 20} MB are left on its disk")
    held = path.stat().st_size if path.exists() else 0
    if held + size + SPARE > _longest_file():
        raise UnusableFile(f"cannot write to {path}: `ulimit -f` leaves it less than {SPARE >> 20} MB")


def _longest_file() -> float:
    """Return how many bytes a file of this process may have."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def check_writable(path: Path, *inputs: Path) -> None:
    """Raise `UnusableFile` unless a file can be written, a new one or in place of an old one that is no input."""
    folder = Path(os.path.realpath(path)).parent  # of what a link leads to
    if path.is_dir():
        raise UnusableFile(f"cannot write {path}: it is a directory")
    if not folder.is_dir():
        raise UnusableFile(f"cannot write {path}: there is no directory {folder}")
    if not all(os.access(place, os.W_OK) for place in (path, folder) if place.exists()):
        raise UnusableFile(f"cannot write {path}: permission denied")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise UnusableFile(f"cannot write {path}: it is an input")


@contextmanager
def locked(path: Path, output: Path | None = None) -> Iterator[None]:
    """Lock a file of an `output`; `UnusableFile` if another run has locked it. No effect on Windows, and on disks without locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UnusableFile(f"{output or path} is in use by another run") from None
        except OSError:
            pass
        yield


def _part_names(path: Path) -> str:
    """Return the pattern of the names that `written_beside` gives, short for long names."""
    return f".ruzhash_cv_{zlib.crc32(os.fsencode(path.name)):08x}_*.part"


@contextmanager
def written_beside(path: Path, *, replace: bool = True) -> Iterator[Path]:
    """Give a new file with a unique name to write to, which is renamed to `path` at the end of the block.

    It is removed if the block fails. Of a link the target is written. Without `replace`, FileExistsError is raised if `path` exists
    by then.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():  # /dev/null
        yield path
        return
    part = path.with_name(_part_names(path).replace("*", secrets.token_hex(4)))
    part.touch(exist_ok=False)
    try:
        yield part
        if not replace:
            with suppress(PermissionError):  # of disks without links
                path.hardlink_to(part)
                return
            if path.exists():
                raise FileExistsError(None, "it is there already")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an .npz file; it takes the place of an old one only when it is complete.

    It is made in memory: where a write fails, NumPy 2.0 leaves a `ZipFile` open, and that reports an error of its own later.
    """
    made = io.BytesIO()
    np.savez_compressed(made, **arrays)
    with written_beside(path) as part:
        part.write_bytes(made.getbuffer())


@contextmanager
def as_spoilt(path: str | Path) -> Iterator[None]:
    """Turn an error of h5py, of which there are many kinds where a file is spoilt, into an `UnusableFile`."""
    try:
        yield
    except UnusableFile:
        raise
    except (OSError, LookupError, RuntimeError, TypeError, ValueError, MemoryError) as error:
        raise UnusableFile(f"{path} is no HDF5 file, or a spoilt one: {in_one_line(error)}") from None


@contextmanager
def new_hdf5(path: Path, *, replace: bool = False, **options: Any) -> Iterator[Any]:
    """Give an empty HDF5 file, which is renamed to `path` at the end of the block; `UnusableFile` if another run writes it."""
    check_space(path)
    for other in path.parent.glob(_part_names(path)):
        with suppress(OSError), locked(other, path):  # left by a run that was killed
            pass
    with (
        as_unusable(f"cannot write {path}"),
        written_beside(path, replace=replace) as part,
        locked(part),
        host("h5py", "hloc").File(part, "w", locking=False, **options) as file,  # HDF5's own lock would be a second one
    ):
        yield file


def listed_pairs(path: Path, is_there: Callable[[str], bool]) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the pairs of a text file, two names a line, parted by a tab or else by spaces, and where each stands, for messages.

    A line that begins with # is a comment, unless its first name `is_there`. Names may hold bytes that are not UTF-8.
    """
    with as_unusable(f"cannot read {path}"):
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    if "\0" in text:
        raise UnusableFile(f"{path} is no list of pairs: it is not text in UTF-8")
    for number, line in enumerate(map(str.strip, text.splitlines()), start=1):
        names = [name.strip() for name in line.split("\t")] if "\t" in line else line.split()
        if not names or (line.startswith("#") and not is_there(names[0])):
            continue
        where = f"{path}, line {number}: "
        if len(names) != 2:
            raise UnusableFile(f"{where}two names of pictures are needed, got {len(names)}: {line!r}")
        yield (names[0], names[1]), where
