"""The sweep's tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from complexity import exponents
from figures import KINDS, TITLES, mean_by
from sweep import BRANCHES, read_auc
from table import Row, read

from ruzhash_cv.paper import METHODS


def markdown(header: Sequence[Any], lines: Iterable[Sequence[Any]]) -> str:
    """Return a table; numbers to three decimals."""
    text = ["| " + " | ".join(map(str, header)) + " |", "|" + "---|" + "---:|" * (len(header) - 1)]
    for line in lines:
        text.append("| " + " | ".join(f"{item:.3f}" if isinstance(item, float) else str(item) for item in line) + " |")
    return "\n".join(text)


def write(out: Path) -> str:
    """Write ``tables.md`` beside the CSVs and return it."""
    parts = [
        part
        for part in (
            auc(out),
            spread(out),
            paired(out),
            cut_offs(out),
            speed(out),
            times(out),
            table1(out),
            scores(out),
            estimate(out),
        )
        if part
    ]
    text = (
        "\n\n".join(["# Tables of the paper's experiments", "Written by `python benchmarks/paper/run.py`.", *parts])
        + "\n"
    )
    (out / "tables.md").write_text(text, encoding="utf-8")
    return text


def auc(out: Path) -> str:
    rows = read_auc(out)
    means = mean_by(rows, "auc", "group", "tolerance", "method", "b")
    text = []
    for (group, tolerance), title in TITLES.items():
        own = [row for row in rows if (row["group"], row["tolerance"]) == (group, tolerance)]
        bs = [b for b in BRANCHES if any(row["b"] == str(b) for row in own)]
        if not own:
            continue
        lines = [
            [method, *(means.get((group, tolerance, method, str(b)), float("nan")) for b in bs)] for method in METHODS
        ]
        runs = sorted({int(row["runs"]) for row in own})
        counts = f"scenes: {len({row['scene'] for row in own})}; runs: {' to '.join(map(str, runs))}"
        text.append(f"**ROC AUC, {title}** ({counts})\n\n" + markdown(["b", *bs], lines))
    return "## AUC over b\n\n" + "\n\n".join(text) if text else ""


def spread(out: Path) -> str:
    """The best AUC of each method, and how much it varies with b."""
    rows = read_auc(out)
    means = mean_by(rows, "auc", "group", "tolerance", "method", "b")
    lines: list[list[Any]] = []
    for (group, tolerance), title in TITLES.items():
        best: dict[str, float] = {}
        for method in METHODS:
            own = [value for key, value in means.items() if key[:3] == (group, tolerance, method)]
            if own:
                best[method] = max(own)
        if len(best) == len(METHODS):
            ranges = {
                m: np.ptp([v for key, v in means.items() if key[:3] == (group, tolerance, m)])
                for m in ("RHF", "RHF-B", "PIF")
            }
            lines.append(
                [title, *(best[m] for m in METHODS), float(ranges["RHF"]), float(ranges["RHF-B"]), float(ranges["PIF"])]
            )
    header = ["data", *(f"best {m}" for m in METHODS), "range over b, RHF", "RHF-B", "PIF"]
    return "## Best AUC, and its range over b\n\n" + markdown(header, lines) if lines else ""


#: (method, b) less (method, b).
PAIRS = (
    ("RHF", 16, "PIF", 2),
    ("RHF-B", 16, "PIF-B", 2),
    ("RHF", 8, "PIF", 8),
    ("RHF-B", 8, "PIF-B", 8),
    ("PIF", 2, "PIF-R", 2),
)


def paired(out: Path) -> str:
    """Differences in AUC, paired by scene (each the mean of its runs), with standard errors over scenes."""
    means = mean_by(read_auc(out), "auc", "group", "tolerance", "method", "b", "scene")
    lines: list[list[Any]] = []
    for where, title in TITLES.items():
        found = {key[2:]: value for key, value in means.items() if key[:2] == where}
        cells = []
        for first, b1, second, b2 in PAIRS:
            scenes = [s for m, b, s in found if (m, b) == (first, str(b1)) and (second, str(b2), s) in found]
            gaps = np.array([found[first, str(b1), s] - found[second, str(b2), s] for s in scenes])
            if len(gaps) > 1:
                cells.append(f"{gaps.mean():+.3f} ± {gaps.std(ddof=1) / len(gaps) ** 0.5:.3f}")
        if len(cells) == len(PAIRS):
            lines.append([f"{title} ({len(scenes)})", *cells])
    header = ["data (scenes)", *(f"{first}, b = {b1}, less {second}, b = {b2}" for first, b1, second, b2 in PAIRS)]
    return "## AUC, paired by scene\n\n" + markdown(header, lines) if lines else ""


def cut_offs(out: Path) -> str:
    """AUC over the cut-off of binary preferences."""
    rows = read(out / "tolerance.csv")
    means = mean_by(rows, "auc", "group", "method", "b", "cut")
    cuts = sorted({row["cut"] for row in rows}, key=float)
    lines = []
    for group in [group for group in KINDS if any(row["group"] == group for row in rows)]:
        name = f"{KINDS[group]} ({len({row['scene'] for row in rows if row['group'] == group})})"
        for method, b in [(m, b) for m in ("RHF-B", "PIF-B") for b in ("2", "16")]:
            lines.append([f"{name}, {method}, b = {b}", *(means[group, method, b, cut] for cut in cuts)])
    header = ["data (scenes), cut-off in σ", *(f"{float(cut):g}" for cut in cuts)]
    return "## AUC over the cut-off of binary preferences\n\n" + markdown(header, lines) if lines else ""


def speed(out: Path) -> str:
    """Time saved by RHF at each b and at the b of the best AUC."""
    rows = read(out / "times.csv")
    seconds, quality = mean_by(rows, "test_seconds", "method", "b"), mean_by(rows, "auc", "method", "b")
    bs = [b for b in BRANCHES if ("RHF", str(b)) in seconds]
    if not bs:
        return ""
    best = {method: max(bs, key=lambda b: quality[method, str(b)]) for method in METHODS}
    lines: list[list[Any]] = []
    for fast, slow, claimed in (("RHF", "PIF", 70), ("RHF", "PIF-R", 70), ("RHF-B", "PIF-B", 35)):
        saved = [f"{100 * (1 - seconds[fast, str(b)] / seconds[slow, str(b)]):.0f} %" for b in bs]
        at_best = 100 * (1 - seconds[fast, str(best[fast])] / seconds[slow, str(best[slow])])
        lines.append(
            [f"{fast} over {slow}", f"{claimed} %", f"{at_best:.0f} % (b = {best[fast]}, {best[slow]})", *saved]
        )
    return "## Test time saved\n\n" + markdown(
        ["", "the paper", "each at its best b", *(f"b = {b}" for b in bs)], lines
    )


def times(out: Path) -> str:
    rows = read(out / "times.csv")
    bs = [b for b in BRANCHES if any(row["b"] == str(b) for row in rows)]
    text = []
    for phase in ("train", "test"):
        means = mean_by(rows, f"{phase}_seconds", "method", "b")
        lines = (
            [[method, *(means[method, str(b)] for b in bs)] for method in METHODS if (method, str(bs[-1])) in means]
            if bs
            else []
        )
        text.append(f"**{phase}, processor seconds of one thread**\n\n" + markdown(["b", *bs], lines))
    return "## Times over b\n\n" + "\n\n".join(text) if bs else ""


def table1(out: Path) -> str:
    columns = [f"{phase}_{kind}" for phase in ("train", "test") for kind in ("exponent", "expected")]
    lines = [
        [f"{line['method']}, {line['varied']}", *(f"{line[column]:.2f}" for column in columns)]
        for line in exponents(out / "complexity.csv")
    ]
    header = ["method, variable", "training: measured", "expected", "test: measured", "expected"]
    return "## Exponents of time\n\n" + markdown(header, lines) if lines else ""


def scores(out: Path) -> str:
    rows = read(out / "scores.csv")
    means = mean_by(rows, "auc", "group", "tolerance", "method", "b")
    panels = [panel for panel in TITLES if any(key[:2] == panel for key in means)]
    counts = {
        panel: len({row["scene"] for row in rows if (row["group"], row["tolerance"]) == panel}) for panel in panels
    }
    lines: list[list[Any]] = []
    for method, b in [(m, b) for m in ("RHF", "PIF-R") for b in ("2", "16")]:
        lines.append([f"{method}, b = {b}", *(means.get((*panel, method, b), float("nan")) for panel in panels)])
    for method in ("iForest, preferences", "iForest, raw data"):
        lines.append([method, *(means.get((*panel, method, "2"), float("nan")) for panel in panels)])
    return (
        "## Isolation forests\n\n" + markdown(["method", *(f"{TITLES[p]}; {counts[p]} scenes" for p in panels)], lines)
        if panels
        else ""
    )


def estimate(out: Path) -> str:
    rows: list[Row] = read(out / "estimate.csv")
    lines = [
        [
            f"{r['scene']}{', binary' if r['binary'] == 'True' else ''}",
            r["n_pairs"],
            r["correlation"],
            r["mean_error"],
            r["rms_error"],
        ]
        for r in rows
    ]
    return (
        "## Ruzicka distance and hashes\n\n"
        + markdown(["scene", "pairs", "correlation", "mean error", "rms error"], lines)
        if lines
        else ""
    )
