"""A little fuzzing with every run of the tests; `python tests/fuzzing --minutes 30` goes on for longer."""

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


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(FUZZING), *arguments], capture_output=True, text=True)


@pytest.mark.timeout(1200)  # with no kernel compiled yet, on a busy machine
def test_200_hostile_cases_get_an_answer_or_a_documented_exception() -> None:
    done = fuzz("--cases", "200")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 cases, 0 failures" in done.stdout


def test_every_public_function_is_fuzzed() -> None:
    targets = set(re.findall(r'^    "(\w+)": ', (FUZZING / "targets.py").read_text(), re.MULTILINE))
    public = {
        name
        for name, thing in vars(ruzhash_cv).items()
        if inspect.isfunction(thing) or (inspect.isclass(thing) and name.endswith("Forest"))
    }
    # A method of what filter_points returns, and some of the paper's functions.
    assert {name for name in targets if not hasattr(paper, name)} == public | {"camera_pose"}
