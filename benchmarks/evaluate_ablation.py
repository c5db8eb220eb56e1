"""Ablation: what accuracy gains or loses where one rule is left out or replaced, or one number halved or doubled. Tuning halves only.

    python benchmarks/evaluate_ablation.py                              # all rules and numbers: less than an hour on two cores
    python benchmarks/evaluate_ablation.py --variants mask reach --suites fresh --seeds 3 --print
    python benchmarks/evaluate_ablation.py --numbers                    # the table of numbers of docs/numbers.md

Rows of single problems are kept beside the results, out of the repository. A second call computes what is missing; a change of the
package makes all rows stale.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from measures import calibration_error, mask_quality, roc_auc
from problems import Problem
from report import RESULTS, ROWS, about_this_run, append_row, markdown, package_digest, read_rows, shown
from suites import GROUPS, SUITES, members, problems
from variants import DEFAULT, FACTORS, NUMBERS, RULES, Variant, all_variants, run

MEASURES = {"f1": "F1", "auc": "AUC", "calibration": "calibration error"}
KEY = ["package", "variant", "suite", "problem", "seed"]
Task = tuple[str, str, int, int, frozenset[tuple[str, int]]]


def measured(problem: Problem, variant: Variant, seed: int) -> dict[str, float]:
    """Every measure of a variant on a problem."""
    start = time.process_time()
    result = run(variant, problem.points1, problem.points2, seed)
    milliseconds = 1e3 * (time.process_time() - start)
    judged = problem.judged
    wrong = problem.labels[judged] == 0
    return {
        "f1": mask_quality(result.inlier_mask[judged], ~wrong)["f1"],
        "auc": roc_auc(result.anomaly_scores[judged], wrong),
        "calibration": calibration_error(result.inlier_probabilities[judged], ~wrong),
        "ms": milliseconds,
    }


@lru_cache
def problems_of(suite: str, per_cell: int) -> list[Problem]:
    """A suite's problems, once in a process."""
    return list(problems([suite], "tune", per_cell))


def rows_of(task: Task) -> list[dict[str, Any]]:
    """Rows of one variant on one suite that are not there yet."""
    name, suite, per_cell, seeds, done = task
    variant, rows = all_variants()[name], []
    for problem, seed in product(problems_of(suite, per_cell), range(seeds)):
        title = f"{problem.suite}, {problem.name}"
        if (title, seed) not in done:
            key = dict(zip(KEY, (package_digest(), name, suite, title, seed), strict=True))
            rows.append(key | measured(problem, variant, seed))
    return rows


def compute(tasks: list[Task], n_jobs: int) -> Iterator[list[dict[str, Any]]]:
    """Rows of each task as it ends, in so many processes."""
    if n_jobs == 1:
        yield from map(rows_of, tasks)
        return
    # Not forked: threads of numerical libraries do not survive that.
    with ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(rows_of, task) for task in tasks]):
            yield future.result()


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """A line for each variant: paired differences to the default and their standard errors, in the mean over suites and for each suite.

    Suites are no sample, their problems are: the error of a mean over suites is that of the problems in them. The line of the default
    has its own means, the line "problems" how many there are.
    """
    means = rows.groupby(["variant", "suite", "problem"], sort=False)[list(MEASURES)].mean().unstack("variant")
    order, suites = list(dict.fromkeys(rows.variant)), list(dict.fromkeys(rows.suite))
    table = pd.DataFrame(index=["problems", *order])
    for field in MEASURES:
        values = means[field].reindex(columns=order)
        differences = values.sub(values[DEFAULT], axis=0)
        differences[DEFAULT] = values[DEFAULT]
        by_suite = differences.groupby("suite", sort=False)
        mean, error = by_suite.mean(), by_suite.sem()
        table[field] = mean.mean()
        table[f"{field} error"] = np.sqrt((error**2).sum()) / mean.notna().sum()
        for suite in suites if field == "f1" else ():
            table[suite], table[f"{suite} error"] = mean.loc[suite], error.loc[suite]
            table.loc["problems", suite] = by_suite.size()[suite]
    table.loc["problems", "f1"] = len(means)
    return table.rename_axis("variant")


def tables(found: pd.DataFrame) -> str:
    """The default's means, every variant's differences in the mean over suites, and those of F1 by suite."""
    suites = [name for name in found if f"{name} error" in found and name not in MEASURES]
    own = [["F1", *(shown(found.loc[DEFAULT, suite]) for suite in suites)]]
    own.append(["problems", *(f"{found.loc['problems', suite]:.0f}" for suite in suites)])
    parts, others = [markdown([DEFAULT, *suites], own)], found.drop(["problems", DEFAULT])
    for title, fields, digits in (("mean over suites", MEASURES, 4), ("F1", suites, 3)):
        lines = [
            [str(name), *(shown(row[field], digits, row[f"{field} error"], "+") for field in fields)]
            for name, row in others.iterrows()
        ]
        parts.append(markdown([f"minus default, {title}", *(MEASURES.get(field, field) for field in fields)], lines))
    return "\n\n".join(parts)


def number_table() -> str:
    """Every number of the method, with F1 minus the default's where it is halved and doubled, as far as it was measured."""
    path, lines = RESULTS / "ablation.csv", []
    found = pd.read_csv(path, index_col="variant") if path.exists() else pd.DataFrame(columns=["f1", "f1 error"])
    for name, number in NUMBERS.items():
        line = [f"`{name}`", number.shown, number.meaning]
        for word in FACTORS:
            variant = f"{name} {word}"
            row = found.loc[variant] if variant in found.index else None
            line.append("" if row is None else shown(row["f1"], 4, row["f1 error"], "+"))
        lines.append(line)
    return markdown(["number", "value", "meaning", "F1 minus the default's: halved", "doubled"], lines)


def chosen(names: list[str]) -> list[str]:
    """The default, and the variants whose name holds one of these texts; "rules" and "numbers" stand for themselves."""
    groups = {"rules": RULES, "numbers": all_variants().keys() - RULES.keys()}
    found = [
        variant
        for variant in all_variants()
        if any(variant in groups[name] if name in groups else name in variant for name in names)
    ]
    if not found:
        raise SystemExit(f"no variant has {', '.join(map(repr, names))} in its name")
    return list(dict.fromkeys([DEFAULT, *found]))


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--variants", nargs="+", default=["rules", "numbers"], help='parts of names, "rules", "numbers"'
    )
    parser.add_argument("--suites", nargs="+", default=["all"], choices=[*SUITES, *GROUPS])
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--seeds", type=int, default=1, help="repetitions of each problem")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--numbers", action="store_true", help="print the table of numbers and compute nothing")
    parser.add_argument("--print", action="store_true", help="leave `results` as it is")
    return parser.parse_args()


def main() -> None:
    """Compute what is missing, then print the tables of what was asked for."""
    options, path = arguments(), ROWS / "ablation.csv"
    if options.numbers:
        print(number_table())
        return
    names, suites = chosen(options.variants), members(options.suites)
    earlier = read_rows(path, KEY)
    earlier = earlier[earlier.package == package_digest()] if len(earlier) else earlier
    done = {
        key: frozenset(zip(own.problem, own.seed, strict=True)) for key, own in earlier.groupby(["variant", "suite"])
    }
    tasks = [
        (name, suite, options.per_cell, options.seeds, done.get((name, suite), frozenset()))
        for suite in suites  # a suite's problems are made once in each process
        for name in names
    ]
    for suite in suites:  # pictures are rendered here, once
        problems_of(suite, options.per_cell)
    for count, rows in enumerate(compute(tasks, options.n_jobs), 1):
        for row in rows:
            append_row(path, row)
        print(f"\r{count} of {len(tasks)}", end="", file=sys.stderr, flush=True)
    found = read_rows(path, KEY)
    found = found[found.package.eq(package_digest()) & found.variant.isin(names) & found.suite.isin(suites)]
    found = found[found.seed < options.seeds]
    found = found.sort_values("variant", key=lambda of: of.map(names.index), kind="stable")
    result = summary(found)
    if not options.print:
        result.to_csv(RESULTS / "ablation.csv", float_format="%.4f")
    print(about_this_run(), tables(result), sep="\n\n")


if __name__ == "__main__":
    main()
