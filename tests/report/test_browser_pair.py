"""The page of a pair in a browser: what its controls, the pointer and clicks change."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_cases import HEIGHT, WIDTH, two_planes

from ruzhash_cv.report import write_html
from ruzhash_cv.report.numbers import PROBABILITY, pair_as_dict
from ruzhash_cv.report.photos import Photo

Opened = Callable[..., Any]
CASE = two_planes()
KEPT = int(CASE.result.inlier_mask.sum())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "pair.html"
    write_html(path, *CASE.drawn, names=("left.jpg", "right.jpg"))
    return path


@pytest.fixture
def page(opened: Opened, file: Path) -> Any:
    return opened(file)


def shown(page: Any) -> int:
    """Return how many matches the page says that it shows."""
    return int(page.inner_text("#shown").split()[0])


def model(page: Any, name: str, expression: str) -> Any:
    """Evaluate an expression in a Bokeh model `m` of that name."""
    return page.evaluate(
        f"(() => {{ const m = Bokeh.documents[0].get_model_by_name('{name}'); return {expression} }})()"
    )


def place(page: Any, match: int, side: int) -> tuple[float, float]:
    """Return where a match is on the screen."""
    box = page.locator(f"#view{side}").bounding_box()
    x, y = (CASE.points1, CASE.points2)[side - 1][match]
    scale = (1, 2)[side - 1]  # the second image has half as many pixels
    left, right, bottom, top = (
        model(page, "figure1", f"m.{axis}_range.{end}") for axis in "xy" for end in ("start", "end")
    )
    x, y = ((x + 0.5) * scale - left) / (right - left), ((y + 0.5) * scale - top) / (bottom - top)
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def press_key(page: Any, slider: int, handle: int, key: str, times: int) -> None:
    """Move a handle of a slider, by its place on the page, with the keyboard."""
    found = page.locator("aside .noUi-target").nth(slider).locator(".noUi-handle").nth(handle)
    for _ in range(times):
        found.press(key)


def facts(page: Any) -> dict[str, str]:
    """Return what is told of the match that is looked at."""
    return dict(
        zip(page.locator("#facts dt").all_inner_texts(), page.locator("#facts dd").all_inner_texts(), strict=True)
    )


def lonely_match(kept: bool) -> int:
    """Return the match that is furthest from all others in the first image."""
    distances = np.linalg.norm(CASE.points1[:, None] - CASE.points1, axis=2) + 1e9 * np.eye(len(CASE.points1))
    return int(np.where(CASE.result.inlier_mask == kept, distances.min(axis=1), 0).argmax())


def test_the_page_opens_with_its_counts(page: Any) -> None:
    assert page.title() == "left.jpg and right.jpg"
    assert page.inner_text("h1") == "left.jpg and right.jpg"
    assert page.inner_text("#headline").startswith(f"{KEPT} of 200 matches kept, 2 structures")
    assert shown(page) == 200


def test_switches_leave_out_flagged_and_kept_matches(page: Any) -> None:
    page.get_by_text(f"flagged {200 - KEPT}", exact=True).click()
    assert shown(page) == KEPT
    page.get_by_text(f"kept {KEPT}", exact=True).click()
    assert shown(page) == 0
    page.get_by_text(f"flagged {200 - KEPT}", exact=True).click()
    assert shown(page) == 200 - KEPT


def test_the_switch_of_a_structure_leaves_out_its_matches(page: Any) -> None:
    boxes = page.locator("#parts input[type=checkbox]")
    assert boxes.count() == len(CASE.result.models) == 2
    boxes.first.click()
    assert shown(page) == 200 - CASE.result.models[0].support


def test_the_slider_of_probability_leaves_out_what_is_less_probable(page: Any) -> None:
    press_key(page, 0, 0, "ArrowRight", 30)
    assert model(page, "probabilities", "m.value[0]") == pytest.approx(0.3)
    # Pages round to four digits.
    assert shown(page) == (np.round(CASE.result.inlier_probabilities, 4) >= 0.3).sum() < 200


def test_the_slider_of_residuals_leaves_out_what_is_further_off(page: Any) -> None:
    press_key(page, 1, 1, "ArrowLeft", 60)  # to 1 px
    limit = 10 ** model(page, "residuals", "m.value[1]")
    assert limit == pytest.approx(1.0)
    photos = Photo("", None, WIDTH, HEIGHT), Photo("", None, WIDTH // 2, HEIGHT // 2)
    held = pair_as_dict(photos, CASE.points1, CASE.points2, CASE.result)["columns"]["residual"]
    assert shown(page) == (np.array(held, float) <= limit).sum() < 200


def test_the_slider_of_lines_sets_how_many_are_drawn(page: Any) -> None:
    lines = "m.renderers.find((r) => r.glyph?.type == 'Segment').data_source.data.row.length"
    assert model(page, "figure1", lines) == 100
    press_key(page, 2, 0, "ArrowLeft", 7)
    assert model(page, "figure1", lines) == 30


def test_the_slider_of_brightness_dims_both_photographs(page: Any) -> None:
    press_key(page, 3, 0, "ArrowRight", 4)
    for name in ("figure1", "figure2"):
        assert model(page, name, "m.renderers[0].glyph.global_alpha.value") == pytest.approx(0.8)


@pytest.mark.parametrize(("label", "field"), [("residual", "residual"), (PROBABILITY, "probability")])
def test_colours_change_with_what_they_tell(page: Any, label: str, field: str) -> None:
    before = page.locator("#view1").screenshot()
    page.locator("aside").get_by_text(label, exact=True).first.click()
    for name in ("figure1", "figure2"):
        painted = "m.renderers.flatMap((r) => r.glyph.fill_color?.field ?? [])"
        assert field in model(page, name, painted)
    assert page.locator("#scale").is_visible()
    assert page.locator("#view1").screenshot() != before


@pytest.mark.parametrize("side", [1, 2])
def test_the_wheel_zooms_both_images_and_the_button_shows_them_whole(page: Any, side: int) -> None:
    box = page.locator(f"#view{side}").bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.4 * box["height"])
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(100)
    left, right = (model(page, "figure1", f"m.x_range.{end}") for end in ("start", "end"))
    assert right - left < 0.9 * WIDTH
    assert [model(page, "figure2", f"m.x_range.{end}") for end in ("start", "end")] == [left, right]
    page.get_by_text("whole photographs").click()
    assert [model(page, "figure1", f"m.x_range.{end}") for end in ("start", "end")] == [0, WIDTH]


def test_a_drag_pans_both_images(page: Any) -> None:
    box = page.locator("#view1").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 140, box["y"] + 120, steps=4)
    page.mouse.up()
    assert model(page, "figure2", "m.x_range.start") < -10
    assert model(page, "figure2", "m.y_range.end") < -5


def test_lines_end_where_the_other_figure_has_the_match_zoomed_or_not(page: Any) -> None:
    for _ in range(2):
        data = model(page, "figure1", "m.renderers.find((r) => r.glyph?.type == 'Segment').data_source.data")
        boxes = [page.locator(f"#view{side}").bounding_box() for side in (1, 2)]
        span = model(page, "figure1", "m.x_range.end - m.x_range.start")
        shift = (boxes[1]["x"] - boxes[0]["x"]) / boxes[0]["width"] * span
        np.testing.assert_allclose(np.array(data["other_x1"]) - data["x2"], shift, rtol=1e-3)
        np.testing.assert_allclose(np.array(data["x1"]) - data["other_x2"], shift, rtol=1e-3)
        page.mouse.move(boxes[0]["x"] + 200, boxes[0]["y"] + 150)
        page.mouse.wheel(0, -200)
        page.wait_for_timeout(200)


@pytest.mark.parametrize("side", [1, 2])
@pytest.mark.parametrize("kept", [True, False])
def test_a_click_on_a_match_tells_its_numbers_and_shows_its_surroundings(page: Any, side: int, kept: bool) -> None:
    match = lonely_match(kept)
    page.mouse.click(*place(page, match, side))
    told = facts(page)
    assert told["match"] == str(match)
    assert told["mask"] == ("kept" if kept else "flagged")
    for name, points, scale in (("patch1", CASE.points1, 1), ("patch2", CASE.points2, 2)):
        middle = model(page, name, "(m.x_range.start + m.x_range.end) / 2")
        assert middle == pytest.approx((points[match, 0] + 0.5) * scale, abs=0.02)
        # 48 px of each image: they are shown at one scale of their own pixels.
        assert model(page, name, "m.x_range.end - m.x_range.start") == pytest.approx(48 * scale)


def test_buttons_change_the_size_of_the_patches(page: Any) -> None:
    page.get_by_text("192 px").click()
    assert model(page, "patch1", "m.x_range.end - m.x_range.start") == pytest.approx(192)


def test_where_the_structure_expects_the_match_is_its_image_by_the_homography(page: Any) -> None:
    match = lonely_match(True)
    page.mouse.click(*place(page, match, 1))
    mapped = CASE.result.models[CASE.result.labels[match]].matrix @ [*CASE.points1[match], 1]
    expected = model(page, "patch2", "m.renderers.find((r) => r.glyph?.type == 'Segment').data_source.data")
    np.testing.assert_allclose(
        [expected["to_x2"][0], expected["to_y2"][0]], (mapped[:2] / mapped[2] + 0.5) * 2, atol=0.05
    )


def test_the_pointer_shows_the_numbers_of_the_match_below_it(page: Any) -> None:
    match = lonely_match(True)
    page.mouse.move(*place(page, match, 1), steps=3)
    page.locator(".bk-tooltip, [class*=tooltip]").get_by_text(f"match {match}", exact=True).wait_for()
    text = page.locator("[class*=tooltip]").last.inner_text()
    assert re.search(r"residual [\d.]+ px", text)
    assert re.search(rf"plane {CASE.result.labels[match]} homography", text)


def test_buttons_step_through_the_shown_matches_by_probability(page: Any) -> None:
    first = float(list(facts(page).values())[2])
    page.get_by_text("more probable").click()
    assert float(list(facts(page).values())[2]) >= first
    page.get_by_text(f"kept {KEPT}", exact=True).click()
    page.get_by_text("less probable").click()
    assert facts(page)["mask"] == "flagged"


def test_on_a_phone_the_images_stand_one_above_the_other_and_nothing_is_cut_off(opened: Opened, file: Path) -> None:
    page = opened(file, width=390, height=800)
    boxes = [page.locator(f"#view{side}").bounding_box() for side in (1, 2)]
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    data = model(page, "figure1", "m.renderers.find((r) => r.glyph?.type == 'Segment').data_source.data")
    shift = (boxes[1]["y"] - boxes[0]["y"]) / boxes[0]["height"] * HEIGHT
    np.testing.assert_allclose(np.array(data["other_y1"]) - data["y2"], shift, rtol=1e-3)
    np.testing.assert_allclose(data["other_x1"], data["x2"], atol=1e-3)
