"""The page of a pair as a file: in one piece, with the data in it. No browser is needed."""

from __future__ import annotations

import base64
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from report_cases import HEIGHT, WIDTH, two_planes

import ruzhash_cv
from ruzhash_cv import cli
from ruzhash_cv.datasets.pairs import data_folder
from ruzhash_cv.report import write_html


class Elements(HTMLParser):
    """The elements of a page with their attributes, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def pair_in(page: str) -> Any:
    """Return the data of a page."""
    found = re.search(r"^const loading = Promise.resolve\((.*)\);$", page, re.MULTILINE)
    assert found is not None
    return json.loads(found[1])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "pair.html"
    write_html(path, *two_planes().drawn, names=("left <b>.jpg", "</script><i>.jpg"))
    return path.read_text(encoding="utf-8")


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    for tag, attributes in Elements(page).found:
        assert "src" not in attributes, tag
        assert tag not in ("link", "iframe", "img", "object", "base")
    style = "".join(re.findall(r"<style>(.*?)</style>", page, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style


def test_the_page_holds_the_matches_and_names_that_no_browser_takes_for_html(page: str) -> None:
    pair = pair_in(page)
    assert [photo["name"] for photo in pair["photos"]] == ["left <b>.jpg", "</script><i>.jpg"]
    assert {"b", "i"} & {tag for tag, attributes in Elements(page).found if not attributes} <= {"i"}  # the scale's own
    assert sum(pair["columns"]["kept"]) == two_planes().result.inlier_mask.sum()
    assert "</script><i>" not in page


def test_photographs_are_jpeg_of_their_size(page: str) -> None:
    sizes = []
    for photo in pair_in(page)["photos"]:
        kind, _, encoded = photo["address"].partition(",")
        assert kind == "data:image/jpeg;base64"
        sizes.append(cv2.imdecode(np.frombuffer(base64.b64decode(encoded), np.uint8), cv2.IMREAD_COLOR).shape[1::-1])
        assert (photo["width"], photo["height"]) == sizes[-1]
    assert sizes == [(WIDTH, HEIGHT), (WIDTH // 2, HEIGHT // 2)]


def test_large_photographs_are_shrunk_and_their_sizes_told(tmp_path: Path) -> None:
    write_html(tmp_path / "a.html", *two_planes().drawn, max_size=100)
    first = pair_in((tmp_path / "a.html").read_text(encoding="utf-8"))["photos"][0]
    encoded = np.frombuffer(base64.b64decode(first["address"].partition(",")[2]), np.uint8)
    assert cv2.imdecode(encoded, cv2.IMREAD_COLOR).shape == (75, 100, 3)
    assert (first["width"], first["height"]) == (WIDTH, HEIGHT)


def test_a_page_without_matches_can_be_written(tmp_path: Path) -> None:
    image, nothing = np.zeros((30, 40), np.uint8), np.zeros((0, 2))
    write_html(tmp_path / "a.html", image, nothing, image, nothing, None, ruzhash_cv.filter_points(nothing, nothing))
    assert pair_in((tmp_path / "a.html").read_text(encoding="utf-8"))["columns"]["row"] == []


def test_arguments_are_checked_as_those_of_the_pictures(tmp_path: Path) -> None:
    img1, kp1, img2, kp2, matches, result = two_planes().drawn
    with pytest.raises(TypeError, match="`img2` must be an image, got None"):
        write_html(tmp_path / "a.html", img1, kp1, None, kp2, matches, result)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`result` must have one entry per match, 199, got 200"):
        write_html(tmp_path / "a.html", img1, kp1[1:], img2, kp2[1:], matches, result)
    with pytest.raises(TypeError, match="`result` must be a FilterResult, got ndarray"):
        write_html(tmp_path / "a.html", img1, kp1, img2, kp2, matches, result.inlier_mask)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`max_size` must be at least 32, got 8"):
        write_html(tmp_path / "a.html", img1, kp1, img2, kp2, matches, result, max_size=8)
    assert list(tmp_path.iterdir()) == []


def test_without_bokeh_the_error_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(ImportError, match=r'this needs bokeh: pip install "ruzhash-cv\[html\]"'):
        write_html(tmp_path / "a.html", *two_planes().drawn)


def test_the_command_writes_a_page_of_two_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(data_folder() / f"desk{number}.jpg") for number in (1, 2)]
    assert cli.main(["filter", *names, "--html", str(tmp_path / "desk.html")]) == 0
    captured = capsys.readouterr()
    assert f"wrote {tmp_path / 'desk.html'}" in captured.err
    pair = pair_in((tmp_path / "desk.html").read_text(encoding="utf-8"))
    assert [photo["name"] for photo in pair["photos"]] == names
    assert f"kept    {sum(pair['columns']['kept'])}\n" in captured.out


def test_the_command_says_at_once_that_bokeh_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)
    assert cli.main(["filter", "no.jpg", "no.jpg", "--html", "out.html"]) == 2
    assert capsys.readouterr().err == 'ruzhash-cv: error: this needs bokeh: pip install "ruzhash-cv[html]"\n'
