"""HTML pages: Bokeh models, placed by a template and connected by a script that gets the data."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.events import DocumentReady
from bokeh.models import CustomJS
from bokeh.resources import INLINE

from ruzhash_cv.report import index
from ruzhash_cv.report.numbers import PROBABILITY
from ruzhash_cv.report.pair import PATCHES, controls, figures, tables

FOLDER = Path(__file__).parent
#: Places of the data and of the title in the page of a pair.
DATA, TITLE = "/* data */", "/* title */"
#: JavaScript that shows why there is no pair.
SAY = "document.querySelector('h1').textContent = error.message"


def pair_page(pair: Mapping[str, Any]) -> str:
    """Return the page of a pair, in one piece; `pair` as from `pair_as_dict`."""
    page = _pair_page(DATA, TITLE, many=False).replace(DATA, f"Promise.resolve({as_script(pair)})", 1)
    return page.replace(TITLE, escape(pair["title"]), 1)


def any_pair_page() -> str:
    """Return a page that shows the pair whose name follows the # in its address; it loads `pairs/NAME.js`."""
    return _pair_page(_read("load.js"), "Image pair", many=True)


def index_page() -> str:
    """Return the page of many pairs, which loads `pairs.js`."""
    listed, drawn, chosen_by = index.table(), index.graph(), index.widgets()
    roots = {"table": listed["table"], "map": drawn["map"], **chosen_by}
    return _page("index", "Image pairs", roots, {**listed, **drawn, **chosen_by}, code=_read("index.js"))


def as_script(data: Any) -> str:
    """Return data as JavaScript that may stand in a page: no text in it ends the script."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


@functools.cache
def _pair_page(data: str, title: str, *, many: bool) -> str:
    held, widgets = tables(), controls()
    drawn = figures(held)
    roots = {name: drawn[name] for name in ("figure1", "figure2", "patch1", "patch2")} | widgets
    facts = {"halves": PATCHES, "probability": PROBABILITY}
    code = f"const show = (pair) => {{\n{_read('pair.js')}}};\nloading.then(show, (error) => {SAY});"
    return _page("pair", title, roots, {**held, **drawn, **widgets, **facts}, code=code, data=data, many=many)


def _page(
    kind: str, title: str, roots: Mapping[str, Any], arguments: Mapping[str, Any], *, code: str, **variables: Any
) -> str:
    """Return a page of a kind: its template places the `roots` by their names, and the code gets the `arguments`."""
    document = Document(title=title)
    with document.models.freeze():
        for name, root in roots.items():
            root.name = name
            document.add_root(root)
    document.js_on_event(DocumentReady, CustomJS(args=dict(arguments), code=code))
    variables["style"] = _read("report.css")
    return str(file_html(document, INLINE, template=_read(f"{kind}.html"), template_variables=variables))


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")
