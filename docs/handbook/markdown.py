"""Pieces of Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def cell(text: str) -> str:
    """Text that may stand in a table, without lines and bars of its own."""
    return text.replace("\n", " ").replace("|", "\\|")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *([cell(one) for one in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def anchor(heading: str) -> str:
    """The address of a heading within its page, as MkDocs makes it.

    >>> anchor("Species of *Amanita*"), anchor("And for the other challenges?")
    ('species-of-amanita', 'and-for-the-other-challenges')
    """
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower())


def code(text: str) -> str:
    """A name as code, where there is one."""
    return f"`{text}`" if text else ""
