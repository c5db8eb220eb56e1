"""Times: of every method over the number of matches, of imports and first calls, and of two versions in turn.

python benchmarks/times.py filter          # medians warm, first calls, memory; `--store` writes the CSV of docs/benchmarks.md
python benchmarks/times.py cold            # import, first calls with and without a cache of kernels
python benchmarks/times.py turn ../before .    # two checkouts in turn
python benchmarks/times.py pairs           # filter_pairs beside a loop; needs joblib, and dask[distributed] for its engine "dask"
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from geometry import Points
from methods import LINES, OURS, Method, mask_methods
from problems import Problem, four_planes
from report import ABSENT, RESULTS, about_this_run, markdown

# --- One call over the number of matches.

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


# --- Imports and first calls.

TIMED = """
import json, time
start, cpu = time.perf_counter(), time.process_time()
{code}
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, {extra}]))
"""
DEPENDENCIES = "import numpy, cv2, scipy.sparse, scipy.spatial, numba"
IMPORT = "from ruzhash_cv import filter_points"
COUNTED = """from numba.core.event import install_recorder
context = install_recorder("numba:compile")
recorder = context.__enter__()
"""
COUNT = "sum(event.is_start for _, event in recorder.buffer)"
POINTS = """import numpy as np
from ruzhash_cv import filter_points
points = np.random.default_rng(0).uniform(0, 500, (300, 2))
"""


def fresh(code: str, before: str = "", extra: str = "0", **environment: str) -> list[float]:
    """Seconds on the clock, seconds of processor time, and `extra`, of code in a fresh process."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", before + TIMED.format(code=code, extra=extra)]
    done = subprocess.run(command, env=inherited | environment, stdout=subprocess.PIPE, text=True, check=True)
    measured: list[float] = json.loads(done.stdout)
    return measured


def cold_times(options: argparse.Namespace) -> None:
    """Print what the import costs beyond its dependencies', medians of pairs in turn, and what first calls cost."""
    pairs = [(fresh(DEPENDENCIES), fresh(f"{DEPENDENCIES}\n{IMPORT}")) for _ in range(options.pairs)]
    for column, kind in ((0, "clock"), (1, "processor")):
        base, both = (1e3 * statistics.median(pair[part][column] for pair in pairs) for part in range(2))
        beyond = 1e3 * statistics.median(pair[1][column] - pair[0][column] for pair in pairs)
        print(f"{kind} ms: dependencies {base:.0f}, with ruzhash_cv {both:.0f}, beyond {beyond:+.0f}")
    compiled = fresh(IMPORT, f"{DEPENDENCIES}\n{COUNTED}", COUNT)[2]
    print(f"kernels compiled at import: {compiled:.0f}")
    for names in (("empty cache", "filled cache"), ("after warmup",)):
        with tempfile.TemporaryDirectory() as cache:
            if names == ("after warmup",):
                command = [sys.executable, "-m", "ruzhash_cv", "warmup"]
                subprocess.run(command, env={**os.environ, "NUMBA_CACHE_DIR": cache}, check=True)
            for name in names:
                call = "filter_points(points, points + 5.0)"
                clock, processor, compiled = fresh(call, POINTS + COUNTED, COUNT, NUMBA_CACHE_DIR=cache)
                n_files = sum(1 for path in Path(cache).rglob("*") if path.is_file())
                told = f"{clock:.2f} s on the clock, {processor:.2f} s of the processor, {compiled:.0f} compilations"
                print(f"first call, {name}: {told}, {n_files} files in the cache")


# --- Two versions.

#: Answers pickled points with processor seconds of a call, until the input ends. What anybody prints goes to the standard error.
SERVER = """
import os, pickle, sys, time
output = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)
from ruzhash_cv import filter_points
while True:
    try:
        points = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    start = time.process_time()
    filter_points(*points, rng=0)
    pickle.dump(time.process_time() - start, output)
    output.flush()
"""


def versions_in_turn(options: argparse.Namespace) -> None:
    """Print milliseconds of two checkouts, a line for each size, and the quotients of calls side by side."""
    with ExitStack() as stack:
        servers = []
        for root in options.roots:
            environment, pipe = {**os.environ, "PYTHONPATH": str(root.resolve())}, subprocess.PIPE
            command = [sys.executable, "-c", SERVER]
            servers.append(
                stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, cwd=root))
            )
        lines = []
        for n in options.sizes:
            taken = [[seconds_of(server, four_planes(n)) for server in servers] for _ in range(options.turns + 2)]
            warm = 1e3 * np.array(taken[2:])
            quotients = np.quantile(warm[:, 1] / warm[:, 0], [0.25, 0.5, 0.75])
            lines.append([str(n), *(f"{ms:.2f}" for ms in np.median(warm, axis=0)), *(f"{q:.3f}" for q in quotients)])
        for server in servers:
            server.stdin.close()
    print(markdown(["matches", "median ms of A", "of B", "B / A, lower quartile", "median", "upper quartile"], lines))
    print("", about_this_run(), sep="\n")


def seconds_of(server: Any, points: tuple[Points, Points]) -> float:
    """Processor seconds of one call of a version."""
    pickle.dump(points, server.stdin)
    server.stdin.flush()
    return float(pickle.load(server.stdout))


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
    kinds.add_parser("cold").add_argument("--pairs", type=int, default=21, help="of fresh processes, in turn")
    turn = kinds.add_parser("turn")
    turn.add_argument("roots", type=Path, nargs=2, metavar="ROOT", help="A and B: the directories that hold ruzhash_cv")
    turn.add_argument("--sizes", nargs="+", type=int, default=[300, 2084, 10_000, 50_000])
    turn.add_argument("--turns", type=int, default=101, help="calls of each size by each version")
    options: Any = parser.parse_args()
    if options.kind == "once":
        print(json.dumps(one_call(options.method, options.n)))
        return
    run = {"filter": filter_times, "cold": cold_times, "turn": versions_in_turn}
    run[options.kind](options)


if __name__ == "__main__":
    main()
