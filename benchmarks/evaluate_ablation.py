"""Ablation: what accuracy gains or loses where one rule is left out or replaced, or one number halved or doubled. Tuning halves only.

    python benchmarks/evaluate_ablation.py                              # all rules and numbers: less than an hour on two cores
    python benchmarks/evaluate_ablation.py --variants mask "PLANS[2]" --suites fresh --seeds 3
    python benchmarks/evaluate_ablation.py --numbers                    # the table of numbers of docs/method.md

Rows are appended to `ablation_rows.csv` as variants finish, and a second call computes what is missing. After a change of the method's
code all rows are stale, and the next call drops them before it computes any.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import inspect
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
from measures import mask_quality, roc_auc
from numpy.typing import NDArray
from problems import Problem
from report import about_this_run, markdown
from ruzhash_cv.matchset import MatchSet
from ruzhash_cv.structures import search
from suites import GROUPS, SUITES, problems
from variants import DEFAULT, FACTORS, NUMBERS, RULES, Variant, all_variants, changed, imports, place_of, row_sums

from ruzhash_cv import FilterResult, filter_points, filtering

MEASURES = ("f1", "auc", "row_sum_auc", "accepted")
# Milliseconds are kept, and not compared: variants run one after the other, beside others.
FIELDS = ("package", "variant", "suite", "problem", "seed", *MEASURES, "ms")
NOMINAL = 0.05
"""`accepted` is the share of mismatches whose p-value is at most that."""
RESULTS = Path(__file__).parent / "results" / "ablation_rows.csv"
#: Modules that take what is given and show what is found, and motions, which are looked for after the mask.
EDGES = {
    "ruzhash_cv.correspondences",
    "ruzhash_cv.result",
    "ruzhash_cv.motions",
}
Key = tuple[str, str, str, str]
Row = dict[str, Any]
Task = tuple[str, str, int, int, tuple[Key, ...]]


def filtered(problem: Problem, variant: Variant, seed: int) -> tuple[FilterResult, NDArray[np.float64], float]:
    """Return a variant's result, the sum of each match's row in the forest that the scores are from, and milliseconds."""
    calls: list[tuple[Any, ...]] = []
    with changed(variant):
        score = search.score

        def recorded(*arguments: Any) -> Any:
            calls.append(arguments)
            return score(*arguments)

        with patch.object(search, "score", recorded):
            start = time.process_time()
            result = filter_points(problem.points1, problem.points2, rng=seed, n_jobs=1, **variant.options)
            milliseconds = 1e3 * (time.process_time() - start)
        sums = np.zeros(len(problem.points1))
        if calls:
            # The last forest is the result's, also where nothing was found. It may have seen some of the matches only.
            columns, _, _, families = calls[-1][:4]
            matches = MatchSet.of(problem.points1, problem.points2)
            sums[matches.finite] = row_sums(columns, matches, families)[matches.where]
    return result, sums, milliseconds


def row_sum_auc(problem: Problem, sums: NDArray[np.float64]) -> float:
    """AUC of the rows' sums: what the forest's own rows are worth without a forest."""
    judged = problem.judged
    return roc_auc(-sums[judged], problem.labels[judged] == 0)


def measured(problem: Problem, variant: Variant, seed: int) -> dict[str, float]:
    """Every measure of a variant on a problem."""
    result, sums, milliseconds = filtered(problem, variant, seed)
    judged = problem.judged
    wrong = problem.labels[judged] == 0
    return {
        "f1": mask_quality(result.inlier_mask[judged], ~wrong)["f1"],
        "auc": roc_auc(result.anomaly_scores[judged], wrong),
        "row_sum_auc": row_sum_auc(problem, sums),
        "accepted": float((result.p_values[judged][wrong] <= NOMINAL).mean()) if wrong.any() else float("nan"),
        "ms": milliseconds,
    }


@lru_cache
def problems_of(suite: str, per_cell: int) -> list[Problem]:
    """A suite's problems, once in a process."""
    return list(problems([suite], "tune", per_cell))


def run(task: Task) -> list[Row]:
    """Rows of one variant on one suite that are not there yet."""
    name, suite, per_cell, seeds, done = task
    variant, rows = all_variants()[name], []
    warm_up()
    for problem, seed in product(problems_of(suite, per_cell), range(seeds)):
        key = (name, suite, f"{problem.suite}, {problem.name}", str(seed))
        if key in done:
            continue
        try:
            values = {field: f"{value:.6g}" for field, value in measured(problem, variant, seed).items()}
        except Exception as error:  # one that no longer fits the package costs its own rows only
            print(f"\n{', '.join(key)}: {type(error).__name__}: {error}", file=sys.stderr)
            break
        rows.append({"package": package_digest(), **dict(zip(FIELDS[1:5], key, strict=True)), **values})
    return rows


@lru_cache
def warm_up() -> None:
    """Load the kernels before the clock runs."""
    points = np.random.default_rng(0).uniform(0, 500, (100, 2))
    filter_points(points, points[::-1], n_jobs=1)


@lru_cache
def package_digest() -> str:
    """Eight letters that change with the method's code, not with docstrings or with what prints and draws results."""
    code = "".join(code_of(inspect.getsource(module)) for module in method_modules())
    return hashlib.sha256(code.encode()).hexdigest()[:8]


def method_modules() -> list[ModuleType]:
    """Return the modules that results come from: the filter's own, and all that it imports but the edges."""
    names, waiting = set(EDGES), [filtering.__name__]
    while waiting:
        names.add(name := waiting.pop())
        found = {text for module, part in imports(sys.modules[name]) for text in (module, f"{module}.{part}")}
        waiting += [text for text in found - names if text in sys.modules and text.startswith("ruzhash_cv.")]
    return [sys.modules[name] for name in sorted(names - EDGES)]


def code_of(source: str) -> str:
    """Return a source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)


def key_of(row: Row) -> Key:
    """What makes two rows the same measurement."""
    return row["variant"], row["suite"], row["problem"], str(row["seed"])


def read_rows(path: Path) -> dict[Key, Row]:
    """Rows of earlier runs; a later row replaces an earlier one of the same key."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {key_of(row): row for row in csv.DictReader(file)}


def is_current(row: Row) -> bool:
    """Tell whether a row is of the package as it is, and of a variant that is still there."""
    return bool(row["package"] == package_digest() and row["variant"] in all_variants())


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write these rows alone."""
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    append_rows(part, list(rows))
    part.replace(path)


def append_rows(path: Path, rows: list[Row]) -> None:
    """Append rows, below a header."""
    new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def compute(tasks: list[Task], n_jobs: int) -> Iterator[list[Row]]:
    """Rows of each task as it ends, in so many processes."""
    if n_jobs == 1 or len(tasks) <= 1:
        yield from map(run, tasks)
        return
    # Not forked: threads of numerical libraries do not survive that.
    with ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(run, task) for task in tasks]):
            yield future.result()


class Differences:
    """Means over seeds, and paired differences to the default, of rows."""

    def __init__(self, rows: list[Row]) -> None:
        values: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
        for row in rows:
            for field in MEASURES:
                values[row["variant"], row["suite"], field, row["problem"]].append(float(row[field]))
        self._means: dict[tuple[str, str, str], dict[str, float]] = defaultdict(dict)
        for (variant, suite, field, problem), found in values.items():
            # Without matches of both kinds there is no AUC.
            if not np.isnan(mean := float(np.mean(found))):
                self._means[variant, suite, field][problem] = mean
        self.variants = list(dict.fromkeys(row["variant"] for row in rows))
        self.suites = list(dict.fromkeys(row["suite"] for row in rows))

    def mean(self, variant: str, suite: str, field: str) -> float:
        """Mean over the problems of a suite."""
        found = self._means.get((variant, suite, field), {})
        return float(np.mean(list(found.values()))) if found else float("nan")

    def of(self, variant: str, suite: str, field: str, other: str | None = None) -> tuple[float, float]:
        """Difference of a variant to the default, or of one field to another of the same variant, and its standard error."""
        first = self._means.get((variant, suite, field), {})
        second = self._means.get((DEFAULT if other is None else variant, suite, other or field), {})
        found = np.array([first[problem] - second[problem] for problem in first.keys() & second.keys()])
        if len(found) == 0:
            return float("nan"), float("nan")
        error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else float("nan")
        return float(found.mean()), float(error)

    def overall(self, variant: str, field: str, other: str | None = None) -> tuple[float, float]:
        """Mean over the suites that both have, and its standard error: suites are no sample, their problems are."""
        found = np.array([self.of(variant, suite, field, other) for suite in self.suites])
        found = found[np.isfinite(found[:, 0])]
        if len(found) == 0:
            return float("nan"), float("nan")
        return float(found[:, 0].mean()), float(np.sqrt(np.sum(found[:, 1] ** 2)) / len(found))


def with_error(difference: tuple[float, float], digits: int = 4) -> str:
    """A difference ± its standard error; nothing where there is none."""
    mean, error = difference
    return "" if np.isnan(mean) else f"{mean:+.{digits}f} ± {error:.{digits}f}"


def tables(rows: list[Row]) -> str:
    """The default's means, every variant's differences in the mean over suites, and those of F1 by suite."""
    found = Differences(rows)
    others = [name for name in found.variants if name != DEFAULT]
    means = [
        [suite, *(f"{found.mean(DEFAULT, suite, field):.4f}" for field in MEASURES)]
        + [with_error(found.of(DEFAULT, suite, "auc", "row_sum_auc"))]
        for suite in found.suites
    ]
    means.append(["mean", *[""] * len(MEASURES), with_error(found.overall(DEFAULT, "auc", "row_sum_auc"))])
    accepted = f"mismatches with p <= {NOMINAL}"
    parts = [markdown([DEFAULT, "F1", "AUC", "AUC of row sums", accepted, "forest minus row sums"], means)]
    if others:
        overall = [[name, *(with_error(found.overall(name, field)) for field in MEASURES)] for name in others]
        header = ["minus default, mean over suites", "F1", "AUC", "AUC of row sums", accepted]
        parts.append(markdown(header, overall))
        for field in ("f1", "auc"):
            by_suite = [
                [name, *(with_error(found.of(name, suite, field), 3) for suite in found.suites)] for name in others
            ]
            parts.append(markdown([f"{field.upper()} minus default's", *found.suites], by_suite))
    return "\n\n".join(parts)


def number_table(rows: list[Row]) -> str:
    """Every number of the method, with F1 minus the default's where it is halved and doubled, as far as rows are there."""
    found = Differences(rows)
    lines = []
    for number in NUMBERS:
        if not number.exists:
            print(f"{number} is no longer in {place_of(number)}", file=sys.stderr)
            continue
        line = [f"`{str(number).split('.', 1)[1]}`", shown(number.value), f"`{place_of(number)}`", number.meaning]
        if rows:
            line += [with_error(found.overall(f"{number} {word}", "f1")) for word in FACTORS]
        lines.append(line)
    columns = [f"F1, {word}" for word in FACTORS] if rows else []
    return markdown(["number", "value", "file", "meaning", *columns], lines)


def shown(value: Any) -> str:
    """A number, or a tuple's numbers."""
    return ", ".join(f"{item:g}" for item in value) if isinstance(value, tuple) else f"{value:g}"


def chosen(wanted: list[str]) -> list[str]:
    """Variants by name or by a part of it; "all", "rules" and "numbers" are all of a kind."""
    names = list(all_variants())
    kinds = {"all": names, "rules": list(RULES), "numbers": [name for name in names if name not in RULES]}
    picked: dict[str, None] = {}
    for text in wanted:
        matches = (
            kinds.get(text) or [name for name in names if name == text] or [name for name in names if text in name]
        )
        if not matches:
            raise SystemExit(f"no variant {text!r}; there are: {', '.join(names)}")
        picked |= dict.fromkeys(matches)
    return list(picked)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", default=["all"], help='names, parts of them, "rules" or "numbers"')
    parser.add_argument("--suites", nargs="+", default=list(SUITES), choices=[*SUITES, *GROUPS])
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each problem")
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--redo", nargs="+", default=[], metavar="VARIANT", help='compute these anew; "all" for all')
    parser.add_argument(
        "--numbers", action="store_true", help="print the table of numbers, from the rows that are there"
    )
    parser.add_argument("-o", "--output", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Compute what is missing, store it, print."""
    options = arguments()
    stored = read_rows(options.output)
    rows = {key: row for key, row in stored.items() if is_current(row)}
    n_stale = len(stored) - len(rows)
    if options.numbers:
        print(number_table(list(stored.values())))
        if n_stale:
            print(f"{n_stale} of {len(stored)} rows are of another version of the package", file=sys.stderr)
        return
    names = list(dict.fromkeys([DEFAULT, *chosen(options.variants)]))
    redo = set(chosen(options.redo))
    suites = list(dict.fromkeys(suite for name in options.suites for suite in GROUPS.get(name, (name,))))
    tasks = []
    for name in names:
        for suite in suites:
            done = tuple(key for key in rows if key[:2] == (name, suite)) if name not in redo else ()
            tasks.append((name, suite, options.per_cell, options.seeds, done))
    if n_stale:
        write_rows(options.output, rows.values())
        print(f"dropped {n_stale} rows of another version of the package", file=sys.stderr)
    for count, new in enumerate(compute(tasks, options.n_jobs), 1):
        append_rows(options.output, new)
        rows |= {key_of(row): row for row in new}
        print(f"\r{count} of {len(tasks)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    order = {key: at for at, key in enumerate(product(names, suites))}
    asked = [row for key, row in rows.items() if key[:2] in order and int(row["seed"]) < options.seeds]
    asked.sort(key=lambda row: order[row["variant"], row["suite"]])
    print(about_this_run({}))
    print("", tables(asked), sep="\n")


if __name__ == "__main__":
    main()
