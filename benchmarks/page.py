"""The plot and tables of docs/benchmarks.md and the table of README.md, from the CSVs in `results`.

    python benchmarks/page.py              # write them
    python benchmarks/page.py --commands   # print what measures the CSVs anew

A part of a document between `<!-- NAME -->` and `<!-- /NAME -->` is replaced, and nothing else.
"""

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

import evaluate_ablation
import numpy as np
import pandas as pd
import times
from evaluate import RATES
from methods import MODELS, OURS, THRESHOLDS
from report import RESULTS, markdown, shown

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = tuple(ROOT / name for name in ("docs/benchmarks.md", "docs/benchmarks_details.md", "README.md"))

TRUTH = {"one plane": "plane", "planes": "planes", "one rigid": "rigid scene", "motions": "motions"}
HALVES = ("--half tune --seeds 1", "--half judge --seeds 3")
#: A section of the page: its suites as rows name them, and the arguments that measure it.
SECTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "adelaidermf": (
        ("adelaidermf H", "adelaidermf F", "sift on adelaidermf H", "sift on adelaidermf F"),
        tuple(f"--suite adelaidermf adelaidermf-sift {half}" for half in HALVES),
    ),
    "orb": (tuple(f"orb on adelaidermf {kind}" for kind in "HF"), ("--suite adelaidermf-orb --half both --seeds 1",)),
    "photographed": (
        (
            *(f"{features} on photographed planes" for features in ("given", "sift", "mutual", "orb")),
            *(f"{features} on photographed rigid" for features in ("given", "sift", "mutual")),
        ),
        tuple(f"--suite photographed {half}" for half in HALVES),
    ),
    "rendered": (
        (*TRUTH, *(f"repeated texture, {name}" for name in TRUTH)),
        ("--suite rendered --half both --seeds 1 --per-cell 1",),
    ),
    "pictures": (
        tuple(f"{features} on rendered {name}" for features in ("sift", "orb") for name in TRUTH),
        ("--suite pictures --half both --seeds 1 --per-cell 1",),
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
#: Columns of the overview, and the suites they are means of.
COLUMNS = {
    "AdelaideRMF planes": ("adelaidermf H", "sift on adelaidermf H"),
    "AdelaideRMF motions": ("adelaidermf F", "sift on adelaidermf F"),
    "photographed planes": tuple(f"{features} on photographed planes" for features in ("given", "sift", "orb")),
    "photographed rigid scenes": tuple(f"{features} on photographed rigid" for features in ("given", "sift")),
    "planes, no ratio test": ("mutual on photographed planes",),
    "rigid scenes, no ratio test": ("mutual on photographed rigid",),
}
#: Rows of the README's table of times, by title and number of matches in `times.csv`.
TIMED = {
    ("one plane, 40% wrong", 300): "one plane", ("rigid scene, 40% wrong", 300): "rigid scene",
    ("unihouse, AdelaideRMF", 2084): "several planes", ("unrelated photographs", 887): "images that share nothing",
    ("rigid scene, 90% wrong", 1000): "rigid scene, 90 % wrong",
}  # fmt: skip
#: Columns of the README's table after the milliseconds, and the columns of the overview that they join.
README_COLUMNS = {
    "several planes or motions": ("AdelaideRMF planes", "AdelaideRMF motions"),
    "one plane or rigid scene": ("photographed planes", "photographed rigid scenes"),
    "no ratio test": ("planes, no ratio test", "rigid scenes, no ratio test"),
}
#: What the models are that a scene has, by the beginnings of methods' names.
SCENE_MODELS = {
    "adelaidermf H": ("sequential H", "F"), "adelaidermf F": ("sequential H", "sequential F"),
    "photographed planes": ("H",), "photographed rigid": ("F",), "one plane": ("H",), "one rigid": ("F",),
    "planes": ("sequential H", "F"), "motions": ("sequential H", "sequential F"),
}  # fmt: skip
#: Peers of the tables: which of their models, those of the scene if none are named, and their names with the threshold left open.
#: Of the models and thresholds the best of the tuning half is shown.
PEERS: dict[str, tuple[tuple[str, ...], str]] = {
    "PoseLib, the scene's model": ((), "PoseLib {:g} px"),
    "OpenCV USAC_MAGSAC 100k, the scene's model": ((), "USAC_MAGSAC {:g} px 100k"),
    "PoseLib, homographies in turn": (("sequential H",), "PoseLib {:g} px"),
    "OpenCV USAC_MAGSAC 100k, homographies in turn": (("sequential H",), "USAC_MAGSAC {:g} px 100k"),
    "OpenCV USAC_MAGSAC 100k, one fundamental matrix": (("F",), "USAC_MAGSAC {:g} px 100k"),
}
#: Rows of the tables.
ROWS = (OURS, *PEERS, "LPM")
#: Measures beside the masks' accuracy, and the arguments of the page.
BESIDE = {
    "near": "--suite near --half judge --seeds 3", "poses": "--suite posed --half both --seeds 3", "models": "--half both --seeds 1",
    "wrong": "--half both --seeds 1",
    "video": "--half judge --seeds 1", "calibration": "--half judge --seeds 1",
}  # fmt: skip
#: Methods of these measures that the page shows, and columns; the CSVs have all.
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "near": (
        (
            OURS, "F PoseLib", *(f"F PoseLib {each:g} px" for each in THRESHOLDS[1:4]),
            *(f"F USAC_MAGSAC {each:g} px 100k" for each in THRESHOLDS[:4]), "H PoseLib 12 px", "sequential H PoseLib 12 px",
            "sequential H USAC_MAGSAC 12 px 100k", "LPM",
        ),
        ("near misses kept", "others kept", "probability of near misses"),
    ),
    "poses": (
        (
            OURS, f"{OURS}, cameras given", "PoseLib, cameras given",
            *(f"PoseLib {each:g} px, cameras given" for each in THRESHOLDS[1:]), f"PoseLib after {OURS}",
            "PoseLib after F USAC_MAGSAC 1 px 100k", "E USAC_MAGSAC 1 px 100k",
            f"{OURS}, find_fundamental_matrix", f"{OURS}, motions[0]", "F PoseLib", "F USAC_MAGSAC 1 px 100k",
        ),
        ("AUC@5°", "AUC@10°", "AUC@20°", "median error (°)"),
    ),
    "video": (
        (f"{OURS}, cameras given", OURS, "PoseLib, cameras given", "E USAC_MAGSAC 1 px 100k"),
        ("flips", "median rotation (°)", "median translation (°)", "AUC@10°"),
    ),
}  # fmt: skip
MODEL_ERROR = "median error (px)"


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
    if method in PEERS or (not in_turn and words[0] not in model):
        return method
    many = " 100k" * (words[-1] == "100k")
    name = " ".join(words[2 if in_turn else 1 :]).removesuffix(" 100k")
    whose = f"OpenCV {name}" if name.startswith(("RANSAC", "USAC", "LMEDS")) else name
    several = {"H": "homographies in turn", "F": "fundamental matrices in turn"}
    return f"{whose}{many}, {several[words[1]] if in_turn else model[words[0]]}"


def read(name: str, index: list[str]) -> pd.DataFrame:
    """A CSV of `results`."""
    return pd.read_csv(RESULTS / f"{name}.csv", index_col=index, dtype={"commit": str}).sort_index()


def short(method: str, models: tuple[str, ...]) -> str:
    """The threshold of a method, and its model if a row has several; in turn or not follows from the scene."""
    threshold = re.search(r"\d+ px", method)[0]
    return threshold if len(models) == 1 else f"{'F' if method.startswith(('F', 'sequential F')) else 'H'} {threshold}"


def best(table: pd.DataFrame, peer: str, suites: tuple[str, ...]) -> tuple[str, str]:
    """The method of a peer that is best on the tuning halves of suites, and its model and threshold; empty if none was measured."""
    own, name = PEERS[peer]
    models = own or SCENE_MODELS[re.split(" on rendered | on |, ", suites[0])[-1]]
    names = [f"{model} {name.format(threshold)}" for model in models for threshold in THRESHOLDS]
    scores = pooled(table, suites, "tune").f1.reindex(names).dropna()
    return (scores.idxmax(), short(scores.idxmax(), own)) if len(scores) > 1 else ("", "")


def with_peers(
    table: pd.DataFrame, columns: Iterable[tuple[str, ...]]
) -> tuple[pd.DataFrame, dict[tuple[str, tuple[str, ...]], str]]:
    """The judge halves of suites with each peer at its best, instead of all thresholds; models and thresholds by peer and suites."""
    rows, settings = [], {}
    table = table.sort_index()
    for suites in columns:
        own = table[table.index.isin(suites, "suite") & table.index.isin(["judge"], "half")].reset_index()
        for peer in PEERS:
            method, settings[peer, suites] = best(table, peer, suites)
            rows.append(own[own.method == method].assign(method=peer))
        rows.append(own[~own.method.str.contains(r" px")])
    return pd.concat(rows).set_index(["suite", "half", "method"]).sort_index(), settings


def all_suites() -> list[str]:
    """The suites of accuracy, in the order of the page."""
    return [suite for suites, _ in SECTIONS.values() for suite in suites]


def accuracy_table(table: pd.DataFrame) -> str:
    """F1 of the judge half, a line for each suite; peers with what is best on the tuning half."""
    found, settings = with_peers(table, [(suite,) for suite in all_suites()])
    lines = []
    for suite in all_suites():
        own = found.xs((suite, "judge"))
        shown_at = {row: f" ({settings[row, (suite,)]})" for row in PEERS}
        scores = (f"{shown(own.f1.get(row, np.nan))}{shown_at.get(row, '')}" for row in ROWS[1:])
        pairs, ours = str(own.problems.iloc[0]), shown(own.f1[OURS], 3, own.f1_error[OURS])
        lines.append([suite_title(suite), pairs, ours, *scores])
    return markdown(["F1", "pairs", *ROWS], lines)


def unjudged_table(table: pd.DataFrame) -> str:
    """Shares kept of the matches that are not judged: off the labelled planes / shifted on them."""
    lines = []
    for suite in all_suites():
        own = with_peers(table, [(suite,)])[0].xs((suite, "judge")).reindex(ROWS)
        if own.off_plane.notna().any():
            pairs = (f"{shown(of.off_plane)} / {shown(of.shifted)}".strip(" /") for of in own.itertuples())
            lines.append([suite_title(suite), *pairs])
    return markdown(["off-plane kept / shifted kept", *ROWS], lines)


def stored(name: str, half: str = "judge") -> pd.DataFrame:
    """A half of a measure beside accuracy."""
    found = pd.read_csv(RESULTS / f"{name}.csv", dtype={"commit": str})
    return found[found.half == half]


def with_command(name: str, header: list[str], lines: list[list[str]]) -> str:
    """A table, what measures it, and the commits that were measured."""
    commits, command = ", ".join(stored(name).commit.unique()), f"evaluate.py {name} {BESIDE[name]} --store"
    return f"{markdown(header, lines)}\n\n`python benchmarks/{command}` (commit {commits})"


def measured(name: str) -> str:
    """A line for each method and suite of a measure beside accuracy; the command."""
    (methods, titles), found, lines = SHOWN[name], stored(name), []
    for suite, own in found.groupby("suite", sort=False):
        own = own.set_index("method")
        for method in (method for method in methods if method in own.index):
            cells = [shown(own[title][method]) if title in own else "" for title in titles]
            lines.append([*([str(suite)] if found.suite.nunique() > 1 else []), method_title(method), *cells])
    header = [*(["suite"] if found.suite.nunique() > 1 else []), "method", *titles]
    return with_command(name, header, lines)


def at_best(own: pd.Series, tuned: pd.Series, name: str, smallest: bool = False) -> str:
    """A peer's number with the threshold that is best on the tuning half; nothing if it was not measured."""
    scores = tuned.reindex([name.format(threshold) for threshold in THRESHOLDS]).dropna()
    method = None if scores.empty else scores.idxmin() if smallest else scores.idxmax()
    return f"{shown(own[method], 2)} ({short(method, ('',))})" if method in own.index else ""


def wrong_table() -> str:
    """F1 where most matches are wrong, a line for each number of matches and share of true ones."""
    found, tuned, lines = stored("wrong"), stored("wrong", "tune"), []
    for suite, own in found.groupby("suite", sort=False):
        f1, before = own.set_index("method")["F1"], tuned[tuned.suite == suite].set_index("method")["F1"]
        title = str(suite).replace("one rigid", "rigid scene")
        peers = (at_best(f1, before, name) for _, name in list(PEERS.values())[:2])
        lines.append([title, str(own.problems.max()), shown(f1[OURS], 2), *peers])
    return with_command("wrong", ["F1", "pairs", OURS, "PoseLib", "USAC_MAGSAC 100k"], lines)


def models_table() -> str:
    """The median error of models, a line for each suite; peers at the threshold of least error on the tuning half."""
    found, tuned, lines = stored("models"), stored("models", "tune"), []
    for suite, own in found.groupby("suite", sort=False):
        errors = own.set_index("method")[MODEL_ERROR]
        before = tuned[tuned.suite == suite].set_index("method")[MODEL_ERROR]
        before = before if len(before) else errors  # an earlier commit has one threshold
        line = [at_best(errors, before, name, smallest=True) for _, name in list(PEERS.values())[:2]]
        if errors.notna().any():
            lines.append([known_title(str(suite)), str(own.problems.max()), shown(errors.get(OURS, np.nan), 2), *line])
    header = [MODEL_ERROR, "pairs", OURS, "PoseLib", "USAC_MAGSAC 100k"]
    return with_command("models", header, lines)


def calibration_table() -> str:
    """Calibration, a line for each suite: the error, and the shares of wrong matches among the kept."""
    found, lines = stored("calibration").set_index(["suite", "method"]), []
    for suite in dict.fromkeys(found.index.get_level_values("suite")):
        own = found.loc[suite]
        wrong = (shown(own["wrong among the kept"].get(f"{OURS} at {rate:g}", np.nan)) for rate in RATES[:2])
        lines.append([known_title(suite), shown(own["calibration error"][OURS]), *wrong])
    header = ["suite", "calibration error", *(f"wrong at {rate:g}" for rate in RATES[:2])]
    return with_command("calibration", header, lines)


def known_title(suite: str) -> str:
    """What a suite is called, if it is one of accuracy; its name else."""
    return suite_title(suite) if suite in all_suites() else suite


def ablation_table() -> str:
    """What leaving out or replacing a rule does to mean F1, if beyond two standard errors; the CSV has all rules."""
    found = pd.read_csv(RESULTS / "ablation.csv", index_col="variant")
    names = [name for name in evaluate_ablation.RULES if name in found.index and name != evaluate_ablation.DEFAULT]
    sure = [name for name in names if abs(found.f1[name]) > 2 * found["f1 error"][name]]
    lines = [[name, shown(found.f1[name], 4, found["f1 error"][name], "+")] for name in sure]
    rest = f"Of the other {len(names) - len(sure)} rules, none changes F1 by more than two standard errors."
    table = markdown(["rule", "F1 minus the default's"], lines)
    return f"{table}\n\n{rest} `benchmarks/results/ablation.csv` has all."


def ahead(table: pd.DataFrame) -> tuple[str, str]:
    """Which methods of one suite and half are ahead of the default in F1, beyond two standard errors and within."""
    better = table[table.lead < -0.0005].sort_values("lead")
    sure = -better.lead > 2 * better.lead_error
    text = lambda row: f"{method_title(str(row.Index))}: +{-row.lead:.3f} ± {row.lead_error:.3f}"  # noqa: E731
    first, second = ("; ".join(map(text, of.itertuples())) for of in (better[sure], better[~sure]))
    return first, second


def wins(table: pd.DataFrame) -> str:
    """A row for each suite: the default's F1 on the judge half, and who is ahead of it."""
    rows = []
    for suite in all_suites():
        own = with_peers(table, [(suite,)])[0].xs((suite, "judge"))
        cells = [suite_title(suite), own.commit[OURS], f"{own.f1[OURS]:.3f}"]
        rows.append([*cells, *(text or "none" for text in ahead(own))])
    header = ["suite", "commit", "F1", "better than the default", "better, but not significantly"]
    table_of_words = markdown(header, rows).replace("---:", "---")
    summary = "<summary>Suite by suite: methods better than the default</summary>"
    return f"<details>{summary}\n\n{table_of_words}\n\n</details>"


def pooled(table: pd.DataFrame, suites: tuple[str, ...], half: str = "judge") -> pd.DataFrame:
    """Means over the problems of several suites' halves, for the methods that answered all of them."""
    own = table[table.index.isin(suites, "suite") & table.index.isin([half], "half")].reset_index()
    weight = own.problems / own.drop_duplicates("suite").problems.sum()
    for name in ("f1", "lead"):
        own = own.assign(**{name: own[name] * weight, f"{name}_error": (own[f"{name}_error"] * weight) ** 2})
    names = ["f1", "f1_error", "lead", "lead_error"]
    found = own.groupby("method")[names].sum()[own.groupby("method").size() == len(suites)]
    return found.assign(f1_error=np.sqrt(found.f1_error), lead_error=np.sqrt(found.lead_error))


def readme_table(table: pd.DataFrame) -> str:
    """The README's table, the best of each column in bold, after the rows that are better than the default."""
    found, settings = with_peers(table, COLUMNS.values())
    suites = {name: [suite for part in parts for suite in COLUMNS[part]] for name, parts in README_COLUMNS.items()}
    columns = {name: pooled(found, tuple(of)) for name, of in suites.items()}
    speed, lines = milliseconds(), []
    for row in ROWS:
        line = [row, shown(speed.get(row, np.nan), 0)]
        for name, of in columns.items():
            score = of.f1[row]
            text, error = (shown(value).removeprefix("0") for value in (score, of.f1_error[row]))
            used = ", ".join(dict.fromkeys(settings.get((row, COLUMNS[part]), "") for part in README_COLUMNS[name]))
            text = f"**{text}**" if score >= of.f1.reindex(ROWS).max() - 0.0005 else text
            line.append(f"{text} ± {error}{f' ({used})' if used else ''}")
        lines.append(line)
    pairs = found.xs("judge", level="half").groupby("suite").problems.max()
    numbers = (str(sum(pairs[suite] for part in parts for suite in COLUMNS[part])) for parts in README_COLUMNS.values())
    lines.append(["image pairs", "", *numbers])
    leaders = []
    for name, of in columns.items():
        better = of[(of.lead < -0.0005) & of.index.isin(ROWS)].sort_values("lead")
        rivals = []
        for row, own in better.iterrows():
            tie = ", a tie" if -own.lead <= 2 * own.lead_error else ""
            rivals.append(f"{row} (+{-own.lead:.3f} ± {own.lead_error:.3f}{tie})")
        leaders += [f"On *{name}*, other rows have a higher F1: {'; '.join(rivals)}."] if rivals else []
    text = " ".join(leaders) or "No other row has a higher mean F1 in any column."
    return f"{text}\n\n{markdown(['mean F1 of the mask', 'ms', *README_COLUMNS], lines)}"


def milliseconds() -> dict[str, float]:
    """Median milliseconds of each row on the 300 matches of a rigid scene that `times.py` gives to all methods."""
    rows = pd.read_csv(RESULTS / "times.csv")
    speed = rows[rows.row == "methods"].set_index("method")["median"]
    table = read("accuracy", ["suite", "half", "method"])
    methods = {row: best(table, row, COLUMNS["photographed rigid scenes"])[0] if row in PEERS else row for row in ROWS}
    return {row: float(speed.get(method, np.nan)) for row, method in methods.items()}


def latency() -> str:
    """The README's table of times, and what a process takes once."""
    rows = pd.read_csv(RESULTS / "times.csv")
    methods = [OURS, "USAC_MAGSAC 100k", "PoseLib"]
    table = rows.pivot_table("median", ["title", "n"], "method")[methods]
    lines = [
        [title, f"{key[1]:,}", *(shown(ms, int(ms < 10)) for ms in table.loc[key])] for key, title in TIMED.items()
    ]
    once = rows[rows.method == OURS].groupby("row")["median"].first()
    return (
        f"{markdown(['processor ms', 'matches', *methods], lines)}\n\n"
        f"Import and first call: {once['first']:.1f} s, {once['memory']:.0f} MB of memory. [All times](docs/benchmarks.md#time)."
    )


def with_titles(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of times with what the methods are called where all of them are compared."""
    of_all = rows.row == "methods"
    return rows.assign(method=rows.method.where(~of_all, rows.method.map(method_title)))


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
    found |= {"accuracy": accuracy_table(table), "unjudged": unjudged_table(table)}
    found |= {"models": models_table(), "wrong": wrong_table(), "calibration": calibration_table()}
    found |= {"ablation": ablation_table(), "wins": wins(table), "table": readme_table(table), "latency": latency()}
    found["commands"] = "\n".join(f"    {line}" for line in commands())
    found["times"] = times.tables(with_titles(pd.read_csv(RESULTS / "times.csv")))
    return found


def commands() -> list[str]:
    """What measures all CSVs of `results` anew."""
    accuracy = [f"accuracy {of}" for _, each in SECTIONS.values() for of in each]
    measures = [*(f"{name} {of}" for name, of in BESIDE.items()), *accuracy]
    return [
        *(f"python benchmarks/evaluate.py {of} --store" for of in measures),
        "python benchmarks/times.py --store",
        "python benchmarks/evaluate_ablation.py --variants rules --suites photographed adelaidermf",
    ]


def main() -> None:
    """Write, or print the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", action="store_true", help="print the commands that measure the CSVs anew")
    if parser.parse_args().commands:
        print(*commands(), sep="\n")
        return
    found = parts()
    for path in DOCUMENTS:
        path.write_text(fill(path.read_text(encoding="utf-8"), found), encoding="utf-8")


if __name__ == "__main__":
    main()
