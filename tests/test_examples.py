"""The examples run as a reader would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(script: str, *arguments: str, data: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run an example in a process of its own."""
    environment = dict(os.environ)
    if data is not None:
        environment["RUZHASH_CV_DATA"] = str(data.resolve())
    command = [sys.executable, str(EXAMPLES / script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)


def measures(output: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r"(AUC|precision|recall|F1) ([\d.]+)", output)}


def test_replace_ransac_loses_fewer_matches_than_ransac() -> None:
    done = run("replace_ransac.py")
    assert done.returncode == 0, done.stderr
    lost = [int(count) for count in re.findall(r"true ones lost +(\d+)", done.stdout)]
    ransac_h, homographies, ransac_f, fundamentals = lost
    assert homographies < ransac_h / 2
    assert fundamentals < ransac_f / 2


def test_replace_ransac_names_the_pairs_it_knows() -> None:
    done = run("replace_ransac.py", "beach")
    assert done.returncode != 0
    assert "no pair 'beach'" in done.stderr
    assert "Traceback" not in done.stderr


def test_adelaidermf_judges_labelled_matches_and_draws_them(adelaidermf_home: Path, tmp_path: Path) -> None:
    out = tmp_path / "barrsmith.png"
    done = run("adelaidermf.py", "barrsmith", "-o", str(out), data=adelaidermf_home)
    assert done.returncode == 0, done.stderr
    assert measures(done.stdout)["AUC"] > 0.95
    assert measures(done.stdout)["F1"] > 0.9
    assert cv2.imread(str(out)) is not None


@pytest.mark.parametrize(("name", "features"), [("johnsona", "sift"), ("cubechips", "orb")])
def test_adelaidermf_judges_fresh_matches(adelaidermf_home: Path, name: str, features: str) -> None:
    done = run("adelaidermf.py", name, "--features", features, data=adelaidermf_home)
    assert done.returncode == 0, done.stderr
    assert f"{name}, {features} matches" in done.stdout
    assert measures(done.stdout)["recall"] > 0.8


def test_adelaidermf_suggests_a_name() -> None:
    done = run("adelaidermf.py", "barsmith")
    assert done.returncode != 0
    assert "did you mean 'barrsmith'" in done.stderr
    assert "Traceback" not in done.stderr
