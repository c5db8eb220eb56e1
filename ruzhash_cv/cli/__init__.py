"""The command line, a module for each command, or for two that are alike.

Tables go to stdout, messages to stderr. Exit status 2 and one line on stderr if the input cannot be used.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from ruzhash_cv import __version__
from ruzhash_cv.cli import demo, filter, hosts
from ruzhash_cv.cli.common import InputError, Parser, complain
from ruzhash_cv.pipelines.files import UnusableFile
from ruzhash_cv.pipelines.pairs import WorkerKilled

#: Each module has `add_parser(commands)`, which sets the function that runs its command as the parser's default `run`.
COMMANDS = (demo, filter, hosts)
#: As of programs that end by SIGPIPE.
PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, or 2 for input that cannot be used.

    `arguments` come without the program's name; None: those of the process. Ctrl-C, SIGTERM and a pipe that its reader has closed
    end the command without a word, with the status 130, 143 and 141.

    >>> main(["filter", "no_such_file.jpg", "neither.jpg"])
    2
    """
    signals = [signal.SIGINT]
    _open_closed_output()
    try:
        with _terminated_as_interrupted(signals):
            _run(arguments)
            return 0
    except (InputError, UnusableFile, WorkerKilled, ImportError) as error:
        complain(str(error))
        return 2
    except KeyboardInterrupt:
        return 128 + signals[-1]
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:  # a full disk, for one
        _drop_output()
        complain(str(error))
        return 2


@contextlib.contextmanager
def _terminated_as_interrupted(signals: list[signal.Signals]) -> Iterator[None]:
    """Treat SIGTERM as Ctrl-C, which ends workers and removes unfinished files, and add it to `signals`."""

    def end(*_: object) -> None:
        signals.append(signal.SIGTERM)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)  # Ctrl-C waits for the end of calls that must not be interrupted

    try:
        before = signal.signal(signal.SIGTERM, end)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(arguments: Sequence[str] | None) -> None:
    try:
        options = _parser().parse_args(arguments)
        options.run(options)
    finally:
        # Written here, where an error can still be reported, and not at the end of the process.
        sys.stdout.flush()


def _open_closed_output() -> None:
    """Discard what is written to stdout or stderr if the process was started without it, `>&-`: Python has None in its place."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115  # it stays open


def _drop_output() -> None:
    """Discard what stdout still buffers."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> Parser:
    parser = Parser(prog="ruzhash-cv", description="Outlier rejection for keypoint matches.")
    parser.add_argument("--version", action="version", version=f"ruzhash-cv {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
