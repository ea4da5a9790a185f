"""Which phases of a challenge ask for programs in place of runs, and the task that these are given."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.records.code_schema import CodePhase, CodeTask
from fieldmark_challenge.records.schema import Challenge, Phase, utc_now


def task_of(session: Session, challenge_id: int) -> CodeTask | None:
    """What a challenge asks of programs; None where it asks for none."""
    return session.get(CodeTask, challenge_id)


def asks_for_code(session: Session, phase: Phase | None) -> CodeTask | None:
    """The task of a phase that asks for programs; None where it asks for runs."""
    if phase is None or session.get(CodePhase, phase.id) is None:
        return None
    return session.get(CodeTask, phase.challenge_id)


def upload_limit_mb(session: Session, challenge: Challenge) -> int:
    """How large an upload may be now: a run, or the archive of a program."""
    task = asks_for_code(session, phase_at(challenge.phases, utc_now()))
    return challenge.max_upload_mb if task is None else task.archive_mb


def code_phases(session: Session, challenge: Challenge) -> set[int]:
    """The numbers of the phases that require programs."""
    query = select(CodePhase.phase_id).join(Phase, Phase.id == CodePhase.phase_id)
    return set(session.scalars(query.where(Phase.challenge_id == challenge.id)))
