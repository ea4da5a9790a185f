"""Every wrong answer is listed, and can be found."""

from __future__ import annotations

import csv
import io
import re
from base64 import b64decode

import numpy as np
import pytest

from fieldmark.reports.pages.page import render_page
from fieldmark.reports.pages.runs import load_context
from fieldmark.reports.sections.errors import SECTION, wrong_answers
from fieldmark_tests.reports.by_hand import noisy, perfect


def test_every_wrong_answer_is_listed_once_the_surest_first(context):
    rows = wrong_answers(context)
    wrong = [str(context.predictions.items[row]) for row in np.flatnonzero(~context.correct)]
    assert sorted(row.item for row in rows) == sorted(wrong)
    assert all(row.truth != row.answer for row in rows)
    sure = [row.confidence for row in rows]
    assert sure == sorted(sure, reverse=True)
    told = re.search(r'download="errors.csv" href="[^,]+,([^"]+)"', SECTION.render(context))[1]
    assert len(list(csv.DictReader(io.StringIO(b64decode(told).decode())))) == len(rows)


def test_a_run_without_errors_has_no_list(fungi, make_run):
    assert not SECTION.applies(load_context([make_run(fungi, perfect)]))


def test_frequencies_are_called_a_long_tail_only_where_there_is_one(make_release, make_run):
    classes = {f"class {number}": {"train": 4, "val": 1, "test": 2} for number in range(4)}
    assert "long tail" not in render_page(load_context([make_run(make_release(classes), noisy)])).lower()
    classes["common class"] = {"train": 40, "val": 1, "test": 2}
    tailed = load_context([make_run(make_release(classes, name="tailed"), noisy, name="other")])
    assert "The long tail" in render_page(tailed)


@pytest.mark.parametrize("width", [390, 1300])
def test_all_sections_can_be_reached_and_the_list_of_errors_filtered(browser, context, tmp_path, width):
    path = tmp_path / "report.html"
    path.write_text(render_page(context), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(path.as_uri())
    if width < 760:
        page.locator(".contents summary").click()
    for link in page.locator(".contents a").all():
        box = link.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= width, link.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rows = page.locator("#errors-table tbody tr")
    wanted = wrong_answers(context)[0].item
    page.get_by_label("Filter").last.fill(wanted)
    assert [row.locator("th").inner_text() for row in rows.all() if row.is_visible()] == [wanted]
    page.close()
