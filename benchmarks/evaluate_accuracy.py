"""Accuracy of every method on every suite: tables in Markdown, and with `--store` the means that docs/benchmarks.md shows.

Rows of single problems are kept beside the results, out of the repository, and a second call computes what is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from estimators import ABSENT
from measures import label_error, mask_quality, refit_error, roc_auc
from peers import Peer, Verdict, all_peers
from problems import JUDGE_SEED, Problem
from report import RESULTS, ROWS, about_this_run, accuracy_table, append_row, by_rate, read_rows, summary
from suites import GROUPS, SUITES, problems

KEY = ["suite", "half", "problem", "method", "seed"]
INDEX = {"accuracy": ["suite", "half", "method"], "accuracy_by_rate": ["suite", "rate", "method"]}


def judge(problem: Problem, verdict: Verdict) -> dict[str, float]:
    """Every measure that applies; NaN where one does not."""
    judged, unknown = problem.judged, float("nan")
    true = problem.labels[judged] > 0
    row = mask_quality(verdict.mask[judged], true)
    row["auc"] = unknown if verdict.scores is None else roc_auc(verdict.scores[judged], ~true)
    row["label_error"] = row["refit_error"] = unknown
    if verdict.labels is not None:
        row["label_error"] = label_error(verdict.labels[judged], problem.labels[judged])
    if len(problem.models) == 1 and problem.exact1 is not None and problem.exact2 is not None:
        points = (problem.points1, problem.points2, verdict.mask)
        row["refit_error"] = refit_error(problem.kind, *points, problem.exact1, problem.exact2, problem.models[0])
    return row


def run_once(problem: Problem, peer: Peer, seed: int) -> dict[str, Any]:
    """What one method makes of a problem in the seed's order, timed."""
    shuffled = problem.shuffled(seed)
    start = time.perf_counter()
    verdict = peer(shuffled.points1, shuffled.points2, seed)
    milliseconds = 1e3 * (time.perf_counter() - start)
    told = {name: problem.settings.get(name, "") for name in ("rate", "mismatches")}
    return {"n": len(problem.labels), **told, **judge(shuffled, verdict), "ms": milliseconds}


def warm_up(peers: dict[str, Peer]) -> None:
    """Compile and import before the clock runs."""
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 500, (200, 2))
    points2 = np.where(np.arange(200)[:, None] < 120, points1 + 20, rng.uniform(0, 500, (200, 2)))
    for peer in peers.values():
        peer(points1, points2, 0)


def select(peers: dict[str, Peer], wanted: list[str]) -> dict[str, Peer]:
    """Methods by exact name, else by the beginning of their name; those that are absent here are left out."""
    chosen = {}
    for text in wanted:
        matches = [text] if text in peers else [name for name in peers if name.startswith(text)]
        if not matches:
            ABSENT.setdefault(text, "no such method here")
        chosen |= {name: peers[name] for name in matches}
    return chosen


def asked(options: argparse.Namespace, peers: dict[str, Peer]) -> Iterator[tuple[tuple[Any, ...], Problem, Peer]]:
    """Key, problem and method of all rows that belong to this run."""
    for half in ("tune", "judge") if options.half == "both" else (options.half,):
        first = JUDGE_SEED if half == "judge" else 0
        for problem in problems(options.suite, half, options.per_cell):
            for name, seed in product(peers, range(first, first + options.seeds)):
                yield (problem.suite, half, problem.name, name, seed), problem, peers[name]


def store(name: str, table: pd.DataFrame) -> None:
    """Put means in the place of the same suites' in `results`."""
    path = RESULTS / f"{name}.csv"
    if path.exists():
        earlier = pd.read_csv(path, index_col=INDEX[name])
        levels = [level for level in ("suite", "half") if level in INDEX[name]]
        new = set(table.reset_index()[levels].itertuples(index=False, name=None))
        keys = earlier.reset_index()[levels].itertuples(index=False, name=None)
        table = pd.concat([earlier[[key not in new for key in keys]], table])
    table.to_csv(path, float_format="%.5g")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", nargs="+", default=["adelaidermf"], choices=[*SUITES, *GROUPS])
    parser.add_argument("--half", default="tune", choices=["tune", "judge", "both"])
    parser.add_argument("--seeds", type=int, default=5, help="repetitions of each problem")
    parser.add_argument("--per-cell", type=int, default=2, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--methods", nargs="+", help="names or their beginnings; default all")
    parser.add_argument("--redo", nargs="+", default=[], metavar="METHOD", help="compute these methods' rows anew")
    parser.add_argument("--store", action="store_true", help="write the means into `results`")
    return parser.parse_args()


def main() -> None:
    """Compute what is missing, then print the tables of what was asked for."""
    options, path = arguments(), ROWS / "accuracy.csv"
    available = all_peers()
    peers = available if options.methods is None else select(available, options.methods)
    redo = select(available, options.redo)
    done = set(read_rows(path, KEY)[KEY].itertuples(index=False, name=None))
    warm_up(peers)
    answers = set()
    for count, (key, problem, peer) in enumerate(asked(options, peers), 1):
        answers.add(key[:3] + key[4:])
        if key not in done or key[3] in redo:
            append_row(path, dict(zip(KEY, key, strict=True)) | run_once(problem, peer, key[4]))
            print(f"\r{count} rows", end="", file=sys.stderr)
    if not answers:
        raise SystemExit(f"no problems in {', '.join(options.suite)}: are its files here?")
    rows = read_rows(path, KEY)
    # Methods that cannot run here have answered elsewhere, where their rows are kept.
    told = rows.method.isin(options.methods or peers) & pd.Series(
        [row[:3] + row[4:] in answers for row in rows[KEY].itertuples(index=False, name=None)], rows.index
    )
    rows = rows[told]
    found = summary(rows)
    if options.store:
        store("accuracy", found)
        if rows.rate.notna().any():
            store("accuracy_by_rate", by_rate(rows))
    print(about_this_run())
    for (suite, half), table in found.groupby(["suite", "half"], sort=False):
        title = f"{suite}, {half} half: {table.problems.iloc[0]} problems"
        print(f"\n### {title}\n\n{accuracy_table(table.droplevel(['suite', 'half']))}")


if __name__ == "__main__":
    main()
