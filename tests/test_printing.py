"""The table of structures, how results print, and how they compare."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ruzhash_cv import FilterResult, Motion, Plane, filter_points
from ruzhash_cv.results import printing

POINTS = np.random.default_rng(0).uniform(0, 500, (60, 2))


def mask(start: int, stop: int, n: int = 310) -> np.ndarray:
    return (np.arange(n) >= start) & (np.arange(n) < stop)


def motion(of: np.ndarray, **changed: Any) -> Motion:
    known = {"kind": "homography", "tolerance": 3.25, "noise_scale": 0.8, "evidence": 90.0}
    return Motion(np.eye(3), mask=of, **{**known, **changed})  # type: ignore[arg-type]


def result(**changed: Any) -> FilterResult:
    """Return a result of three matches, two of them of one plane."""
    arrays = np.array([True, True, False]), np.array([0.3, np.nan, 0.8]), np.full(3, 0.5), np.ones(3, bool)
    return replace(FilterResult(*arrays, motions=(motion(mask(0, 2, 3)),)), **changed)


UNDECIDED = result(inlier_mask=np.zeros(3, bool), motions=(), reason="3 distinct matches, at least <8> are needed")
PLANES = tuple(Plane(np.eye(3), of, 0.8, 3.25) for of in (mask(0, 120), mask(120, 140)))
#: A motion with two planes, another one without, and a watermark.
SCENE = result(
    inlier_mask=mask(0, 300),
    has_match=np.ones(310, bool),
    motions=(
        motion(mask(0, 200), kind="fundamental", tolerance=1.25, noise_scale=0.4, evidence=1234.5, planes=PLANES),
        motion(mask(200, 290), tolerance=0.5, noise_scale=0.1, evidence=9.996),
        motion(mask(290, 300), stationary=True),
    ),
)


def test_a_result_prints_counts_and_the_table_of_motions_and_planes_or_why_nothing_is_kept() -> None:
    assert str(SCENE).splitlines() == [
        "matches 310",
        "kept    300",
        "flagged 10",
        "evidence 1230",
        "structure    kind         matches   share     noise  evidence",
        "motion 0     fundamental      200  66.7 %  0.400 px      1230",
        "  plane 0:0  homography       120    40 %  0.800 px",
        "  plane 0:1  homography        20  6.67 %  0.800 px",
        "motion 1     lone plane        90    30 %  0.100 px      10.0",
        "motion 2     lone plane        10  3.33 %  0.800 px      90.0  stationary",
    ]
    assert str(UNDECIDED).splitlines()[3:] == ["reason  3 distinct matches, at least <8> are needed"]


def test_the_search_prints_in_one_line() -> None:
    found = filter_points(POINTS, POINTS + [5.0, 3.0], max_iters=300)
    assert str(found).splitlines()[3] == f"search  {found.search}"
    assert str(found.search) == f"1 round, {found.search.models} models: unexplained matches score as mismatches do"
    search = {"rounds": 1, "models": found.search.models, "ended": found.search.ended}
    assert printing.as_dict(found)["search"] == search
    assert str(filter_points(POINTS[:5], POINTS[:5]).search) == "0 rounds, 0 models: too few matches"


def test_labels_are_those_of_motions_and_each_row_holds_what_is_on_none_of_its_planes() -> None:
    assert SCENE.motion_labels.tolist() == 200 * [0] + 90 * [1] + 10 * [2] + 10 * [-1]
    labels = printing.row_labels(printing.table(SCENE), 310)
    assert labels.tolist() == 120 * [1] + 20 * [2] + 60 * [0] + 90 * [3] + 10 * [4] + 10 * [-1]


def test_a_notebook_shows_the_same_table() -> None:
    html = SCENE._repr_html_()
    assert html.startswith("<p>300 of 310 matches kept, 3 motions</p><table>")
    texts = [re.findall(r"<td[^>]*>(.*?)</td>", row.replace("&nbsp;", " ")) for row in html.split("<tr>")[2:]]
    assert texts == [list(row.cells()) for row in printing.table(SCENE)]
    assert UNDECIDED._repr_html_() == f"<p>{printing.headline(UNDECIDED)}</p>".replace("<8>", "&lt;8&gt;")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (result(), "2 of 3 matches kept, 1 motion"),
        (result(motions=()), "2 of 3 matches kept, 0 motions"),
        (UNDECIDED, "0 of 3 matches kept: 3 distinct matches, at least <8> are needed"),
    ],
)
def test_a_result_is_shown_in_one_line(given: FilterResult, shown: str) -> None:
    assert repr(given) == f"<FilterResult: {shown}>"


def test_rows_without_a_match_are_not_flagged() -> None:
    one_missing = result(has_match=np.array([True, True, False]))
    assert str(one_missing).splitlines()[:4] == ["rows    3", "matches 2", "kept    2", "flagged 0"]
    assert repr(one_missing) == "<FilterResult: 2 of 2 matches kept, 1 motion>"
    counts = printing.as_dict(one_missing)
    assert [counts[name] for name in ("rows", "matches", "kept", "flagged")] == [3, 2, 2, 0]


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (3.25, "3.25"), (0.8, "0.800"), (24.0, "24.0"), (123.4, "123"), (0.0046451, "0.00465"), (3e-7, "3.00e-07"), (0.0, "0.00"),
        (999.6, "1000"), (1234.5, "1230"), (123456.0, "123000"), (1e9, "1.00e+09"),
    ],
)  # fmt: skip
def test_numbers_print_with_three_significant_digits(value: float, printed: str) -> None:
    assert printing.as_number(value) == printed
    assert printing.as_length(value) == f"{printed} px"


def test_results_with_the_same_entries_are_equal_however_long_they_took() -> None:
    assert result() == result() == result(seconds={"total": 1.0})
    assert all(result() != other for other in (UNDECIDED, None, 3, "kept", SCENE.motions[0]))
    with pytest.raises(TypeError, match="unhashable"):
        hash(result())


@pytest.mark.parametrize(
    "changed",
    [
        {"inlier_mask": np.array([True, False, False])},
        {"anomaly_scores": np.array([0.3, 0.1, 0.8])},
        {"has_match": np.array([True, True, False])},
        {"motions": (motion(mask(0, 1, 3)),)},
        {"motions": (motion(mask(0, 2, 3)), motion(mask(0, 0, 3)))},
        {"reason": "none"},
    ],
)
def test_results_that_differ_in_an_entry_are_not_equal(changed: dict[str, object]) -> None:
    assert result() != result(**changed)
