"""Long runs: whether anything is lost, doubled or kept when workers are killed all the time, and whether memory stays flat.

    python benchmarks/soak.py loky --pairs 100000 --kills 0  # filter_pairs on joblib's processes
    python benchmarks/soak.py dask --pairs 100000            # on a local cluster, of which a worker is killed now and then
    python benchmarks/soak.py calls --calls 10000     # filter_points in one process

Prints memory on the way, and what came back. The digest of both engines is the same: a pair's result depends on its key alone. Exit
status 1 if a pair is lost or doubled. Needs joblib and psutil, and dask[distributed] for `dask`.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import psutil
from geometry import Points
from times import Results, digest

from ruzhash_cv import FilterResult, filter_points

N_WORKERS = 2
#: Memory is told so often in a run.
TOLD = 20
DASK_SETTINGS = {
    # A local cluster removes a worker for good that is down this long after an earlier death, also if it was up between the two. Dask
    # has 15 s, and with workers killed every few seconds it soon has none.
    "distributed.deploy.lost-worker-timeout": "1 day",
    # Scheduler and workers log their last 1000 messages, in which tasks are: more than 100 MB.
    "distributed.admin.low-level-log-length": 10,
}
#: Sizes of the problems of `calls`, in turn.
SIZES = (5, 20, 60, 150, 300)

Workers = Callable[[], list[int]]


def problem(number: int, n: int) -> tuple[Points, Points]:
    """Return n matches of a plane, a third of them mismatches."""
    rng = np.random.default_rng([18, number])
    first = rng.uniform(0, 800, (n, 2))
    second = first @ [[0.9, 0.1], [-0.1, 1.1]] + rng.normal(20, 0.5, (n, 2))
    second[: n // 3] = rng.uniform(0, 800, (n // 3, 2))
    return first, second


def pairs(n_pairs: int, sizes: list[int]) -> Iterator[tuple[int, Points, Points]]:
    """Yield key and points of each pair, of these sizes in turn."""
    for number in range(n_pairs):
        yield number, *problem(number, sizes[number % len(sizes)])


def megabytes(process: int) -> float:
    """Return the resident memory of a process, 0 of one that has ended."""
    try:
        return float(psutil.Process(process).memory_info().rss / 2**20)
    except psutil.Error:
        return 0.0


def take(results: Results, n_pairs: int, n_kills: int, workers: Workers) -> bool:
    """Take all results, kill a worker at `n_kills` random moments, and tell what came back and the memory on the way."""
    rng, since = np.random.default_rng(0), time.perf_counter()
    kills = sorted(rng.choice(np.arange(1, n_pairs), n_kills, replace=False).tolist(), reverse=True)
    seen, total, doubled, killed = np.zeros(n_pairs, bool), 0, 0, 0
    for count, (key, result) in enumerate(results, start=1):
        doubled += bool(seen[key])
        seen[key] = True
        total = (total + digest(key, result)) % 2**64
        while kills and count >= kills[-1]:
            kills.pop()
            alive = workers()
            if alive:
                os.kill(alive[int(rng.integers(len(alive)))], signal.SIGKILL)
                killed += 1
        if count % max(1, n_pairs // TOLD) == 0:
            sizes = ", ".join(f"{megabytes(worker):.0f}" for worker in workers())
            seconds = time.perf_counter() - since
            print(
                f"{count} pairs, {seconds:.0f} s: this process {megabytes(os.getpid()):.1f} MB, workers {sizes} MB",
                flush=True,
            )
    lost, speed = int(n_pairs - seen.sum()), seen.sum() / (time.perf_counter() - since)
    print(
        f"{seen.sum()} pairs, {lost} lost, {doubled} doubled, {killed} workers killed, {speed:.1f} pairs/s, digest {total:016x}"
    )
    return lost == 0 and doubled == 0


@contextmanager
def loky() -> Iterator[Workers]:
    """joblib's own processes."""
    import joblib
    from joblib.externals.loky import get_reusable_executor

    with joblib.parallel_config(backend="loky", n_jobs=N_WORKERS):
        yield lambda: list(get_reusable_executor(reuse=True)._processes or ())
    get_reusable_executor().shutdown()


@contextmanager
def dask() -> Iterator[Workers]:
    """A local cluster, whose nannies start a worker anew."""
    import joblib
    from dask import config
    from distributed import Client, LocalCluster

    with (
        config.set(DASK_SETTINGS),
        LocalCluster(n_workers=N_WORKERS, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield lambda: [nanny.pid for nanny in cluster.workers.values() if nanny.pid is not None]


ENGINES = {"loky": loky, "dask": dask}


def many_pairs(options: argparse.Namespace) -> bool:
    """Run an engine and tell whether nothing was lost or doubled."""
    from ruzhash_cv.pipelines import filter_pairs

    with ENGINES[options.kind]() as workers:
        results = filter_pairs(pairs(options.pairs, options.matches), batch_size=options.batch_size)
        return take(results, options.pairs, options.kills, workers)


def many_calls(options: argparse.Namespace) -> bool:
    """Call the filter, the motions and the pose over and over, and tell the memory."""
    camera = np.array([[800.0, 0, 400], [0, 800, 400], [0, 0, 1]])

    def call(number: int) -> FilterResult:
        result = filter_points(*problem(number, SIZES[number % len(SIZES)]), rng=number)
        if result.motions:
            result.camera_pose(camera, camera)
        return result

    for number in range(options.calls):
        call(number)
        if (number + 1) % max(1, options.calls // TOLD) == 0:
            print(f"{number + 1} calls: {megabytes(os.getpid()):.1f} MB", flush=True)
    return True


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    for engine in ENGINES:
        one = kinds.add_parser(engine)
        one.add_argument("--pairs", type=int, default=100_000)
        one.add_argument("--matches", type=int, nargs="+", default=[20, 7, 7, 7, 7], help="of the pairs, in turn")
        one.add_argument("--batch-size", type=int, default=64)
        one.add_argument("--kills", type=int, default=20)
    kinds.add_parser("calls").add_argument("--calls", type=int, default=10_000)
    options = parser.parse_args()
    done = many_calls(options) if options.kind == "calls" else many_pairs(options)
    return int(not done)


if __name__ == "__main__":
    sys.exit(main())
