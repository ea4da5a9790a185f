"""Signs of life: each worker leaves one every few seconds, so that all servers know whether anybody is at work.

A worker of the lane `score` scores runs, one of the lane `code` runs programs.
"""

from __future__ import annotations

import datetime as dt
import math
import time

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from fieldmark_challenge.records.clock_guard import note_moment
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import LaneName, WorkerSign

SIGN_S = 20.0
ALIVE_S = 90.0  # a worker that was not heard of for so long is taken for dead
_KEPT = dt.timedelta(days=1)


class LifeSign:
    """The sign of life of one worker, renewed now and then however often it is given.

    Args:
        database: Where it is left.
        worker: Whose it is.
        lane: What the worker does.
    """

    def __init__(self, database: Database, worker: str, lane: LaneName = "score") -> None:
        self.database, self.worker, self.lane = database, worker, lane
        self._given = -math.inf

    def give(self) -> None:
        """Says that the worker lives, unless it said so a moment ago."""
        if time.monotonic() - self._given >= SIGN_S:
            give_sign(self.database, self.worker, self.lane)
            self._given = time.monotonic()


def give_sign(database: Database, worker: str, lane: LaneName = "score") -> None:
    """Says that a worker lives."""
    with database.write(lasting=False) as session:
        now = database.now(session)
        insert = sqlite_insert if database.is_sqlite else postgresql_insert
        statement = insert(WorkerSign).values(name=worker[:100], lane=lane, started_at=now, seen_at=now)
        again = {"seen_at": now, "lane": lane}
        session.execute(statement.on_conflict_do_update(index_elements=["name"], set_=again))
        session.execute(delete(WorkerSign).where(WorkerSign.seen_at < now - _KEPT))
        note_moment(session, now)


def sign_off(database: Database, worker: str) -> None:
    """Says that a worker has come to its end."""
    with database.write() as session:
        session.execute(delete(WorkerSign).where(WorkerSign.name == worker[:100]))


def seconds_since(database: Database, lane: LaneName = "score") -> dict[str, float]:
    """How long ago each worker of a lane was heard of, of those that have not signed off.

    A sign from a time that is still to come was left before the clock was put back, and is as old as it lies ahead.
    """
    with database.read() as session:
        now = database.now(session)
        rows = session.execute(select(WorkerSign.name, WorkerSign.seen_at).where(WorkerSign.lane == lane)).all()
    return {name: abs((now - seen).total_seconds()) for name, seen in rows}


def alive(database: Database, lane: LaneName = "score") -> list[str]:
    """The workers of a lane with a recent heartbeat."""
    return sorted(name for name, seconds in seconds_since(database, lane).items() if seconds <= ALIVE_S)
