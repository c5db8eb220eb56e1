"""Runs one method once in a fresh process: the first call's time, the second's, and the peak memory."""

from __future__ import annotations

import json
import resource
import sys
import time

from peers import all_peers
from timing_problem import timing_problem


def main() -> None:
    """Print one line of JSON for `time_one_call.py METHOD N`."""
    name, n = sys.argv[1], int(sys.argv[2])
    peer = all_peers()[name]
    points1, points2 = timing_problem(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        peer(points1, points2, 0)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # ru_maxrss counts kilobytes on Linux; what the imports took is no cost of the method.
    print(json.dumps({"cold_ms": 1e3 * seconds[0], "second_ms": 1e3 * seconds[1], "extra_mb": (peak - before) / 1024}))


if __name__ == "__main__":
    main()
