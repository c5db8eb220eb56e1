"""Two checkouts of the package on the same problems and seeds: paired differences of accuracy, and times taken in turn.

    python benchmarks/compare_versions.py ../before . --half judge --suites adelaidermf fresh --seeds 0 1
    python benchmarks/compare_versions.py ../before . --sizes 300 1000 2084 5000 10000 50000

With `--sizes` times alone, on problems of so many matches.

The problems come from this checkout. Each version runs in a process of its own, on one thread, and the two answer each problem in turn.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from geometry import Points
from measures import mask_quality, paired_difference, roc_auc
from problems import Problem
from report import about_this_run, markdown
from suites import GROUPS, SUITES, problems
from timing_problem import timing_problem

MEASURES = ("f1", "auc")
# By suite and measure, and by problem, the means over seeds of either version.
Found = dict[tuple[str, str], list[tuple[float, float]]]


class Version:
    """One checkout, in a process of its own."""

    def __init__(self, root: Path) -> None:
        script = Path(__file__).with_name("one_version.py")
        command = [sys.executable, str(script), str(root)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, problem: Problem, seed: int) -> dict[str, float]:
        """F1, AUC and milliseconds of processor time."""
        mask, scores, seconds = self.answer(problem.points1, problem.points2, seed)
        judged = problem.judged
        true = problem.labels[judged] > 0
        return {
            "f1": mask_quality(mask[judged], true)["f1"],
            "auc": roc_auc(scores[judged], ~true),
            "ms": 1e3 * seconds,
        }

    def answer(self, points1: Points, points2: Points, seed: int) -> tuple[Any, Any, float]:
        """Mask, scores and seconds of processor time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump((points1, points2, seed), self._process.stdin)
        self._process.stdin.flush()
        try:
            found: tuple[Any, Any, float] = pickle.load(self._process.stdout)
        except EOFError:
            raise SystemExit(f"a version ended with code {self._process.wait()} on {len(points1)} matches") from None
        return found

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def of_problem(versions: list[Version], problem: Problem, seeds: list[int]) -> dict[str, tuple[float, float]]:
    """Each measure of both versions, the mean over seeds; the versions in turn."""
    rows = [[version(problem, seed) for version in versions] for seed in seeds]
    return {
        field: (
            float(np.mean([first[field] for first, _ in rows])),
            float(np.mean([second[field] for _, second in rows])),
        )
        for field in (*MEASURES, "ms")
    }


def compare(versions: list[Version], found: Iterator[tuple[str, Problem]], seeds: list[int]) -> Found:
    """All measures of both versions on all problems."""
    values: Found = defaultdict(list)
    for count, (suite, problem) in enumerate(found, 1):
        if count == 1:  # kernels are loaded before the clock runs
            of_problem(versions, problem, seeds[:1])
        for field, pair in of_problem(versions, problem, seeds).items():
            # Without matches of both kinds there is no AUC.
            if np.isfinite(pair).all():
                values[suite, field].append(pair)
        print(f"\r{count} problems", end="", file=sys.stderr)
    print(file=sys.stderr)
    return values


def times(versions: list[Version], sizes: list[int], turns: int) -> str:
    """Milliseconds of both versions on the timing problem, a line for each size, and the quotients of what ran side by side."""
    lines = []
    for n in sizes:
        points1, points2 = timing_problem(n)
        taken = [[1e3 * version.answer(points1, points2, 0)[2] for version in versions] for _ in range(turns + 2)]
        warm = np.array(taken[2:])
        quotients = np.quantile(warm[:, 1] / warm[:, 0], [0.25, 0.5, 0.75])
        lines.append([str(n), *(f"{part:.2f}" for part in np.median(warm, axis=0)), *(f"{q:.3f}" for q in quotients)])
    return markdown(["matches", "median ms of A", "of B", "B / A, lower quartile", "median", "upper quartile"], lines)


def table(values: Found) -> str:
    """One line for each suite, and the mean over suites."""
    suites = list(dict.fromkeys(suite for suite, _ in values))
    lines, differences = [], defaultdict(list)
    for suite in suites:
        line = [suite, str(len(values[suite, "f1"]))]
        for field in MEASURES:
            first, second = np.array(values[suite, field]).reshape(-1, 2).T
            differences[field].append(paired_difference(second, first))
            means = (f"{part.mean():.4f}" if len(part) else "" for part in (first, second))
            line += [*means, "{:+.4f} ± {:.4f}".format(*differences[field][-1])]
        line += [f"{time:.1f}" for time in np.median(np.array(values[suite, "ms"]), axis=0)]
        lines.append(line)
    line = ["mean over suites", str(sum(len(values[suite, "f1"]) for suite in suites))]
    for field in MEASURES:
        mean, error = np.array(differences[field]).T
        known = np.isfinite(mean)
        # Suites are no sample, their problems are.
        overall = mean[known].mean(), np.sqrt(np.sum(error[known] ** 2)) / known.sum()
        line += ["", "", "{:+.4f} ± {:.4f}".format(*overall)]
    times = np.median(np.vstack([values[suite, "ms"] for suite in suites]), axis=0)
    lines.append([*line, *(f"{time:.1f}" for time in times)])
    header = ["suite", "problems", "F1 of A", "of B", "B - A", "AUC of A", "of B", "B - A", "median ms of A", "of B"]
    return markdown(header, lines)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root_a", type=Path, metavar="ROOT_A", help="the directory that holds ruzhash_cv")
    parser.add_argument("root_b", type=Path, metavar="ROOT_B")
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
    suites = dict.fromkeys(suite for name in options.suites for suite in GROUPS.get(name, (name,)))
    found = ((suite, problem) for suite in suites for problem in problems([suite], options.half, options.per_cell))
    versions = [Version(root) for root in (options.root_a, options.root_b)]
    try:
        sizes, turns = options.sizes, options.turns
        told = times(versions, sizes, turns) if sizes else table(compare(versions, found, options.seeds))
    finally:
        for version in versions:
            version.close()
    print(about_this_run({}), told, sep="\n\n")


if __name__ == "__main__":
    main()
