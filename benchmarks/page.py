"""The plots and tables of docs/benchmarks.md and the table of README.md, from the CSVs in `results`.

    python benchmarks/page.py              # write them
    python benchmarks/page.py --commands   # print what measures the CSVs anew

A part of a document between `<!-- NAME -->` and `<!-- /NAME -->` is replaced, and nothing else.
"""

from __future__ import annotations

import argparse
import csv
import re
import shlex
from pathlib import Path

import numpy as np
import plots
import time_filter
from report import OURS, Rows, accuracy_tables, ahead, markdown, per_problem
from sections import OWN, SECTIONS, TUNED, Section

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
DOCUMENTS = (ROOT / "docs" / "benchmarks.md", ROOT / "README.md")
PICTURES = ROOT / "docs" / "images" / "benchmarks"
#: Columns of the README's table: what they are called, and the section and the suites they come from, by the beginning.
COLUMNS = {
    "planes": ("labelled", "adelaidermf H"),
    "motions": ("labelled", "adelaidermf F"),
    "fresh SIFT": ("fresh", "sift on adelaidermf H"),
    "one plane": ("rendered", "one plane"),
    "one rigid scene": ("rendered", "one rigid"),
    "moving objects": ("rendered", "motions"),
    "repeated texture": ("rendered", "repeated"),
}
#: Its rows.
LINES = {
    OURS: "ruzhash_cv",
    "sequential H poselib": "PoseLib homographies in turn",
    "sequential H USAC_MAGSAC 12 px": "OpenCV USAC_MAGSAC homographies in turn, 12 px (tuned)",
    "H poselib": "PoseLib, one homography",
    "F USAC_MAGSAC": "OpenCV USAC_MAGSAC, one fundamental matrix",
    "H USAC_MAGSAC": "OpenCV USAC_MAGSAC, one homography",
    "AdaLAM": "AdaLAM (locally affine matching)",
    "LPM": "LPM (locality preserving matching)",
}
#: Matches of the call whose time is its last column.
TIMED = "300"
NOMINAL = (0.01, 0.05, 0.1)


def read(name: str) -> Rows:
    """Return the rows of a CSV in `results`."""
    with (RESULTS / name).open(newline="") as file:
        return list(csv.DictReader(file))


def folded(text: str) -> str:
    """Return tables with each heading turned into the summary of a part that folds."""
    parts = re.split(r"^### (.+)$\n", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return "\n\n".join(f"<details><summary>{title}</summary>\n\n{body.strip()}\n\n</details>" for title, body in pairs)


def told(found: tuple[list[str], list[str]]) -> str:
    """Return who is ahead of the default, in words."""
    beyond, within = found
    if not beyond and not within:
        return "Nobody is ahead of the default."
    parts = [("beyond", beyond), ("within", within)]
    found_in = [f"{place} two standard errors: {', '.join(texts)}" for place, texts in parts if texts]
    return f"Ahead of the default {'; '.join(found_in)}."


def accuracy(section: Section, rows: Rows) -> str:
    """Return a section: command, plot, and for each suite and half a folded table that says who is ahead."""
    own = section.rows(rows)
    parts = [f"Command: {section.shown_command()}"]
    if section.name != "single":
        parts.append(f"![Mean F1 of each method on each suite](images/benchmarks/{section.name}.png)")
    for suite, half in section.parts():
        here = [row for row in own if row["suite"] == suite and row["half"] == half]
        table = accuracy_tables(here, {method: method in TUNED for method in section.methods})
        heading, _, tables = table.partition("\n\n")
        parts.append(folded(f"{heading}\n\n{told(ahead(here, section.methods))}\n\n{tables}\n"))
    return "\n\n".join(parts)


def wins(rows: Rows) -> str:
    """Return an item for each suite on whose judge half somebody is ahead of the default, and the suites where nobody is."""
    items, unbeaten = [], []
    for section in (section for section in SECTIONS if section.name != "single"):
        own = section.rows(rows)
        for suite in section.suites:
            here = [row for row in own if row["suite"] == suite and row["half"] == "judge"]
            mean = np.mean(list(per_problem(here, "f1")[OURS].values()))
            found = ahead(here, section.methods)
            if any(found):
                items.append(f"- **{suite}**, F1 {mean:.3f}. {told(found)}")
            else:
                unbeaten.append(f"{suite} ({mean:.3f})")
    return "\n".join(items) + f"\n\nNobody is ahead on {', '.join(unbeaten) or 'none of them'}."


def summary(rows: Rows) -> str:
    """Return the README's table, the best of each column in bold, and who is ahead of the default where."""
    sections = {section.name: section.rows(rows) for section in SECTIONS}
    means: dict[str, dict[str, float]] = {}
    leaders = []
    for column, (name, suite) in COLUMNS.items():
        here = [row for row in sections[name] if row["suite"].startswith(suite) and row["half"] == "judge"]
        found = per_problem(here, "f1")
        means[column] = {method: float(np.mean(list(found[method].values()))) for method in LINES if method in found}
        beyond, within = ahead(here, list(LINES))
        if beyond or within:
            leaders.append(f"on {column}, {', '.join(_titled(text) for text in beyond + within)}")
    lines = [
        [title, *(_cell(means[column], method) for column in COLUMNS), _milliseconds(method)]
        for method, title in LINES.items()
    ]
    text = markdown(["mean F1 of the mask", *COLUMNS, "ms"], lines)
    told = (
        f"Ahead of ruzhash_cv, ± one standard error: {'; '.join(leaders)}."
        if leaders
        else "Nobody is ahead of ruzhash_cv here."
    )
    return f"{text}\n\n{told}"


def _titled(text: str) -> str:
    """Return a line of `ahead` with the method called as in the README."""
    method, _, rest = text.rpartition(" by ")
    return f"{LINES[method]} (+{rest})"


def _cell(means: dict[str, float], method: str) -> str:
    if method not in means:
        return ""
    shown = f"{means[method]:.3f}".removeprefix("0")
    return f"**{shown}**" if means[method] >= max(means.values()) - 0.0005 else shown


def _milliseconds(method: str) -> str:
    """Return the time of a call with `TIMED` matches, all methods having been called in turn."""
    found = [row["warm_ms"] for row in read("time.csv") if (row["method"], row["n"]) == (method, TIMED)]
    return f"{float(found[0]):.0f}" if found else ""


def times() -> str:
    """Return the plot and the folded table of times."""
    rows = read("time.csv")
    numbers = [{**row, "n": int(row["n"])} for row in rows]
    table = time_filter.table(numbers, sorted({row["n"] for row in numbers}))
    alternative = "Median milliseconds over the number of matches, both axes logarithmic, one line per method"
    return f"![{alternative}](images/benchmarks/time.png)\n\n" + folded(f"### Times and memory\n{table}")


def calibration() -> str:
    """Return the plot and the table of accepted mismatches."""
    rows = read("calibration_judge.csv")
    lines = []
    for situation in dict.fromkeys(row["mismatches"] for row in rows):
        own = {float(row["nominal"]): row for row in rows if row["mismatches"] == situation}
        line = [situation, own[NOMINAL[0]]["runs"], own[NOMINAL[0]]["count"]]
        for rate in NOMINAL:
            share, error = float(own[rate]["measured"]), float(own[rate]["standard_error"])
            line.append(f"{share:.2%} ± {error:.2%} ({share / rate:.2f}x)")
        lines.append(line)
    table = markdown(["mismatches", "runs", "count", *(f"nominal {rate:.0%}" for rate in NOMINAL)], lines)
    return f"![Share of mismatches accepted over the nominal rate](images/benchmarks/calibration.png)\n\n{table}"


def fill(text: str, parts: dict[str, str]) -> str:
    """Return a document with its marked parts replaced; a part without marks is left out."""
    for name, part in parts.items():
        marked = re.compile(rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text = marked.sub(lambda found, part=part: f"{found[1]}\n{part}\n\n{found[2]}", text)
    return text


def parts() -> dict[str, str]:
    """Return the text of every part."""
    rows = read("accuracy.csv")
    found = {section.name: accuracy(section, rows) for section in SECTIONS}
    return found | {"times": times(), "calibration": calibration(), "wins": wins(rows), "table": summary(rows)}


def draw() -> None:
    """Draw the plots."""
    rows = read("accuracy.csv")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with plots.plt.rc_context(plots.STYLE):
        for section in SECTIONS:
            if section.name != "single":
                drawn = plots.draw_curves if section.name == "rendered" else plots.draw_dots
                drawn(section.rows(rows), section.suites, PICTURES / f"{section.name}.png")
        plots.draw_times(read("time.csv"), PICTURES / "time.png")
        plots.draw_calibration(read("calibration_judge.csv"), PICTURES / "calibration.png")


def main() -> None:
    """Write, or print the commands."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", action="store_true", help="print the commands that measure the CSVs anew")
    if parser.parse_args().commands:
        print(
            *(shlex.join(section.command(redo=[m for m in OWN if m in section.methods])) for section in SECTIONS),
            sep="\n",
        )
        print("python benchmarks/evaluate_calibration.py --half judge --per-cell 9")
        print("python benchmarks/time_filter.py --repeats 3")
    else:
        draw()
        text = parts()
        for path in DOCUMENTS:
            path.write_text(fill(path.read_text(encoding="utf-8"), text), encoding="utf-8")


if __name__ == "__main__":
    main()
