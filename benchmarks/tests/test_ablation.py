"""The variants of the ablation fit the package."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evaluate_ablation import measured, number_table, summary, tables
from rendering import draw_correspondences, facade_scene
from scans import scan
from two_views import one_window_off
from variants import DEFAULT, NUMBERS, RULES, all_variants, run

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.core.method.parameters import Parameters

#: Points of four planes of one motion, of a page whose keypoints lie on a grid, nearly all of its matches wrong, and of a wall of
#: which more matches are one window off.
PLANES = draw_correspondences(facade_scene(4, rng=50), 400, mismatch_rate=0.5, noise=0.7, rng=7)
POINTS = [(pair.points1, pair.points2) for pair in (PLANES, scan(0.95, "grid", 0))] + [one_window_off(seed=9)[:2]]


@cache
def results(name: str) -> list[FilterResult]:
    return [run(RULES[name], *points, 0) for points in POINTS]


@pytest.mark.parametrize("name", [name for name in RULES if RULES[name].functions])
def test_every_function_that_a_variant_replaces_is_called(name: str) -> None:
    variant, called = RULES[name], set()
    functions = variant.functions() if callable(variant.functions) else variant.functions

    def recorded(of: str) -> Callable[..., Any]:
        def record(*given: Any, **options: Any) -> Any:
            called.add(of)
            return functions[of](*given, **options)

        return record

    for points in POINTS:
        if called != functions.keys():
            run(replace(variant, functions={of: recorded(of) for of in functions}), *points, 0)
    assert called == functions.keys()


def test_the_default_is_what_filter_points_does() -> None:
    assert results(DEFAULT) == [filter_points(*points) for points in POINTS]


def test_row_sums_rank_matches_as_weighted_preferences_do() -> None:
    for result in results("forest: none, row sums in its place"):
        assert ((result.anomaly_scores > 0) & (result.anomaly_scores <= 1)).all()
        assert result.anomaly_scores.min() == pytest.approx(0.5, abs=1e-6)  # of the largest sum


def test_masks_are_what_is_more_probable_than_not_or_as_much_as_a_rate_allows() -> None:
    for result in results(DEFAULT):
        assert np.array_equal(result.inlier_mask, result.inlier_probabilities > 0.5)
    for result in results("mask: a share of .01 is wrong"):
        kept = result.inlier_probabilities[result.inlier_mask]
        assert not len(kept) or np.mean(1.0 - kept) <= 0.01


def test_every_number_of_the_method_is_in_the_table_and_can_be_scaled() -> None:
    assert list(NUMBERS) == [field.name for field in fields(Parameters) if field.metadata]
    assert len(number_table().splitlines()) == 2 + len(NUMBERS)
    for name, number in NUMBERS.items():
        assert {f"{name} halved", f"{name} doubled"} & all_variants().keys(), name
        assert number.meaning


def test_integers_are_at_least_one_zero_stays_and_shares_stay_below_one() -> None:
    assert NUMBERS["neighbourhoods"].scaled(0.5) == (5, 10, 20, 0)
    assert NUMBERS["annulus_steps"].scaled(0.5) == 1
    assert NUMBERS["plane_widest_radius"].scaled(2.0) == Parameters().plane_widest_radius + 2
    assert NUMBERS["interleaved_share"].scaled(2.0) == 0.999


def _rows() -> pd.DataFrame:
    rows = []
    for variant, shift in ((DEFAULT, 0.0), ("samples: uniform", 0.1)):
        for suite, problem, f1 in (("planes", 1, 0.5), ("planes", 2, 0.7), ("motions", 1, 0.4), ("motions", 2, 0.2)):
            rows.append((variant, suite, problem, f1 + shift, 0.9, 0.05))
    return pd.DataFrame(rows, columns=["variant", "suite", "problem", "f1", "auc", "calibration"])


def test_differences_are_paired_by_problem() -> None:
    found = summary(_rows())
    variant = found.loc["samples: uniform"]
    assert variant[["f1", "f1 error", "planes", "auc"]].tolist() == pytest.approx([0.1, 0.0, 0.1, 0.0], abs=1e-12)
    assert found.loc[DEFAULT, "planes"] == pytest.approx(0.6)
    assert found.loc["problems", ["f1", "motions"]].tolist() == [4, 2]
    assert "| samples: uniform | +0.1000 ± 0.0000 |" in tables(found)


def test_variants_are_measured_on_the_suites_asked_for(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluate_ablation.ROWS", tmp_path)
    monkeypatch.setattr("evaluate.problems", lambda names, *_: iter([scan(0.7, "lines", len(names[0]))]))
    options = Namespace(per_cell=1, seeds=1, n_jobs=1)
    for _ in range(2):  # the second run reads what the first one wrote
        rows = measured([DEFAULT, "samples: uniform"], ["scans", "near"], options)
        assert rows.variant.tolist() == [DEFAULT, "samples: uniform"] * 2
        assert rows.suite.tolist() == ["scans"] * 2 + ["near"] * 2
        assert rows.f1.min() > 0.9
