"""Time and memory of every method over the number of matches: medians warm, first calls, peaks.

python benchmarks/times.py filter --store    # writes the CSV of docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from methods import LINES, OURS, Method, mask_methods
from problems import Problem, four_planes
from report import ABSENT, RESULTS, about_this_run, markdown

SIZES = (100, 300, 1000, 2084, 5000, 10_000, 50_000)
LONGEST = 10.0
"""Seconds; a method that took longer at one size is not run on larger ones."""
MOST_MEGABYTES = 10_000.0
"""Nor is one that would need more at the next size, were its memory to grow with the square of it."""


def timed_problem(n: int) -> Problem:
    """Four planes as a problem without truth."""
    return Problem(str(n), "four planes", "homography", *four_planes(n), np.ones(n, np.intp), np.ones(n, bool))


def warm_medians(peers: dict[str, Method], n: int, repeats: int) -> dict[str, float]:
    """Median milliseconds of the calls after the first, fewer where they are long.

    The methods in turn, so that a machine whose speed changes changes it for all.
    """
    problem = timed_problem(n)
    taken: dict[str, list[float]] = {name: [] for name in peers}
    for seed in range(repeats + 1):
        for name, peer in peers.items():
            if sum(taken[name]) > LONGEST and len(taken[name]) > 1:
                continue
            start = time.perf_counter()
            peer(problem, seed)
            taken[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(own[1:])) for name, own in taken.items()}


def memory(field: str) -> float:
    """Megabytes of this process: VmRSS (now) or VmHWM (peak); NaN where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(field)), float("nan"))


def one_call(name: str, n: int) -> dict[str, float]:
    """First call's time and peak memory, of this process."""
    peer, problem = mask_methods()[name], timed_problem(n)
    before = memory("VmRSS")
    forget = Path("/proc/self/clear_refs")
    if forget.exists():  # the peak starts from here: what the imports took is no cost of the method
        forget.write_text("5")
    start = time.perf_counter()
    peer(problem, 0)
    return {"cold_ms": 1e3 * (time.perf_counter() - start), "extra_mb": memory("VmHWM") - before}


def over_sizes(peers: dict[str, Method], sizes: list[int], repeats: int) -> pd.DataFrame:
    """One row for each method and size that it finishes in reasonable time, method by method."""
    rows, left = [], dict(peers)
    for n, following in zip(sizes, [*sizes[1:], sizes[-1]], strict=True):
        warm = warm_medians(left, n, repeats)
        for name in list(left):
            command = [sys.executable, __file__, "once", name, str(n)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            rows.append({"method": name, "n": n, "warm_ms": warm[name], **json.loads(done.stdout.splitlines()[-1])})
            print(rows[-1], file=sys.stderr)
            if warm[name] > 1e3 * LONGEST or rows[-1]["extra_mb"] * (following / n) ** 2 > MOST_MEGABYTES:
                del left[name]
    return pd.DataFrame(rows).sort_values("method", key=lambda of: of.map(list(peers).index), kind="stable")


def table(rows: pd.DataFrame) -> str:
    """Warm medians with the ratio to this package, first call, memory, and the exponent of n from 1,000 matches on."""
    warm = rows.pivot(index="method", columns="n", values="warm_ms")
    lines = []
    for method, own in rows.groupby("method", sort=False):
        cells = ((warm.loc[method, n], warm.loc[OURS, n]) for n in warm)
        line = ["" if np.isnan(ms) else f"{ms:.3g} ({ms / ours:.2g}x)" for ms, ours in cells]
        large = own[own.n >= 1000]
        slope = np.polyfit(np.log(large.n), np.log(large.warm_ms), 1)[0] if len(large) > 1 else float("nan")
        lines.append([str(method), *line, f"{own.cold_ms.iloc[0]:.4g}", f"{own.extra_mb.iloc[-1]:.4g}", f"{slope:.2f}"])
    header = ["method, warm ms at n =", *(f"{n:,}" for n in warm)]
    return markdown([*header, "first call, ms", "extra MB at its largest n", "exponent"], lines)


def filter_times(options: argparse.Namespace) -> None:
    """Time, print, store."""
    peers = mask_methods()
    ABSENT.update({name: "no such method here" for name in options.methods if name not in peers and name not in ABSENT})
    rows = over_sizes({name: peers[name] for name in options.methods if name in peers}, options.sizes, options.repeats)
    if options.store:
        rows.to_csv(RESULTS / "time.csv", index=False, float_format="%.4g")
    print(about_this_run(), table(rows), sep="\n\n")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    of_filter = kinds.add_parser("filter")
    of_filter.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    of_filter.add_argument("--repeats", type=int, default=9)
    of_filter.add_argument("--methods", nargs="+", default=list(LINES))
    of_filter.add_argument("--store", action="store_true", help="write the CSV of docs/benchmarks.md")
    once = kinds.add_parser("once", help="one method in this process, which `filter` starts for each")
    once.add_argument("method")
    once.add_argument("n", type=int)
    options: Any = parser.parse_args()
    if options.kind == "once":
        print(json.dumps(one_call(options.method, options.n)))
        return
    filter_times(options)


if __name__ == "__main__":
    main()
