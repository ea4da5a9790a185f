"""Tables: one strict reader, columns, labels, taxonomy, and what every dataset shows."""

from __future__ import annotations

from fieldmark.moved import moved_name


def __getattr__(name: str) -> object:
    return moved_name(__name__, "schema", name)
