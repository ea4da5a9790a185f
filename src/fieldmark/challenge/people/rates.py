"""How often something may be tried: counted in the database, so that all servers count together.

Pages that run by themselves have no database, and count in memory.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections import Counter
from dataclasses import dataclass

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import RateCount, utc_now
from fieldmark.challenge.refusals import TooOftenError


@dataclass(frozen=True)
class Rate:
    """At most `limit` times in `per_s` seconds, counted in windows that begin at multiples of it."""

    what: str
    limit: int
    per_s: int


SIGN_IN = Rate("sign in", 10, 300)
SIGN_IN_PLACE = Rate("sign in from one place", 60, 300)
REGISTER = Rate("register", 20, 3600)
RESET = Rate("reset", 5, 3600)
UPLOAD = Rate("upload", 120, 3600)
JOIN = Rate("join", 30, 3600)
MAIL_TO = Rate("mail to one address", 5, 3600)
NOTICES_TO = Rate("notices to one address", 60, 86_400)
EXPORT = Rate("export one's own data", 10, 3600)
ROSTER = Rate("make accounts from a list", 20, 3600)
CALL = Rate("call the API", 600, 60)


def count(database: Database, rate: Rate, key: str) -> None:
    """Counts one try.

    Args:
        database: Where tries are counted.
        rate: What is tried, and how often it may be.
        key: By whom: an account, or the address of a machine.

    Raises:
        TooOftenError: When it was tried too often.
    """
    now = utc_now()
    window, ends = _window(rate, now)
    insert = sqlite_insert if database.is_sqlite else postgresql_insert
    statement = (
        insert(RateCount)
        .values(key=f"{rate.what}:{key}"[:128], window=window, count=1, expires_at=ends)
        .on_conflict_do_update(index_elements=["key", "window"], set_={"count": RateCount.count + 1})
        .returning(RateCount.count)
    )
    with database.write(lasting=False) as session:
        tried = session.execute(statement).scalar_one()
        if tried == 1:  # a window has begun: a good moment to forget the old ones
            session.execute(delete(RateCount).where(RateCount.expires_at < now - dt.timedelta(hours=1)))
    _refuse_beyond(rate, tried, ends - now)


class CountsInMemory:
    """Counts the tries of one process, as `count` counts those of a platform; old windows are forgotten."""

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
        window, ends = _window(rate, now)
        with self._lock:
            if self._windows.get(rate.what) != window:
                self._windows[rate.what] = window
                self._tried = Counter({one: tried for one, tried in self._tried.items() if one[0] != rate.what})
            self._tried[rate.what, key] += 1
            tried = self._tried[rate.what, key]
        _refuse_beyond(rate, tried, ends - now)


def _window(rate: Rate, now: dt.datetime) -> tuple[int, dt.datetime]:
    """The number of the window that lies around a moment, and when it ends."""
    window = int(now.timestamp()) // rate.per_s
    return window, dt.datetime.fromtimestamp((window + 1) * rate.per_s, dt.UTC)


def _refuse_beyond(rate: Rate, tried: int, left: dt.timedelta) -> None:
    if tried > rate.limit:
        wait = max(1, int(left.total_seconds()))
        minutes = f"{wait // 60 + 1} minutes" if wait > 60 else f"{wait} seconds"
        raise TooOftenError(f"That was tried too often. Try again in {minutes}.", retry_after_s=wait)
