"""What every pipeline asks of its host: an installed package, a file of use, a report of all pairs."""

from __future__ import annotations

import csv
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
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


def hidden(progress: bool | None) -> bool | None:
    """Return what tqdm calls `disable`; None hides the bar where stderr is no terminal."""
    return None if progress is None else not progress


class Report:
    """Writes one row a pair on leaving a ``with`` block, also after an error: the pairs before it are done.

    Parameters
    ----------
    path : path or None
        A file ending in .csv, or in .parquet where pyarrow is installed, `UnusableFile` if it cannot be written; None: no report.
    database : Path
        What it reports on, never written over.
    rows : list of dict
        Filled while the block runs.
    columns : sequence of str
        The keys of every row, in order.
    """

    def __init__(
        self, path: str | PathLike[str] | None, database: Path, rows: list[dict[str, Any]], columns: Sequence[str]
    ) -> None:
        self.path, self.rows, self.columns = Path(path) if path else None, rows, columns
        if self.path is None:
            return
        if self.path.suffix not in (".csv", ".parquet"):
            raise UnusableFile(f"cannot tell the kind of report from {self.path.name!r}: end it in .csv or .parquet")
        if self.path.suffix == ".parquet":
            host("pyarrow", "parquet")
        if not self.path.parent.is_dir():
            raise UnusableFile(f"cannot write {self.path}: there is no directory {self.path.parent}")
        if self.path.is_dir():
            raise UnusableFile(f"cannot write {self.path}: it is a directory")
        if self.path.exists() and database.exists() and self.path.samefile(database):
            raise UnusableFile(f"cannot write {self.path}: it is the database")
        if not os.access(self.path if self.path.exists() else self.path.parent, os.W_OK):
            raise UnusableFile(f"cannot write {self.path}: permission denied")

    def __enter__(self) -> Report:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self.path is None or (kind is not None and not self.rows):
            return
        try:
            if self.path.suffix == ".parquet":
                pyarrow = host("pyarrow", "parquet")
                table = pyarrow.table({name: [row[name] for row in self.rows] for name in self.columns})
                host("pyarrow.parquet", "parquet").write_table(table, self.path)
            else:
                with self.path.open("w", newline="", encoding="utf-8") as file:
                    writer = csv.DictWriter(file, self.columns)
                    writer.writeheader()
                    writer.writerows(self.rows)
        except OSError as error:
            raise UnusableFile(f"cannot write {self.path}: {error.strerror}") from None
