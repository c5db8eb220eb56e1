"""hloc and glue-factory are on no package index. `hosts` has as much of each as adapters touch; what is installed comes before it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "hosts"))

RECIPES = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")


@pytest.fixture
def recipe() -> Callable[[str], str]:
    """Return the only code of the recipes that holds some words."""

    def found(words: str) -> str:
        (code,) = [code for code in re.findall(r"```python\n(.*?)```", RECIPES, re.DOTALL) if words in code]
        return str(code)

    return found
