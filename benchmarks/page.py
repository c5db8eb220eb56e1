"""The plots and tables of docs/benchmarks.md and the table of README.md, from the CSVs in `results`.

    python benchmarks/page.py              # write them
    python benchmarks/page.py --commands   # print what measures the CSVs anew

A part of a document between `<!-- NAME -->` and `<!-- /NAME -->` is replaced, and nothing else.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import evaluate_ablation
import evaluate_calibration
import matplotlib
import numpy as np
import pandas as pd
import times
from peers import OURS
from report import RESULTS, accuracy_table, markdown, shown

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "docs" / "benchmarks.md", ROOT / "README.md")
PICTURES = ROOT / "docs" / "images" / "benchmarks"

METHODS = (
    f"{OURS} homography", f"{OURS} fundamental", "H RANSAC", "H USAC_MAGSAC", "H USAC_ACCURATE", "F RANSAC", "F USAC_MAGSAC",
    "F USAC_ACCURATE", "H PoseLib", "sequential H PoseLib", "sequential H USAC_MAGSAC 12 px", "H pydegensac", "H SupeRANSAC",
    "F SupeRANSAC", "LPM", "AdaLAM",
)  # fmt: skip
MORE = ("H LMEDS", "F LMEDS", "F PoseLib", "F pydegensac", "isolation forest on displacements", "keep everything")
LOW = ("F RANSAC 1.5 px", "F USAC_MAGSAC 1.5 px")
TRUTH = ("one plane", "planes", "one rigid", "motions")
#: A section of the page: its suites as rows name them, the arguments that measure it, and its methods.
SECTIONS: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "labelled": (("adelaidermf H", "adelaidermf F"), "--suite adelaidermf --half both --seeds 5", METHODS + MORE),
    "fresh": (
        tuple(f"{features} on adelaidermf {kind}" for features in ("sift", "orb") for kind in "HF"),
        "--suite fresh --half both --seeds 1",
        METHODS + MORE,
    ),
    "photographed": (
        (
            *(f"{features} on photographed planes" for features in ("given", "sift", "mutual", "orb")),
            *(f"{features} on photographed rigid" for features in ("given", "sift", "mutual")),
        ),
        "--suite photographed --half both --seeds 1",
        METHODS + MORE + LOW,
    ),
    "rendered": (
        (*TRUTH, *(f"repeated texture, {name}" for name in TRUTH)),
        "--suite rendered --half judge --seeds 1 --per-cell 2",
        METHODS,
    ),
    "pictures": (
        tuple(f"{features} on rendered {name}" for features in ("sift", "orb") for name in TRUTH),
        "--suite pictures --half judge --seeds 1 --per-cell 1",
        METHODS,
    ),
}
#: Columns of the README's table and the suites they are means of. Rendered scenes stand for what no photograph has the truth of.
COLUMNS = {
    "planes": SECTIONS["labelled"][0][:1],
    "motions": SECTIONS["labelled"][0][1:],
    "fresh SIFT": SECTIONS["fresh"][0][:1],
    "one plane": tuple(f"{features} on photographed planes" for features in ("given", "sift", "orb")),
    "one rigid scene": tuple(f"{features} on photographed rigid" for features in ("given", "sift")),
    "no ratio test": tuple(f"mutual on photographed {scenes}" for scenes in ("planes", "rigid")),
    "repeated texture": SECTIONS["rendered"][0][4:],
}
#: Its rows.
LINES = {
    OURS: "ruzhash_cv",
    "sequential H PoseLib": "PoseLib homographies in turn",
    "sequential H USAC_MAGSAC 12 px": "OpenCV USAC_MAGSAC homographies in turn, 12 px (tuned)",
    "H PoseLib": "PoseLib, one homography",
    "H SupeRANSAC": "SupeRANSAC, one homography",
    "F SupeRANSAC": "SupeRANSAC, one fundamental matrix",
    "F USAC_MAGSAC": "OpenCV USAC_MAGSAC, one fundamental matrix",
    "H USAC_MAGSAC": "OpenCV USAC_MAGSAC, one homography",
    "AdaLAM": "AdaLAM (locally affine matching)",
    "LPM": "LPM (locality preserving matching)",
}
TIMED = 300
"""Matches of the call whose time is the last column."""
COLOURS = {
    OURS: "#d1495b", "H USAC_MAGSAC": "#1b6ca8", "F USAC_MAGSAC": "#5aa9d6", "H PoseLib": "#3c8d5a",
    "sequential H PoseLib": "#8cc63f", "LPM": "#e3a72f", "AdaLAM": "#7a4ea3", "H SupeRANSAC": "#a0522d",
}  # fmt: skip
SHOWN = (*COLOURS, "F SupeRANSAC", "sequential H USAC_MAGSAC 12 px", "keep everything")
DOTS = ("#14405f", "#e3a72f", "#3c8d5a", "#7a4ea3")
STYLE: dict[str, Any] = {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip
WIDTH = 6.4  # inches: text can still be read on a phone


def read(name: str, index: list[str]) -> pd.DataFrame:
    """A CSV of `results`."""
    return pd.read_csv(RESULTS / f"{name}.csv", index_col=index).sort_index()


def command(section: str) -> str:
    """What measures a section anew; methods that are missing on the machine are left out."""
    _, told, methods = SECTIONS[section]
    names = " ".join(f"'{name}'" if " " in name else name for name in (OURS, *methods))
    return f"python benchmarks/evaluate_accuracy.py {told} --store --methods {names}"


def folded(title: str, text: str) -> str:
    """A part of the page that folds."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def ahead(table: pd.DataFrame) -> str:
    """Which methods of one suite and half are ahead of the default in F1, beyond two standard errors and within."""
    better = table[table.lead < -0.0005].sort_values("lead")
    sure = -better.lead > 2 * better.lead_error
    parts = []
    for place, found in (("beyond", better[sure]), ("within", better[~sure])):
        texts = [f"{method} by {-row.lead:.3f} ± {row.lead_error:.3f}" for method, row in found.iterrows()]
        parts += [f"{place} two standard errors: {', '.join(texts)}"] if texts else []
    return f"Ahead of the default {'; '.join(parts)}." if parts else ""


def section(name: str, table: pd.DataFrame) -> str:
    """Command, plot, and for each suite's judge half a folded table."""
    suites, _, _ = SECTIONS[name]
    parts = [f"Command: `{command(name)}`", f"![Mean F1 of each method on each suite](images/benchmarks/{name}.png)"]
    for suite in suites:
        own = table.xs((suite, "judge"))
        told = ahead(own) or "No method is ahead of the default."
        parts.append(
            folded(f"{suite}, judge half: {own.problems.iloc[0]} problems", f"{told}\n\n{accuracy_table(own)}")
        )
    return "\n\n".join(parts)


def wins(table: pd.DataFrame) -> str:
    """An item for each suite on whose judge half a method is ahead of the default, and the other suites."""
    items, others = [], []
    for suite in (suite for suites, _, _ in SECTIONS.values() for suite in suites):
        own = table.xs((suite, "judge"))
        mean = own.f1[OURS]
        text = ahead(own)
        if text:
            items.append(f"- **{suite}**, F1 {mean:.3f}. {text}")
        else:
            others.append(f"{suite} ({mean:.3f})")
    return "\n".join(items) + f"\n\nNo method is ahead on {', '.join(others) or 'any other'}."


def pooled(table: pd.DataFrame, suites: tuple[str, ...]) -> pd.DataFrame:
    """Means over the problems of several suites' judge halves, for the methods that answered all of them."""
    own = table[table.index.isin(suites, "suite") & table.index.isin(["judge"], "half")].reset_index()
    weight = own.problems / own.drop_duplicates("suite").problems.sum()
    own = own.assign(f1=own.f1 * weight, lead=own.lead * weight, square=(own.lead_error * weight) ** 2)
    found = own.groupby("method")[["f1", "lead", "square"]].sum()[own.groupby("method").size() == len(suites)]
    return found.assign(lead_error=np.sqrt(found.square))


def readme_table(table: pd.DataFrame) -> str:
    """The README's table, the best of each column in bold, and who is ahead of the default where."""
    columns = {name: pooled(table, suites).reindex(list(LINES)) for name, suites in COLUMNS.items()}
    speed = read("time", ["method", "n"]).warm_ms
    lines = []
    for method, title in LINES.items():
        line = [title]
        for found in columns.values():
            text = shown(found.f1[method]).removeprefix("0")
            line.append(f"**{text}**" if found.f1[method] >= found.f1.max() - 0.0005 else text)
        lines.append([*line, shown(speed.get((method, TIMED), np.nan), 0)])
    leaders = []
    for name, found in columns.items():
        better = found[found.lead < -0.0005].sort_values("lead")
        told = [f"{LINES[str(method)]} (+{-row.lead:.3f} ± {row.lead_error:.3f})" for method, row in better.iterrows()]
        leaders += [f"on {name}, {', '.join(told)}"] if told else []
    text = f"Ahead of ruzhash_cv, ± one standard error: {'; '.join(leaders)}." if leaders else ""
    return f"{markdown(['mean F1 of the mask', *COLUMNS, 'ms'], lines)}\n\n{text or 'It has the highest mean F1 in every column.'}"


def draw_dots(table: pd.DataFrame, suites: tuple[str, ...]) -> None:
    """Mean F1 of each method on each suite's judge half; the second four suites hollow."""
    f1 = table.f1.xs("judge", level="half").unstack("suite")[list(suites)]
    f1 = f1[f1.index.isin(SHOWN) & f1.notna().any(axis=1)]
    f1 = f1.loc[f1.mean(axis=1).sort_values().index]
    figure, axes = plt.subplots(figsize=(WIDTH, 1.5 + 0.32 * len(f1)), layout="constrained")
    for number, suite in enumerate(suites):
        colour = DOTS[number % 4]
        face = colour if number < 4 else "none"
        axes.scatter(f1[suite], range(len(f1)), s=46, facecolor=face, edgecolor=colour, label=suite, lw=1.5)
    axes.set_yticks(range(len(f1)), f1.index)
    axes.get_yticklabels()[f1.index.get_loc(OURS)].set_color(COLOURS[OURS])
    axes.set_xlabel("mean F1 of the mask, judge half")
    figure.legend(loc="outside upper center", ncols=2)


def draw_curves(suites: tuple[str, ...]) -> None:
    """Mean F1 over the share of mismatches, one panel a suite."""
    table = read("accuracy_by_rate", ["suite", "method", "rate"]).f1
    size = (WIDTH, 2.3 * -(-len(suites) // 2) + 0.8)
    figure, panels = plt.subplots(-(-len(suites) // 2), 2, figsize=size, sharex=True, sharey=True, layout="constrained")
    for axes, suite in zip(panels.flat, suites, strict=False):
        for method in (name for name in COLOURS if name in table[suite].index):
            f1 = table[suite][method]
            axes.plot(100 * f1.index, f1, ".-", color=COLOURS[method], lw=2.6 if method == OURS else 1.3, label=method)
        axes.set_title(suite, fontsize=10, loc="left")
        axes.set(xlabel="mismatches, %", ylabel="mean F1")
        axes.label_outer()
    figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)


def draw_times() -> None:
    """Milliseconds over matches, both logarithmic."""
    warm = read("time", ["method", "n"]).warm_ms
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2), layout="constrained")
    for method in warm.index.unique("method"):
        width, colour = 2.6 if method == OURS else 1.3, COLOURS.get(method, "0.5")
        axes.loglog(warm[method].index, warm[method], "o-", label=method, color=colour, lw=width, ms=4)
    axes.set(xlabel="matches", ylabel="median ms per pair, warm")
    figure.legend(loc="outside upper center", ncols=2)


def draw_calibration() -> None:
    """Measured over nominal rate, with the band of a factor of 1.5."""
    measured = read("calibration_judge", ["mismatches", "nominal"]).measured.clip(lower=1e-4)
    nominal = measured.index.unique("nominal").to_numpy()
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2), layout="constrained")
    axes.fill_between(nominal, nominal / 1.5, np.minimum(1, nominal * 1.5), color="0.9", label="within a factor of 1.5")
    axes.plot(nominal, nominal, color="0.5", lw=1)
    for situation in measured.index.unique("mismatches"):
        axes.plot(measured[situation].index, measured[situation], "o-", label=situation, ms=4)
    axes.set(xscale="log", yscale="log", xlabel="nominal false acceptance rate", ylabel="share of mismatches accepted")
    figure.legend(loc="outside upper center", ncols=2)


def draw(table: pd.DataFrame) -> None:
    """Draw and save all plots."""
    drawings = {name: lambda suites=suites: draw_dots(table, suites) for name, (suites, _, _) in SECTIONS.items()}
    drawings |= {"rendered": lambda: draw_curves(SECTIONS["rendered"][0]), "time": draw_times}
    with plt.rc_context(STYLE):
        for name, make in (drawings | {"calibration": draw_calibration}).items():
            make()
            plt.savefig(PICTURES / f"{name}.png", dpi=120, metadata={"Software": None})
            plt.close()


def fill(text: str, parts: dict[str, str]) -> str:
    """A document with its marked parts replaced; a part without marks is left out."""
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = marked.sub(lambda found, part=part: f"{found[1]}\n{part}\n\n{found[2]}", text)
    return text


def parts() -> dict[str, str]:
    """The text of every part."""
    table = read("accuracy", ["suite", "half", "method"])
    speed = times.table(pd.read_csv(RESULTS / "time.csv"))
    plot = "![Median milliseconds over the number of matches, both axes logarithmic](images/benchmarks/time.png)"
    found = {name: section(name, table) for name in SECTIONS}
    found |= {"wins": wins(table), "table": readme_table(table)}
    accepted = evaluate_calibration.table(pd.read_csv(RESULTS / "calibration_judge.csv"))
    found["calibration"] = (
        f"![Share of mismatches accepted over the nominal rate](images/benchmarks/calibration.png)\n\n{accepted}"
    )
    found["times"] = f"{plot}\n\n{folded('Times and memory', speed)}"
    ablation = pd.read_csv(RESULTS / "ablation.csv", index_col="variant")
    found["ablation"] = folded(
        "Ablation tables", evaluate_ablation.tables(ablation, by_suite=tuple(evaluate_ablation.RULES))
    )
    return found


def main() -> None:
    """Write, or print the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", action="store_true", help="print the commands that measure the CSVs anew")
    if parser.parse_args().commands:
        redo = f"--redo {OURS} '{OURS} homography' '{OURS} fundamental'"
        print(*(f"{command(name)} {redo}" for name in SECTIONS), sep="\n")
        print("python benchmarks/evaluate_calibration.py --half judge --per-cell 9 --store")
        print("python benchmarks/times.py filter --repeats 3 --store")
        print("python benchmarks/evaluate_ablation.py")
        return
    draw(read("accuracy", ["suite", "half", "method"]))
    found = parts()
    for path in DOCUMENTS:
        path.write_text(fill(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
