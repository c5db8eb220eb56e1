"""``ruzhash-cv colmap`` and ``ruzhash-cv hloc``: matches that other programs made, filtered in their own files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ruzhash_cv.cli.common import Commands, number
from ruzhash_cv.cli.options import add_model_options, add_seed_option, one_line


def add_parser(commands: Commands) -> None:
    """Add both commands to the command line. What they parse goes by the names of the pipelines' arguments."""
    count = number("a whole number above 0", convert=int)
    parser = commands.add_parser(
        "colmap",
        help="filter the matches of a COLMAP database in place",
        description="Filter the matches of a COLMAP database in place, instead of COLMAP's geometric verification.",
    )
    parser.add_argument("database", type=Path, metavar="DATABASE", help="COLMAP's database, e.g. database.db")
    parser.add_argument(
        "--min-inliers", type=count, default=15, metavar="N", help="leave out pairs with fewer, default 15"
    )
    parser.add_argument(
        "--least-evidence", type=number("a number from 0 on", least=0), default=50.0, metavar="E",
        help="leave out pairs with less evidence that they share anything, default 50; 100: also many that only look alike",
    )  # fmt: skip
    parser.add_argument("--report", type=Path, metavar="FILE", help="a row for every pair, .csv or .parquet")
    _add_common(parser, run_colmap)

    parser = commands.add_parser(
        "hloc",
        help="filter the matches hloc wrote",
        description="Filter the matches hloc wrote into a new file, which hloc's reconstruction reads.",
    )
    for name, text in (("features_h5", "features.h5"), ("matches_h5", "matches.h5"), ("pairs", "pairs.txt")):
        metavar = name.partition("_")[0].upper()
        parser.add_argument(name, type=Path, metavar=metavar, help=f"what hloc wrote, e.g. {text}")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="a new file of the same layout as MATCHES")
    _add_common(parser, run_hloc)


def _add_common(parser: argparse.ArgumentParser, run: Any) -> None:
    add_model_options(parser)
    add_seed_option(parser)
    parser.add_argument(
        "--all-structures", action="store_false", dest="strongest_motion",
        help="keep all motions; default: the strongest, as mapping needs",
    )  # fmt: skip
    parser.add_argument(
        "--keep-stationary", action="store_true", help="keep what did not move while the rest did, as a watermark"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace what is there already")
    count = number("a whole number above 0", convert=int)
    parser.add_argument(
        "--n-jobs", type=count, default=-1, metavar="N",
        help="processes, default one for each processor; the result is the same",
    )  # fmt: skip
    parser.add_argument(
        "--batch-size", type=count, default=100, metavar="N", help="pairs a task and a transaction, default 100"
    )
    parser.set_defaults(run=run)


def run_colmap(options: argparse.Namespace) -> None:
    """Filter a COLMAP database in place."""
    with one_line():
        from ruzhash_cv.pipelines.colmap import verify

        _print(verify(**_arguments(options)))


def run_hloc(options: argparse.Namespace) -> None:
    """Filter hloc's matches into a new file."""
    with one_line():
        from ruzhash_cv.pipelines.hloc import filter_matches

        _print(filter_matches(**_arguments(options)))


def _arguments(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if name != "run"}


def _print(done: Any) -> None:
    """Print a pipeline's summary."""
    for name, value in vars(done).items():
        print(f"{name:7} {value if isinstance(value, int) else f'{value:.1f}'}")
    print(f"rate    {done.pairs / max(done.seconds, 1e-9):.1f} pairs/s")
