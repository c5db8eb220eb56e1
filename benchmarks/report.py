"""Tables in Markdown, rows of measurements in CSVs, and what a run was made with."""

import ast
import hashlib
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

import ruzhash_cv

PACKAGES = ("opencv-python", "numpy", "scipy", "poselib", "pysuperansac", "scikit-learn", "scikit-image")
RESULTS = Path(__file__).parent / "results"
ROWS = RESULTS / "rows"
"""Single measurements stay on the machine that made them; their means are in `RESULTS`."""
ABSENT: dict[str, str] = {}
"""Method -> why it did not run."""
#: Rooms of the package that shape no result.
EDGES = {"cli", "datasets", "drawing", "paper", "pipelines", "report"}
#: What says which matches are true, and which count.
TRUTHS = "adelaide", "measures", "patches", "photos", "problems"
TRUTH = tuple(Path(__file__).with_name(f"{name}.py") for name in TRUTHS)


def code_digest(paths: Iterable[Path]) -> str:
    """Eight letters that change with the code of these files, but not with its comments and docstrings."""
    digest = hashlib.sha256()
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(body := getattr(node, "body", None), list):
                is_text = lambda line: isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)  # noqa: E731
                node.body = [line for line in body if not is_text(line)]
        digest.update(ast.dump(tree).encode())
    return digest.hexdigest()[:8]


@lru_cache
def package_digest() -> str:
    """Eight letters that change with the method's code and with the truth."""
    root = Path(ruzhash_cv.__file__).parent
    paths = [path for path in sorted(root.rglob("*.py")) if not EDGES & set(path.relative_to(root).parts)]
    return code_digest([*paths, *TRUTH])


@lru_cache
def truth_digest() -> str:
    """Eight letters that change with what says which matches are true and which of them are judged."""
    return code_digest(TRUTH)


def package_commit() -> str:
    """The last commit that changed the package; nothing without Git."""
    command = ["git", "-C", str(Path(__file__).parent), "log", "-1", "--format=%h", "--", "../ruzhash_cv"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


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
    """A number for a table, with its standard error if that is given; nothing for NaN."""
    text = "" if pd.isna(value) else f"{value:{sign}.{digits}f}"
    return text if error is None or not text else f"{text} ± {error:.{digits}f}"


def read_rows(path: Path, key: list[str]) -> pd.DataFrame:
    """Rows of earlier runs, empty if there are none; a later row replaces an earlier one of the same key."""
    if not path.exists():
        return pd.DataFrame(columns=key)
    return pd.read_csv(path, dtype={"problem": str, "package": str}).drop_duplicates(key, keep="last")


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Write one more row, below a header, in the order of its columns; rows that lack one of them get an empty cell."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(pd.read_csv(path, nrows=0).columns) if path.exists() else list(row)
    if new := [name for name in row if name not in columns]:
        columns += new
        pd.read_csv(path, dtype=str).reindex(columns=columns).to_csv(path, index=False)
    line = pd.DataFrame([row]).reindex(columns=columns)
    line.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.5g")
