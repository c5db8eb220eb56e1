"""Filter the pairs in the files of another program: what `colmap` and `hloc` share."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import islice
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from ruzhash_cv.foundation.arrays import Array, Mask
from ruzhash_cv.foundation.extras import host
from ruzhash_cv.pipelines.pages import Pages, Size
from ruzhash_cv.pipelines.pairs import Task, run_pairs
from ruzhash_cv.pipelines.report import Report, Row, row_of
from ruzhash_cv.results.printing import as_number
from ruzhash_cv.results.result import FilterResult

Item = TypeVar("Item")
Names: TypeAlias = tuple[str, str]


@dataclass(frozen=True)
class Summary:
    """Counts of a run of `colmap.verify` or `hloc.filter_matches`.

    Attributes
    ----------
    pairs : int
        Pairs filtered; one that was listed in both orders counts once.
    skipped : int
        Pairs of a database that had a two-view geometry already.
    kept : int
        Pairs written with matches: those with enough inliers and evidence.
    matches, inliers : int
        Matches read, and matches written.
    seconds : float
        Wall time.
    left_out : dict
        The pairs that could not be filtered, by the names of their images, and why.
    doubtful : dict
        The pairs that `filter_points` warned of, by the names of their images, and the warning, such as of wrong cameras.
    not_shown : dict
        The photographs that the pages do not show, by name, and why.
    """

    pairs: int
    skipped: int
    kept: int
    matches: int
    inliers: int
    seconds: float
    left_out: dict[Names, str] = field(default_factory=dict)
    doubtful: dict[Names, str] = field(default_factory=dict)
    not_shown: dict[str, str] = field(default_factory=dict)


class Source(Protocol):
    """The files of another program, which `run` reads pairs from and writes them to. A pair is what the program calls it."""

    def names_of(self, pair: Any) -> Names:
        """Return the names of a pair's images."""

    def size_of(self, pair: Any, side: int) -> Size:
        """Return width and height of one of a pair's images, None if the files do not hold them."""

    def points(self, pair: Any) -> tuple[Array, Array]:
        """Return the matched points of a pair, (m, 2) each; `UnusableFile` says what is wrong with them."""

    def task(self, pair: Any) -> tuple[Any, ...]:
        """Return a pair for `run_pairs`; ValueError says what is wrong with it."""

    def entry(self, pair: Any, result: FilterResult, related: bool) -> tuple[Any, int, Row]:
        """Return what to write of a pair, how many inliers that has, and the pair's cells of the report.

        Without `related` its images share nothing, or it could not be filtered.
        """

    def write(self, entries: list[tuple[Any, Any, bool]]) -> None:
        """Write pairs, their entries, and whether they could not be filtered."""


def run(
    source: Source, pairs: list[Any], report: Report, pages: Pages | None, *, least_evidence: float, batch_size: int,
    progress: bool | None, skipped: int = 0, **options: Any,
) -> Summary:  # fmt: skip
    """Filter pairs, and write them batch by batch; `options` are those of `run_pairs`."""
    since, kept, n_matches, n_inliers = time.perf_counter(), 0, 0, 0
    left_out, doubtful = dict[Names, str](), dict[Names, str]()
    answers = run_pairs(_tasks(source, pairs), batch_size=batch_size, **options)
    for batch in _in_batches(_with_bar(answers, progress, len(pairs)), batch_size):
        entries, rows, reasons = [], [], []
        for pair, result, failed, warned_of in batch:
            entry, inliers, cells = source.entry(pair, result, not failed and result.evidence >= least_evidence)
            entries.append((pair, entry, failed))
            reasons.append(None if inliers > 0 else _why_left_out(result, cells["inliers"], least_evidence))
            rows.append({**cells, **row_of(result, reasons[-1])})
            if warned_of:
                rows[-1]["reason"] = doubtful[source.names_of(pair)] = "; ".join(
                    filter(None, (rows[-1]["reason"], warned_of))
                )
            kept, n_matches, n_inliers = kept + (inliers > 0), n_matches + len(result.inlier_mask), n_inliers + inliers
            if failed:
                left_out[source.names_of(pair)] = str(result.reason)
        # The report comes first: if the run is killed in between, the next one drops these rows and does their pairs again.
        with report.added(rows):
            if pages is not None:
                for (pair, result, failed, _), reason in zip(batch, reasons, strict=True):
                    sizes = source.size_of(pair, 0), source.size_of(pair, 1)
                    pages.add(source.names_of(pair), None if failed else source.points(pair), result, sizes, reason)
            source.write(entries)
    seconds = time.perf_counter() - since
    not_shown = {} if pages is None else pages.not_shown
    return Summary(len(pairs), skipped, kept, n_matches, n_inliers, seconds, left_out, doubtful, not_shown)


def _why_left_out(result: FilterResult, n_inliers: int, least_evidence: float) -> str | None:
    """Say why nothing is written of a pair; None if the filter kept no match, which the result gives the reason for."""
    if not result.inlier_mask.any():
        return None
    if result.evidence < least_evidence:
        return f"evidence {as_number(result.evidence)}, below {least_evidence:g}: left out"
    return f"{n_inliers} inliers, too few: left out"


def _tasks(source: Source, pairs: Iterable[Any]) -> Iterator[tuple[Any, ...] | Task]:
    for pair in pairs:
        try:
            yield source.task(pair)
        except ValueError as error:  # UnusableFile too
            yield Task(pair, 0, np.empty((0, 2)), np.empty((0, 2)), {}, str(error))


def _in_batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` items, the last one shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _with_bar(items: Iterable[Item], shown: bool | None, total: int) -> Iterable[Item]:
    """Show tqdm's progress bar on stderr; None: if that is a terminal and tqdm is installed."""
    is_possible = sys.stderr.isatty() and find_spec("tqdm") is not None
    if not (is_possible if shown is None else shown):
        return items
    bar: Iterable[Item] = host("tqdm", "colmap").tqdm(items, total=total, unit="pair")
    return bar


def strongest_motion(result: FilterResult) -> int | None:
    """Return the index into `motions` of the motion of most matches, None if there is none; stationary matches are no motion."""
    return next((index for index, motion in enumerate(result.motions) if not motion.stationary), None)


def chosen_matches(result: FilterResult, only_strongest: bool) -> Mask:
    """Return the mask (n,) of the matches to write: those of the strongest motion, or all that were kept."""
    index = strongest_motion(result) if only_strongest else None
    if index is None:
        return result.inlier_mask & (not only_strongest)
    return np.asarray(result.motion_labels == index)
