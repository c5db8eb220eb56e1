"""``ruzhash-cv pairs``: match and filter many pairs of pictures, in several processes; an interrupted run can be resumed."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
from pathlib import Path

from ruzhash_cv import __version__, printing
from ruzhash_cv.cli.common import (
    Commands,
    InputError,
    add_filtering_options,
    add_jobs_option,
    add_matching_options,
    say,
)
from ruzhash_cv.pipelines.files import as_unusable
from ruzhash_cv.pipelines.folders import Names, Settings, all_pairs, filter_images, read_list
from ruzhash_cv.pipelines.hosts import host
from ruzhash_cv.pipelines.outputs import Output, open_output
from ruzhash_cv.pipelines.pages import Pages, open_pages
from ruzhash_cv.pipelines.selection import LEAST_EVIDENCE


def add_parser(commands: Commands) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "pairs",
        help="match many pairs of images and flag the mismatches",
        description="Match many pairs of images and flag the mismatches. Features are looked for once in each image. The same command "
        "goes on where it was stopped.",
    )
    parser.add_argument(
        "list", type=Path, metavar="LIST", help="two names a line, or a folder: all pairs of its images"
    )
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="OUT",
        help="FILE.h5, or a folder for one .npz a pair; pairs it holds already are not done again",
    )  # fmt: skip
    parser.add_argument(
        "--images", type=Path, metavar="DIR", help="folder of the images in LIST, default that of LIST itself"
    )
    add_matching_options(parser)
    add_filtering_options(parser)
    add_jobs_option(parser)
    parser.add_argument(
        "--html", type=Path, metavar="DIR",
        help="write DIR/index.html, a table of the pairs with a page for each, for any browser; needs the extra html",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print a line of JSON for each pair")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Filter many pairs of images."""
    host("joblib", "parallel")
    pairs, images = _pairs(options)
    settings = Settings(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Settings)})
    recorded = {"ruzhash_cv": __version__, **dataclasses.asdict(settings), "images": str(images.resolve())}
    with (
        as_unusable(f"cannot write to {options.output}"),
        open_output(options.output, recorded, images) as output,
        open_pages(options.html, images) as pages,
    ):
        missing = [pair for pair in pairs if not output.holds(pair) or (pages is not None and not pages.holds(pair))]
        if not missing:
            say(f"nothing to do: all {len(pairs)} pairs are in {options.output} already")
            return
        if len(missing) < len(pairs):
            say(f"{len(pairs) - len(missing)} of {len(pairs)} pairs are in {options.output} already")
        _run(missing, images, settings, output, pages, options)


def _pairs(options: argparse.Namespace) -> tuple[list[Names], Path]:
    """Return the pairs and the folder their names are relative to."""
    if options.list.is_dir():
        if options.images is not None:
            raise InputError("--images goes with a list of pairs, not with a folder")
        return all_pairs(options.list), options.list
    images = options.list.parent if options.images is None else options.images
    return read_list(options.list, images), images


def _run(
    pairs: list[Names],
    images: Path,
    settings: Settings,
    output: Output,
    pages: Pages | None,
    options: argparse.Namespace,
) -> None:
    matches = kept = related = undecided = untried = 0
    problems: set[str | None] = set()
    scratch = Path(f"{options.output.resolve()}.features")
    done = filter_images(pairs, images, settings, scratch, n_jobs=options.n_jobs)
    try:
        with contextlib.closing(done):
            for pair in done:
                if pair.tried:
                    if pages is not None:
                        pages.add(pair.names, (pair.points1, pair.points2), pair.result)
                    output.write(pair)
                elif pair.result.reason not in problems:
                    problems.add(pair.result.reason)
                    say(f"left out {' and '.join(pair.names)}: {pair.result.reason}")
                untried += not pair.tried
                matches, kept = matches + len(pair.points1), kept + int(pair.result.inlier_mask.sum())
                related += pair.result.evidence >= LEAST_EVIDENCE
                undecided += pair.result.reason is not None
                if options.json:
                    print(json.dumps({"images": pair.names, **printing.as_dict(pair.result)}), flush=True)
    except KeyboardInterrupt:
        say(f"interrupted; the same command goes on with the pairs that are not in {options.output}")
        raise
    if not options.json:
        print(
            f"pairs     {len(pairs)}\nrelated   {related}\nundecided {undecided}\nmatches   {matches}\nkept      {kept}"
        )
    if untried:
        raise InputError(f"{untried} of {len(pairs)} pairs are left out; the same command tries them again")
