"""HTML pages: what Bokeh draws, laid out by a template and connected by a script; the data come last, or from files."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.events import DocumentReady
from bokeh.models import CustomJS
from bokeh.resources import INLINE

from ruzhash_cv.report.controls import PATCHES, controls
from ruzhash_cv.report.figures import figures, tables
from ruzhash_cv.report.numbers import PROBABILITY

FOLDER = Path(__file__).parent
#: Where the data stand in a page.
DATA = "/* data */"


def as_script(data: Any) -> str:
    """Return data as JavaScript that may stand in a page: no text in it ends the script."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def pair_page(pair: Mapping[str, Any]) -> str:
    """Return the page of a pair, in one piece; `pair` as from `pair_as_dict`."""
    return _pair_page().replace(DATA, f"const pair = {as_script(pair)};", 1)


@functools.cache
def _pair_page() -> str:
    held, widgets = tables(), controls()
    drawn = figures(held)
    roots = {name: drawn[name] for name in ("figure1", "figure2", "patch1", "patch2")} | widgets
    facts = {"halves": PATCHES, "probability": PROBABILITY}
    return page("pair", roots, {**held, **drawn, **widgets, **facts}, INLINE)


def page(kind: str, roots: Mapping[str, Any], arguments: Mapping[str, Any], resources: Any) -> str:
    """Return a page of a kind: its template places the `roots` by their names, and its script gets the `arguments`."""
    document = Document(title="ruzhash_cv")
    with document.models.freeze():
        for name, root in roots.items():
            root.name = name
            document.add_root(root)
    document.js_on_event(DocumentReady, CustomJS(args=dict(arguments), code=_read(f"{kind}.js")))
    variables = {"style": _read("report.css")}
    return str(file_html(document, resources, template=_read(f"{kind}.html"), template_variables=variables))


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
