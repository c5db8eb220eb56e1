"""Left the package."""

raise ImportError("ruzhash_cv.adapters.vismatch is gone: docs/recipes.md has the lines for vismatch")
