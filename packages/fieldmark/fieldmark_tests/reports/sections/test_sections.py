"""The numbers of each section against the same numbers computed another way, item by item."""

from __future__ import annotations

from fieldmark.reports.sections import SECTIONS


def test_sections_are_named_as_they_are_registered() -> None:
    assert [SECTIONS[name].name for name in SECTIONS] == list(SECTIONS)
