"""The command line: tables on stdout, messages on stderr, status 2 and one line where the input is no good."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest

import ruzhash_cv
from ruzhash_cv import cli
from ruzhash_cv.cli import demo as demo_command
from ruzhash_cv.cli.common import InputError, write_picture
from ruzhash_cv.datasets import load_pair
from ruzhash_cv.datasets.pairs import data_folder

Captured = pytest.CaptureFixture[str]
DESK = tuple(str(data_folder() / f"desk{number}.jpg") for number in (1, 2))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder the demo of one pair wrote to."""
    folder = tmp_path_factory.mktemp("demo") / "made" / "on demand"
    assert cli.main(["demo", "--pair", "desk", "-o", str(folder)]) == 0
    return folder


def write_noise(path: Path, height: int = 300, width: int = 400, seed: int = 0) -> str:
    """Write a blotchy picture."""
    blotches = np.random.default_rng(seed).integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
    assert cv2.imwrite(str(path), cv2.resize(blotches, (width, height), interpolation=cv2.INTER_CUBIC))
    return str(path)


def write_blank(path: Path) -> str:
    assert cv2.imwrite(str(path), np.full((120, 160, 3), 128, np.uint8))
    return str(path)


def field(output: str, name: str) -> int:
    """Return a number of the table that `filter` prints."""
    found = re.search(rf"^{name} +(\d+)$", output, re.MULTILINE)
    assert found is not None, output
    return int(found.group(1))


def test_demo_prints_a_row_for_every_method(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["demo", "--pair", "plane", "-o", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    header, *rows = captured.out.splitlines()
    assert header.split() == ["pair", "method", "matches", "kept", "flagged", "precision", "recall", "F1", "ms"]
    methods = [row[9:37].strip() for row in rows]
    opencv = [f"{name} {family}" for name in demo_command.OPENCV for family in ("homography", "fundamental")]
    assert methods == ["ruzhash_cv", *opencv]
    assert "kernels ready" in captured.err


def test_demo_rows_add_up(tmp_path: Path, capsys: Captured) -> None:
    cli.main(["demo", "--pair", "rigid", "-o", str(tmp_path)])
    for row in capsys.readouterr().out.splitlines()[1:]:
        matches, kept, flagged, precision, recall, f1, milliseconds = map(float, row[37:].split())
        assert kept + flagged == matches
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=2e-3)
        assert milliseconds > 0


def test_demo_finds_more_of_the_moving_objects_than_one_model_can(tmp_path: Path, capsys: Captured) -> None:
    cli.main(["demo", "--pair", "desk", "-o", str(tmp_path)])
    f1 = [float(row.split()[-2]) for row in capsys.readouterr().out.splitlines()[1:]]
    assert f1[0] > 0.95
    assert max(f1[1:]) < 0.8


@pytest.mark.parametrize("suffix", ["", "_structures", "_scores", "_magsac"])
def test_demo_draws_both_images_side_by_side(demo: Path, suffix: str) -> None:
    picture = cv2.imread(str(demo / f"desk{suffix}.jpg"))
    assert picture is not None
    assert picture.shape[1] == 2 * load_pair("desk").img1.shape[1]


def test_demo_pictures_say_which_model_opencv_was_asked_for(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    titles: list[str] = []
    monkeypatch.setattr(demo_command, "titled", lambda picture, title: titles.append(title) or picture)
    cli.main(["demo", "--pair", "desk", "-o", str(tmp_path)])
    assert [title.partition(":")[0].partition(",")[0] for title in titles] == ["ruzhash_cv"] * 3 + ["cv2.USAC_MAGSAC"]
    assert "one fundamental matrix, 3 px, F1 0." in titles[3]


def test_demo_pictures_are_small_enough_for_a_readme(demo: Path) -> None:
    assert all(path.stat().st_size < 400_000 for path in demo.iterdir())


@pytest.mark.parametrize("features", ["sift", "orb"])
def test_filter_counts_draws_and_saves_the_same_matches(tmp_path: Path, capsys: Captured, features: str) -> None:
    out, saved = tmp_path / "out.png", tmp_path / "saved"
    assert cli.main(["filter", *DESK, "--features", features, "-o", str(out), "--save", str(saved)]) == 0
    output = capsys.readouterr().out
    assert cv2.imread(str(out)) is not None
    with np.load(saved) as arrays:
        assert field(output, "matches") == len(arrays["points1"]) == len(arrays["points2"])
        assert field(output, "kept") == arrays["inlier_mask"].sum()
        assert field(output, "flagged") == (~arrays["inlier_mask"]).sum()
        assert arrays["keypoint_indices"].shape == (len(arrays["points1"]), 2)
        assert arrays["models"].shape == (len(arrays["model_kinds"]), 3, 3)
        true = load_pair("desk").labels(arrays["points1"], arrays["points2"]) >= 0
        assert (arrays["inlier_mask"] & true).sum() > 0.9 * true.sum()


def test_filter_passes_model_and_threshold_on(tmp_path: Path, capsys: Captured) -> None:
    saved = tmp_path / "saved.npz"
    cli.main(["filter", *DESK, "--model", "fundamental", "--threshold", "2", "--save", str(saved)])
    with np.load(saved) as arrays:
        assert set(arrays["model_kinds"]) == {"fundamental"}
        assert set(arrays["model_tolerances"]) == {2.0}
    assert "fundamental" in capsys.readouterr().out


def test_filter_ratio_decides_how_many_matches_there_are(capsys: Captured) -> None:
    counts = []
    for ratio in ("0.6", "0.8"):
        assert cli.main(["filter", *DESK, "--ratio", ratio]) == 0
        counts.append(field(capsys.readouterr().out, "matches"))
    assert 0 < counts[0] < counts[1]


def test_filter_takes_images_of_different_size(tmp_path: Path, capsys: Captured) -> None:
    half = cv2.resize(load_pair("desk").img2, None, fx=0.75, fy=0.75, interpolation=cv2.INTER_AREA)
    assert cv2.imwrite(str(tmp_path / "half.png"), half)
    out = str(tmp_path / "out.jpg")
    assert cli.main(["filter", DESK[0], str(tmp_path / "half.png"), "-o", out]) == 0
    assert field(capsys.readouterr().out, "kept") > 100


def test_filter_says_why_too_few_matches_decide_nothing(tmp_path: Path, capsys: Captured) -> None:
    out, saved = tmp_path / "out.png", tmp_path / "saved.npz"
    first, second = write_noise(tmp_path / "a.png"), write_noise(tmp_path / "b.png", seed=1)
    arguments = ["filter", first, second, "--ratio", "0.3", "-o", str(out), "--save", str(saved)]
    assert cli.main(arguments) == 0
    output = capsys.readouterr().out
    assert field(output, "kept") == 0
    assert field(output, "flagged") == field(output, "matches") < 8
    assert re.search(r"^reason  \d distinct matches, at least 8 are needed$", output, re.MULTILINE)
    assert cv2.imread(str(out)) is not None
    with np.load(saved) as arrays:
        assert arrays["models"].shape == (0, 3, 3)


def test_warmup_prints_nothing_on_stdout(capsys: Captured) -> None:
    assert cli.main(["warmup"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "kernels ready after" in captured.err


def test_warmup_that_finds_all_kernels_compiles_none(capsys: Captured) -> None:
    cli.main(["warmup"])
    capsys.readouterr()
    cli.main(["warmup"])
    assert "0 of them compiled" in capsys.readouterr().err


# Bad input


def one_line(capsys: Captured) -> str:
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    assert ": error: " in captured.err
    return captured.err


def test_missing_image_is_named(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["filter", DESK[0], str(tmp_path / "absent.jpg")]) == 2
    assert "absent.jpg: No such file" in one_line(capsys)


def test_directory_is_no_image(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["filter", str(tmp_path), DESK[1]]) == 2
    assert f"cannot read {tmp_path}" in one_line(capsys)


@pytest.mark.parametrize(("contents", "says"), [(b"", "is empty"), (b"no picture at all", "is not a picture")])
def test_unreadable_image_is_named(tmp_path: Path, capsys: Captured, contents: bytes, says: str) -> None:
    (tmp_path / "bad.jpg").write_bytes(contents)
    assert cli.main(["filter", str(tmp_path / "bad.jpg"), DESK[1]]) == 2
    assert f"bad.jpg {says}" in one_line(capsys)


@pytest.mark.parametrize("features", ["sift", "orb"])
def test_blank_image_is_named(tmp_path: Path, capsys: Captured, features: str) -> None:
    assert cli.main(["filter", DESK[0], write_blank(tmp_path / "blank.png"), "--features", features]) == 2
    line = one_line(capsys)
    assert "blank.png" in line
    assert f"no {features.upper()} keypoints" in line


@pytest.mark.parametrize("name", ["out", "out.xyz", "out.txt", "out.pngä"])
def test_unknown_kind_of_picture_is_refused_before_the_work(tmp_path: Path, capsys: Captured, name: str) -> None:
    assert cli.main(["filter", *DESK, "-o", str(tmp_path / name)]) == 2
    assert f"cannot tell the kind of picture from '{name}'" in one_line(capsys)


@pytest.mark.parametrize("name", ["out.pbm", "out.PGM"])
def test_a_picture_without_colours_is_refused_before_the_work(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    assert cli.main(["filter", *DESK, "-o", str(tmp_path / name)]) == 2
    suffix = name[3:]
    assert capfd.readouterr().err == f"ruzhash-cv: error: {suffix} holds no colours: end '{name}' in .png or .jpg\n"


def test_a_picture_too_large_for_its_kind_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^\.jpg holds no picture of 70000 x 2 pixels: end 'wide.jpg' in .png$"):
        write_picture(tmp_path / "wide.jpg", np.zeros((2, 70_000, 3), np.uint8))


@pytest.mark.parametrize("option", ["-o", "--save"])
def test_output_that_cannot_be_written_is_named(tmp_path: Path, capsys: Captured, option: str) -> None:
    assert cli.main(["filter", *DESK, option, str(tmp_path / "absent" / "out.png")]) == 2
    assert f"cannot write {tmp_path / 'absent' / 'out.png'}" in capsys.readouterr().err.splitlines()[-1]


def test_demo_refuses_an_unknown_pair(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["demo", "--pair", "beach", "-o", str(tmp_path)]) == 2
    assert "no pair 'beach'" in one_line(capsys)


def test_demo_refuses_a_file_as_its_folder(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    assert cli.main(["demo", "-o", str(tmp_path / "file")]) == 2
    assert "cannot make the directory" in one_line(capsys)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "required: COMMAND; see ruzhash-cv --help"),
        (["fliter"], "fliter"),
        (["filter", "one.jpg"], "IMG"),
        (["filter", *DESK, "--threshold", "0"], "above 0, got 0"),
        (["filter", *DESK, "--threshold", "nan"], "above 0, got nan"),
        (["filter", *DESK, "--threshold", "wide"], "must be a number above 0, got wide"),
        (["filter", *DESK, "--ratio", "1.5"], "at most 1, got 1.5"),
        (["filter", *DESK, "--model", "affine"], "affine"),
        (["filter", *DESK, "--features", "surf"], "surf"),
        (["filter", *DESK, "--modle", "auto"], "--modle"),
    ],
)
def test_wrong_arguments_get_one_line(capsys: Captured, arguments: list[str], says: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(arguments)
    assert stopped.value.code == 2
    assert says in one_line(capsys)


def test_a_command_that_left_says_what_to_use(capsys: Captured) -> None:
    assert cli.main(["pairs", "photos", "-o", "out.h5"]) == 2
    line = one_line(capsys)
    assert all(word in line for word in ("examples/folder_of_photos.py", "colmap and hloc", "filter_pairs"))


def test_help_describes_the_commands(capsys: Captured) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["--help"])
    assert stopped.value.code == 0
    printed = capsys.readouterr().out
    assert all(command in printed for command in ("demo", "filter", "warmup"))


def test_the_package_runs_as_a_module() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "ruzhash_cv", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout == f"ruzhash-cv {ruzhash_cv.__version__}\n"
