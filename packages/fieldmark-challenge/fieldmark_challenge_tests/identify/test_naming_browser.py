"""The review page and the identify page in a real browser: by keyboard, on a phone, with and without script."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from fieldmark.identification.review.batch import identify_many
from fieldmark.identification.review.session import Review
from fieldmark.web import identify_pages, review_pages
from fieldmark.web.identify_answers import MOST_MB, PageAnswers
from fieldmark.web.local_app import make_local_app
from fieldmark_challenge_tests.listening import listening
from fieldmark_tests.fixtures import COLORS, save_photo

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The address of an application on a port of its own."""
    with listening(app, patient=False) as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def visited(browser: Any, url: str, size: dict[str, int], *, script: bool = True) -> Iterator[Any]:
    """A page; what the content-security policy blocks would show as an error."""
    context = browser.new_context(base_url=url, viewport=size, java_script_enabled=script)
    context.set_default_timeout(60_000)  # a busy machine is slow, and no reason to fail
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    yield page
    assert said == []
    context.close()


def shoot(page: Any, name: str) -> None:
    """A picture of the page, where somebody asked for pictures."""
    if folder := os.environ.get("FIELDMARK_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def fits(page: Any) -> bool:
    """Whether nothing sticks out to the side."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("photos")
    for number, color in enumerate(list(COLORS.values()) * 4):
        save_photo(folder / f"{number:02d}.jpg", color, 300 + number, size=(480, 360))
    return folder


def test_answers_are_reviewed_by_keyboard_alone(browser, color_model, photos, tmp_path):
    identify_many(photos, color_model, tmp_path / "answers")
    app = make_local_app(review_pages.router, "/review")
    app.state.review = review = Review(tmp_path / "answers")
    with served(app) as url, visited(browser, url, DESK) as page:
        page.goto("/")
        first = review.next()[0].observation_id
        assert (
            page.locator(".shown img").evaluate("picture => picture.decode().then(() => picture.naturalWidth)") == 480
        )

        def press(*keys: str) -> None:
            for key in keys[:-1]:
                page.keyboard.press(key) if len(key) == 1 else page.keyboard.type(key)
            with page.expect_navigation():
                page.keyboard.press(keys[-1])

        wanted = page.locator("[data-key='2']").get_attribute("value")
        press("2")
        assert review.looks[first].name == wanted and review.looks[first].seconds is not None
        second = review.next()[0].observation_id
        press("/", "Turdus merula", "Enter")
        assert review.looks[second].name == "Turdus merula"
        third = review.next()[0].observation_id
        press("0")
        assert review.looks[third].name == ""
        press("b")
        assert page.url.endswith(f"entry={third}")
        press("Enter")
        assert review.looks[third].name != "" and len(review.looks) == 3
        shoot(page, "review")
        page.set_viewport_size(PHONE)
        assert fits(page)
        shoot(page, "review-phone")
    with served(app) as url, visited(browser, url, PHONE, script=False) as page:
        page.goto("/review")
        before = len(review.looks)
        page.locator("button.choice").first.click()
        page.get_by_text(f"{before + 1} of 12 reviewed").wait_for()


def test_a_photo_is_named_on_a_desk_and_on_a_phone(browser, color_model, photos, tmp_path):
    app = make_local_app(identify_pages.router, "/identify", upload_mb=MOST_MB)
    app.state.namer = PageAnswers(str(color_model))
    with served(app) as url:
        for size, name in ((DESK, "desk"), (PHONE, "phone")):
            with visited(browser, url, size) as page:
                page.goto("/")
                page.keyboard.press("Tab")
                assert page.locator(":focus").inner_text() == "Skip to content"
                assert page.locator("#camera").get_attribute("capture") == "environment"
                page.locator("#files").set_input_files([photos / "00.jpg", photos / "03.jpg"])
                assert page.locator("#previews img").count() == 2
                page.get_by_text("Where and when").focus()
                page.keyboard.press("Enter")
                page.get_by_label("Latitude").fill("47.5")
                page.get_by_label("Longitude").fill("8.5")
                assert float(page.locator("#here").get_attribute("cx")) == pytest.approx(377)
                assert fits(page)
                shoot(page, f"identify-form-{name}")
                page.get_by_role("button", name="What is it?").focus()
                with page.expect_navigation():
                    page.keyboard.press("Enter")
                assert "Alba alba" in page.get_by_role("table").inner_text()
                assert "not advice on eating" in page.locator("main").inner_text()
                assert fits(page)
                photo, title = page.locator(".asked img").first.bounding_box(), page.get_by_role("heading", level=1)
                assert photo["y"] < size["height"] / 2 and title.bounding_box()["y"] < size["height"]
                order = page.locator("h2").all_inner_texts()
                assert order.index("Why this answer") < order.index("Most similar training photos")
                assert page.locator("main").inner_text().count("not advice on eating") == 1
                assert page.locator(".pictures.beside").last.evaluate(
                    "list => list.children[0].offsetTop === list.children[1].offsetTop"  # side by side
                )
                shoot(page, f"identify-{name}")
        with visited(browser, url, DESK) as page:
            page.goto("/identify")
            page.get_by_text("Where and when").click()
            box = page.locator("#world").bounding_box()
            page.locator("#world").click(position={"x": box["width"] / 2, "y": box["height"] / 4})
            assert float(page.get_by_label("Latitude").input_value()) == pytest.approx(45.0, abs=0.5)
            assert float(page.get_by_label("Longitude").input_value()) == pytest.approx(0.0, abs=0.5)
            # Files can be dropped anywhere on the field.
            page.evaluate(
                """() => {
                    const data = new DataTransfer();
                    data.items.add(new File(["no photo"], "dropped.txt", {type: "text/plain"}));
                    const dropped = new DragEvent("drop", {dataTransfer: data, bubbles: true});
                    document.getElementById("drop").dispatchEvent(dropped);
                }"""
            )
            assert page.locator("#previews").inner_text() == "dropped.txt"
        with visited(browser, url, PHONE, script=False) as page:
            page.goto("/identify")
            page.locator("#files").set_input_files([photos / "01.jpg"])
            page.get_by_role("button", name="What is it?").click()
            assert "Alba nigra" in page.get_by_role("table").inner_text()
