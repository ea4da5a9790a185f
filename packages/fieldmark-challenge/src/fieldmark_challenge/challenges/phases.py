"""Phases, freezing and revealing: when runs are taken and what the boards show."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark_challenge.people.names import clean_name
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.clock_guard import confirm_phase
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import AuditEvent, Challenge, Phase, Submission, User, utc_now

# What the audit log keeps of a phase, as it was and as it is.
PHASE_RULES = ("name", "starts_at", "ends_at", "daily_limit", "total_limit")


def phase_at(phases: Sequence[Phase], moment: dt.datetime) -> Phase | None:
    """The phase that takes runs at a moment; where two overlap, the one that began last."""
    running = [phase for phase in phases if phase.starts_at <= moment < phase.ends_at]
    return max(running, key=lambda phase: (phase.starts_at, phase.id)) if running else None


def set_phase(
    database: Database,
    actor: User,
    challenge: Challenge,
    *,
    phase_id: int | None = None,
    name: str,
    starts_at: dt.datetime,
    ends_at: dt.datetime,
    daily_limit: int,
    total_limit: int,
) -> Phase:
    """Adds a phase, or changes one.

    Raises:
        RefusalError: When it would end before it begins, or a limit is not positive.
    """
    shown, _ = clean_name(name, "phase's name")
    if starts_at >= ends_at:
        ends, begins = (f"{moment:%Y-%m-%d %H:%M}" for moment in (ends_at, starts_at))
        raise RefusalError(f"The phase would end ({ends} UTC) before it begins ({begins} UTC).")
    if not (1 <= daily_limit <= 10_000 and 1 <= total_limit <= 1_000_000):
        raise RefusalError("Limits are whole numbers from 1 on.")
    with database.write() as session:
        if session.get_one(Challenge, challenge.id).revealed_at:
            raise ConflictError("The private scores are revealed: the challenge is over.")
        before: dict[str, Any] | None = None
        if phase_id is None:
            phase = Phase(challenge_id=challenge.id, name=shown, starts_at=starts_at, ends_at=ends_at)
            session.add(phase)
        else:
            stored = session.get(Phase, phase_id)
            if stored is None or stored.challenge_id != challenge.id:
                raise NotThereError
            phase = stored
            before = {name: _noted(getattr(phase, name)) for name in PHASE_RULES}
        phase.name, phase.starts_at, phase.ends_at = shown, starts_at, ends_at
        phase.daily_limit, phase.total_limit = daily_limit, total_limit
        try:
            session.flush()
        except IntegrityError as error:
            raise ConflictError("There is a phase with that name already.") from error
        confirm_phase(session, phase, database.now(session))
        after = {name: _noted(getattr(phase, name)) for name in PHASE_RULES}
        audit.note(session, actor, "phase.set", challenge=challenge, subject=shown, before=before, **after)
    return phase


def _noted(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.datetime) else value


@dataclass(frozen=True)
class PhaseLimits:
    """How many runs a team may submit, from a moment on."""

    since: dt.datetime
    daily: int
    total: int


def limits_over_time(session: Session, phase: Phase) -> list[PhaseLimits]:
    """The limits of a phase as they were, first to last: the log says when they were changed, and what they were."""
    query = select(AuditEvent).where(AuditEvent.challenge_id == phase.challenge_id, AuditEvent.action == "phase.set")
    name, daily, total = phase.name, phase.daily_limit, phase.total_limit
    limits: list[PhaseLimits] = []
    for event in session.scalars(query.order_by(AuditEvent.id.desc())):
        before = event.details.get("before")
        if event.details.get("name") != name or not before:  # of another phase, or its first word
            continue
        limits.append(PhaseLimits(event.at, daily, total))
        name, daily, total = before["name"], before["daily_limit"], before["total_limit"]
    return [PhaseLimits(dt.datetime.min.replace(tzinfo=dt.UTC), daily, total), *reversed(limits)]


def change_phase(
    database: Database,
    actor: User,
    challenge: Challenge,
    phase: Phase,
    *,
    name: str | None = None,
    starts_at: dt.datetime | None = None,
    ends_at: dt.datetime | None = None,
    daily_limit: int | None = None,
    total_limit: int | None = None,
) -> Phase:
    """Changes what is given of a phase, and leaves the rest as it is."""
    return set_phase(
        database,
        actor,
        challenge,
        phase_id=phase.id,
        name=phase.name if name is None else name,
        starts_at=starts_at or phase.starts_at,
        ends_at=ends_at or phase.ends_at,
        daily_limit=phase.daily_limit if daily_limit is None else daily_limit,
        total_limit=phase.total_limit if total_limit is None else total_limit,
    )


def remove_phase(database: Database, actor: User, challenge: Challenge, phase_id: int) -> None:
    """Removes a phase in which no run was submitted.

    Raises:
        ConflictError: When there is one, which belongs to its phase for good.
    """
    with database.write() as session:
        database.lock(session, Challenge, challenge.id)
        phase = session.get(Phase, phase_id)
        if phase is None or phase.challenge_id != challenge.id:
            raise NotThereError
        taken = ConflictError(f"Runs were submitted during the phase {phase.name!r}: end it instead of removing it.")
        if session.scalars(select(Submission.id).where(Submission.phase_id == phase.id).limit(1)).first() is not None:
            raise taken
        audit.note(session, actor, "phase.remove", challenge=challenge, subject=phase.name)
        session.delete(phase)
        try:
            session.flush()
        except IntegrityError as error:  # one that came in just now
            raise taken from error


def publish(database: Database, actor: User | None, challenge: Challenge, *, published: bool = True) -> None:
    """Shows a challenge to everybody, or only to those who run it."""
    with database.write() as session:
        mine = session.get_one(Challenge, challenge.id)
        mine.published_at = utc_now() if published else None
        audit.note(session, actor, "challenge.publish" if published else "challenge.hide", challenge=mine)


def freeze(database: Database, actor: User | None, challenge: Challenge, *, frozen: bool = True) -> None:
    """Stops the public board where it stands, or lets it go on; runs are taken and scored all the same."""
    with database.write() as session:
        mine = session.get_one(Challenge, challenge.id)
        if bool(mine.frozen_at) == frozen:
            raise ConflictError("The board is frozen already." if frozen else "The board is not frozen.")
        mine.frozen_at = utc_now() if frozen else None
        audit.note(session, actor, "board.freeze" if frozen else "board.unfreeze", challenge=mine)


def reveal(database: Database, actor: User | None, challenge: Challenge) -> None:
    """Shows the private scores to everybody. There is no way back, and no run is taken from then on.

    Raises:
        ConflictError: When a phase is still open, or runs still wait for their scores.
    """
    with database.write() as session:
        mine: Challenge = database.lock(session, Challenge, challenge.id)
        _refuse_reveal(session, mine)
        mine.revealed_at = utc_now()
        mine.frozen_at = None
        audit.note(session, actor, "challenge.reveal", challenge=mine)


def check_reveal(database: Database, challenge: Challenge) -> None:
    """Refuses what `reveal` would refuse, without revealing anything: to be asked before a person is."""
    with database.read() as session:
        _refuse_reveal(session, session.get_one(Challenge, challenge.id))


def _refuse_reveal(session: Session, challenge: Challenge) -> None:
    if challenge.revealed_at:
        raise ConflictError("The private scores are revealed already.")
    if any(phase.ends_at > utc_now() for phase in challenge.phases):
        raise ConflictError("A phase is still open or ahead: let it end, or change its dates, before revealing.")
    waiting = select(func.count()).where(
        Submission.challenge_id == challenge.id, Submission.state.in_(("queued", "running"))
    )
    if left := session.execute(waiting).scalar_one():
        raise ConflictError(f"{left} runs still wait for their scores. Try again when all are scored.")
