"""The project's own table: its pages show what the committed results say, and the results are sound."""

from __future__ import annotations

import pytest

from fieldmark.suites.results import check_results, read_results
from studies.evidence import suites


@pytest.fixture(scope="module")
def tables():
    return suites.committed_tables()


def test_the_committed_results_have_no_problems():
    assert check_results(read_results([suites.FOLDER])) == []


@pytest.mark.parametrize("place", suites.PLACES, ids=lambda place: place.name)
def test_tables_are_those_of_the_committed_results(tables, place):
    text = place.read_text(encoding="utf-8")
    assert suites.MARKED.search(text)
    assert suites.with_tables(text, tables) == text


def test_pages_show_every_model_with_its_mean(tables):
    assert {"photos", "few-shot", "sound"} <= set(tables)
    for name, table in tables.items():
        text = (suites.PAGES / f"{name}.html").read_text(encoding="utf-8")
        for row in table.rows:
            mean = "" if row.standing is None else f"<b>{100 * row.standing.mean.value:.1f}</b>"
            assert row.model in text and mean in text
