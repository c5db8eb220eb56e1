"""What pipelines ask of their hosts: an installed package, files that can be read and written, a report of all pairs."""

from __future__ import annotations

import csv
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

Item = TypeVar("Item")

#: Bytes of a disk that stay free: what libraries hold back, and write later, is less.
SPARE = 2**26


class UnusableFile(ValueError):  # noqa: N818
    """A file that cannot be read or written as asked; the message is one line that names it."""


def host(package: str, extra: str) -> Any:
    """Return an optional package; `extra` is what installs it."""
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ImportError(f'this needs {name}: pip install "ruzhash-cv[{extra}]"', name=name) from None


@contextmanager
def told(failure: str) -> Iterator[None]:
    """Turn an error of the file system into an `UnusableFile`."""
    try:
        yield
    except BrokenPipeError:  # of stdout, which nobody reads any more
        raise
    except OSError as error:
        raise UnusableFile(f"{failure}: {error.strerror or error}") from None


def check_space(path: Path, size: int = 0) -> None:
    """Raise `UnusableFile` where the disk of a file, or its largest length, has no room for `size` bytes and some to spare.

    Without, COLMAP and HDF5 end the process, and HDF5 spoils the file.
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


def in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def with_bar(items: Iterable[Item], shown: bool | None = None, **words: Any) -> Iterable[Item]:
    """Show tqdm's progress bar on stderr; None: where that is a terminal."""
    from tqdm import tqdm

    bar: Iterable[Item] = tqdm(items, disable=None if shown is None else not shown, **words)
    return bar


def listed_pairs(path: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the pairs of a text file, two names a line, parted by a tab or else by spaces, and where each stands, for messages."""
    try:
        with told(f"cannot read {path}"):
            lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise UnusableFile(f"{path} is no list of pairs: it is not text") from None
    for number, line in enumerate(map(str.strip, lines), start=1):
        names = [name.strip() for name in line.split("\t")] if "\t" in line else line.split()
        if not names or line.startswith("#"):
            continue
        where = f"{path}, line {number}: "
        if len(names) != 2:
            raise UnusableFile(f"{where}two names of pictures are needed, got {len(names)}: {line!r}")
        yield (names[0], names[1]), where


def check_writable(path: Path, *inputs: Path) -> None:
    """Raise `UnusableFile` unless a file can be written, a new one or in place of an old one that is no input."""
    if path.is_dir():
        raise UnusableFile(f"cannot write {path}: it is a directory")
    if not path.parent.is_dir():
        raise UnusableFile(f"cannot write {path}: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UnusableFile(f"cannot write {path}: permission denied")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise UnusableFile(f"cannot write {path}: it is an input")


def part_of(path: Path) -> Path:
    """Return the name of a file that is not yet whole."""
    return path.with_name(f"{path.name}.part")


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Give a name to write to, which takes the place of `path` at the end of the block, and goes where that fails."""
    part = part_of(path)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_hdf5(path: Path, **options: Any) -> Iterator[Any]:
    """Give an empty HDF5 file, which takes the place of `path` at the end of the block."""
    check_space(path)
    with written_beside(path) as part:
        try:
            file = host("h5py", "hloc").File(part, "w", **options)
        except OSError as error:
            raise UnusableFile(f"cannot write {path}: {os.strerror(error.errno) if error.errno else error}") from None
        with file:
            yield file


@contextmanager
def report(place: str | PathLike[str] | None, database: Path, columns: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Give a list for a row a pair, written at the end of the block, also after an error: the pairs before it are done.

    To a file ending in .csv, or in .parquet where pyarrow is installed, `UnusableFile` if it cannot be written, or is the database
    that is reported on; None: no report. Rows have `columns` for keys, in order.
    """
    rows: list[dict[str, Any]] = []
    path = None if place is None else Path(place)
    if path is not None:
        _check_report(path, database)
    done = False
    try:
        yield rows
        done = True
    finally:
        if path is not None and (rows or done):
            _write_table(path, rows, columns)


def _check_report(path: Path, database: Path) -> None:
    if path.suffix not in (".csv", ".parquet"):
        raise UnusableFile(f"cannot tell the kind of report from {path.name!r}: end it in .csv or .parquet")
    if path.suffix == ".parquet":
        host("pyarrow", "parquet")
    check_writable(path, database)


def earlier_rows(place: str | PathLike[str] | None, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows of the report that is there already; none where there is no such table, with these columns."""
    path = None if place is None else Path(place)
    if path is None or not path.exists():
        return []
    with told(f"cannot read {path}"):
        if path.suffix == ".csv":
            with path.open(newline="", encoding="utf-8", errors="replace") as file:
                reader = csv.DictReader(file)
                return list(reader) if reader.fieldnames == list(columns) else []
        try:
            table = host("pyarrow.parquet", "parquet").read_table(path)
        except ValueError:  # pyarrow's, of what is no such file
            return []
        return table.to_pylist() if table.column_names == list(columns) else []


def _write_table(path: Path, rows: list[dict[str, Any]], columns: Sequence[str]) -> None:
    with told(f"cannot write {path}"), written_beside(path) as part:
        if path.suffix == ".parquet":
            table = host("pyarrow", "parquet").table({name: [row[name] for row in rows] for name in columns})
            host("pyarrow.parquet", "parquet").write_table(table, part)
            return
        with part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(rows)
