"""The plot and tables of docs/benchmarks.md and the table of README.md, from the CSVs in `results`.

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
import matplotlib
import numpy as np
import pandas as pd
import times
from methods import LINES, MODELS, OURS
from report import RESULTS, markdown, shown

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = tuple(ROOT / name for name in ("docs/benchmarks.md", "docs/benchmarks_details.md", "README.md"))
PICTURES = ROOT / "docs" / "images" / "benchmarks"

TRUTH = {"one plane": "plane", "planes": "planes", "one rigid": "rigid scene", "motions": "motions"}
#: A section of the page: its suites as rows name them, and the arguments that measure it.
SECTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "labelled": (("adelaidermf H", "adelaidermf F"), "--suite adelaidermf --half both --seeds 5"),
    "fresh": (
        tuple(f"{features} on adelaidermf {kind}" for features in ("sift", "orb") for kind in "HF"),
        "--suite fresh --half judge --seeds 3",
    ),
    "photographed": (
        (
            *(f"{features} on photographed planes" for features in ("given", "sift", "mutual", "orb")),
            *(f"{features} on photographed rigid" for features in ("given", "sift", "mutual")),
        ),
        "--suite photographed --half judge --seeds 5",
    ),
    "rendered": (
        (*TRUTH, *(f"repeated texture, {name}" for name in TRUTH)),
        "--suite rendered --half judge --seeds 1 --per-cell 2",
    ),
    "pictures": (
        tuple(f"{features} on rendered {name}" for features in ("sift", "orb") for name in TRUTH),
        "--suite pictures --half judge --seeds 1 --per-cell 1",
    ),
}
#: What suites are called in documents and plots: where the matches come from, then how they were made.
SCENES = {
    "adelaidermf H": "AdelaideRMF planes", "adelaidermf F": "AdelaideRMF motions",
    "photographed planes": "photographed planes", "photographed rigid": "photographed rigid scenes",
    **{f"rendered {name}": f"rendered {scenes}" for name, scenes in TRUTH.items()},
    **{name: f"drawn {scenes}" for name, scenes in TRUTH.items()},
}  # fmt: skip
MADE = {"sift": "SIFT", "orb": "ORB", "given": "given", "mutual": "no ratio test"}
#: The same for suites as the command line calls them, planes and motions together.
GROUPS = {
    "adelaidermf": "AdelaideRMF", "photographed-planes": "photographed planes", "photographed-rigid": "photographed rigid scenes",
    "rendered": "rendered", "repeated": "drawn, repeated texture",
    **{name.replace(" ", "-"): f"drawn {scenes}" for name, scenes in TRUTH.items()},
}  # fmt: skip
#: Columns of the overview and of the README's table, and the suites they are means of.
#: Drawn scenes stand for what no photograph has the truth of.
COLUMNS = {
    "AdelaideRMF planes": SECTIONS["labelled"][0][:1],
    "AdelaideRMF motions": SECTIONS["labelled"][0][1:],
    "AdelaideRMF planes, SIFT": SECTIONS["fresh"][0][:1],
    "photographed planes": tuple(f"{features} on photographed planes" for features in ("given", "sift", "orb")),
    "photographed rigid scenes": tuple(f"{features} on photographed rigid" for features in ("given", "sift")),
    "no ratio test": tuple(f"mutual on photographed {scenes}" for scenes in ("planes", "rigid")),
    "repeated texture": SECTIONS["rendered"][0][4:],
}
#: Rows of the tables by suite: those of the README, and the package with one family.
SHOWN = (*LINES, f"{OURS} homography", f"{OURS} fundamental")
#: Measures beside the masks' accuracy, and the arguments of the page.
BESIDE = {
    "near": "--suite near --half judge --seeds 5", "poses": "--suite posed --half both --seeds 3", "models": "--half judge --seeds 5",
}  # fmt: skip
#: Columns of the README's table that are of these: the measure, its suite, its column, the method for a row, whether low is good.
EXTRA: dict[str, tuple[str, str, str, str, bool]] = {
    "near misses kept": ("near", "near misses, photographed", "near misses kept", "{}", True),
    "pose AUC@10°": ("poses", "photographed poses", "AUC@10°", "PoseLib after {}", False),
}
COLOURS = {
    OURS: "#d1495b", "H USAC_MAGSAC": "#1b6ca8", "F USAC_MAGSAC": "#5aa9d6", "H PoseLib": "#3c8d5a",
    "sequential H PoseLib": "#8cc63f", "LPM": "#e3a72f", "AdaLAM": "#7a4ea3", "H SupeRANSAC": "#a0522d",
}  # fmt: skip
STYLE: dict[str, Any] = {
    "font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.alpha": 0.25,
    "axes.axisbelow": True, "legend.frameon": False, "legend.fontsize": 9,
}  # fmt: skip
WIDTH = 6.4  # inches: text can still be read on a phone


def suite_title(suite: str) -> str:
    """What a suite is called."""
    texture, _, drawn = suite.rpartition(", ")
    if texture:
        return f"{SCENES[drawn]}, {texture}"
    made, _, scenes = suite.rpartition(" on ")
    made = MADE[made] if made else "labelled" if scenes.startswith("adelaidermf") else ""
    return f"{SCENES[scenes]}, {made}" if made else SCENES[scenes]


def group_title(suite: str) -> str:
    """What a suite is called, given by the name of the command line; another name is returned as it is."""
    scenes, _, made = suite.rpartition("-")
    if made in MADE and scenes in GROUPS:
        return f"{GROUPS[scenes]}, {MADE[made]}"
    return f"{GROUPS[suite]}, labelled" if suite == "adelaidermf" else GROUPS.get(suite, suite)


def method_title(method: str) -> str:
    """What a method is called: whose it is, then what it looks for."""
    words, model = method.split(), {"H": "one homography", "F": "one fundamental matrix"}
    in_turn, (first, after, second) = words[0] == "sequential", method.partition(" after ")
    if after:
        return f"{first} after {method_title(second)}"
    if words[0] == OURS and words[-1] in MODELS.values():
        return f'{OURS}, model="{words[1]}"'
    if not in_turn and words[0] not in model:
        return method
    many = " 100k" * (words[-1] == "100k")
    name = " ".join(words[2 if in_turn else 1 :]).removesuffix(" 100k")
    whose = f"OpenCV {name}" if name.startswith(("RANSAC", "USAC", "LMEDS")) else name
    tuned = " (tuned)" if name.endswith("12 px") else ""
    several = {"H": "homographies in turn", "F": "fundamental matrices in turn"}
    return f"{whose}{many}, {several[words[1]] if in_turn else model[words[0]]}{tuned}"


def read(name: str, index: list[str]) -> pd.DataFrame:
    """A CSV of `results`."""
    return pd.read_csv(RESULTS / f"{name}.csv", index_col=index).sort_index()


def command(section: str) -> str:
    """What measures a section anew; methods that are missing on the machine are left out."""
    return f"python benchmarks/evaluate.py accuracy {SECTIONS[section][1]} --store"


def accuracy_tables(table: pd.DataFrame, suites: tuple[str, ...]) -> tuple[str, str]:
    """F1 with its standard error, and precision / recall, by method and suite of `accuracy.csv`; the CSV has more."""
    halves = [table.xs((suite, "judge")) for suite in suites]
    scores, rates = [], []
    for method in SHOWN:
        rows = [half.loc[method] if method in half.index else None for half in halves]
        if all(row is None for row in rows):
            continue
        title = method_title(method)
        scores.append([title, *("" if row is None else shown(row.f1, 3, row.f1_error) for row in rows)])
        rates.append([title, *("" if row is None else f"{row.precision:.3f}/{row.recall:.3f}" for row in rows)])
    scores.append(["problems", *(str(half.problems.iloc[0]) for half in halves)])
    titles = [suite_title(suite) for suite in suites]
    return markdown(["F1", *titles], scores), markdown(["precision/recall", *titles], rates)


def folded(title: str, text: str) -> str:
    """A part of the page that folds."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def measured(name: str) -> str:
    """A folded table for each suite of a measure beside accuracy, its judge half; the command."""
    path = RESULTS / f"{name}.csv"
    found, parts = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["suite", "half"]), []
    for suite, own in found[found.half == "judge"].groupby("suite", sort=False):
        titles = [title for title in own if title not in ("suite", "half", "method", "problems")]
        own = own.sort_values("method", key=lambda names: ~names.str.startswith(OURS), kind="stable")
        lines = [[method_title(row["method"]), *(shown(row[title]) for title in titles)] for _, row in own.iterrows()]
        parts.append(folded(f"{suite}: {own.problems.max()} problems", markdown(["method", *titles], lines)))
    return "\n\n".join([*parts, f"`python benchmarks/evaluate.py {name} {BESIDE[name]} --store`"])


def ahead(table: pd.DataFrame) -> tuple[str, str]:
    """Which methods of one suite and half are ahead of the default in F1, beyond two standard errors and within."""
    better = table[table.lead < -0.0005].sort_values("lead")
    sure = -better.lead > 2 * better.lead_error
    texts = [
        [f"{method_title(str(method))}: +{-row.lead:.3f} ± {row.lead_error:.3f}" for method, row in found.iterrows()]
        for found in (better[sure], better[~sure])
    ]
    return "; ".join(texts[0]), "; ".join(texts[1])


def section(name: str, table: pd.DataFrame) -> str:
    """F1 on the judge half of each suite, and precision and recall folded; the command folded too."""
    scores, rates = accuracy_tables(table, SECTIONS[name][0])
    return "\n\n".join([scores, folded("Precision and recall", rates), folded("Command", f"`{command(name)}`")])


def wins(table: pd.DataFrame) -> str:
    """A row for each suite: the default's F1 on the judge half, and who is ahead of it."""
    rows = []
    for suite in (suite for suites, _ in SECTIONS.values() for suite in suites):
        own = table.xs((suite, "judge"))
        rows.append([suite_title(suite), f"{own.f1[OURS]:.3f}", *(text or "none" for text in ahead(own))])
    header = ["suite", "F1", "better than the default", "better, but not significantly"]
    table_of_words = markdown(header, rows).replace("---:", "---")
    return folded("Suite by suite: methods better than the default", table_of_words)


def pooled(table: pd.DataFrame, suites: tuple[str, ...]) -> pd.DataFrame:
    """Means over the problems of several suites' judge halves, for the methods that answered all of them."""
    own = table[table.index.isin(suites, "suite") & table.index.isin(["judge"], "half")].reset_index()
    weight = own.problems / own.drop_duplicates("suite").problems.sum()
    own = own.assign(f1=own.f1 * weight, lead=own.lead * weight, square=(own.lead_error * weight) ** 2)
    found = own.groupby("method")[["f1", "lead", "square"]].sum()[own.groupby("method").size() == len(suites)]
    return found.assign(lead_error=np.sqrt(found.square))


def readme_table(table: pd.DataFrame) -> str:
    """The README's table, the best of each column in bold, after the methods that are better than the default."""
    columns = {name: pooled(table, suites).reindex(LINES) for name, suites in COLUMNS.items()}
    speed, lines = milliseconds(), []
    extra = {name: beside(*of) for name, of in EXTRA.items() if (RESULTS / f"{of[0]}.csv").exists()}
    for method in LINES:
        if sum(np.isnan(found.f1[method]) for found in columns.values()) > 1:
            continue
        line = [method_title(method)]
        for found in columns.values():
            text = shown(found.f1[method]).removeprefix("0")
            line.append(f"**{text}**" if found.f1[method] >= found.f1.max() - 0.0005 else text)
        for name, values in extra.items():
            text, best = shown(values[method]).removeprefix("0"), values.min() if EXTRA[name][-1] else values.max()
            line.append(f"**{text}**" if abs(values[method] - best) <= 0.0005 else text)
        lines.append([*line, shown(speed.get(method, np.nan), 0)])
    counts = [
        str(table.xs("judge", level="half").groupby("suite").problems.max()[list(of)].sum()) for of in COLUMNS.values()
    ]
    lines.append(["image pairs", *counts, *(str(values.attrs["problems"]) for values in extra.values()), ""])
    leaders = []
    for name, found in columns.items():
        better = found[found.lead < -0.0005].sort_values("lead")
        rivals = [
            f"{method_title(str(method))} (+{-row.lead:.3f} ± {row.lead_error:.3f})"
            for method, row in better.iterrows()
        ]
        leaders += [f"*{name}*: {'; '.join(rivals)}"] if rivals else []
    text = "It has the highest mean F1 in every column."
    if leaders:
        text = f"Higher F1 than ruzhash_cv's, ± one standard error. {'. '.join(leaders)}."
    return f"{text}\n\n{markdown(['mean F1 of the mask, but for the last three', *COLUMNS, *extra, 'ms'], lines)}"


def milliseconds() -> pd.Series:
    """Median milliseconds of each method on the 300 matches that `times.py` gives to all of them."""
    rows = pd.read_csv(RESULTS / "times.csv")
    return rows[rows.row == "methods"].set_index("method")["median"]


def with_titles(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of times with what the methods are called where all of them are compared."""
    of_all = rows.row == "methods"
    return rows.assign(method=rows.method.where(~of_all, rows.method.map(method_title)))


def beside(name: str, suite: str, title: str, method: str, _: bool) -> pd.Series:
    """One column of a measure beside accuracy on a suite's judge half, for each row of the README."""
    found = read(name, ["suite", "half", "method"]).xs((suite, "judge"))
    values = found[title].reindex([method.format(line) for line in LINES]).set_axis(list(LINES))
    values.attrs["problems"] = found.problems.max()
    return values


def draw_overview(table: pd.DataFrame) -> None:
    """Mean F1 of a few methods on each group of suites: the default's in front."""
    columns = {name: pooled(table, suites).f1 for name, suites in COLUMNS.items()}
    methods = [method for method in COLOURS if method not in ("AdaLAM", "H SupeRANSAC")]
    figure, axes = plt.subplots(figsize=(WIDTH, 4.6), layout="constrained")
    for method in methods:
        values = [found.get(method, np.nan) for found in columns.values()]
        size, order = (110, 3) if method == OURS else (44, 2)
        axes.scatter(
            values, range(len(columns)), s=size, color=COLOURS[method], label=method_title(method), zorder=order
        )
    axes.set_yticks(range(len(columns)), columns)
    axes.invert_yaxis()
    axes.set(xlabel="mean F1 of the mask; 1 is perfect", xlim=(0.4, 1.015))
    figure.legend(loc="outside upper center", ncols=2)


def draw(table: pd.DataFrame) -> None:
    """Draw and save the plot."""
    with plt.rc_context(STYLE):
        draw_overview(table)
        plt.savefig(PICTURES / "overview.png", dpi=120, metadata={"Software": None})
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
    found = {name: section(name, table) for name in SECTIONS}
    found |= {name: measured(name) for name in BESIDE}
    found |= {"wins": wins(table), "table": readme_table(table)}
    found["calibration"] = (RESULTS / "calibration.md").read_text(encoding="utf-8").strip()
    found["times"] = times.tables(with_titles(pd.read_csv(RESULTS / "times.csv")))
    ablation = pd.read_csv(RESULTS / "ablation.csv", index_col="variant")
    ablation = ablation.rename(
        columns=lambda name: group_title(name.removesuffix(" error")) + " error" * name.endswith(" error")
    )
    found["ablation"] = folded("Ablation tables", evaluate_ablation.tables(ablation, by_suite=()))
    return found


def commands() -> list[str]:
    """What measures all CSVs of `results` anew."""
    return [
        *(f"python benchmarks/evaluate.py {name} {told} --store" for name, told in BESIDE.items()),
        *map(command, SECTIONS),
        "python benchmarks/evaluate.py calibration --half judge --store",
        "python benchmarks/times.py --store",
        "python benchmarks/evaluate_ablation.py",
    ]


def main() -> None:
    """Write, or print the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", action="store_true", help="print the commands that measure the CSVs anew")
    if parser.parse_args().commands:
        print(*commands(), sep="\n")
        return
    draw(read("accuracy", ["suite", "half", "method"]))
    found = parts()
    for path in DOCUMENTS:
        path.write_text(fill(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
