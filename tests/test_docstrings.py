"""numpydoc sections name the arguments that there are, in their order; methods too."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
import rendering

import ruzhash_cv
from ruzhash_cv import datasets

PUBLIC = {
    name: thing for room in (ruzhash_cv, datasets, rendering) for name, thing in vars(room).items() if callable(thing)
}


def sections(documentation: str) -> dict[str, str]:
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", documentation, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def named(section: str) -> list[str]:
    """Return the names before the colons, `a, b : type` as two; a line of names alone refers to another docstring."""
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", section, re.MULTILINE)
    return [name for head in heads for name in re.split(r", *", head)]


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, thing in PUBLIC.items():
        if not inspect.isclass(thing) or (not issubclass(thing, Exception) and not is_dataclass(thing)):
            yield name, thing


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_sections_match_the_signature(name: str) -> None:
    parts = sections(inspect.getdoc(FUNCTIONS[name]) or "")
    parameters = list(inspect.signature(FUNCTIONS[name]).parameters)
    if "Parameters" in parts:
        assert sorted(named(parts["Parameters"])) == sorted(parameters)
    else:
        assert "see `" in (inspect.getdoc(FUNCTIONS[name]) or "")


@pytest.mark.parametrize("name", [name for name, thing in FUNCTIONS.items() if not inspect.isclass(thing)])
def test_functions_say_what_they_return(name: str) -> None:
    documentation = inspect.getdoc(FUNCTIONS[name]) or ""
    assert "Returns" in sections(documentation) or documentation.startswith("Return")


@pytest.mark.parametrize("name", [name for name, thing in PUBLIC.items() if is_dataclass(thing)])
def test_attributes_sections_match_the_fields(name: str) -> None:
    listed = named(sections(inspect.getdoc(PUBLIC[name]) or "")["Attributes"])
    # What a public base explains need not be said again.
    explained = {field.name for base in PUBLIC[name].__bases__ if base.__name__ in PUBLIC for field in fields(base)}
    named_here = {field.name for field in fields(PUBLIC[name]) if not field.name.startswith("_")} - explained
    assert sorted(listed) == sorted(named_here)


def test_public_methods_of_the_forest_are_described() -> None:
    for name, method in inspect.getmembers(ruzhash_cv.RuzHashForest, inspect.isfunction):
        assert name.startswith("_") or method.__doc__, name


ROOMS = (ruzhash_cv, rendering)
MODULES = [module.name for room in ROOMS for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = importlib.import_module(name)
    results = doctest.testmod(module, extraglobs={"np": np}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0
