"""The page about the architecture names modules and functions that are there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
NAMED = re.compile(r"`((?:[a-z_]+\.)+[A-Za-z_.]+)(?:\([^`]*\))?`")
# Names of the objects that a reader knows from the lines before, and of files and entry points.
OBJECTS = ("task.", "method.", "metric.", "model.", "fieldmark.", "packages.")


def names() -> list[str]:
    found = {name for name in NAMED.findall(PAGE.read_text(encoding="utf-8")) if not name.startswith(OBJECTS)}
    return sorted(name for name in found if not name.endswith((".py", ".md")))


def resolve(name: str) -> object:
    """The object behind a dotted name, which may leave out `fieldmark` and `challenge`."""
    for prefix in ("fieldmark.", "fieldmark.challenge.", "fieldmark.views:"):
        parts = (prefix.rstrip(":") + ("." if prefix.endswith(":") else "") + name).split(".")
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
    root = PAGE.parents[1]
    files = re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", PAGE.read_text(encoding="utf-8"))
    assert len(files) > 5
    places = (root, root / "src" / "fieldmark", root / "src" / "fieldmark" / "challenge")
    assert [file for file in files if not any((place / file).exists() for place in places)] == []


def test_the_page_lists_every_package_and_module_at_the_top():
    block = PAGE.read_text(encoding="utf-8").split("```")[1]
    listed = {word for line in block.splitlines() if not line.startswith(" ") for word in line.split()}
    places = (PAGE.parents[1] / "src" / "fieldmark").iterdir()
    there = {place.stem for place in places if place.suffix == ".py" or (place / "__init__.py").exists()}
    assert there - {"__init__", "__main__"} <= listed
