"""When boards change: every transaction that changes what one shows leaves another stamp on its challenge.

A board that was computed under a stamp holds as long as the stamp does, in every process, without looking at the runs.
Changes of objects are noticed by themselves; statements that change many rows at once say so (`note_change`).
"""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import event, select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session, sessionmaker

from fieldmark_challenge.records.schema import BoardStamp, Challenge, Submission, Team

CHANGED = "fieldmark_changed_boards"


def note_change(session: Session, challenge_id: int) -> None:
    """Says that this transaction changes what the boards of a challenge show."""
    session.info.setdefault(CHANGED, set()).add(challenge_id)


def stamp_of(session: Session, challenge_id: int) -> str | None:
    """The stamp of a challenge; None where there is none to rely on, such as in the midst of a change."""
    if challenge_id in session.info.get(CHANGED, ()):
        return None
    return session.scalars(select(BoardStamp.stamp).where(BoardStamp.challenge_id == challenge_id)).one_or_none()


def watch(sessions: sessionmaker[Session]) -> None:
    """Has transactions of these sessions stamp the boards that they change."""
    event.listen(sessions, "after_flush", _notice)
    event.listen(sessions, "before_commit", _stamp)
    event.listen(sessions, "after_rollback", _forget)


def _notice(session: Session, _context: Any) -> None:
    for one in (*session.new, *session.deleted, *(dirty for dirty in session.dirty if session.is_modified(dirty))):
        if isinstance(one, Challenge):
            note_change(session, one.id)
        elif isinstance(one, Team) or (isinstance(one, Submission) and one not in session.new):  # it waits to be scored
            note_change(session, one.challenge_id)


def _stamp(session: Session) -> None:
    session.flush()
    changed = sorted(session.info.pop(CHANGED, ()))
    if not changed:
        return
    insert = sqlite_insert if session.get_bind().dialect.name == "sqlite" else postgresql_insert
    rows = [{"challenge_id": number, "stamp": secrets.token_hex(12)} for number in changed]
    statement = insert(BoardStamp)
    stamped = statement.on_conflict_do_update(index_elements=["challenge_id"], set_={"stamp": statement.excluded.stamp})
    session.execute(stamped, rows)


def _forget(session: Session) -> None:
    session.info.pop(CHANGED, None)
