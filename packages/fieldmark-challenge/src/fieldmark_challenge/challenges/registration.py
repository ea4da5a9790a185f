"""Whether strangers may make accounts, or only who has a code for a challenge; admins say so."""

from __future__ import annotations

from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.challenges.admissions import find_code
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Setting, User

SETTING, CLOSED = "registration", b"closed"
ENTER = "/enter/"


def is_closed(session: Session) -> bool:
    """Whether only who has a code may register."""
    kept = session.get(Setting, SETTING)
    return kept is not None and kept.value == CLOSED


def set_closed(database: Database, actor: User, closed: bool) -> None:
    """Closes registration to strangers, or opens it to everybody."""
    with database.write() as session:
        kept = session.get(Setting, SETTING) or Setting(name=SETTING, value=b"")
        kept.value = CLOSED if closed else b"open"
        session.add(kept)
        audit.note(session, actor, "registration.close" if closed else "registration.open")


def need_open(database: Database, target: str, code: str = "") -> None:
    """Refuses a new account where registration is closed, unless it comes with a code that works.

    Args:
        database: The database.
        target: Where the person wants to go; the link of a code holds the code.
        code: The code, if it was typed.

    Raises:
        ConflictError: When there is no such code. It is not used up: entering the challenge does that.
    """
    given = code or (target.removeprefix(ENTER) if target.startswith(ENTER) else "")
    with database.read() as session:
        if is_closed(session) and (not given or find_code(session, given) is None):
            raise ConflictError("Registration is closed: it takes a code that works, from those who run a challenge.")
