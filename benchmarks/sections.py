"""The accuracy sections of docs/benchmarks.md: what each one shows, and the command that measures it anew."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from report import OURS, Rows

OWN = (OURS, f"{OURS} homography", f"{OURS} fundamental")
SINGLE = ("H RANSAC", "H USAC_MAGSAC", "H USAC_ACCURATE", "F RANSAC", "F USAC_MAGSAC", "F USAC_ACCURATE")
OTHERS = ("H poselib", "sequential H poselib", "sequential H USAC_MAGSAC 12 px", "H pydegensac", "LPM", "AdaLAM")
MORE = ("H LMEDS", "F LMEDS", "F poselib", "F pydegensac", "isolation forest on displacements", "keep everything")
#: Settings chosen because they are the best for AdelaideRMF.
TUNED = ("sequential H USAC_MAGSAC 12 px",)
WITH_TRUTH = ("one plane", "planes", "one rigid", "motions")


@dataclass(frozen=True)
class Section:
    """A section: the arguments that measure it, its suites as rows name them, its methods, and their settings' halves."""

    name: str
    arguments: str
    suites: tuple[str, ...]
    methods: tuple[str, ...]
    halves: tuple[str, ...] = ("judge",)

    def command(self, redo: Sequence[str] = ()) -> list[str]:
        """Return the command that measures what is missing of this section, `redo` anew."""
        command = ["python", "benchmarks/evaluate_accuracy.py", *self.arguments.split(), "--methods", *self.methods]
        return [*command, "--redo", *redo] if redo else command

    def rows(self, rows: Rows) -> Rows:
        """Return the section's rows: of problems that all of its methods with rows at all have answered."""
        wanted = [row for row in rows if (row["suite"], row["half"]) in self.parts() and row["method"] in self.methods]
        present, answered = defaultdict(set), defaultdict(set)
        for row in wanted:
            present[row["suite"], row["half"]].add(row["method"])
            answered[row["suite"], row["half"], row["problem"]].add(row["method"])
        return [
            row
            for row in wanted
            if answered[row["suite"], row["half"], row["problem"]] == present[row["suite"], row["half"]]
        ]

    def parts(self) -> list[tuple[str, str]]:
        """Return the suites and halves, in order."""
        return [(suite, half) for suite in self.suites for half in self.halves]

    def shown_command(self) -> str:
        """Return the command as a line of the page."""
        return f"`{shlex.join(self.command())}`"


SECTIONS = (
    Section(
        "labelled",
        "--suite adelaidermf --half both --seeds 5",
        ("adelaidermf H", "adelaidermf F"),
        (*OWN, *SINGLE, *OTHERS, *MORE),
        ("judge", "tune"),
    ),
    Section(
        "fresh",
        "--suite fresh --half both --seeds 1",
        ("sift on adelaidermf H", "sift on adelaidermf F", "orb on adelaidermf H", "orb on adelaidermf F"),
        (*OWN, *SINGLE, *OTHERS, *MORE),
        ("judge", "tune"),
    ),
    Section(
        "rendered",
        "--suite rendered --half judge --seeds 1 --per-cell 2",
        (*WITH_TRUTH, *(f"repeated texture, {name}" for name in WITH_TRUTH)),
        (*OWN, *SINGLE, *OTHERS),
    ),
    Section(
        "single",
        "--suite one-plane one-rigid --half judge --seeds 1 --per-cell 6",
        ("one plane", "one rigid"),
        (OURS, "H USAC_MAGSAC", "F USAC_MAGSAC"),
    ),
    Section(
        "photographed",
        "--suite photographed --half judge --seeds 1 --per-cell 1",
        tuple(f"{feature} on rendered {name}" for feature in ("sift", "orb") for name in WITH_TRUTH),
        (*OWN, *SINGLE, *OTHERS),
    ),
)
