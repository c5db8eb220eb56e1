"""Pages of matches in Chromium: their size, the time to the first picture and of each interaction, beside Plotly's; and a screenshot.

    python benchmarks/html_pages.py                                     # 36 and 10,000 matches, median of 5 openings in turn
    python benchmarks/html_pages.py --screenshot docs/images/report.jpg

Needs the extras html and browser, Chromium, and Plotly for its rows. Plotly draws the same photographs, dots and 100 lines, without
controls.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from playwright.sync_api import sync_playwright

from ruzhash_cv import filter_points, write_html
from ruzhash_cv.cli.filter import match_images
from ruzhash_cv.datasets import load_pair
from ruzhash_cv.report.photos import data_address

OPENINGS = 5
#: When the page has been drawn, ms since it was opened.
DRAWN = {
    "Bokeh": "window.Bokeh?.documents[0]?.is_idle && document.body.dataset.ready",
    "Plotly": "window.isDrawn",
}
NOW = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
#: What is done in a page, on models of Bokeh; each is timed until the next picture.
INTERACTIONS = {
    "slider of probability": "model('probabilities').value = [0.1 + 0.05 * k, 1]",
    "switch of flagged matches": "model('kinds').active = k % 2 ? [0, 1] : [0]",
    "pan": "range.setv({ start: range.start + 20, end: range.end + 20 })",
    "zoom": "range.setv({ start: range.start + 20, end: range.end - 20 })",
}
TIMED = """async () => {
    const model = (name) => Bokeh.documents[0].get_model_by_name(name), range = model("figure1").x_range;
    const times = [];
    for (let k = 0; k < 9; k++) {
        const since = performance.now();
        DO;
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        times.push(performance.now() - since);
    }
    return times;
}"""

Drawn = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, None, Any]


def drawn_case(n: int) -> Drawn:
    """Return photographs of 12 megapixels and n matches, two thirds of them on two planes, with their result."""
    pair, rng = load_pair("desk"), np.random.default_rng(0)
    images = [cv2.resize(image, (4000, 3000)) for image in (pair.img1, pair.img2)]
    points1 = rng.uniform([0, 0], [4000, 3000], (n, 2))
    points2 = points1 + np.where(points1[:, :1] < 2000, [120.0, 30.0], [-200.0, 80.0]) + rng.normal(0, 1, (n, 2))
    wrong = rng.random(n) < 1 / 3
    points2[wrong] = rng.uniform([0, 0], [4000, 3000], (int(wrong.sum()), 2))
    return images[0], points1, images[1], points2, None, filter_points(points1, points2)


def write_plotly(path: Path, drawn: Drawn) -> None:
    """Write what `write_html` draws at first, by Plotly with WebGL."""
    import plotly.graph_objects as go

    img1, points1, img2, points2, _, result = drawn
    (height, width), n = img1.shape[:2], len(points1)
    figure = go.Figure()
    ends = [np.column_stack([one, other, np.full(n, np.nan)])[:100].ravel() for one, other in (
        (points1[:, 0], points2[:, 0] + width), (points1[:, 1], points2[:, 1]),
    )]  # fmt: skip
    figure.add_scattergl(x=ends[0], y=ends[1], mode="lines", line_width=1)
    for rows in (result.inlier_mask, ~result.inlier_mask):
        for points, offset in ((points1, 0), (points2, width)):
            marker, told = {"size": 5, "color": result.labels[rows]}, np.flatnonzero(rows)
            figure.add_scattergl(
                x=points[rows, 0] + offset, y=points[rows, 1], mode="markers", marker=marker, customdata=told
            )
    for image, offset in ((img1, 0), (img2, width)):
        place = {"x": offset, "y": 0, "sizex": width, "sizey": height, "xref": "x", "yref": "y", "layer": "below"}
        figure.add_layout_image(source=data_address(image, 1600), sizing="stretch", **place)
    figure.update_yaxes(range=[height, 0], scaleanchor="x")
    tell = "requestAnimationFrame(() => (window.isDrawn = true));"
    figure.write_html(path, include_plotlyjs=True, post_script=tell)


def measure(browser: Any, pages: dict[tuple[str, int], Path]) -> None:
    """Print a row for each page, opened in turn."""
    times: dict[tuple[str, int], list[float]] = {key: [] for key in pages}
    for _ in range(OPENINGS):
        for key, path in pages.items():
            with browser.new_context(viewport={"width": 1440, "height": 900}) as context:
                page = context.new_page()
                page.goto(path.as_uri())
                page.wait_for_function(DRAWN[key[0]])
                times[key].append(page.evaluate(NOW))
    print("| drawn by | matches | file, MB | ms to the first picture |\n| --- | ---: | ---: | ---: |")
    for (library, n), path in pages.items():
        first = statistics.median(times[library, n])
        print(f"| {library} | {n:,} | {path.stat().st_size / 1e6:.1f} | {first:.0f} |")


def time_interactions(browser: Any, path: Path) -> None:
    """Print the median time of each interaction until it is seen."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(path.as_uri())
    page.wait_for_function(DRAWN["Bokeh"])
    for name, code in INTERACTIONS.items():
        print(f"{name:26} {statistics.median(page.evaluate(TIMED.replace('DO', code))):.0f} ms")


def take_screenshot(browser: Any, path: Path, folder: Path) -> None:
    """Write a picture of the page of the bundled pair of a desk."""
    pair = load_pair("desk")
    first, second, matches = match_images([pair.img1, pair.img2], ["desk1.jpg", "desk2.jpg"])
    result = filter_points(first.points, second.points, matches)
    drawn = pair.img1, first.points, pair.img2, second.points, matches, result
    write_html(folder / "desk.html", *drawn, names=("desk1.jpg", "desk2.jpg"))
    page = browser.new_page(viewport={"width": 1180, "height": 690})
    page.goto((folder / "desk.html").as_uri())
    page.wait_for_function(DRAWN["Bokeh"])
    page.screenshot(path=path, type="jpeg", quality=70)


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--screenshot", type=Path, metavar="PICTURE.jpg")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if options.screenshot is not None:
            take_screenshot(browser, options.screenshot, folder)
            return
        pages: dict[tuple[str, int], Path] = {}
        for n in (36, 10_000):
            drawn = drawn_case(n)
            pages |= {(library, n): folder / f"{library}_{n}.html" for library in DRAWN}
            write_html(pages["Bokeh", n], *drawn)
            write_plotly(pages["Plotly", n], drawn)
        measure(browser, pages)
        time_interactions(browser, pages["Bokeh", 10_000])


if __name__ == "__main__":
    main()
