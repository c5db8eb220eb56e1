"""Calibration: the share of mismatches accepted at a nominal false acceptance rate, from `FilterResult.p_values`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import rendered
from problems import Problem
from report import RESULTS, about_this_run, markdown
from variants import DEFAULT, RULES, run

NOMINAL = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
SHOWN = (0.01, 0.05, 0.1)


def situations(half: str, per_cell: int) -> Iterator[tuple[str, Problem]]:
    """Problems grouped by how their mismatches came about."""
    for family in rendered.STRUCTURES:
        for problem in rendered.drawn(family, half, per_cell):
            yield f"{problem.settings['mismatches']} mismatches", problem
    for problem in rendered.repeated(half, per_cell):
        yield "repeated texture", problem
    for features in ("sift", "orb"):
        for problem in rendered.pictures(features, half, per_cell):
            yield f"natural {features.upper()} mismatches", problem


def collect(options: argparse.Namespace) -> pd.DataFrame:
    """For each problem and seed how many true mismatches there are, and how many have a p-value of at most each nominal rate."""
    variant, rows = replace(RULES[options.variant], model=options.model), []
    for situation, problem in situations(options.half, options.per_cell):
        wrong = problem.judged & (problem.labels == 0)
        for seed in range(options.seeds if wrong.any() else 0):
            p = run(variant, problem.points1, problem.points2, seed).p_values[wrong]
            accepted = {rate: np.sum(p <= rate) for rate in NOMINAL}
            rows.append({"mismatches": situation, "count": len(p), **accepted})
    return pd.DataFrame(rows)


def rates(rows: pd.DataFrame) -> pd.DataFrame:
    """Measured rates and their standard errors over problems: the mismatches of one problem stand or fall together."""
    found = []
    for situation, own in rows.groupby("mismatches", sort=False):
        for rate in NOMINAL:
            share = own[rate].sum() / own["count"].sum()
            error = np.sqrt(np.sum((own[rate] - share * own["count"]) ** 2)) / own["count"].sum()
            found.append((situation, rate, share, error, len(own), own["count"].sum()))
    return pd.DataFrame(found, columns=["mismatches", "nominal", "measured", "standard_error", "runs", "count"])


def table(found: pd.DataFrame) -> str:
    """Measured rates at the nominal ones, with how often they are off by a factor."""
    lines = []
    for situation, own in found.groupby("mismatches", sort=False):
        own = own.set_index("nominal")
        line = [str(situation), f"{own.runs.iloc[0]:.0f}", f"{own['count'].iloc[0]:.0f}"]
        cells = ((rate, own.loc[rate]) for rate in SHOWN)
        lines.append(
            [*line, *(f"{c.measured:.2%} ± {c.standard_error:.2%} ({c.measured / rate:.2f}x)" for rate, c in cells)]
        )
    return markdown(["mismatches", "runs", "count", *(f"nominal {rate:.0%}" for rate in SHOWN)], lines)


def main() -> None:
    """Collect, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--per-cell", type=int, default=1, help="problems of each family, mismatch rate and kind")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--model", default="auto", choices=["auto", "homography", "fundamental"])
    parser.add_argument("--variant", default=DEFAULT, choices=RULES, help="of the ablation")
    parser.add_argument("--store", action="store_true", help="write the CSV of docs/benchmarks.md")
    options = parser.parse_args()
    found = rates(collect(options))
    if options.store:
        found.to_csv(RESULTS / f"calibration_{options.half}.csv", index=False, float_format="%.5g")
    print(about_this_run(), table(found), sep="\n\n")


if __name__ == "__main__":
    main()
