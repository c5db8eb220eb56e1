"""The variants of the ablation fit the package, and each of them matters."""

from __future__ import annotations

from dataclasses import fields
from functools import cache

import numpy as np
import pandas as pd
import pytest
from evaluate_ablation import KEY, number_table, summary, tables
from problems import Problem
from rendering import draw_correspondences, facade_scene
from scans import scan
from two_views import one_window_off
from variants import DEFAULT, NUMBERS, RULES, all_variants, run

from ruzhash_cv import FilterResult, filter_points
from ruzhash_cv.method.parameters import Parameters


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
def house() -> Problem:
    """Two planes of one motion, each fifth match a near miss."""
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, [640, 480], (300, 2))
    moves = np.where(points1[:, :1] < 320, [14.0, 4.0], [-10.0, -6.0])
    points2 = points1 + moves + rng.normal(0, 0.3, (300, 2))
    points2[::5] += rng.uniform(-4.0, 4.0, (60, 2))
    labels = (np.arange(300) % 5 > 0).astype(np.intp)
    return Problem("house", "test", "fundamental", points1, points2, labels, np.ones(300, bool))


@cache
def window_off() -> Problem:
    """A wall and things before it, and more of the wall's matches that are all one window off."""
    points1, points2, true = one_window_off(seed=9)
    return Problem("window off", "test", "homography", points1, points2, true.astype(np.intp), np.ones(len(true), bool))


@cache
def facade() -> Problem:
    """Four planes of one motion, which some other matrix fits better on the smallest of them."""
    drawn = draw_correspondences(facade_scene(4, rng=50), 400, mismatch_rate=0.5, noise=0.7, rng=7)
    judged = np.ones(400, bool)
    return Problem("facade", "test", "homography", drawn.points1, drawn.points2, drawn.labels, judged)


@cache
def scanned() -> Problem:
    """A page whose keypoints lie on a grid, nearly all of its matches wrong."""
    return scan(0.95, "grid", 0)


PROBLEMS = (crowded, repeated, rough, surrounded, shallow, house, window_off, facade, scanned)


@cache
def results(name: str) -> list[FilterResult]:
    return [run(all_variants()[name], problem.points1, problem.points2, 0) for problem in (make() for make in PROBLEMS)]


def same(first: FilterResult, second: FilterResult) -> bool:
    names = ("inlier_mask", "anomaly_scores", "inlier_probabilities")
    models = zip(first.motions, second.motions, strict=False)
    return all(np.array_equal(getattr(first, name), getattr(second, name)) for name in names) and all(
        np.array_equal(one.matrix, other.matrix) for one, other in models
    )


#: In the drawn problems overlapping planes are parts of one motion; the photographed pairs with repeated windows show it.
UNSEEN = "evidence: overlapping planes are kept"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RULES if name not in (DEFAULT, UNSEEN)])
def test_every_rule_matters_to_a_small_problem(name: str) -> None:
    assert not all(map(same, results(name), results(DEFAULT)))


def test_the_default_is_what_filter_points_does() -> None:
    given = ((problem.points1, problem.points2) for problem in (make() for make in PROBLEMS))
    assert all(map(same, results(DEFAULT), (filter_points(*points) for points in given)))


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
    for variant, shift in ((DEFAULT, 0.0), ("labels: scores do not count", 0.1)):
        for suite, problem, f1 in (
            ("planes", "1", 0.5),
            ("planes", "2", 0.7),
            ("motions", "1", 0.4),
            ("motions", "2", 0.2),
        ):
            values = {"f1": f1 + shift, "auc": 0.9, "calibration": 0.05}
            rows.append(dict(zip(KEY, ("x", variant, suite, problem, 0), strict=True)) | values)
    return pd.DataFrame(rows)


def test_differences_are_paired_by_problem() -> None:
    found = summary(_rows())
    variant = found.loc["labels: scores do not count"]
    assert variant[["f1", "f1 error", "planes", "auc"]].tolist() == pytest.approx([0.1, 0.0, 0.1, 0.0], abs=1e-12)
    assert found.loc[DEFAULT, "planes"] == pytest.approx(0.6)
    assert found.loc["problems", ["f1", "motions"]].tolist() == [4, 2]
    assert "| labels: scores do not count | +0.1000 ± 0.0000 |" in tables(found)
