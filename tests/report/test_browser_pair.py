"""The page of a pair in a browser: what its controls, the pointer and clicks change."""

import re
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import HEIGHT, PHOTOS, WIDTH, shown, two_planes

from ruzhash_cv.report import write_html
from ruzhash_cv.report.numbers import PROBABILITY, pair_as_dict

Opened = Callable[..., Any]
CASE = two_planes()
KEPT = int(CASE.result.inlier_mask.sum())
SEGMENT = "m.renderers.find((r) => r.glyph?.type == 'Segment').data_source.data"
#: Both images in the units of the figures: the second has half as many pixels.
POINTS = CASE.points1 + 0.5, (CASE.points2 + 0.5) * 2


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "pair.html"
    write_html(path, *CASE.drawn, names=("a/left.jpg", "a/right.jpg"))
    return path


@pytest.fixture
def page(opened: Opened, file: Path) -> Any:
    return opened(file)


def model(page: Any, name: str, expression: str) -> Any:
    """Evaluate an expression in a Bokeh model `m` of that name."""
    body = f"const m = Bokeh.documents[0].get_model_by_name('{name}'); return {expression}"
    return page.evaluate(f"(() => {{ {body} }})()")


def view(page: Any, name: str) -> np.ndarray:
    """Return left, top, right and bottom of what a figure shows."""
    return np.array(model(page, name, "[m.x_range.start, m.y_range.end, m.x_range.end, m.y_range.start]"))


def place(page: Any, match: int, side: int) -> tuple[float, float]:
    """Return the place of a match on the screen."""
    box = page.locator(f"#view{side}").bounding_box()
    left, top, right, bottom = view(page, f"figure{side}")
    share = (POINTS[side - 1][match] - [left, top]) / [right - left, bottom - top]
    return box["x"] + share[0] * box["width"], box["y"] + share[1] * box["height"]


def point_into(page: Any, side: int, x: float, y: float) -> None:
    """Move the pointer into a figure, to a share of its width and height."""
    box = page.locator(f"#view{side}").bounding_box()
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])


def press_key(page: Any, slider: int, handle: int, key: str, times: int) -> None:
    """Move a handle of a slider, by its place on the page, with the keyboard."""
    for _ in range(times):
        page.locator("aside .noUi-target").nth(slider).locator(".noUi-handle").nth(handle).press(key)


def facts(page: Any) -> dict[str, str]:
    """Return the numbers of the match that is looked at."""
    names, values = (page.locator(f"#facts {tag}").all_inner_texts() for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def lonely_match(kept: bool) -> int:
    """Return the match that is furthest from all others in the first image."""
    distances = np.linalg.norm(CASE.points1[:, None] - CASE.points1, axis=2) + 1e9 * np.eye(len(CASE.points1))
    return int(np.where(CASE.result.inlier_mask == kept, distances.min(axis=1), 0).argmax())


def test_the_page_opens_with_its_title_its_counts_and_the_table_of_the_result(page: Any) -> None:
    assert page.title() == page.inner_text("h1") == "left.jpg and right.jpg"
    assert page.inner_text("#headline").startswith(f"{KEPT} of 200 matches kept, 2 motions")
    assert shown(page) == 200
    cells = [text.split("\t") for text in page.inner_text("#structures tbody").replace("\xa0", " ").splitlines()]
    printed = str(CASE.result).splitlines()[-len(cells) :]
    assert [" ".join(" ".join(row).split()) for row in cells] == [" ".join(line.split()) for line in printed]


def test_switches_leave_out_kept_and_flagged_matches_and_groups(page: Any) -> None:
    boxes = page.locator("#parts input[type=checkbox]")
    assert boxes.count() == len(CASE.result.motions) == 2
    for click, left in (
        (page.get_by_text(f"flagged {200 - KEPT}", exact=True), KEPT),
        (boxes.first, int(CASE.result.motions[1].mask.sum())),
        (page.get_by_text(f"kept {KEPT}", exact=True), 0),
        (page.get_by_text(f"flagged {200 - KEPT}", exact=True), 200 - KEPT),
    ):
        click.click()
        assert shown(page) == left


def test_sliders_leave_out_matches_and_lines_and_dim_the_photographs(page: Any) -> None:
    press_key(page, 2, 0, "ArrowLeft", 7)
    assert model(page, "figure1", f"{SEGMENT}.row.length") == 30
    press_key(page, 3, 0, "ArrowRight", 4)
    for name in ("figure1", "figure2"):
        assert model(page, name, "m.renderers[0].glyph.global_alpha.value") == pytest.approx(0.8)
    press_key(page, 0, 0, "ArrowRight", 30)
    assert model(page, "probabilities", "m.value[0]") == pytest.approx(0.3)
    is_probable = np.round(CASE.result.inlier_probabilities, 4) >= 0.3  # pages round to four digits
    assert shown(page) == is_probable.sum() < 200
    press_key(page, 1, 1, "ArrowLeft", 66)
    limit = 10 ** model(page, "residuals", "m.value[1]")
    assert limit == pytest.approx(0.5, rel=0.01)
    residuals = pair_as_dict(PHOTOS, CASE.points1, CASE.points2, CASE.result)["columns"]["residual"]
    assert shown(page) == (is_probable & (np.array(residuals, float) <= limit)).sum() < is_probable.sum()


def test_colours_show_the_chosen_number(page: Any) -> None:
    seen = [page.locator("#view1").screenshot()]
    for field in ("residual", PROBABILITY):
        page.locator("aside").get_by_text(field, exact=True).first.click()
        for name in ("figure1", "figure2"):
            assert field in model(page, name, "m.renderers.flatMap((r) => r.glyph.fill_color?.field ?? [])")
        assert page.locator("#scale").is_visible()
        seen.append(page.locator("#view1").screenshot())
    assert len(set(seen)) == 3


def test_where_one_image_is_zoomed_the_other_shows_the_partners_at_their_scale(page: Any) -> None:
    whole = [0, 0, WIDTH, HEIGHT]
    for side, x in product((1, 2), (0.2, 0.8)):
        point_into(page, side, x, 0.5)
        for _ in range(3):
            page.mouse.wheel(0, -200)
            page.wait_for_timeout(100)
        moved, followed = view(page, f"figure{side}"), view(page, f"figure{3 - side}")
        assert moved[2] - moved[0] < 0.6 * WIDTH
        # Spreads of a turned plane differ.
        assert followed[2] - followed[0] == pytest.approx(moved[2] - moved[0], rel=0.3)
        middles = [(bounds[:2] + bounds[2:]) / 2 for bounds in (moved, followed)]
        away = np.linalg.norm(POINTS[side - 1] - middles[0], axis=1) + 1e9 * ~CASE.result.inlier_mask
        moves = (POINTS[2 - side] - POINTS[side - 1])[away.argsort()[:5]]
        np.testing.assert_allclose(middles[1] - middles[0], np.median(moves, axis=0), atol=6.0)
        page.get_by_text("whole photographs").click()
        page.wait_for_timeout(100)
        assert [view(page, f"figure{number}").tolist() for number in (1, 2)] == [whole, whole]


def test_a_drag_moves_both_images(page: Any) -> None:
    point_into(page, 1, 0.3, 0.3)
    page.mouse.down()
    point_into(page, 1, 0.4, 0.4)
    page.mouse.up()
    page.wait_for_timeout(100)
    for name in ("figure1", "figure2"):
        assert max(view(page, name)[:2]) < -5


@pytest.mark.parametrize("width", [1300, 390])
def test_lines_end_where_the_other_figure_has_the_match_zoomed_or_not(opened: Opened, file: Path, width: int) -> None:
    page = opened(file, width=width)
    for _ in range(2):
        for side in (1, 2):
            data = model(page, f"figure{side}", SEGMENT)
            box, other = (page.locator(f"#view{number}").bounding_box() for number in (side, 3 - side))
            left, top, right, bottom = view(page, f"figure{side}")
            ends = np.array([data[f"other_{axis}{side}"] for axis in "xy"]).T
            ends = (ends - [left, top]) / [right - left, bottom - top]
            ends = ends * [box["width"], box["height"]] + [box["x"] - other["x"], box["y"] - other["y"]]
            left, top, right, bottom = view(page, f"figure{3 - side}")
            matches = (POINTS[2 - side][data["row"]] - [left, top]) / [right - left, bottom - top]
            np.testing.assert_allclose(ends, matches * [other["width"], other["height"]], atol=0.3)
        point_into(page, 1, 0.3, 0.5)
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(200)


def test_a_click_on_a_match_shows_its_numbers_and_its_surroundings(page: Any) -> None:
    for side, kept in ((1, True), (1, False), (2, True), (2, False)):
        match = lonely_match(kept)
        page.mouse.click(*place(page, match, side))
        numbers = facts(page)
        assert (numbers["match"], numbers["mask"]) == (str(match), "kept" if kept else "flagged")
        for name, points, scale in (("patch1", POINTS[0], 1), ("patch2", POINTS[1], 2)):
            # 48 px of each image: they are shown at one scale of their pixels.
            left, _, right, _ = view(page, name)
            assert (left + right) / 2 == pytest.approx(points[match, 0], abs=0.02)
            assert right - left == pytest.approx(48 * scale)
        if kept:  # the magenta cross is the image of the match by the homography
            mapped = CASE.result.motions[CASE.result.motion_labels[match]].matrix @ [*CASE.points1[match], 1]
            expected = model(page, "patch2", SEGMENT)
            cross = expected["to_x2"][0], expected["to_y2"][0]
            np.testing.assert_allclose(cross, (mapped[:2] / mapped[2] + 0.5) * 2, atol=0.05)
    page.get_by_text("192 px").click()
    assert np.diff(view(page, "patch1")[::2]) == pytest.approx(192)


def test_the_pointer_shows_the_numbers_of_the_match_below_it(page: Any) -> None:
    match = lonely_match(True)
    page.mouse.move(*place(page, match, 1), steps=3)
    page.locator(".bk-tooltip, [class*=tooltip]").get_by_text(f"match {match}", exact=True).wait_for()
    text = page.locator("[class*=tooltip]").last.inner_text()
    assert re.search(r"residual [\d.]+ px", text)
    assert re.search(r"motion \d, lone plane: \d+", text)


def test_buttons_step_through_the_shown_matches_by_probability(page: Any) -> None:
    first = float(facts(page)[PROBABILITY])
    page.get_by_text("more probable").click()
    assert float(facts(page)[PROBABILITY]) >= first
    page.get_by_text(f"kept {KEPT}", exact=True).click()
    page.get_by_text("less probable").click()
    assert facts(page)["mask"] == "flagged"


def test_on_a_phone_nothing_is_cut_off(opened: Opened, file: Path) -> None:
    page = opened(file, width=390, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    model(page, "parts", "m.labels = Array(50).fill('a plane')")
    page.locator("#parts label").nth(49).wait_for()
    height = "(({ scrollHeight, clientHeight }) => scrollHeight - clientHeight)"
    assert page.evaluate(f"{height}(document.getElementById('parts'))") <= 0


def test_on_a_phone_controls_come_before_the_pictures_they_rule(opened: Opened, file: Path) -> None:
    page = opened(file, width=390, height=800)
    for controls, pictures in (("aside", "#views"), ("#facts", ".patch")):
        above, below = (page.locator(each).first.bounding_box() for each in (controls, pictures))
        assert above["y"] + above["height"] <= below["y"]
    patches = [page.locator(".patch").nth(number).bounding_box() for number in (0, 1)]
    assert patches[0]["x"] < patches[1]["x"]
