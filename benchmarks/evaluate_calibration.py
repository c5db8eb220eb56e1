"""Calibration: the share of mismatches accepted at a nominal false acceptance rate, from `FilterResult.p_values`."""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import rendered
from numpy.typing import NDArray
from problems import Problem
from report import about_this_run, markdown
from variants import CHANGES, DEFAULT, RULES, changed

from ruzhash_cv import filter_points

NOMINAL = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHOWN = (0.01, 0.05, 0.1)
Samples = dict[str, list[NDArray[np.float64]]]


def situations(half: str, per_cell: int) -> Iterator[tuple[str, Problem]]:
    """Problems grouped by how their mismatches came about."""
    for family in rendered.STRUCTURES:
        for problem in rendered.drawn(family, half, per_cell):
            yield f"{problem.settings['mismatches']} mismatches", problem
    for problem in rendered.repeated(half, per_cell):
        yield "repeated texture", problem
    for features in ("sift", "orb"):
        for problem in rendered.photographed(features, half, per_cell):
            yield f"natural {features.upper()} mismatches", problem


def collect(half: str, per_cell: int, seeds: int, model: str) -> Samples:
    """p-values of the true mismatches of each situation, one array per problem and seed."""
    found: Samples = defaultdict(list)
    for situation, problem in situations(half, per_cell):
        wrong = problem.judged & (problem.labels == 0)
        for seed in range(seeds):
            result = filter_points(problem.points1, problem.points2, model=model, rng=seed)
            if wrong.any():
                found[situation].append(np.asarray(result.p_values)[wrong])
    return found


def accepted(samples: list[NDArray[np.float64]], nominal: float) -> tuple[float, float]:
    """Share of all mismatches with p <= `nominal`, and its standard error over problems."""
    kept = np.array([np.sum(p <= nominal) for p in samples], dtype=float)
    count = np.array([len(p) for p in samples], dtype=float)
    share = kept.sum() / count.sum()
    # Ratio estimator: the mismatches of one problem stand or fall together.
    error = np.sqrt(np.sum((kept - share * count) ** 2)) / count.sum()
    return float(share), float(error)


def table(found: Samples) -> str:
    """Measured rates at the nominal ones, with how often they are off by a factor."""
    lines = []
    for situation, samples in found.items():
        line = [situation, str(len(samples)), str(sum(len(p) for p in samples))]
        for nominal in SHOWN:
            share, error = accepted(samples, nominal)
            line.append(f"{share:.2%} ± {error:.2%} ({share / nominal:.2f}x)")
        lines.append(line)
    return markdown(["mismatches", "runs", "count", *(f"nominal {nominal:.0%}" for nominal in SHOWN)], lines)


def write(found: Samples, path: Path) -> None:
    """One row for each situation and nominal rate."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["mismatches", "nominal", "measured", "standard_error", "runs", "count"])
        for situation, samples in found.items():
            for nominal in NOMINAL:
                share, error = accepted(samples, nominal)
                runs, count = len(samples), sum(len(p) for p in samples)
                writer.writerow([situation, nominal, f"{share:.5g}", f"{error:.5g}", runs, count])


def main() -> None:
    """Collect, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--per-cell", type=int, default=1, help="problems of each family, mismatch rate and kind")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--model", default="auto", choices=["auto", "homography", "fundamental"])
    parser.add_argument("--variant", default=DEFAULT, choices=CHANGES, help="of the ablation; nothing is stored")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    with changed(RULES[options.variant]):
        found = collect(options.half, options.per_cell, options.seeds, options.model)
    if options.variant == DEFAULT:
        options.output.mkdir(parents=True, exist_ok=True)
        write(found, options.output / f"calibration_{options.half}.csv")
    print(about_this_run({}), table(found), sep="\n\n")


if __name__ == "__main__":
    main()
