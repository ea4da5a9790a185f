"""The outbox: mails wait in a table until the mail server has taken them, whatever happens to us or to it.

Whoever sends a mail takes it with a lease and a fencing number, as workers take runs. A process that is killed between
the word of the mail server and ours leaves a mail that is sent again when the lease is over: every mail is sent at
least once, and twice only then. Both copies carry the same Message-ID.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.mail_schema import OutgoingMail
from fieldmark.challenge.records.schema import Setting, new_fence, utc_now

SWITCH = "mail-on-since"
LEASE = dt.timedelta(minutes=3)
# How long another attempt waits, how many times longer each next one, and at most.
RETRY_S, RETRY_GROWTH, RETRY_MOST_S = 30.0, 4.0, 3600.0
KEPT = dt.timedelta(days=14)
NOTICE_LIFE = dt.timedelta(days=3)
SECRET_LIFE = dt.timedelta(hours=6)  # after that people have asked again


@dataclass(frozen=True)
class TakenMail:
    """A mail that somebody may send."""

    mail_id: int
    fence: int
    attempt: int
    user_id: int | None
    address: str
    kind: str
    data: dict[str, Any]
    created_at: dt.datetime


def switch(database: Database, on: bool) -> None:
    """Notes whether this platform sends mail; nothing is put into the outbox of one that does not."""
    if on:
        database.setting(SWITCH, lambda: utc_now().isoformat().encode())
        return
    with database.write() as session:
        session.execute(delete(Setting).where(Setting.name == SWITCH))


def begin_anew(database: Database, now: dt.datetime) -> None:
    """Has mail begin now: what happens from now on is news, though the clock was ahead when mail was turned on."""
    with database.write() as session:
        session.execute(update(Setting).where(Setting.name == SWITCH).values(value=now.isoformat().encode()))


def on_since(session: Session) -> dt.datetime | None:
    """Since when the platform sends mail; None for one that does not."""
    kept = session.get(Setting, SWITCH)
    return dt.datetime.fromisoformat(kept.value.decode()) if kept else None


def put(
    session: Session,
    kind: str,
    data: dict[str, Any],
    *,
    user_id: int | None = None,
    address: str = "",
    once: str | None = None,
    life: dt.timedelta = NOTICE_LIFE,
) -> bool:
    """Puts a mail into the outbox, in the transaction that gives reason for it.

    Args:
        session: The transaction.
        kind: One of `messages.KINDS`.
        data: What it is about; no secrets.
        user_id: Whom it is for.
        address: Where to, if not to the address that the account has when it is sent.
        once: A key that no two mails share: the second one is not put there.
        life: When to give up.

    Returns:
        Whether it was put there: not where mail is off, or one with the same key is there.
    """
    if on_since(session) is None:
        return False
    insert = sqlite_insert if session.get_bind().dialect.name == "sqlite" else postgresql_insert
    now = utc_now()
    values: dict[str, Any] = {"user_id": user_id, "address": address, "kind": kind, "data": data, "once": once}
    values |= {"created_at": now, "next_try_at": now, "expires_at": now + life}
    statement = insert(OutgoingMail).values(values).on_conflict_do_nothing(index_elements=["once"])
    return session.execute(statement.returning(OutgoingMail.id)).scalar_one_or_none() is not None


def take(database: Database) -> TakenMail | None:
    """Takes the next mail that is due; None where there is none."""
    with database.read() as session:  # nothing is locked while nothing is to be done
        if session.scalars(select(OutgoingMail.id).where(_is_due(utc_now())).limit(1)).first() is None:
            return None
    while True:
        with database.write() as session:
            now = database.now(session)
            query = select(OutgoingMail).where(_is_due(now))
            query = query.order_by(OutgoingMail.next_try_at, OutgoingMail.id).limit(1)
            row = session.scalars(query if database.is_sqlite else query.with_for_update(skip_locked=True)).first()
            if row is None:
                return None
            row.fence = new_fence()
            if row.expires_at < now:
                row.state, row.settled_at, row.data = "dropped", now, {}
                row.problem = f"not sent in time; {row.problem}"[:300]
                continue
            row.attempts += 1
            row.next_try_at = now + LEASE
            return TakenMail(
                row.id, row.fence, row.attempts, row.user_id, row.address, row.kind, dict(row.data), row.created_at
            )


def _is_due(now: dt.datetime) -> ColumnElement[bool]:
    """Whether a mail may be tried: a first time at once, again after its pause.

    A pause that is longer than any was set by a clock that has been put back since.
    """
    longest = dt.timedelta(seconds=RETRY_MOST_S)
    over = or_(OutgoingMail.next_try_at <= now, OutgoingMail.next_try_at > now + longest)
    return and_(OutgoingMail.state == "waiting", or_(OutgoingMail.attempts == 0, over))


def settle(database: Database, taken: TakenMail, *, address: str = "", problem: str = "") -> bool:
    """Notes that the mail server has taken a mail or, with a problem, that nobody will send it.

    Returns:
        False where somebody else has taken the mail meanwhile.
    """
    state = "dropped" if problem else "sent"
    values = {"state": state, "settled_at": utc_now(), "data": {}, "problem": problem[:300]}
    return _write(database, taken, values | ({"address": address} if address else {}))


def postpone(database: Database, taken: TakenMail, problem: str) -> bool:
    """Lets a mail wait for another attempt, each time longer."""
    wait = min(RETRY_S * RETRY_GROWTH ** (taken.attempt - 1), RETRY_MOST_S)
    return _write(database, taken, {"next_try_at": utc_now() + dt.timedelta(seconds=wait), "problem": problem[:300]})


def _write(database: Database, taken: TakenMail, values: dict[str, Any]) -> bool:
    mine = update(OutgoingMail).where(OutgoingMail.id == taken.mail_id, OutgoingMail.fence == taken.fence)
    with database.write() as session:
        done: Any = session.execute(mine.where(OutgoingMail.state == "waiting").values(**values))
        return bool(done.rowcount == 1)


def forget_old(session: Session) -> None:
    """Removes mails that were settled a while ago, and the addresses with them."""
    session.execute(delete(OutgoingMail).where(OutgoingMail.settled_at < utc_now() - KEPT))


def counts(session: Session) -> dict[str, int]:
    """How many mails wait, were sent and were dropped, as far as the table goes back."""
    rows = session.execute(select(OutgoingMail.state, func.count()).group_by(OutgoingMail.state)).all()
    return {"waiting": 0, "sent": 0, "dropped": 0} | {str(row[0]): int(row[1]) for row in rows}
