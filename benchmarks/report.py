"""What rows say: means over problems with standard errors, paired differences, and tables in Markdown."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
from estimators import ABSENT
from peers import OURS, TUNED

MEASURES = ["f1", "precision", "recall", "balanced_accuracy", "auc", "label_error", "refit_error", "ms"]
PACKAGES = (
    "opencv-python", "numpy", "scipy", "numba", "poselib", "pydegensac", "pysuperansac", "scikit-learn", "scikit-image",
    "torch", "kornia",
)  # fmt: skip
RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "rows"
"""Single measurements stay on the machine that made them; their means are in `RESULTS`."""


def about_this_run() -> str:
    """Command, versions, machine, and the methods that could not run."""
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} absent")
    lines = [
        f"Command: `python benchmarks/{shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])}`",
        f"Machine: {os.cpu_count()} CPUs, Python {platform.python_version()}, {', '.join(versions)}",
    ]
    return "\n\n".join([*lines, *(f"Absent: {name} ({reason})" for name, reason in ABSENT.items())])


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the rest numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(value: float, digits: int = 3, error: float | None = None, sign: str = "") -> str:
    """A number for a table, with its standard error where that is given; nothing for NaN."""
    text = "" if pd.isna(value) else f"{value:{sign}.{digits}f}"
    return text if error is None or not text else f"{text} ± {error:.{digits}f}"


def read_rows(path: Path, key: list[str]) -> pd.DataFrame:
    """Rows of earlier runs, empty where there are none; a later row replaces an earlier one of the same key."""
    if not path.exists():
        return pd.DataFrame(columns=key)
    return pd.read_csv(path, dtype={"problem": str}).drop_duplicates(key, keep="last")


def append_row(path: Path, row: dict[str, object]) -> None:
    """Write one more row, below a header, in the order of its columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = pd.read_csv(path, nrows=0).columns if path.exists() else list(row)
    line = pd.DataFrame([row]).reindex(columns=columns)
    line.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.5g")


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each suite, half and method: means over the problems that all methods answered, with errors where they matter.

    `refit_error` and `ms` are medians. `lead` is the paired difference in F1 of this package's default to the method.
    """
    found = []
    for (suite, half), own in rows.groupby(["suite", "half"], sort=False):
        means = own.groupby(["method", "problem"], sort=False)[MEASURES].mean()
        f1 = means.f1.unstack("method").dropna()
        kept = means[means.index.get_level_values("problem").isin(f1.index)]
        table = kept.groupby("method").mean()
        middle = kept.groupby("method").median()
        table["refit_error"], table["ms"] = middle.refit_error, middle.ms
        lead = f1.rsub(f1[OURS], axis=0) if OURS in f1 else f1 * float("nan")
        table.insert(0, "problems", len(f1))
        table.insert(2, "f1_error", f1.sem())
        table.insert(3, "lowest_f1", f1.min())
        table = table.assign(lead=lead.mean(), lead_error=lead.sem(), suite=suite, half=half)
        found.append(table.reset_index())
    return pd.concat(found).set_index(["suite", "half", "method"])


def by_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean F1 of each method at each nominal share of mismatches, judge half; the problems that all methods answered."""
    drawn = rows[(rows.half == "judge") & rows.rate.notna()]
    means = drawn.groupby(["suite", "rate", "problem", "method"]).f1.mean().unstack("method").dropna(axis=1, how="all")
    f1 = means.stack().groupby(["suite", "rate", "method"])
    return pd.DataFrame({"problems": f1.size(), "f1": f1.mean(), "f1_error": f1.sem()})


def accuracy_table(table: pd.DataFrame) -> str:
    """One suite and half of `summary`, by method."""
    header = ["method", "F1", "lowest F1", "precision", "recall", "balanced accuracy", "AUC", "label error"]
    header += ["median refit error (px)", "median ms", f"F1 of {OURS} minus this"]
    lines = []
    for method, row in table.sort_values("f1", ascending=False, kind="stable").iterrows():
        title = f"{method} (tuned)" if method in TUNED else str(method)
        line = [title, shown(row.f1, 3, row.f1_error), shown(row.lowest_f1)]
        line += [shown(row[name]) for name in MEASURES[1:6]]
        line += [shown(row.refit_error, 2), shown(row.ms, 1)]
        lines.append([*line, "" if method == OURS else shown(row.lead, 3, row.lead_error, "+")])
    return markdown(header, lines)
