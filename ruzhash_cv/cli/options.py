"""Options that the commands for whole pipelines share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ruzhash_cv.cli.common import InputError, Parser, number
from ruzhash_cv.cli.filter import MODELS
from ruzhash_cv.pipelines.hosts import UnusableFile


def add_pipeline_options(parser: Parser) -> None:
    """Add what every pipeline takes."""
    count = number("a whole number above 0", convert=int)
    parser.add_argument("--model", choices=MODELS, default="auto")
    parser.add_argument(
        "--threshold", type=number("a number above 0"), metavar="PIXELS", help="default: as the matches ask for"
    )
    parser.add_argument(
        "--all-structures", action="store_true", help="keep all motions; default: the strongest, as mapping needs"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what is there already")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--n-jobs", type=count, metavar="N", help="processes, default: one for each processor")
    parser.add_argument("--batch-size", type=count, default=100, metavar="N", help="pairs a task and a transaction")


def pipeline_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the keyword arguments these options stand for."""
    return {
        "model": options.model,
        "threshold": options.threshold,
        "strongest_motion": not options.all_structures,
        "overwrite": options.overwrite,
        "rng": options.seed,
        "n_jobs": options.n_jobs or -1,
        "batch_size": options.batch_size,
    }


@contextmanager
def one_line() -> Iterator[None]:
    """Turn what a pipeline says about its files and hosts into one line for the user."""
    try:
        yield
    except (UnusableFile, ImportError) as error:
        raise InputError(str(error)) from None
