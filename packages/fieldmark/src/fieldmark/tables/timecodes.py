"""Times within a recording as the organizers of BirdCLEF write them."""

from __future__ import annotations

import re

_TIME = r"([0-9]{1,4}):([0-5][0-9]):([0-5][0-9])"
CLOCK = re.compile(f"{_TIME}-{_TIME}")


def clock(seconds: int) -> str:
    """Seconds as hours, minutes and seconds.

    >>> clock(3725)
    '01:02:05'
    """
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def parse_interval(text: str) -> tuple[int, int] | None:
    """Start and end of `hh:mm:ss-hh:mm:ss` in seconds, None for anything else.

    >>> parse_interval("00:00:05-00:00:10")
    (5, 10)
    >>> parse_interval(f"{'9' * 400}:00:05-00:00:10")
    """
    match = CLOCK.fullmatch(text)
    if match is None:
        return None
    h1, m1, s1, h2, m2, s2 = (int(number) for number in match.groups())
    return 3600 * h1 + 60 * m1 + s1, 3600 * h2 + 60 * m2 + s2
