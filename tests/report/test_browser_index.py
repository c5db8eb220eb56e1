"""The index of many pairs in a browser: what its table, its filters and the heat map show, and where clicks lead."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import pytest
from report_cases import WIDTH, shown, two_planes

from ruzhash_cv.filtering import filter_points
from ruzhash_cv.pipelines.pages import open_pages

Opened = Callable[..., Any]
CASE = two_planes()
NAMES = ("a.png", "b <i>.png", "c.png", "d.png")
#: Matches of the pairs, in the order in which they are done: not that of the names.
PAIRS = dict(zip(reversed(list(itertools.combinations(NAMES, 2))), (5, 40, 60, 90, 120, 200), strict=True))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images, out = tmp_path_factory.mktemp("images"), tmp_path_factory.mktemp("pages") / "out"
    for name in NAMES[:3]:
        cv2.imwrite(str(images / name), CASE.img1)
    with open_pages(out, images) as pages:
        for names, n in PAIRS.items():
            points = CASE.points1[-n:], CASE.points2[-n:]
            pages.add(names, points, filter_points(*points))
    return out


@pytest.fixture
def page(opened: Opened, folder: Path) -> Any:
    index = opened(folder / "index.html")
    index.locator(".slick-row").first.wait_for()
    return index


def column(page: Any, place: int) -> list[str]:
    """Return the cells of a column as they stand below each other."""
    script = "(rows, place) => rows.map((row) => [row.getBoundingClientRect().top, row.querySelector(`.l${place}`).innerText])"
    return [text for _, text in sorted(page.locator(".slick-row").evaluate_all(script, place))]


def test_the_table_has_a_row_for_each_pair_by_the_names_of_its_images(page: Any) -> None:
    assert page.inner_text("#headline").startswith("6 pairs of 4 images")
    assert shown(page) == 6
    assert column(page, 1) == ["\n".join(names) for names in sorted(PAIRS)]
    assert column(page, 2) == [str(PAIRS[names]) for names in sorted(PAIRS)]


def test_a_click_on_a_title_sorts_the_table(page: Any) -> None:
    numbers = sorted(PAIRS.values())
    for order in (numbers, numbers[::-1]):
        page.locator(".slick-header-column").get_by_text("matches", exact=True).click()
        page.wait_for_timeout(200)
        assert [int(text) for text in column(page, 2)] == order


def test_words_leave_out_the_pairs_that_do_not_have_them(page: Any) -> None:
    page.locator("input[type=text]").type("D.png")
    assert shown(page) == 3
    assert all("d.png" in text for text in column(page, 1))


@pytest.mark.parametrize(("slider", "presses", "place"), [(0, 20, 3), (1, 4, 6)])
def test_sliders_leave_out_pairs_of_few_matches_or_evidence(page: Any, slider: int, presses: int, place: int) -> None:
    for _ in range(presses):
        page.locator(".choices .noUi-target").nth(slider).locator(".noUi-handle").press("ArrowRight")
    numbers = [int(text) for text in column(page, place)]
    assert 0 < shown(page) == len(numbers) < 6
    assert min(numbers) >= 20


def test_pairs_that_are_left_out_can_be_listed_alone(page: Any) -> None:
    page.get_by_text("left out", exact=True).click()
    assert shown(page) == 1
    assert column(page, 2) == ["5"]
    assert column(page, 7)[0] != ""
    page.get_by_text("with matches", exact=True).click()
    assert shown(page) == 5


def cell(page: Any, x: int, y: int) -> tuple[float, float]:
    """Return where the cell of two images is on the screen."""
    return tuple(  # type: ignore[return-value]
        page.evaluate(
            """([x, y]) => {
                const view = Bokeh.index.find_one_by_id(Bokeh.documents[0].get_model_by_name("map").id);
                const box = view.el.getBoundingClientRect(), frame = view.frame;
                return [box.left + frame.x_scale.compute(x), box.top + frame.y_scale.compute(y)];
            }""",
            [x, y],
        )
    )


def test_the_heat_map_shows_the_pairs_of_the_table_both_ways_round(page: Any) -> None:
    data = "Bokeh.documents[0].get_model_by_name('map').renderers[0].data_source.data"
    places = set(zip(page.evaluate(f"[...{data}.x]"), page.evaluate(f"[...{data}.y]"), strict=True))
    assert places == {(i, j) for i in range(4) for j in range(4) if i != j}
    page.get_by_text("left out", exact=True).click()
    assert set(page.evaluate(f"[...{data}.x]")) == {2, 3}


def test_the_colours_of_the_heat_map_can_be_chosen(page: Any) -> None:
    seen = [page.locator("#map").screenshot()]
    for label, field in (("share kept", "share"), ("evidence", "evidence")):
        page.locator(".bk-btn", has_text=label).click()
        page.wait_for_timeout(200)
        assert page.evaluate("Bokeh.documents[0].get_model_by_name('map').renderers[0].glyph.fill_color.field") == field
        seen.append(page.locator("#map").screenshot())
    assert len(set(seen)) == 3


def test_the_pointer_names_the_pair_of_a_cell(page: Any) -> None:
    page.mouse.move(*cell(page, 1, 0), steps=3)
    page.get_by_text("b <i>.png", exact=True).last.wait_for()
    page.get_by_text(f"of {PAIRS['a.png', 'b <i>.png']} matches kept").wait_for()


def test_a_row_leads_to_the_page_of_its_pair_with_its_photographs_and_back(page: Any) -> None:
    page.get_by_text("b <i>.png").first.click()
    page.wait_for_function("document.body.dataset.ready && document.querySelector('h1').textContent.includes(' and ')")
    assert page.inner_text("h1") == "a.png and b <i>.png"
    assert page.inner_text("#shown") == f"{PAIRS['a.png', 'b <i>.png']} of {PAIRS['a.png', 'b <i>.png']} matches shown"
    source = "Bokeh.documents[0].get_model_by_name('figure2').renderers[0].data_source.data"
    assert page.evaluate(f"{source}.address[0]").startswith("data:image/jpeg")
    assert page.evaluate(f"{source}.width[0]") == WIDTH
    page.get_by_text("all pairs").click()
    page.wait_for_function("document.querySelector('h1').textContent == 'Image pairs'")


def test_a_cell_leads_to_the_page_of_its_pair_also_without_a_photograph(page: Any) -> None:
    page.mouse.click(*cell(page, 0, 3))
    page.wait_for_function("document.querySelector('h1').textContent.includes(' and ')")
    assert page.inner_text("h1") == "a.png and d.png"


def test_an_address_without_a_pair_says_so(chromium: Any, folder: Path) -> None:
    page = chromium.new_page()
    page.goto((folder / "pair.html").as_uri() + "#0123")
    page.get_by_text("there is no pairs/0123.js").wait_for()


def test_a_changed_address_shows_the_other_pair(page: Any, opened: Opened, folder: Path) -> None:
    first, second = page.evaluate("rows.slice(0, 2).map((row) => [row.id, `${row.image1} and ${row.image2}`])")
    other = opened(folder / "pair.html", f"#{first[0]}")
    assert other.inner_text("h1") == first[1]
    other.evaluate(f"location.hash = '{second[0]}'")
    other.wait_for_function("title => document.querySelector('h1').textContent == title", arg=second[1])


def test_no_column_is_cut_at_1280_px(opened: Opened, folder: Path) -> None:
    page = opened(folder / "index.html", width=1280)
    page.locator(".slick-row").first.wait_for()
    boxes = page.locator(".slick-header-column").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect())")
    assert len(boxes) == 8
    table = page.locator("#table").bounding_box()
    assert max(box["right"] for box in boxes) <= table["x"] + table["width"]
    cut = "(all) => all.filter((cell) => cell.scrollWidth > cell.clientWidth + 1 || cell.scrollHeight > cell.clientHeight + 1).length"
    assert page.locator(".slick-cell").evaluate_all(cut) == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_on_a_phone_only_the_table_scrolls_sideways_and_no_column_is_cut_off(opened: Opened, folder: Path) -> None:
    page = opened(folder / "index.html", width=390, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator(".slick-row").first.wait_for()
    boxes = page.locator(".slick-header-column").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect())")
    assert len(boxes) == 4
    assert max(box["right"] for box in boxes) <= 390
