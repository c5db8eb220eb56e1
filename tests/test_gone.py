"""What left the package is named with what takes its place, wherever it is asked for."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import ruzhash_cv as rc
from ruzhash_cv import cli
from ruzhash_cv._gone import GONE
from ruzhash_cv.sklearn import PreferenceIsolationForest


def ask_for(name: str) -> object:
    """Do what needs a name of an earlier version."""
    owner, _, last = name.rpartition(".")
    if name.startswith("ruzhash-cv "):
        return cli.main([*name.split()[1:], "photos"])
    if name.startswith("family="):
        return PreferenceIsolationForest(name.split("'")[1]).fit(np.zeros((9, 2)))
    if owner == "ruzhash_cv.adapters":
        return importlib.import_module(name)
    return getattr(
        rc.filter_points([[0, 0]], [[0, 0]]) if owner == "FilterResult" else importlib.import_module(owner), last
    )


@pytest.mark.parametrize("name", GONE)
def test_a_name_that_left_says_in_one_line_what_takes_its_place(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        assert ask_for(name) == 2, "a command ends with status 2, anything else raises"
        said = capsys.readouterr().err
    except (AttributeError, ImportError, ValueError) as error:
        said = f"{error}\n"
    assert said.endswith(f"`{name}` is gone: {GONE[name]}\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize("owner", [rc, rc.datasets, rc.paper, rc.filter_points([[0, 0]], [[0, 0]])])
def test_any_other_name_is_missing(owner: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        owner.nonsense  # type: ignore[attr-defined]  # noqa: B018
