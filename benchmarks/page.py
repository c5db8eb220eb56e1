"""The tables of docs/benchmarks.md, docs/benchmarks_details.md and README.md, from the CSVs in `results`.

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
from facades import WAYS
from methods import MODELS, OURS, THRESHOLDS
from report import RESULTS, markdown, shown

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = tuple(ROOT / name for name in ("docs/benchmarks.md", "docs/benchmarks_details.md", "README.md"))

TRUTH = {"one plane": "plane", "planes": "planes", "one rigid": "rigid scene", "motions": "motions"}
HALVES = ("--half tune --seeds 1", "--half judge --seeds 3")
ONCE = "--half both --seeds 1"
#: Fundamental matrices in turn are behind homographies in turn on all suites of several motions but drawn moved things.
MASKS = f'--methods {OURS} "{OURS} " "H " "F " "sequential H" LPM'
#: A section of the page: its suites as rows name them, and the arguments that measure it.
SECTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "adelaidermf": (
        tuple(f"{features}adelaidermf {kind}" for features in ("", "sift on ", "orb on ") for kind in "HF"),
        tuple(f"--suite adelaidermf fresh {half} {MASKS}" for half in HALVES),
    ),
    "photographed": (
        (
            *(f"{features} on photographed planes" for features in ("given", "sift", "mutual", "orb")),
            *(f"{features} on photographed rigid" for features in ("given", "sift", "mutual")),
        ),
        tuple(f"--suite photographed {half} {MASKS}" for half in HALVES),
    ),
    "rendered": (
        (*TRUTH, *(f"repeated texture, {name}" for name in TRUTH)),
        tuple(f"--suite rendered {half} --per-cell 1 {MASKS}" for half in HALVES),
    ),
    "pictures": (
        tuple(f"{features} on rendered {name}" for features in ("sift", "orb") for name in TRUTH),
        tuple(f"--suite pictures {half} --per-cell 1 {MASKS}" for half in HALVES),
    ),
    "facades": (tuple(f"facades, {way}" for way in WAYS), (f"--suite facades {ONCE} --per-cell 1 {MASKS}",)),
    "moved": (
        ("moved by hand", "moved by hand, bent lens", "solids"),
        (f'--suite by-hand solids {ONCE} --per-cell 1 {MASKS} "sequential F"',),
    ),
}
#: What suites are called in documents: where the matches come from, then how they were made.
SCENES = {
    "adelaidermf H": "AdelaideRMF planes", "adelaidermf F": "AdelaideRMF motions",
    "photographed planes": "photographed planes", "photographed rigid": "photographed rigid scenes",
    **{f"rendered {name}": f"rendered {scenes}" for name, scenes in TRUTH.items()},
    **{name: f"synthetic {scenes}" for name, scenes in TRUTH.items()},
}  # fmt: skip
TITLES = {
    "moved by hand": "synthetic things moved by hand", "moved by hand, bent lens": "the same, bent lens",
    "solids": "synthetic solid things",
    "learned, xfeat": "XFeat, mutual neighbours", "learned, lighterglue": "XFeat, LighterGlue",
    **{f"facades, {way}": f"rendered facades, {way}".replace("sift-", "SIFT, ").replace("orb-", "ORB, ") for way in WAYS},
}  # fmt: skip
MADE = {"sift": "SIFT", "orb": "ORB", "given": "given", "mutual": "no ratio test"}
#: Columns of the table of photographs, and the suites they are means of.
COLUMNS = {
    **{
        f"several {name}": tuple(suite for suite in SECTIONS["adelaidermf"][0] if suite.endswith(kind))
        for name, kind in (("planes", "H"), ("motions", "F"))
    },
    "one plane": tuple(f"{features} on photographed planes" for features in ("given", "sift", "orb")),
    "one rigid scene": tuple(f"{features} on photographed rigid" for features in ("given", "sift")),
    "one plane, no ratio test": ("mutual on photographed planes",),
    "rigid scene, no ratio test": ("mutual on photographed rigid",),
}
#: Rows of the README's table of times, by title and number of matches in `times.csv`.
TIMED = {
    ("one plane, 40% wrong", 300): "one plane", ("rigid scene, 40% wrong", 300): "rigid scene",
    ("unihouse, AdelaideRMF", 2084): "several planes", ("unrelated photographs", 887): "images that share nothing",
    ("rigid scene, 90% wrong", 1000): "rigid scene, 90 % wrong",
}  # fmt: skip
#: What the models are that a scene has, by the beginnings of methods' names; the first that is in a suite's name counts.
SCENE_MODELS = {
    "adelaidermf H": ("sequential H", "F"), "adelaidermf F": ("sequential H", "sequential F"),
    "moved by hand": ("sequential H", "sequential F"), "solids": ("sequential H", "sequential F"),
    "facades": ("H", "sequential H", "F"),
    "photographed planes": ("H",), "photographed rigid": ("F",), "one plane": ("H",), "one rigid": ("F",),
    "planes": ("sequential H", "F"), "motions": ("sequential H", "sequential F"),
}  # fmt: skip
MAGSAC, ITS = "USAC_MAGSAC {:g} px 100k", "given the scene's model"
#: Peers of the tables: which of their models, those of the scene if none are named, and their names with the threshold left open.
#: Of the models and thresholds the best of the tuning half is shown.
PEERS: dict[str, tuple[tuple[str, ...], str]] = {
    f"PoseLib, {ITS}": ((), "PoseLib {:g} px"),
    f"MAGSAC, {ITS}": ((), MAGSAC),
    f"SupeRANSAC, {ITS}": ((), "SupeRANSAC {:g} px"),
    "PoseLib in turn": (("sequential H",), "PoseLib {:g} px"),
    "MAGSAC in turn": (("sequential H",), MAGSAC),
    "SupeRANSAC in turn": (("sequential H",), "SupeRANSAC {:g} px"),
    "MAGSAC F": (("F",), MAGSAC),
}
#: Rows of the tables.
ROWS = (OURS, *PEERS, "LPM")
#: Measures beside the masks' accuracy, and the arguments of the page.
BESIDE = {
    "near": "--suite near --half judge --seeds 3", "poses": "--suite posed --half both --seeds 3", "learned": ONCE, "models": ONCE,
    "wrong": ONCE, "video": "--half judge --seeds 1", "calibration": "--half judge --seeds 1 --per-cell 1",
}  # fmt: skip
SINGLE = {"PoseLib": "PoseLib {:g} px", "MAGSAC": MAGSAC, "SupeRANSAC": "SupeRANSAC {:g} px"}
SEARCHES = OURS, f"{OURS} confidence=0.99"
FIND = f"{OURS} find_*"
MOST = {**SINGLE, "PoseLib 1M": "PoseLib 12 px 1M"}
ONE_F = tuple(f"F {name}" for name in SINGLE.values())
GIVEN = f"{OURS}, cameras given", "PoseLib {:g} px, cameras given"
#: Methods of these measures that the page shows, and columns; the CSVs have all. An open threshold is the best of the tuning half.
SHOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "near": (
        (
            OURS, *(of.format(each) for of in ONE_F for each in THRESHOLDS[:4]), "H PoseLib 12 px", "sequential H PoseLib 12 px",
            "sequential H USAC_MAGSAC 12 px 100k", "LPM",
        ),
        ("near misses kept", "others kept", "probability of near misses"),
    ),
    "poses": (
        (
            OURS, *GIVEN, f"PoseLib after {OURS}", "PoseLib after F USAC_MAGSAC 1 px 100k", "E USAC_MAGSAC 1 px 100k",
            f"{OURS}, find_fundamental_matrix", f"{OURS}, motions[0]", *ONE_F,
        ),
        ("AUC@5°", "AUC@10°", "AUC@20°"),
    ),
    "learned": (
        (OURS, *GIVEN, f"{OURS}, find_fundamental_matrix", *ONE_F),
        ("F1 within 3 px", "F1 within 5 px", "F1 within 10 px", "AUC@10°"),
    ),
    "video": (
        (f"{OURS}, cameras given", OURS, "PoseLib 1 px, cameras given", "E USAC_MAGSAC 1 px 100k"),
        ("flips", "median rotation (°)", "median translation (°)", "AUC@10°"),
    ),
}  # fmt: skip
MODEL_ERROR = "median error (px)"
NEAR = SHOWN["near"][1][:2]
#: One plane whose texture repeats.
REPEATED = "repeated texture, one plane", "sift on rendered one plane", "orb on rendered one plane"


def suite_title(suite: str) -> str:
    """What a suite is called."""
    if suite in TITLES:
        return TITLES[suite]
    texture, _, drawn = suite.rpartition(", ")
    if texture:
        return f"{SCENES[drawn]}, {texture}"
    made, _, scenes = suite.rpartition(" on ")
    made = MADE[made] if made else "labelled" if scenes.startswith("adelaidermf") else ""
    return f"{SCENES[scenes]}, {made}" if made else SCENES[scenes]


def method_title(method: str) -> str:
    """What a method is called: whose it is, then what it fits, and its threshold."""
    first, after, second = method.partition(" after ")
    if after:
        return f"{first} after {method_title(second)}"
    words = method.removeprefix("sequential ").split()
    if words[0] == OURS and words[-1] in MODELS.values():
        return f'{OURS}, model="{words[1]}"'
    if words[0] not in ("H", "F", "E"):
        return method
    what = words[0] + " in turn" * method.startswith("sequential")
    few = ", OpenCV's iterations" * (words[1] == "USAC_MAGSAC" and words[-1] != "100k")
    name = words[1].removeprefix("USAC_")
    return " ".join([name, what, *words[2:]]).removesuffix(" 100k") + few


def read(name: str, index: list[str]) -> pd.DataFrame:
    """A CSV of `results`."""
    return pd.read_csv(RESULTS / f"{name}.csv", index_col=index, dtype={"commit": str}).sort_index()


def short(method: str, models: tuple[str, ...]) -> str:
    """The threshold of a method, and its model if a row has several."""
    threshold, model = re.search(r"\d+ px", method)[0], re.search(r"\b[HF]\b", method)
    if len(models) == 1 or model is None:
        return threshold
    return f"{model[0]}{' in turn' * method.startswith('sequential')} {threshold}"


def best(table: pd.DataFrame, peer: str, suites: tuple[str, ...]) -> tuple[str, str]:
    """The method of a peer that is best on the tuning halves of suites, and its model and threshold; empty if none was measured."""
    own, name = PEERS[peer]
    models = own or next(of for scene, of in SCENE_MODELS.items() if scene in suites[0])
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


def best_peer(
    of: pd.DataFrame, settings: dict[tuple[str, tuple[str, ...]], str], suites: tuple[str, ...], given: bool
) -> str:
    """The peer of the highest F1 among those that are given the scene's model, or among the others, with what it was measured with."""
    scores = of.f1.reindex([row for row in ROWS[1:] if (ITS in row) == given]).dropna()
    if scores.empty:
        return ""
    name = scores.idxmax()
    return f"{shown(scores[name])}{star(of.loc[name])} {name.removesuffix(f', {ITS}')} {settings.get((name, suites), '')}".strip()


def star(of: pd.Series) -> str:
    """A star if a method is ahead of the default by more than two standard errors of the paired difference."""
    return "\\*" if -of.lead > 2 * of.lead_error else ""


def accuracy_table(table: pd.DataFrame) -> str:
    """F1 of the judge half, a line for each suite: the best of the peers, each with what is best on the tuning half."""
    found, settings = with_peers(table, [(suite,) for suite in all_suites()])
    lines = []
    for suite in all_suites():
        own = found.xs((suite, "judge"))
        peers = (best_peer(own, settings, (suite,), given) for given in (True, False))
        pairs, ours = str(own.problems.iloc[0]), shown(own.f1[OURS], 3, own.f1_error[OURS])
        lines.append([suite_title(suite), pairs, ours, *peers])
    return markdown(["F1", "pairs", OURS, f"best peer {ITS}", "best other peer"], lines)


def unjudged_table(table: pd.DataFrame) -> str:
    """Shares kept of the matches that are not judged: off the labelled planes / shifted on them."""
    lines, rows = [], [row for row in ROWS if "SupeRANSAC" not in row]
    for suite in all_suites():
        own = with_peers(table, [(suite,)])[0].xs((suite, "judge")).reindex(rows)
        if own.off_plane.notna().any():
            pairs = (f"{shown(of.off_plane)} / {shown(of.shifted)}".strip(" /") for of in own.itertuples())
            lines.append([suite_title(suite), *pairs])
    return markdown(["off-plane kept / shifted kept", *rows], lines)


def stored(name: str, half: str = "judge") -> pd.DataFrame:
    """A half of a measure beside accuracy."""
    found = pd.read_csv(RESULTS / f"{name}.csv", dtype={"commit": str})
    return found[found.half == half]


def with_command(name: str, header: list[str], lines: list[list[str]]) -> str:
    """A table, what measures it, and the commits that were measured."""
    own = stored(name)
    commits = ", ".join(own.commit[own.method.str.startswith(OURS)].unique())
    command = f"evaluate.py {name} {BESIDE[name]} --store"
    return f"{markdown(header, lines)}\n\n`python benchmarks/{command}` (commit {commits})"


def measured(name: str) -> str:
    """A line for each method and suite of a measure beside accuracy; the command."""
    (methods, titles), found, tuned, lines = SHOWN[name], stored(name), stored(name, "tune"), []
    for suite, own in found.groupby("suite", sort=False):
        own, before = own.set_index("method"), tuned[tuned.suite == suite].set_index("method")
        for method in methods:
            if "{" in method:
                cells = [at_best(own[title], before[title], method, digits=3) for title in titles if title in own]
            else:
                cells = [shown(own[title].get(method, np.nan)) for title in titles if title in own]
            if any(cells):
                title = method_title(method.replace(" {:g} px", ""))
                lines.append([*([known_title(str(suite))] if found.suite.nunique() > 1 else []), title, *cells])
    header = [
        *(["suite"] if found.suite.nunique() > 1 else []),
        "method",
        *(title for title in titles if title in found),
    ]
    return with_command(name, header, lines)


def at_best(own: pd.Series, tuned: pd.Series, name: str, smallest: bool = False, digits: int = 2) -> str:
    """A peer's number with the threshold that is best on the tuning half; nothing if it was not measured."""
    scores = tuned.reindex([name.format(threshold) for threshold in THRESHOLDS]).dropna()
    method = name if "{" not in name else None if scores.empty else scores.idxmin() if smallest else scores.idxmax()
    return f"{shown(own[method], digits)} ({short(method, ('',))})" if method in own.index else ""


def best_of(own: pd.Series, tuned: pd.Series, names: dict[str, str]) -> str:
    """The best peer's number, its name, and its threshold."""
    cells = (at_best(own, tuned, of, digits=3).replace(" (", f" {name} ").strip(")") for name, of in names.items())
    return max(cells, key=leading)


def leading(cell: str) -> float:
    """The number that a cell begins with."""
    return float(cell.split()[0].rstrip("\\*")) if cell else -np.inf


def with_best_bold(cells: list[str]) -> list[str]:
    """Cells of a row, those of the highest number in bold."""
    highest = max(map(leading, cells))
    return [f"**{cell}**" if leading(cell) == highest else cell for cell in cells]


def wrong_scores() -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Means of the methods where most matches are wrong, test and tuning half, by suite."""
    halves = (stored("wrong", half).groupby("suite", sort=False) for half in ("judge", "tune"))
    first, second = ({str(suite): of.set_index("method") for suite, of in half} for half in halves)
    return {suite: (of, second[suite]) for suite, of in first.items()}


def wrong_table() -> str:
    """F1 where most matches are wrong, a line for each number of matches and share of true ones."""
    lines = []
    for suite, (of, before) in wrong_scores().items():
        names = MOST if suite.startswith("one plane") else {**SINGLE, "": ""}
        peers = (at_best(of.F1, before.F1, name, digits=3) for name in names.values())
        ms = (shown(of["median ms"].get(name, np.nan), 0) for name in (*SEARCHES, FIND, names.get("PoseLib 1M", "")))
        ours = (shown(of.F1.get(name, np.nan)) for name in (*SEARCHES, FIND))
        lines.append([suite.replace("one rigid", "rigid scene"), *ours, *peers, *ms])
    return with_command(
        "wrong", ["F1", *SEARCHES, FIND, *MOST, *(f"{name}, ms" for name in (*SEARCHES, FIND, "PoseLib 1M"))], lines
    )


def mostly_wrong() -> str:
    """The README's table of mostly wrong matches: ours and the best peer, of 300 and of 1,000 matches."""
    found, lines = wrong_scores(), []
    for scene, share in (("one plane", "5%"), ("one plane", "10%"), ("one rigid", "10%"), ("one rigid", "20%")):
        line = [f"{scene.replace('rigid', 'rigid scene')}, {share} true"]
        for n in ("300", "1,000"):
            of, before = found[f"{scene}, {share} of {n} true"]
            names = MOST if scene == "one plane" else SINGLE
            ours = (shown(of.F1.get(name, np.nan)) for name in SEARCHES)
            line += with_best_bold([*ours, best_of(of.F1, before.F1, names)])
        lines.append(line)
    of_size = [[f"{n} matches: {OURS}", "`confidence=0.99`", f"best peer {ITS}"] for n in ("300", "1,000")]
    return markdown(["F1", *of_size[0], *of_size[1]], lines)


def models_table() -> str:
    """The median error of models, a line for each suite; peers at the threshold of least error on the tuning half."""
    found, tuned, lines = stored("models"), stored("models", "tune"), []
    for suite, own in found.groupby("suite", sort=False):
        errors = own.set_index("method")[MODEL_ERROR]
        before = tuned[tuned.suite == suite].set_index("method")[MODEL_ERROR]
        line = [at_best(errors, before, name, smallest=True) for name in SINGLE.values()]
        if errors.notna().any():
            lines.append([known_title(str(suite)), str(own.problems.max()), shown(errors.get(OURS, np.nan), 2), *line])
    header = [MODEL_ERROR, "pairs", OURS, *SINGLE]
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
    return suite_title(suite) if suite in [*TITLES, *all_suites()] else suite


def ablation_table() -> str:
    """What leaving out or replacing a rule does to mean F1, if beyond two standard errors; the CSV has all rules."""
    found = pd.read_csv(RESULTS / "ablation.csv", index_col="variant")
    names = [name for name in evaluate_ablation.RULES if name in found.index and name != evaluate_ablation.DEFAULT]
    sure = [name for name in names if abs(found.f1[name]) > 2 * found["f1 error"][name]]
    lines = [[name, shown(found.f1[name], 4, found["f1 error"][name], "+")] for name in sure]
    rest = f"Of the other {len(names) - len(sure)} rules, none changes F1 by more than two standard errors."
    table = markdown(["rule", "F1 minus the default's"], lines)
    return f"{table}\n\n{rest} `benchmarks/results/ablation.csv` has all."


def pooled(table: pd.DataFrame, suites: tuple[str, ...], half: str = "judge") -> pd.DataFrame:
    """Means over the problems of several suites' halves, for the methods that answered all of them."""
    own = table[table.index.isin(suites, "suite") & table.index.isin([half], "half")].reset_index()
    weight = own.problems / own.drop_duplicates("suite").problems.sum()
    for name in ("f1", "lead"):
        own = own.assign(**{name: own[name] * weight, f"{name}_error": (own[f"{name}_error"] * weight) ** 2})
    names = ["f1", "f1_error", "lead", "lead_error"]
    found = own.groupby("method")[names].sum()[own.groupby("method").size() == len(suites)]
    return found.assign(f1_error=np.sqrt(found.f1_error), lead_error=np.sqrt(found.lead_error))


def decisions(table: pd.DataFrame) -> str:
    """The README's table of when to use this package: what each scene's best peers reach."""
    lines = [scene_line(table, name, suites) for name, suites in COLUMNS.items()]
    for way in ("find_homography", "filter_points"):
        method = OURS if way == "filter_points" else f"{OURS} {way}"
        lines.append(scene_line(table, f"one plane, repeated texture: `{way}`", REPEATED, method))
    names = {f"{name} F": f"F {of}" for name, of in SINGLE.items()}
    for suite in dict.fromkeys(stored("learned").suite):
        for way in ("find_fundamental_matrix", "filter_points"):
            method = OURS if way == "filter_points" else f"{OURS}, {way}"
            lines.append(line_of("learned", suite, "F1 within 5 px", method, names))
            lines[-1][0] += f": `{way}`"
    lines.append(line_of("poses", "photographed poses", "AUC@10°", GIVEN[0], {"PoseLib": GIVEN[1]}))
    lines[-1][0] = "camera pose, cameras given"
    near = stored("near").set_index("method")
    for column, measure in zip(NEAR, ("share kept, lower is better", "share of the true matches kept"), strict=True):
        values = [float(near.loc[name, column]) for name in (OURS, "F PoseLib 1 px")]
        cells, best = [shown(values[0]), f"{shown(values[1])} PoseLib F 1 px"], int(np.argmax(values))
        best = 1 - best if column == NEAR[0] else best
        cells[best] = f"**{cells[best]}**"
        lines.append(["near misses of 6 to 20 px", str(near.problems.max()), measure, *cells, ""])
    header = ["your matches", "pairs", "measure", OURS, f"best peer {ITS}", "best other peer"]
    return markdown(header, lines).replace("---:", "---")


def scene_line(table: pd.DataFrame, title: str, suites: tuple[str, ...], method: str = OURS) -> list[str]:
    """A line of `decisions`: F1 of suites of accuracy."""
    found, settings = with_peers(table, [suites])
    of, pairs = pooled(found, suites), found.groupby("suite").problems.max().sum()
    peers = (best_peer(of, settings, suites, given) for given in (True, False))
    return [title, str(pairs), "F1", *with_best_bold([shown(of.f1[method]), *peers])]


def line_of(name: str, suite: str, title: str, ours: str, names: dict[str, str]) -> list[str]:
    """A line of `decisions`: a column of a measure beside accuracy."""
    halves = (stored(name, half) for half in ("judge", "tune"))
    own, before = (of[of.suite == suite].set_index("method") for of in halves)
    cells = with_best_bold([shown(own[title][ours]), best_of(own[title], before[title], names)])
    return [known_title(suite), str(own.problems.max()), title, *cells, ""]


def readme_table(table: pd.DataFrame) -> str:
    """The README's table of methods: the best of each column in bold, a star at those ahead of the default."""
    found, settings = with_peers(table, COLUMNS.values())
    columns = {name: pooled(found, suites) for name, suites in COLUMNS.items()}
    speed, lines = milliseconds(), []
    for row in ROWS:
        line = [row.removesuffix(f", {ITS}"), "yes" if ITS in row else "no", shown(speed.get(row, np.nan), 0)]
        for name, of in columns.items():
            if row not in of.index:
                line.append("")
                continue
            own, used = of.loc[row], settings.get((row, COLUMNS[name]), "")
            text = shown(own.f1).removeprefix("0")
            text = f"**{text}**" if own.f1 >= of.f1.reindex(ROWS).max() - 0.0005 else text
            text += star(own)
            line.append(
                f"{text} ± {shown(own.f1_error).removeprefix('0')}" if row == OURS else f"{text} {used}".strip()
            )
        lines.append(line)
    pairs = found.xs("judge", level="half").groupby("suite").problems.max()
    lines.append(["image pairs", "", "", *(str(sum(pairs[suite] for suite in suites)) for suites in COLUMNS.values())])
    return markdown(["mean F1 of the mask", "model given", "ms", *COLUMNS], lines)


def milliseconds() -> dict[str, float]:
    """Median milliseconds of each row on the 300 matches of a rigid scene that `times.py` gives to all methods."""
    rows = pd.read_csv(RESULTS / "times.csv")
    speed = rows[rows.row == "methods"].set_index("method")["median"]
    table = read("accuracy", ["suite", "half", "method"])
    methods = {row: best(table, row, COLUMNS["one rigid scene"])[0] if row in PEERS else row for row in ROWS}
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
    million = rows[rows.n == 1_000_000]["median"].iloc[0]
    return (
        f"{markdown(['processor ms', 'matches', *methods], lines)}\n\n"
        f"A million matches: {million:.0f} s. Import and first call: {once['first']:.1f} s, {once['memory']:.0f} MB of memory. "
        "[All times](docs/benchmarks.md#time)."
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
    found = {name: measured(name) for name in SHOWN}
    found |= {"accuracy": accuracy_table(table), "unjudged": unjudged_table(table)}
    found |= {"models": models_table(), "wrong": wrong_table(), "calibration": calibration_table()}
    found |= {"ablation": ablation_table(), "table": readme_table(table), "latency": latency()}
    found |= {"when": decisions(table), "mostly wrong": mostly_wrong()}
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
