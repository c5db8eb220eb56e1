"""The Bokeh models of a pair: both photographs with ranges that `pair.js` links, a patch of each, and the controls.

All tables are empty: `pair.js` fills them.
"""

from __future__ import annotations

import math
from typing import Any

from bokeh import models
from bokeh.plotting import figure

from ruzhash_cv.drawing.pictures import PLASMA
from ruzhash_cv.report.numbers import PROBABILITY, css

BACKGROUND, CHOSEN, EXPECTED = "#1c1c1c", "#ffffff", "#ff40ff"
#: Opacity of the photographs at first, so that the matches stand out.
DIMMED = 0.6
#: Lines that are drawn at first, and at most; more hide the photographs.
LINES, MOST_LINES = 100, 1000
#: Half the side of a patch, px: the choices, and the first one.
PATCHES, PATCH = (12, 24, 48, 96), 1
#: Ends of the colours of residuals and of their slider, px; residuals beyond count as at the end.
COLOURED, CHOSEN_BY = (0.1, 100.0), (0.1, 1000.0)
#: Colours from low to high anomaly, without the darkest, which would be lost on a photograph.
PALETTE = [css(colour) for colour in PLASMA[50::4]]
#: Of a match; positions are in the units of the figures.
COLUMNS = ("row", "x1", "y1", "x2", "y2", "kept", "probability", "residual", "structure", "part", "order")
#: Of a line: the end in the other image, in the units of each figure.
OTHER_ENDS = ("other_x1", "other_y1", "other_x2", "other_y2")
#: Of the place at which a structure expects a match, in each figure.
EXPECTED_ENDS = tuple(f"{end}_{axis}{side}" for side in (1, 2) for end in ("from", "to") for axis in "xy")
TOOLTIP = (
    '<div style="font: 13px sans-serif; padding: 2px 4px"><b>match @row</b><br>'
    + PROBABILITY
    + " @probability{0.000}<br>residual @residual{custom}<br>@part{custom}</div>"
)


def tables() -> dict[str, Any]:
    """Return the tables of the figures, filters of their rows, and mappers from a column to colours."""
    columns = {"matches": COLUMNS, "expected": EXPECTED_ENDS, "part_names": ("text",)}
    columns |= dict.fromkeys(("lines", "hovered", "chosen"), COLUMNS + OTHER_ENDS)
    columns |= dict.fromkeys(("photo1", "photo2"), ("address", "width", "height"))
    return {
        **{name: models.ColumnDataSource({column: [] for column in listed}) for name, listed in columns.items()},
        "shown_kept": models.IndexFilter([]),
        "shown_flagged": models.IndexFilter([]),
        "by_part": models.LinearColorMapper([BACKGROUND], low=-1.5, high=-0.5),
        "by_probability": models.LinearColorMapper(PALETTE[::-1], low=0.0, high=1.0),
        "by_residual": models.LogColorMapper(PALETTE, low=COLOURED[0], high=COLOURED[1]),
    }


def figures(held: dict[str, Any]) -> dict[str, Any]:
    """Return both figures and both patches by name, and lists of the glyphs of each kind."""
    pixels = "return Number.isFinite(value) ? `${value.toPrecision(3)} px` : 'unknown'"
    text = "return value < 0 ? 'flagged' : part_names.data.text[value]"
    words = {
        "@residual": models.CustomJSHover(code=pixels),
        "@part": models.CustomJSHover(args={"part_names": held["part_names"]}, code=text),
    }
    made: dict[str, Any] = {"backdrops": [], "dots": [], "crosses": [], "segments": []}
    for side in (1, 2):
        plot, photo = _empty(), held[f"photo{side}"]
        made["backdrops"].append(_draw_photo(plot, photo, DIMMED))
        segments = _draw_segments(plot, held["lines"], side, line_width=1.2, line_alpha=0.7)
        crosses = _draw_dots(plot, held["matches"], side, held["shown_flagged"], marker="x", line_width=1.5)
        dots = _draw_dots(plot, held["matches"], side, held["shown_kept"], line_color=BACKGROUND, line_width=0.6)
        _draw_expected(plot, held["expected"], side)
        for name in ("hovered", "chosen"):
            _draw_segments(plot, held[name], side, line_width=2, line_color=CHOSEN)
            _draw_ring(plot, held[name], side, size=14)
        active = [segments, crosses, dots]
        wheel = models.WheelZoomTool()
        hover = models.HoverTool(renderers=active, tooltips=TOOLTIP, formatters=words, limit=1)
        plot.add_tools(models.PanTool(), wheel, models.TapTool(renderers=active), hover)
        plot.toolbar.active_scroll = wheel
        for name, glyph in (("segments", segments), ("crosses", crosses), ("dots", dots)):
            made[name].append(glyph)
        patch = _empty()
        made |= {f"figure{side}": plot, f"patch{side}": patch}
        _draw_photo(patch, photo, 1.0)
        _draw_expected(patch, held["expected"], side)
        _draw_ring(patch, held["chosen"], side, size=30)
    return made


def controls() -> dict[str, Any]:
    """Return the widgets by name; `pair.js` gives them their counts."""
    low, high = (math.log10(end) for end in CHOSEN_BY)
    as_pixels = models.CustomJSTickFormatter(
        args={"low": low, "high": high},
        code="return tick >= high ? 'any' : tick <= low ? '0 px' : `${(10 ** tick).toPrecision(2)} px`",
    )
    wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
    return {
        "colour": models.RadioButtonGroup(labels=["structure", PROBABILITY, "residual"], active=0, **wide),
        "kinds": models.CheckboxButtonGroup(labels=["kept", "flagged"], active=[0, 1], **wide),
        "parts": models.CheckboxGroup(**wide),
        "probabilities": models.RangeSlider(title=PROBABILITY, start=0.0, end=1.0, step=0.01, value=(0.0, 1.0), **wide),
        "residuals": models.RangeSlider(
            title="residual", start=low, end=high, step=0.05, value=(low, high), format=as_pixels, **wide
        ),
        "most_lines": models.Slider(title="lines at most", start=0, end=MOST_LINES, step=10, value=LINES, **wide),
        "brightness": models.Slider(title="brightness", start=0.0, end=1.0, step=0.05, value=DIMMED, **wide),
        "patch_size": models.RadioButtonGroup(labels=[f"{2 * half} px" for half in PATCHES], active=PATCH, **wide),
        "previous": models.Button(label="‹ less probable"),
        "next": models.Button(label="more probable ›"),
        "reset": models.Button(label="whole photographs"),
    }


def _empty() -> Any:
    """Return a figure that is nothing but its frame and fills its place on the page."""
    plot = figure(
        x_range=models.Range1d(0, 1), y_range=models.Range1d(1, 0), sizing_mode="stretch_both", output_backend="webgl", tools=[],
        toolbar_location=None, min_border=0, outline_line_color=None, background_fill_color=BACKGROUND,
        border_fill_color=BACKGROUND,
    )  # fmt: skip
    plot.axis.visible = plot.grid.visible = False
    return plot


def _draw_photo(plot: Any, photo: models.ColumnDataSource, alpha: float) -> Any:
    size = {"w": "width", "h": "height"}
    return plot.image_url("address", x=0, y=0, **size, source=photo, anchor="top_left", global_alpha=alpha)


def _draw_dots(plot: Any, source: models.ColumnDataSource, side: int, shown: models.IndexFilter, **style: Any) -> Any:
    dots = plot.scatter(f"x{side}", f"y{side}", source=source, view=models.CDSView(filter=shown), size=6, **style)
    dots.nonselection_glyph = dots.selection_glyph = dots.glyph  # `chosen` is drawn in place of the selection
    return dots


def _draw_segments(plot: Any, source: models.ColumnDataSource, side: int, **style: Any) -> Any:
    ends = {"x0": f"x{side}", "y0": f"y{side}", "x1": f"other_x{side}", "y1": f"other_y{side}"}
    segments = plot.segment(**ends, source=source, **style)
    segments.nonselection_glyph = segments.selection_glyph = segments.glyph
    return segments


def _draw_ring(plot: Any, source: models.ColumnDataSource, side: int, size: float) -> None:
    plot.scatter(f"x{side}", f"y{side}", source=source, size=size, fill_alpha=0, line_color=CHOSEN, line_width=2)


def _draw_expected(plot: Any, source: models.ColumnDataSource, side: int) -> None:
    ends = dict(zip(("x0", "y0", "x1", "y1"), EXPECTED_ENDS[4 * side - 4 : 4 * side], strict=True))
    plot.segment(**ends, source=source, line_width=1.5, line_color=EXPECTED)
    plot.scatter(ends["x1"], ends["y1"], source=source, marker="x", size=11, line_width=2, line_color=EXPECTED)
