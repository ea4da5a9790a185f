"""The page about the architecture names modules and functions that are there."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from fieldmark_tests.places import DOCS, ROOT

PAGE = DOCS / "architecture.md"
SOURCES = [
    ROOT / "packages" / "fieldmark" / "src" / "fieldmark",
    ROOT / "packages" / "fieldmark-challenge" / "src" / "fieldmark_challenge",
]
NAMED = re.compile(r"`((?:[a-z_]+\.)+[A-Za-z_.]+)(?:\([^`]*\))?`")
# Names of the objects that a reader knows from the lines before, and of files and entry points.
OBJECTS = ("task.", "method.", "metric.")
ENTRY_POINTS = ("fieldmark.verbs", "fieldmark.benchmarks")


def names() -> list[str]:
    found = {
        name
        for name in NAMED.findall(PAGE.read_text(encoding="utf-8"))
        if not name.startswith(OBJECTS) and name not in ENTRY_POINTS
    }
    return sorted(name for name in found if not name.endswith((".py", ".md")))


def resolve(name: str) -> object:
    """The object behind a dotted name, which may leave out the name of the distribution."""
    for prefix in ("fieldmark.", "fieldmark_challenge."):
        parts = (prefix + name.removeprefix(prefix)).split(".")
        for cut in range(len(parts) - 1, 0, -1):
            try:
                found: object = import_module(".".join(parts[:cut]))
            except ImportError:
                continue
            try:
                for attribute in parts[cut:]:
                    found = getattr(found, attribute)
            except AttributeError:
                break
            return found
    raise AssertionError(f"{name} is named on the page and is not there")


@pytest.mark.parametrize("name", names())
def test_what_the_page_names_is_there(name):
    pytest.importorskip("sqlalchemy")
    assert resolve(name) is not None


def test_the_page_names_files_that_are_there():
    files = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE.read_text(encoding="utf-8"))
    assert len(files) > 5
    assert [file for file in files if not any((source / file).exists() for source in SOURCES)] == []


def test_the_page_lists_every_room_of_the_core():
    block = PAGE.read_text(encoding="utf-8").split("```")[3]
    listed = {word for line in block.splitlines() if not line.startswith(" ") for word in line.split()}
    there = {place.stem for place in SOURCES[0].iterdir() if place.suffix == ".py" or (place / "__init__.py").exists()}
    assert len(there) > 20 and there - {"__init__", "__main__"} <= listed
