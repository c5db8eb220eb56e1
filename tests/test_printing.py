"""How results print and compare."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ruzhash_cv import FilterResult, Structure, filter_points, printing
from ruzhash_cv.result import Motion


def plane(**changed: object) -> Structure:
    known = {"kind": "homography", "support": 120, "tolerance": 3.25, "noise_scale": 0.8, "evidence": 90.0}
    return Structure(np.eye(3), **{**known, **changed})  # type: ignore[arg-type]


def result(**changed: object) -> FilterResult:
    """Return a new result of three matches, of which two lie in a plane."""
    arrays = (
        np.array([True, True, False]),
        np.array([0.3, np.nan, 0.8]),
        np.full(3, 0.5),
        np.array([0, 0, -1]),
        np.ones(3, bool),
    )
    return replace(FilterResult(*arrays, models=(plane(),)), **changed)  # type: ignore[arg-type]


UNDECIDED = result(inlier_mask=np.zeros(3, bool), models=(), reason="3 distinct matches, at least <8> are needed")


def test_a_result_prints_counts_and_a_row_for_each_structure() -> None:
    assert str(result(models=(plane(), plane(kind="fundamental", support=9)))).splitlines() == [
        "matches 3",
        "kept    2",
        "flagged 1",
        "evidence 90.0",
        "structure kind        matches    tolerance    noise  evidence",
        "        0 homography      120         3.25    0.800      90.0",
        "        1 fundamental       9         3.25    0.800      90.0",
    ]


def test_what_is_stationary_is_said_so() -> None:
    said = result(models=(plane(stationary=True),))
    assert str(said).splitlines()[-1] == "        0 homography      120         3.25    0.800      90.0 stationary"
    assert "<td>stationary</td>" in said._repr_html_()


def test_motions_print_the_planes_they_hold() -> None:
    motion = Motion(np.eye(3), "fundamental", 200, 1.25, 0.4, 300.0, parts=(0, 2))
    found = result()
    vars(found)["_motions"] = (motion,), np.zeros(3, int)  # as once they have been searched for
    assert printing.motions_as_text(found).splitlines() == [
        "   motion kind        matches    tolerance    noise  evidence planes",
        "        0 fundamental     200         1.25    0.400     300.0 0, 2",
    ]


def test_a_result_that_decided_nothing_prints_the_reason() -> None:
    assert str(UNDECIDED).splitlines()[1:] == [
        "kept    0",
        "flagged 3",
        "reason  3 distinct matches, at least <8> are needed",
    ]


def test_a_result_is_shown_in_one_line() -> None:
    assert repr(result()) == "<FilterResult: 2 of 3 matches kept, 1 structure>"
    assert repr(result(models=())) == "<FilterResult: 2 of 3 matches kept, 0 structures>"
    assert repr(UNDECIDED) == "<FilterResult: 0 of 3 matches kept: 3 distinct matches, at least <8> are needed>"


def test_a_notebook_shows_a_table_with_a_row_for_each_structure() -> None:
    html = result()._repr_html_()
    assert html.startswith("<p>2 of 3 matches kept, 1 structure</p><table>")
    assert html.count("<tr>") == 2
    assert "<td>homography</td><td>120</td><td>3.25</td>" in html
    assert "<table>" not in UNDECIDED._repr_html_()
    assert "&lt;8&gt;" in UNDECIDED._repr_html_()


def test_rows_without_a_match_are_not_flagged() -> None:
    one_missing = result(has_match=np.array([True, True, False]))
    assert str(one_missing).splitlines()[:4] == ["rows    3", "matches 2", "kept    2", "flagged 0"]
    assert repr(one_missing) == "<FilterResult: 2 of 2 matches kept, 1 structure>"
    assert one_missing._repr_html_().startswith("<p>2 of 2 matches kept, 1 structure</p>")
    counts = printing.as_dict(one_missing)
    assert [counts[name] for name in ("rows", "matches", "kept", "flagged")] == [3, 2, 2, 0]


@pytest.mark.parametrize(
    ("length", "printed"),
    [(3.25, "3.25"), (0.8, "0.800"), (24.0, "24.0"), (123.4, "123"), (0.0046451, "0.00465"), (3e-7, "3.00e-07")],
)
def test_lengths_print_with_three_significant_digits(length: float, printed: str) -> None:
    assert printing.as_length(length) == printed
    assert f" {printed} " in str(result(models=(plane(tolerance=length),)))


def test_results_with_the_same_entries_are_equal_however_long_they_took() -> None:
    assert result() == result()
    assert result() == result(seconds={"search": 1.0})
    assert result() != UNDECIDED


@pytest.mark.parametrize(
    "changed",
    [
        {"inlier_mask": np.array([True, False, False])},
        {"anomaly_scores": np.array([0.3, 0.1, 0.8])},
        {"labels": np.array([0, 0])},
        {"has_match": np.array([True, True, False])},
        {"models": (plane(support=121),)},
        {"models": (plane(), plane())},
        {"reason": "none"},
        {"n_models": 3},
    ],
)
def test_results_that_differ_in_an_entry_are_not_equal(changed: dict[str, object]) -> None:
    assert result() != result(**changed)


def test_results_compare_with_anything_and_have_no_hash() -> None:
    assert all(result() != other for other in (None, 3, "kept", plane()))
    with pytest.raises(TypeError, match="unhashable"):
        hash(result())


def test_the_filter_repeats_itself_to_the_last_entry() -> None:
    points = np.random.default_rng(0).uniform(0, 500, (60, 2))
    assert filter_points(points, 0.5 * points + 3.0) == filter_points(points, 0.5 * points + 3.0)
    assert filter_points(points, 0.5 * points + 3.0) != filter_points(points, 0.5 * points + 4.0)
