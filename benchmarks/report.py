"""Markdown tables out of the rows of `evaluate_accuracy.py`."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections import defaultdict
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from measures import paired_difference
from numpy.typing import NDArray

OURS = "ruzhash_cv"
Rows = Sequence[dict[str, str]]
PACKAGES = ("opencv-python", "numpy", "scipy", "numba", "poselib", "pydegensac", "scikit-learn", "torch", "kornia")


def about_this_run(absent: dict[str, str]) -> str:
    """Command, versions, machine, and the methods that could not run."""
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    versions = []
    for name in PACKAGES:
        try:
            versions.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            versions.append(f"{name} absent")
    lines = [
        f"Command: `python benchmarks/{command}`",
        f"Machine: {os.cpu_count()} CPUs, Python {platform.python_version()}, {', '.join(versions)}",
    ]
    lines += [f"Absent: {name} ({reason})" for name, reason in absent.items()]
    return "\n\n".join(lines)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the rest numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def per_problem(rows: Rows, field: str) -> dict[str, dict[tuple[str, ...], float]]:
    """Method -> problem -> mean over seeds of one field; undefined values are left out."""
    values: dict[str, dict[tuple[str, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        value = float(row[field])
        if not np.isnan(value):
            values[row["method"]][(row["suite"], row["half"], row["problem"])].append(value)
    return {method: {name: float(np.mean(v)) for name, v in found.items()} for method, found in values.items()}


def _values(found: dict[tuple[str, ...], float]) -> NDArray[np.float64]:
    return np.array(list(found.values()))


def _number(values: NDArray[np.float64], digits: int = 3, reduce: str = "mean") -> str:
    if len(values) == 0:
        return ""
    return f"{getattr(np, reduce)(values):.{digits}f}"


def paired(ours: dict[tuple[str, ...], float], peer: dict[tuple[str, ...], float]) -> tuple[float, float] | None:
    """Mean paired difference over the problems both have, and its standard error."""
    common = [name for name in ours if name in peer]
    if not common:
        return None
    return paired_difference(np.array([ours[n] for n in common]), np.array([peer[n] for n in common]))


def difference(ours: dict[tuple[str, ...], float], peer: dict[tuple[str, ...], float]) -> str:
    """`paired` as a table shows it."""
    found = paired(ours, peer)
    return "" if found is None else f"{found[0]:+.3f} ± {found[1]:.3f}"


def ahead(rows: Rows, methods: Sequence[str]) -> tuple[list[str], list[str]]:
    """Methods with a higher mean F1 than this package's default, by how much: beyond two standard errors, and within."""
    f1 = per_problem(rows, "f1")
    beyond: list[tuple[float, str]] = []
    within: list[tuple[float, str]] = []
    for method in methods:
        found = paired(f1[OURS], f1[method]) if method in f1 and method != OURS else None
        if found is not None and found[0] < -0.0005:
            text = f"{method} by {-found[0]:.3f} ± {found[1]:.3f}"
            (beyond if -found[0] > 2 * found[1] else within).append((found[0], text))
    return [text for _, text in sorted(beyond)], [text for _, text in sorted(within)]


def suite_table(rows: Rows, methods: dict[str, bool]) -> str:
    """One row per method, best mean F1 first, the settings tuned on AdelaideRMF marked."""
    fields = ("f1", "precision", "recall", "balanced_accuracy", "auc", "label_error", "refit_error", "ms")
    means = {field: per_problem(rows, field) for field in fields}
    f1 = means["f1"]
    header = ["method", "F1", "lowest F1", "precision", "recall", "balanced accuracy", "AUC", "label error"]
    header += ["median refit error (px)", "median ms", f"F1 of {OURS} minus this"]
    lines = []
    for method in sorted((m for m in methods if m in f1), key=lambda m: -np.mean(_values(f1[m]))):
        column = {field: _values(means[field].get(method, {})) for field in fields}
        line = [method + (" (tuned)" if methods[method] else ""), _number(column["f1"]), f"{column['f1'].min():.3f}"]
        line += [_number(column[field]) for field in fields[1:6]]
        line += [_number(column["refit_error"], 2, "median"), _number(column["ms"], 1, "median")]
        line.append(difference(f1[OURS], f1[method]) if OURS in f1 and method != OURS else "")
        lines.append(line)
    return markdown(header, lines)


def rate_table(rows: Rows, methods: dict[str, bool], field: str) -> str:
    """Mean F1, or median refit error, of each method at each nominal mismatch rate."""
    rates = sorted({row["rate"] for row in rows}, key=float)
    by_rate = {rate: per_problem([row for row in rows if row["rate"] == rate], field) for rate in rates}
    reduce, digits = ("mean", 3) if field == "f1" else ("median", 2)
    lines = []
    for method in methods:
        columns = [_values(by_rate[rate].get(method, {})) for rate in rates]
        if any(len(column) for column in columns):
            lines.append([method, *(_number(column, digits, reduce) for column in columns)])
    return markdown([f"{reduce} {field.replace('_', ' ')} at", *(f"{float(rate):.0%}" for rate in rates)], lines)


def accuracy_tables(rows: Rows, methods: dict[str, bool]) -> str:
    """All tables, suite by suite and half by half."""
    parts = []
    for suite in dict.fromkeys(row["suite"] for row in rows):
        for half in dict.fromkeys(row["half"] for row in rows if row["suite"] == suite):
            own = [row for row in rows if row["suite"] == suite and row["half"] == half]
            count = len({row["problem"] for row in own})
            seeds = len({row["seed"] for row in own})
            parts.append(f"### {suite}, {half} half: {count} problems, {seeds} seeds\n\n{suite_table(own, methods)}")
            if own[0].get("rate"):
                parts.append(rate_table(own, methods, "f1"))
                if own[0]["structures"] == "1":
                    parts.append(rate_table(own, methods, "refit_error"))
                if len({row["mismatches"] for row in own}) > 1:
                    parts.append(mismatch_table(own, methods))
    return "\n\n".join(parts)


def mismatch_table(rows: Rows, methods: dict[str, bool]) -> str:
    """Mean F1 of each method for each way mismatches arise."""
    kinds = sorted({row["mismatches"] for row in rows})
    found = {kind: per_problem([row for row in rows if row["mismatches"] == kind], "f1") for kind in kinds}
    lines = [
        [method, *(_number(_values(found[kind].get(method, {}))) for kind in kinds)]
        for method in methods
        if any(method in found[kind] for kind in kinds)
    ]
    return markdown(["mean F1 with mismatches", *kinds], lines)
