"""The command line, as ``ruzhash-cv`` and as ``python -m ruzhash_cv``."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Import the command line and run it; Ctrl-C is quiet from the start."""
    quiet()
    from ruzhash_cv.cli import main as run

    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return run()
    finally:
        quiet()  # while Python ends


def quiet() -> None:
    """Let Ctrl-C end the process without a word, unless it is ignored, as by a shell's background jobs.

    An exception would be raised in whatever module is being imported, which may catch it or show it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(number: int, frame: FrameType | None) -> None:
    os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
