"""The figures over b and over time, from the CSVs of the sweep; `illustrations` draws the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import illustrations
import matplotlib
import numpy as np
from complexity import STEPS
from sweep import BRANCHES, read_auc
from table import Row, read

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from ruzhash_cv.paper import METHODS

COLOURS = {
    "PIF": "#1b6ca8",
    "PIF-R": "#5aa9d6",
    "PIF-B": "#14405f",
    "RHF": "#d1495b",
    "RHF-B": "#7d1d2b",
    "iForest": "#7a7a7a",
}
MARKERS = {"PIF": "o", "PIF-R": "s", "PIF-B": "^", "RHF": "o", "RHF-B": "^", "iForest": "x"}
TITLES = {
    ("lines", "paper"): "lines, k = 3",
    ("circles", "paper"): "circles, k = 3",
    ("homographies", "paper"): "AdelaideRMF planes, k = 5",
    ("fundamental", "paper"): "AdelaideRMF motions, k = 0.25",
    ("homographies", "wide"): "AdelaideRMF planes, cut at 24 σ",
    ("fundamental", "wide"): "AdelaideRMF motions, cut at 24 σ",
}
KINDS = {"lines": "lines", "circles": "circles", "homographies": "planes", "fundamental": "motions"}
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.dpi": 110,
}


def draw_all(out: Path) -> None:
    """Draw every figure that the CSVs there are allow."""
    with plt.rc_context(STYLE):
        for draw in (draw_auc, draw_times, draw_best, draw_tolerance, draw_complexity):
            draw(out)
        illustrations.draw_all(out)


def mean_by(rows: Iterable[Row], value: str, *columns: str) -> dict[tuple[str, ...], float]:
    """Return means of a column, each scene counting once: its runs are averaged first."""
    scenes: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        scenes[tuple(row[column] for column in columns)][row["scene"]].append(float(row[value]))
    return {key: float(np.mean([np.mean(own) for own in runs.values()])) for key, runs in scenes.items()}


def curve(axis: Any, method: str, xs: Iterable[float], ys: Iterable[float], **options: Any) -> None:
    """Draw a method's curve in its colour; binary variants are dashed."""
    style = "--" if method.endswith("-B") else "-"
    axis.plot(xs, ys, style, color=COLOURS[method], marker=MARKERS[method], ms=4, lw=1.4, label=method, **options)


def over_b(axis: Any) -> None:
    axis.set_xscale("log", base=2)
    axis.set_xticks(BRANCHES, [str(b) for b in BRANCHES])
    axis.set_xlabel("branching factor b")


def save(figure: Any, out: Path, name: str) -> None:
    figure.savefig(out / name, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def draw_auc(out: Path) -> None:
    """AUC over b, a panel for each kind of data."""
    rows = read_auc(out)
    means = mean_by(rows, "auc", "group", "tolerance", "method", "b")
    panels = [panel for panel in TITLES if any(key[:2] == panel for key in means)]
    if not panels:
        return
    n_columns = min(len(panels), 2) if len(panels) != 6 else 3
    order = panels if len(panels) != 6 else [panels[i] for i in (0, 2, 3, 1, 4, 5)]
    figure, axes = plt.subplots(
        -(-len(panels) // n_columns), n_columns, figsize=(4.2 * n_columns, 3.1 * -(-len(panels) // n_columns)),
        squeeze=False, layout="constrained",
    )  # fmt: skip
    for axis, (group, tolerance) in zip(axes.ravel(), order, strict=False):
        for method in METHODS:
            known = [b for b in BRANCHES if (group, tolerance, method, str(b)) in means]
            curve(axis, method, known, [means[group, tolerance, method, str(b)] for b in known])
        n_scenes = len({row["scene"] for row in rows if (row["group"], row["tolerance"]) == (group, tolerance)})
        axis.set_title(f"{TITLES[group, tolerance]}; {n_scenes} scenes", fontsize=9.5, loc="left")
        axis.set_ylabel("ROC AUC")
        over_b(axis)
    axes[0, 0].legend(ncols=2, fontsize=8)
    save(figure, out, "auc.png")


def draw_times(out: Path) -> None:
    """Training and test time over b, with the growth the paper expects."""
    rows = read(out / "times.csv")
    if not rows:
        return
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for axis, phase in zip(axes, ("train", "test"), strict=True):
        means = mean_by(rows, f"{phase}_seconds", "method", "b")
        for method in METHODS:
            known = [b for b in BRANCHES if (method, str(b)) in means]
            curve(axis, method, known, [means[method, str(b)] for b in known])
        bs = np.array(known, float)
        for method, shape, anchor, text, side in (
            ("RHF", 1 / np.log2(bs), 0, "∝ 1 / log₂ b", "left"),
            ("PIF", bs / np.log2(bs), -1, "∝ b / log₂ b", "right"),
        ):
            ys = shape * means[method, str(known[anchor])] / shape[anchor]
            axis.plot(bs, ys, ":", color="k", lw=1, zorder=0)
            at = max(len(bs) - 3, 0)  # the quick form has two
            axis.annotate(text, (bs[at], ys[at]), xytext=(-3, 9), textcoords="offset points", ha=side, fontsize=8)
        axis.set_yscale("log")
        over_b(axis)
        axis.set_title(f"{'training' if phase == 'train' else 'test'}, t = 100, ψ = 256", fontsize=9.5, loc="left")
        axis.set_ylabel("processor seconds, one thread")
    axes[0].legend(ncols=2, fontsize=8)
    save(figure, out, "times.png")


def draw_best(out: Path) -> None:
    """Each method's AUC against its test time, one point per b, the best one large."""
    rows = read(out / "times.csv")
    if not rows:
        return
    auc, seconds = (mean_by(rows, value, "method", "b") for value in ("auc", "test_seconds"))
    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    for method in METHODS:
        known = [b for b in BRANCHES if (method, str(b)) in auc]
        xs, ys = ([means[method, str(b)] for b in known] for means in (seconds, auc))
        curve(axis, method, xs, ys, alpha=0.45)
        best = int(np.argmax(ys))
        axis.plot(xs[best], ys[best], MARKERS[method], ms=10, color=COLOURS[method], mec="white")
        place = {"PIF": (10, -3), "PIF-R": (-10, 8), "PIF-B": (10, 8), "RHF": (-4, 21), "RHF-B": (8, 8)}[method]
        axis.annotate(
            f"{method}, b = {known[best]}", (xs[best], ys[best]), xytext=place, textcoords="offset points", fontsize=8,
            ha="right" if place[0] < -5 else "left", color=COLOURS[method],
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xlabel("test time, processor seconds of one thread")
    axis.set_ylabel("ROC AUC, mean over scenes")
    axis.margins(x=0.22, y=0.1)
    axis.legend(fontsize=8, loc="lower left")
    save(figure, out, "best.png")


def draw_tolerance(out: Path) -> None:
    """AUC over the cut-off of binary preferences, in standard deviations of the true noise."""
    rows = read(out / "tolerance.csv")
    groups = [group for group in KINDS if any(row["group"] == group for row in rows)]
    if not groups:
        return
    means = mean_by(rows, "auc", "group", "method", "b", "cut")
    figure, axes = plt.subplots(
        1, len(groups), figsize=(3.2 * len(groups), 3), squeeze=False, sharey=True, layout="constrained"
    )
    for axis, group in zip(axes[0], groups, strict=True):
        for method, b in (("RHF-B", "2"), ("RHF-B", "16"), ("PIF-B", "2"), ("PIF-B", "16")):
            cuts = sorted({row["cut"] for row in rows if row["group"] == group}, key=float)
            ys = [means[group, method, b, cut] for cut in cuts]
            style = "-" if b == "16" else ":"
            axis.plot(
                [float(cut) for cut in cuts],
                ys,
                style,
                color=COLOURS[method],
                marker=MARKERS[method],
                ms=4,
                label=f"{method}, b = {b}",
            )
        paper_k = {"homographies": 5.0, "fundamental": 0.25}.get(group, 3.0)
        axis.axvline(paper_k, color="k", lw=0.8, ls=(0, (2, 2)))
        axis.annotate(
            "paper's k",
            (paper_k, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=8,
        )
        axis.set_xscale("log")
        ticks = [0.25, 1, 3, 5, 12, 24, 48]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        n_scenes = len({row["scene"] for row in rows if row["group"] == group})
        axis.set_title(f"{KINDS[group]}; {n_scenes} scenes", fontsize=9.5, loc="left")
        axis.set_xlabel("cut-off, true σ")
    axes[0, 0].set_ylabel("ROC AUC")
    axes[0, -1].legend(fontsize=8)
    save(figure, out, "tolerance.png")


def draw_complexity(out: Path) -> None:
    """Test and training time over psi, t, b and n, one at a time."""
    rows = read(out / "complexity.csv")
    if not rows:
        return
    figure, axes = plt.subplots(2, 4, figsize=(13, 5.4), sharey="row", layout="constrained")
    for line, phase in zip(axes, ("train", "test"), strict=True):
        for axis, varied in zip(line, STEPS, strict=True):
            for method in (*METHODS, "iForest"):
                own = [row for row in rows if row["method"] == method and row["varied"] == varied]
                values = sorted({int(row[varied]) for row in own})
                means = [
                    np.mean([float(row[f"{phase}_seconds"]) for row in own if int(row[varied]) == v]) for v in values
                ]
                curve(axis, method, values, means)
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(STEPS[varied], [str(value) for value in STEPS[varied]])
            axis.set_xlabel({"psi": "ψ"}.get(varied, varied))
        line[0].set_ylabel(f"{'training' if phase == 'train' else 'test'}, processor seconds")
    axes[0, 0].legend(fontsize=7.5, ncols=2)
    save(figure, out, "complexity.png")
