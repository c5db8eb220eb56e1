"""All structures among points: their number, their points, and the result if there are none."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paper.problems import make_shape

from ruzhash_cv import find_structures
from ruzhash_cv.models import Circles, Lines
from ruzhash_cv.structures import POINT_PARAMETERS, draw_point_samples

Array = np.ndarray
EXAMPLE = str(Path(__file__).parents[1] / "examples" / "models" / "plane_in_space.py")
Planes = runpy.run_path(EXAMPLE)["Planes"]


@pytest.mark.parametrize(
    ("name", "family", "least", "seed"),
    [("stair4", Lines(), 4, 0), ("stair3", Lines(), 2, 1), ("circle5", Circles(), 5, 2), ("circle4", Circles(), 3, 0)],
)
def test_structures_of_a_shape_are_found_and_nothing_else(name: str, family: Any, least: int, seed: int) -> None:
    """Half of the points are anomalies. A structure is found if a mask holds 70 % of its points."""
    shape = make_shape(name, rng=seed)
    result = find_structures(shape.points, family, rng=seed)
    shares = np.array([result.masks[:, shape.labels == label].mean(axis=1) for label in range(shape.labels.max() + 1)])
    assert ((shares > 0.7).sum(axis=1) <= 1).all()
    assert (shares > 0.7).any(axis=0).all()
    assert (shares > 0.7).any(axis=1).sum() >= least
    assert result.anomaly_scores[shape.labels == -1].mean() > result.anomaly_scores[shape.labels >= 0].mean()


@pytest.mark.slow
@pytest.mark.parametrize("family", [Lines(), Circles()])
def test_points_at_random_have_hardly_ever_a_structure(family: Any) -> None:
    """-ln NFA above 0 is expected for less than one structure in all rounds of a call; the bound is loose, so hardly any comes."""
    points = [np.random.default_rng(seed).uniform(0, 1, (150, 2)) for seed in range(12)]
    assert sum(len(find_structures(each, family, rng=seed)) for seed, each in enumerate(points)) <= 1


@pytest.mark.parametrize("n", [20, 100])
@pytest.mark.parametrize("direction", [(1.0, 0.0), (0.0, 1.0), (1.0, 1e-3), (1.0, 1.0)])
def test_points_on_one_line_are_a_line_in_any_direction(direction: tuple[float, float], n: int) -> None:
    x = np.random.default_rng(100).uniform(0, 1, n)
    assert find_structures(1.0 + x[:, None] * direction, Lines()).masks.tolist() == [[True] * n]


@pytest.mark.parametrize("height", [1.0, 0.3, 0.15])
def test_box_of_random_points_has_no_line(height: float) -> None:
    points = np.random.default_rng(0).uniform(0, [1.0, height], (4, 100, 2))
    assert [len(find_structures(each, Lines())) for each in points] == [0] * 4
    # A noise scale as large as the box widens no box beyond a square.
    assert height < 1.0 or len(find_structures(points[0], Lines(), noise_scale=0.3)) == 0


def test_the_example_of_a_family_finds_three_walls(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(EXAMPLE, run_name="__main__")
    first, *walls, strays = capsys.readouterr().out.splitlines()
    assert first.startswith("<FoundStructures: 3 structures, ")
    counts = [[int(number) for number in re.findall(r"(\d+) (?:points|of one)", wall)] for wall in walls]
    assert [min(of) >= 190 for of in counts] == [True] * 3
    assert int(strays.split()[0]) > 160


def test_a_family_of_the_user_finds_planes_in_space() -> None:
    rng = np.random.default_rng(0)
    assert find_structures(rng.uniform(0, 1, (100, 3)) * [1.0, 1.0, 0.0], Planes()).masks.tolist() == [[True] * 100]
    walls = rng.uniform(0, 3, (2, 150, 3))
    walls[0, :, 0], walls[1, :, 2] = 0.0, 3.0
    points = np.vstack([*walls, rng.uniform(0, 3, (150, 3))]) + rng.normal(scale=0.01, size=(450, 3))
    result = find_structures(points, Planes())
    assert sorted(np.abs(result.models[:, :3]).round(2).tolist()) == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    np.testing.assert_allclose(result.noise_scales, 0.01, rtol=0.3)


def test_masks_labels_and_tolerances_agree() -> None:
    points = make_shape("star5", rng=1).points
    result = find_structures(points, Lines())
    distances = np.sqrt(Lines().squared_residuals(points, result.models)) / result.tolerances[:, None]
    np.testing.assert_array_equal(result.masks, distances <= 1.0)
    np.testing.assert_array_equal(result.labels, np.where(result.masks.any(axis=0), distances.argmin(axis=0), -1))
    assert (np.diff(result.evidences) <= 0).all()
    assert (result.masks.sum(axis=0) > 1).any()  # lines cross
    narrow = find_structures(points, Lines(), threshold=0.002)
    np.testing.assert_array_equal(narrow.models, result.models)
    np.testing.assert_array_equal(narrow.masks, Lines().squared_residuals(points, narrow.models) <= 0.002**2)


def test_the_same_seed_gives_the_same_result_and_scale_does_not_matter() -> None:
    points = make_shape("stair4").points
    one, same, larger = (find_structures(factor * points, Lines(), rng=3) for factor in (1.0, 1.0, 1024.0))
    assert one == same
    np.testing.assert_array_equal(larger.masks, one.masks)
    np.testing.assert_allclose(larger.models, one.models * [1.0, 1.0, 1024.0], rtol=1e-9, atol=1e-9)


def test_rows_that_are_not_finite_change_nothing_for_the_others() -> None:
    points = make_shape("stair4").points
    spoilt = np.insert(points, [3, 90], [[np.nan, 0.0], [np.inf, 1.0]], axis=0)
    whole, result = find_structures(points, Lines()), find_structures(spoilt, Lines())
    finite = np.isfinite(spoilt).all(axis=1)
    np.testing.assert_array_equal(result.masks[:, finite], whole.masks)
    assert not result.masks[:, ~finite].any()
    assert (result.labels[~finite].tolist(), result.anomaly_scores[~finite].tolist()) == ([-1, -1], [1.0, 1.0])


def test_many_points_are_all_labelled_though_some_are_searched() -> None:
    shapes = [make_shape("circle5", rng=seed) for seed in range(6)]
    points = np.vstack([shape.points for shape in shapes])
    assert len(points) > POINT_PARAMETERS.max_searched
    result = find_structures(points, Circles())
    assert len(result) == 5
    assert (result.labels[np.concatenate([shape.labels for shape in shapes]) >= 0] >= 0).mean() > 0.9


@pytest.mark.parametrize("points", [np.zeros((0, 2)), [], np.ones((50, 2)), np.full((9, 2), np.nan), np.eye(2)])
def test_too_few_points_give_an_empty_result_with_its_reason(points: Array) -> None:
    result = find_structures(points, Lines())
    assert (len(result), result.masks.shape, result.labels.tolist()) == (0, (0, len(points)), [-1] * len(points))
    assert "distinct points, at least 4 are needed" in str(result.reason)


def test_points_of_no_structure_keep_their_scores_and_get_a_reason() -> None:
    result = find_structures(np.random.default_rng(0).uniform(size=(60, 2)), Lines())
    assert result.reason == "no model found that more points agree with than chance would give"
    assert len(np.unique(result.anomaly_scores)) > 10
    assert str(result) == f"<FoundStructures: 0 structures, 0 of 60 points: {result.reason}>"


def test_samples_are_of_different_points_near_each_other_by_their_weights() -> None:
    rng = np.random.default_rng(0)
    points, weights = rng.uniform(size=(150, 2)), np.repeat([1.0, 0.02], 75)
    drawn = draw_point_samples(points, weights, 1000, 3, POINT_PARAMETERS.neighbourhoods, rng)
    assert drawn.shape == (1000, 3)
    assert (np.diff(np.sort(drawn, axis=1), axis=1) > 0).all()
    assert 0.0 < (drawn >= 75).mean() < 0.1
    away = np.linalg.norm(points[drawn[:, 0]] - points[drawn[:, 1]], axis=1)
    assert np.median(away) < 0.25  # of points at random it would be about a half


@pytest.mark.parametrize("scale", [1e-300, 1e-20, 1e20, 1e300])
def test_lengths_of_any_size_get_an_answer(scale: float) -> None:
    points = np.random.default_rng(0).uniform(0, 1, (60, 2))
    for options in ({"noise_scale": scale}, {"threshold": scale}):
        assert find_structures(points, Lines(), **options).labels.shape == (60,)
    far = np.vstack([points, [[scale, 0.0]]])
    assert (find_structures(far, Lines()).labels[:60] == find_structures(points, Lines()).labels).all() or scale < 1e60


@pytest.mark.parametrize("wrong", [10**6, -1, 0.5, np.nan])
def test_numbers_of_samples_that_are_none_are_refused(wrong: float) -> None:
    class Misnumbered(Lines):
        def solve(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            models, owner = super().solve(samples)
            return models, owner + wrong

    with pytest.raises(ValueError, match="`solve` of the family 'line' must return numbers of its"):
        find_structures(np.random.default_rng(0).random((60, 2)), Misnumbered())
