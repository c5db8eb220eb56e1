"""The figures: curves from the CSVs of the sweep; one split, and hashes beside distances."""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from paper.problems import load
from paper.sweep import BRANCHES, IFOREST, STEPS, read, read_means
from paper.tables import KINDS, PHASES, mean_by, panels
from scipy.stats import pearsonr

from ruzhash_cv.paper import METHODS, ruzhash, ruzicka_distance

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BLUES, REDS = ("#1b6ca8", "#5aa9d6", "#14405f"), ("#d1495b", "#7d1d2b")
COLOURS = dict(zip((*METHODS, IFOREST), (*BLUES, *REDS, "#7a7a7a"), strict=True))
MARKERS = {"PIF": "o", "PIF-R": "s", "PIF-B": "^", "RHF": "o", "RHF-B": "^", IFOREST: "x"}
WARM, GREY = "#d1495b", "#8d8d8d"
PALETTE = ("#1b6ca8", "#e3a72f", "#3c8d5a", "#7a4ea3", "#b5651d")
STYLE = {
    "font.size": 9, "axes.titlesize": 9.5, "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.alpha": 0.25, "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 8, "figure.dpi": 110,
    "figure.constrained_layout.use": True,
}  # fmt: skip
N_HASHES = 1000
SPLIT_SEED = 153  # one where the groups part and one row leaves its group


def curve(axis: Any, method: str, values: pd.Series, label: str | None = None, **options: Any) -> None:
    """A method's curve in its colour; binary variants are dashed."""
    options = {"ls": "--" if method.endswith("-B") else "-", **options}
    mark = {"color": COLOURS[method], "marker": MARKERS[method], "ms": 4, "lw": 1.4}
    axis.plot(values.index, values, label=label or method, **mark, **options)


def over_b(axis: Any) -> None:
    """A logarithmic axis of branching factors."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(BRANCHES, [str(b) for b in BRANCHES])
    axis.set_xlabel("branching factor b")


def draw_auc(out: Path) -> Any:
    """AUC over b, a panel for each kind of data."""
    parts = list(panels(read_means(out / "auc.csv")))
    columns = 3 if len(parts) > 4 else min(len(parts), 2)
    rows = -(-len(parts) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.1 * rows), squeeze=False)
    for axis, (title, rows) in zip(axes.ravel(), parts, strict=False):
        means = mean_by(rows, "auc", "method", "b")
        for method in METHODS:
            curve(axis, method, means[method].sort_index())
        axis.set(title=f"{title}; {rows.scene.nunique()} scenes", ylabel="ROC AUC")
        over_b(axis)
    axes[0, 0].legend(ncols=2)
    return figure


def draw_times(out: Path) -> Any:
    """Training and test time over b, with the growth the paper expects."""
    rows = read(out / "times.csv")
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    bs = np.array(sorted(rows.b.unique()), float)
    for axis, phase in zip(axes, PHASES, strict=True):
        means = mean_by(rows, f"{phase}_seconds", "method", "b")
        for method in METHODS:
            curve(axis, method, means[method])
        growth = ("RHF", 1 / np.log2(bs), 0, "∝ 1 / log₂ b"), ("PIF", bs / np.log2(bs), -1, "∝ b / log₂ b")
        for method, shape, anchor, text in growth:
            axis.plot(bs, shape * means[method].iloc[anchor] / shape[anchor], ":", color="k", lw=1, zorder=0)
            at = max(len(bs) - 3, 0)  # the quick form has two
            place = bs[at], shape[at] * means[method].iloc[anchor] / shape[anchor]
            axis.annotate(text, place, xytext=(-3, 9), textcoords="offset points")
        axis.set_yscale("log")
        over_b(axis)
        title = f"{'training' if phase == 'train' else 'test'}, t = 100, ψ = 256"
        axis.set(title=title, ylabel="processor seconds, one thread")
    axes[0].legend(ncols=2)
    return figure


def draw_tolerance(out: Path) -> Any:
    """AUC over the cut-off of binary preferences, in standard deviations of the true noise."""
    rows = read(out / "tolerance.csv")
    groups = [group for group in KINDS if (rows.group == group).any()]
    figure, axes = plt.subplots(1, len(groups), figsize=(3.2 * len(groups), 3), squeeze=False, sharey=True)
    for axis, group in zip(axes[0], groups, strict=True):
        part = rows[rows.group == group]
        means = mean_by(part, "auc", "method", "b", "cut").sort_index()
        for method, b in [(method, b) for method in ("RHF-B", "PIF-B") for b in (2, 16)]:
            curve(axis, method, means[method, b], f"{method}, b = {b}", ls="-" if b == 16 else ":")
        theirs = {"homographies": 5.0, "fundamental": 0.25}.get(group, 3.0)
        axis.axvline(theirs, color="k", lw=0.8, ls=(0, (2, 2)), label="paper's k")
        axis.set_xscale("log")
        ticks = [0.25, 1, 3, 5, 12, 24, 48]
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        axis.set(title=f"{KINDS[group]}; {part.scene.nunique()} scenes", xlabel="cut-off, true σ")
    axes[0, 0].set_ylabel("ROC AUC")
    axes[0, -1].legend()
    return figure


def draw_complexity(out: Path) -> Any:
    """Test and training time over psi, t, b and n, one at a time."""
    rows = read(out / "complexity.csv")
    figure, axes = plt.subplots(2, 4, figsize=(13, 5.4), sharey="row")
    for line, phase in zip(axes, PHASES, strict=True):
        for axis, varied in zip(line, STEPS, strict=True):
            means = rows[rows.varied == varied].groupby(["method", varied])[f"{phase}_seconds"].mean()
            for method in means.index.unique("method"):
                curve(axis, method, means[method])
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(STEPS[varied], [str(value) for value in STEPS[varied]])
            axis.set_xlabel({"psi": "ψ"}.get(varied, varied))
        line[0].set_ylabel(f"{'training' if phase == 'train' else 'test'}, processor seconds")
    axes[0, 1].legend(ncols=2)  # over b there is no isolation forest
    return figure


def draw_split(out: Path) -> Any:
    """One split of nine rows: preferences, what passes the thresholds, hashes, branches."""
    rng = np.random.default_rng(SPLIT_SEED)
    n, m, b = 9, 12, 3
    rows = np.zeros((n, m))
    rows[:4, :4], rows[4:7, 5:9] = rng.uniform(0.6, 1, (4, 4)), rng.uniform(0.6, 1, (3, 4))
    rows[7, [4, 10]], rows[8, [9]] = (0.5, 0.9), 0.25
    thresholds, order, groups = rng.random(m), rng.permutation(m), rng.permutation(np.arange(m) % b)
    passed = rows > thresholds
    first = np.array([next((i for i in order if row[i]), -1) for row in passed])
    branch = np.where(first >= 0, groups[first], -1)
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.9), width_ratios=(1, 1, 1, 0.9))
    names = [f"p{i + 1}" for i in range(n)]
    for axis, shown in zip(axes, (rows, 0.8 * passed, 0.8 * passed[:, order]), strict=False):
        axis.imshow(shown, cmap="Greys", vmin=0, vmax=1.2, aspect="auto")
        axis.set_yticks(range(n), names)
        axis.set_xticks(range(m), [str(i + 1) for i in (order if axis is axes[2] else range(m))])
        axis.grid(visible=False)
    for i in range(m):
        axes[0].text(i, -0.6, f"{thresholds[i]:.1f}", ha="center", va="bottom", fontsize=7, color=WARM)
        axes[2].get_xticklabels()[i].set_color(PALETTE[groups[order[i]]])
    for i in np.flatnonzero(first >= 0):
        at = int(np.flatnonzero(order == first[i])[0])
        axes[2].add_patch(plt.Rectangle((at - 0.5, i - 0.5), 1, 1, fill=False, ec=PALETTE[branch[i]], lw=2))
    titles = "preferences, a threshold per component", "above their thresholds", "random order; the first is the hash"
    for place, title in enumerate((*titles, f"hashes grouped into b = {b} branches; sink")):
        axes[place].set_title(f"{place + 1}  {title}", pad=24)
    axes[3].axis("off")
    box = {"ha": "center", "va": "top", "fontsize": 9}
    frame = {"boxstyle": "round", "fc": "white"}
    axes[3].text(0.5, 0.94, f"{names[0]}, {names[1]}, …, {names[-1]}", bbox=frame | {"ec": "k"}, **box)
    for place, number in enumerate([*range(b), -1]):
        x, colour = (place + 0.5) / (b + 1), PALETTE[number] if number >= 0 else GREY
        axes[3].annotate("", (x, 0.53), (0.5, 0.84), arrowprops={"arrowstyle": "->", "color": colour})
        members = "\n".join(name for name, to in zip(names, branch, strict=True) if to == number) or "–"
        axes[3].text(x, 0.5, members, bbox={"boxstyle": "round", "fc": "white", "ec": colour}, **box)
        axes[3].text(x, 0.05, f"branch {number + 1}" if number >= 0 else "sink", color=colour, **box)
    return figure


def draw_estimate(out: Path) -> Any:
    """Ruzicka distances of pairs of rows against the share of hashes in which they differ; writes the CSV of it."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9))
    lines = []
    for axis, (name, binary) in zip(axes, (("star5", False), ("circle5", False), ("star5", True)), strict=True):
        rows = load(name, 0).preferences(binary=binary, rng=0)
        kept = np.random.default_rng(0).permutation(rows.shape[0])[:150]
        hashes, upper = ruzhash(rows[kept], n_hashes=N_HASHES), np.triu_indices(len(kept), 1)
        exact = ruzicka_distance(rows[kept])[upper]
        # Rows that hash to nothing share nothing.
        estimate = 1 - ((hashes[upper[0]] == hashes[upper[1]]) & (hashes[upper[0]] >= 0)).mean(axis=1)
        error = estimate - exact
        numbers = pearsonr(exact, estimate).statistic, error.mean(), np.sqrt((error**2).mean())
        lines.append((name, binary, len(exact), N_HASHES, *(round(float(number), 5) for number in numbers)))
        axis.plot([0, 1], [0, 1], color="k", lw=0.8)
        axis.scatter(exact, estimate, s=3, color=PALETTE[0], alpha=0.25, lw=0, rasterized=True)
        low = min(exact.min(), estimate.min()) - 0.02
        distance = "Jaccard distance" if binary else "Ruzicka distance"
        axis.set(xlabel=distance, ylabel=f"share of {N_HASHES} hashes that differ", aspect="equal")
        axis.set(xlim=(low, 1.01), ylim=(low, 1.01))
        axis.set_title(f"{name}{', binary' if binary else ''}: correlation {numbers[0]:.4f}")
    columns = ["scene", "binary", "n_pairs", "n_hashes", "correlation", "mean_error", "rms_error"]
    pd.DataFrame(lines, columns=columns).to_csv(out / "estimate.csv", index=False)
    return figure


#: Figures by name; those of `MEASURED` need the CSV of that name.
FIGURES = {
    "auc": draw_auc, "times": draw_times, "tolerance": draw_tolerance, "complexity": draw_complexity, "split": draw_split,
    "estimate": draw_estimate,
}  # fmt: skip
MEASURED = ("auc", "times", "tolerance", "complexity")


def draw_all(out: Path) -> None:
    """Draw every figure that the CSVs there are allow."""
    with plt.rc_context(STYLE):
        for name, draw in FIGURES.items():
            if name not in MEASURED or (out / f"{name}.csv").is_file():
                figure = draw(out)
                figure.savefig(out / f"{name}.png", bbox_inches="tight", metadata={"Software": None})
                plt.close(figure)
