"""What `import ruzhash_cv` costs beyond the imports of its dependencies, and what the first calls of a process cost.

    python benchmarks/time_import.py --pairs 21

Runs pairs of fresh processes, in turn: one imports numpy, OpenCV, scipy and numba, the other these and then ruzhash_cv. Prints the
median of the pairs' differences, on the clock and of processor time, and the number of kernels compiled at import. `--cold` also
times the first call with an empty and with a filled cache of kernels, and `ruzhash-cv warmup` in between.
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
COUNTED = """
{dependencies}
from numba.core.event import install_recorder
with install_recorder("numba:compile") as recorder:
    import ruzhash_cv
"""
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    compiled = run(COUNTED.format(dependencies=DEPENDENCIES), "len(recorder.buffer)")[2]
    rows = [
        (run(DEPENDENCIES), run(f"{DEPENDENCIES}\nimport ruzhash_cv"), run("import ruzhash_cv"))
        for _ in range(options.pairs)
    ]
    for column, kind in ((0, "clock"), (1, "processor")):
        base, both, alone = (1e3 * statistics.median(row[part][column] for row in rows) for part in range(3))
        beyond = 1e3 * statistics.median(row[1][column] - row[0][column] for row in rows)
        print(
            f"{kind:9} ms: dependencies {base:.0f}, with ruzhash_cv {both:.0f}, it alone {alone:.0f}, beyond {beyond:+.0f}"
        )
    print(f"kernels compiled at import: {compiled:.0f}")
    if options.cold:
        with tempfile.TemporaryDirectory() as cache:
            for name in ("empty cache", "filled cache"):
                clock, processor, _ = run(CALL, before=PREPARED, NUMBA_CACHE_DIR=cache)
                print(f"first call, {name}: {clock:.2f} s on the clock, {processor:.2f} s of the processor")
        with tempfile.TemporaryDirectory() as cache:
            environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
            subprocess.run([sys.executable, "-m", "ruzhash_cv.cli", "warmup"], env=environment, check=True)
            clock, processor, _ = run(CALL, before=PREPARED, NUMBA_CACHE_DIR=cache)
            print(f"first call after warmup: {clock:.2f} s on the clock, {processor:.2f} s of the processor")


if __name__ == "__main__":
    main()
