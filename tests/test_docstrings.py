"""numpydoc sections name the arguments and fields that there are, and the examples in docstrings run."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
from typing import Any

import numpy as np
import pytest

import ruzhash_cv
from ruzhash_cv import datasets, models, paper

NAMES = [(room, name) for room in (ruzhash_cv, datasets) for name in dir(room) if not name.startswith("_")]
PUBLIC = {name: getattr(room, name) for room, name in NAMES if callable(getattr(room, name))}
PUBLIC |= {thing.__name__: thing for thing in (models.transfer_error, models.sampson_distance, paper.ruzhash)}
RECORDS = {name: thing for name, thing in PUBLIC.items() if dataclasses.is_dataclass(thing)}
FUNCTIONS = {name: thing for name, thing in PUBLIC.items() if inspect.isfunction(thing)}
MODULES = [module.name for module in pkgutil.walk_packages(ruzhash_cv.__path__, "ruzhash_cv.")]


def sections(thing: Any) -> dict[str, str]:
    """Return the sections of a docstring by their titles."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def named(section: str) -> list[str]:
    """Return the names before the colons, `a, b : type` as two; a line of names alone refers to another docstring."""
    heads = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", section, re.MULTILINE)
    return [name for head in heads for name in re.split(r", *", head)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_name_every_argument_and_say_what_they_return(name: str) -> None:
    listed = named(sections(FUNCTIONS[name]).get("Parameters", ""))
    assert sorted(listed) == sorted(inspect.signature(FUNCTIONS[name]).parameters)
    first_line = (inspect.getdoc(FUNCTIONS[name]) or "").partition("\n")[0]
    assert "Returns" in sections(FUNCTIONS[name]) or first_line.startswith("Return ")


def test_what_looks_up_matches_raises_an_index_error() -> None:
    """Others that do have no such section, but refer to one of these."""
    looking_up = [
        thing for thing in FUNCTIONS.values() if {"matches", "ratio"} <= {*inspect.signature(thing).parameters}
    ]
    raised = [sections(thing)["Raises"] for thing in looking_up if "Raises" in sections(thing)]
    assert len(raised) >= 5
    assert all("IndexError" in section for section in raised)


@pytest.mark.parametrize("name", RECORDS)
def test_attributes_sections_name_every_field(name: str) -> None:
    """A public base's fields need not be listed again."""
    bases = [base for base in RECORDS[name].__bases__ if base in RECORDS.values()]
    explained = {field.name for base in bases for field in dataclasses.fields(base)}
    own = {field.name for field in dataclasses.fields(RECORDS[name]) if not field.name.startswith("_")} - explained
    assert sorted(named(sections(RECORDS[name])["Attributes"])) == sorted(own)


def test_public_methods_of_the_forest_are_described() -> None:
    methods = dict(inspect.getmembers(paper.RuzHashForest, inspect.isfunction))
    assert [name for name, method in methods.items() if not name.startswith("_") and not method.__doc__] == []


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    options = {"extraglobs": {"np": np}, "optionflags": doctest.NORMALIZE_WHITESPACE}
    assert doctest.testmod(importlib.import_module(name), **options).failed == 0
