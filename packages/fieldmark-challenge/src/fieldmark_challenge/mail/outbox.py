"""The outbox: mails wait in a table until the mail server has taken them, whatever happens to us or to it.

Whoever sends a mail takes it with a lease and a fencing number, as workers take runs. A process that is killed between
the word of the mail server and ours leaves a mail that is sent again when the lease is over: every mail is sent at
least once, and twice only then. Both copies carry the same Message-ID.
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from fieldmark_challenge.operations.lease_queue import MAILS, Lease, StaleClaimError
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.schema import Setting, utc_now

SWITCH = "mail-on-since"
LEASE_S = 180.0
KEPT = dt.timedelta(days=14)
NOTICE_LIFE = dt.timedelta(days=3)
SECRET_LIFE = dt.timedelta(hours=6)  # after that people have asked again


@dataclass(frozen=True)
class TakenMail(Lease):
    """A mail that somebody may send."""

    user_id: int | None
    address: str
    kind: str
    data: dict[str, Any]
    created_at: dt.datetime

    @property
    def mail_id(self) -> int:
        """Of the mail."""
        return self.row_id


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
    """Takes the next mail that is due: a first time at once, again after its pause; None where there is none."""
    return MAILS.claim(database, _taken, give_up=_drop_expired, lease_s=LEASE_S)


def _taken(session: Session, row: OutgoingMail, lease: Lease) -> TakenMail:
    return TakenMail(
        **vars(lease), **{name: getattr(row, name) for name in ("user_id", "address", "kind", "data", "created_at")}
    )


def _drop_expired(session: Session, row: OutgoingMail, now: dt.datetime) -> bool:
    """Drops a mail that is too old to be sent; False where it may be."""
    if row.expires_at >= now:
        return False
    row.state, row.settled_at, row.data = "dropped", now, {}
    row.problem = f"not sent in time; {row.problem}"[:300]
    return True


def settle(database: Database, taken: TakenMail, *, address: str = "", problem: str = "") -> bool:
    """Notes that the mail server has taken a mail or, with a problem, that nobody will send it.

    Returns:
        False where somebody else has taken the mail meanwhile.
    """
    values: dict[str, Any] = {"state": "dropped" if problem else "sent", "data": {}, "problem": problem[:300]}
    values |= {"address": address} if address else {}
    with suppress(StaleClaimError), database.write() as session:
        MAILS.settle(session, taken, settled_at=database.now(session), **values)
        return True
    return False


def postpone(database: Database, taken: TakenMail, problem: str) -> bool:
    """Lets a mail wait for another attempt, each time longer; False where somebody else has taken it meanwhile."""
    with suppress(StaleClaimError), database.write() as session:
        MAILS.try_again(database, session, taken, problem=problem[:300])
        return True
    return False


def forget_old(session: Session) -> None:
    """Removes mails that were settled a while ago, and the addresses with them."""
    session.execute(delete(OutgoingMail).where(OutgoingMail.settled_at < utc_now() - KEPT))


def counts(session: Session) -> dict[str, int]:
    """How many mails wait, were sent and were dropped, as far as the table goes back."""
    rows = session.execute(select(OutgoingMail.state, func.count()).group_by(OutgoingMail.state)).all()
    return {"waiting": 0, "sent": 0, "dropped": 0} | {str(row[0]): int(row[1]) for row in rows}
