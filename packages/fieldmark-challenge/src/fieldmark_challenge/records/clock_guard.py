"""The latest moment that the platform has seen, by which it notices a clock that was put back.

Workers note it with their signs of life. Nothing waits for it: queues, mails, sessions and limits go by the clock as it
is. It has two uses: `/readyz` tells of a clock that lies behind, and a phase that had ended by then does not take runs
again because of it. Whether the clock was wrong before or is wrong now, only people know: an organizer who saves the
dates of the phase lets it go on.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.orm import Session

from fieldmark_challenge.records.schema import Phase, Setting

LATEST, CONFIRMED = "latest-moment", "phase-confirmed:"
# Clocks that are kept right by the network are put back by less.
SLACK = dt.timedelta(minutes=5)


def note_moment(session: Session, now: dt.datetime) -> None:
    """Notes the present moment, if it is the latest so far."""
    latest = _moment(session, LATEST)
    if latest is None or now > latest:
        _keep(session, LATEST, now)


def put_back_by(session: Session, now: dt.datetime) -> dt.timedelta:
    """How far the clock lies behind the latest moment; nothing where that is less than a few minutes."""
    latest = _moment(session, LATEST)
    behind = latest - now if latest is not None else dt.timedelta()
    return behind if behind > SLACK else dt.timedelta()


def confirm_phase(session: Session, phase: Phase, now: dt.datetime) -> None:
    """Lets a phase go on whose dates an organizer has set since the clock was put back."""
    if had_ended(session, phase, now):
        _keep(session, f"{CONFIRMED}{phase.id}", phase.ends_at)


def had_ended(session: Session, phase: Phase, now: dt.datetime) -> bool:
    """Whether a phase that would be open now had ended before the clock was put back."""
    behind = put_back_by(session, now)
    again = now < phase.ends_at <= now + behind
    return again and _moment(session, f"{CONFIRMED}{phase.id}") != phase.ends_at


def reopened_phases(session: Session, now: dt.datetime) -> list[Phase]:
    """The phases that had ended before the clock was put back, and would be open now."""
    query = select(Phase).where(Phase.starts_at <= now, Phase.ends_at > now).order_by(Phase.id)
    return [phase for phase in session.scalars(query) if had_ended(session, phase, now)]


def _moment(session: Session, name: str) -> dt.datetime | None:
    value = session.scalars(select(Setting.value).where(Setting.name == name)).one_or_none()
    return dt.datetime.fromisoformat(value.decode()) if value is not None else None


def _keep(session: Session, name: str, moment: dt.datetime) -> None:
    insert = sqlite_insert if session.get_bind().dialect.name == "sqlite" else postgresql_insert
    kept = insert(Setting).values(name=name, value=moment.astimezone(dt.UTC).isoformat().encode())
    session.execute(kept.on_conflict_do_update(index_elements=["name"], set_={"value": kept.excluded.value}))
