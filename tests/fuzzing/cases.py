"""A case: its number draws a group, a function and its arguments; the answer, memory and time are looked at."""

from __future__ import annotations

import contextlib
import re
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from groups import GROUPS
from inputs import Draw
from targets import AnswerError, Target

#: In place of a group: each as often.
EVEN = "even"
#: What a case may take of the processors, in seconds.
MOST_SECONDS = 10.0
#: Cases that call every function this often come first and uncounted: they compile the kernels.
WARM_UPS = 4
#: What cases may allocate at their peak, and what the process may have grown by at the end, libraries and caches included.
MOST_MEGABYTES, MOST_LEAKED = 500.0, 250.0
#: Memory is looked at once in so many cases: that takes as long as a small case does.
WATCHED = 50


def chosen(draw: Draw, only: str | None) -> tuple[str, Target]:
    """Draw a group by its share, unless one is given or each comes as often, and one of its functions."""
    shares = np.array([share for share, _ in GROUPS.values()])
    if only == EVEN:
        shares = 1.0 * (shares > 0.0)
    drawn = list(GROUPS)[int(np.searchsorted(np.cumsum(shares) / shares.sum(), draw.rng.random(), side="right"))]
    group = drawn if only in (None, EVEN) else only
    functions = GROUPS[group][1]
    name = draw.pick(list(functions))
    return f"{group}/{name}", functions[name]


def run_case(case: int, only: str | None = None) -> str:
    """Run a case and return what was called and how it ended, and what was measured; raise on failure."""
    draw = Draw(case)
    name, target = chosen(draw, only)
    try:
        measured = target(draw)
    except (TypeError, ValueError, IndexError) as error:
        said = f"{name}: {type(error).__name__}: {error}"
        if draw.legal:
            raise AnswerError(f"refused what it should take: {said}") from error
        if type(error) not in (TypeError, ValueError, IndexError) or not re.search(r"`\w+", str(error)):
            raise AnswerError(f"names no argument: {said}") from error
        return f"{name} refused"
    return f"{name} answered" if measured is None else f"{name} answered {measured!r}"


def megabytes(field: str) -> float:
    """Return a field of this process's memory, VmRSS or VmHWM (its peak); 0 where the system does not say."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((float(line.split()[1]) / 1024 for line in lines if line.startswith(field)), 0.0)


def forget_peak() -> None:
    """Start the peak anew, where the system can."""
    if Path("/proc/self/clear_refs").exists():
        Path("/proc/self/clear_refs").write_text("5")


def work(first: int, last: int, only: str | None) -> None:
    """Run cases in this process; a line to stdout before and after each."""
    warnings.simplefilter("error")
    for group, (_, functions) in GROUPS.items():
        for name in functions if only in (None, EVEN, group) else ():
            print(f"warm-up {name}", flush=True)
            for case in range(WARM_UPS):
                with contextlib.suppress(Exception):
                    functions[name](Draw(case))
    at_start = before = megabytes("VmRSS")
    forget_peak()
    for case in range(first, last):
        print(f"start {case}", flush=True)
        try:
            since = time.process_time()
            ended = run_case(case, only)
            if (spent := time.process_time() - since) > MOST_SECONDS:
                raise AnswerError(f"{ended}, after {spent:.0f} s of processor time")
            if (case - first + 1) % WATCHED == 0 or case == last - 1:
                grown, before = megabytes("VmHWM") - before, megabytes("VmRSS")
                forget_peak()
                if grown > MOST_MEGABYTES:
                    raise AnswerError(f"{ended}, with {grown:.0f} MB, or one of the {WATCHED - 1} cases before")
        except Exception:
            print(f"failed {case}", *traceback.format_exc().splitlines(), sep="\n| ")
        else:
            print(f"ended {ended}")
    if (leaked := megabytes("VmRSS") - at_start) > MOST_LEAKED:
        print(f"failed {last - 1}\n| {leaked:.0f} MB leaked by cases {first} to {last - 1}")
