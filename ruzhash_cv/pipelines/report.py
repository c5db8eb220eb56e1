"""The report of a run: a CSV table with a row for each pair."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

from ruzhash_cv.pipelines.files import UnusableFile, as_unusable, check_writable, written_beside
from ruzhash_cv.results.result import FilterResult

Row: TypeAlias = dict[str, Any]
#: What a report says of each pair's result. `planes` counts those of motions.
RESULT_COLUMNS = "matches", "kept", "motions", "planes", "evidence", "reason", "seconds"


def row_of(result: FilterResult, left_out: str | None = None) -> Row:
    """Return the cells of `RESULT_COLUMNS`, rounded to what they are exact to; of a pair `left_out` for a reason no match is kept."""
    n_planes = sum(len(motion.planes) for motion in result.motions)
    kept = 0 if left_out else int(result.inlier_mask.sum())
    counts = len(result.inlier_mask), kept, len(result.motions), n_planes
    rest = round(result.evidence, 1), left_out or result.reason, round(sum(result.seconds.values()), 4)
    return dict(zip(RESULT_COLUMNS, (*counts, *rest), strict=True))


class Report:
    """A table that grows as pairs are done and that a resumed run continues.

    `UnusableFile` if `path` does not end in .csv, cannot be written, is an input, or is no such table. None: no table.
    """

    def __init__(self, path: Path | None, columns: Sequence[str], *inputs: Path) -> None:
        self._path, self._columns, self._rows = path, columns, list[Row]()
        if path is None:
            return
        if path.suffix != ".csv":
            raise UnusableFile(f"a report is written as CSV: end {path.name!r} in .csv")
        check_writable(path, *inputs)
        if path.exists():
            failure = f"{path} is no report that can be continued"
            with as_unusable(failure, ValueError, csv.Error), as_unusable(f"cannot read {path}"):
                self._rows = self._read(path)

    def start(self, is_kept: Callable[[Row], bool]) -> None:
        """Write the table again, with the rows that stay."""
        self._rows = [row for row in self._rows if is_kept(row)]
        if self._path is not None:
            with as_unusable(f"cannot write {self._path}"), written_beside(self._path) as part:
                self._write(part, self._rows, "w")

    @contextmanager
    def added(self, rows: list[Row]) -> Iterator[None]:
        """Add rows, and remove them if the block, which writes their pairs, fails. If it is interrupted, the next run drops them."""
        if self._path is None:
            yield
            return
        with as_unusable(f"cannot write {self._path}"):
            size = self._path.stat().st_size
            self._write(self._path, rows, "a")
        try:
            yield
        except Exception:
            with suppress(OSError):
                os.truncate(self._path, size)
            raise

    def _write(self, path: Path, rows: Iterable[Row], mode: str) -> None:
        with path.open(mode, newline="", encoding="utf-8", errors="backslashreplace") as file:
            writer = csv.DictWriter(file, self._columns)
            if mode == "w":
                writer.writeheader()
            writer.writerows(rows)

    def _read(self, path: Path) -> list[Row]:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames not in (None, [*self._columns]):
                raise ValueError(f"its columns must be {','.join(self._columns)}")
            rows: list[Row] = list(reader)
        whole = [None not in row and None not in row.values() for row in rows]
        if not all(whole[:-1]):
            raise ValueError(f"its row {whole.index(False) + 1} does not have {len(self._columns)} cells")
        return rows if all(whole) else rows[:-1]  # the last one of a run that was killed
