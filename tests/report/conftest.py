"""Pages in a real browser, without a window and without a network."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

#: Without these Chromium looks for updates; a root user has no sandbox.
DISABLED = "background-networking", "component-update", "sync"
FLAGS = ("--no-sandbox", "--no-first-run", *(f"--disable-{each}" for each in DISABLED))
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Chromium as the system has it, or else as Playwright installed it."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    installed = next(filter(None, map(shutil.which, NAMES)), None)
    with sync_api.sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=installed, args=list(FLAGS))
        except sync_api.Error:
            pytest.skip("needs Chromium: `apt-get install chromium` or `playwright install chromium`")
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens a file. At the end there was no error in the console, and no request but to files."""
    problems: list[str] = []
    context = chromium.new_context()

    def open_page(path: Path, anchor: str = "", **size: int) -> Any:
        page = context.new_page()
        page.set_viewport_size({"width": 1300, "height": 900, **size})
        page.goto(path.as_uri() + anchor)
        page.wait_for_function("window.Bokeh?.documents[0]?.is_idle && document.body.dataset.ready")
        return page

    context.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: problems.append(str(error.error)))
    context.on("request", lambda sent: None if sent.url.startswith(("file:", "data:")) else problems.append(sent.url))
    yield open_page
    context.close()
    assert problems == []
