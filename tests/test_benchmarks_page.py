"""The tables of docs/benchmarks.md and README.md are those of the CSVs, and what is ahead of the package is told."""

from __future__ import annotations

import page
from report import ahead
from sections import SECTIONS, Section


def rows_of(f1: dict[str, list[float]]) -> list[dict[str, str]]:
    return [
        {"suite": "s", "half": "judge", "problem": str(number), "method": method, "f1": str(value)}
        for method, values in f1.items()
        for number, value in enumerate(values)
    ]


def test_documents_hold_the_tables_of_the_csvs() -> None:
    parts = page.parts()
    for path in page.DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert page.fill(text, parts) == text, f"`python benchmarks/page.py` writes {path.name} anew"


def test_every_part_has_its_place() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in page.DOCUMENTS)
    for name in [*(section.name for section in SECTIONS), "times", "calibration", "wins", "table"]:
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- /{name} -->") == 1, name


def test_fill_replaces_what_is_between_the_marks_and_nothing_else() -> None:
    text = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n<!-- b -->\nkept\n<!-- /b -->\n"
    filled = page.fill(text, {"a": r"new \1"})
    assert filled == text.replace("old", "\nnew \\1\n")


def test_methods_ahead_are_told_apart_by_two_standard_errors() -> None:
    rows = rows_of(
        {
            "ruzhash_cv": [0.5, 0.5, 0.5, 0.5],
            "surely": [0.6, 0.62, 0.6, 0.62],
            "perhaps": [0.3, 0.9, 0.3, 0.9],
            "behind": [0.4, 0.4, 0.4, 0.4],
        }
    )
    beyond, within = ahead(rows, ["ruzhash_cv", "surely", "perhaps", "behind", "absent"])
    assert [text.split(" by ")[0] for text in beyond] == ["surely"]
    assert [text.split(" by ")[0] for text in within] == ["perhaps"]


def test_a_section_compares_its_methods_on_the_problems_all_have_answered() -> None:
    section = Section("x", "", ("s",), ("ruzhash_cv", "peer"))
    rows = rows_of({"ruzhash_cv": [1.0, 1.0, 1.0], "peer": [1.0, 1.0], "other": [1.0]})
    assert [(row["method"], row["problem"]) for row in section.rows(rows)] == [
        ("ruzhash_cv", "0"),
        ("ruzhash_cv", "1"),
        ("peer", "0"),
        ("peer", "1"),
    ]
