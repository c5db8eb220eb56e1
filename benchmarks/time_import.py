"""What `import ruzhash_cv` costs beyond the imports of its dependencies, and what the first calls of a process cost.

    python benchmarks/time_import.py --pairs 21

Runs pairs of fresh processes, in turn: one imports numpy, OpenCV, scipy and numba, the other these and then ruzhash_cv. Prints the
median of the pairs' differences, on the clock and of processor time, the medians of each dependency imported alone, and the number
of kernels compiled at import. `--cold` also times the first call with an empty and with a filled cache of kernels, and after
`ruzhash-cv warmup`, and counts the compilations in it, numba's own included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

DEPENDENCIES = "import numpy, cv2, scipy.sparse, scipy.spatial, numba"
TIMED = """
import json, time
start, cpu = time.perf_counter(), time.process_time()
{code}
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, {extra}]))
"""
ALONE = ("numpy", "cv2", "numba", "scipy.sparse, scipy.spatial", "ruzhash_cv.filtering")
RECORDER = "from numba.core.event import install_recorder\n"
COUNTED = """
with install_recorder("numba:compile") as recorder:
    {code}
"""
COUNT = "sum(event.is_start for _, event in recorder.buffer)"
CALL = "result = filter_points(points, points + 5.0)"
PREPARED = """
import numpy as np
from ruzhash_cv import filter_points
points = np.random.default_rng(0).uniform(0, 500, (300, 2))
"""


def run(code: str, extra: str = "0", before: str = "", **environment: str) -> list[float]:
    """Return seconds on the clock, seconds of processor time, and `extra`, of code in a fresh process."""
    source = before + TIMED.format(code=code, extra=extra)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", source], env={**inherited, **environment}, stdout=subprocess.PIPE, text=True, check=True
    )
    measured: list[float] = json.loads(done.stdout)
    return measured


def print_import(n_pairs: int) -> None:
    """Print what the import costs beyond its dependencies, and each dependency alone."""
    compiled = run(COUNTED.format(code="from ruzhash_cv import filter_points"), COUNT, f"{DEPENDENCIES}\n{RECORDER}")[2]
    rows = [(run(DEPENDENCIES), run(f"{DEPENDENCIES}\nfrom ruzhash_cv import filter_points")) for _ in range(n_pairs)]
    alone = {name: [run(f"import {name}") for _ in range(n_pairs)] for name in ALONE}
    for column, kind in ((0, "clock"), (1, "processor")):
        base, both = (1e3 * statistics.median(row[part][column] for row in rows) for part in range(2))
        beyond = 1e3 * statistics.median(row[1][column] - row[0][column] for row in rows)
        print(f"{kind:9} ms: dependencies {base:.0f}, with ruzhash_cv {both:.0f}, beyond {beyond:+.0f}")
        medians = (
            f"{name} {1e3 * statistics.median(time[column] for time in times):.0f}" for name, times in alone.items()
        )
        print(f"{kind:9} ms, each alone: {'; '.join(medians)}")
    print(f"kernels compiled at import: {compiled:.0f}")


def print_first_call(name: str, cache: str) -> None:
    """Print what the first call of a fresh process costs with this cache."""
    clock, processor, compiled = run(COUNTED.format(code=CALL), COUNT, f"{PREPARED}{RECORDER}", NUMBA_CACHE_DIR=cache)
    print(
        f"first call, {name}: {clock:.2f} s on the clock, {processor:.2f} s of the processor, {compiled:.0f} compilations"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    print_import(options.pairs)
    if options.cold:
        with tempfile.TemporaryDirectory() as cache:
            print_first_call("empty cache", cache)
            print_first_call("filled cache", cache)
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            subprocess.run([sys.executable, "-m", "ruzhash_cv", "warmup"], env=environment, check=True)
            print_first_call("after warmup", cache)


if __name__ == "__main__":
    main()
