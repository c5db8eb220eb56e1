"""Parse and render the conda recipe with rattler-build's own code: ``pip install py-rattler-build && python conda/check.py``."""

from __future__ import annotations

from pathlib import Path

from rattler_build import Stage0Recipe

rendered = Stage0Recipe.from_file(Path(__file__).with_name("recipe.yaml")).render()
for variant in rendered:
    package = variant.recipe.package
    print(f"{package.name} {package.version}: the recipe is valid")
