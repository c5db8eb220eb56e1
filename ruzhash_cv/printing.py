"""What a result of the filter looks like in print: a few lines of text, or a small table in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, TypeAlias

Row: TypeAlias = tuple[str, str, str, str, str, str, str]

#: Of the structures' table.
TITLES = ("structure", "kind", "matches", "tolerance", "noise", "evidence", "")


def headline(result: Any) -> str:
    """Return the outcome of a `FilterResult` in one line."""
    n, kept = _counts(result)
    said = f"{kept} of {n} matches kept"
    if result.reason is not None:
        return f"{said}: {result.reason}"
    structures = "structure" if len(result.models) == 1 else "structures"
    return f"{said}, {len(result.models)} {structures}"


def as_text(result: Any) -> str:
    """Return a `FilterResult` as lines: counts, the reason where there is one, and a row for each structure.

    The rows are counted where some have no match.
    """
    n, kept = _counts(result)
    lines = [f"matches {n}", f"kept    {kept}", f"flagged {n - kept}"]
    if len(result.has_match) != n:
        lines.insert(0, f"rows    {len(result.has_match)}")
    if result.reason is not None:
        lines.append(f"reason  {result.reason}")
    if result.models:
        lines.append(f"evidence {result.evidence:.1f}")
        lines += [_padded(row) for row in (TITLES, *_rows(result.models))]
    return "\n".join(lines)


def as_dict(result: Any) -> dict[str, Any]:
    """Return a `FilterResult` as JSON can hold it: counts, what is known of the whole, and the structures."""
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
    """Return a `Structure` or a `Motion` as JSON can hold it."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in vars(structure).items()}


def as_html(result: Any) -> str:
    """Return a `FilterResult` as a heading and a table of its structures, for notebooks."""
    heading = f"<p>{escape(headline(result))}</p>"
    if not result.models:
        return heading
    titles = "".join(f"<th>{escape(title)}</th>" for title in TITLES)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(result.models))
    return f"{heading}<table><thead><tr>{titles}</tr></thead><tbody>{rows}</tbody></table>"


def motions_as_text(result: Any) -> str:
    """Return the motions of a `FilterResult` as a title and a row for each."""
    rows = [_padded(("motion", *TITLES[1:6], "planes"))]
    for row, motion in zip(_rows(result.motions), result.motions, strict=True):
        rows.append(_padded((*row[:6], ", ".join(map(str, motion.parts)))))
    return "\n".join(rows)


def as_length(length: float) -> str:
    """Return a length with three significant digits, whatever its unit."""
    return f"{length:#.3g}".removesuffix(".")


def _counts(result: Any) -> tuple[int, int]:
    """Return how many matches there were, and how many are kept."""
    return int(result.has_match.sum()), int(result.inlier_mask.sum())


def _rows(structures: Sequence[Any]) -> Iterator[Row]:
    for item, structure in enumerate(structures):
        tolerance, noise = as_length(structure.tolerance), as_length(structure.noise_scale)
        remark = "stationary" if structure.stationary else ""
        yield str(item), structure.kind, str(structure.support), tolerance, noise, f"{structure.evidence:.1f}", remark


def _padded(row: Row) -> str:
    structure, kind, matches, tolerance, noise, evidence, remark = row
    return f"{structure:>9} {kind:11} {matches:>7} {tolerance:>12} {noise:>8} {evidence:>9} {remark}".rstrip()
