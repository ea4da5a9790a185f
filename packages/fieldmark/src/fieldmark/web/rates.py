"""How often something may be tried: a limit for a window of time, counted in memory."""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from dataclasses import dataclass

from fieldmark.web.refusals import TooOftenError


def utc_now() -> dt.datetime:
    """The present moment, in UTC."""
    return dt.datetime.now(dt.UTC)


@dataclass(frozen=True)
class Rate:
    """At most `limit` times in `per_s` seconds, counted in windows that begin at multiples of it."""

    what: str
    limit: int
    per_s: int


class CountsInMemory:
    """Counts the tries of one process, by key; old windows are forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._windows: dict[str, int] = {}
        self._tried: Counter[tuple[str, str]] = Counter()

    def count(self, rate: Rate, key: str) -> None:
        """Counts one try.

        Raises:
            TooOftenError: When it was tried too often.
        """
        now = utc_now()
        window, ends = window_of(rate, now)
        with self._lock:
            if self._windows.get(rate.what) != window:
                self._windows[rate.what] = window
                self._tried = Counter({one: tried for one, tried in self._tried.items() if one[0] != rate.what})
            self._tried[rate.what, key] += 1
            tried = self._tried[rate.what, key]
        refuse_beyond(rate, tried, ends - now)


def window_of(rate: Rate, now: dt.datetime) -> tuple[int, dt.datetime]:
    """The number of the window that lies around a moment, and when it ends."""
    window = int(now.timestamp()) // rate.per_s
    return window, dt.datetime.fromtimestamp((window + 1) * rate.per_s, dt.UTC)


def refuse_beyond(rate: Rate, tried: int, left: dt.timedelta) -> None:
    """Refuses a try beyond the limit.

    Raises:
        TooOftenError: When it was tried too often.
    """
    if tried > rate.limit:
        wait = max(1, int(left.total_seconds()))
        minutes = f"{wait // 60 + 1} minutes" if wait > 60 else f"{wait} seconds"
        raise TooOftenError(f"Too many attempts. Try again in {minutes}.", retry_after_s=wait)
