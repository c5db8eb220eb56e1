"""What Bokeh draws of a pair: both photographs over the same ranges, so that they zoom and pan together, and a patch of each.

All tables are empty: `pair.js` fills them.
"""

from __future__ import annotations

from typing import Any

from bokeh.models import (
    CDSView,
    ColumnDataSource,
    CustomJSHover,
    HoverTool,
    IndexFilter,
    LinearColorMapper,
    LogColorMapper,
    PanTool,
    Range1d,
    TapTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from ruzhash_cv.drawing.pictures import PLASMA
from ruzhash_cv.report.numbers import PROBABILITY, css

BACKGROUND, CHOSEN, EXPECTED = "#1c1c1c", "#ffffff", "#ff40ff"
#: Opacity of the photographs at first, so that the matches stand out.
DIMMED = 0.6
#: Residuals that colours tell apart, px.
LEAST_RESIDUAL, LARGEST_RESIDUAL = 0.1, 100.0
#: Colours from low to high anomaly, without the darkest, which would be lost on a photograph.
PALETTE = [css(colour) for colour in PLASMA[50::4]]
#: Of a match; positions are in the units of the figures.
COLUMNS = ("row", "x1", "y1", "x2", "y2", "kept", "probability", "residual", "structure", "part", "order")
#: Of a line: the end in the other image, as each figure has it.
OTHER_ENDS = ("other_x1", "other_y1", "other_x2", "other_y2")
#: Of what a structure expects of a match, in each figure.
EXPECTED_ENDS = tuple(f"{end}_{axis}{side}" for side in (1, 2) for end in ("from", "to") for axis in "xy")
TOOLTIP = (
    '<div style="font: 13px sans-serif; padding: 2px 4px"><b>match @row</b><br>'
    + PROBABILITY
    + " @probability{0.000}<br>residual @residual{custom}<br>@part{custom}</div>"
)


def tables() -> dict[str, Any]:
    """Return the tables of what is drawn, filters of their rows, and what makes colours of a column."""
    return {
        "matches": _table(COLUMNS),
        "lines": _table(COLUMNS + OTHER_ENDS),
        "hovered": _table(COLUMNS + OTHER_ENDS),
        "chosen": _table(COLUMNS + OTHER_ENDS),
        "expected": _table(EXPECTED_ENDS),
        "photo1": _table(("address", "width", "height")),
        "photo2": _table(("address", "width", "height")),
        "part_names": _table(("text",)),
        "shown_kept": IndexFilter([]),
        "shown_flagged": IndexFilter([]),
        "by_part": LinearColorMapper([BACKGROUND], low=-1.5, high=-0.5),
        "by_probability": LinearColorMapper(PALETTE[::-1], low=0.0, high=1.0),
        "by_residual": LogColorMapper(PALETTE, low=LEAST_RESIDUAL, high=LARGEST_RESIDUAL),
    }


def figures(held: dict[str, Any]) -> dict[str, Any]:
    """Return both figures, both patches and the common ranges by name, and lists of the glyphs of each kind."""
    made: dict[str, Any] = {"x_range": Range1d(0, 1), "y_range": Range1d(1, 0)}
    made |= {"backdrops": [], "dots": [], "crosses": [], "segments": []}
    for side in (1, 2):
        plot, photo = _empty(made["x_range"], made["y_range"]), held[f"photo{side}"]
        made["backdrops"].append(_draw_photo(plot, photo, DIMMED))
        segments = _draw_segments(plot, held["lines"], side, line_width=1.2, line_alpha=0.7)
        crosses = _draw_dots(plot, held["matches"], side, held["shown_flagged"], marker="x", line_width=1.5)
        dots = _draw_dots(plot, held["matches"], side, held["shown_kept"], line_color=BACKGROUND, line_width=0.6)
        _draw_expected(plot, held["expected"], side)
        for name in ("hovered", "chosen"):
            _draw_segments(plot, held[name], side, line_width=2, line_color=CHOSEN)
            _draw_ring(plot, held[name], side, size=14)
        active = [segments, crosses, dots]
        wheel = WheelZoomTool()
        plot.add_tools(PanTool(), wheel, TapTool(renderers=active), _hover(active, held["part_names"]))
        plot.toolbar.active_scroll = wheel
        made["segments"].append(segments)
        made["crosses"].append(crosses)
        made["dots"].append(dots)
        made[f"figure{side}"] = plot
        made[f"patch{side}"] = patch = _empty(Range1d(0, 1), Range1d(1, 0))
        _draw_photo(patch, photo, 1.0)
        _draw_expected(patch, held["expected"], side)
        _draw_ring(patch, held["chosen"], side, size=30)
    return made


def _table(columns: tuple[str, ...]) -> ColumnDataSource:
    return ColumnDataSource({name: [] for name in columns})


def _empty(x_range: Range1d, y_range: Range1d) -> Any:
    """Return a figure that is nothing but its frame, as large as what it stands in."""
    plot = figure(
        x_range=x_range, y_range=y_range, sizing_mode="stretch_both", output_backend="webgl", tools=[], toolbar_location=None,
        min_border=0, outline_line_color=None, background_fill_color=BACKGROUND, border_fill_color=BACKGROUND,
    )  # fmt: skip
    plot.axis.visible = plot.grid.visible = False
    return plot


def _hover(active: list[Any], part_names: ColumnDataSource) -> HoverTool:
    """Return what shows the numbers of one match under the pointer."""
    pixels = CustomJSHover(code="return Number.isFinite(value) ? `${value.toPrecision(3)} px` : 'unknown'")
    part = CustomJSHover(
        args={"part_names": part_names}, code="return value < 0 ? 'flagged' : part_names.data.text[value]"
    )
    return HoverTool(renderers=active, tooltips=TOOLTIP, formatters={"@residual": pixels, "@part": part}, limit=1)


def _draw_photo(plot: Any, photo: ColumnDataSource, alpha: float) -> Any:
    size = {"w": "width", "h": "height"}
    return plot.image_url("address", x=0, y=0, **size, source=photo, anchor="top_left", global_alpha=alpha)


def _draw_dots(plot: Any, source: ColumnDataSource, side: int, shown: IndexFilter, **style: Any) -> Any:
    dots = plot.scatter(f"x{side}", f"y{side}", source=source, view=CDSView(filter=shown), size=6, **style)
    dots.nonselection_glyph = dots.selection_glyph = dots.glyph  # `chosen` is drawn in place of the selection
    return dots


def _draw_segments(plot: Any, source: ColumnDataSource, side: int, **style: Any) -> Any:
    ends = {"x0": f"x{side}", "y0": f"y{side}", "x1": f"other_x{side}", "y1": f"other_y{side}"}
    segments = plot.segment(**ends, source=source, **style)
    segments.nonselection_glyph = segments.selection_glyph = segments.glyph
    return segments


def _draw_ring(plot: Any, source: ColumnDataSource, side: int, size: float) -> None:
    plot.scatter(f"x{side}", f"y{side}", source=source, size=size, fill_alpha=0, line_color=CHOSEN, line_width=2)


def _draw_expected(plot: Any, source: ColumnDataSource, side: int) -> None:
    ends = dict(zip(("x0", "y0", "x1", "y1"), EXPECTED_ENDS[4 * side - 4 : 4 * side], strict=True))
    plot.segment(**ends, source=source, line_width=1.5, line_color=EXPECTED)
    plot.scatter(ends["x1"], ends["y1"], source=source, marker="x", size=11, line_width=2, line_color=EXPECTED)
