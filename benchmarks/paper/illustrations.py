"""The figures that explain: preference space, one split step by step, binarisation, and how well hashes tell distances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scenes import load
from scipy.stats import pearsonr
from sklearn.manifold import MDS
from table import GrowingTable

from ruzhash_cv import ruzhash
from ruzhash_cv.paper import family_preferences, paper_forest, paper_preferences, ruzicka_distance, sample_models

WARM, GREY = "#d1495b", "#8d8d8d"
PALETTE = ("#1b6ca8", "#e3a72f", "#3c8d5a", "#7a4ea3", "#b5651d")
N_HASHES = 1000
SPLIT_SEED = 153  # one where the groups part and one row leaves its group


def draw_all(out: Path) -> None:
    draw_overview(out, "star5")
    draw_split(out)
    draw_binarisation(out)
    draw_estimate(out)


def _save(figure: Any, out: Path, name: str) -> None:
    figure.savefig(out / name, bbox_inches="tight", metadata={"Software": None})
    plt.close(figure)


def draw_overview(out: Path, name: str) -> None:
    """The paper's figure 1 (input, preference space, scores) and the scores all over the plane."""
    problem = load(name, 0)
    models, _ = sample_models(problem.data, problem.family, n_models=10 * len(problem.data), rng=0)
    rows = family_preferences(problem.data, problem.family, models, sigma=problem.sigma, k=problem.k)
    forest = paper_forest("RHF", branching_factor=16, n_trees=1000).fit(rows)
    scores = forest.anomaly_scores(rows)
    options: dict[str, Any] = {"n_init": 1, "max_iter": 200, "random_state": 0, "normalized_stress": "auto"}
    places = MDS(metric="precomputed", init="classical_mds", **options).fit_transform(ruzicka_distance(rows))
    low, high = problem.data.min(axis=0) - 0.05, problem.data.max(axis=0) + 0.05
    xs, ys = np.linspace(low[0], high[0], 160), np.linspace(low[1], high[1], 160)
    grid = np.stack(np.meshgrid(xs, ys), axis=2).reshape(-1, 2)
    plane = forest.anomaly_scores(family_preferences(grid, problem.family, models, sigma=problem.sigma, k=problem.k))
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
    colours = [GREY if label < 0 else PALETTE[label % 5] for label in problem.labels]
    for axis, points in ((axes[0], problem.data), (axes[1], places)):
        alone = problem.labels < 0
        axis.scatter(*points[alone].T, s=7, c=GREY, lw=0)
        axis.scatter(*points[~alone].T, s=9, c=[c for c, a in zip(colours, alone, strict=True) if not a], lw=0)
    order = np.argsort(scores)
    shown = axes[2].scatter(*problem.data[order].T, s=9, c=scores[order], cmap="inferno", lw=0)
    axes[3].imshow(plane.reshape(160, 160), origin="lower", extent=(*xs[[0, -1]], *ys[[0, -1]]), cmap="inferno",
                   vmin=scores.min(), vmax=scores.max())  # fmt: skip
    titles = (
        "input: lines in colour, anomalies grey",
        "preference space (MDS, Ruzicka)",
        "anomaly scores, RHF, b = 16",
        "scores over the plane",
    )
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=9.5, loc="left")
        axis.set_aspect("equal")
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)
    figure.colorbar(shown, ax=axes[3], fraction=0.046, pad=0.03)
    _save(figure, out, "preference_space.png")


def draw_split(out: Path) -> None:
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
    figure, axes = plt.subplots(1, 4, figsize=(14, 3.9), layout="constrained", width_ratios=(1, 1, 1, 0.9))
    names = [f"p{i + 1}" for i in range(n)]
    axes[0].imshow(rows, cmap="Greys", vmin=0, vmax=1.2, aspect="auto")
    for i in range(m):
        axes[0].text(i, -0.6, f"{thresholds[i]:.1f}", ha="center", va="bottom", fontsize=7, color=WARM)
    axes[1].imshow(passed, cmap="Greys", vmax=1.6, aspect="auto")
    permuted = passed[:, order].astype(float)
    axes[2].imshow(permuted, cmap="Greys", vmax=1.6, aspect="auto")
    for i in range(n):
        if first[i] >= 0:
            at = int(np.flatnonzero(order == first[i])[0])
            axes[2].add_patch(plt.Rectangle((at - 0.5, i - 0.5), 1, 1, fill=False, ec=PALETTE[branch[i]], lw=2))
    axes[2].set_xticks(range(m), [str(i + 1) for i in order], fontsize=7)
    for position, component in enumerate(order):
        axes[2].get_xticklabels()[position].set_color(PALETTE[groups[component]])
    titles = (
        "1  preferences, a threshold per component",
        "2  above their thresholds",
        "3  random order; the first is the hash",
    )
    for axis, title in zip(axes, titles, strict=False):
        axis.set_title(title, fontsize=9.5, loc="left", pad=24)
        axis.set_yticks(range(n), names, fontsize=8)
        axis.grid(visible=False)
    for axis in axes[:2]:
        axis.set_xticks(range(m), [str(i + 1) for i in range(m)], fontsize=7)
    _draw_tree(axes[3], names, branch, b)
    _save(figure, out, "split.png")


def _draw_tree(axis: Any, names: list[str], branch: Any, b: int) -> None:
    axis.set_title(f"4  hashes grouped into b = {b} branches; sink", fontsize=9.5, loc="left", pad=24)
    axis.axis("off")
    axis.text(
        0.5,
        0.9,
        ", ".join((names[0], names[1], "…", names[-1])),
        ha="center",
        va="center",
        fontsize=9,
        bbox={"boxstyle": "round", "fc": "white", "ec": "k"},
    )
    for place, own in enumerate([*range(b), -1]):
        x = (place + 0.5) / (b + 1)
        members = [name for name, to in zip(names, branch, strict=True) if to == own]
        colour = PALETTE[own] if own >= 0 else GREY
        axis.annotate("", (x, 0.53), (0.5, 0.84), arrowprops={"arrowstyle": "->", "color": colour})
        axis.text(
            x,
            0.5,
            "\n".join(members) or "–",
            ha="center",
            va="top",
            fontsize=9,
            bbox={"boxstyle": "round", "fc": "white", "ec": colour},
        )
        axis.text(x, 0.02, f"branch {own + 1}" if own >= 0 else "sink", ha="center", fontsize=8, color=colour)
    axis.set(xlim=(0, 1), ylim=(0, 1))


def draw_binarisation(out: Path) -> None:
    """One row of preferences, one draw of thresholds, and what is left; a component passes as often as its preference says."""
    problem = load("star5", 0)
    rows = paper_preferences(problem, rng=0)
    row = rows[[0]].toarray()[0]
    row = row[np.flatnonzero(row)[:60]]
    row = np.insert(row, np.arange(0, 60, 3), 0.0)
    thresholds = np.random.default_rng(1).random(len(row))
    passed = row > thresholds
    figure, axes = plt.subplots(2, 1, figsize=(9, 3.4), sharex=True, height_ratios=(3, 1), layout="constrained")
    axes[0].bar(
        np.arange(len(row)), row, color=np.where(passed, PALETTE[0], "#c9d8e6"), width=0.9, label="preference p"
    )
    axes[0].plot(np.arange(len(row)), thresholds, "_", color=WARM, ms=7, label="threshold t")
    axes[0].set_ylabel("p, t")
    axes[0].legend(fontsize=8, loc="upper right", bbox_to_anchor=(1, 1.22), ncols=2)
    axes[0].set_title("one row's preferences (zeros thinned out) and one node's thresholds", fontsize=9.5, loc="left")
    axes[1].bar(np.arange(len(row)), passed, color=PALETTE[0], width=0.9)
    axes[1].set(ylabel="p > t", yticks=[0, 1], xlabel="component")
    _save(figure, out, "binarisation.png")


def draw_estimate(out: Path) -> None:
    """Ruzicka distances of pairs of rows against the share of hashes in which they differ."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.9), layout="constrained")
    table = GrowingTable(
        out / "estimate.csv", ("scene", "binary"), ("n_pairs", "n_hashes", "correlation", "mean_error", "rms_error")
    )
    for axis, (name, binary) in zip(axes, (("star5", False), ("circle5", False), ("star5", True)), strict=True):
        problem = load(name, 0)
        rows = paper_preferences(problem, binary=binary, rng=0)
        rng = np.random.default_rng(0)
        kept = rng.permutation(len(problem.data))[:150]
        hashes = ruzhash(rows[kept], n_hashes=N_HASHES)
        upper = np.triu_indices(len(kept), 1)
        exact = ruzicka_distance(rows[kept])[upper]
        # Rows that hash to nothing share nothing.
        same = (hashes[upper[0]] == hashes[upper[1]]) & (hashes[upper[0]] >= 0)
        estimate = 1 - same.mean(axis=1)
        correlation = float(pearsonr(exact, estimate).statistic)
        axis.plot([0, 1], [0, 1], color="k", lw=0.8)
        axis.scatter(exact, estimate, s=3, color=PALETTE[0], alpha=0.25, lw=0, rasterized=True)
        axis.set(
            xlabel="Jaccard distance" if binary else "Ruzicka distance",
            ylabel=f"share of {N_HASHES} hashes that differ",
        )
        axis.set_title(f"{name}{', binary' if binary else ''}: correlation {correlation:.4f}", fontsize=9.5, loc="left")
        low = min(exact.min(), estimate.min()) - 0.02
        axis.set(xlim=(low, 1.01), ylim=(low, 1.01), aspect="equal")
        axis.locator_params(nbins=5)
        row = {
            "scene": name,
            "binary": binary,
            "n_pairs": len(exact),
            "n_hashes": N_HASHES,
            "correlation": round(correlation, 5),
        }
        row |= {
            "mean_error": round(float((estimate - exact).mean()), 5),
            "rms_error": round(float(np.sqrt(((estimate - exact) ** 2).mean())), 5),
        }
        if row not in table:
            table.append(row)
    _save(figure, out, "estimate.png")
