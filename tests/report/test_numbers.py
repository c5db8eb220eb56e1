"""What a page shows of each match."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_cases import HEIGHT, WIDTH, two_planes

from ruzhash_cv.drawing.structures import parts_of
from ruzhash_cv.filtering import filter_points
from ruzhash_cv.models.distances import sampson_distance, transfer_error
from ruzhash_cv.report.numbers import CELLS, css, pair_as_dict, spread
from ruzhash_cv.report.photos import Photo
from ruzhash_cv.result import Structure

PHOTOS = Photo("a.jpg", None, WIDTH, HEIGHT), Photo("b.jpg", None, WIDTH // 2, HEIGHT // 2)


def columns_of(points1: np.ndarray, points2: np.ndarray, result: Any) -> dict[str, np.ndarray]:
    held = pair_as_dict(PHOTOS, points1, points2, result)["columns"]
    return {name: np.array(values, float) for name, values in held.items()}


def test_columns_hold_the_matches_in_pixels_and_what_the_result_says_of_them() -> None:
    case = two_planes()
    columns = columns_of(case.points1, case.points2, case.result)
    assert {len(column) for column in columns.values()} == {200}
    np.testing.assert_allclose(columns["x1"], case.points1[:, 0], atol=0.005)
    np.testing.assert_allclose(columns["y2"], case.points2[:, 1], atol=0.005)
    np.testing.assert_array_equal(columns["kept"], case.result.inlier_mask)
    np.testing.assert_allclose(columns["probability"], case.result.inlier_probabilities, atol=5e-5)


def test_residuals_are_to_the_own_structure_and_of_flagged_matches_to_the_nearest() -> None:
    case = two_planes()
    columns, result = columns_of(case.points1, case.points2, case.result), case.result
    matrices = np.stack([model.matrix for model in result.models])
    assert {model.kind for model in result.models} == {"homography"}
    errors = transfer_error(case.points1, case.points2, matrices)
    own = np.where(result.labels >= 0, result.labels, errors.argmin(axis=1))
    np.testing.assert_array_equal(columns["structure"], own)
    np.testing.assert_allclose(columns["residual"], errors[np.arange(200), own], atol=6e-4)


def test_residuals_to_a_fundamental_matrix_are_sampson_distances() -> None:
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 300, (80, 2))
    points2 = points1 + np.column_stack([rng.uniform(5, 60, 80), rng.normal(0, 0.3, 80)])
    result = filter_points(points1, points2, model="fundamental")
    distances = sampson_distance(points1, points2, result.models[0].matrix)
    np.testing.assert_allclose(columns_of(points1, points2, result)["residual"], distances, atol=6e-4)


def test_without_structures_there_is_no_residual() -> None:
    points = np.random.default_rng(0).uniform(0, 300, (2, 5, 2))
    held = pair_as_dict(PHOTOS, *points, filter_points(*points))["columns"]
    assert held["residual"] == [None] * 5
    assert held["structure"] == [-1] * 5


def test_a_family_of_the_user_s_own_has_no_residual() -> None:
    case = two_planes()
    own = Structure(np.eye(3), "affinity", 3, 1.0, 1.0, 9.0)
    held = pair_as_dict(PHOTOS, case.points1, case.points2, replace(case.result, models=(own, own)))["columns"]
    assert set(held["residual"]) == {None}


def test_rows_without_a_match_are_left_out() -> None:
    case = two_planes()
    points1 = case.points1.copy()
    points1[[3, 7]] = np.nan
    columns = columns_of(points1, case.points2, filter_points(points1, case.points2))
    np.testing.assert_array_equal(columns["row"], np.delete(np.arange(200), [3, 7]))


def test_every_kept_match_has_the_part_and_colour_that_pictures_draw_it_with() -> None:
    case = two_planes()
    held = pair_as_dict(PHOTOS, case.points1, case.points2, case.result)
    part_of = np.array(held["columns"]["part"])
    np.testing.assert_array_equal(part_of >= 0, case.result.inlier_mask)
    parts = [part for part in parts_of(case.result, np.ones(200, bool)) if part.rows.any()]
    assert [part["colour"] for part in held["parts"]] == [css(part.colour) for part in parts]
    assert [part["text"].partition(",")[0] for part in held["parts"]] == [
        f"{part.title}: {part.rows.sum()}" for part in parts
    ]
    for number, part in enumerate(parts):
        np.testing.assert_array_equal(part_of == number, part.rows)


def test_css_turns_blue_green_red_around() -> None:
    assert css((1, 2, 255)) == "#ff0201"


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_every_beginning_of_the_order_is_spread_over_the_image(share: float) -> None:
    rng = np.random.default_rng(0)
    crowd, few = rng.uniform(0, 10, (900, 2)), rng.uniform(0, 400, (100, 2))
    points = np.vstack([crowd, few])
    places = spread(points)
    np.testing.assert_array_equal(np.sort(places), np.arange(1000))
    first = places < share * 1000
    occupied = len(np.unique(np.floor(points / (400 / CELLS)), axis=0))
    seen = len(np.unique(np.floor(points[first] / (400 / CELLS)), axis=0))
    assert seen >= min(0.9 * first.sum(), 0.9 * occupied)


@pytest.mark.parametrize("points", [np.zeros((0, 2)), np.zeros((1, 2)), np.zeros((5, 2))])
def test_the_order_of_few_points_or_of_one_place_is_an_order(points: np.ndarray) -> None:
    np.testing.assert_array_equal(np.sort(spread(points)), np.arange(len(points)))


def test_probabilities_are_in_0_1_and_higher_for_kept_matches() -> None:
    result = two_planes().result
    probabilities = result.inlier_probabilities
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert probabilities[result.inlier_mask].mean() > probabilities[~result.inlier_mask].mean() + 0.3
