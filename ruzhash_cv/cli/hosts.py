"""``ruzhash-cv colmap`` and ``ruzhash-cv hloc``: filter matches in the files of other programs."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any

from ruzhash_cv.cli.common import (
    FILTERING,
    MOST_JOBS,
    Commands,
    InputError,
    Options,
    add_options,
    count,
    file,
    number,
    say,
)
from ruzhash_cv.pipelines.colmap import verify
from ruzhash_cv.pipelines.hloc import filter_matches
from ruzhash_cv.results.result import DO_NOT_RECONSTRUCT

#: Pairs whose reasons are printed if some could not be filtered.
MOST_SHOWN = 20
#: joblib's resource tracker, another process, warns of the semaphores that an interrupted run leaves, and removes them.
QUIET = "ignore::UserWarning:joblib.externals.loky.backend.resource_tracker"

# fmt: off
COLMAP: Options = (
    ("database", "COLMAP's database, e.g. database.db", {"type": file, "metavar": "DATABASE"}),
    ("--min-inliers", "leave out pairs with fewer, default 15", {"type": count, "default": 15, "metavar": "N"}),
    ("--calibrated", "take the cameras of the database as known, or read none; default: those whose focal length is a prior",
     {"action": argparse.BooleanOptionalAction, "default": None}),
)
HLOC: Options = (
    ("features_h5", "what hloc wrote, e.g. features.h5", {"type": file, "metavar": "FEATURES"}),
    ("matches_h5", "what hloc wrote, e.g. matches.h5", {"type": file, "metavar": "MATCHES"}),
    ("pairs", "what hloc wrote, e.g. pairs.txt", {"type": file, "metavar": "PAIRS"}),
    ("output", "a new file of the same layout as MATCHES", {"type": file, "metavar": "OUTPUT"}),
    ("--reconstruction", "a COLMAP model whose cameras are known, to undistort by", {"type": file, "metavar": "DIR"}),
)
BOTH: Options = (
    ("--n-jobs", "processes, default one for each processor; the result is the same",
     {"type": number("a whole number above 0", MOST_JOBS, int), "default": -1, "metavar": "N"}),
    ("--batch-size", "pairs a task and a transaction, default 100", {"type": count, "default": 100, "metavar": "N"}),
    ("--all-structures", "keep all motions; default: the strongest, as mapping needs",
     {"action": "store_false", "dest": "strongest_motion"}),
    ("--least-evidence",
     f"leave out pairs with less evidence, default {DO_NOT_RECONSTRUCT:g}; 100 also leaves out many that only look alike",
     {"type": number("a number from 0 on", least=0), "default": DO_NOT_RECONSTRUCT, "metavar": "E"}),
    ("--overwrite", "replace what is there already", {"action": "store_true"}),
    ("--report", "write a row for every pair, e.g. report.csv", {"type": file, "metavar": "FILE"}),
    ("--html", "write DIR/index.html, a table of the pairs with a page for each, for any browser; needs the extra html",
     {"type": file, "metavar": "DIR"}),
    ("--images", "folder of the photographs, which --html shows", {"type": file, "metavar": "DIR"}),
)
HOSTS = (
    ("colmap", verify, COLMAP, "filter the matches of a COLMAP database in place",
     "Filter the matches of a COLMAP database in place, instead of COLMAP's geometric verification."),
    ("hloc", filter_matches, HLOC, "filter the matches hloc wrote",
     "Filter the matches hloc wrote into a new file, which hloc's reconstruction reads."),
)
# fmt: on


def add_parser(commands: Commands) -> None:
    """Add both commands to the command line."""
    for name, pipeline, options, words, description in HOSTS:
        parser = commands.add_parser(name, help=words, description=description)
        add_options(parser, (*options, *FILTERING, *BOTH))
        parser.set_defaults(run=partial(_run, pipeline))


def _run(pipeline: Callable[..., Any], options: argparse.Namespace) -> None:
    """Call a pipeline with the options, which go by the names of its arguments, and print its summary."""
    if options.images is not None and options.html is None:
        raise InputError("--images is what the pages of --html show, and there is no --html")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), QUIET)))
    done = pipeline(**{name: value for name, value in vars(options).items() if name != "run"})
    if done.pairs == 0:
        say(f"nothing to do: all {done.skipped} pairs have a two-view geometry already; --overwrite filters them again")
    for name in ("pairs", "skipped", "kept", "matches", "inliers"):
        print(f"{name:7} {getattr(done, name)}")
    print(f"seconds {done.seconds:.1f}\nrate    {done.pairs / max(done.seconds, 1e-9):.1f} pairs/s")
    if done.not_shown:
        say(f"{len(done.not_shown)} photographs are not shown: {next(iter(done.not_shown.values()))}")
    for names, warning in islice(done.doubtful.items(), MOST_SHOWN):
        say(f"{' and '.join(names)}: {warning}")
    for names, reason in islice(done.left_out.items(), MOST_SHOWN):
        say(f"left out {' and '.join(names)}: {reason}")
    if done.left_out:
        raise InputError(f"{len(done.left_out)} of {done.pairs} pairs are left out")
