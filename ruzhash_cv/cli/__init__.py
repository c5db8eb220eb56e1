"""The command line, one module a command.

Tables go to stdout, messages to stderr. Exit status 2 and one line on stderr where the input is no good.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ruzhash_cv import __version__
from ruzhash_cv.cli import colmap, demo, filter, hloc, pairs, warmup
from ruzhash_cv.cli.common import InputError, Parser

#: Each module has `add_parser(commands)`, which sets the function that runs its command as the parser's default `run`.
COMMANDS = (demo, filter, pairs, colmap, hloc, warmup)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, or 2 for input that cannot be used.

    `arguments` come without the program's name; None: those of the process.

    >>> main(["filter", "no_such_file.jpg", "neither.jpg"])
    2
    """
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except InputError as error:
        print(f"ruzhash-cv: error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> Parser:
    parser = Parser(prog="ruzhash-cv", description="Outlier rejection for keypoint matches.")
    parser.add_argument("--version", action="version", version=f"ruzhash-cv {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
