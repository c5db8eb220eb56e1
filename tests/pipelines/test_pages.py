"""A folder of pages: what is in it after a run, a second run, and one that was killed. No browser is needed."""

import json
import os
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from report_cases import HEIGHT, WIDTH, two_planes

from ruzhash_cv.pipelines.features import read_image
from ruzhash_cv.pipelines.files import UnusableFile
from ruzhash_cv.pipelines.pages import open_pages
from ruzhash_cv.pipelines.pairs import flagged

CASE = two_planes()
POINTS = CASE.points1, CASE.points2


def held(path: Path) -> list[Any]:
    """Return what the lines of a file of pages hold."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(re.fullmatch(r"hold\((.*)\);", line)[1]) for line in lines]  # type: ignore[index]


def added(out: Path, images: Path | None, names: Any = ("a.png", "b.png"), *given: Any) -> Any:
    """Return the row of one pair, the case's if no other is given, in a new folder of pages."""
    with open_pages(out, images) as pages:
        pages.add(names, *(given or (POINTS, CASE.result)))
    (row,) = held(out / "pairs.js")
    return row


@pytest.fixture
def images(tmp_path: Path) -> Path:
    folder = tmp_path / "images"
    folder.mkdir()
    cv2.imwrite(str(folder / "a.png"), CASE.img1)
    cv2.imwrite(str(folder / "b.png"), CASE.img2)
    return folder


def test_a_row_leads_to_the_data_of_a_pair_and_to_its_photographs(tmp_path: Path, images: Path) -> None:
    row = added(tmp_path / "out", images)
    assert (row["image1"], row["image2"], row["matches"], row["reason"]) == ("a.png", "b.png", 200, "")
    assert (row["kept"], row["motions"]) == (CASE.result.inlier_mask.sum(), len(CASE.result.motions))
    assert row["share"] == pytest.approx(row["kept"] / 200)
    assert row["evidence"] == pytest.approx(CASE.result.evidence, abs=0.05)
    (pair,) = held(tmp_path / "out" / "pairs" / f"{row['id']}.js")
    assert sum(pair["columns"]["kept"]) == row["kept"]
    assert [(photo["width"], photo["height"]) for photo in pair["photos"]] == [
        (WIDTH, HEIGHT),
        (WIDTH // 2, HEIGHT // 2),
    ]
    for photo, name in zip(pair["photos"], ("thumbnail1", "thumbnail2"), strict=True):
        (address,) = held(tmp_path / "out" / photo["address"])
        assert address.startswith("data:image/jpeg;base64,")
        assert max(cv2.imread(str(tmp_path / "out" / row[name])).shape) == 120
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "index.html", "pair.html", "pairs.js", "pairs", "photos", "thumbnails", "ruzhash_cv.txt",
    }  # fmt: skip


def test_pages_need_no_photographs(tmp_path: Path) -> None:
    row = added(tmp_path / "out", None)
    assert (row["thumbnail1"], row["thumbnail2"]) == ("", "")
    (pair,) = held(tmp_path / "out" / "pairs" / f"{row['id']}.js")
    assert [photo["address"] for photo in pair["photos"]] == [None, None]
    assert pair["photos"][0]["width"] >= CASE.points1[:, 0].max()


def test_a_pair_that_could_not_be_read_has_a_row_with_the_reason(tmp_path: Path) -> None:
    row = added(tmp_path / "out", None, ("a.png", "b.png"), None, flagged(7, "UnusableFile: <gone>"))
    assert (row["matches"], row["kept"], row["reason"]) == (0, 0, "UnusableFile: <gone>")


def test_a_pair_that_is_left_out_keeps_nothing_and_says_why(tmp_path: Path) -> None:
    with open_pages(tmp_path / "out", None) as pages:
        pages.add(("a.png", "b.png"), POINTS, CASE.result, left_out="evidence 45.0, below 50: left out")
    (row,) = held(tmp_path / "out" / "pairs.js")
    assert (row["matches"], row["kept"], row["share"]) == (200, 0, 0.0)
    assert row["reason"] == "evidence 45.0, below 50: left out"
    (pair,) = held(tmp_path / "out" / "pairs" / f"{row['id']}.js")
    assert pair["headline"].endswith("1 motion · evidence 45.0, below 50: left out") or "motions" in pair["headline"]
    assert sum(pair["columns"]["kept"]) == CASE.result.inlier_mask.sum()


def test_each_pair_has_one_row_also_after_killed_and_repeated_runs(tmp_path: Path) -> None:
    rows = tmp_path / "out" / "pairs.js"
    for cut in (9, 0, 0):
        with open_pages(tmp_path / "out", None) as pages:
            pages.add(("a.png", "b.png"), POINTS, CASE.result)
            pages.add(("a.png", "c.png"), POINTS, CASE.result)
        assert [row["image2"] for row in held(rows)] == ["b.png", "c.png"]
        rows.write_text(rows.read_text(encoding="utf-8")[: -cut or None], encoding="utf-8")


@pytest.mark.parametrize("name", ["notes.txt", "index.html", "pair.html", "pairs.js"])
def test_a_folder_of_other_files_is_refused_and_left_as_it_is(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(UnusableFile, match="is no folder of pages; nothing is overwritten"), open_pages(tmp_path, None):
        pass
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "mine"}


def test_two_runs_do_not_write_one_folder(tmp_path: Path) -> None:
    with (
        open_pages(tmp_path / "out", None),
        pytest.raises(UnusableFile, match="out is in use by another run"),
        open_pages(tmp_path / "out", None),
    ):
        pass


@pytest.mark.parametrize(
    "name", ["../secret.png", "{}/secret.png", "out.png", "loop.png", "fifo", "zero", "a\0b", "x" * 300]
)
def test_photographs_outside_the_folder_and_devices_are_never_read(tmp_path: Path, images: Path, name: str) -> None:
    cv2.imwrite(str(tmp_path / "secret.png"), CASE.img1)
    (images / "out.png").symlink_to(tmp_path / "secret.png")
    (images / "loop.png").symlink_to("loop.png")
    (images / "zero").symlink_to("/dev/zero")
    os.mkfifo(images / "fifo")
    name = name.format(tmp_path)
    with open_pages(tmp_path / "pages", images) as pages:
        pages.add((name, "b.png"), POINTS, CASE.result)
        assert [*pages.not_shown.items()] == [(name, f"{name!r} is not a file in {images}")]
    (row,) = held(tmp_path / "pages" / "pairs.js")
    assert [row["thumbnail1"] == "", row["thumbnail2"] == ""] == [True, False]


@pytest.mark.parametrize("size", [None, (WIDTH, HEIGHT), (HEIGHT, WIDTH)])
def test_photographs_are_shown_as_their_keypoints_saw_them(tmp_path: Path, images: Path, size: Any) -> None:
    """Phones store portraits on their side, and the EXIF data turns them: COLMAP and hloc do not."""
    assert CASE.img1.shape[:2] == (HEIGHT, WIDTH)
    (images / "a.jpg").write_bytes(portrait(CASE.img1))
    assert read_image(images / "a.jpg").shape[:2] == (WIDTH, HEIGHT)
    row = added(tmp_path / "out", images, ("a.jpg", "b.png"), POINTS, CASE.result, (size, None))
    (pair,) = held(tmp_path / "out" / "pairs" / f"{row['id']}.js")
    assert (pair["photos"][0]["width"], pair["photos"][0]["height"]) == (size or (WIDTH, HEIGHT))


def portrait(image: np.ndarray) -> bytes:
    """Return a JPEG file whose EXIF data turns it by a quarter."""
    contents = cv2.imencode(".jpg", image)[1].tobytes()
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"
    return contents[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + contents[2:]


def test_names_in_any_bytes_and_with_html_are_data(tmp_path: Path) -> None:
    row = added(tmp_path / "out", tmp_path, ("</script>.png", "b\udcff.png"))
    assert "</script>" not in (tmp_path / "out" / "pairs.js").read_text(encoding="utf-8")
    assert (row["image1"], row["image2"]) == ("</script>.png", "b\\xff.png")
