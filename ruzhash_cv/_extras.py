"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ruzhash_cv._interrupts import interrupts_held


def host(package: str, extra: str) -> Any:
    """Import an optional package; the error names the `extra` that installs it."""
    try:
        with interrupts_held():  # Ctrl-C within an extension module may come out as an ImportError
            return import_module(package)
    except ImportError:
        name = package.partition(".")[0]
        raise ImportError(f'this needs {name}: pip install "ruzhash-cv[{extra}]"', name=name) from None
