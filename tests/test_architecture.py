"""The rooms of the package and the direction of the arrows between them, read from its import statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "ruzhash_cv"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

# A room, a module or a folder, may import from the rooms before it and from the foundation (names with a leading underscore),
# never from one after it. Rooms that do not exist yet may stand here; a new room has to be given its place.
ORDER = (
    "matchset",
    "keypoints",
    "correspondences",
    "sampling",
    "preferences",
    "families",
    "forests",
    "structures",
    "verdict",
    "printing",
    "pose",
    "result",
    "motions",
    "filtering",
    "estimation",
    "drawing",
    "datasets",
    "paper",
    "warmup",
    "pipelines",
    "cli",
)
# Within the room of families: what all share, one class each, and what works with any of them.
FAMILIES = ("protocol", "two_view", "solving")
# OpenCV's own robust estimators: what this package replaces. Only the command line may call them, to compare.
ROBUST_ESTIMATORS = ("RANSAC", "USAC", "LMEDS", "RHO", "MAGSAC", "PROSAC", "findHomography", "estimateAffine")
HEAVY_AND_RARELY_NEEDED = ("matplotlib", "pooch", "tqdm")


def modules(root: Path) -> dict[str, ast.Module]:
    """Return the parsed modules by dotted name; a package goes by its folder's name."""
    parsed = {}
    for path in sorted(root.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(root).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        parsed[name] = ast.parse(path.read_text(encoding="utf-8"), str(path))
    return parsed


def imported(tree: ast.AST, known: set[str]) -> Iterator[str]:
    """Yield what a module imports anywhere in it; `from package import module` counts as the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here, so that a reader can search for them"
            source = str(node.module)
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                yield submodule if submodule in known else source


def graph(parsed: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return for each module which others of the package it imports."""
    known = set(parsed)
    return {name: {other for other in imported(tree, known) if other in known} for name, tree in parsed.items()}


def room(module: str) -> str:
    """Return the first name below the package, "" for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def arrows_against_the_order(parsed: dict[str, ast.Module]) -> list[str]:
    """Return the imports that point the wrong way, as readable lines."""
    wrong = []
    for module, others in graph(parsed).items():
        for other in others:
            here, there = room(module), room(other)
            if here in ("", "_api") or here == there or (there.startswith("_") and there != ""):
                continue
            if here == "__main__" and there == ORDER[-1]:
                continue
            if there == "" and here == ORDER[-1]:  # the command line asks for the version
                continue
            if here.startswith("_") or there == "" or ORDER.index(there) > ORDER.index(here):
                wrong.append(f"{module} imports {other}")
    return wrong


def families_against_the_order(parsed: dict[str, ast.Module]) -> list[str]:
    """Return the imports between modules of families that point the wrong way; the folder itself only collects them."""
    wrong = []
    for module, others in graph(parsed).items():
        for other in others:
            here, there = (name.removeprefix(f"{PACKAGE}.families").removeprefix(".") for name in (module, other))
            inside = room(module) == room(other) == "families" and here != ""
            if inside and (there == "" or FAMILIES.index(there) >= FAMILIES.index(here)):
                wrong.append(f"{module} imports {other}")
    return wrong


def users_of(name: str, parsed: dict[str, ast.Module]) -> set[str]:
    """Return the modules outside a room that import from it."""
    return {module for module, others in graph(parsed).items() if room(module) != name and name in map(room, others)}


def first_cycle(parsed: dict[str, ast.Module]) -> list[str]:
    """Return the modules of a cycle of imports, [] if there is none."""
    try:
        TopologicalSorter(graph(parsed)).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imports_from(tree: ast.AST, names: tuple[str, ...]) -> set[str]:
    return {name for name in imported(tree, set()) if name.partition(".")[0] in names}


@pytest.fixture(scope="module")
def parsed() -> dict[str, ast.Module]:
    return modules(ROOT)


def test_every_room_has_its_place_in_the_order(parsed: dict[str, ast.Module]) -> None:
    rooms = {room(module) for module in parsed if not room(module).startswith("_")} - {""}
    unplaced = sorted(rooms - set(ORDER))
    assert not unplaced, f"give {unplaced} a place in ORDER at the top of this file"
    assert len(set(ORDER)) == len(ORDER)


def test_imports_point_one_way(parsed: dict[str, ast.Module]) -> None:
    assert arrows_against_the_order(parsed) == []


def test_families_know_nothing_of_each_other_but_what_they_share(parsed: dict[str, ast.Module]) -> None:
    assert families_against_the_order(parsed) == []
    home = parsed[f"{PACKAGE}.families.two_view"]
    classes = {node.name: node for node in home.body if isinstance(node, ast.ClassDef)}
    assert len(classes) == 2
    for name, tree in classes.items():
        assert {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} & classes.keys() == set(), name


def test_nothing_imports_the_paper_s_room(parsed: dict[str, ast.Module]) -> None:
    assert users_of("paper", parsed) == set()


def test_no_stage_asks_which_family_it_holds(parsed: dict[str, ast.Module]) -> None:
    """The method knows families by their members alone: the classes are named where names are looked up, and by the paper."""
    classes = {"Homographies", "FundamentalMatrices"}
    for name, tree in parsed.items():
        if room(name) in ("families", "paper"):
            continue
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        assert names & classes == set(), name


def test_imports_have_no_cycle(parsed: dict[str, ast.Module]) -> None:
    assert first_cycle(parsed) == []


def test_only_the_module_of_kernels_imports_numba(parsed: dict[str, ast.Module]) -> None:
    users = [name for name, tree in parsed.items() if imports_from(tree, ("numba",))]
    assert users == [f"{PACKAGE}._kernels"]


def test_modules_with_kernels_know_no_pictures_and_opencv_only_as_a_solver(parsed: dict[str, ast.Module]) -> None:
    for name, tree in parsed.items():
        if f"{PACKAGE}._kernels" in imported(tree, set(parsed)):
            foreign = HEAVY_AND_RARELY_NEEDED if room(name) == "families" else ("cv2", *HEAVY_AND_RARELY_NEEDED)
            assert imports_from(tree, foreign) == set(), name


def test_opencv_s_robust_estimators_are_called_for_comparison_only(parsed: dict[str, ast.Module]) -> None:
    for name, tree in parsed.items():
        if room(name) == "cli":
            continue
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        called = {attribute for attribute in attributes if any(word in attribute for word in ROBUST_ESTIMATORS)}
        assert called == set(), name


def test_heavy_libraries_are_imported_where_they_are_used(parsed: dict[str, ast.Module]) -> None:
    for name, tree in parsed.items():
        at_the_top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
        assert imports_from(at_the_top, HEAVY_AND_RARELY_NEEDED) == set(), name


# The checks themselves


def package(root: Path, **sources: str) -> dict[str, ast.Module]:
    for name, source in {"__init__": "", **sources}.items():
        (root / f"{name}.py").write_text(source)
    return modules(root)


@pytest.mark.parametrize(
    "source",
    [
        "from ruzhash_cv.forests import fit",
        "from ruzhash_cv import forests",
        "import ruzhash_cv.forests",
        "def late():\n    from ruzhash_cv.forests import fit",
    ],
)
def test_an_arrow_against_the_order_is_found(tmp_path: Path, source: str) -> None:
    parsed = package(tmp_path, sampling=source, forests="")
    assert arrows_against_the_order(parsed) == ["ruzhash_cv.sampling imports ruzhash_cv.forests"]


@pytest.mark.parametrize(
    ("module", "source"),
    [("_kernels", "from ruzhash_cv.families import fit"), ("families", "from ruzhash_cv import filter_points")],
)
def test_foundation_and_rooms_do_not_lean_on_what_stands_on_them(tmp_path: Path, module: str, source: str) -> None:
    assert len(arrows_against_the_order(package(tmp_path, **{"families": "", module: source}))) == 1


def test_an_arrow_along_the_order_is_allowed(tmp_path: Path) -> None:
    parsed = package(
        tmp_path,
        __init__="from ruzhash_cv._api import fit",
        _api="from ruzhash_cv.forests import fit",
        _kernels="import numba",
        sampling="from ruzhash_cv._kernels import jit",
        forests="from ruzhash_cv.sampling import draw",
    )
    assert arrows_against_the_order(parsed) == []


def test_a_cycle_is_found(tmp_path: Path) -> None:
    parsed = package(tmp_path, families="import ruzhash_cv.forests", forests="from ruzhash_cv.families import fit")
    assert set(first_cycle(parsed)) == {"ruzhash_cv.families", "ruzhash_cv.forests"}
