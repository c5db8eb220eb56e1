"""``ruzhash-cv pairs``: what it reads, what it writes, and that nothing is lost or overwritten on the way."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from ruzhash_cv import cli, filter_points
from ruzhash_cv.datasets import load_pair
from ruzhash_cv.datasets.pairs import data_folder
from ruzhash_cv.pipelines import folders, pair_seed
from ruzhash_cv.pipelines.features import detect, match, read_image
from ruzhash_cv.pipelines.files import UnusableFile, new_hdf5
from ruzhash_cv.pipelines.folders import Settings, all_pairs, filter_images, read_list
from ruzhash_cv.pipelines.outputs import open_output
from ruzhash_cv.pipelines.pairs import LOST

Captured = pytest.CaptureFixture[str]
NAMES = ("desk1.jpg", "desk2.jpg", "plane1.jpg")
FAST = ("--n-jobs", "1", "--max-size", "320")


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with three pictures, two of them a pair, and a file that is none."""
    folder = tmp_path / "images"
    folder.mkdir()
    for name in NAMES:
        shutil.copy(data_folder() / name, folder / name)
    (folder / "notes.txt").write_text("no picture")
    return folder


@pytest.fixture
def run(tmp_path: Path, images: Path, capsys: Captured) -> Callable[..., tuple[int, str, str]]:
    """Run the command on a list of two pairs and return its status, stdout and stderr."""
    (tmp_path / "list.txt").write_text("desk1.jpg desk2.jpg\n\n# a comment\ndesk1.jpg\tplane1.jpg\n")

    def call(*arguments: Any, listed: Any = tmp_path / "list.txt") -> tuple[int, str, str]:
        where = () if Path(listed).is_dir() else ("--images", images)
        status = cli.main([str(word) for word in ("pairs", listed, *where, *FAST, *arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


# Lists and folders


def test_pairs_are_read_once_each_and_in_order(tmp_path: Path, images: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("desk2.jpg desk1.jpg\n  desk1.jpg   plane1.jpg \ndesk2.jpg\tdesk1.jpg\n")
    assert read_list(file, images) == [("desk2.jpg", "desk1.jpg"), ("desk1.jpg", "plane1.jpg")]


def test_names_with_spaces_are_separated_by_a_tab(tmp_path: Path, images: Path) -> None:
    shutil.copy(images / NAMES[0], images / "my desk.jpg")
    (tmp_path / "list.txt").write_text("my desk.jpg\tdesk2.jpg\n")
    assert read_list(tmp_path / "list.txt", images) == [("my desk.jpg", "desk2.jpg")]


def test_settings_that_are_neither_true_nor_false_are_named() -> None:
    with pytest.raises(TypeError, match="`keep_stationary` must be True or False, got 'False'"):
        Settings(keep_stationary="False")  # type: ignore[arg-type]


def test_a_folder_gives_all_pairs_of_its_pictures(images: Path) -> None:
    assert all_pairs(images) == [(NAMES[0], NAMES[1]), (NAMES[0], NAMES[2]), (NAMES[1], NAMES[2])]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("desk1.jpg desk2.jpg\ndesk1.jpg door.jpg", r"list\.txt, line 2: there is no 'door\.jpg' in .*images$"),
        ("desk1.jpg", r"line 1: two names of pictures are needed, got 1: 'desk1\.jpg'"),
        ("a b c", "line 1: two names of pictures are needed, got 3: 'a b c'"),
        ("desk1.jpg desk1.jpg", r"line 1: 'desk1\.jpg' is paired with itself"),
        ("../list.txt desk1.jpg", r"line 1: '\.\./list\.txt' must be relative to the folder of the pictures"),
        ("/etc/hosts desk1.jpg", "line 1: '/etc/hosts' must be relative"),
        ("\n# nothing\n", "lists no pairs"),
        (b"\xff\xfe\x00", "is no list of pairs: it is not text"),
        (None, r"cannot read .*list\.txt: No such file"),
    ],
)
def test_a_bad_list_is_one_line_and_nothing_is_written(
    tmp_path: Path, images: Path, capsys: Captured, text: str | bytes | None, message: str
) -> None:
    listed, output = tmp_path / "list.txt", tmp_path / "out"
    if text is not None:
        listed.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UnusableFile, match=message):
        read_list(listed, images)
    assert cli.main(["pairs", str(listed), "--images", str(images), "-o", str(output)]) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("ruzhash-cv: error: ")
    assert not output.exists()


def test_a_folder_without_pairs_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableFile, match="holds 0 pictures, and a pair needs 2"):
        all_pairs(tmp_path)


# Features


def test_features_of_a_shrunk_picture_lie_where_they_are_in_the_picture() -> None:
    image = np.full((301, 403, 3), 40, np.uint8)
    centres = np.array([[60, 50], [340, 60], [200, 240], [120, 170]])
    for x, y in centres.tolist():
        cv2.circle(image, (x, y), 12, (230, 230, 230), -1)
    # OpenCV's SIFT is a quarter of a pixel off, of a pixel of the picture it sees.
    bias = nearest(detect(image, "sift").points, centres) - centres
    for size in (403, 360, 202):
        found = detect(image, "sift", size)
        assert found.pixel == pytest.approx(403 / size)
        away = nearest(found.points, centres) - centres - found.pixel * bias
        assert np.abs(away).max() < 0.1, size


def nearest(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    return points[np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=0)]


@pytest.mark.parametrize("kind", ["sift", "orb"])
def test_features_survive_the_disk_and_descriptors_their_bytes(tmp_path: Path, kind: str) -> None:
    pair = load_pair("desk")
    found = [detect(np.asarray(image), kind, 320) for image in (pair.img1, pair.img2)]
    detector: Any = cv2.SIFT.create(10_000) if kind == "sift" else cv2.ORB.create(5_000)
    whole = detect(np.asarray(pair.img1), kind)
    assert whole.descriptors.tolist() == detector.detectAndCompute(pair.img1, None)[1].tolist()
    found[0].save(tmp_path / "features.npz")
    again = type(found[0]).load(tmp_path / "features.npz")
    assert match(again, found[1], kind, 0.8).tolist() == match(found[0], found[1], kind, 0.8).tolist() != []


# Output


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_what_is_written_is_what_single_calls_give(tmp_path: Path, images: Path, run: Any, output: str) -> None:
    held = open_held(tmp_path / output, run("-o", tmp_path / output))
    assert sorted(held) == [("desk1.jpg", "desk2.jpg"), ("desk1.jpg", "plane1.jpg")]
    arrays = held["desk1.jpg", "desk2.jpg"]
    features = [detect(read_image(images / name), "sift", 320) for name in NAMES[:2]]
    indices = match(*features, "sift", 0.8)
    points = [found.points[indices[:, side]] for side, found in enumerate(features)]
    expected = filter_points(*points, rng=pair_seed(NAMES[:2]), pixel=features[0].pixel)
    assert arrays["keypoint_indices"].tolist() == indices.tolist()
    assert arrays["points2"].tolist() == points[1].tolist()
    assert arrays["inlier_mask"].tolist() == expected.inlier_mask.tolist()
    assert arrays["inlier_mask"].sum() > 30
    assert arrays["anomaly_scores"].tolist() == expected.anomaly_scores.tolist()
    assert arrays["models"].tolist() == [model.matrix.tolist() for model in expected.models]
    assert [str(kind) for kind in arrays["model_kinds"]] == [model.kind for model in expected.models]
    assert arrays["model_tolerances"].tolist() == [model.tolerance for model in expected.models]
    assert arrays["motions"].tolist() == [motion.matrix.tolist() for motion in expected.motions]
    assert arrays["motion_labels"].tolist() == expected.motion_labels.tolist()
    assert arrays["evidence"] == expected.evidence > 0
    assert "no model" in str(held["desk1.jpg", "plane1.jpg"]["reason"])


def open_held(path: Path, ran: tuple[int, str, str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the arrays of all pairs in a file or folder."""
    assert ran[0] == 0, ran
    if path.is_dir():
        return {(file.parent.name, file.stem): dict(np.load(file)) for file in path.glob("*/*.npz")}
    h5py = pytest.importorskip("h5py")
    with h5py.File(path) as file:
        groups = [group for first in file.values() for group in first.values()]
        return {
            (group.attrs["image1"], group.attrs["image2"]): {
                name: data.asstr()[()] if h5py.check_string_dtype(data.dtype) else data[()]
                for name, data in group.items()
            }
            for group in groups
        }


def test_a_line_of_json_for_each_pair(tmp_path: Path, run: Any) -> None:
    status, out, _ = run("-o", tmp_path / "out", "--json")
    lines = {line["images"][1]: line for line in map(json.loads, out.splitlines())}
    assert status == 0
    assert sorted(lines) == ["desk2.jpg", "plane1.jpg"]
    with np.load(tmp_path / "out" / "desk1.jpg" / "desk2.jpg.npz") as arrays:
        assert lines["desk2.jpg"]["kept"] == arrays["inlier_mask"].sum()
        assert lines["desk2.jpg"]["matches"] == len(arrays["inlier_mask"])
    assert lines["desk2.jpg"]["reason"] is None
    assert "no model" in lines["plane1.jpg"]["reason"]


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_a_second_run_does_what_is_missing_and_nothing_else(
    tmp_path: Path, run: Any, images: Path, output: str
) -> None:
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    (tmp_path / "one.txt").write_text("desk1.jpg desk2.jpg\n")
    run("-o", tmp_path / output, listed=tmp_path / "one.txt")
    status, out, err = run("-o", tmp_path / output, "--json")
    assert status == 0
    assert [json.loads(line)["images"][1] for line in out.splitlines()] == ["plane1.jpg"]
    assert f"1 of 2 pairs are in {tmp_path / output} already" in err
    status, out, _ = run("-o", tmp_path / output, listed=images)
    assert out.splitlines()[0] == "pairs     1"


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_a_finished_run_that_is_run_again_says_so(tmp_path: Path, run: Any, output: str) -> None:
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    run("-o", tmp_path / output)
    assert run("-o", tmp_path / output) == (0, "", f"nothing to do: all 2 pairs are in {tmp_path / output} already\n")


def test_seed_and_stationary_matches_are_passed_on(tmp_path: Path, run: Any, images: Path) -> None:
    held = open_held(tmp_path / "out", run("-o", tmp_path / "out", "--rng", "7", "--drop-stationary"))
    arrays = held["desk1.jpg", "desk2.jpg"]
    options = {"pixel": 800 / 320, "rng": pair_seed(NAMES[:2], 7), "keep_stationary": False}
    expected = filter_points(arrays["points1"], arrays["points2"], **options)
    assert arrays["anomaly_scores"].tolist() == expected.anomaly_scores.tolist()
    status, _, err = run("-o", tmp_path / "out")
    assert (status, "holds pairs made with keep_stationary = False, not True" in err) == (2, True)


def test_features_are_looked_for_once_in_each_picture_that_is_missing(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(folders, "read_image", lambda path: seen.append(path.name) or read_image(path))
    assert (
        len(list(filter_images(all_pairs(images), images, Settings(max_size=160), images / "features", n_jobs=1))) == 3
    )
    assert seen == list(NAMES)


def test_a_run_that_goes_on_takes_up_the_features_it_finds(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(folders, "read_image", lambda path: seen.append(path.name) or read_image(path))
    given = all_pairs(images), images, Settings(max_size=160), tmp_path / "out.features"
    with contextlib.closing(filter_images(*given, n_jobs=1)) as ended:
        first = next(ended)
    assert len(list(given[-1].iterdir())) == 3
    touched = images / NAMES[2]
    touched.write_bytes(touched.read_bytes() + b"\n")
    seen.clear()
    again = {pair.names: pair for pair in filter_images(*given, n_jobs=1)}
    assert seen == [NAMES[2]]
    assert again[first.names].points1.tolist() == first.points1.tolist()
    assert not given[-1].exists()


def test_a_pair_that_was_written_in_part_is_done_again(tmp_path: Path, run: Any) -> None:
    h5py = pytest.importorskip("h5py")
    output = tmp_path / "out.h5"
    run("-o", output)
    with h5py.File(output, "r+") as file:
        del file["desk1.jpg/desk2.jpg"].attrs["stamps"]
        del file["desk1.jpg/desk2.jpg/labels"]
    held = open_held(output, run("-o", output))
    assert len(held["desk1.jpg", "desk2.jpg"]["labels"]) > 0


@pytest.mark.parametrize("spoil", [lambda _: b"", lambda held: held[:100]])
def test_a_pair_whose_file_is_spoilt_is_done_again(tmp_path: Path, run: Any, spoil: Callable[[bytes], bytes]) -> None:
    """No file stays open either: pytest turns that warning into an error."""
    run("-o", tmp_path / "out")
    file = tmp_path / "out" / "desk1.jpg" / "desk2.jpg.npz"
    file.write_bytes(spoil(file.read_bytes()))
    assert f"1 of 2 pairs are in {tmp_path / 'out'} already" in run("-o", tmp_path / "out")[2]
    assert len(open_held(tmp_path / "out", (0, "", ""))) == 2


def test_a_spoilt_hdf5_file_gets_one_line(tmp_path: Path, run: Any) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "out.h5"
    run("-o", path)
    path.write_bytes(path.read_bytes().replace(b"SNOD", b"DONS"))  # what the lists of names begin with
    status, _, err = run("-o", path)
    assert status == 2
    assert err.count("\n") == 1
    assert f"{path} is no HDF5 file, or a spoilt one" in err


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_pictures_of_another_folder_do_not_mix(tmp_path: Path, run: Any, images: Path, output: str) -> None:
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    path, other = tmp_path / output, tmp_path / "other"
    run("-o", path, listed=images)
    shutil.copytree(images, other)
    before = contents_of(path)
    status, _, err = run("-o", path, listed=other)
    assert (status, contents_of(path)) == (2, before)
    assert f"{path} holds pairs made with images = {images}, not {other}; nothing is overwritten" in err


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_pairs_of_a_picture_that_was_replaced_are_done_again(
    tmp_path: Path, run: Any, images: Path, output: str
) -> None:
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    run("-o", tmp_path / output)
    shutil.copy(images / "desk2.jpg", images / "plane1.jpg")
    status, out, err = run("-o", tmp_path / output, "--json")
    assert (status, [json.loads(line)["images"][1] for line in out.splitlines()]) == (0, ["plane1.jpg"])
    assert "1 of 2 pairs are in" in err
    held = open_held(tmp_path / output, run("-o", tmp_path / output))
    assert held["desk1.jpg", "plane1.jpg"]["labels"].tolist() != []
    assert "nothing to do" in run("-o", tmp_path / output)[2]


@pytest.mark.skipif(sys.platform != "linux", reason="names are text there")
@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_names_of_every_kind_are_read_and_written(tmp_path: Path, images: Path, run: Any, output: str) -> None:
    """Bytes that are no text, a path longer than a name may be, a mark of order, and what looks like a comment."""
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    names = [b"caf\xe9.jpg", b"d" * 150 + b"/" + b"e" * 150 + b".jpg", b"#a.jpg", "ä ü.jpg".encode()]
    for name in names:
        path = images / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        shutil.copy(images / "desk2.jpg", path)
    listed = b"\xef\xbb\xbfdesk1.jpg\tdesk2.jpg\n#" + b"word" * 100 + b"\n# b.jpg desk2.jpg\n"
    (tmp_path / "all.txt").write_bytes(listed + b"".join(name + b"\tdesk1.jpg\n" for name in names))
    for n_done in (5, 0):
        status, out, _ = run("-o", tmp_path / output, "--json", listed=tmp_path / "all.txt")
        assert (status, len(out.splitlines())) == (0, n_done)
    assert len(open_held(tmp_path / output, run("-o", tmp_path / output, listed=tmp_path / "all.txt"))) == 5


def test_names_with_slashes_stay_apart(tmp_path: Path, images: Path, run: Any) -> None:
    for name in ("a/b.jpg", "a%2Fb.jpg"):
        (images / name).parent.mkdir(exist_ok=True)
        shutil.copy(images / "desk2.jpg", images / name)
    (tmp_path / "list.txt").write_text("desk1.jpg a/b.jpg\ndesk1.jpg a%2Fb.jpg\na/b.jpg desk1.jpg\n")
    held = open_held(tmp_path / "out", run("-o", tmp_path / "out"))
    assert sorted(held) == [("a%2Fb.jpg", "desk1.jpg"), ("desk1.jpg", "a%252Fb.jpg"), ("desk1.jpg", "a%2Fb.jpg")]


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_other_settings_do_not_mix(tmp_path: Path, run: Any, output: str) -> None:
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    path = tmp_path / output
    run("-o", path)
    if path.is_file():
        path.write_bytes(path.read_bytes() + b"HDF5 would cut this off")
    before = contents_of(path)
    status, _, err = run("-o", path, "--ratio", "0.9")
    assert status == 2
    assert err.splitlines()[-1] == (
        f"ruzhash-cv: error: {path} holds pairs made with ratio = 0.8, not 0.9; nothing is overwritten"
    )
    assert contents_of(path) == before


def contents_of(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in (path, *path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("settings", [b"\xff\xfe", b"[1, 2]", b"[" * 3000, b'{"features": {"nested": []}}'])
def test_settings_of_something_else_are_told(tmp_path: Path, run: Any, settings: bytes) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "settings.json").write_bytes(settings)
    status, _, err = run("-o", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert err.endswith("; nothing is overwritten\n")


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_what_this_command_did_not_write_stays(tmp_path: Path, run: Any, output: str) -> None:
    path = tmp_path / output
    if output == "out":
        path.mkdir()
        (path / "thesis.tex").write_text("three years")
    else:
        pytest.importorskip("h5py")
        path.write_text("three years")
    before = contents_of(path)
    status, _, err = run("-o", path)
    assert status == 2
    assert err.endswith("nothing is overwritten\n")
    assert err.count("\n") == 1
    assert contents_of(path) == before


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_an_output_that_another_run_writes_is_refused(tmp_path: Path, run: Any, output: str) -> None:
    if output.endswith("h5"):
        pytest.importorskip("h5py")
    path = tmp_path / output
    assert run("-o", path)[0] == 0
    settings = json.loads(settings_of(path))
    with open_output(path, settings, tmp_path):
        status, _, err = run("-o", path)
        assert (status, err) == (2, f"ruzhash-cv: error: {path} is in use by another run\n")
    assert run("-o", path)[0] == 0


def settings_of(path: Path) -> str:
    if path.is_dir():
        return (path / "settings.json").read_text()
    import h5py

    with h5py.File(path) as file:
        return str(file.attrs["settings"])


def test_a_new_file_that_another_run_is_making_is_refused(tmp_path: Path, run: Any) -> None:
    pytest.importorskip("h5py")
    path = tmp_path / "out.h5"
    with new_hdf5(path):
        assert run("-o", path)[::2] == (2, f"ruzhash-cv: error: {path} is in use by another run\n")
    with pytest.raises(UnusableFile, match=r"cannot write .*out\.h5: it is there already|File exists"), new_hdf5(path):
        pass
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("contents", "message"), [(b"", "is empty"), (b"not a picture", "is not a picture OpenCV can read")]
)
def test_a_picture_that_cannot_be_read_is_named_and_the_others_pairs_are_done(
    tmp_path: Path, images: Path, run: Any, contents: bytes, message: str
) -> None:
    good = (images / "desk2.jpg").read_bytes()
    (images / "desk2.jpg").write_bytes(contents)
    status, out, err = run("-o", tmp_path / "out", "--json", listed=images)
    told = f"{images / 'desk2.jpg'} {message}"
    reasons = {tuple(line["images"]): line["reason"] for line in map(json.loads, out.splitlines())}
    assert status == 2
    assert [line for line in err.splitlines() if "desk2" in line] == [f"left out desk1.jpg and desk2.jpg: {told}"]
    assert err.splitlines()[-1] == "ruzhash-cv: error: 2 of 3 pairs are left out; the same command tries them again"
    assert {names for names, reason in reasons.items() if reason == told} == {NAMES[:2], NAMES[1:]}
    assert len(reasons) == 3
    assert len(list((tmp_path / "out").glob("*/*.npz"))) == 1
    (images / "desk2.jpg").write_bytes(good)
    status, out, _ = run("-o", tmp_path / "out", "--json", listed=images)
    assert (status, len(out.splitlines())) == (0, 2)


def test_a_picture_that_gets_its_worker_killed_leaves_out_its_pairs_alone(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is played: it takes for lost what a worker would have been killed by."""

    def lossy(function: Any, items: Any, lost: Any, **_: Any) -> Any:
        for item in items:
            yield lost(item) if item[0] == "plane1.jpg" else function(item)

    monkeypatch.setattr(folders, "stream", lossy)
    pairs = list(filter_images(all_pairs(images), images, Settings(max_size=160), images / "features", n_jobs=1))
    assert {pair.names: pair.tried for pair in pairs} == {NAMES[:2]: True, NAMES[::2]: False, NAMES[1:]: False}
    assert all(LOST in str(pair.result.reason) and "plane1" in str(pair.result.reason) for pair in pairs[:2])


@pytest.mark.parametrize("length", [2**24, 2**31 - 1, 2**32 - 1])
def test_a_png_file_whose_chunk_is_longer_than_the_file_is_refused_before_opencv_makes_room_for_it(
    images: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """Room for the chunk would be 4 GB for the last."""
    contents = bytearray(cv2.imencode(".png", read_image(images / "desk2.jpg"))[1].tobytes())
    (images / "whole.png").write_bytes(contents + b"what follows the end counts for nothing")
    assert read_image(images / "whole.png").size > 0
    assert contents[37:41] == b"IDAT"
    contents[33:37] = length.to_bytes(4, "big")
    (images / "spoilt.png").write_bytes(contents)
    monkeypatch.setattr(cv2, "imdecode", lambda *_: pytest.fail("OpenCV got it"))
    with pytest.raises(UnusableFile, match=r"spoilt\.png is not a picture OpenCV can read"):
        read_image(images / "spoilt.png")


def test_a_picture_that_ends_early_is_told_once(images: Path, capfd: pytest.CaptureFixture[str]) -> None:
    contents = cv2.imencode(".bmp", read_image(images / "desk2.jpg"))[1].tobytes()
    (images / "half.bmp").write_bytes(contents[: len(contents) // 2])
    logging: Any = getattr(cv2.utils, "logging", cv2)  # in `cv2` itself before OpenCV 5
    level = logging.getLogLevel()
    with pytest.raises(UnusableFile, match=r"half\.bmp is not a picture OpenCV can read"):
        read_image(images / "half.bmp")
    assert capfd.readouterr().err == ""
    assert logging.getLogLevel() == level


@pytest.mark.parametrize("output", ["out", "out.h5"])
def test_a_disk_that_was_full_at_the_start_leaves_nothing_behind(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    def full(path: Path, text: str = "", **_: Any) -> None:
        path.write_bytes(b"")
        raise OSError(errno.ENOSPC, "No space left on device")

    if output == "out":
        monkeypatch.setattr(Path, "write_text", full)
    else:
        pytest.importorskip("h5py")
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2**20))
    status, _, err = run("-o", tmp_path / output)
    assert (status, err.count("\n")) == (2, 1)
    monkeypatch.undo()
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".part", ".h5") or path.name == "settings.json"]
    assert run("-o", tmp_path / output)[0] == 0


def test_a_limit_on_the_length_of_files_is_told_before_hdf5_meets_it(tmp_path: Path, run: Any) -> None:
    pytest.importorskip("h5py")
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, before[1]))
    try:
        status, _, err = run("-o", tmp_path / "out.h5")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert status == 2
    assert err == f"ruzhash-cv: error: cannot write to {tmp_path / 'out.h5'}: `ulimit -f` leaves it less than 64 MB\n"
    assert not list(tmp_path.glob("out.h5*"))


def test_a_pair_that_gets_its_worker_killed_is_told_and_left_for_the_next_run(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ruzhash_cv.cli import pairs as command

    def lossy(*arguments: Any, **options: Any) -> Any:
        with contextlib.closing(filter_images(*arguments, **options)) as pairs:
            yield folders.untried(next(pairs).names, LOST)
            yield from pairs

    monkeypatch.setattr(command, "filter_images", lossy)
    _, out, _ = run("-o", tmp_path / "out", "--json")
    assert [json.loads(line)["reason"] for line in out.splitlines()][:1] == [LOST]
    monkeypatch.undo()
    status, out, _ = run("-o", tmp_path / "out", "--json")
    assert (status, len(out.splitlines())) == (0, 1)


def test_a_blank_picture_is_a_reason_not_an_error(tmp_path: Path, images: Path, run: Any) -> None:
    assert cv2.imwrite(str(images / "desk2.jpg"), np.full((90, 90, 3), 128, np.uint8))
    status, out, _ = run("-o", tmp_path / "out", "--json")
    assert status == 0
    reasons = {line["images"][1]: line["reason"] for line in map(json.loads, out.splitlines())}
    assert reasons["desk2.jpg"] == "no keypoints in desk2.jpg"


def test_an_interrupted_run_keeps_what_it_has_and_says_how_to_go_on(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ruzhash_cv.cli import pairs as command

    def interrupted(*arguments: Any, **options: Any) -> Any:
        with contextlib.closing(filter_images(*arguments, **options)) as pairs:
            yield next(pairs)
            raise KeyboardInterrupt

    monkeypatch.setattr(command, "filter_images", interrupted)
    status, _, err = run("-o", tmp_path / "out")
    assert status == 130
    assert "interrupted; the same command goes on" in err
    assert len(list((tmp_path / "out").glob("*/*.npz"))) == 1
    monkeypatch.undo()
    assert len(open_held(tmp_path / "out", run("-o", tmp_path / "out"))) == 2


KILLED = """
import os, signal, sys
import h5py
import numpy as np
from pathlib import Path
from ruzhash_cv import filter_points
from ruzhash_cv.pipelines.folders import FilteredPair
from ruzhash_cv.pipelines.outputs import open_output

flush, calls = h5py.File.flush, []

def last(self):
    calls.append(0)
    if len(calls) == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    flush(self)

h5py.File.flush = last
points = np.zeros((2, 2))
result = filter_points(points, points)
with open_output(Path(sys.argv[1]), {"made": "here"}, Path()) as output:
    for name in "abc":
        output.write(FilteredPair(("first", name), points, points, np.zeros((2, 2), np.int64), result))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize(("moment", "whole"), [(1, ""), (4, "a")])
def test_a_killed_run_leaves_a_file_that_can_be_gone_on_with(tmp_path: Path, moment: int, whole: str) -> None:
    """Killed before anything was flushed, and after a pair was linked, before that was."""
    pytest.importorskip("h5py")
    path = tmp_path / "out.h5"
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), str(moment)], timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL
    with open_output(path, {"made": "here"}, Path()) as output:
        assert [name for name in "abc" if output.holds(("first", name))] == list(whole)


def test_without_h5py_the_extra_is_named(tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "h5py", None)
    status, _, err = run("-o", tmp_path / "out.h5")
    assert status == 2
    assert 'this needs h5py: pip install "ruzhash-cv[hloc]"' in err
