"""Time and memory of every method against the number of matches: medians warm, first calls apart, in a CSV."""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from peers import ABSENT, all_peers
from report import OURS, about_this_run, markdown
from timing_problem import timing_problem
from verdict import Peer

SIZES = (100, 300, 1000, 2084, 5000, 10_000, 50_000)
METHODS = (
    OURS,
    "H USAC_MAGSAC",
    "F USAC_MAGSAC",
    "sequential H USAC_MAGSAC 12 px",
    "H poselib",
    "sequential H poselib",
    "LPM",
    "AdaLAM",
)
LONGEST = 10.0
"""Seconds; a method that took longer at one size is not run on larger ones."""
MOST_MEGABYTES = 10_000.0
"""Nor is one that would need more at the next size, were its memory to grow with the square of it."""
Row = dict[str, Any]


def warm_medians(peers: list[Peer], n: int, repeats: int) -> dict[str, float]:
    """Median milliseconds of the calls after the first, fewer where they are long.

    The methods in turn, so that a machine whose speed changes changes it for all.
    """
    points1, points2 = timing_problem(n)
    times: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for seed in range(repeats + 1):
        for peer in peers:
            own = times[peer.name]
            if sum(own) > LONGEST and len(own) > 1:
                continue
            start = time.perf_counter()
            peer(points1, points2, seed)
            own.append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(own[1:])) for name, own in times.items()}


def fresh_process(name: str, n: int) -> dict[str, float]:
    """First call's time and peak memory, in a process of its own."""
    script = Path(__file__).with_name("time_one_call.py")
    done = subprocess.run([sys.executable, str(script), name, str(n)], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(peers: list[Peer], sizes: list[int], repeats: int) -> list[Row]:
    """One row for each method and size that it finishes in reasonable time, method by method."""
    rows: list[Row] = []
    left = list(peers)
    for n, following in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        warm, able = warm_medians(left, n, repeats), []
        for peer in left:
            fresh = fresh_process(peer.name, n)
            row = {"method": peer.name, "n": n, "warm_ms": warm[peer.name], **fresh}
            rows.append({key: f"{value:.4g}" if isinstance(value, float) else value for key, value in row.items()})
            print(rows[-1], file=sys.stderr)
            if warm[peer.name] <= 1e3 * LONGEST and not fresh["extra_mb"] * (following / n) ** 2 > MOST_MEGABYTES:
                able.append(peer)
        left = able
    return [row for peer in peers for row in rows if row["method"] == peer.name]


def exponent(rows: list[Row]) -> float:
    """Slope of log time over log n, from 1,000 matches on."""
    large = [row for row in rows if row["n"] >= 1000]
    if len(large) < 2:
        return float("nan")
    n, t = ([float(row[key]) for row in large] for key in ("n", "warm_ms"))
    return float(np.polyfit(np.log(n), np.log(t), 1)[0])


def table(rows: list[Row], sizes: list[int]) -> str:
    """Warm medians with the ratio to this package, first call, memory and exponent of each method."""
    warm = {(row["method"], row["n"]): float(row["warm_ms"]) for row in rows}
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        line = [method]
        for n in sizes:
            ratio = f" ({warm[method, n] / warm[OURS, n]:.2g}x)" if {(method, n), (OURS, n)} <= warm.keys() else ""
            line.append(f"{warm[method, n]:.3g}{ratio}" if (method, n) in warm else "")
        line += [str(own[0]["cold_ms"]), str(own[-1]["extra_mb"]), f"{exponent(own):.2f}"]
        lines.append(line)
    header = [
        "method, warm ms at n =",
        *(f"{n:,}" for n in sizes),
        "first call, ms",
        "extra MB at its largest n",
        "exponent",
    ]
    return markdown(header, lines)


def main() -> None:
    """Time, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    peers = all_peers()
    for name in options.methods:
        if name not in peers:
            ABSENT.setdefault(name, "no such method here")
    rows = measure([peers[name] for name in options.methods if name in peers], options.sizes, options.repeats)
    options.output.mkdir(parents=True, exist_ok=True)
    with (options.output / "time.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(about_this_run(ABSENT), table(rows, options.sizes), sep="\n\n")


if __name__ == "__main__":
    main()
