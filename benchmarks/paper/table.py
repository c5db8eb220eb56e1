"""A CSV that grows line by line, so that a sweep continues where it stopped."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


class GrowingTable:
    """Rows in a CSV file, found again by their key columns."""

    def __init__(self, path: Path, key: Sequence[str], values: Sequence[str]) -> None:
        self.path, self.key, self.columns = path, tuple(key), (*key, *values)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_file():
            path.write_text(",".join(self.columns) + "\n", encoding="utf-8")
        self.rows = read(path)
        if self.rows and tuple(self.rows[0]) != self.columns:
            raise SystemExit(f"{path} has other columns than {', '.join(self.columns)}: move it away")
        self._done = {self._key(row) for row in self.rows}

    def __contains__(self, row: Row) -> bool:
        return self._key(row) in self._done

    def _key(self, row: Row) -> tuple[str, ...]:
        return tuple(str(row[column]) for column in self.key)

    def append(self, row: Row) -> None:
        """Write a row to the file at once."""
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.DictWriter(file, self.columns, lineterminator="\n").writerow(row)
        self.rows.append({column: str(row[column]) for column in self.columns})
        self._done.add(self._key(row))


def read(path: Path) -> list[Row]:
    """Return the rows of a CSV file, [] if there is none."""
    if not path.is_file():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
