"""No two names that can be taken for each other, whoever is quicker."""

from __future__ import annotations

import hashlib

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from fieldmark.challenge.people.looks import look_of
from fieldmark.challenge.records.schema import Team, User
from fieldmark.challenge.refusals import ConflictError


def look_of_account(session: Session, name: str) -> str:
    """The look of the name of a new account.

    Raises:
        ConflictError: When another account has a name that looks the same.
    """
    look = _alone(session, f"account {look_of(name)}", look_of(name))
    if session.scalars(select(User.id).where(User.name_look == look).limit(1)).first() is not None:
        raise ConflictError("An account with that name, or one that looks like it, exists. Choose another.")
    return look


def look_of_team(session: Session, challenge_id: int, name: str) -> str:
    """The look of the name of a new team or baseline.

    Raises:
        ConflictError: When another one of the challenge has a name that looks the same.
    """
    look = _alone(session, f"team {challenge_id} {look_of(name)}", look_of(name))
    same = select(Team.id).where(Team.challenge_id == challenge_id, Team.name_look == look)
    if session.scalars(same.limit(1)).first() is not None:
        raise ConflictError(f"There is a team or a baseline called {name!r} already, or by a name that looks like it.")
    return look


def _alone(session: Session, what: str, look: str) -> str:
    """Has transactions about the same look follow each other; on SQLite all do."""
    if session.get_bind().dialect.name == "postgresql":
        number = int.from_bytes(hashlib.sha256(what.encode()).digest()[:8], "big", signed=True)
        session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})
    return look
