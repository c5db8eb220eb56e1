"""The site: `sphinx-build -W docs docs/_build/html` builds it, offline, and runs every script of the gallery."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib

import ruzhash_cv
from ruzhash_cv.foundation.arrays import Record

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))
matplotlib.use("agg")


def outside_gallery() -> str:
    """Return a pattern of the examples whose docstring has no heading: plain scripts, which the gallery leaves out."""
    names = []
    for path in sorted((ROOT / "examples").glob("*/*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if not re.search(r"\A.+\n={3,}\n", docstring):
            names.append(re.escape(path.name))
    return rf"(^|/)({'|'.join(names)})$" if names else r"\A\Z"


project = "ruzhash_cv"
author = "The ruzhash_cv developers"
version = release = ruzhash_cv.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
# A name in backticks leads to its page where it has one, and is code where it has none.
default_role = "py:obj"

numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "ignore_pattern": outside_gallery(),
    "subsection_order": [f"../examples/{section}" for section in ("start", "planes", "motion", "pipelines", "models")],
    "within_subsection_order": "gallery_order.ByInterest",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e6,
    "plot_gallery": True,
    "capture_repr": (),
}


def without_signature(app: object, what: str, name: str, thing: object, options: object, *signature: str) -> object:
    """Leave out how results are made: users never make one."""
    return ("", None) if what == "class" and isinstance(thing, type) and issubclass(thing, Record) else None


def with_gallery_links(app: object, name: str, source: list[str]) -> None:
    """Let links to the examples lead to their pages of the gallery. In a checkout they lead to the scripts."""
    linked = re.sub(r"\]\(\.\./examples/GALLERY_HEADER\.rst\)", "](gallery/index.rst)", source[0])
    source[0] = re.sub(r"\]\(\.\./examples/(\w+/\w+)\.py\)", r"](gallery/\1.rst)", linked)


def setup(app: Any) -> None:
    """Connect what Sphinx calls while it builds."""
    app.connect("source-read", with_gallery_links)
    app.connect("autodoc-process-signature", without_signature)


html_theme = "pydata_sphinx_theme"
html_title = "ruzhash_cv"
html_favicon = "_static/mark.svg"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
# A page with no pages below it needs no column of them.
html_sidebars = {path.stem: [] for path in (ROOT / "docs").glob("*.md")} | {"paper/tables": []}
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
