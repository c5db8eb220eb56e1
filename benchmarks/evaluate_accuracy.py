"""Accuracy of every method on every suite: one CSV row per problem, method and seed, and tables in Markdown."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from measures import label_error, mask_quality, refit_error, roc_auc
from peers import ABSENT, all_peers
from problems import JUDGE_SEED, Problem
from report import about_this_run, accuracy_tables
from suites import GROUPS, SUITES, problems
from verdict import Peer, Verdict

# fmt: off
FIELDS = (
    "suite", "half", "problem", "method", "seed", "n", "judged", "mismatch_rate", "structures", "rate", "noise",
    "mismatches", "precision", "recall", "f1", "balanced_accuracy", "auc", "label_error", "refit_error", "ms",
)
# fmt: on
KEY = ("suite", "half", "problem", "method", "seed")


def judge(problem: Problem, verdict: Verdict) -> dict[str, float]:
    """Every measure that applies; NaN where one does not."""
    judged = problem.judged
    true = problem.labels[judged] > 0
    row = mask_quality(verdict.mask[judged], true)
    unknown = float("nan")
    row["auc"] = unknown if verdict.scores is None else roc_auc(verdict.scores[judged], ~true)
    row["label_error"] = unknown
    if verdict.labels is not None:
        row["label_error"] = label_error(verdict.labels[judged], problem.labels[judged])
    row["refit_error"] = unknown
    if len(problem.models) == 1 and problem.exact1 is not None and problem.exact2 is not None:
        points = (problem.points1, problem.points2, verdict.mask)
        row["refit_error"] = refit_error(problem.kind, *points, problem.exact1, problem.exact2, problem.models[0])
    return row


def run_once(problem: Problem, half: str, peer: Peer, seed: int) -> dict[str, Any]:
    """One row: the problem in the seed's order, one method, timed."""
    shuffled = problem.shuffled(seed)
    start = time.perf_counter()
    verdict = peer(shuffled.points1, shuffled.points2, seed)
    milliseconds = 1e3 * (time.perf_counter() - start)
    structures = len(np.unique(problem.labels[problem.labels > 0]))
    row: dict[str, Any] = {"suite": problem.suite, "half": half, "problem": problem.name, "method": peer.name}
    row |= {"seed": seed, "n": len(problem.labels), "judged": int(problem.judged.sum()), "structures": structures}
    row |= {"mismatch_rate": problem.mismatch_rate, "rate": "", "noise": "", "mismatches": "", **problem.settings}
    row |= judge(shuffled, verdict)
    row["ms"] = milliseconds
    return {name: f"{value:.5g}" if isinstance(value, float) else value for name, value in row.items()}


def key_of(row: dict[str, Any]) -> tuple[str, ...]:
    """What makes two rows the same measurement."""
    return tuple(str(row[name]) for name in KEY)


def read_rows(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """Rows of earlier runs, none if there were none; a later row replaces an earlier one of the same key."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {key_of(row): row for row in csv.DictReader(file)}


def write_rows(path: Path, rows: Iterable[dict[str, Any]], mode: str) -> None:
    """Write rows as they come: all of them with a header ("w"), or more ("a")."""
    with path.open(mode, newline="", buffering=1) as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if mode == "w":
            writer.writeheader()
        for count, row in enumerate(rows, 1):
            writer.writerow(row)
            if mode == "a" and count % 20 == 0:
                print(f"\r{count} rows", end="", file=sys.stderr)


def warm_up(peers: list[Peer]) -> None:
    """Compile and import before the clock runs."""
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 500, (200, 2))
    points2 = np.where(np.arange(200)[:, None] < 120, points1 + 20, rng.uniform(0, 500, (200, 2)))
    for peer in peers:
        peer(points1, points2, 0)


def missing_rows(
    options: argparse.Namespace, peers: list[Peer], done: set[tuple[str, ...]], asked: set[tuple[str, ...]]
) -> Iterator[dict[str, Any]]:
    """Rows not computed yet; `asked` collects the keys of all that belong to this run."""
    for half in ("tune", "judge") if options.half == "both" else (options.half,):
        first = JUDGE_SEED if half == "judge" else 0
        for problem in problems(options.suite, half, options.per_cell):
            for peer, seed in product(peers, range(first, first + options.seeds)):
                key = (problem.suite, half, problem.name, peer.name, str(seed))
                asked.add(key)
                if key not in done:
                    yield run_once(problem, half, peer, seed)


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--suite", nargs="+", default=["adelaidermf"], choices=[*SUITES, *GROUPS])
    parser.add_argument("--half", default="tune", choices=["tune", "judge", "both"])
    parser.add_argument("--seeds", type=int, default=5, help="repetitions of each problem")
    parser.add_argument("--per-cell", type=int, default=2, help="rendered problems per mismatch rate and kind")
    parser.add_argument("--methods", nargs="+", help="names or their beginnings; default all")
    parser.add_argument("--redo", nargs="+", default=[], metavar="METHOD", help="compute these methods' rows anew")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "results")
    return parser.parse_args()


def select(peers: dict[str, Peer], wanted: list[str] | None) -> list[Peer]:
    """Methods by exact name, else by the beginning of their name."""
    if wanted is None:
        return list(peers.values())
    chosen = {}
    for text in wanted:
        matches = [text] if text in peers else [name for name in peers if name.startswith(text)]
        if not matches:
            raise SystemExit(f"no method {text!r}; there are: {', '.join(peers)}; absent: {ABSENT}")
        chosen |= {name: peers[name] for name in matches}
    return list(chosen.values())


def main() -> None:
    """Compute what is missing, then print the tables of what was asked for."""
    options = arguments()
    available = all_peers()
    peers = select(available, options.methods)
    redo = {peer.name for peer in select(available, options.redo)} if options.redo else set()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "accuracy.csv"
    earlier = read_rows(path)
    write_rows(path, earlier.values(), "w")
    done = {key for key, row in earlier.items() if row["method"] not in redo}
    asked: set[tuple[str, ...]] = set()
    warm_up(peers)
    write_rows(path, missing_rows(options, peers, done, asked), "a")
    everything = read_rows(path)
    write_rows(path, everything.values(), "w")
    rows = [row for key, row in everything.items() if key in asked]
    print(about_this_run(ABSENT), accuracy_tables(rows, {peer.name: peer.tuned for peer in peers}), sep="\n\n")


if __name__ == "__main__":
    main()
