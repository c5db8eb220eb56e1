"""Run cases in a child process whose end, silence and stderr are watched; what was seen can be recorded and goes on from there."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: After so long on the clock, however busy the machine, a case hangs.
SECONDS_TO_HANG = 120.0


@dataclass
class Seen:
    """What a range of cases came to: how often each function ended how, what it measured (number, sum, least, most), and failures."""

    first: int
    last: int
    ended: Counter[str] = field(default_factory=Counter)
    measured: dict[str, list[float]] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, line: str) -> None:
        """Count a case by the line that a child wrote at its end."""
        name, how, *value = line.split()
        self.ended[f"{name} {how}"] += 1
        if value:
            number = float(value[0])
            n, total, least, most = self.measured.get(name, [0, 0.0, number, number])
            self.measured[name] = [n + 1, total + number, min(least, number), max(most, number)]

    def join(self, other: Seen) -> None:
        """Add what other cases came to."""
        self.ended.update(other.ended)
        for name, (n, total, least, most) in other.measured.items():
            own = self.measured.get(name, [0, 0.0, least, most])
            self.measured[name] = [own[0] + n, own[1] + total, min(own[2], least), max(own[3], most)]
        self.failures += [(case, text) for case, text in other.failures]
        self.seconds += other.seconds
        self.last = max(self.last, other.last)


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


def run_child(first: int, last: int, only: str | None, seen: Seen) -> int:
    """Run cases in a child, add what they came to, and return the first case not run."""
    at = first - 1
    with tempfile.TemporaryFile() as stderr:
        command = [sys.executable, str(Path(__file__).parent), "--child", str(first), str(last)]
        command += [] if only is None else ["--group", only]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr)
        for line in lines_of(process):
            if line is None:
                process.kill()
                seen.failures.append((at, f"no end within {SECONDS_TO_HANG:g} s"))
            elif line.startswith("start "):
                at = int(line.split()[1])
            elif line.startswith("ended "):
                seen.add(line.removeprefix("ended "))
            elif line.startswith("failed "):
                seen.failures.append((int(line.split()[1]), ""))
            elif line.startswith("|"):
                case, text = seen.failures[-1]
                seen.failures[-1] = case, f"{text}\n  {line}"
        if (status := process.wait()) != 0 and (not seen.failures or seen.failures[-1][0] != at):
            seen.failures.append((at, f"the process ended with status {status}"))
        stderr.seek(0)
        if said := stderr.read().decode(errors="replace").strip():
            seen.failures.append((first, f"cases {first} to {at} wrote to stderr:\n{said[-4000:]}"))
    return max(at, first) + 1


def run_cases(first: int, last: int, only: str | None = None) -> Seen:
    """Run a range of cases, in another child after one that ended early."""
    seen, case, since = Seen(first, last), first, time.monotonic()
    while case < last:
        case = run_child(case, last, only, seen)
    seen.seconds = time.monotonic() - since
    return seen


def recorded(path: Path | None) -> list[Seen]:
    """Return the ranges of cases that a file records."""
    if path is None or not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Seen(**{**row, "ended": Counter(row["ended"]), "failures": [(case, text) for case, text in row["failures"]]})
        for row in rows
    ]


def record(path: Path, seen: Seen) -> None:
    """Add a range of cases to a file, a line of JSON."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(vars(seen)) + "\n")
