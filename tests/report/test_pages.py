"""The data of a pair's page, and the page as a file: in one piece, with the data in it. No browser is needed."""

import base64
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from report_cases import HEIGHT, PHOTOS, WIDTH, two_planes

from ruzhash_cv import Motion, cli, filter_points, write_html
from ruzhash_cv.datasets.pairs import data_folder
from ruzhash_cv.drawing.pictures import groups_of
from ruzhash_cv.models import sampson_distance, transfer_error
from ruzhash_cv.report.numbers import css, pair_as_dict, title_of
from ruzhash_cv.results import printing

CASE = two_planes()
NAMES = "a/left <b>.jpg", "a/</script><i>.jpg"


class Elements(HTMLParser):
    """The elements of a page with their attributes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.listed: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.listed.append((tag, dict(attrs)))


def pair_in(page: str) -> Any:
    """Return the data of a page."""
    return json.loads(re.search(r"^const loading = Promise.resolve\((.*)\);$", page, re.MULTILINE)[1])  # type: ignore[index]


def columns_of(points1: np.ndarray, points2: np.ndarray, result: Any) -> dict[str, np.ndarray]:
    held = pair_as_dict(PHOTOS, points1, points2, result)["columns"]
    return {name: np.array(values, float) for name, values in held.items()}


def written(path: Path, *drawn: Any, **options: Any) -> str:
    write_html(path, *drawn, **options)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("page") / "pair.html", *CASE.drawn, names=NAMES)


def test_columns_hold_the_matches_in_pixels_with_their_probability_and_residual() -> None:
    columns, result = columns_of(CASE.points1, CASE.points2, CASE.result), CASE.result
    assert {len(column) for column in columns.values()} == {200}
    np.testing.assert_allclose(columns["x1"], CASE.points1[:, 0], atol=0.005)
    np.testing.assert_allclose(columns["y2"], CASE.points2[:, 1], atol=0.005)
    np.testing.assert_array_equal(columns["kept"], result.inlier_mask)
    np.testing.assert_allclose(columns["probability"], result.inlier_probabilities, atol=5e-5)
    # The residual is to the structure of a match, and to the nearest if it is flagged.
    assert {model.kind for model in result.motions} == {"homography"}
    errors = transfer_error(CASE.points1, CASE.points2, np.stack([model.matrix for model in result.motions]))
    structures = np.where(result.inlier_mask, result.motion_labels, errors.argmin(axis=1))
    np.testing.assert_array_equal(columns["structure"], structures)
    np.testing.assert_allclose(columns["residual"], errors[np.arange(200), structures], atol=6e-4)


def test_residuals_to_a_fundamental_matrix_are_sampson_distances() -> None:
    rng = np.random.default_rng(0)
    points1 = rng.uniform(0, 300, (80, 2))
    points2 = points1 + np.column_stack([rng.uniform(5, 60, 80), rng.normal(0, 0.3, 80)])
    result = filter_points(points1, points2, model="fundamental")
    distances = sampson_distance(points1, points2, result.motions[0].matrix)
    np.testing.assert_allclose(columns_of(points1, points2, result)["residual"], distances, atol=6e-4)
    assert pair_as_dict(PHOTOS, points1, points2, result)["structures"][0]["name"] == "motion 0"


def test_without_structures_or_for_a_family_of_the_user_there_is_no_residual() -> None:
    points = np.random.default_rng(0).uniform(0, 300, (2, 5, 2))
    held = pair_as_dict(PHOTOS, *points, filter_points(*points))["columns"]
    assert (held["residual"], held["structure"]) == ([None] * 5, [-1] * 5)
    motions = (Motion(np.eye(3), "affinity", np.zeros(200, bool), 1.0, 1.0, 9.0),) * 2
    held = pair_as_dict(PHOTOS, CASE.points1, CASE.points2, replace(CASE.result, motions=motions))["columns"]
    assert set(held["residual"]) == {None}


def test_rows_without_a_match_are_left_out() -> None:
    points1 = CASE.points1.copy()
    points1[[3, 7]] = np.nan
    columns = columns_of(points1, CASE.points2, filter_points(points1, CASE.points2))
    np.testing.assert_array_equal(columns["row"], np.delete(np.arange(200), [3, 7]))


def test_every_kept_match_has_the_group_and_colour_of_the_pictures() -> None:
    held = pair_as_dict(PHOTOS, CASE.points1, CASE.points2, CASE.result)
    part_of = np.array(held["columns"]["part"])
    np.testing.assert_array_equal(part_of >= 0, CASE.result.inlier_mask)
    groups = [group for group in groups_of(CASE.result, np.ones(200, bool)) if len(group.rows)]
    assert held["parts"] == [{"text": group.text, "colour": css(group.colour)} for group in groups]
    for number, group in enumerate(groups):
        np.testing.assert_array_equal(np.flatnonzero(part_of == number), group.rows)
    assert css((1, 2, 255)) == "#ff0201"


def test_the_page_has_the_table_and_the_headline_that_the_result_prints() -> None:
    held = pair_as_dict(PHOTOS, CASE.points1, CASE.points2, CASE.result)
    assert held["table"] in CASE.result._repr_html_()
    assert held["headline"].startswith(printing.headline(CASE.result))
    assert held["headline"].endswith(f"evidence {printing.as_number(CASE.result.evidence)}")


@pytest.mark.parametrize(
    ("names", "title"),
    [
        (("photos/1.jpg", "/tmp/2.jpg"), "1.jpg and 2.jpg"),
        (("left/1.jpg", "right/1.jpg"), "left/1.jpg and right/1.jpg"),
        (("1.jpg", "1.jpg"), "1.jpg and 1.jpg"),
        (("/", "image 2"), "/ and image 2"),
    ],
)
def test_the_title_is_the_names_of_the_files(names: tuple[str, str], title: str) -> None:
    assert title_of(names) == title


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    for tag, attributes in Elements(page).listed:
        assert "src" not in attributes, tag
        assert tag not in ("link", "iframe", "img", "object", "base")
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_holds_the_matches_and_names_that_no_browser_takes_for_html(page: str) -> None:
    pair = pair_in(page)
    assert [photo["name"] for photo in pair["photos"]] == [*NAMES]
    (title,) = re.findall(r"<title>(.*?)</title>", page, re.DOTALL)
    assert unescape(title).strip() == pair["title"] == "left <b>.jpg and script><i>.jpg"
    assert {"b", "i"} & {tag for tag, attributes in Elements(page).listed if not attributes} <= {"i"}  # of the scale
    assert sum(pair["columns"]["kept"]) == CASE.result.inlier_mask.sum()
    assert "</script><i>" not in page


@pytest.mark.parametrize(
    ("options", "sizes"),
    [({}, [(WIDTH, HEIGHT), (WIDTH // 2, HEIGHT // 2)]), ({"max_size": 100}, [(100, 75), (100, 75)])],
)
def test_photographs_are_jpeg_shrunk_to_the_largest_size(tmp_path: Path, options: Any, sizes: Any) -> None:
    photos = pair_in(written(tmp_path / "a.html", *CASE.drawn, **options))["photos"]
    for photo, size in zip(photos, sizes, strict=True):
        kind, _, encoded = photo["address"].partition(",")
        assert kind == "data:image/jpeg;base64"
        image = cv2.imdecode(np.frombuffer(base64.b64decode(encoded), np.uint8), cv2.IMREAD_COLOR)
        assert image.shape[1::-1] == size
    assert [(photo["width"], photo["height"]) for photo in photos] == [(WIDTH, HEIGHT), (WIDTH // 2, HEIGHT // 2)]


def test_a_page_without_matches_can_be_written(tmp_path: Path) -> None:
    image, nothing = np.zeros((30, 40), np.uint8), np.zeros((0, 2))
    page = written(tmp_path / "a.html", image, nothing, image, nothing, None, filter_points(nothing, nothing))
    assert pair_in(page)["columns"]["row"] == []


def test_the_command_writes_a_page_of_two_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(data_folder() / f"desk{number}.jpg") for number in (1, 2)]
    assert cli.main(["filter", *names, "--html", str(tmp_path / "desk.html")]) == 0
    captured = capsys.readouterr()
    assert f"wrote {tmp_path / 'desk.html'}" in captured.err
    pair = pair_in((tmp_path / "desk.html").read_text(encoding="utf-8"))
    assert pair["title"] == "desk1.jpg and desk2.jpg"
    assert f"kept    {sum(pair['columns']['kept'])}\n" in captured.out
