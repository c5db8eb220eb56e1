"""What a result of the filter looks like in print: a few lines of text, or a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any, TypeAlias

Row: TypeAlias = tuple[str, str, str, str, str]

#: Of the structures' table.
TITLES = ("structure", "kind", "matches", "tolerance/px", "noise/px")


def headline(result: Any) -> str:
    """Return the outcome of a `FilterResult` in one line."""
    n, kept = len(result.inlier_mask), int(result.inlier_mask.sum())
    said = f"{kept} of {n} matches kept"
    if result.reason is not None:
        return f"{said}: {result.reason}"
    structures = "structure" if len(result.models) == 1 else "structures"
    return f"{said}, {len(result.models)} {structures}"


def as_text(result: Any) -> str:
    """Return a `FilterResult` as lines: counts, the reason where there is one, and a row for each structure."""
    n, kept = len(result.inlier_mask), int(result.inlier_mask.sum())
    lines = [f"matches {n}", f"kept    {kept}", f"flagged {n - kept}"]
    if result.reason is not None:
        lines.append(f"reason  {result.reason}")
    if result.models:
        lines += [_padded(row) for row in (TITLES, *_rows(result))]
    return "\n".join(lines)


def as_html(result: Any) -> str:
    """Return a `FilterResult` as a heading and a table of its structures, for notebooks."""
    heading = f"<p>{escape(headline(result))}</p>"
    if not result.models:
        return heading
    titles = "".join(f"<th>{escape(title)}</th>" for title in TITLES)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(result))
    return f"{heading}<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def _rows(result: Any) -> Iterator[Row]:
    for item, structure in enumerate(result.models):
        tolerance, noise = f"{structure.tolerance:.2f}", f"{structure.noise_scale:.2f}"
        yield str(item), structure.kind, str(structure.support), tolerance, noise


def _padded(row: Row) -> str:
    structure, kind, matches, tolerance, noise = row
    return f"{structure:>9} {kind:11} {matches:>7} {tolerance:>12} {noise:>8}"
