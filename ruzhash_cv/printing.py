"""The words and numbers of a result, the same in print, notebooks, pages, captions and commands.

`table` alone numbers the structures.
"""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

#: Of the cells of a row of the table.
TITLES = ("structure", "kind", "matches", "share", "tolerance", "noise", "evidence", "")


class Row(NamedTuple):
    """A row of the table of structures: one of `FilterResult.models`, with its share of all kept matches.

    `name` is "motion i" or, for a part of the motion above it, "surface i": an index into `FilterResult.motions` or
    `FilterResult.models`.
    """

    name: str
    structure: Any
    share: float
    is_part: bool

    def cells(self) -> tuple[str, ...]:
        """Return a text for each of `TITLES`, numbers with at most three significant digits."""
        structure = self.structure
        return (
            "  " * self.is_part + self.name,
            structure.kind,
            str(structure.support),
            f"{100 * self.share:.3g} %",
            as_length(structure.tolerance),
            as_length(structure.noise_scale),
            as_number(structure.evidence),
            "stationary" if structure.stationary else "",
        )


def table(result: Any) -> list[Row]:
    """Return a row for each of the models of a `FilterResult`: each motion before its surfaces."""
    rows, kept, n_motions = [], max(int(result.inlier_mask.sum()), 1), 0
    parts = {part for model in result.models for part in model.parts}
    for item, model in enumerate(result.models):
        name = f"surface {item}" if item in parts else f"motion {n_motions}"
        n_motions += item not in parts
        rows.append(Row(name, model, model.support / kept, item in parts))
    return rows


def headline(result: Any) -> str:
    """Return the outcome of a `FilterResult` in one line."""
    n, kept = _counts(result)
    outcome = f"{kept} of {n} matches kept"
    if result.reason is not None:
        return f"{outcome}: {result.reason}"
    structures = "structure" if len(result.models) == 1 else "structures"
    return f"{outcome}, {len(result.models)} {structures}"


def as_text(result: Any) -> str:
    """Return a `FilterResult` as lines: counts, the reason if there is one, and the table of structures.

    The rows are counted if some have no match.
    """
    n, kept = _counts(result)
    lines = [f"matches {n}", f"kept    {kept}", f"flagged {n - kept}"]
    if len(result.has_match) != n:
        lines.insert(0, f"rows    {len(result.has_match)}")
    if result.reason is not None:
        lines.append(f"reason  {result.reason}")
    if result.models:
        lines.append(f"evidence {as_number(result.evidence)}")
        rows = [TITLES, *(row.cells() for row in table(result))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            name, kind, *numbers, remark = row
            padded = [cell.rjust(width) for cell, width in zip(numbers, widths[2:], strict=False)]
            lines.append("  ".join([name.ljust(widths[0]), kind.ljust(widths[1]), *padded, remark]).rstrip())
    return "\n".join(lines)


def as_html(result: Any) -> str:
    """Return a `FilterResult` as a heading and the table of structures, for notebooks and pages."""
    return f"<p>{escape(headline(result))}</p>{table_as_html(result)}"


def table_as_html(result: Any) -> str:
    """Return the table of structures, nothing if there are none."""
    if not result.models:
        return ""
    titles = "".join(f"<th>{escape(title)}</th>" for title in TITLES)
    rows = (row.cells() for row in table(result))
    body = "".join(f"<tr>{''.join(f'<td>{_unbroken(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _unbroken(cell: str) -> str:
    return escape(cell).replace(" ", "&nbsp;")


def as_dict(result: Any) -> dict[str, Any]:
    """Return a `FilterResult` as JSON can hold it: counts, the facts about the whole, surfaces and motions by their numbers."""
    n, kept = _counts(result)
    return {
        "rows": len(result.has_match),
        "matches": n,
        "kept": kept,
        "flagged": n - kept,
        "reason": result.reason,
        "seconds": result.seconds,
        "evidence": result.evidence,
        "structures": [structure_as_dict(model) for model in result.models],
        "motions": [structure_as_dict(motion) for motion in result.motions],
    }


def structure_as_dict(structure: Any) -> dict[str, Any]:
    """Return a `Structure` as JSON can hold it."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in vars(structure).items()}


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
