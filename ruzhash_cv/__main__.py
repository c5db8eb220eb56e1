"""The command line, as ``ruzhash-cv`` and as ``python -m ruzhash_cv``."""

import os
import re
import signal
import sys

from ruzhash_cv._interrupts import interrupts_held

#: OpenCV reads it when it is imported.
MOST_PIXELS = "OPENCV_IO_MAX_IMAGE_PIXELS"


def main() -> int:
    """Import the command line and run it. Ctrl-C is quiet, also while modules are imported and while Python ends."""
    _open_closed_streams()
    os.environ.setdefault(MOST_PIXELS, str(_most_pixels(sys.argv)))
    try:
        with interrupts_held():
            from ruzhash_cv.cli import main as run
        return run()
    except KeyboardInterrupt:
        return 130  # as of programs that end by SIGINT
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _most_pixels(arguments: list[str]) -> int:
    """Return how many pixels a picture may have: what the last --max-megapixels says, or 100 million."""
    given = re.findall(r"--max-megapixels[= ](\S+)", " ".join(arguments))
    try:
        return int(1e6 * float(given[-1]))
    except (IndexError, ValueError, OverflowError):  # the parser complains
        return 10**8


def _open_closed_streams() -> None:
    """Open streams that are closed, as by ``2>&-``: libraries and workers would write to whatever file gets the number.

    It comes before imports, because NumPy 2.0 cannot be imported as a whole without stderr.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
