"""Ctrl-C at random moments of library calls: KeyboardInterrupt and nothing else, and the same results afterwards.

    python tests/fuzzing/interrupts.py --n 500

Child processes call public functions over and over and get SIGINT at random times; some while they load their kernels, and with
`--cold` while they compile them. A failure prints what was called and the random number that repeats the times.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Interrupts of one child.
BATCH = 10


def calls() -> dict[str, Callable[[], Any]]:
    """Return calls of the public functions that run kernels or OpenCV."""
    import ruzhash_cv as rc
    from ruzhash_cv import paper

    rng, camera = np.random.default_rng(0), np.array([[800.0, 0, 400], [0, 800, 400], [0, 0, 1]])
    points1 = rng.uniform(0, 800, (400, 2))
    points2 = points1 + np.where(points1[:, :1] < 400, [20.0, 5.0], rng.uniform(5, 60, (400, 1)) * [1.0, 0.0])
    points2[:100] = rng.uniform(0, 800, (100, 2))
    many = np.vstack([points1 + rng.normal(0, 2, points1.shape) for _ in range(50)])
    matches, picture = np.stack([np.arange(400)] * 2, axis=1), np.zeros((800, 800, 3), np.uint8)
    drawn, rows = (picture, points1, picture, points2, matches), rng.random((300, 40))
    result = functools.cache(lambda: rc.filter_points(points1, points2))

    def motions() -> Any:
        fresh = rc.filter_points(points1, points2)
        return fresh.motions, fresh.plane_motion(0), fresh.camera_pose(camera, camera)

    return {
        "filter_points": lambda: rc.filter_points(points1, points2),
        "filter_points of many": lambda: rc.filter_points(many, many + 5.0),
        "filter_points, fundamental": lambda: rc.filter_points(points1, points2, model="fundamental"),
        "filter_matches": lambda: rc.filter_matches(points1, points2, matches, threshold=3.0),
        "motions": motions,
        "find_homography": lambda: rc.find_homography(points1, points2),
        "find_fundamental_matrix": lambda: rc.find_fundamental_matrix(points1, points2),
        "transfer_error": lambda: rc.transfer_error(points1, points2, np.eye(3)),
        "sampson_distance": lambda: rc.sampson_distance(points1, points2, camera),
        "RuzHashForest": lambda: rc.RuzHashForest(n_jobs=2).fit_anomaly_scores(np.vstack([rows] * 30)),
        "VoronoiForest": lambda: paper.VoronoiForest(n_trees=20).fit(rows).anomaly_scores(rows),
        "ruzhash": lambda: rc.ruzhash(rows, n_hashes=50),
        "draw_matches": lambda: rc.draw_matches(*drawn, result()),
        "draw_scores": lambda: rc.draw_scores(*drawn, result()),
        "draw_structures": lambda: rc.draw_structures(*drawn, result()),
    }


def work(first: int, last: int) -> None:
    """Call until the signal comes, so many times, and tell how each ended; to the line a parent writes before each."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    functions, expected = calls(), None
    names = list(functions)
    for item in range(first, last):
        name = names[item % len(names)]
        sys.stdin.readline()
        outcome = "no interrupt"
        try:
            print(name, flush=True)
            end = time.monotonic() + 60
            while time.monotonic() < end:
                functions[name]()
        except KeyboardInterrupt:
            outcome = "interrupted"
        except BaseException as error:
            outcome = repr(error)
        after = functions["filter_points"]()
        expected = expected or after
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            outcome = "another handler stays"
        print(outcome if after == expected else "other results", flush=True)


def run_batch(first: int, last: int, rng: np.random.Generator, seen: Counter[str], cold: bool) -> None:
    """Interrupt a child's calls, and count how they ended."""
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as stderr:
        environment = os.environ | ({"NUMBA_CACHE_DIR": cache} if cold else {})
        command = [sys.executable, str(Path(__file__)), "--child", str(first), str(last)]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
        )
        assert process.stdin is not None
        assert process.stdout is not None
        for item in range(first, last):
            process.stdin.write("go\n")
            process.stdin.flush()
            name = process.stdout.readline().strip()
            time.sleep(rng.uniform(0.0, 3.0 if cold else 0.1))
            process.send_signal(signal.SIGINT)
            outcome = process.stdout.readline().strip() or "the process ended"
            seen[outcome] += 1
            if outcome != "interrupted":
                print(f"interrupt {item}, {name}: {outcome}", flush=True)
            if outcome == "the process ended":
                break
        process.stdin.close()
        status = process.wait()
        stderr.seek(0)
        said = re.sub("^ruzhash_cv: compiling kernels.*\n", "", stderr.read())
        if status != 0 or said:
            seen[f"status {status}"] += 1
            print(f"interrupts {first} to {last - 1}: status {status}\n{said}", flush=True)


def main() -> int:
    """Interrupt and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cold", action="store_true", help="each process with an empty cache")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        work(*options.child)
        return 0
    seen, rng = Counter[str](), np.random.default_rng(options.seed)
    for first in range(0, options.n, BATCH):
        run_batch(first, min(first + BATCH, options.n), rng, seen, options.cold)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(seen.items())))
    return int(set(seen) != {"interrupted"})


if __name__ == "__main__":
    sys.exit(main())
