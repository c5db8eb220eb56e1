"""Shared fixtures: the real data, where it is present."""

import functools
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import matplotlib
import pytest

from ruzhash_cv.datasets import ADELAIDERMF_NAMES, AdelaideScene, fetch_adelaidermf

matplotlib.use("Agg")

_BESIDE_THE_REPOSITORY = Path(__file__).resolve().parents[1] / ".." / "shared" / "adelaidermf"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what is skipped in a line for each reason, before pytest's last line, which counts."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.getreports("skipped"))
    for reason, number in reasons.most_common():
        terminalreporter.write_line(f"{number} skipped: {reason.removeprefix('Skipped: ')}")


@pytest.fixture(scope="session")
def adelaidermf_home() -> Path:
    """Directory of the AdelaideRMF files; tests that ask for it skip where there is none."""
    home = Path(os.environ.get("RUZHASH_CV_DATA") or _BESIDE_THE_REPOSITORY)
    if not (home / f"{ADELAIDERMF_NAMES[0]}.mat").is_file():
        pytest.skip(f"AdelaideRMF is not in {home}: set RUZHASH_CV_DATA to the directory that holds it")
    return home


@pytest.fixture(scope="session")
def scene(adelaidermf_home: Path) -> Callable[[str], AdelaideScene]:
    """``scene(name)`` loads an AdelaideRMF scene, once per session. Do not write to its arrays."""
    return functools.cache(lambda name: fetch_adelaidermf(name, data_home=adelaidermf_home))
