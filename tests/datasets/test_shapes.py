"""Lines and circles: the published files, where present, and shapes drawn like them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ruzhash_cv.datasets import CIRCLE_SHAPES, LINE_SHAPES, SHAPE_NAMES, DatasetError, load_shape, make_shape
from ruzhash_cv.paper import pose

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[2] / ".." / "shared" / "synthetic2d"


@pytest.fixture(scope="module")
def folder() -> Path:
    if not (_BESIDE_THE_REPOSITORY / "star5.csv").is_file():
        pytest.skip(f"the published shapes are not in {_BESIDE_THE_REPOSITORY}")
    return _BESIDE_THE_REPOSITORY


@pytest.mark.parametrize("name", SHAPE_NAMES)
def test_a_drawn_shape_is_like_the_published_one(name: str, folder: Path) -> None:
    published, drawn = load_shape(name, folder), make_shape(name)
    assert (drawn.kind, drawn.points.shape) == (published.kind, published.points.shape)
    np.testing.assert_array_equal(np.bincount(drawn.labels + 1), np.bincount(published.labels + 1))
    for own, other in ((drawn, published), (published, drawn)):
        # Structures are where the other has them: the same extent, and near the other's points.
        for structure in range(published.labels.max() + 1):
            points, others = own.points[own.labels == structure], other.points[other.labels >= 0]
            gaps = np.linalg.norm(points[:, None] - others, axis=2).min(axis=1)
            if name.startswith(("stair", "circle")):
                assert gaps.max() < 0.25
        np.testing.assert_allclose(np.ptp(own.points, axis=0), np.ptp(other.points, axis=0), atol=0.12)
    assert pose(drawn).sigma == pytest.approx(pose(published).sigma, rel=0.15)


@pytest.mark.parametrize("name", SHAPE_NAMES)
def test_noise_is_what_was_asked_for(name: str) -> None:
    shape = make_shape(name, noise=0.01, anomalies=0.0, rng=3)
    assert (shape.labels >= 0).all()
    if shape.kind == "line":
        # Each line is fitted to its own points: two of 50 degrees of freedom are lost. Standard error 1 / sqrt(2 n).
        assert pose(shape).sigma == pytest.approx(0.01, rel=0.15)
    exact = make_shape(name, noise=0.0, anomalies=0.0)
    assert pose(exact).sigma < 1e-9


def test_anomalies_fill_the_bounding_box_of_the_genuine_points() -> None:
    shape = make_shape("star11", anomalies=4.0)
    genuine, alone = shape.points[shape.labels >= 0], shape.points[shape.labels == -1]
    assert len(alone) == 4 * len(genuine)
    low, high = genuine.min(axis=0), genuine.max(axis=0)
    assert ((alone >= low) & (alone <= high)).all()
    places = ((alone - low) / (high - low) * 4).astype(int)
    counts = np.bincount(places[:, 0] * 4 + places[:, 1], minlength=16)
    assert np.abs(counts - len(alone) / 16).max() < 5 * np.sqrt(len(alone) / 16)


def test_the_seed_decides() -> None:
    np.testing.assert_array_equal(make_shape("circle3", rng=4).points, make_shape("circle3", rng=4).points)
    assert (make_shape("circle3", rng=4).points != make_shape("circle3", rng=5).points).any()


def test_names_and_kinds() -> None:
    assert set(SHAPE_NAMES) == set(LINE_SHAPES) | set(CIRCLE_SHAPES)
    for name in SHAPE_NAMES:
        assert make_shape(name).kind == ("line" if name in LINE_SHAPES else "circle")
    for function in (make_shape, lambda name: load_shape(name, ".")):
        with pytest.raises(ValueError, match=r"`name` must be one of 'stair3', .* got 'stair5'"):
            function("stair5")
    with pytest.raises(ValueError, match="`anomalies` must be"):
        make_shape("star5", anomalies=-1.0)


def test_files_that_are_missing_or_of_another_format_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"shape file .*star5\.csv cannot be read: .* `make_shape` draws shapes like it"
    ):
        load_shape("star5", tmp_path)
    (tmp_path / "star5.csv").write_text("1,2,3\n4,5,6\n")
    (tmp_path / "star5_gt.csv").write_text("1\n1\n")
    with pytest.raises(DatasetError, match=r"must hold as many labels as points, got \(2, 3\) and \(2, 1\)"):
        load_shape("star5", tmp_path)
    (tmp_path / "star5_gt.csv").write_text("1\n1\n2\n")
    shape = load_shape("star5", tmp_path, anomalies=1.0)
    assert shape.points[:3].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert shape.labels.tolist() == [0, 0, 1, -1, -1, -1]
