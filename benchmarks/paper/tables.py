"""The tables of the experiments in Markdown, from the CSVs of the sweep."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from paper.sweep import IFOREST, STEPS, read, read_means
from report import markdown, shown

from ruzhash_cv.paper import METHODS

TITLES = {
    ("lines", "paper"): "lines, k = 3",
    ("circles", "paper"): "circles, k = 3",
    ("homographies", "paper"): "AdelaideRMF planes, k = 5",
    ("fundamental", "paper"): "AdelaideRMF motions, k = 0.25",
    ("homographies", "wide"): "AdelaideRMF planes, cut at 24 σ",
    ("fundamental", "wide"): "AdelaideRMF motions, cut at 24 σ",
}
KINDS = {"lines": "lines", "circles": "circles", "homographies": "planes", "fundamental": "motions"}
#: (method, b) less (method, b).
PAIRS = (("RHF", 16, "PIF", 2), ("RHF-B", 16, "PIF-B", 2), ("RHF", 8, "PIF", 8), ("RHF-B", 8, "PIF-B", 8))
PAIRS += (("PIF", 2, "PIF-R", 2),)
CLAIMED = (("RHF", "PIF", 70), ("RHF", "PIF-R", 70), ("RHF-B", "PIF-B", 35))
PHASES = ("train", "test")


def mean_by(rows: pd.DataFrame, value: str, *columns: str) -> pd.Series:
    """Means of a column, each scene counting once: its runs are averaged first."""
    return rows.groupby([*columns, "scene"], sort=False)[value].mean().groupby(list(columns), sort=False).mean()


def panels(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Title and rows of each kind of data and tolerance that the rows hold."""
    for (group, tolerance), title in TITLES.items():
        part = rows[(rows.group == group) & (rows.tolerance == tolerance)] if len(rows) else rows
        if len(part):
            yield title, part


def table(corner: str, means: pd.Series) -> str:
    """A line for each value of the first level, a column for each of the second."""
    cells = means.unstack(sort=False)
    values = cells.map(shown).to_numpy().tolist()
    lines = [[str(name), *row] for name, row in zip(cells.index, values, strict=True)]
    return markdown([corner, *(f"{name:g}" if isinstance(name, float) else str(name) for name in cells.columns)], lines)


def auc(out: Path) -> str:
    """AUC of each method over b, a table for each kind of data."""
    parts = []
    for title, rows in panels(read_means(out / "auc.csv")):
        counts = f"scenes: {rows.scene.nunique()}; runs: {' to '.join(map(str, sorted(rows.runs.unique())))}"
        parts.append(f"**ROC AUC, {title}** ({counts})\n\n{table('b', mean_by(rows, 'auc', 'method', 'b'))}")
    return "\n\n".join(parts)


def spread(out: Path) -> str:
    """The best AUC of each method, and how much it varies with b."""
    lines = []
    for title, rows in panels(read_means(out / "auc.csv")):
        over_b = mean_by(rows, "auc", "method", "b").groupby("method")
        best, ranges = over_b.max(), over_b.max() - over_b.min()
        wide = (shown(ranges[name]) for name in ("RHF", "RHF-B", "PIF"))
        lines.append([title, *(shown(best[name]) for name in METHODS), *wide])
    return markdown(["data", *(f"best {name}" for name in METHODS), "range over b, RHF", "RHF-B", "PIF"], lines)


def paired(out: Path) -> str:
    """Differences in AUC, paired by scene (each the mean of its runs), with standard errors over scenes."""
    lines = []
    for title, rows in panels(read_means(out / "auc.csv")):
        means = rows.pivot_table(index="scene", columns=["method", "b"], values="auc")
        if all((method, b) in means for first, b1, second, b2 in PAIRS for method, b in ((first, b1), (second, b2))):
            gaps = [means[first, b1] - means[second, b2] for first, b1, second, b2 in PAIRS]
            lines.append([f"{title} ({len(means)})", *(shown(gap.mean(), 3, gap.sem(), "+") for gap in gaps)])
    header = ["data (scenes)", *(f"{first}, b = {b1}, less {second}, b = {b2}" for first, b1, second, b2 in PAIRS)]
    return markdown(header, lines)


def cut_offs(out: Path) -> str:
    """AUC over the cut-off of binary preferences."""
    rows = read(out / "tolerance.csv")
    names = rows.group.map(KINDS) + ", " + rows.method + ", b = " + rows.b.astype(str)
    return table("data, cut-off in σ", mean_by(rows.assign(name=names).sort_values("cut"), "auc", "name", "cut"))


def speed(out: Path) -> str:
    """Time saved by RHF at each b and at the b of the best AUC."""
    rows = read(out / "times.csv")
    seconds, quality = mean_by(rows, "test_seconds", "method", "b"), mean_by(rows, "auc", "method", "b")
    best, bs = {name: quality[name].idxmax() for name in METHODS}, sorted(rows.b.unique())
    lines = []
    for fast, slow, claimed in CLAIMED:
        saved = [f"{100 * (1 - seconds[fast, b] / seconds[slow, b]):.0f} %" for b in bs]
        at_best = 100 * (1 - seconds[fast, best[fast]] / seconds[slow, best[slow]])
        bests = f"{at_best:.0f} % (b = {best[fast]}, {best[slow]})"
        lines.append([f"{fast} over {slow}", f"{claimed} %", bests, *saved])
    return markdown(["", "the paper", "each at its best b", *(f"b = {b}" for b in bs)], lines)


def times(out: Path) -> str:
    """Processor seconds over b."""
    rows = read(out / "times.csv")
    tables = (table("b", mean_by(rows, f"{phase}_seconds", "method", "b")) for phase in PHASES)
    titles = (f"**{phase}, processor seconds of one thread**" for phase in PHASES)
    return "\n\n".join(f"{title}\n\n{part}" for title, part in zip(titles, tables, strict=True))


def exponents(out: Path) -> str:
    """For each method and variable of table 1 the exponent of the time, measured and as expected."""
    rows, lines = read(out / "complexity.csv"), []
    for method in (*METHODS, IFOREST):
        for varied in STEPS:
            part = rows[(rows.method == method) & (rows.varied == varied)]
            if part[varied].nunique() > 1:
                pairs = ((part[f"{phase}_seconds"], expected(method, phase, part)) for phase in PHASES)
                cells = (shown(slope(part[varied], values), 2) for pair in pairs for values in pair)
                lines.append([f"{method}, {varied}", *cells])
    return markdown(["method, variable", "training: measured", "expected", "test: measured", "expected"], lines)


def slope(sizes: pd.Series, values: pd.Series) -> float:
    """The exponent of a power law."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-6)), 1)[0])


def expected(method: str, phase: str, rows: pd.DataFrame) -> pd.Series:
    """Table 1's term: psi t log_b psi in training, n t log_b psi in a test; times b for distances to b centres."""
    psi, base = np.minimum(rows.psi, rows.n), 2 if method == IFOREST else rows.b
    term = (psi if phase == "train" else rows.n) * rows.t * np.log(psi) / np.log(base)
    return term * (rows.b if method.startswith("PIF") else 1)


def isolation(out: Path) -> str:
    """AUC of isolation forests and of the forests here, by kind of data."""
    rows = read(out / "scores.csv")
    named = rows.method.where(rows.method.str.startswith(IFOREST), rows.method + ", b = " + rows.b.astype(str))
    rows = rows.assign(name=named)
    parts = {f"{title}; {part.scene.nunique()} scenes": mean_by(part, "auc", "name") for title, part in panels(rows)}
    return table("method", pd.concat(parts).swaplevel())


def estimate(out: Path) -> str:
    """How well hashes estimate distances."""
    rows = read(out / "estimate.csv")
    names = rows.scene + np.where(rows.binary, ", binary", "")
    values = rows[["n_pairs", "correlation", "mean_error", "rms_error"]].astype(str).to_numpy()
    header = ["scene", "pairs", "correlation", "mean error", "rms error"]
    return markdown(header, [[name, *row] for name, row in zip(names, values, strict=True)])


#: Title, the CSV, and the table of it.
TABLES = (
    ("AUC over b", "auc", auc),
    ("Best AUC, and its range over b", "auc", spread),
    ("AUC, paired by scene", "auc", paired),
    ("AUC over the cut-off of binary preferences", "tolerance", cut_offs),
    ("Test time saved", "times", speed),
    ("Times over b", "times", times),
    ("Exponents of time", "complexity", exponents),
    ("Isolation forests", "scores", isolation),
    ("Ruzicka distance and hashes", "estimate", estimate),
)


def write(out: Path) -> str:
    """Write ``tables.md`` beside the CSVs and return it."""
    parts = [f"## {title}\n\n{of(out)}" for title, name, of in TABLES if (out / f"{name}.csv").is_file()]
    title = "# Tables of the paper's experiments", "Written by `python benchmarks/run_paper.py`."
    text = "\n\n".join([*title, *parts]) + "\n"
    (out / "tables.md").write_text(text, encoding="utf-8")
    return text
