"""``ruzhash-cv hloc``: hloc's matches filtered into a file of the same layout."""

from __future__ import annotations

import argparse
from pathlib import Path

from ruzhash_cv.cli.common import Commands
from ruzhash_cv.cli.options import add_pipeline_options, one_line, pipeline_options


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser("hloc", help="filter the matches hloc wrote")
    for name, text in (("features", "features.h5"), ("matches", "matches.h5"), ("pairs", "pairs.txt")):
        parser.add_argument(name, type=Path, metavar=name.upper(), help=f"what hloc wrote, e.g. {text}")
    parser.add_argument("output", type=Path, metavar="OUTPUT", help="a new file of the same layout as MATCHES")
    add_pipeline_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Filter hloc's matches into a new file."""
    from ruzhash_cv.pipelines.hloc import filter_matches

    with one_line():
        done = filter_matches(
            options.features, options.matches, options.pairs, options.output, **pipeline_options(options)
        )
    print(f"pairs   {done.pairs}\nmatches {done.matches}\ninliers {done.inliers}\nseconds {done.seconds:.1f}")
