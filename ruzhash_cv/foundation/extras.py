"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def host(package: str, extra: str) -> Any:
    """Import an optional package; the error names the `extra` that installs it."""
    try:
        return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ImportError(f'this needs {name}: pip install "ruzhash-cv[{extra}]"', name=name) from None
