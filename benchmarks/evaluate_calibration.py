"""Reliability: whether of matches with a probability as many are true, and whether as many of those kept are wrong as asked for.

For each suite: the calibration error, which is the mean over matches of how far the share of true ones is from the mean probability
in ten bins of this; and for each `false_discovery_rate` the share of wrong ones among those kept, beside the share that the
probabilities let expect, and how far the shares of single seeds are apart.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from measures import N_BINS, reliability
from problems import Problem
from report import RESULTS, about_this_run, markdown
from suites import GROUPS, SUITES, members
from variants import DEFAULT, RULES, run

RATES = (0.01, 0.05, 0.1)
BINS = [f"{name}{place}" for name in ("count", "sum", "true") for place in range(N_BINS)]


def measured(problem: Problem, options: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Sums over the judged matches of one problem."""
    variant, judged = replace(RULES[options.variant], model=options.model), problem.judged
    true = problem.labels[judged] > 0
    points = problem.points1, problem.points2
    probabilities = run(variant, *points, seed).inlier_probabilities[judged]
    row: dict[str, Any] = dict(zip(BINS, np.concatenate(reliability(probabilities, true)).tolist(), strict=True))
    for rate in RATES:
        kept = run(replace(variant, false_discovery_rate=rate), *points, seed).inlier_mask[judged]
        row |= {f"kept {rate}": kept.sum(), f"wrong {rate}": (kept & ~true).sum()}
        row[f"expected {rate}"] = (1.0 - probabilities[kept]).sum()
    return row


def collect(options: argparse.Namespace) -> pd.DataFrame:
    """A row for each problem and seed."""
    return pd.DataFrame(
        {
            "suite": suite,
            "problem": f"{problem.suite}, {problem.name}",
            "seed": seed,
            **measured(problem, options, seed),
        }
        for suite in members(options.suite)
        for problem in SUITES[suite](options.half, options.per_cell)
        for seed in range(options.seeds)
    )


def bins(rows: pd.DataFrame) -> pd.DataFrame:
    """For each suite and bin of probabilities: how many matches, their mean probability, and the share of true ones."""
    found = []
    for suite, own in rows.groupby("suite", sort=False):
        count, total, true = own[BINS].sum().to_numpy().reshape(3, N_BINS)
        for place in np.flatnonzero(count):
            found.append((suite, place, int(count[place]), total[place] / count[place], true[place] / count[place]))
    return pd.DataFrame(found, columns=["suite", "bin", "count", "probability", "true"])


def rates(rows: pd.DataFrame) -> pd.DataFrame:
    """For each suite and rate: the share of wrong ones, its standard error over problems, what is expected, and the range of seeds.

    The matches of one problem stand or fall together.
    """
    found = []
    for suite, own in rows.groupby("suite", sort=False):
        for rate in RATES:
            names = {f"{name} {rate}": name for name in ("kept", "wrong", "expected")}
            counts = own[["problem", "seed", *names]].rename(columns=names)
            kept, wrong, expected = counts[["kept", "wrong", "expected"]].sum()
            share = wrong / max(kept, 1)
            by_problem, by_seed = (counts.groupby(key)[["kept", "wrong"]].sum() for key in ("problem", "seed"))
            error = np.sqrt(((by_problem.wrong - share * by_problem.kept) ** 2).sum()) / max(kept, 1)
            spread = np.ptp(by_seed.wrong / by_seed.kept.clip(lower=1))
            found.append((suite, rate, share, error, expected / max(kept, 1), spread, int(kept)))
    columns = ["suite", "rate", "wrong", "standard_error", "expected", "range_of_seeds", "kept"]
    return pd.DataFrame(found, columns=columns)


def table(by_bin: pd.DataFrame, by_rate: pd.DataFrame) -> str:
    """A line for each suite."""
    lines = []
    for suite, own in by_bin.groupby("suite", sort=False):
        error = (own["count"] * (own.probability - own.true).abs()).sum() / own["count"].sum()
        line = [str(suite), f"{own['count'].sum()}", f"{error:.3f}"]
        for row in by_rate[by_rate.suite == suite].itertuples():
            seeds = "" if row.range_of_seeds == 0.0 else f", seeds within {row.range_of_seeds:.3f}"
            line.append(f"{row.wrong:.3f} ± {row.standard_error:.3f} (expected {row.expected:.3f}{seeds})")
        lines.append(line)
    header = ["suite", "matches", "calibration error"]
    return markdown([*header, *(f"wrong at {rate:g}" for rate in RATES)], lines)


def parts(argument: argparse.Namespace) -> Iterator[tuple[str, pd.DataFrame]]:
    """What is stored, by name."""
    rows = collect(argument)
    yield "calibration", bins(rows)
    yield "discovery", rates(rows)


def main() -> None:
    """Collect, print, store."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", nargs="+", default=["all"], choices=[*SUITES, *GROUPS])
    parser.add_argument("--half", default="tune", choices=["tune", "judge"])
    parser.add_argument("--per-cell", type=int, default=1, help="rendered problems of each mismatch rate and kind")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--model", default="auto", choices=["auto", "homography", "fundamental"])
    parser.add_argument("--variant", default=DEFAULT, choices=RULES, help="of the ablation")
    parser.add_argument("--store", action="store_true", help="write the CSVs of docs/benchmarks.md")
    options = parser.parse_args()
    found = dict(parts(options))
    if options.store:
        for name, part in found.items():
            part.to_csv(RESULTS / f"{name}_{options.half}.csv", index=False, float_format="%.5g")
    print(about_this_run(), table(found["calibration"], found["discovery"]), sep="\n\n")


if __name__ == "__main__":
    main()
