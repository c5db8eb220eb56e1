"""The report on all pairs of a run: a table, in CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from ruzhash_cv.pipelines.files import UnusableFile, check_writable, told, written_beside
from ruzhash_cv.pipelines.hosts import host


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
