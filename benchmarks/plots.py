"""The plots of docs/benchmarks.md, from the rows of the CSVs in `results`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from report import OURS, Rows, per_problem

matplotlib.use("Agg")
import matplotlib.pyplot as plt

#: Wide enough for two columns, narrow enough that text can be read on a phone.
WIDTH = 6.4
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
COLOURS = {
    OURS: "#d1495b",
    "H USAC_MAGSAC": "#1b6ca8",
    "F USAC_MAGSAC": "#5aa9d6",
    "H poselib": "#3c8d5a",
    "sequential H poselib": "#8cc63f",
    "LPM": "#e3a72f",
    "AdaLAM": "#7a4ea3",
}
SHOWN = (*COLOURS, "sequential H USAC_MAGSAC 12 px", "keep everything")
DOTS = ("#14405f", "#e3a72f", "#3c8d5a", "#7a4ea3")


def save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def draw_dots(rows: Rows, suites: Sequence[str], path: Path) -> None:
    """Mean F1 of each method on each suite's judge half; the second four suites hollow."""
    means = {
        suite: {m: np.mean(list(f1.values())) for m, f1 in per_problem(_of(rows, suite), "f1").items() if m in SHOWN}
        for suite in suites
    }
    methods = sorted({m for found in means.values() for m in found}, key=lambda m: _mean_over(means, m))
    figure, axes = plt.subplots(figsize=(WIDTH, 1.5 + 0.32 * len(methods)), layout="constrained")
    for number, (suite, found) in enumerate(means.items()):
        colour = DOTS[number % 4]
        places = [methods.index(m) for m in found]
        face = colour if number < 4 else "none"
        axes.scatter(list(found.values()), places, s=46, facecolor=face, edgecolor=colour, label=suite, lw=1.5)
    axes.set_yticks(range(len(methods)), methods)
    axes.get_yticklabels()[methods.index(OURS)].set_color(COLOURS[OURS])
    axes.set_xlabel("mean F1 of the mask, judge half")
    figure.legend(loc="outside upper center", ncols=2)
    save(figure, path)


def draw_curves(rows: Rows, suites: Sequence[str], path: Path) -> None:
    """Mean F1 over the share of mismatches, one panel a suite."""
    height = 2.3 * -(-len(suites) // 2) + 0.8
    figure, panels = plt.subplots(-(-len(suites) // 2), 2, figsize=(WIDTH, height), sharey=True, layout="constrained")
    for axes, suite in zip(panels.flat, suites, strict=False):
        own = _of(rows, suite)
        rates = sorted({row["rate"] for row in own}, key=float)
        for method, colour in COLOURS.items():
            means = [_mean(own, method, rate) for rate in rates]
            width = 2.6 if method == OURS else 1.3
            axes.plot([100 * float(rate) for rate in rates], means, ".-", color=colour, lw=width, label=method)
        axes.set_title(suite, fontsize=10, loc="left")
    for axes in panels[-1]:
        axes.set_xlabel("mismatches, %")
    for axes in panels[:, 0]:
        axes.set_ylabel("mean F1")
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    save(figure, path)


def draw_times(rows: Rows, path: Path) -> None:
    """Milliseconds over matches, both logarithmic."""
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2), layout="constrained")
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        n, ms = [int(row["n"]) for row in own], [float(row["warm_ms"]) for row in own]
        axes.loglog(
            n, ms, "o-", label=method, color=COLOURS.get(method, "0.5"), lw=2.6 if method == OURS else 1.3, ms=4
        )
    axes.set(xlabel="matches", ylabel="median ms per pair, warm")
    figure.legend(loc="outside upper center", ncols=2)
    save(figure, path)


def draw_calibration(rows: Rows, path: Path) -> None:
    """Measured over nominal rate, with the band of a factor of 1.5."""
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2), layout="constrained")
    nominal = np.array(sorted({float(row["nominal"]) for row in rows}))
    axes.fill_between(nominal, nominal / 1.5, np.minimum(1, nominal * 1.5), color="0.9", label="within a factor of 1.5")
    axes.plot(nominal, nominal, color="0.5", lw=1)
    for situation in dict.fromkeys(row["mismatches"] for row in rows):
        own = [row for row in rows if row["mismatches"] == situation]
        measured = np.maximum([float(row["measured"]) for row in own], 1e-4)
        axes.plot([float(row["nominal"]) for row in own], measured, "o-", label=situation, ms=4)
    axes.set(xscale="log", yscale="log", xlabel="nominal false acceptance rate", ylabel="share of mismatches accepted")
    figure.legend(loc="outside upper center", ncols=2)
    save(figure, path)


def _of(rows: Rows, suite: str) -> Rows:
    return [row for row in rows if row["suite"] == suite and row["half"] == "judge"]


def _mean(rows: Rows, method: str, rate: str) -> float:
    values = [float(row["f1"]) for row in rows if row["method"] == method and row["rate"] == rate]
    return float(np.mean(values)) if values else float("nan")


def _mean_over(means: dict[str, dict[str, Any]], method: str) -> float:
    return float(np.mean([found[method] for found in means.values() if method in found]))
