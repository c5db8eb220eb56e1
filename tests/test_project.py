"""Files around the package agree with it: the conda recipe, the workflow, what the documents promise."""

import re
from pathlib import Path

import pytest

import ruzhash_cv

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
RECIPE = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
#: What conda-forge calls a wheel, and as exact as it numbers it.
CONDA = {"opencv-python>=4.10.0.84": "py-opencv>=4.10"}


def test_the_conda_recipe_has_the_version_and_the_dependencies_of_the_package() -> None:
    for key, section, others in (("dependencies", "run", ["python"]), ("requires", "host", ["python", "pip"])):
        listed = re.search(rf"^{key} = \[(.*?)\]$", PYPROJECT, re.DOTALL | re.MULTILINE)
        wanted = [CONDA.get(each, each) for each in re.findall(r'"(.*?)"', listed[1])]
        listing = re.search(rf"^  {section}:\n((?:    .*\n)*)", RECIPE, re.MULTILINE)
        found = [line.replace(" ", "") for line in re.findall(r"^    - (.*)$", listing[1], re.MULTILINE)]
        assert sorted(found) == sorted([*others, *wanted])
    assert f'version: "{ruzhash_cv.__version__}"' in RECIPE


def test_workflow_runs_the_script_of_contributors() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert re.findall(r"run: (.*)", workflow) == ["bash .ci/run"]
    extras = re.findall(r"\.\[([\w,]+)\]", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))[0]
    for extra in extras.split(","):
        assert re.search(rf"^{extra} = \[", PYPROJECT, re.MULTILINE), extra


def test_wheels_are_built_for_every_python_of_the_classifiers() -> None:
    listed = re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', PYPROJECT)
    assert re.findall(r'"cp3(\d+)-\*"', PYPROJECT) == listed
    assert len(listed) == 5


@pytest.mark.parametrize(
    ("document", "command"),
    [
        *(("README.md", of) for of in ("pip install . && ruzhash-cv demo", 'pip install -e ".[test]" && pytest')),
        *(("CONTRIBUTING.md", f"mypy --strict {of}") for of in ("-p ruzhash_cv", "examples/*/*.py")),
        ("CONTRIBUTING.md", "ruff check ."),
    ],
)
def test_ci_runs_the_commands_of_the_documents(document: str, command: str) -> None:
    assert command in (ROOT / document).read_text(encoding="utf-8")
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
