"""The command line: tables on stdout, messages on stderr, status 2 and one line where the input is no good."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from refusals import Captured, Patch, refusal
from report_cases import two_planes

import ruzhash_cv
from ruzhash_cv import cli, write_html
from ruzhash_cv.cli import demo as demo_command
from ruzhash_cv.cli.common import InputError, write_picture
from ruzhash_cv.datasets import fetch_adelaidermf, load_pair
from ruzhash_cv.datasets.pairs import data_folder
from ruzhash_cv.pipelines import filter_pairs

DESK = tuple(str(data_folder() / f"desk{number}.jpg") for number in (1, 2))


def write_noise(path: Path, height: int = 300, width: int = 400, seed: int = 0) -> str:
    """Write a blotchy picture."""
    blotches = np.random.default_rng(seed).integers(0, 255, (height // 8, width // 8, 3), dtype=np.uint8)
    assert cv2.imwrite(str(path), cv2.resize(blotches, (width, height), interpolation=cv2.INTER_CUBIC))
    return str(path)


def field(output: str, name: str) -> int:
    """Return a number of the table that `filter` prints."""
    return int(re.findall(rf"^{name} +(\d+)$", output, re.MULTILINE)[0])


def demo_rows(output: str) -> dict[str, list[float]]:
    """Return the numbers of each row of the demo's first table by method; a threshold or a lowest F1 that is not there is NaN."""
    table = output.split("ms\n")[1]
    return {
        line[2:38].strip(): [float(value.replace("-", "nan")) for value in line[38:].split()]
        for line in table.splitlines()
        if line.startswith("  ")
    }


def test_demo_compares_every_method_and_draws_both_images(tmp_path: Path, capsys: Captured, monkeypatch: Patch) -> None:
    titles: list[str] = []
    monkeypatch.setattr(demo_command, "titled", lambda picture, title: titles.append(title) or picture)
    folder = tmp_path / "made" / "on demand"
    assert cli.main(["demo", "--pair", "desk", "-o", str(folder)]) == 0
    output = capsys.readouterr().out
    n, share = map(int, re.findall(r"^(\d+) matches, (\d+)% true \(within 3 px\)$", output, re.MULTILINE)[0])
    rows = demo_rows(output)
    single = "cv2.RANSAC fundamental", "cv2.USAC_MAGSAC fundamental"
    assert list(rows) == ["filter_points", "find_fundamental_matrix", *single, demo_command.TURN]
    for name, (threshold, kept, wrong, recall, f1, lowest, milliseconds) in rows.items():
        precision = 1 - wrong / kept
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall), abs=2e-3)
        assert kept < n
        assert (kept - wrong) / recall == pytest.approx(share / 100 * n, rel=0.01)
        assert milliseconds >= 0
        assert (threshold in demo_command.THRESHOLDS and lowest < f1) == name.startswith("cv2")
    assert rows["filter_points"][4] > 0.95
    assert max(rows[name][4] for name in single) < 0.85
    assert rows[demo_command.TURN][4] > 0.95
    kinds = "", "_structures", "_scores", "_magsac"
    assert {path.name for path in folder.iterdir()} == {f"desk{kind}.jpg" for kind in kinds}
    for path in folder.iterdir():  # small enough for a README
        assert cv2.imread(str(path)).shape[1] == 2 * load_pair("desk").img1.shape[1]
        assert path.stat().st_size < 400_000
    assert titles[3].startswith("cv2.USAC_MAGSAC homographies in turn, ")


def test_demo_says_where_to_use_what(tmp_path: Path, capsys: Captured) -> None:
    assert cli.main(["demo", "--pair", "plane", "--pair", "wrong", "-o", str(tmp_path)]) == 0
    pairs, totals = capsys.readouterr().out.split("mean of the pairs")
    (gained,) = re.findall(r"^filter_points gains ([\d.]+) against .+ at its best threshold, and ", pairs, re.MULTILINE)
    assert re.search(rf"^use filter_points: wrong \(\+{gained}\)$", totals, re.MULTILINE)
    assert re.search(r"^a tie, and OpenCV is much faster, .+: plane \([+-][\d.]+\)$", totals, re.MULTILINE)
    assert re.search(r"^use OpenCV, if you know the threshold: none$", totals, re.MULTILINE)
    means = {
        line[2:38].strip(): float(line[38:].split()[0]) for line in totals.splitlines()[1:] if line.startswith("  ")
    }
    assert means["cv2.USAC_MAGSAC, the better of both"] >= means["cv2.USAC_MAGSAC, one matrix"]
    assert means["filter_points"] > means["cv2.USAC_MAGSAC, the better of both"]


@pytest.mark.parametrize("name", demo_command.CASES)
def test_matches_of_the_demo_are_what_its_words_say(name: str) -> None:
    case = demo_command.CASES[name]
    pair, points = demo_command._matched(case)
    true = pair.labels(*points, tolerance=case.within) >= 0
    low, high = {"wrong": (0.04, 0.1)}.get(name, (0.5, 0.9))
    assert low < true.mean() < high


@pytest.mark.parametrize("features", ["sift", "orb"])
def test_filter_counts_draws_and_saves_the_same_matches(tmp_path: Path, capsys: Captured, features: str) -> None:
    names = {option: tmp_path / f"{option[2:]}.png" for option in ("--output", "--structures", "--scores", "--save")}
    arguments = [argument for option, path in names.items() for argument in (option, str(path))]
    assert cli.main(["filter", *DESK, "--features", features, *arguments]) == 0
    output, messages = capsys.readouterr()
    assert messages.splitlines()[-1] == f"wrote {', '.join(map(str, names.values()))}"
    pictures = [cv2.imread(str(names[option])) for option in ("--output", "--structures", "--scores")]
    assert all(picture.shape[1] == 1600 for picture in pictures)
    assert not np.array_equal(pictures[0][:600], pictures[1][:600])
    with np.load(names["--save"]) as arrays:
        assert field(output, "matches") == len(arrays["points1"]) == len(arrays["points2"])
        assert field(output, "kept") == arrays["inlier_mask"].sum()
        assert field(output, "flagged") == (~arrays["inlier_mask"]).sum()
        assert arrays["keypoint_indices"].shape == (len(arrays["points1"]), 2)
        assert arrays["motions"].shape == (len(arrays["motion_kinds"]), 3, 3)
        true = load_pair("desk").labels(arrays["points1"], arrays["points2"]) >= 0
        assert (arrays["inlier_mask"] & true).sum() > 0.9 * true.sum()


def test_filter_says_why_too_few_matches_decide_nothing(tmp_path: Path, capsys: Captured) -> None:
    out, saved = tmp_path / "out.png", tmp_path / "saved.npz"
    first, second = write_noise(tmp_path / "a.png"), write_noise(tmp_path / "b.png", seed=1)
    assert cli.main(["filter", first, second, "--ratio", "0.3", "-o", str(out), "--save", str(saved)]) == 0
    output = capsys.readouterr().out
    assert field(output, "kept") == 0
    assert field(output, "flagged") == field(output, "matches") < 8
    assert re.search(r"^reason  \d distinct matches, at least 8 are needed$", output, re.MULTILINE)
    assert cv2.imread(str(out)) is not None
    with np.load(saved) as arrays:
        assert arrays["motions"].shape == arrays["planes"].shape == (0, 3, 3)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_a_closed_output_is_written_to_by_nobody(monkeypatch: Patch, capsys: Captured, name: str) -> None:
    """Python has None in place of a stream that the shell closed, `>&-`."""
    monkeypatch.setattr(sys, name, None)
    assert cli.main(["filter", "no_such_file.jpg", "neither.jpg"]) == 2
    assert name == "stderr" or cli.main(["filter", *DESK, "--features", "orb"]) == 0
    assert capsys.readouterr().out == ""
    getattr(sys, name).close()


# Bad input


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["filter", DESK[0], "absent.jpg"], "absent.jpg: No such file"),
        (["filter", "folder", DESK[1]], "cannot read folder: Is a directory"),
        (["filter", "empty.jpg", DESK[1]], "empty.jpg is empty"),
        (["filter", "text.jpg", DESK[1]], "text.jpg is not a picture"),
        (["filter", DESK[0], "blank.png"], "no SIFT keypoints in image blank.png: most of its 160 x 120 pixels are"),
        (["filter", *DESK, "-o", "out"], "cannot tell the kind of picture from 'out'"),
        (["filter", *DESK, "-o", "out.xyz"], "cannot tell the kind of picture from 'out.xyz'"),
        (["filter", *DESK, "-o", "out.pngä"], "cannot tell the kind of picture"),
        (["filter", *DESK, "-o", "out.pbm"], ".pbm holds no colours: end 'out.pbm' in .png or .jpg"),
        *(
            (["filter", "absent1.png", "absent2.png", option, name], f"cannot write {name}: {says}")
            for option in ("-o", "--structures", "--scores", "--save", "--html")
            for name, says in (("absent/out.png", "there is no directory"), ("folder.png", "it is a directory"))
            if option != "--html" or importlib.util.find_spec("bokeh")
        ),
        (["filter", *DESK, "--mask2", "blank.png", "-o", "blank.png"], "cannot write blank.png: it is an input, or an"),
        (["filter", *DESK, "-o", "out.png", "--scores", "out.png"], "cannot write out.png: it is an input, or another"),
        (["filter", *DESK, "--mask1", "blank.png"], "mask blank.png has 160 x 120 pixels, but its image"),
        (["filter", *DESK, "--mask1", "a\nb.png"], "cannot read a\\nb.png: No such file"),
        *(
            ([*command, "--images", "photos"], "--images is what the pages of --html show, and there is no --html")
            for command in (["colmap", "no.db"], ["hloc", *"abcd"])
        ),
        (["demo", "--pair", "beach"], "no pair 'beach'"),
        (["demo", "-o", "empty.jpg"], "cannot make the directory"),
        ([], "required: COMMAND; see ruzhash-cv --help"),
        (["fliter"], "fliter"),
        (["filter", "one.jpg"], "IMG"),
        (["filter", *DESK, "--threshold", "0"], "above 0, got 0"),
        (["filter", *DESK, "--threshold", "nan"], "above 0, got nan"),
        (["filter", *DESK, "--threshold", "inf"], "must be at most 1.79"),
        (["filter", *DESK, "--threshold", "wide"], "must be a number above 0, got wide"),
        (["filter", *DESK, "--ratio", "1.5"], "at most 1, got 1.5"),
        (["filter", *DESK, "--ratio", "1\n2"], "got 1\\n2"),
        (["filter", *DESK, "--model", "affine"], "affine"),
        (["filter", *DESK, "--modle", "auto"], "--modle"),
        (["filter", *DESK, "--rng", "-1"], "must be a whole number from 0 on, got -1"),
        (["filter", *DESK, "--rng", "1" + 30 * "0"], "must be at most 2147483647, got 1000"),
        (["filter", *DESK, "--max-size", "31"], "must be a whole number of at least 32, got 31"),
        (["colmap", "a.db", "--min-inliers", "some"], "must be a whole number above 0, got some"),
        (["filter", *DESK, "-o", ""], "must be the name of a file, got nothing"),
        (["colmap", "a.db", "--n-jobs", "1" + 30 * "0"], "--n-jobs: must be at most 4096, got 1000"),
        (["hloc", *"abcd", "--least-evidence", "-1"], "--least-evidence: must be a number from 0 on, got -1"),
    ],
)
def test_wrong_arguments_and_input_of_no_use_get_one_line(
    tmp_path: Path, capfd: Captured, monkeypatch: Patch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("folder.png").mkdir()
    Path("empty.jpg").touch()
    Path("text.jpg").write_bytes(b"no picture at all")
    assert cv2.imwrite("blank.png", np.full((120, 160, 3), 128, np.uint8))
    assert says in refusal(arguments, capfd)


@pytest.mark.parametrize(
    ("package", "extra", "call"),
    [
        ("pycolmap", "colmap", ["colmap", "no.db"]),
        ("h5py", "hloc", ["hloc", *DESK, "pairs.txt", "out.h5"]),
        ("bokeh", "html", ["filter", "no.jpg", "no.jpg", "--html", "out.html"]),
        ("bokeh", "html", lambda: write_html("out.html", *two_planes().drawn)),
        ("joblib", "parallel", lambda: filter_pairs([])),
        ("pooch", "datasets", lambda: fetch_adelaidermf("barrsmith", data_home="none")),
    ],
)
def test_an_absent_package_is_named_with_its_extra_before_any_work(
    package: str, extra: str, call: Any, monkeypatch: Patch, capsys: Captured
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delenv("RUZHASH_CV_DATA", raising=False)
    says = f'this needs {package}: pip install "ruzhash-cv[{extra}]"'
    if callable(call):
        with pytest.raises(ImportError, match=re.escape(says)):
            call()
    else:
        assert says in refusal(call, capsys)


def test_a_picture_too_large_for_its_kind_gets_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^\.jpg holds no picture of 70000 x 2 pixels: end 'wide.jpg' in .png$"):
        write_picture(tmp_path / "wide.jpg", np.zeros((2, 70_000, 3), np.uint8))


def test_the_package_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "ruzhash_cv", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout == f"ruzhash-cv {ruzhash_cv.__version__}\n"
