"""How values become text on the pages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from markupsafe import Markup

from fieldmark.benchmarks.declarations import Metric
from fieldmark.benchmarks.titles import metric_title
from fieldmark_challenge.boards.axes import MINUS, number
from fieldmark_challenge.web.markdown_text import prose

EN_DASH = "\N{EN DASH}"
STATES = {
    "queued": "waiting",
    "program": "program runs",
    "running": "being scored",
    "scored": "scored",
    "refused": "refused",
    "failed": "failed",
}


PROGRAM_STATES = {"running": "running", "done": "ended well", "refused": "failed", "failed": "fault of the platform"}


def program_state(name: str) -> str:
    """The state of a program in words.

    >>> program_state("done"), program_state("queued")
    ('ended well', 'waiting')
    """
    return PROGRAM_STATES.get(name) or state(name)


def bounds(score: Any, metric: Metric) -> str:
    """The ends of an interval, or that there is none.

    >>> from fieldmark.benchmarks.measures import top
    >>> from fieldmark.scoring import Score
    >>> bounds(Score(0.5, 0.4, 0.6, "jackknife-t"), top(1)), bounds(Score(0.5, None, None, "none"), top(1))
    ('40.0–60.0', 'no interval')
    """
    if score.low is None or score.high is None:
        return "no interval"
    ends = [number(end, metric) for end in (score.low, score.high)]
    # Two dashes in a row cannot be told apart, so that ends below zero are joined by a word.
    return (" to " if MINUS in "".join(ends) else EN_DASH).join(ends)


def ranks(low: int | None, high: int | None) -> str:
    """The ranks an entry may have.

    >>> ranks(1, 1), ranks(1, 3), ranks(None, None)
    ('1', '1–3', '')
    """
    if low is None or high is None:
        return ""
    return str(low) if low == high else f"{low}{EN_DASH}{high}"


def when(moment: dt.datetime | None) -> Markup | str:
    """A moment in UTC, readable and for programs."""
    if moment is None:
        return ""
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%-d %b %Y, %H:%M UTC")
    )


def day(moment: dt.datetime | None) -> Markup | str:
    """The day of a moment, in UTC."""
    if moment is None:
        return ""
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(timespec="seconds"), moment.strftime("%-d %b %Y")
    )


def field_time(moment: dt.datetime | None) -> str:
    """A moment as the fields of a form hold it."""
    return "" if moment is None else moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M")


def span(seconds: float) -> str:
    """A length of time in its largest unit.

    >>> span(40), span(7300), span(86_400 * 12)
    ('less than a minute', '2 hours', '12 days')
    """
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            whole = int(seconds // size)
            return f"{whole} {unit}{'' if whole == 1 else 's'}"
    return "less than a minute"


def until(moment: dt.datetime, now: dt.datetime) -> str:
    """How long until a moment, or how long ago it was."""
    seconds = (moment - now).total_seconds()
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"


def size(n_bytes: int) -> str:
    """The size of a file.

    >>> size(900), size(15_300), size(4_200_000_000)
    ('900 B', '15.3 KB', '4.2 GB')
    """
    amount = float(n_bytes)
    for unit in ("B", "KB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def state(name: str) -> str:
    """The state of a submission in words."""
    return STATES.get(name, name)


def p_value(value: float) -> str:
    """A p-value as papers print it.

    >>> p_value(0.0321), p_value(6e-25), p_value(0.4)
    ('p = 0.032', 'p < 0.0001', 'p = 0.4')
    """
    return "p < 0.0001" if value < 0.0001 else f"p = {value:.2g}"


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "bounds": bounds,
    "ranks": ranks,
    "when": when,
    "day": day,
    "field_time": field_time,
    "until": until,
    "span": span,
    "size": size,
    "state": state,
    "program_state": program_state,
    "prose": prose,
    "p_value": p_value,
    "metric": metric_title,
}
