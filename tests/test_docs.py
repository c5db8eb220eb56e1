"""The site says what there is; `.ci/run` builds it."""

import importlib
import inspect
import re
import types
from dataclasses import fields
from pathlib import Path

import pytest

import ruzhash_cv
from ruzhash_cv import datasets, models, paper, pipelines, sklearn
from ruzhash_cv.core import method
from ruzhash_cv.core.method.parameters import Parameters
from ruzhash_cv.pipelines import colmap, hloc

DOCS = Path(__file__).resolve().parents[1] / "docs"
API = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in ("api.rst", "api_parts.rst"))


def listed(room: str) -> set[str]:
    """Return the names under a `currentmodule` of the API pages."""
    parts = re.split(r"^\.\. currentmodule:: (.+)$", API, flags=re.MULTILINE)
    texts = [text for module, text in zip(parts[1::2], parts[2::2], strict=True) if module == room]
    return {name for text in texts for name in re.findall(r"^   (\w+)$", text, re.MULTILINE)}


def public(room: types.ModuleType) -> set[str]:
    """Return functions and classes of a room: of packages what they import, of modules what they define or export."""
    names = [name for name in dir(room) if not name.startswith("_") and callable(getattr(room, name))]
    if not hasattr(room, "__path__"):
        exported = re.findall(r"import (\w+) as \1$", inspect.getsource(room), re.MULTILINE)
        names = [name for name in names if inspect.getmodule(getattr(room, name)) is room or name in exported]
    return set(names)


ROOMS = [ruzhash_cv, pipelines, colmap, hloc, models, datasets, paper, sklearn]


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_api_pages_list_every_public_name(room: types.ModuleType) -> None:
    assert listed(room.__name__) == public(room)


def test_page_of_numbers_lists_every_number() -> None:
    """`benchmarks/evaluate_ablation.py --numbers` prints it."""
    text = (DOCS / "numbers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|", text, re.MULTILINE)
    numbers = []
    for field in (each for each in fields(Parameters) if each.metadata):  # the others are a caller's
        values = field.default if isinstance(field.default, tuple) else (field.default,)
        numbers.append((field.name, ", ".join(f"{value:g}" for value in values), field.metadata["meaning"]))
    assert rows == numbers


STAGES = [f"core.method.{path.stem}" for path in sorted(Path(str(method.__file__)).parent.glob("[a-z]*.py"))]
#: Modules of the package that have numbers, too; the page goes by their last names.
EDGES = ["opencv", "filtering", *(f"results.{name}" for name in ("pose", "uncertainty", "focal", "reasons", "result"))]
NUMBERED = {module.rpartition(".")[2]: module for module in [*STAGES, *EDGES]}
#: Guards against overflow and rounding, codes, and what costs only time.
NO_NUMBERS = {"MORE_THAN_HALF", "_BLOCK", "_SOME", "_LARGEST_SIZE", "_WHOLE", "_WIDTH", "_NO_GROUP", "_SEED", "_STEP"}


def constants(room: str) -> dict[str, float]:
    """Return the numbers that a module of the package defines by name."""
    module = importlib.import_module(f"ruzhash_cv.{room}")
    lines = re.findall(r"^([A-Z_]+(?:, [A-Z_]+)*)(?:: .+?)? = ", inspect.getsource(module), re.MULTILINE)
    names = [name for line in lines for name in line.split(", ") if isinstance(getattr(module, name), int | float)]
    return {name: getattr(module, name) for name in names}


def test_page_of_numbers_has_the_constants_of_all_modules_and_their_values() -> None:
    """Compiled kernels do not show theirs."""
    text, on_page = (
        (DOCS / "numbers.md").read_text(encoding="utf-8").partition("## Constants")[2],
        dict[str, set[str]](),
    )
    for first, others, values in re.findall(r"^\| `([\w.]+)`((?:, `\w+`)*) \| (.*?) \|", text, re.MULTILINE):
        room, _, name = first.rpartition(".")
        room = NUMBERED.get(room, room)
        names = [name, *re.findall(r"\w+", others)]
        on_page.setdefault(room, set()).update(names)
        if not room.startswith("core.kernels"):
            numbers = [float(value) for value in re.findall(r"[\d.]+", values.replace("100,000", "100000"))]
            assert [constants(room)[each] for each in names] == pytest.approx(numbers, rel=1e-3), room
    for room in NUMBERED.values():
        assert set(constants(room)) - NO_NUMBERS == on_page.get(room, set()), room
