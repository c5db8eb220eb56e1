"""A folder of pages: what is in it after a run, a second run, and one that was killed. No browser is needed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import cv2
import pytest
from report_cases import HEIGHT, WIDTH, two_planes

from ruzhash_cv import cli
from ruzhash_cv.pipelines.files import UnusableFile
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.pairs import flagged

CASE = two_planes()
POINTS = CASE.points1, CASE.points2


def held(path: Path) -> list[Any]:
    """Return what the lines of a file of pages hold."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(re.fullmatch(r"hold\((.*)\);", line)[1]) for line in lines]  # type: ignore[index]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    cv2.imwrite(str(folder / "a.png"), CASE.img1)
    cv2.imwrite(str(folder / "b.png"), CASE.img2)
    return folder


def test_a_row_leads_to_the_data_of_a_pair_and_to_its_photographs(tmp_path: Path, images: Path) -> None:
    with open_pages(tmp_path / "out", images) as pages:
        assert pages is not None
        pages.add(("a.png", "b.png"), POINTS, CASE.result)
    (row,) = held(tmp_path / "out" / "pairs.js")
    assert (row["image1"], row["image2"], row["matches"]) == ("a.png", "b.png", 200)
    assert row["kept"] == CASE.result.inlier_mask.sum()
    assert row["share"] == pytest.approx(row["kept"] / 200)
    assert row["motions"] == len(CASE.result.motions)
    assert row["evidence"] == pytest.approx(CASE.result.evidence, abs=0.05)
    assert row["reason"] == ""
    (pair,) = held(tmp_path / "out" / "pairs" / f"{row['id']}.js")
    assert sum(pair["columns"]["kept"]) == row["kept"]
    assert [(photo["width"], photo["height"]) for photo in pair["photos"]] == [
        (WIDTH, HEIGHT),
        (WIDTH // 2, HEIGHT // 2),
    ]
    for photo, name in zip(pair["photos"], ("thumbnail1", "thumbnail2"), strict=True):
        (address,) = held(tmp_path / "out" / photo["address"])
        assert address.startswith("data:image/jpeg;base64,")
        small = cv2.imread(str(tmp_path / "out" / row[name]))
        assert small is not None
        assert max(small.shape) == 120
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "index.html", "pair.html", "pairs.js", "pairs", "photos", "thumbnails",
    }  # fmt: skip


def test_pages_need_no_photographs(tmp_path: Path) -> None:
    with open_pages(tmp_path / "out", None) as pages:
        assert pages is not None
        pages.add(("a.png", "b.png"), POINTS, CASE.result)
    (row,) = held(tmp_path / "out" / "pairs.js")
    assert (row["thumbnail1"], row["thumbnail2"]) == ("", "")
    (pair,) = held(tmp_path / "out" / "pairs" / f"{row['id']}.js")
    assert [photo["address"] for photo in pair["photos"]] == [None, None]
    assert pair["photos"][0]["width"] >= CASE.points1[:, 0].max()


def test_a_pair_that_could_not_be_read_has_a_row_with_the_reason(tmp_path: Path) -> None:
    with open_pages(tmp_path / "out", None) as pages:
        assert pages is not None
        pages.add(("a.png", "b.png"), None, flagged(7, "UnusableFile: <gone>"))
    (row,) = held(tmp_path / "out" / "pairs.js")
    assert (row["matches"], row["kept"], row["reason"]) == (0, 0, "UnusableFile: <gone>")


def test_a_run_that_was_killed_is_gone_on_with(tmp_path: Path) -> None:
    with open_pages(tmp_path / "out", None) as pages:
        assert pages is not None
        pages.add(("a.png", "b.png"), POINTS, CASE.result)
        pages.add(("a.png", "c.png"), POINTS, CASE.result)
    rows = tmp_path / "out" / "pairs.js"
    rows.write_text(rows.read_text(encoding="utf-8")[:-9], encoding="utf-8")
    with open_pages(tmp_path / "out", None) as pages:
        assert pages is not None
        assert pages.holds(("a.png", "b.png"))
        assert not pages.holds(("a.png", "c.png"))
        assert not pages.holds(("a.pngb.png", ""))
        pages.add(("a.png", "c.png"), POINTS, CASE.result)
        assert pages.holds(("a.png", "c.png"))
    assert [row["image2"] for row in held(rows)] == ["b.png", "c.png"]


def test_a_folder_of_other_files_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with (
        pytest.raises(UnusableFile, match="was not written by this command; nothing is overwritten"),
        open_pages(tmp_path, None),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_two_runs_do_not_write_one_folder(tmp_path: Path) -> None:
    with (
        open_pages(tmp_path / "out", None),
        pytest.raises(UnusableFile, match="out is in use by another run"),
        open_pages(tmp_path / "out", None),
    ):
        pass


def test_names_in_any_bytes_and_with_html_are_data(tmp_path: Path) -> None:
    with open_pages(tmp_path / "out", tmp_path) as pages:
        assert pages is not None
        pages.add(("</script>.png", "b\udcff.png"), POINTS, CASE.result)
    text = (tmp_path / "out" / "pairs.js").read_text(encoding="utf-8")
    assert "</script>" not in text
    (row,) = held(tmp_path / "out" / "pairs.js")
    assert (row["image1"], row["image2"]) == ("</script>.png", "b\\xff.png")


@pytest.mark.parametrize("command", ["colmap", "hloc"])
def test_photographs_are_of_no_use_without_pages(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["no.db"] if command == "colmap" else ["no.h5"] * 4
    assert cli.main([command, *files, "--images", "photos"]) == 2
    assert "there is no --html" in capsys.readouterr().err
