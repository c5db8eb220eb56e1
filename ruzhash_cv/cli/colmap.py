"""``ruzhash-cv colmap``: the matches of a COLMAP database filtered into its two-view geometries."""

from __future__ import annotations

import argparse
from pathlib import Path

from ruzhash_cv.cli.common import Commands, number
from ruzhash_cv.cli.options import add_pipeline_options, one_line, pipeline_options


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("colmap", help="filter the matches of a COLMAP database in place")
    parser.add_argument("database", type=Path, metavar="DATABASE", help="COLMAP's database, e.g. database.db")
    count = number("a whole number above 0", convert=int)
    parser.add_argument(
        "--min-inliers", type=count, default=15, metavar="N", help="leave out pairs with fewer, default 15"
    )
    parser.add_argument("--report", type=Path, metavar="FILE", help="a row for every pair, .csv or .parquet")
    add_pipeline_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Filter a COLMAP database in place."""
    from ruzhash_cv.pipelines.colmap import verify

    with one_line():
        done = verify(
            options.database,
            min_inliers=options.min_inliers,
            report=options.report,
            **pipeline_options(options),
        )
    print(f"pairs   {done.pairs}\nskipped {done.skipped}\nkept    {done.kept}")
    print(f"matches {done.matches}\ninliers {done.inliers}\nseconds {done.seconds:.1f}")
    print(f"rate    {done.pairs_per_second:.1f} pairs/s")
