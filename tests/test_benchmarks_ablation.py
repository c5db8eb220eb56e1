"""The variants of the ablation still fit the package, and the table of its numbers is whole."""

from __future__ import annotations

import csv
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from evaluate_ablation import (
    FIELDS,
    Differences,
    append_rows,
    code_of,
    filtered,
    key_of,
    main,
    method_modules,
    number_table,
    package_digest,
    read_rows,
    tables,
)
from problems import Problem
from rendering import draw_correspondences, facade_scene
from two_views import one_window_off, shifted_along_lines
from variants import (
    DEFAULT,
    FACTORS,
    NUMBERS,
    RULES,
    Number,
    all_variants,
    changed,
    number_variants,
    row_sum_scores,
    untold_numbers,
)

from ruzhash_cv import FilterResult, preferences, sampling, verdict
from ruzhash_cv.families import two_view
from ruzhash_cv.structures import evidence, motions, search


@cache
def crowded() -> Problem:
    """Several rounds of both families: most matches crowd around three planes, and none of these holds half of all."""
    drawn = draw_correspondences(facade_scene(3, rng=1), 60, mismatch_rate=0.6, mismatches="nearby", rng=2)
    judged = np.ones(60, bool)
    return Problem("crowded", "test", "homography", drawn.points1, drawn.points2, drawn.labels, judged)


@cache
def repeated() -> Problem:
    """One plane; many of its keypoints are matched a period off as well, some of its matches are there twice."""
    rng = np.random.default_rng(5)
    points = np.stack(np.meshgrid(np.arange(14), np.arange(10)), axis=-1).reshape(-1, 2) * 40.0 + rng.uniform(
        -9, 9, (140, 2)
    )
    there = points + [30.0, 5.0]
    off, twice, lost = rng.choice(140, 60, replace=False), rng.choice(140, 50, replace=False), rng.choice(140, 30)
    points1 = np.vstack([points, points[off], points[twice] + 0.7, points[lost], rng.uniform(0, 500, (80, 2))])
    points2 = np.vstack(
        [
            there,
            there[off] + [40.0, 0.0],
            there[twice] + 0.7,
            there[lost] + rng.uniform(30, 60, (30, 2)),
            rng.uniform(0, 500, (80, 2)),
        ]
    )
    labels = np.repeat([1, 0, 1, 0, 0], [140, 60, 50, 30, 80])
    points2 = points2 + rng.normal(0, 0.7, points2.shape)
    return Problem("repeated", "test", "homography", points1, points2, labels, np.ones(len(labels), bool))


@cache
def contested() -> Problem:
    """Two planes side by side; six keypoints of the one have a second partner, where the other would put them."""
    rng = np.random.default_rng(6)
    points1 = rng.uniform(0, [250, 400], (160, 2)) + np.repeat([[0.0, 0.0], [260.0, 0.0]], 80, axis=0)
    points2 = points1 + np.repeat([[30.0, 5.0], [-60.0, 40.0]], 80, axis=0)
    points1, points2 = np.vstack([points1, points1[:6]]), np.vstack([points2, points1[:6] + [-60.0, 40.0]])
    labels = np.repeat([1, 2, 0], [80, 80, 6])
    return Problem("contested", "test", "homography", points1, points2, labels, np.ones(166, bool))


@cache
def rough() -> Problem:
    """One plane of which every tenth match lies further off than the others' noise."""
    rng = np.random.default_rng(7)
    points1 = rng.uniform(0, 500, (300, 2))
    spreads = np.where(np.arange(300) % 10, 0.4, 2.0)
    points2 = points1 + [30.0, 5.0] + rng.normal(0, 1, (300, 2)) * spreads[:, None]
    points2[:100] = rng.uniform(0, 500, (100, 2))
    labels = (np.arange(300) >= 100).astype(np.intp)
    return Problem("rough", "test", "homography", points1, points2, labels, np.ones(300, bool))


@cache
def surrounded() -> Problem:
    """One plane, and mismatches evenly spread around it, up to 40 px off: as dense near its tolerance as further off."""
    rng = np.random.default_rng(1)
    points1, angle = rng.uniform(0, 500, (360, 2)), rng.uniform(0, 2 * np.pi, 100)
    off = rng.normal(0, 1.0, points1.shape)
    off[200:300] = np.sqrt(rng.uniform(3**2, 40**2, (100, 1))) * np.column_stack([np.cos(angle), np.sin(angle)])
    points2 = points1 + [30.0, 5.0] + off
    points2[300:] = rng.uniform(0, 500, (60, 2))
    labels = (np.arange(360) < 200).astype(np.intp)
    return Problem("surrounded", "test", "homography", points1, points2, labels, np.ones(360, bool))


@cache
def shallow() -> Problem:
    """A rigid scene that a wide plane nearly holds: displacements along one direction differ by 36 px."""
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 500, (140, 2))
    points2 = points1 + [30.0, 5.0] + rng.normal(0, 0.5, points1.shape)
    points2[:, 0] += rng.uniform(-18, 18, 140)
    points2[80:] = rng.uniform(0, 500, (60, 2))
    labels = (np.arange(140) < 80).astype(np.intp)
    return Problem("shallow", "test", "fundamental", points1, points2, labels, np.ones(140, bool))


@cache
def one_way() -> Problem:
    """A plane, and a texture on it that is matched some periods off in one direction."""
    points1, points2 = shifted_along_lines(0, contested=True)
    labels = (np.arange(270) < 100).astype(np.intp)
    return Problem("one way", "test", "homography", points1, points2, labels, np.ones(270, bool))


@cache
def window_off() -> Problem:
    """A wall and things before it, and more of the wall's matches that are all one window off."""
    points1, points2, true = one_window_off()
    return Problem("window off", "test", "homography", points1, points2, true.astype(np.intp), np.ones(len(true), bool))


PROBLEMS = (crowded, repeated, contested, rough, surrounded, shallow, one_way, window_off)


@cache
def results(name: str) -> list[tuple[FilterResult, np.ndarray]]:
    return [filtered(problem, all_variants()[name], 0)[:2] for problem in (make() for make in PROBLEMS)]


def same(first: FilterResult, second: FilterResult) -> bool:
    fields = ("inlier_mask", "anomaly_scores", "p_values")
    return all(np.array_equal(getattr(first, field), getattr(second, field)) for field in fields)


@pytest.mark.parametrize("name", [name for name in RULES if name != DEFAULT])
def test_every_rule_matters_to_a_small_problem(name: str) -> None:
    pairs = zip(results(name), results(DEFAULT), strict=True)
    assert not all(same(first, second) for (first, _), (second, _) in pairs)


def test_the_package_is_as_it_was_after_any_variant() -> None:
    before = results(DEFAULT)
    for name in (
        "evidence: no annulus",
        "samples: families at once",
        "preferences.N_SCALES halved",
        "verdict.MIDDLE halved",
    ):
        results(name)
    after = [filtered(problem, RULES[DEFAULT], 0)[0] for problem in (make() for make in PROBLEMS)]
    assert all(same(first, second) for (first, _), second in zip(before, after, strict=True))


def test_without_a_forest_scores_rank_as_row_sums_do() -> None:
    for result, sums in results("forest: none, row sums in its place"):
        order = np.argsort(sums)
        assert (np.diff(result.anomaly_scores[order]) <= 1e-12).all()


def test_row_sums_are_of_the_forest_s_own_rows() -> None:
    recorded = []

    class Recorder(search.RuzHashForest):
        def fit_anomaly_scores(self, rows, decoys=None):
            recorded.append(rows)
            return super().fit_anomaly_scores(rows, decoys)

    problem = crowded()
    variant = RULES[DEFAULT]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search, "RuzHashForest", Recorder)
        _, sums, _ = filtered(problem, variant, 0)
    # A row's components are 1 - exp(-4 w g / Lambda).
    exponents = -np.log1p(-recorded[-1].astype(float)).sum(axis=1) / preferences.SATURATION
    ranked = np.sort(sums) / sums.max()
    np.testing.assert_allclose(np.sort(exponents) / exponents.max(), ranked, atol=1e-4)


def test_mask_of_structures_alone_is_what_lies_within_tolerances() -> None:
    for result, _ in results("mask: structures alone"):
        assert np.array_equal(result.inlier_mask, result.labels >= 0)


def test_false_acceptance_rates_are_the_mask() -> None:
    result, _ = results("mask: p <= 0.01")[0]
    assert np.array_equal(result.inlier_mask, result.p_values <= 0.01)


def test_no_constant_of_the_method_is_missing_from_the_table() -> None:
    assert untold_numbers() == []


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_every_number_of_the_table_exists_and_can_be_scaled(number: Number) -> None:
    before = repr(getattr(number.module, number.name))
    words = [word for word, factor in FACTORS.items() if number.differs(factor)]
    assert words
    for word in words:
        with changed(number_variants()[f"{number} {word}"]):
            assert repr(getattr(number.module, number.name)) != before
    assert repr(getattr(number.module, number.name)) == before


def test_no_two_numbers_have_the_same_name() -> None:
    assert len({str(number) for number in NUMBERS}) == len(NUMBERS)


def test_integers_are_at_least_one_and_zero_stays() -> None:
    number = next(number for number in NUMBERS if str(number) == "search.PLANS[1].neighbourhoods")
    halved = number.scaled(0.5)[1].neighbourhoods
    assert halved == tuple(max(1, round(size / 2)) if size else 0 for size in search.PLANS[1].neighbourhoods)
    assert number.scaled(0.5)[2] == search.PLANS[2]


def test_a_number_changes_wherever_it_is_imported_and_what_is_computed_from_it() -> None:
    with changed(all_variants()["sampling.PRIOR_MATCHES doubled"]):
        assert search.PRIOR_MATCHES == verdict.PRIOR_MATCHES == sampling.PRIOR_MATCHES
    n_radii, smallest = evidence.N_RADII, evidence.RADII[0]
    with changed(all_variants()["evidence.WIDEST[2] doubled"]):
        assert n_radii + 4 == evidence.N_RADII == len(evidence.RADII)
        assert evidence.RADII[0] == motions.LEAST_NOISE == pytest.approx(smallest / 2)
    sure = verdict.SURE
    with changed(all_variants()["search.N_DECOYS doubled"]):
        assert pytest.approx(sure / 2, rel=1e-3) == verdict.SURE
    assert sure == verdict.SURE


def test_what_is_cached_is_computed_anew_within_a_variant() -> None:
    planes = ((4, 2),)
    before = evidence._laws(planes)[1].copy()
    with changed(RULES["evidence: no annulus"]):
        assert (evidence._laws(planes)[1] == 0.0).all()
    np.testing.assert_array_equal(evidence._laws(planes)[1], before)


def test_a_number_within_a_kernel_is_compiled_anew() -> None:
    squared, groups, members = np.full((1, 1), 1.0), np.zeros(1, np.int64), np.full((1, 1), -1)
    before = search.embed(squared, 1.0, groups, members)
    with changed(all_variants()["preferences.N_SCALES doubled"]):
        during = search.embed(squared, 1.0, groups, members)
    assert during[0, 0] < before[0, 0]
    assert search.embed(squared, 1.0, groups, members)[0, 0] == before[0, 0]


def test_score_is_replaced_in_the_search() -> None:
    with changed(RULES["forest: none, row sums in its place"]):
        assert search.score is row_sum_scores


def _rows() -> list[dict[str, str]]:
    rows = []
    for variant, shift in ((DEFAULT, 0.0), ("mask: rivals stay", 0.1)):
        for suite, problem, f1 in (
            ("planes", "1", 0.5), ("planes", "2", 0.7), ("motions", "1", 0.4), ("motions", "2", 0.2)
        ):  # fmt: skip
            values = [f1 + shift, 0.9, 0.8, 0.05, 10.0]
            rows.append(dict(zip(FIELDS, ["x", variant, suite, problem, "0", *map(str, values)], strict=True)))
    return rows


def test_rows_are_appended_and_the_later_one_counts(tmp_path: Path) -> None:
    path, rows = tmp_path / "new" / "rows.csv", _rows()
    append_rows(path, rows)
    append_rows(path, [{**rows[0], "f1": "0.9"}])
    found = read_rows(path)
    assert len(found) == len(rows)
    assert found[key_of(rows[0])]["f1"] == "0.9"
    with path.open(newline="") as file:
        assert next(csv.reader(file)) == list(FIELDS)


def test_rows_of_another_version_or_of_a_variant_that_is_gone_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, rows = tmp_path / "rows.csv", [{**row, "package": package_digest()} for row in _rows()]
    stale = [{**rows[0], "package": "00000000", "seed": "1"}, {**rows[0], "variant": "no longer there"}]
    append_rows(path, [*stale, *rows])
    monkeypatch.setattr("evaluate_ablation.compute", lambda tasks, n_jobs: iter([[rows[0]]]))
    monkeypatch.setattr(sys, "argv", ["evaluate_ablation.py", "--variants", "rivals", "-o", str(path)])
    main()
    assert "dropped 2 rows" in capsys.readouterr().err
    assert list(read_rows(path).values()) == rows
    assert sorted(path.parent.iterdir()) == [path]


def test_the_digest_is_of_what_the_method_is_made_of() -> None:
    modules = method_modules()
    assert {number.module for number in NUMBERS} | {two_view} <= set(modules)
    assert not {module.__name__ for module in modules} & {"ruzhash_cv.drawing", "ruzhash_cv.result", "ruzhash_cv"}
    source = 'def double(x):\n    """Return it."""\n    return 2 * x  # twice\n'
    assert code_of(source) == code_of(source.replace("Return it.", "Return x."))
    assert code_of(source) != code_of(source.replace("2", "3"))


def test_differences_are_paired_by_problem() -> None:
    found = Differences(_rows())
    assert found.overall("mask: rivals stay", "f1") == pytest.approx((0.1, 0.0), abs=1e-12)
    assert found.overall(DEFAULT, "auc", "row_sum_auc") == pytest.approx((0.1, 0.0), abs=1e-12)
    assert "| mask: rivals stay | +0.1000 ± 0.0000 |" in tables(_rows())


def test_table_of_numbers_has_a_line_for_each() -> None:
    assert len(number_table([]).splitlines()) == 2 + len(NUMBERS)
