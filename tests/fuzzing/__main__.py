"""Hostile input for every public function: whatever arrives, a well-formed answer or a documented exception.

    python tests/fuzzing --minutes 30
    python tests/fuzzing --cases 200 --seed 7

A case has a number; the same number makes the same case. A child process works through them with warnings as errors and bounded
memory; its parent watches the clock, its end and what it writes to stderr. A failure prints the command that repeats it.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from inputs import Draw
from targets import TARGETS, AnswerError

from ruzhash_cv import _kernels

#: What a case may take of the processors; after so long on the clock, however busy the machine, it hangs.
MOST_SECONDS, SECONDS_TO_HANG = 10.0, 120.0
#: Cases that call every function this often come first and uncounted: they compile the kernels.
WARM_UPS = 4
#: What a case may allocate at its peak, and what the process may have grown by at the end, libraries and caches included.
MOST_MEGABYTES, MOST_LEAKED = 500.0, 250.0
#: Cases of one child.
BATCH = 500
#: The whole pipeline more often than its parts.
SHARES = np.array([{"filter_points": 8.0, "filter_matches": 4.0}.get(name, 1.0) for name in TARGETS])


def run_case(case: int) -> str:
    """Run a case and return what was called and how it ended; raise on failure."""
    draw = Draw(case)
    name = str(draw.rng.choice(list(TARGETS), p=SHARES / SHARES.sum()))
    try:
        TARGETS[name](draw)
    except (TypeError, ValueError, IndexError) as error:
        said = f"{name}: {type(error).__name__}: {error}"
        if draw.legal:
            raise AnswerError(f"refused what it should take: {said}") from error
        if type(error) not in (TypeError, ValueError, IndexError) or not re.search(r"`\w+", str(error)):
            raise AnswerError(f"names no argument: {said}") from error
        return f"{name} refused"
    return f"{name} answered"


def megabytes(field: str) -> float:
    """Return a field of this process's memory, VmRSS or VmHWM (its peak); 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(field)), 0.0)


def forget_peak() -> None:
    """Start the peak anew, where the system can."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def work(first: int, last: int) -> None:
    """Run cases in this process; a line to stdout before and after each."""
    warnings.simplefilter("error")
    for name, case in itertools.product(TARGETS, range(WARM_UPS)):
        print(f"warm-up {name}", flush=True)
        with contextlib.suppress(Exception):
            TARGETS[name](Draw(case))
    at_start = megabytes("VmRSS")
    for case in range(first, last):
        print(f"start {case}", flush=True)
        try:
            before, since = megabytes("VmRSS"), time.process_time()
            forget_peak()
            ended = run_case(case)
            if (spent := time.process_time() - since) > MOST_SECONDS:
                raise AnswerError(f"{ended}, after {spent:.0f} s of processor time")
            if (grown := megabytes("VmHWM") - before) > MOST_MEGABYTES:
                raise AnswerError(f"{ended}, with {grown:.0f} MB")
        except Exception:
            print(f"failed {case}", *traceback.format_exc().splitlines(), sep="\n| ", flush=True)
        else:
            print(f"ended {ended}", flush=True)
    if (leaked := megabytes("VmRSS") - at_start) > MOST_LEAKED:
        print(f"failed\n| {leaked:.0f} MB leaked by cases {first} to {last - 1}", flush=True)


def lines_of(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """Yield the lines a process writes to stdout; None where none comes in time."""
    assert process.stdout is not None
    pending = b""
    while select.select([process.stdout], [], [], SECONDS_TO_HANG)[0]:
        chunk = os.read(process.stdout.fileno(), 1 << 16)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    yield None


def run_batch(first: int, last: int, seen: Counter[str]) -> tuple[int, list[tuple[int, str]]]:
    """Run cases in a child; return the first case not run, and failures by case."""
    failures: list[tuple[int, str]] = []
    at = first - 1
    with tempfile.TemporaryFile() as stderr:
        command = [sys.executable, str(Path(__file__).parent), "--child", str(first), str(last)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr)
        for line in lines_of(process):
            if line is None:
                process.kill()
                failures.append((at, f"no end within {SECONDS_TO_HANG:g} s"))
            elif line.startswith("start "):
                at = int(line.split()[1])
            elif line.startswith("ended "):
                seen[line.removeprefix("ended ")] += 1
            elif line.startswith("failed"):
                failures.append((at, ""))
            elif line.startswith("|"):
                failures[-1] = (failures[-1][0], failures[-1][1] + "\n  " + line)
        if (status := process.wait()) != 0 and (not failures or failures[-1][0] != at):
            failures.append((at, f"the process ended with status {status}"))
        stderr.seek(0)
        if said := stderr.read().decode(errors="replace").strip():
            failures.append((first, f"cases {first} to {at} wrote to stderr:\n{said[-4000:]}"))
    return max(at, first) + 1, failures


def main() -> int:
    """Run cases until their number or the time is up; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _kernels.said.add("compiling")  # that kernels are compiled is no failure
        work(*options.child)
        return 0
    start, case, n_failures = time.monotonic(), options.seed, 0
    end = options.seed + (options.cases or (200 if options.minutes is None else sys.maxsize))
    seen: Counter[str] = Counter()
    while case < end and (options.minutes is None or time.monotonic() - start < 60 * options.minutes):
        case, failures = run_batch(case, min(case + BATCH, end), seen)
        for number, failure in failures:
            print(
                f"FAILED case {number}: {failure}\n  repeat: python tests/fuzzing --cases 1 --seed {number}", flush=True
            )
        n_failures += len(failures)
    for name in sorted(seen):
        print(f"{seen[name]:8} {name}")
    print(f"{case - options.seed} cases, {n_failures} failures, {time.monotonic() - start:.0f} s")
    return int(n_failures > 0)


if __name__ == "__main__":
    sys.exit(main())
