"""Two checkouts of the package on the same problems and seeds: paired differences of accuracy, and times taken in turn.

    python benchmarks/compare_versions.py ../before . --half judge --suites adelaidermf fresh --seeds 0 1
    python benchmarks/compare_versions.py ../before . --sizes 300 1000 2084 5000 10000 50000

With `--sizes` times alone, on problems of so many matches. The problems come from this checkout. Each version runs in a process of its
own, and the two answer each problem in turn; times are of the processor, all threads together.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from geometry import Points
from measures import mask_quality, paired_difference, roc_auc
from problems import Problem, four_planes
from report import about_this_run, markdown, shown
from suites import GROUPS, SUITES, members, problems

MEASURES = {"f1": "F1", "auc": "AUC"}


class Version:
    """One checkout, in a process of its own."""

    def __init__(self, root: Path) -> None:
        command = [sys.executable, str(Path(__file__).with_name("one_version.py")), str(root)]
        environment = {**os.environ, "PYTHONPATH": str(root.resolve())}
        pipe = subprocess.PIPE
        self._process: Any = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment)

    def answer(self, points1: Points, points2: Points, seed: int) -> tuple[Any, Any, float]:
        """Mask, scores and seconds of processor time."""
        pickle.dump((points1, points2, seed), self._process.stdin)
        self._process.stdin.flush()
        try:
            found: tuple[Any, Any, float] = pickle.load(self._process.stdout)
        except EOFError:
            raise SystemExit(f"a version ended with code {self._process.wait()} on {len(points1)} matches") from None
        return found

    def measure(self, problem: Problem, seed: int) -> dict[str, float]:
        """F1, AUC and milliseconds."""
        mask, scores, seconds = self.answer(problem.points1, problem.points2, seed)
        judged = problem.judged
        true = problem.labels[judged] > 0
        f1, auc = mask_quality(mask[judged], true)["f1"], roc_auc(scores[judged], ~true)
        return {"f1": f1, "auc": auc, "ms": 1e3 * seconds}

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


def compare(versions: dict[str, Version], found: Iterator[tuple[str, Problem]], seeds: list[int]) -> pd.DataFrame:
    """Rows of both versions on all problems, means over seeds."""
    rows = []
    for number, (suite, problem) in enumerate(found):
        for version in versions.values() if number == 0 else ():  # kernels are loaded before the clock runs
            version.measure(problem, seeds[0])
        for seed in seeds:
            for name, version in versions.items():
                key = {"suite": suite, "problem": f"{problem.suite}, {problem.name}", "version": name}
                rows.append(key | version.measure(problem, seed))
        print(f"\r{number + 1} problems", end="", file=sys.stderr)
    return pd.DataFrame(rows).groupby(["suite", "problem", "version"], sort=False).mean().unstack("version")


def table(means: pd.DataFrame) -> str:
    """One line for each suite, and the mean over suites: suites are no sample, their problems are."""
    lines, differences = [], {field: [] for field in MEASURES}
    for suite, own in means.groupby("suite", sort=False):
        line = [str(suite), str(len(own))]
        for field, found in differences.items():
            pairs = own[field].dropna()  # without matches of both kinds there is no AUC
            found.append(paired_difference(pairs.B.to_numpy(), pairs.A.to_numpy()))
            line += [shown(pairs.A.mean(), 4), shown(pairs.B.mean(), 4), shown(*_told(found[-1]))]
        lines.append([*line, *(f"{own.ms[name].median():.1f}" for name in "AB")])
    line = ["mean over suites", str(len(means))]
    for found in differences.values():
        mean, error = np.array(found)[np.isfinite(np.array(found)[:, 0])].T
        line += ["", "", shown(*_told((mean.mean(), np.sqrt(np.nansum(error**2)) / len(mean))))]
    lines.append([*line, *(f"{means.ms[name].median():.1f}" for name in "AB")])
    header = [text for name in MEASURES.values() for text in (f"{name} of A", "of B", "B - A")]
    return markdown(["suite", "problems", *header, "median ms of A", "of B"], lines)


def _told(difference: tuple[float, float]) -> tuple[float, int, float, str]:
    return difference[0], 4, difference[1], "+"


def speeds(versions: dict[str, Version], sizes: list[int], turns: int) -> str:
    """Milliseconds of both versions, a line for each size, and the quotients of what ran side by side."""
    lines = []
    for n in sizes:
        points = four_planes(n)
        taken = [[1e3 * version.answer(*points, 0)[2] for version in versions.values()] for _ in range(turns + 2)]
        warm = np.array(taken[2:])
        quotients = np.quantile(warm[:, 1] / warm[:, 0], [0.25, 0.5, 0.75])
        lines.append([str(n), *(f"{part:.2f}" for part in np.median(warm, axis=0)), *(f"{q:.3f}" for q in quotients)])
    return markdown(["matches", "median ms of A", "of B", "B / A, lower quartile", "median", "upper quartile"], lines)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "roots", type=Path, nargs=2, metavar="ROOT", help="A and B: the directories that hold ruzhash_cv"
    )
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--suites", nargs="+", default=["all"], choices=[*SUITES, *GROUPS])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--sizes", nargs="+", type=int, default=[], help="numbers of matches, for times alone")
    parser.add_argument("--turns", type=int, default=101, help="calls of each size by each version")
    return parser.parse_args()


def main() -> None:
    """Compare and print."""
    options = arguments()
    found = (
        (suite, problem)
        for suite in members(options.suites)
        for problem in problems([suite], options.half, options.per_cell)
    )
    versions = dict(zip("AB", map(Version, options.roots), strict=True))
    try:
        told = speeds(versions, options.sizes, options.turns) if options.sizes else ""
        told = told or table(compare(versions, found, options.seeds))
    finally:
        for version in versions.values():
            version.close()
    print(about_this_run(), told, sep="\n\n")


if __name__ == "__main__":
    main()
