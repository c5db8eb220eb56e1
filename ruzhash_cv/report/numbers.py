"""The data of a pair's page: the probability and residual of each match, its structure, and the group it is drawn with."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruzhash_cv.core.families import FAMILIES
from ruzhash_cv.drawing.marks import spread
from ruzhash_cv.drawing.pictures import groups_of
from ruzhash_cv.foundation.arrays import Array, Rows
from ruzhash_cv.report.photos import Photo
from ruzhash_cv.results import printing
from ruzhash_cv.results.result import FilterResult

#: What a match's probability is called.
PROBABILITY = "probability"
#: Of a row of the index: of a pair; `share` is kept / matches.
COLUMNS = (
    "id", "image1", "image2", "thumbnail1", "thumbnail2", "matches", "kept", "share", "motions", "planes", "evidence", "reason",
)  # fmt: skip


def pair_as_dict(
    photos: Sequence[Photo], points1: Array, points2: Array, result: FilterResult, left_out: str | None = None
) -> dict[str, Any]:
    """Return the data of a pair's page, as JSON can hold them; of the rows (n, 2) those with a match.

    A column has an entry for each match: `row`: its row in the arrays; `x1` to `y2`: px; `structure`: its row of the table, or the
    nearest if it has none, -1 if there are none; `residual`: px, to this structure, None without one; `part`: the number of the group
    that it is drawn with, -1 if it is flagged; `order`: its place in an order of which every beginning is spread evenly over the first
    image.
    """
    shown = result.has_match & np.isfinite(np.hstack([points1, points2])).all(axis=1)
    parts = [group for group in groups_of(result, shown) if len(group.rows)]
    part_of = np.full(len(shown), -1)
    for number, part in enumerate(parts):
        part_of[part.rows] = number
    rows = printing.table(result)
    labels = printing.row_labels(rows, len(shown))[shown]
    residuals, structures = _nearest(points1[shown], points2[shown], rows, labels)
    places = (_rounded(values, 2) for values in (*points1[shown].T, *points2[shown].T))
    columns = {
        "row": np.flatnonzero(shown).tolist(),
        **dict(zip(("x1", "y1", "x2", "y2"), places, strict=True)),
        "kept": result.inlier_mask[shown].astype(int).tolist(),
        "probability": _rounded(result.inlier_probabilities[shown], 4),
        "residual": [value if value < np.inf else None for value in _rounded(residuals, 3)],
        "structure": structures.tolist(),
        "part": part_of[shown].tolist(),
        "order": spread(points1[shown]).tolist(),
    }
    return {
        "title": title_of([photo.name for photo in photos]),
        "photos": [vars(photo) for photo in photos],
        "headline": f"{printing.headline(result)} · {left_out or f'evidence {printing.as_number(result.evidence)}'}",
        "table": printing.table_as_html(result),
        "columns": columns,
        "parts": [{"text": part.text, "colour": css(part.colour)} for part in parts],
        "structures": [
            {"name": row.name, "kind": row.kind, "words": row.words, "matrix": row.structure.matrix.ravel().tolist()}
            for row in rows
        ],
    }


def row_as_dict(
    identity: str,
    photos: Sequence[Photo],
    thumbnails: Sequence[str],
    result: FilterResult,
    kept: Sequence[int],
    left_out: str | None = None,
) -> dict[str, Any]:
    """Return the row of a pair in the index, as JSON can hold it; `kept` has an entry for each match that its page shows."""
    share = round(sum(kept) / max(len(kept), 1), 4)
    n_planes = sum(len(motion.planes) for motion in result.motions)
    counts = len(kept), sum(kept), share, len(result.motions), n_planes
    names = [photo.name for photo in photos]
    cells = identity, *names, *thumbnails, *counts, round(result.evidence, 1), left_out or result.reason or ""
    return dict(zip(COLUMNS, cells, strict=True))


def title_of(names: Sequence[str]) -> str:
    """Return the names of two files without their folders, unless only the folders differ."""
    short = [PurePath(name).name or name for name in names]
    title = " and ".join(short if len(set(short)) == len(set(names)) else names)
    return title.encode("utf-8", "backslashreplace").decode()  # names of files may hold bytes that are not text


def css(colour: Any) -> str:
    """Return a BGR colour in CSS's notation."""
    blue, green, red = (int(channel) for channel in colour)
    return f"#{red:02x}{green:02x}{blue:02x}"


def _nearest(points1: Array, points2: Array, rows: Sequence[printing.Row], labels: Rows) -> tuple[Array, Rows]:
    """Return the residual (m,) of each match to its row of the table, or to the nearest if its label is -1, and which this is."""
    if not rows:
        return np.full(len(points1), np.inf), np.full(len(points1), -1)
    squared = np.full((len(rows), len(points1)), np.inf)
    for item, row in enumerate(rows):
        if row.kind in FAMILIES:  # not a family of the user's
            points, matrix = np.hstack([points1, points2]), row.structure.matrix.reshape(1, 9)
            with np.errstate(all="ignore"):
                squared[item] = np.fmin(FAMILIES[row.kind].squared_residuals(points, matrix)[0], np.inf)
    nearest = np.where(labels >= 0, labels, np.argmin(squared, axis=0))
    return np.sqrt(squared[nearest, np.arange(len(points1))]), nearest


def _rounded(values: NDArray[np.float64], digits: int) -> list[float]:
    rounded: list[float] = np.round(values, digits).tolist()
    return rounded
