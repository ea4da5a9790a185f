"""The page of a suite in a browser: 300 models by 60 cells, on a desk and on a phone, by day and by night."""

from __future__ import annotations

import re

import pytest

from fieldmark.suites.catalog import SUITES
from fieldmark.suites.suite_pages import FOLD, suite_page
from fieldmark_tests.suites.large_tables import large_table

MODELS, CELLS = 300, 60


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    made = tmp_path_factory.mktemp("page") / "page.html"
    made.write_text(suite_page(large_table(MODELS, CELLS), SUITES["photos"]), encoding="utf-8")
    return made


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (360, "light"), (360, "dark")], ids=str)
def page(request, browser, path):
    width, scheme = request.param
    opened = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.goto(path.as_uri())
    yield opened
    assert not faults
    opened.close()


def test_the_page_of_many_models_lays_out_the_first_and_finds_any(page):
    rows = page.locator(".suite tbody tr")
    assert rows.count() == MODELS and rows.locator("visible=true").count() == FOLD
    page.get_by_role("searchbox", name="Model").fill("head_3")
    assert page.locator("#shown").inner_text() == f"{MODELS // 5} of {MODELS} models"
    assert rows.locator("visible=true").count() == MODELS // 5
    heads = page.locator(".suite thead th")
    before = heads.locator("visible=true").count()
    page.get_by_label("Kingdom").select_option("Fungi")
    assert before - heads.locator("visible=true").count() == CELLS - CELLS // 3


def test_the_page_fits_its_screen_and_follows_the_color_scheme(page):
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    is_dark = sum(int(part) for part in re.findall(r"\d+", color)[:3]) < 3 * 128
    assert is_dark == page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    # Names that differ in their last letter alone are not cut off.
    assert page.evaluate(
        "[...document.querySelectorAll('.suite tbody th')].every(th => th.scrollWidth <= th.clientWidth)"
    )
    # Words in the plot are no smaller than they can be read at; the plot scrolls where the screen is narrow.
    text = page.locator(".scatter text").first
    text.scroll_into_view_if_needed()
    assert text.bounding_box()["height"] >= 9
