"""The audit log: who did what, written in the transaction that does it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark_challenge.records.schema import AuditEvent, Challenge, User

SHOWN = 500


def note(
    session: Session,
    actor: User | None,
    action: str,
    *,
    challenge: Challenge | int | None = None,
    subject: str = "",
    **details: Any,
) -> None:
    """Adds a line to the log.

    Args:
        session: The transaction that does what is noted.
        actor: Who does it; None for the platform itself.
        action: What is done, as `thing.verb`.
        challenge: Where.
        subject: To what.
        details: What else a later reader wants to know.
    """
    where = challenge.id if isinstance(challenge, Challenge) else challenge
    who = actor.name if actor else "platform"
    session.add(
        AuditEvent(
            actor_id=actor.id if actor else None,
            actor=who,
            action=action,
            challenge_id=where,
            subject=subject[:200],
            details=details,
        )
    )


def events(session: Session, challenge: Challenge | None = None, *, limit: int = SHOWN) -> list[AuditEvent]:
    """The last lines of the log, newest first; of one challenge, or of all."""
    query = select(AuditEvent).order_by(AuditEvent.id.desc()).limit(limit)
    if challenge is not None:
        query = query.where(AuditEvent.challenge_id == challenge.id)
    return list(session.scalars(query))
