"""The words and numbers of a result, the same in print, notebooks, pages, captions and commands.

`table` alone numbers motions and planes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np

from ruzhash_cv.foundation.arrays import Mask, Rows

#: Of the cells of a row of the table.
TITLES = ("structure", "kind", "matches", "share", "noise", "evidence", "")


class Row(NamedTuple):
    """A row of the table: a motion, or a plane of the motion above it.

    `name` is "motion i" for `motions[i]` of the result, "plane i:j" for its `planes[j]`. `share` is the share of all kept matches,
    `alone` (n,) the mask of the matches that are on none of its planes: each kept match is in one row's.
    """

    name: str
    structure: Any
    kind: str
    share: float
    alone: Mask
    is_plane: bool

    @property
    def n_matches(self) -> int:
        return int(self.structure.mask.sum())

    @property
    def words(self) -> str:
        """The kind in words: "lone plane" for a plane that no rigid motion owns."""
        return "lone plane" if self.kind == "homography" and not self.is_plane else self.kind

    def cells(self) -> tuple[str, ...]:
        """Return a text for each of `TITLES`, numbers with at most three significant digits."""
        structure = self.structure
        return (
            "  " * self.is_plane + self.name,
            self.words,
            str(self.n_matches),
            f"{100 * self.share:.3g} %",
            as_length(structure.noise_scale),
            "" if self.is_plane else as_number(structure.evidence),
            "stationary" if not self.is_plane and structure.stationary else "",
        )


def table(result: Any) -> list[Row]:
    """Return the rows of a `FilterResult`: each motion before its planes."""
    rows, kept = [], max(int(result.inlier_mask.sum()), 1)
    for number, motion in enumerate(result.motions):
        alone = motion.mask & ~np.any([plane.mask for plane in motion.planes], axis=0)
        rows.append(Row(f"motion {number}", motion, motion.kind, motion.mask.sum() / kept, alone, False))
        for item, plane in enumerate(motion.planes):
            name = f"plane {number}:{item}"
            rows.append(Row(name, plane, "homography", plane.mask.sum() / kept, plane.mask, True))
    return rows


def row_labels(rows: Sequence[Row], n: int) -> Rows:
    """Return the row (n,) of the table that each match belongs to: its plane's, else its motion's; -1 for none."""
    labels = np.full(n, -1)
    for item, row in enumerate(rows):
        labels[row.alone] = item
    return labels


def headline(result: Any) -> str:
    """Return the outcome of a `FilterResult` in one line."""
    n, kept = _counts(result)
    outcome = f"{kept} of {n} matches kept"
    if result.reason is not None:
        return f"{outcome}: {result.reason}"
    return f"{outcome}, {len(result.motions)} {'motion' if len(result.motions) == 1 else 'motions'}"


def as_text(result: Any) -> str:
    """Return a `FilterResult` as lines: counts, the reason if there is one, and the table of motions and planes.

    The rows are counted if some have no match.
    """
    n, kept = _counts(result)
    lines = [f"matches {n}", f"kept    {kept}", f"flagged {n - kept}"]
    if len(result.has_match) != n:
        lines.insert(0, f"rows    {len(result.has_match)}")
    if result.reason is not None:
        lines.append(f"reason  {result.reason}")
    if result.search.rounds > 0:
        lines.append(f"search  {result.search}")
    if result.motions:
        lines.append(f"evidence {as_number(result.evidence)}")
        rows = [TITLES, *(row.cells() for row in table(result))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            name, kind, *numbers, remark = row
            padded = [cell.rjust(width) for cell, width in zip(numbers, widths[2:], strict=False)]
            lines.append("  ".join([name.ljust(widths[0]), kind.ljust(widths[1]), *padded, remark]).rstrip())
    return "\n".join(lines)


def as_html(result: Any) -> str:
    """Return a `FilterResult` as a heading and the table of motions and planes, for notebooks and pages."""
    return f"<p>{escape(headline(result))}</p>{table_as_html(result)}"


def table_as_html(result: Any) -> str:
    """Return the table of motions and planes, nothing if there are none."""
    if not result.motions:
        return ""
    titles = "".join(f"<th>{escape(title)}</th>" for title in TITLES)
    body = "".join(f"<tr>{''.join(map(_cell, TITLES, row.cells()))}</tr>" for row in table(result))
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _cell(title: str, cell: str) -> str:
    """Return a cell with its title, which a narrow page shows in place of the head of the column."""
    text = escape(cell).replace(" ", "&nbsp;")
    return f'<td data-title="{title}">{text}</td>'


def as_dict(result: Any) -> dict[str, Any]:
    """Return a `FilterResult` as JSON can hold it: counts, the facts about the whole, motions and their planes."""
    n, kept = _counts(result)
    return {
        "rows": len(result.has_match),
        "matches": n,
        "kept": kept,
        "flagged": n - kept,
        "reason": result.reason,
        "search": vars(result.search),
        "seconds": result.seconds,
        "evidence": result.evidence,
        "motions": [motion_as_dict(motion) for motion in result.motions],
    }


def motion_as_dict(motion: Any) -> dict[str, Any]:
    """Return a `Motion` or a `Plane` as JSON can hold it: `matches`, their number, in place of the mask."""
    held = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in vars(motion).items()}
    del held["mask"]
    if "planes" in held:
        held["planes"] = [motion_as_dict(plane) for plane in held["planes"]]
    return {"matches": int(motion.mask.sum()), **held}


def as_length(length: float) -> str:
    """Return a length of three significant digits in px."""
    return f"{as_number(length)} px"


def as_number(value: float) -> str:
    """Return a number with three significant digits, without an exponent if it is of a common size."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:.0f}" if 1000 <= abs(rounded) < 1e7 else f"{rounded:#.3g}".removesuffix(".")


def _counts(result: Any) -> tuple[int, int]:
    """Return the number of matches, and of those kept."""
    return int(result.has_match.sum()), int(result.inlier_mask.sum())
