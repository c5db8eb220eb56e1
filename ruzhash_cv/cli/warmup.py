"""``ruzhash-cv warmup``: every kernel compiled now, so that no later call has to."""

from __future__ import annotations

import signal
import time

from ruzhash_cv._kernels import unkept
from ruzhash_cv.cli.common import Commands, say
from ruzhash_cv.warmup import warmup


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    words = "compile the kernels now, so that no later call has to"
    parser = commands.add_parser("warmup", help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.set_defaults(run=lambda options: prepare_kernels())


def prepare_kernels() -> None:
    """Compile all kernels that are not in the cache; Ctrl-C ends the process at once, as files of the cache are whole or not there."""
    since, handler = time.perf_counter(), signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        compiled = warmup()
    finally:
        if handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, handler)
    words = f", but they cannot be kept: {unkept[0]}" if unkept else ""
    say(f"kernels ready after {time.perf_counter() - since:.1f} s, {compiled} of them compiled{words}")
