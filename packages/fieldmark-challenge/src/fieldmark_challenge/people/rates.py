"""How often something may be tried on the platform: counted in the database, so that all servers count together."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from fieldmark.web.rates import Rate, refuse_beyond, window_of
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import RateCount, utc_now

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
    window, ends = window_of(rate, now)
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
    refuse_beyond(rate, tried, ends - now)
