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
from evaluate import RATES
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
#: Rows of the README's table, and columns of the table by suite.
ROWS = (
    OURS, "sequential H PoseLib", "sequential H USAC_MAGSAC 12 px 100k", "F USAC_MAGSAC 100k", "H PoseLib", "LPM",
)  # fmt: skip
#: Columns of the README's table after the milliseconds, and the suites they are means of.
README_COLUMNS = {
    "several planes or motions": (*SECTIONS["labelled"][0], *SECTIONS["fresh"][0][:2]),
    "one plane or rigid scene": (*COLUMNS["photographed planes"], *COLUMNS["photographed rigid scenes"]),
    "no ratio test": COLUMNS["no ratio test"],
}
#: Measures beside the masks' accuracy, and the arguments of the page.
BESIDE = {
    "near": "--suite near --half judge --seeds 5", "poses": "--suite posed --half both --seeds 3", "models": "--half judge --seeds 5",
    "video": "--half judge --seeds 1", "calibration": "--half judge --seeds 1",
}  # fmt: skip
#: Methods of these measures that the page shows, and columns; the CSVs have all.
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "near": (
        (*ROWS, "F PoseLib", "F SupeRANSAC", "F USAC_MAGSAC 1 px 100k", "LPM"),
        ("near misses kept", "others kept", "probability of near misses"),
    ),
    "poses": (
        (
            OURS, f"{OURS}, cameras given", "PoseLib, cameras given", f"PoseLib after {OURS}", "PoseLib after F USAC_MAGSAC 1 px 100k",
            "PoseLib after LPM", "E USAC_MAGSAC 1 px 100k", "pycolmap, cameras given", f"{OURS}, find_fundamental_matrix",
            f"{OURS}, motions[0]", "F SupeRANSAC 1 px", "F PoseLib", "F USAC_MAGSAC 1 px 100k",
        ),
        ("AUC@5°", "AUC@10°", "AUC@20°", "median error (°)"),
    ),
    "video": (
        (f"{OURS}, cameras given", OURS, "PoseLib, cameras given", "E USAC_MAGSAC 1 px 100k"),
        ("flips", "median rotation (°)", "median translation (°)", "AUC@10°"),
    ),
    "models": ((OURS, f"{OURS} 3 px", "PoseLib", "PoseLib 3 px", "USAC_MAGSAC 3 px", "USAC_MAGSAC 3 px 100k"), ("median error (px)",)),
}  # fmt: skip
COLOURS = {
    OURS: "#d1495b", "H USAC_MAGSAC": "#1b6ca8", "F USAC_MAGSAC": "#5aa9d6", "H PoseLib": "#3c8d5a",
    "sequential H PoseLib": "#8cc63f", "LPM": "#e3a72f",
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


def all_suites() -> list[str]:
    """The suites of accuracy, in the order of the page."""
    return [suite for suites, _ in SECTIONS.values() for suite in suites]


def accuracy_table(table: pd.DataFrame) -> str:
    """F1 of the judge half, a line for each suite: the default's with its standard error, and of other methods; the CSV has more."""
    lines = []
    for suite in all_suites():
        own = table.xs((suite, "judge"))
        scores = (shown(own.f1.get(method, np.nan)) for method in ROWS[1:])
        lines.append(
            [suite_title(suite), str(own.problems.iloc[0]), shown(own.f1[OURS], 3, own.f1_error[OURS]), *scores]
        )
    return markdown(["F1", "pairs", *map(method_title, ROWS)], lines)


def unjudged_table(table: pd.DataFrame) -> str:
    """Shares kept of the matches that are not judged: off the labelled planes / shifted on them."""
    lines = []
    for suite in all_suites():
        own = table.xs((suite, "judge")).reindex(ROWS)
        if own.off_plane.notna().any():
            pairs = (f"{shown(of.off_plane)} / {shown(of.shifted)}".strip(" /") for of in own.itertuples())
            lines.append([suite_title(suite), *pairs])
    return markdown(["off-plane kept / shifted kept", *map(method_title, ROWS)], lines)


def folded(title: str, text: str) -> str:
    """A part of the page that folds."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def stored(name: str) -> pd.DataFrame:
    """The judge half of a measure beside accuracy; empty if it was not measured."""
    path = RESULTS / f"{name}.csv"
    found = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["suite", "half", "method", "problems"])
    return found[found.half == "judge"]


def with_command(name: str, table: str) -> str:
    """A table and what measures it."""
    return f"{table or 'Not yet measured.'}\n\n`python benchmarks/evaluate.py {name} {BESIDE[name]} --store`"


def measured(name: str) -> str:
    """A line for each method and suite of a measure beside accuracy; the command."""
    (methods, titles), found, lines = SHOWN[name], stored(name), []
    for suite, own in found.groupby("suite", sort=False):
        own = own.set_index("method")
        for method in (method for method in methods if method in own.index):
            cells = [shown(own[title][method]) if title in own else "" for title in titles]
            lines.append([*([str(suite)] if found.suite.nunique() > 1 else []), method_title(method), *cells])
    header = [*(["suite"] if found.suite.nunique() > 1 else []), "method", *titles]
    return with_command(name, markdown(header, lines) if lines else "")


def models_table() -> str:
    """The median error of models, a line for each suite and a column for each method."""
    (methods, (title,)), found = SHOWN["models"], stored("models")
    found = found[found[title].notna()] if title in found else found.iloc[:0]
    methods, lines = tuple(method for method in methods if method in set(found.method)), []
    for suite, own in found.groupby("suite", sort=False):
        errors = own.set_index("method")[title].reindex(methods)
        lines.append([known_title(str(suite)), str(own.problems.max()), *(shown(error, 2) for error in errors)])
    return with_command("models", markdown([title, "pairs", *methods], lines) if lines else "")


def calibration_table() -> str:
    """Calibration, a line for each suite: the error, and the shares of wrong matches among the kept."""
    found, lines = stored("calibration").set_index(["suite", "method"]), []
    for suite in dict.fromkeys(found.index.get_level_values("suite")):
        own = found.loc[suite]
        wrong = (shown(own["wrong among the kept"].get(f"{OURS} at {rate:g}", np.nan)) for rate in RATES)
        lines.append([known_title(suite), shown(own["calibration error"][OURS]), *wrong])
    header = ["suite", "calibration error", *(f"wrong at {rate:g}" for rate in RATES)]
    return with_command("calibration", markdown(header, lines) if lines else "")


def known_title(suite: str) -> str:
    """What a suite is called, if it is one of accuracy; its name else."""
    return suite_title(suite) if suite in all_suites() else suite


def ablation_table() -> str:
    """What leaving out or replacing each rule does to F1, in the mean over suites; the CSV has numbers, measures and suites."""
    found = pd.read_csv(RESULTS / "ablation.csv", index_col="variant")
    lines = [
        [name, shown(found.f1[name], 4, found["f1 error"][name], "+")]
        for name in evaluate_ablation.RULES
        if name in found.index and name != evaluate_ablation.DEFAULT
    ]
    return markdown(["rule", "F1 minus the default's"], lines)


def ahead(table: pd.DataFrame) -> tuple[str, str]:
    """Which methods of one suite and half are ahead of the default in F1, beyond two standard errors and within."""
    better = table[table.lead < -0.0005].sort_values("lead")
    sure = -better.lead > 2 * better.lead_error
    texts = [
        [f"{method_title(str(method))}: +{-row.lead:.3f} ± {row.lead_error:.3f}" for method, row in found.iterrows()]
        for found in (better[sure], better[~sure])
    ]
    return "; ".join(texts[0]), "; ".join(texts[1])


def wins(table: pd.DataFrame) -> str:
    """A row for each suite: the default's F1 on the judge half, and who is ahead of it."""
    rows = []
    for suite in all_suites():
        own = table.xs((suite, "judge"))
        rows.append([suite_title(suite), f"{own.f1[OURS]:.3f}", *(text or "none" for text in ahead(own))])
    header = ["suite", "F1", "better than the default", "better, but not significantly"]
    table_of_words = markdown(header, rows).replace("---:", "---")
    return folded("Suite by suite: methods better than the default", table_of_words)


def pooled(table: pd.DataFrame, suites: tuple[str, ...]) -> pd.DataFrame:
    """Means over the problems of several suites' judge halves, for the methods that answered all of them."""
    own = table[table.index.isin(suites, "suite") & table.index.isin(["judge"], "half")].reset_index()
    weight = own.problems / own.drop_duplicates("suite").problems.sum()
    for name in ("f1", "lead"):
        own = own.assign(**{name: own[name] * weight, f"{name}_error": (own[f"{name}_error"] * weight) ** 2})
    names = ["f1", "f1_error", "lead", "lead_error"]
    found = own.groupby("method")[names].sum()[own.groupby("method").size() == len(suites)]
    return found.assign(f1_error=np.sqrt(found.f1_error), lead_error=np.sqrt(found.lead_error))


def readme_table(table: pd.DataFrame) -> str:
    """The README's table, the best of each column in bold, after the methods that are better than the default."""
    columns = {name: pooled(table, suites) for name, suites in README_COLUMNS.items()}
    speed, lines = milliseconds(), []
    for method in ROWS:
        line = [method_title(method), shown(speed.get(method, np.nan), 0)]
        for found in columns.values():
            if method not in found.index:
                line.append("")
                continue
            score, best = found.f1[method], found.f1.reindex(ROWS).max()
            text = shown(score).removeprefix("0")
            error = shown(found.f1_error[method]).removeprefix("0")
            line.append(f"{f'**{text}**' if score >= best - 0.0005 else text} ± {error}")
        lines.append(line)
    judge = table.xs("judge", level="half").groupby("suite").problems.max()
    lines.append(["image pairs", "", *(str(judge[list(suites)].sum()) for suites in README_COLUMNS.values())])
    leaders = []
    for name, found in columns.items():
        better = found[(found.lead < -0.0005) & found.index.isin(LINES)].sort_values("lead")
        rivals = [
            f"{method_title(str(method))} (+{-row.lead:.3f} ± {row.lead_error:.3f})"
            for method, row in better.iterrows()
        ]
        leaders += [f"*{name}*: {'; '.join(rivals)}"] if rivals else []
    text = "Of all methods measured, it has the highest mean F1 in every column."
    if leaders:
        text = f"Higher F1 than ruzhash_cv's, ± one standard error of the difference. {'. '.join(leaders)}."
    return f"{text}\n\n{markdown(['mean F1 of the mask', 'ms', *README_COLUMNS], lines)}"


def milliseconds() -> pd.Series:
    """Median milliseconds of each method on the 300 matches that `times.py` gives to all of them."""
    rows = pd.read_csv(RESULTS / "times.csv")
    return rows[rows.row == "methods"].set_index("method")["median"]


def latency() -> str:
    """The README's sentence about time."""
    rows = pd.read_csv(RESULTS / "times.csv")
    own = rows[rows.method == OURS].groupby("row", sort=False)["median"]
    one, last = own.first(), own.max()
    return (
        f"**Latency**, processor time: {one['plane']:.0f} ms for a plane and {one['rigid']:.0f} ms for a rigid scene of 300 matches, "
        f"{one['unihouse']:.0f} ms for 2,084 matches on several planes, up to {last['unrelated']:.0f} ms for images that share "
        "nothing. [All times](docs/benchmarks.md#time) beside OpenCV and PoseLib."
    )


def with_titles(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of times with what the methods are called where all of them are compared."""
    of_all = rows.row == "methods"
    return rows.assign(method=rows.method.where(~of_all, rows.method.map(method_title)))


def draw_overview(table: pd.DataFrame) -> None:
    """Mean F1 of a few methods on each group of suites: the default's in front."""
    columns = {name: pooled(table, suites).f1 for name, suites in COLUMNS.items()}
    figure, axes = plt.subplots(figsize=(WIDTH, 4.6), layout="constrained")
    for method in COLOURS:
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
    found = {name: measured(name) for name in ("near", "poses", "video")}
    found |= {"accuracy": accuracy_table(table), "unjudged": unjudged_table(table), "models": models_table()}
    found |= {"calibration": calibration_table(), "ablation": ablation_table()}
    found |= {"wins": wins(table), "table": readme_table(table), "latency": latency()}
    found["commands"] = "\n".join(f"    {line}" for line in commands())
    found["times"] = times.tables(with_titles(pd.read_csv(RESULTS / "times.csv")))
    return found


def commands() -> list[str]:
    """What measures all CSVs of `results` anew."""
    return [
        *(f"python benchmarks/evaluate.py {name} {told} --store" for name, told in BESIDE.items()),
        *map(command, SECTIONS),
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
