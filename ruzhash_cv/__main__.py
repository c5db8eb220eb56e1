"""The command line, as ``ruzhash-cv`` and as ``python -m ruzhash_cv``."""

import signal
import sys

from ruzhash_cv.foundation.interrupts import interrupts_held


def main() -> int:
    """Import the command line and run it. Ctrl-C is quiet, also while modules are imported and while Python ends."""
    try:
        with interrupts_held():
            from ruzhash_cv.cli import main as run
        return run()
    except KeyboardInterrupt:
        return 130  # as of programs that end by SIGINT
    finally:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    sys.exit(main())
