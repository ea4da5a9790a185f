"""How the shell words counts and moments."""

from __future__ import annotations

import datetime as dt

MOMENTS = "a moment in UTC such as 2026-12-31, 2026-12-31T18:00 or 'now' (a date alone is its first moment)"


def many(count: int, noun: str) -> str:
    """A count with its noun.

    >>> many(1, "run"), many(0, "run")
    ('1 run', '0 runs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def as_shown(moment: dt.datetime) -> str:
    """A moment as tables show it.

    >>> as_shown(dt.datetime(2026, 12, 31, 18, tzinfo=dt.UTC))
    '2026-12-31 18:00'
    """
    return f"{moment.astimezone(dt.UTC):%Y-%m-%d %H:%M}"
