"""Runs one method once in a fresh process: the first call's time, the second's, and the peak memory."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from peers import all_peers
from timing_problem import timing_problem


def memory(field: str) -> float:
    """Megabytes of this process: VmRSS (now) or VmHWM (peak); NaN where the system does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return float(line.split()[1]) / 1024


def forget_peak() -> None:
    """Let the peak start from here: what the imports took is no cost of the method."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def main() -> None:
    """Print one line of JSON for `time_one_call.py METHOD N`."""
    name, n = sys.argv[1], int(sys.argv[2])
    peer = all_peers()[name]
    points1, points2 = timing_problem(n)
    before = memory("VmRSS")
    forget_peak()
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        peer(points1, points2, 0)
        seconds.append(time.perf_counter() - start)
    extra = memory("VmHWM") - before
    print(json.dumps({"cold_ms": 1e3 * seconds[0], "second_ms": 1e3 * seconds[1], "extra_mb": extra}))


if __name__ == "__main__":
    main()
