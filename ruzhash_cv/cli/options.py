"""Options that commands share."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager

from ruzhash_cv.cli.common import RATIO, InputError, number
from ruzhash_cv.pipelines.features import MAX_SIZE, MOST_KEYPOINTS
from ruzhash_cv.pipelines.hosts import UnusableFile
from ruzhash_cv.pipelines.streaming import WorkersKilled

MODELS = ("auto", "homography", "fundamental")


def add_matching_options(group: argparse._ActionsContainer) -> None:
    """Add how features are found and matched."""
    limits = ", ".join(f"{most} of {name.upper()}" for name, most in MOST_KEYPOINTS.items())
    kinds = tuple(MOST_KEYPOINTS)
    group.add_argument(
        "--features", choices=kinds, default="sift", help=f"kind of feature, default sift; at most {limits}"
    )
    ratio = number("a number above 0 and at most 1", most=1)
    group.add_argument(
        "--ratio", type=ratio, default=RATIO, metavar="R",
        help=f"keep a match whose descriptor distance is below R times that of the second best, default {RATIO}; 1: nearly all",
    )  # fmt: skip
    size = number("a whole number of at least 32", convert=int, least=32)
    group.add_argument(
        "--max-size", type=size, default=MAX_SIZE, metavar="PIXELS",
        help=f"look for features in images shrunk to this longer side, default {MAX_SIZE}; SIFT takes about 0.2 GB a megapixel",
    )  # fmt: skip


def add_model_options(group: argparse._ActionsContainer) -> None:
    """Add `model` and `threshold` of `filter_points`."""
    group.add_argument(
        "--model", choices=MODELS, default="auto",
        help="structures to look for: planes (homography), rigid motions (fundamental), or each where the evidence asks for it (auto, "
        "the default)",
    )  # fmt: skip
    group.add_argument(
        "--threshold", type=number("a number above 0"), metavar="PIXELS",
        help="largest distance of a kept match from its structure; default: what the matches of each structure ask for",
    )  # fmt: skip


def add_seed_option(group: argparse._ActionsContainer) -> None:
    """Add `rng` of `filter_points`."""
    group.add_argument(
        "--rng", type=number("a whole number from 0 on", convert=int, least=0), default=0, metavar="SEED",
        help="seed of the random samples, default 0; the same seed gives the same result",
    )  # fmt: skip


@contextmanager
def one_line() -> Iterator[None]:
    """Turn what a pipeline says about its files and hosts into one line for the user."""
    try:
        yield
    except (UnusableFile, WorkersKilled, ImportError) as error:
        raise InputError(str(error)) from None
