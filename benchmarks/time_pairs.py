"""Many pairs through `filter_pairs`: a plain loop, loky, and a Dask cluster; of both one worker is killed on the way.

For each: pairs a second of wall time, pairs a second of processor time, peak memory of the parent and of a worker, and whether every
pair came back once and with the same bits. It needs joblib, psutil and dask[distributed].
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import pickle
import signal
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import joblib
import numpy as np
import psutil
from geometry import Points
from joblib.externals.loky import get_reusable_executor
from report import about_this_run, markdown
from timing_problem import SIZE, timing_problem

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.pipelines import filter_pairs, pair_seed

Row = dict[str, Any]
N_WORKERS = 2
#: Dask has its workers give memory back at every chance, which costs them as much time again as the filter takes.
MALLOC = {f"distributed.nanny.pre-spawn-environ.MALLOC_{kind}_THRESHOLD_": 2**27 for kind in ("TRIM", "MMAP")}
#: Of the pairs of a collection matched with each other, so many share nothing.
EMPTY = 0.3
FEWEST, MOST = 300, 3000
ENGINES = ("loop", "loky", "dask", "dask-default")


def problem(number: int) -> tuple[Points, Points]:
    """Return 300 to 3,000 matches, as many of each order of magnitude: four planes, a motion in depth, or nothing at all."""
    rng = np.random.default_rng([7, number])
    n = int(FEWEST * (MOST / FEWEST) ** rng.uniform())
    kind = rng.uniform()
    if kind < EMPTY:
        return rng.uniform(0, SIZE, (n, 2)), rng.uniform(0, SIZE, (n, 2))
    if kind < (1 + EMPTY) / 2:
        return timing_problem(n, number)
    return motion(rng, n)


def motion(rng: np.random.Generator, n: int) -> tuple[Points, Points]:
    """Return matches of points in space seen from two places, noise of half a pixel, 40 % replaced at random."""
    space = np.column_stack([rng.uniform(-1, 1, (n, 2)), rng.uniform(3, 6, n)])
    turn = np.array([[np.cos(0.1), 0, np.sin(0.1)], [0, 1, 0], [-np.sin(0.1), 0, np.cos(0.1)]])
    views = [900 * view[:, :2] / view[:, 2:] + SIZE / 2 for view in (space, space @ turn.T + rng.normal(0, 0.4, 3))]
    first, second = (view + rng.normal(0, 0.5, view.shape) for view in views)
    wrong = rng.random(n) < 0.4
    second[wrong] = rng.uniform(0, SIZE, (int(wrong.sum()), 2))
    return first, second


def pairs(numbers: Iterable[int]) -> Iterator[tuple[int, Points, Points]]:
    for number in numbers:
        yield number, *problem(number)


def loop(n_pairs: int) -> Iterator[tuple[int, FilterResult]]:
    for key, *points in pairs(range(n_pairs)):
        yield key, filter_points(*points, rng=pair_seed(key), n_jobs=1)


class Watch:
    """Samples processor time and memory of this process and of all it started, twice a second."""

    def __init__(self) -> None:
        self.processor: dict[int, float] = {}
        self.memory: dict[int, float] = {}
        self.parents: list[float] = []
        self._before: dict[int, float] = {}
        self._parent, self._ended = psutil.Process(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Watch:
        for process in (self._parent, *self._parent.children(recursive=True)):
            self._before[process.pid] = sum(process.cpu_times()[:2])
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            last = self._ended.wait(0.5)
            for process in (self._parent, *self._parent.children(recursive=True)):
                with contextlib.suppress(psutil.Error):
                    megabytes, before = process.memory_info().rss / 2**20, self._before.get(process.pid, 0.0)
                    self.processor[process.pid] = sum(process.cpu_times()[:2]) - before
                    self.memory[process.pid] = max(megabytes, self.memory.get(process.pid, 0.0))
                    if process == self._parent:
                        self.parents.append(megabytes)
            if last:
                return


def digest(key: int, result: FilterResult) -> int:
    """Return a number of all a result says; numbers of all pairs are added, in whatever order they come."""
    state = hashlib.sha256(repr((key, result.reason, result.n_models)).encode())
    for array in (result.inlier_mask, result.anomaly_scores, result.p_values, result.labels):
        state.update(array.tobytes())
    return int.from_bytes(state.digest()[:8], "big")


def measure(
    name: str,
    results: Iterable[tuple[int, FilterResult]],
    n_pairs: int,
    workers: Callable[[], Iterable[int]] | None = None,
) -> Row:
    """Take all results, kill one of the `workers` after a third of them, and return a row of the table."""
    seen, total, matches, kept, killed = set(), 0, 0, 0, False
    since = time.perf_counter()
    with Watch() as watch:
        doubled = 0
        for key, result in results:
            doubled += key in seen
            seen.add(key)
            total = (total + digest(key, result)) % 2**64
            matches, kept = matches + len(result.inlier_mask), kept + int(result.inlier_mask.sum())
            if workers is not None and not killed and 3 * len(seen) >= n_pairs:
                os.kill(next(iter(workers())), signal.SIGKILL)
                killed = True
    seconds = time.perf_counter() - since
    parent = os.getpid()
    processor = sum(watch.processor.values())
    children = [memory for pid, memory in watch.memory.items() if pid != parent]
    quarter = len(watch.parents) // 4
    return {
        "engine": name,
        "pairs": len(seen),
        "lost": n_pairs - len(seen),
        "doubled": doubled,
        "matches a pair": f"{matches / max(len(seen), 1):.0f}",
        "kept": f"{kept / max(matches, 1):.3f}",
        "seconds": f"{seconds:.0f}",
        "pairs/s": f"{len(seen) / seconds:.1f}",
        "pairs/CPU s": f"{len(seen) / processor:.1f}",
        "CPU ms a pair": f"{1000 * processor / len(seen):.1f}",
        "parent's CPU s": f"{watch.processor[parent]:.1f}",
        "parent MB, after a quarter": f"{max(watch.parents[: quarter + 1]):.0f}",
        "parent MB, peak": f"{max(watch.parents):.0f}",
        "largest child MB": f"{max(children, default=0):.0f}",
        "worker killed": "yes" if killed else "no",
        "digest": f"{total:016x}",
    }


def sizes(n_pairs: int = 300) -> Row:
    """Return what a pair weighs on its way to a worker and back, and how many a single SQLite file takes a second."""
    results = dict(loop(n_pairs))
    sent = [len(pickle.dumps(problem(number))) for number in results]
    back = [len(pickle.dumps(result)) for result in results.values()]
    blobs = [np.zeros((int(result.inlier_mask.sum()), 2), np.uint32).tobytes() for result in results.values()]
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(sqlite3.connect(Path(folder) / "rows.db")) as file:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("CREATE TABLE rows (pair INTEGER PRIMARY KEY, contents BLOB)")
        since, n_rows = time.perf_counter(), 20_000
        for first in range(0, n_rows, 100):
            with file:
                rows = ((number, blobs[number % n_pairs]) for number in range(first, first + 100))
                file.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        seconds = time.perf_counter() - since
    return {
        "kB sent": f"{np.mean(sent) / 1e3:.1f}",
        "kB back": f"{np.mean(back) / 1e3:.1f}",
        "kB of kept index pairs": f"{np.mean([len(blob) for blob in blobs]) / 1e3:.1f}",
        "SQLite rows/s": f"{n_rows / seconds:.0f}",
    }


def on_loky(n_pairs: int, batch_size: int) -> Row:
    with joblib.parallel_config(backend="loky", n_jobs=N_WORKERS):
        results = filter_pairs(pairs(range(n_pairs)), batch_size=batch_size)
        row = measure("loky", results, n_pairs, lambda: get_reusable_executor(reuse=True)._processes)
    get_reusable_executor().shutdown()  # its workers would wait for more, and count as the next engine's
    return row


def on_dask(n_pairs: int, batch_size: int, name: str, settings: dict[str, int]) -> Row:
    import dask
    from distributed import Client, LocalCluster

    with (
        patch.dict(os.environ),  # Dask leaves what it sets there, and its next cluster keeps what it finds
        dask.config.set(settings),
        LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
        joblib.parallel_config(backend="dask"),
    ):
        results = filter_pairs(pairs(range(n_pairs)), batch_size=batch_size)
        return measure(name, results, n_pairs, lambda: client.run(os.getpid).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES)
    options = parser.parse_args()
    for _ in filter_pairs(pairs(range(1))):  # kernels are compiled and read
        pass
    rows = []
    for engine in options.engines:
        if engine == "loop":
            rows.append(measure("loop", loop(options.pairs), options.pairs))
        elif engine == "loky":
            rows.append(on_loky(options.pairs, options.batch_size))
        else:
            settings = MALLOC if engine == "dask" else {}
            rows.append(on_dask(options.pairs, options.batch_size, engine, settings))
        print(rows[-1], flush=True)
    # A column for each engine: there are more numbers than engines.
    names = [name for name in rows[0] if name != "engine"]
    print(
        markdown(["", *(row["engine"] for row in rows)], [[name, *(str(row[name]) for row in rows)] for name in names])
    )
    weights = sizes()
    print("\n" + markdown(["", "a pair"], [[name, value] for name, value in weights.items()]))
    print("\n" + about_this_run({}))


if __name__ == "__main__":
    main()
