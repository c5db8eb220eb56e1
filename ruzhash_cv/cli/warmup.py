"""``ruzhash-cv warmup``: every kernel compiled now, so that no later call has to."""

from __future__ import annotations

import time

from ruzhash_cv._core.warmup import missing_kernels, warmup
from ruzhash_cv.cli.common import Commands, InputError, count, say


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    words = "compile the kernels now, so that no later call has to"
    parser = commands.add_parser("warmup", help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument(
        "--n-jobs", type=count, metavar="N", help="processes that compile, default one for each processor"
    )
    parser.set_defaults(run=lambda options: prepare_kernels(options.n_jobs))


def prepare_kernels(n_jobs: int | None = None) -> None:
    """Compile all kernels that are not in the cache."""
    since = time.perf_counter()
    missing = len(missing_kernels())
    if missing:
        say(f"compiling {missing} kernels, once after installation")
    try:
        warmup(n_jobs)
    except RuntimeError as error:
        raise InputError(str(error)) from None
    say(f"kernels ready after {time.perf_counter() - since:.1f} s")
