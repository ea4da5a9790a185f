"""Signs of life: each worker leaves one every few seconds, so that all servers know whether anybody scores."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import WorkerSign

SIGN_S = 20.0
ALIVE_S = 90.0  # a worker that was not heard of for so long is taken for dead
_KEPT = dt.timedelta(days=1)


def give_sign(database: Database, worker: str) -> None:
    """Says that a worker lives."""
    with database.write() as session:
        now = database.now(session)
        insert = sqlite_insert if database.is_sqlite else postgresql_insert
        statement = insert(WorkerSign).values(name=worker[:100], started_at=now, seen_at=now)
        session.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"seen_at": now}))
        session.execute(delete(WorkerSign).where(WorkerSign.seen_at < now - _KEPT))


def sign_off(database: Database, worker: str) -> None:
    """Says that a worker has come to its end."""
    with database.write() as session:
        session.execute(delete(WorkerSign).where(WorkerSign.name == worker[:100]))


def seconds_since(database: Database) -> dict[str, float]:
    """How long ago each worker was heard of, of those that have not signed off."""
    with database.read() as session:
        now = database.now(session)
        rows = session.execute(select(WorkerSign.name, WorkerSign.seen_at)).all()
    return {name: max(0.0, (now - seen).total_seconds()) for name, seen in rows}


def alive(database: Database) -> list[str]:
    """The workers that were heard of lately."""
    return sorted(name for name, seconds in seconds_since(database).items() if seconds <= ALIVE_S)
