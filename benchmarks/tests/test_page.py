"""The tables of docs/benchmarks.md and README.md are those of the CSVs, and what is ahead of the package is told."""

import itertools

import page
import pandas as pd
import pytest
import report
from evaluate import KEY, MEASURE, MEASURES, means, store, summary
from methods import OURS


def rows_of(f1: dict[str, list[float]]) -> pd.DataFrame:
    told = dict.fromkeys(MEASURES, 0.5)
    values = [(method, str(number), value) for method, of in f1.items() for number, value in enumerate(of)]
    rows = pd.DataFrame(values, columns=["method", "problem", "f1"])
    return rows.assign(suite="s", half="judge", seed=0, **told | {"f1": rows.f1})


@pytest.fixture(scope="module")
def parts() -> dict[str, str]:
    return page.parts()


def test_documents_hold_the_tables_of_the_csvs(parts: dict[str, str]) -> None:
    for path in page.DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert page.fill(text, parts) == text, f"`python benchmarks/page.py` writes {path.name} anew"


def test_every_part_has_its_place(parts: dict[str, str]) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in page.DOCUMENTS)
    for name in parts:
        assert text.count(f"<!-- {name} -->") == text.count(f"<!-- /{name} -->") == 1, name


@pytest.fixture
def results(tmp_path, monkeypatch: pytest.MonkeyPatch):
    """A folder in the place of `results`."""
    for module in (page, report):
        monkeypatch.setattr(module, "RESULTS", tmp_path)
    return tmp_path


def test_measures_beside_accuracy_show_the_chosen_methods_and_columns(results) -> None:
    pairs = itertools.product("012", (OURS, "another"))
    rows = pd.DataFrame([("near misses", "judge", *pair, 0, 0.25) for pair in pairs], columns=[*KEY, "kept"])
    store("near", means(rows, [column for column in MEASURE["near"].columns if column[1] == "kept"]))
    table = page.measured("near")
    assert "| ruzhash_cv | 0.250 |" in table
    assert "another" not in table
    assert f"`python benchmarks/evaluate.py near {page.BESIDE['near']} --store`" in table


def test_models_and_calibration_have_a_line_for_each_suite(results) -> None:
    rows = [
        ("posed", half, name, 3, error)
        for half, errors in (("tune", (0.5, 0.4, 0.3)), ("judge", (0.5, 0.2, 0.25)))
        for name, error in zip((OURS, "PoseLib 1 px", "PoseLib 2 px"), errors, strict=True)
    ]
    columns = ["suite", "half", "method", "problems", "median error (px)"]
    pd.DataFrame(rows, columns=columns).assign(commit="abcdefg").to_csv(results / "models.csv")
    assert "| posed | 3 | 0.50 | 0.25 (2 px) |  |  |" in page.models_table()
    columns = ["suite", "half", "method", "problems", "calibration error", "wrong among the kept"]
    rows = [("one plane", "judge", name, 3, 0.1, wrong) for name, wrong in ((OURS, 0.2), (f"{OURS} at 0.05", 0.04))]
    pd.DataFrame(rows, columns=columns).assign(commit="abcdefg").to_csv(results / "calibration.csv")
    assert "| synthetic plane | 0.100 |  | 0.040 |" in page.calibration_table()


def halves(tune: dict[str, list[float]], judge: dict[str, list[float]]) -> pd.DataFrame:
    """Means of a suite of photographed planes."""
    rows = pd.concat([rows_of(tune).assign(half="tune"), rows_of(judge)])
    return summary(rows.assign(suite="given on photographed planes")).assign(commit="abcdefg")


def test_peers_have_the_threshold_that_is_best_on_the_tuning_half() -> None:
    names = [OURS, "H PoseLib 1 px", "H PoseLib 3 px", "sequential H PoseLib 5 px"]
    tune = {name: [f1] * 2 for name, f1 in zip(names, (0.5, 0.6, 0.7, 0.9), strict=True)}
    judge = {name: [f1] * 2 for name, f1 in zip(names, (0.5, 0.8, 0.4, 0.3), strict=True)}
    table = halves(tune, judge)
    suites = ("given on photographed planes",)
    assert page.best(table, "PoseLib, given the scene's model", suites) == ("H PoseLib 3 px", "H 3 px")
    found, settings = page.with_peers(table, [suites])
    assert found.f1.droplevel([0, 1]).to_dict() == {OURS: 0.5, "PoseLib, given the scene's model": 0.4}
    assert settings["PoseLib, given the scene's model", suites] == "H 3 px"
    assert "fundamental" not in " ".join(found.index.get_level_values("method"))


def test_a_model_that_was_chosen_is_named_beside_its_threshold() -> None:
    assert page.short("sequential F USAC_MAGSAC 3 px 100k", ()) == "F in turn 3 px"
    assert page.short("PoseLib 2 px", ()) == "2 px"
    assert page.short("H PoseLib 12 px", ("H",)) == "12 px"


def test_shares_of_unjudged_matches_have_their_table() -> None:
    table = page.read("accuracy", ["suite", "half", "method"]).assign(off_plane=float("nan"), shifted=float("nan"))
    suite = page.SECTIONS["photographed"][0][0]
    table.loc[(suite, "judge", OURS), ["off_plane", "shifted"]] = 0.5, 0.02
    assert page.unjudged_table(table).splitlines()[2].startswith("| photographed planes, given | 0.500 / 0.020 |")


def test_a_star_marks_peers_ahead_by_two_standard_errors_and_the_best_are_bold() -> None:
    rows = rows_of({OURS: [0.5] * 4, "surely": [0.6, 0.62] * 2, "perhaps": [0.3, 0.9] * 2, "behind": [0.4] * 4})
    of = summary(rows).xs(("s", "judge"))
    assert [bool(page.star(of.loc[name])) for name in ("surely", "perhaps", "behind")] == [True, False, False]
    assert page.with_best_bold(["0.500", "0.610\\* PoseLib H 3 px", ""]) == ["0.500", "**0.610\\* PoseLib H 3 px**", ""]


def test_decisions_say_which_peers_were_given_the_model() -> None:
    lines = page.decisions(page.read("accuracy", ["suite", "half", "method"])).splitlines()
    cells = [line.split(" | ") for line in lines[2:]]
    assert {len(line) for line in cells} == {6}
    assert all(" px" in line[4] for line in cells)
    assert not any("in turn" in line[4] for line in cells if line[0].startswith("| one"))


def test_the_page_of_details_stays_short() -> None:
    assert len((page.ROOT / "docs" / "benchmarks_details.md").read_text(encoding="utf-8").split()) < 4000


def test_fill_replaces_what_is_between_the_marks_and_nothing_else() -> None:
    text = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n<!-- b -->\nkept\n<!-- /b -->\n"
    filled = page.fill(text, {"a": r"new \1"})
    assert filled == text.replace("old", "\nnew \\1\n")


def test_suites_and_methods_are_called_the_same_everywhere() -> None:
    suites = [page.suite_title(suite) for suites, _ in page.SECTIONS.values() for suite in suites]
    assert suites[0] == "AdelaideRMF planes, labelled"
    assert {"photographed planes, no ratio test", "synthetic rigid scene", "synthetic motions, repeated texture"} < set(
        suites
    )
    assert len(set(suites)) == len(suites)
    assert page.method_title("sequential H USAC_MAGSAC 12 px 100k") == "MAGSAC H in turn 12 px"
    assert page.method_title("F USAC_MAGSAC 5 px") == "MAGSAC F 5 px, OpenCV's iterations"
    assert page.method_title("PoseLib after F PoseLib 1 px") == "PoseLib after PoseLib F 1 px"
    assert page.method_title("ruzhash_cv homography") == 'ruzhash_cv, model="homography"'


def test_methods_are_compared_on_the_problems_all_have_answered() -> None:
    found = summary(rows_of({"ruzhash_cv": [1.0, 0.8, 0.0], "peer": [0.8, 0.8]})).xs(("s", "judge"))
    assert found.f1.tolist() == [0.8, 0.9]
    assert found.problems.tolist() == [2, 2]
    assert round(found.loc["peer", "lead"], 6) == 0.1


def test_columns_of_several_suites_count_problems() -> None:
    one = rows_of({"ruzhash_cv": [0.5] * 3, "peer": [0.9] * 3})
    two = rows_of({"ruzhash_cv": [0.7], "peer": [0.7], "other": [0.7]}).assign(suite="t")
    found = page.pooled(summary(pd.concat([one, two])), ("s", "t"))
    assert found.f1.round(6).to_dict() == {"peer": 0.85, "ruzhash_cv": 0.55}
