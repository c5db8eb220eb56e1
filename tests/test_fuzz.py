"""A little fuzzing with every run of the tests; `tests/fuzzing` goes on for longer."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ruzhash_cv
from ruzhash_cv import paper

FUZZING = Path(__file__).parent / "fuzzing"


@pytest.mark.timeout(1200)  # with no kernel compiled yet, on a busy machine
def test_200_hostile_cases_get_an_answer_or_a_documented_exception() -> None:
    command = [sys.executable, str(FUZZING), "--cases", "200", "--group", "even"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 cases, 0 failures" in done.stdout


def test_recorded_cases_are_left_out_and_counted(tmp_path: Path) -> None:
    command = [sys.executable, str(FUZZING), "--cases", "30", "--group", "names", "--record", str(tmp_path / "record")]
    told = []
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        told.append(done.stdout)
    assert told[0] == told[1]
    assert len((tmp_path / "record").read_text().splitlines()) == 1


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system does not tell the peak of memory")
def test_one_case_that_takes_too_much_memory_is_one_failure() -> None:
    """Of 200: the peak is forgotten whether it was too high or not."""
    program = """
import numpy as np, cases
cases.GROUPS.clear()
cases.run_case = lambda case, only: "some/function answered" if case != 60 or np.ones((600, 2**17)).all() else ""
cases.work(0, 200, None)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=FUZZING)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("failed")] == ["failed 99"], done.stdout


def test_every_public_function_is_fuzzed() -> None:
    targets = set(re.findall(r'^    "(\w+)": ', (FUZZING / "targets.py").read_text(), re.MULTILINE))
    things = {name: getattr(ruzhash_cv, name) for name in dir(ruzhash_cv) if not name.startswith("_")}
    public = {name for name, thing in things.items() if inspect.isfunction(thing) or name.endswith("Forest")}
    elsewhere = {"Camera", "camera_pose", "cameras"} | {
        name for name in targets if hasattr(paper, name)
    }  # no functions of the package
    assert targets == public | elsewhere
