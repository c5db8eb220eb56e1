"""Times: of every method over the number of matches, of imports and first calls, of the slowest scenes, and of many pairs.

    python benchmarks/times.py filter          # medians warm, first calls, memory; `--store` writes the CSV of docs/benchmarks.md
    python benchmarks/times.py cold            # import, first calls with and without a cache of kernels
    python benchmarks/times.py worst           # the slowest of 300 random scenes
    python benchmarks/times.py pairs           # filter_pairs: a loop, loky, Dask; a worker of Dask is killed on the way

Needs joblib and psutil for `pairs`, and dask[distributed] for its engine "dask".
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rendered
from estimators import ABSENT
from geometry import Points
from peers import OURS, Peer, all_peers
from problems import four_planes
from rendering import draw_correspondences
from report import RESULTS, about_this_run, markdown

from ruzhash_cv import FilterResult, filter_points

# --- One call over the number of matches.

SIZES = (100, 300, 1000, 2084, 5000, 10_000, 50_000)
METHODS = (
    OURS, "H USAC_MAGSAC", "F USAC_MAGSAC", "sequential H USAC_MAGSAC 12 px", "H PoseLib", "sequential H PoseLib",
    "H SupeRANSAC", "LPM", "AdaLAM",
)  # fmt: skip
LONGEST = 10.0
"""Seconds; a method that took longer at one size is not run on larger ones."""
MOST_MEGABYTES = 10_000.0
"""Nor is one that would need more at the next size, were its memory to grow with the square of it."""


def warm_medians(peers: dict[str, Peer], n: int, repeats: int) -> dict[str, float]:
    """Median milliseconds of the calls after the first, fewer where they are long.

    The methods in turn, so that a machine whose speed changes changes it for all.
    """
    points1, points2 = four_planes(n)
    taken: dict[str, list[float]] = {name: [] for name in peers}
    for seed in range(repeats + 1):
        for name, peer in peers.items():
            if sum(taken[name]) > LONGEST and len(taken[name]) > 1:
                continue
            start = time.perf_counter()
            peer(points1, points2, seed)
            taken[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(own[1:])) for name, own in taken.items()}


def memory(field: str) -> float:
    """Megabytes of this process: VmRSS (now) or VmHWM (peak); NaN where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(field)), float("nan"))


def one_call(name: str, n: int) -> dict[str, float]:
    """First call's time and peak memory, of this process."""
    peer, points = all_peers()[name], four_planes(n)
    before = memory("VmRSS")
    forget = Path("/proc/self/clear_refs")
    if forget.exists():  # the peak starts from here: what the imports took is no cost of the method
        forget.write_text("5")
    start = time.perf_counter()
    peer(*points, 0)
    return {"cold_ms": 1e3 * (time.perf_counter() - start), "extra_mb": memory("VmHWM") - before}


def over_sizes(peers: dict[str, Peer], sizes: list[int], repeats: int) -> pd.DataFrame:
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
    peers = all_peers()
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


# --- The slowest scenes.

MODELS = ("auto", "homography", "fundamental")
KINDS = ("uniform", "nearby", "repeated", "nothing else")
N_LAYOUTS = 20  # scenes of each family that matches are drawn from: to build one takes longer than to filter it


def scene(seed: int) -> tuple[list[str], Points, Points]:
    """Matches of a random kind: mismatches anywhere, crowding around true positions, periods of a texture off, or no true match."""
    rng = np.random.default_rng(seed)
    family, kind = str(rng.choice(list(rendered.STRUCTURES))), KINDS[seed % len(KINDS)]
    structures = int(rng.choice(rendered.STRUCTURES[family]))
    n = round(np.exp(rng.uniform(*np.log((20, 5000)))))
    rate = 1.0 if kind == "nothing else" else round(float(rng.uniform(0.05, 0.95)), 2)
    drawn = draw_correspondences(
        rendered.build(family, structures, int(rng.integers(N_LAYOUTS))),
        n,
        mismatch_rate=rate,
        noise=float(np.exp(rng.uniform(*np.log((0.3, 3.0))))),
        mismatches="uniform" if kind == "nothing else" else kind,
        rng=rng,
    )
    return [family, kind, f"{rate:.0%}", str(n), str(seed)], drawn.points1, drawn.points2


def worst_times(options: argparse.Namespace) -> None:
    """Time all scenes, and the slowest of each model again: the fastest of its calls counts."""
    print(about_this_run())
    for model in options.models:

        def seconds(seed: int, model: str = model) -> float:
            _, points1, points2 = scene(seed)
            start = time.process_time()
            filter_points(points1, points2, model=model)
            return time.process_time() - start

        seconds(0)  # kernels are loaded before the clock runs
        taken = np.array([seconds(seed) for seed in range(options.scenes)])
        again = {int(seed): taken[seed] for seed in np.argsort(-taken)[: options.worst]}
        again = {seed: min(first, *(seconds(seed) for _ in range(options.repeats))) for seed, first in again.items()}
        lines = [[*scene(seed)[0], f"{again[seed]:.3f}"] for seed in sorted(again, key=lambda seed: -again[seed])]
        print(
            f"\nmodel={model!r}: median {np.median(taken):.3f} s, 99 in 100 within {np.quantile(taken, 0.99):.3f} s\n"
        )
        print(markdown(["scene", "mismatches", "mismatch rate", "matches", "seed", "seconds"], lines))


# --- Many pairs.

EMPTY = 0.3
"""Of the pairs of a collection matched with each other, so many share nothing."""
N_WORKERS = 2
Results = Iterable[tuple[int, FilterResult]]


def pair(number: int) -> tuple[Points, Points]:
    """300 to 3,000 matches, as many of each order of magnitude: four planes, a motion in depth, or nothing at all."""
    rng = np.random.default_rng([7, number])
    n, kind = int(300 * 10 ** rng.uniform()), rng.uniform()
    if kind < EMPTY:
        return rng.uniform(0, 1000, (n, 2)), rng.uniform(0, 1000, (n, 2))
    if kind < (1 + EMPTY) / 2:
        return four_planes(n, number)
    space = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 6, n)])
    turn = np.array([[np.cos(0.1), 0, np.sin(0.1)], [0, 1, 0], [-np.sin(0.1), 0, np.cos(0.1)]])
    views = [900 * view[:, :2] / view[:, 2:] + 500 for view in (space, space @ turn.T + rng.normal(0, 0.4, 3))]
    first, second = (view + rng.normal(0, 0.5, view.shape) for view in views)
    wrong = rng.random(n) < 0.4
    second[wrong] = rng.uniform(0, 1000, (int(wrong.sum()), 2))
    return first, second


def pairs(n_pairs: int) -> Iterator[tuple[int, Points, Points]]:
    """Key and points of each pair."""
    for number in range(n_pairs):
        yield number, *pair(number)


def digest(key: int, result: FilterResult) -> int:
    """A number of all that a result says; those of all pairs are added, in whatever order they come."""
    state = hashlib.sha256(repr((key, result.reason)).encode())
    for array in (result.inlier_mask, result.anomaly_scores, result.labels):
        state.update(array.tobytes())
    return int.from_bytes(state.digest()[:8], "big")


def usage() -> float:
    """Processor seconds of this process and of all its children that have ended."""
    found = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in found)


def measure(results: Results, n_pairs: int, workers: Callable[[], Iterable[int]] | None = None) -> dict[str, str]:
    """Take all results, killing one of the workers after a third of them; what came back, and how quickly."""
    seen, total, doubled, killed, since = set(), 0, 0, False, time.perf_counter()
    for key, result in results:
        doubled += key in seen
        seen.add(key)
        total = (total + digest(key, result)) % 2**64
        if workers is not None and not killed and 3 * len(seen) >= n_pairs:
            os.kill(next(iter(workers())), signal.SIGKILL)
            killed = True
    speed = len(seen) / (time.perf_counter() - since)
    lost = n_pairs - len(seen)
    told = {"pairs": len(seen), "lost": lost, "doubled": doubled, "digest": f"{total:016x}", "worker killed": killed}
    return {name: str(value) for name, value in told.items()} | {"pairs/s": f"{speed:.1f}"}


def on_loop(n_pairs: int, batch_size: int) -> dict[str, str]:
    """One call after the other."""
    from ruzhash_cv.pipelines import pair_seed

    found = ((key, filter_points(*points, rng=pair_seed(key))) for key, *points in pairs(n_pairs))
    return measure(found, n_pairs)


def on_loky(n_pairs: int, batch_size: int) -> dict[str, str]:
    """joblib's own processes."""
    import joblib
    from joblib.externals.loky import get_reusable_executor

    from ruzhash_cv.pipelines import filter_pairs

    with joblib.parallel_config(backend="loky", n_jobs=N_WORKERS):
        results = filter_pairs(pairs(n_pairs), batch_size=batch_size)
        row = measure(results, n_pairs)  # a killed worker would end the call
    get_reusable_executor().shutdown()  # its workers would wait for more, and count as the next engine's
    return row


def on_dask(n_pairs: int, batch_size: int) -> dict[str, str]:
    """A local cluster. Dask has its workers give memory back at every chance, which costs as much time again; here it does not."""
    import dask
    import joblib
    from distributed import Client, LocalCluster

    from ruzhash_cv.pipelines import filter_pairs

    malloc = {f"distributed.nanny.pre-spawn-environ.MALLOC_{kind}_THRESHOLD_": 2**27 for kind in ("TRIM", "MMAP")}
    with (
        dask.config.set(malloc),
        LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        results = filter_pairs(pairs(n_pairs), batch_size=batch_size)
        return measure(results, n_pairs, lambda: client.run(os.getpid).values())


ENGINES = {"loop": on_loop, "loky": on_loky, "dask": on_dask}


def pair_times(options: argparse.Namespace) -> None:
    """Run the engines and print a column for each."""
    filter_points(*pair(0))  # kernels are compiled and read
    columns = []
    for engine in options.engines:
        before = usage()
        row = ENGINES[engine](options.pairs, options.batch_size)
        row["CPU ms a pair"] = f"{1e3 * (usage() - before) / options.pairs:.1f}"
        row["parent MB, peak"] = f"{memory('VmHWM'):.0f}"
        row["largest child MB"] = f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f}"
        columns.append(row)
    lines = [[name, *(column[name] for column in columns)] for name in columns[0]]
    print(markdown(["", *options.engines], lines), about_this_run(), sep="\n\n")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    of_filter = kinds.add_parser("filter")
    of_filter.add_argument("--sizes", nargs="+", type=int, default=list(SIZES))
    of_filter.add_argument("--repeats", type=int, default=9)
    of_filter.add_argument("--methods", nargs="+", default=list(METHODS))
    of_filter.add_argument("--store", action="store_true", help="write the CSV of docs/benchmarks.md")
    once = kinds.add_parser("once", help="one method in this process, which `filter` starts for each")
    once.add_argument("method")
    once.add_argument("n", type=int)
    kinds.add_parser("cold").add_argument("--pairs", type=int, default=21, help="of fresh processes, in turn")
    worst = kinds.add_parser("worst")
    worst.add_argument("--scenes", type=int, default=300)
    worst.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    worst.add_argument("--worst", type=int, default=5, help="how many of each model are printed")
    worst.add_argument("--repeats", type=int, default=3, help="further calls of these")
    many = kinds.add_parser("pairs")
    many.add_argument("--pairs", type=int, default=20_000)
    many.add_argument("--batch-size", type=int, default=32)
    many.add_argument("--engines", nargs="+", choices=ENGINES, default=["loop", "loky"])
    options: Any = parser.parse_args()
    if options.kind == "once":
        print(json.dumps(one_call(options.method, options.n)))
        return
    run = {"filter": filter_times, "cold": cold_times, "worst": worst_times, "pairs": pair_times}
    run[options.kind](options)


if __name__ == "__main__":
    main()
