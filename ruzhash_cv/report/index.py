"""What Bokeh draws of many pairs: a table that can be sorted and filtered, and the graph of images as a heat map.

All tables are empty: `index.js` fills them.
"""

from __future__ import annotations

from typing import Any

from bokeh import models
from bokeh.palettes import Viridis256
from bokeh.plotting import figure

from ruzhash_cv.report.numbers import COLUMNS

#: Evidence that the slider and the colours end at.
MOST_EVIDENCE = 200
ROW_HEIGHT = 58
STYLE = "height: 50px; max-width: 60px; object-fit: cover; margin-right: 3px"
PICTURES = '<a href="pair.html#<%- id %>" style="display: flex">' + "".join(
    f'<% if (thumbnail{side}) {{ %><img src="<%- thumbnail{side} %>" alt="" style="{STYLE}"><% }} %>' for side in (1, 2)
)
NAMES = (
    '<a href="pair.html#<%- id %>" style="display: block; white-space: normal; overflow-wrap: anywhere; line-height: 1.1">'
    "<%- image1 %><br><%- image2 %></a>"
)
REASON = '<div style="white-space: normal; line-height: 1.1"><%- value %></div>'
TOOLTIP = (
    '<div style="font: 13px sans-serif; padding: 2px 4px"><b>@image1</b><br><b>@image2</b><br>@kept of @matches matches kept'
    "<br>motions: @motions<br>evidence @evidence{0}<br>@reason</div>"
)


def widgets() -> dict[str, Any]:
    """Return the controls by name."""
    wide: dict[str, Any] = {"sizing_mode": "stretch_width"}
    return {
        "colour": models.RadioButtonGroup(labels=["kept", "share kept", "evidence"], active=0),
        "words": models.TextInput(title="names or reason contain", **wide),
        "least_kept": models.Slider(title="kept at least", start=0, end=1, step=1, value=0, **wide),
        "least_evidence": models.Slider(title="evidence at least", start=0, end=MOST_EVIDENCE, step=5, value=0, **wide),
        "states": models.RadioButtonGroup(labels=["all", "with matches", "left out"], active=0),
    }


def table() -> dict[str, Any]:
    """Return the table of pairs, which a click on a column's title sorts, with its data and the filter of its rows."""
    pairs, shown = models.ColumnDataSource({name: [] for name in COLUMNS}), models.IndexFilter([])
    pictures, texts, reasons = (models.HTMLTemplateFormatter(template=each) for each in (PICTURES, NAMES, REASON))
    whole, percent = (models.NumberFormatter(format=form, text_align="right") for form in ("0", "0%"))
    number = {"width": 70, "formatter": whole}
    columns = [
        models.TableColumn(field="id", title="", width=140, sortable=False, formatter=pictures),
        models.TableColumn(field="image1", title="images", width=200, formatter=texts),
        models.TableColumn(field="matches", title="matches", **number),
        models.TableColumn(field="kept", title="kept", **number),
        models.TableColumn(field="share", title="share", width=60, formatter=percent),
        models.TableColumn(field="motions", title="motions", **number),
        models.TableColumn(field="evidence", title="evidence", **number),
        models.TableColumn(field="reason", title="reason", width=200, formatter=reasons),
    ]
    drawn = models.DataTable(
        source=pairs, view=models.CDSView(filter=shown), columns=columns, row_height=ROW_HEIGHT, index_position=None, reorderable=False,
        sizing_mode="stretch_both",
    )  # fmt: skip
    return {"table": drawn, "pairs": pairs, "shown": shown}


def graph() -> dict[str, Any]:
    """Return the heat map of the graph of images, with its data: a cell for each pair in the table, both ways round."""
    names = models.ColumnDataSource({"text": []})
    cells = models.ColumnDataSource({name: [] for name in (*COLUMNS, "x", "y")})
    mappers = {
        "by_kept": models.LogColorMapper(Viridis256, low=1, high=10, low_color="#ffffff"),
        "by_share": models.LinearColorMapper(Viridis256, low=0.0, high=1.0),
        "by_evidence": models.LinearColorMapper(Viridis256, low=0.0, high=MOST_EVIDENCE),
    }
    plot = figure(
        x_range=models.Range1d(-0.5, 0.5), y_range=models.Range1d(0.5, -0.5), x_axis_location="above", sizing_mode="stretch_both",
        background_fill_color="#e4e4e4", tools="pan,wheel_zoom,reset", active_scroll="wheel_zoom", toolbar_location=None,
    )  # fmt: skip
    ticker = models.FixedTicker(ticks=[])
    plot.axis.ticker = ticker
    plot.axis.formatter = models.CustomJSTickFormatter(args={"names": names}, code="return names.data.text[tick] ?? ''")
    plot.xaxis.major_label_orientation = "vertical"
    plot.grid.visible = False
    squares = plot.rect("x", "y", 0.94, 0.94, source=cells, line_color=None)
    squares.nonselection_glyph = squares.selection_glyph = squares.glyph
    hover = models.HoverTool(renderers=[squares], tooltips=TOOLTIP, limit=1)
    plot.add_tools(hover, models.TapTool(renderers=[squares]))
    bar = models.ColorBar(color_mapper=mappers["by_kept"], width=12)
    plot.add_layout(bar, "right")
    return {"map": plot, "cells": cells, "names": names, "ticker": ticker, "squares": squares, "bar": bar, **mappers}
