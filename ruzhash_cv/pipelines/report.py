"""The report of a run: a table with a row for each pair, in CSV or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, check_writable, written_beside
from ruzhash_cv.pipelines.hosts import host
from ruzhash_cv.pipelines.selection import n_motions
from ruzhash_cv.result import FilterResult

Row: TypeAlias = dict[str, Any]
#: What a report says of each pair's result. `tolerance` is that of the strongest structure.
RESULT_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("matches", "kept", "structures", "motions"), int),
    **dict.fromkeys(("evidence", "tolerance"), float),
    **{"reason": str, "seconds": float},
}


def row_of(result: FilterResult) -> Row:
    """Return the cells of `RESULT_COLUMNS`."""
    counts = len(result.inlier_mask), int(result.inlier_mask.sum()), len(result.models), n_motions(result)
    tolerance = result.models[0].tolerance if result.models else None
    rest = result.evidence, tolerance, result.reason, sum(result.seconds.values())
    return dict(zip(RESULT_COLUMNS, (*counts, *rest), strict=True))


class Report:
    """A table that grows as pairs are done and that a resumed run continues.

    `UnusableFile` if `path` ends in neither .csv nor .parquet, cannot be written, is an input, or is no such table. None: no table.
    """

    def __init__(self, path: Path | None, columns: Mapping[str, type], *inputs: Path) -> None:
        self._path, self._columns, self._rows = path, columns, list[Row]()
        if path is None:
            return
        if path.suffix not in (".csv", ".parquet"):
            raise UnusableFile(f"cannot tell the kind of report from {path.name!r}: end it in .csv or .parquet")
        if path.suffix == ".parquet":
            host("pyarrow.parquet", "parquet")
        check_writable(path, *inputs)
        if path.exists():
            try:
                with as_unusable(f"cannot read {path}"):
                    self._rows = self._read(path)
            except UnusableFile:
                raise
            except (ValueError, csv.Error) as error:
                reason = str(error).partition("\n")[0]
                raise UnusableFile(f"{path} is no report that could be gone on with: {reason}") from None

    def start(self, is_kept: Callable[[Row], bool]) -> None:
        """Write the table anew, with those of its rows that stay."""
        self._rows = [row for row in self._rows if is_kept(row)]
        if self._path is not None:
            with as_unusable(f"cannot write {self._path}"), written_beside(self._path) as part:
                self._write(part, self._rows, "w")

    def add(self, rows: list[Row]) -> None:
        """Add rows; a Parquet file is written as a whole each time."""
        if self._path is None:
            return
        if self._path.suffix == ".parquet":
            self._rows += rows
            self.start(lambda _: True)
        else:
            with as_unusable(f"cannot write {self._path}"):
                self._write(self._path, rows, "a")

    def _write(self, path: Path, rows: Iterable[Row], mode: str) -> None:
        if self._path is not None and self._path.suffix == ".parquet":
            table = host("pyarrow", "parquet").Table.from_pylist(list(rows), schema=self._schema())
            host("pyarrow.parquet", "parquet").write_table(table, path)
            return
        with path.open(mode, newline="", encoding="utf-8", errors="backslashreplace") as file:
            writer = csv.DictWriter(file, self._columns)
            if mode == "w":
                writer.writeheader()
            writer.writerows(rows)

    def _read(self, path: Path) -> list[Row]:
        if path.suffix == ".parquet":
            try:
                table = host("pyarrow.parquet", "parquet").read_table(path)
                rows: list[Row] = table.cast(self._schema()).to_pylist()  # raises for other columns
            except host("pyarrow", "parquet").ArrowException as error:  # of which many are no ValueErrors
                raise ValueError(error) from None
            return rows
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames not in (None, [*self._columns]):
                raise ValueError(f"its columns must be {','.join(self._columns)}")
            rows = list(reader)
        whole = [None not in row and None not in row.values() for row in rows]
        if not all(whole[:-1]):
            raise ValueError(f"its row {whole.index(False) + 1} does not have {len(self._columns)} cells")
        return rows if all(whole) else rows[:-1]  # the last one of a run that was killed

    def _schema(self) -> Any:
        pyarrow = host("pyarrow", "parquet")
        kinds = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}
        return pyarrow.schema([(name, kinds[kind]) for name, kind in self._columns.items()])
