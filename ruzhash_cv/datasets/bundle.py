"""Render the pairs that ship with the package: ``python -m ruzhash_cv.datasets.bundle --write data``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ruzhash_cv.datasets.pairs import BUILDERS, render_pair, save_pair


def main() -> None:
    """Render the bundled pairs from their seeds."""
    parser = argparse.ArgumentParser(prog="python -m ruzhash_cv.datasets.bundle", description=main.__doc__)
    parser.add_argument("--write", metavar="DIR", type=Path, required=True, help="folder to write to")
    folder = parser.parse_args().write
    for name, build in BUILDERS.items():
        save_pair(render_pair(build(), name=name), folder)


if __name__ == "__main__":
    main()
