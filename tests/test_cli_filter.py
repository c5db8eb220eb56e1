"""The options of ``ruzhash-cv filter``, and how the command line ends."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import cv2
import numpy as np
import pytest
from refusals import Captured, Patch, refusal

from ruzhash_cv import cli, filter_points
from ruzhash_cv.datasets import load_pair
from ruzhash_cv.datasets.pairs import data_folder
from ruzhash_cv.pipelines.files import as_unusable

Names = tuple[str, str]
DESK = tuple(str(data_folder() / f"desk{number}.jpg") for number in (1, 2))


@pytest.fixture
def small(tmp_path: Path) -> Names:
    """The desk at half its size: fewer features, less to wait for."""
    names = []
    for number, name in enumerate(DESK):
        image = cv2.resize(cv2.imread(name), None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)
        names.append(str(tmp_path / f"small{number}.png"))
        cv2.imwrite(names[-1], image)
    return names[0], names[1]


@pytest.fixture
def asked(monkeypatch: Patch) -> dict[str, Any]:
    """What the command asks of the filter."""
    options: dict[str, Any] = {}

    def filtered(*points: np.ndarray, **given: Any) -> Any:
        options.update(given, points=points)
        return filter_points(*points, **given)

    monkeypatch.setattr("ruzhash_cv.cli.filter.filter_points", filtered)
    return options


# What is written, and what never is


@pytest.mark.parametrize("option", ["-o", "--save"])
@pytest.mark.parametrize("way", ["itself", "symbolic link", "hard link", "detour"])
def test_an_input_is_never_written_over(tmp_path: Path, capsys: Captured, option: str, way: str) -> None:
    image = tmp_path / "image.png"
    image.write_bytes(b"picture")
    ways = {"itself": image, "detour": tmp_path / ".." / tmp_path.name / "image.png"}
    output = ways.get(way, tmp_path / "b.png")
    if way.endswith("link"):
        (output.symlink_to if way == "symbolic link" else output.hardlink_to)(image)
    assert f"cannot write {output}: it is an input" in refusal(["filter", DESK[0], image, option, output], capsys)
    assert image.read_bytes() == b"picture"


@pytest.mark.skipif(os.name == "nt", reason="needs limits of POSIX")
@pytest.mark.parametrize("option", ["-o", "--structures", "--scores", "--save"])
def test_a_full_disk_leaves_the_file_that_was_there(small: Names, tmp_path: Path, capsys: Any, option: str) -> None:
    import resource

    output = tmp_path / "out.png"
    output.write_text("a good one")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        assert cli.main(["filter", *small, option, str(output)]) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert f"cannot write {output}: File too large" in capsys.readouterr().err
    assert output.read_text() == "a good one"
    assert not list(tmp_path.glob(".*"))


@pytest.mark.skipif(os.name == "nt", reason="needs links and devices of POSIX")
def test_a_link_and_a_device_stay_what_they_are(small: Names, tmp_path: Path) -> None:
    (tmp_path / "link.png").symlink_to(tmp_path / "out.png")
    for path in (tmp_path / "link.png", Path(os.devnull)):
        assert cli.main(["filter", *small, "--save", str(path)]) == 0
    assert (tmp_path / "link.png").is_symlink()
    assert Path(os.devnull).is_char_device()
    with np.load(tmp_path / "out.png") as arrays:
        assert arrays["inlier_mask"].any()


@pytest.mark.skipif(sys.platform != "linux", reason="names are text there")
def test_file_name_of_bytes_is_written_to(small: Names, tmp_path: Path) -> None:
    """In a process of its own, which OpenCV would end."""
    name = os.fsencode(tmp_path) + b"/caf\xe9.png"
    done = subprocess.run([sys.executable, "-m", "ruzhash_cv", "filter", *small, "-o", name], capture_output=True)
    assert (done.returncode, done.stderr.splitlines()[-1].endswith(b"caf\\udce9.png")) == (0, True)
    assert Path(os.fsdecode(name)).stat().st_size > 10_000


def test_json_holds_what_the_table_holds(small: Names, tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["filter", *small, "--json", "--save", str(tmp_path / "saved.npz")]) == 0
    found = json.loads(capsys.readouterr().out)
    with np.load(tmp_path / "saved.npz") as arrays:
        assert found["kept"] == arrays["inlier_mask"].sum()
        assert found["matches"] == found["kept"] + found["flagged"] == len(arrays["inlier_mask"])
        for name, saved in (("matrix", "motions"), ("kind", "motion_kinds"), ("tolerance", "motion_tolerances")):
            assert [motion[name] for motion in found["motions"]] == arrays[saved].tolist()
        planes = [(number, plane) for number, motion in enumerate(found["motions"]) for plane in motion["planes"]]
        assert [plane["matrix"] for _, plane in planes] == arrays["planes"].tolist()
        assert [number for number, _ in planes] == arrays["plane_motions"].tolist()
        matches = [plane["matches"] for _, plane in planes]
        assert matches == [(arrays["plane_labels"] == item).sum() for item in range(len(planes))]
    assert (found["images"], found["sizes"], found["reason"]) == (list(small), [[400, 300]] * 2, None)
    assert found["evidence"] > 0
    assert {"kind", "matches", "tolerance", "noise_scale", "evidence"} < set(found["motions"][0])


# What is asked of the filter


def test_seed_model_and_threshold_are_passed_on(small: Names, asked: dict[str, Any]) -> None:
    arguments = ["--rng", "7", "--model", "homography", "--threshold", "2.5", "--drop-stationary", "--confidence", ".9"]
    assert cli.main(["filter", *small, *arguments]) == 0
    del asked["points"]
    options = {"rng": 7, "model": "homography", "threshold": 2.5, "keep_stationary": False, "confidence": 0.9}
    assert asked == {**options, "pixel": 1.0}


def test_features_of_smaller_images_are_placed_in_the_given_ones(asked: dict[str, Any], capsys: Captured) -> None:
    assert cli.main(["filter", *DESK, "--max-size", "400"]) == 0
    assert "shrunk to 400 pixels" in capsys.readouterr().err
    assert asked["pixel"] == 2.0
    errors = load_pair("desk").transfer_errors(*asked["points"])
    points1, points2 = (points[errors < 6] for points in asked["points"])
    assert len(points1) > 100
    assert max(points1[:, 0].max(), points2[:, 0].max()) > 700


@pytest.mark.parametrize("max_size", [200, 2400])
def test_no_feature_lies_where_a_mask_is_black(small: Names, tmp_path: Path, asked: Any, max_size: int) -> None:
    mask = np.full((300, 400), 255, np.uint8)
    mask[:, :200] = 3  # as JPEG leaves it
    cv2.imwrite(str(tmp_path / "mask.png"), mask)
    assert cli.main(["filter", *small, "--mask1", str(tmp_path / "mask.png"), "--max-size", str(max_size)]) == 0
    points1, points2 = asked["points"]
    assert points1[:, 0].min() > 198
    assert points2[:, 0].min() < 198


# How the command ends


def test_an_image_without_features_is_told_why(tmp_path: Path, capsys: Captured) -> None:
    image = cv2.imread(DESK[0])
    blank, low, small = np.full_like(image, 90), (image // 50 + 100), image[:12, :12]
    black = np.zeros(image.shape[:2], np.uint8)
    for picture, features, mask, says in (
        (blank, "sift", None, "most of its 800 x 600 pixels are between 90 and 90 of 255 grey levels"),
        (low, "orb", None, "most of its 800 x 600 pixels are between 100 and 10"),
        (small, "orb", None, "most of its 12 x 12 pixels"),
        (image, "sift", black, "its mask is black all over"),
    ):
        name, masked = str(tmp_path / "image.png"), []
        cv2.imwrite(name, picture)
        if mask is not None:
            masked = ["--mask1", str(tmp_path / "mask.png")]
            cv2.imwrite(masked[1], mask)
        said = refusal(["filter", name, DESK[1], "--features", features, *masked], capsys)
        assert f"no {features.upper()} keypoints in image {name}: {says}" in said


def test_ctrl_c_ends_without_a_word(monkeypatch: Patch, capsys: Captured) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ruzhash_cv.cli.filter.read_image", interrupt)
    assert cli.main(["filter", *DESK]) == 130
    assert capsys.readouterr() == ("", "")


#: A process in which the import of the package is interrupted, as if from a terminal.
INTERRUPTED_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupt:
    def find_spec(self, name, *_):
        if name == "ruzhash_cv.core.method.search":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
"""


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends the process there")
def test_ctrl_c_ends_without_a_word_while_modules_are_imported(tmp_path: Path) -> None:
    # A module that Python imports by itself as it starts.
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTED_IMPORT)
    paths = os.pathsep.join([str(tmp_path), str(Path(cli.__file__).parents[2])])
    command = [sys.executable, "-m", "ruzhash_cv", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths})
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(os.name == "nt", reason="os.kill ends the process there")
def test_a_first_call_that_is_interrupted_leaves_whole_modules() -> None:
    code = """
import ruzhash_cv
try:
    ruzhash_cv.filter_points
except KeyboardInterrupt:
    print(ruzhash_cv.filter_points([], []))
"""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT + code], capture_output=True, text=True)
    assert (done.stdout.split()[:2], done.stderr) == (["matches", "0"], "")


def version_written_to(output: int | IO[str]) -> tuple[int, str]:
    """Return the status and the messages of a process that prints its version."""
    command = [sys.executable, "-m", "ruzhash_cv", "--version"]
    # Without a buffer argparse itself would drop what it cannot print.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, env=environment)
    return done.returncode, done.stderr


def test_a_closed_pipe_ends_without_a_word() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert version_written_to(writer) == (141, "")
    os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_gets_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        assert version_written_to(full) == (2, "ruzhash-cv: error: [Errno 28] No space left on device\n")


def test_closed_pipe_is_not_reported_as_a_fault_of_the_output_file() -> None:
    with pytest.raises(BrokenPipeError), as_unusable("cannot write verdicts.h5"):
        raise BrokenPipeError


def options_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from options_of(command)
        else:
            yield action


def test_help_explains_every_option_in_words() -> None:
    for action in options_of(cli._parser()):
        assert len((action.help or "").split()) >= 3, action.option_strings or action.dest
