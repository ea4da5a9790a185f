"""Documentation, messages and help use the words of the trade: `glossary.csv` lists what to write instead.

A pair applies to `docs` alone, or to `all`: documentation, pages of the platform, messages and help.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fieldmark_tests.places import DOCS, ROOT

with (Path(__file__).parent / "glossary.csv").open(encoding="utf-8") as file:
    PAIRS = [(re.compile(row["instead of"]), row["write"], row["where"]) for row in csv.DictReader(file)]
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def documentation() -> Iterator[tuple[str, str]]:
    for path in (ROOT / "README.md", *DOCS.rglob("*.md")):
        yield path.relative_to(ROOT).as_posix(), CODE.sub("", FENCE.sub("", path.read_text(encoding="utf-8")))


def pages() -> Iterator[tuple[str, str]]:
    for path in ROOT.glob("packages/*/src/**/templates/**/*"):
        if path.is_file():
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def messages() -> Iterator[tuple[str, str]]:
    """Every text of the sources with a space in it: messages, help and docstrings."""
    for path in ROOT.glob("packages/*/src/**/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def found(texts: Iterator[tuple[str, str]], everywhere: bool) -> list[str]:
    pairs = [(pattern, better) for pattern, better, where in PAIRS if where == "all" or not everywhere]
    return [
        f"{place}: {match[0]!r}; write {better!r}"
        for place, text in texts
        for pattern, better in pairs
        if (match := pattern.search(text))
    ]


def test_the_glossary_finds_what_it_lists():
    assert len(PAIRS) > 20
    assert found(iter([("here", "Runs are handed in by teams.")]), everywhere=True)


def test_documentation_uses_the_words_of_the_trade():
    assert found(documentation(), everywhere=False) == []


@pytest.mark.parametrize("texts", [pages, messages])
def test_messages_help_and_pages_use_the_words_of_the_trade(texts):
    assert found(texts(), everywhere=True) == []


def test_pages_written_by_hand_stay_short():
    """30,000 words in all and 2,500 a page, as `wc` counts them; tables that a study writes are not counted."""
    marked = re.compile(r"<!-- (?:measured: |suite )([\w-]+)(?:, first \d+)? -->.*?<!-- end of \1 -->", re.DOTALL)
    words = {
        path.name: len(marked.sub("", path.read_text(encoding="utf-8")).split())
        for path in (ROOT / "README.md", *DOCS.rglob("*.md"))
    }
    assert sum(words.values()) <= 30_000 and max(words.values()) <= 2_500, words
