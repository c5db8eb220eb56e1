"""Every link and picture of a built site that leads inside it, checked with its anchor; external addresses are only counted.

python docs/check_links.py docs/_build/html
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, and what it leads to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.targets: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors |= {given[name] or "" for name in ("id", "name") if name in given}
        self.targets += [given[name] or "" for name in ("href", "src") if name in given]


def fault_of(site: Path, pages: dict[Path, Page], source: Path, target: str) -> str | None:
    """Return what is wrong with a link, None where nothing is."""
    parts = urlsplit(target)
    path = (source.parent / unquote(parts.path)).resolve() if parts.path else source
    if not path.is_relative_to(site) or not path.exists():
        return "no such file"
    if parts.fragment and path in pages and unquote(parts.fragment) not in pages[path].anchors:
        return "no such anchor"
    return None


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html")) if "_static" not in path.parts}
    inside, external, faults = 0, 0, []
    for source, page in pages.items():
        for target in page.targets:
            if urlsplit(target).scheme or target.startswith("//"):
                external += not target.startswith("data:")
            else:
                inside += 1
                fault = fault_of(site, pages, source, target)
                if fault is not None:
                    faults.append(f"{source.relative_to(site)}: {target}: {fault}")
    print(f"{len(pages)} pages, {inside} links inside the site, {external} to elsewhere, {len(faults)} broken")
    if faults or not pages:
        sys.exit("\n".join(faults) or f"no page in {site}")


if __name__ == "__main__":
    main()
