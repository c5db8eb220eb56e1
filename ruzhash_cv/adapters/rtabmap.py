"""Left the package."""

raise ImportError("ruzhash_cv.adapters.rtabmap is gone: docs/recipes.md has the script for RTAB-Map")
