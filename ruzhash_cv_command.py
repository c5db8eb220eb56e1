"""The program ``ruzhash-cv``. It stands outside the package, so that Ctrl-C is quiet while the package is imported, too."""

import os
import signal
import sys


def main() -> int:
    """Import the command line and run it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a shell's background jobs ignore it
        # An exception would be raised in whatever module is being imported, which may catch it or show it.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from ruzhash_cv.cli import main as run

    signal.signal(signal.SIGINT, before)
    return run()


if __name__ == "__main__":
    sys.exit(main())
