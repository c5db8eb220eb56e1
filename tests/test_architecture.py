"""The rooms of the package and the direction of the imports between them, read from its source."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = "ruzhash_cv"
ROOT = Path(__file__).resolve().parents[1] / PACKAGE

# A room may import from the rooms before it. Rooms are folders; the modules at the package's root are the functions that users call.
# A new room has to be given its place.
ORDER = (
    "foundation",
    "core.kernels",
    "core.families",
    "core.forests",
    "core.method",
    "input",
    "results",
    "filtering",
    "opencv",
    "structures",
    "models",
    "drawing",
    "report",
    "datasets",
    "paper",
    "sklearn",
    "pipelines",
    "cli",
    "__main__",
)
# Within the room of the method: each stage may import those before it.
STAGES = (
    "parameters",
    "matches",
    "sides",
    "sampling",
    "preferences",
    "scene",
    "fits",
    "bending",
    "evidence",
    "scores",
    "opacity",
    "competition",
    "search",
    "law",
    "proofs",
    "motions",
    "surfaces",
    "estimate",
)
# Within the room of models: each of these knows those before it at most.
FAMILIES = ("weighting", "linear", "base", "transfer", "sampson", "rounds", "planes", "five_points", "epipolar")
# OpenCV's own robust estimators, which this package replaces. Only the command line calls them, to compare.
ROBUST_ESTIMATORS = ("RANSAC", "USAC", "LMEDS", "RHO", "MAGSAC", "PROSAC", "findHomography", "estimateAffine")
# Packages whose arrays or data are taken without importing them; one module is scikit-learn's.
HOSTS = {"hloc", "kornia", "skimage", "sklearn", "torch"}
HEAVY_AND_RARELY_NEEDED = ("matplotlib", "pooch", "tqdm")
# Lines of Python at most. A change that makes a part smaller lowers its figure; one that needs more raises it and says why.
MOST_LINES = {
    "package": 16_770,
    "core": 8_144,
    "tests": 13_615,
    "benchmarks": 7_061,
    "tests of benchmarks": 1_221,
}


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
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                yield submodule if submodule in known else str(node.module)


def graph(parsed: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return for each module which others of the package it imports."""
    known = set(parsed)
    return {name: {other for other in imported(tree, known) if other in known} for name, tree in parsed.items()}


def room(module: str) -> str:
    """Return the first name below the package, "" for the package itself; of the core the first two."""
    _, *names = module.split(".")
    return ".".join(names[:2] if names[:1] == ["core"] else names[:1])


def against_the_order(parsed: dict[str, ast.Module]) -> list[str]:
    """Return the imports between rooms that point the wrong way, as readable lines."""
    wrong = []
    for module, others in graph(parsed).items():
        for other in others:
            here, there = room(module), room(other)
            asks_for_version = (here, there) == ("cli", "")
            if here == there or here in ("", "_api") or asks_for_version:
                continue
            if here not in ORDER or there not in ORDER or ORDER.index(there) > ORDER.index(here):
                wrong.append(f"{module} imports {other}")
    return wrong


def imports_from(tree: ast.AST, names: tuple[str, ...]) -> set[str]:
    return {name for name in imported(tree, set()) if name.partition(".")[0] in names}


@pytest.fixture(scope="module")
def parsed() -> dict[str, ast.Module]:
    return modules(ROOT)


def lines_of(part: str) -> int:
    """Return how many lines of Python a part of `MOST_LINES` has."""
    folder = {"package": PACKAGE, "core": f"{PACKAGE}/core", "tests of benchmarks": "benchmarks/tests"}.get(part, part)
    paths = set((ROOT.parent / folder).rglob("*.py"))
    if part == "benchmarks":
        paths -= set((ROOT.parent / "benchmarks" / "tests").rglob("*.py"))
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


@pytest.mark.parametrize("part", MOST_LINES)
def test_no_part_grows_unnoticed(part: str) -> None:
    assert lines_of(part) <= MOST_LINES[part]


def test_every_room_has_its_place_in_the_order(parsed: dict[str, ast.Module]) -> None:
    assert {room(module) for module in parsed} - {"", "core", "_api"} == set(ORDER)


def test_imports_point_one_way(parsed: dict[str, ast.Module]) -> None:
    assert against_the_order(parsed) == []


def test_imports_have_no_cycle(parsed: dict[str, ast.Module]) -> None:
    in_order = list(TopologicalSorter(graph(parsed)).static_order())  # raises CycleError
    assert set(parsed) <= set(in_order)


def test_families_know_nothing_of_each_other_but_what_they_share(parsed: dict[str, ast.Module]) -> None:
    for module, others in graph(parsed).items():
        here = module.removeprefix(f"{PACKAGE}.core.families.")
        known = [other.removeprefix(f"{PACKAGE}.core.families.") for other in others if room(other) == "core.families"]
        if here in FAMILIES:
            assert set(known) <= set(FAMILIES[: FAMILIES.index(here)]), module
            assert not {"planes", "epipolar"} & set(known), module


def test_stages_know_those_before_them(parsed: dict[str, ast.Module]) -> None:
    of_method = {name: others for name, others in graph(parsed).items() if room(name) == "core.method"}
    stages = {module.rpartition(".")[2]: others for module, others in of_method.items()}
    assert stages.keys() == {"method", *STAGES}
    for here, others in stages.items():
        known = {other.removeprefix(f"{PACKAGE}.core.method.") for other in others if room(other) == "core.method"}
        assert known <= set(STAGES[: STAGES.index(here)] if here in STAGES else ()), here


def test_only_the_detector_of_scikit_learn_imports_scikit_learn(parsed: dict[str, ast.Module]) -> None:
    for name, tree in parsed.items():
        allowed = {"sklearn"} if room(name) == "sklearn" else set()
        assert {each.partition(".")[0] for each in imports_from(tree, tuple(HOSTS))} <= allowed, name


def test_no_stage_asks_which_family_it_holds(parsed: dict[str, ast.Module]) -> None:
    """Stages know families by their members alone."""
    for name, tree in parsed.items():
        if room(name) not in ("core.families", "models", "paper"):
            names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert names & {"Homographies", "FundamentalMatrices"} == set(), name


def test_only_kernels_import_cython(parsed: dict[str, ast.Module]) -> None:
    """And they import nothing else: their sources are compiled."""
    for name, tree in parsed.items():
        outside = {each.partition(".")[0] for each in imported(tree, set())} - {PACKAGE}
        is_kernel = name.startswith(f"{PACKAGE}.core.kernels.")
        assert outside == {"cython"} if is_kernel else "cython" not in outside, name


def test_no_call_of_opencv_s_robust_estimators_but_for_comparison(parsed: dict[str, ast.Module]) -> None:
    for name, tree in parsed.items():
        if room(name) != "cli":
            attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            assert [a for a in attributes if any(word in a for word in ROBUST_ESTIMATORS)] == [], name


def test_heavy_libraries_are_imported_where_they_are_used(parsed: dict[str, ast.Module]) -> None:
    for name, tree in parsed.items():
        at_the_top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
        assert imports_from(at_the_top, HEAVY_AND_RARELY_NEEDED) == set(), name
