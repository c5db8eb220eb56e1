"""``ruzhash-cv colmap`` and ``ruzhash-cv hloc``: filter matches in the files of other programs."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from ruzhash_cv.cli.common import (
    MOST_JOBS,
    Commands,
    InputError,
    add_filtering_options,
    count,
    false_alarms,
    file,
    number,
    say,
)
from ruzhash_cv.pipelines.colmap import verify
from ruzhash_cv.pipelines.hloc import filter_matches
from ruzhash_cv.pipelines.selection import LEAST_EVIDENCE

#: Pairs whose reasons are printed if some could not be filtered.
MOST_SHOWN = 20
#: Options that are no arguments of the pipelines.
OWN_OPTIONS = ("run", "max_megapixels")


def add_parser(commands: Commands) -> None:
    """Add both commands to the command line."""
    parser = commands.add_parser(
        "colmap",
        help="filter the matches of a COLMAP database in place",
        description="Filter the matches of a COLMAP database in place, instead of COLMAP's geometric verification.",
    )
    parser.add_argument("database", type=file, metavar="DATABASE", help="COLMAP's database, e.g. database.db")
    parser.add_argument(
        "--min-inliers", type=count, default=15, metavar="N", help="leave out pairs with fewer, default 15"
    )
    parser.add_argument(
        "--calibrated", action=argparse.BooleanOptionalAction, default=None,
        help="take the cameras of the database as known, or read none; default: those whose focal length is a prior",
    )  # fmt: skip
    _add_common(parser, verify)

    parser = commands.add_parser(
        "hloc",
        help="filter the matches hloc wrote",
        description="Filter the matches hloc wrote into a new file, which hloc's reconstruction reads.",
    )
    for name, text in (("features_h5", "features.h5"), ("matches_h5", "matches.h5"), ("pairs", "pairs.txt")):
        metavar = name.partition("_")[0].upper()
        parser.add_argument(name, type=file, metavar=metavar, help=f"what hloc wrote, e.g. {text}")
    parser.add_argument("output", type=file, metavar="OUTPUT", help="a new file of the same layout as MATCHES")
    words = "a COLMAP model whose cameras are known, to undistort by"
    parser.add_argument("--reconstruction", type=file, metavar="DIR", help=words)
    _add_common(parser, filter_matches)


def _add_common(parser: argparse.ArgumentParser, pipeline: Callable[..., Any]) -> None:
    add_filtering_options(parser)
    parser.add_argument(
        "--n-jobs", type=number("a whole number above 0", MOST_JOBS, int), default=-1, metavar="N",
        help="processes, default one for each processor; the result is the same",
    )  # fmt: skip
    parser.add_argument(
        "--batch-size", type=count, default=100, metavar="N", help="pairs a task and a transaction, default 100"
    )
    parser.add_argument(
        "--all-structures", action="store_false", dest="strongest_motion",
        help="keep all motions; default: the strongest, as mapping needs",
    )  # fmt: skip
    parser.add_argument(
        "--least-evidence", type=number("a number from 0 on", least=0), default=LEAST_EVIDENCE, metavar="E",
        help=f"leave out pairs with less evidence, default {LEAST_EVIDENCE:g}; 100 also leaves out many that only look alike",
    )  # fmt: skip
    parser.add_argument(
        "--false-alarms", type=false_alarms, dest="least_evidence", default=argparse.SUPPRESS, metavar="RATE",
        help="in place of --least-evidence: the share of unrelated pairs to take for related, e.g. 1e-3",
    )  # fmt: skip
    parser.add_argument("--overwrite", action="store_true", help="replace what is there already")
    parser.add_argument("--report", type=file, metavar="FILE", help="write a row for every pair, e.g. report.csv")
    parser.add_argument(
        "--html", type=file, metavar="DIR",
        help="write DIR/index.html, a table of the pairs with a page for each, for any browser; needs the extra html",
    )  # fmt: skip
    parser.add_argument("--images", type=file, metavar="DIR", help="folder of the photographs, which --html shows")
    parser.set_defaults(run=partial(_run, pipeline))


def _run(pipeline: Callable[..., Any], options: argparse.Namespace) -> None:
    """Call a pipeline with the options, which go by the names of its arguments, and print its summary."""
    if options.images is not None and options.html is None:
        raise InputError("--images is what the pages of --html show, and there is no --html")
    done = pipeline(**{name: value for name, value in vars(options).items() if name not in OWN_OPTIONS})
    if done.pairs == 0:
        say(f"nothing to do: all {done.skipped} pairs have a two-view geometry already; --overwrite filters them again")
    for name in ("pairs", "skipped", "kept", "matches", "inliers"):
        print(f"{name:7} {getattr(done, name)}")
    print(f"seconds {done.seconds:.1f}\nrate    {done.pairs / max(done.seconds, 1e-9):.1f} pairs/s")
    if done.not_shown:
        say(f"{len(done.not_shown)} photographs are not shown: {next(iter(done.not_shown.values()))}")
    for names, reason in islice(done.left_out.items(), MOST_SHOWN):
        say(f"left out {' and '.join(names)}: {reason}")
    if done.left_out:
        raise InputError(f"{len(done.left_out)} of {done.pairs} pairs are left out")
