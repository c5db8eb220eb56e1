"""Hostile input for every public function: whatever arrives, a well-formed answer or a documented exception.

    python tests/fuzzing --minutes 30
    python tests/fuzzing --cases 200 --seed 7 --group files
    python tests/fuzzing --cases 1000000 --record million.jsonl     # the same command goes on where it was stopped
    python tests/fuzzing --summary million.jsonl

A case has a number; the same number makes the same case. A child process works through them with warnings as errors and bounded
memory; its parent watches the clock, its end and what it writes to stderr. A failure prints the command that repeats it. Most cases
are of functions that take less than a millisecond: `groups.py` has the shares.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from batches import Seen, record, recorded, run_cases

#: Cases of one child, and of one line of a record.
BATCH = 20_000
#: The Jaccard index of masks, in the mean of this many cases at least, after a change that says nothing about the matches.
LEAST_AGREEMENT, FEWEST = 0.95, 50


def summary(seen: Seen) -> str:
    """Return a table: of each group and function how many cases were answered and refused, and what was measured."""
    names = sorted({line.split()[0] for line in seen.ended})
    rows = ["| function | answered | refused | measured: mean | least | most |", "|---|---|---|---|---|---|"]
    for group in sorted({name.split("/")[0] for name in names}):
        own = [name for name in names if name.startswith(f"{group}/")]
        counts = [sum(seen.ended[f"{name} {how}"] for name in own) for how in ("answered", "refused")]
        rows.append(f"| **{group}** | {counts[0]} | {counts[1]} | | | |")
        for name in own:
            n, total, *ends = seen.measured.get(name, [0, 0.0])
            figures = [f"{each:.3f}" for each in (total / n, *ends)] if n else [""] * 3
            counts = [str(seen.ended[f"{name} {how}"]) for how in ("answered", "refused")]
            rows.append(f"| {name.split('/')[1]} | {' | '.join([*counts, *figures])} |")
    return "\n".join(rows)


def disagreements(seen: Seen) -> list[str]:
    """Return which laws of agreement do not hold in the mean."""
    laws = {name: measured for name, measured in seen.measured.items() if name.startswith("agreement/")}
    return [name for name, (n, sum_of, *_) in laws.items() if n >= FEWEST and sum_of / n < LEAST_AGREEMENT]


def run(options: argparse.Namespace) -> Seen:
    """Run cases until their number or the time is up, and print failures as they come."""
    since, case = time.monotonic(), options.seed
    end = options.seed + (options.cases or (200 if options.minutes is None else sys.maxsize))
    total = Seen(options.seed, options.seed)
    done = {(seen.first, seen.last): seen for seen in recorded(options.record)}
    while case < end and (options.minutes is None or time.monotonic() - since < 60 * options.minutes):
        last = min(case + BATCH, end)
        seen = done.get((case, last))
        if seen is None:
            seen = run_cases(case, last, options.group)
            if options.record is not None:
                record(options.record, seen)
        case = last
        total.join(seen)
        group = "" if options.group is None else f" --group {options.group}"
        for number, failure in seen.failures:
            repeat = f"python tests/fuzzing --cases 1 --seed {number}{group}"
            print(f"FAILED case {number}: {failure}\n  repeat: {repeat}", flush=True)
    return total


def main() -> int:
    """Run cases, or show what was recorded of them; 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case")
    parser.add_argument("--group", help="cases of one group; even: of each as often")
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help=f"add each {BATCH} cases to a file, and leave out those in it"
    )
    parser.add_argument("--summary", type=Path, metavar="FILE", help="print what such a file records")
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        from cases import work

        from ruzhash_cv import _kernels

        _kernels.said.add("compiling")  # that kernels are compiled is no failure
        work(*options.child, options.group)
        return 0
    if options.summary is not None:
        total = Seen(0, 0)
        for seen in recorded(options.summary):
            total.join(seen)
    else:
        total = run(options)
    print(summary(total))
    n_cases = sum(total.ended.values()) + len(total.failures)
    failures = len(total.failures) + len(less := disagreements(total))
    print(*(f"\nFAILED {name}: masks agree less than {LEAST_AGREEMENT} in the mean" for name in less), sep="")
    print(f"{n_cases} cases, {failures} failures, {total.seconds:.0f} s")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
