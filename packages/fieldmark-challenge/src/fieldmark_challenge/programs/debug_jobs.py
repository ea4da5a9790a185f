"""Debug runs: a program on a few public items, with everything that it says, free of charge and without a score."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from fieldmark.web.rates import Rate
from fieldmark.web.refusals import ConflictError, NotThereError, TooOftenError
from fieldmark_challenge.challenges.code_tasks import asks_for_code
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.rights import manages, team_of
from fieldmark_challenge.programs.hosts import need_walls
from fieldmark_challenge.programs.intake import check_archive, new_path, program_row
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.code_schema import CodeTask, Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Team, User
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.records.upload_schema import PartialUpload
from fieldmark_challenge.submissions.submissions import standing
from fieldmark_challenge.submissions.uploads import Upload

# Debug runs are short, and go ahead of what came at most so much earlier: nobody waits longer than that for them.
HEAD_START = dt.timedelta(hours=1)
MOST_WAITING = 2  # of a team
KEPT = 50  # how many of a team are listed


def try_out(
    database: Database,
    storage: Storage,
    user: User,
    challenge: Challenge,
    upload: Upload,
    *,
    arrived: dt.datetime,
    sent_as: str | None = None,
) -> Program:
    """Puts a debug run into the queue.

    Args:
        database: Where it is noted.
        storage: Where the archive is kept.
        user: Who tries.
        challenge: The challenge.
        upload: The archive.
        arrived: When it came.
        sent_as: The upload in parts that it came by, which becomes one debug run however often it is finished.

    Raises:
        ArchiveRefusedError: When the archive will not do.
        TooOftenError: When the team has tried too often.
        ConflictError: When there is nothing to try programs on, or no program can be run.
    """
    with database.read() as session:
        team, task = _standing(session, user, challenge, arrived)
        _check_waiting(session, team)
    for who in (f"team {team.id}", f"person {user.id} in {challenge.id}"):  # another team is no new hour
        rates.count(database, Rate("debug run", task.debug_hourly, 3600), who)
    check_archive(challenge, upload)
    path, accepted = new_path(challenge), None
    storage.put(upload.path, path)
    try:
        with database.write() as session:
            if database.lock(session, Team, team.id) is None:
                raise NotThereError
            sent = database.lock(session, PartialUpload, sent_as) if sent_as else None
            if sent is not None and sent.program_id is not None:  # another request was quicker
                return session.get_one(Program, sent.program_id)
            _check_waiting(session, team)
            program = program_row(challenge.id, team.id, user.id, upload, path)
            program.accepted_at, program.due_at = arrived, arrived - HEAD_START
            session.add(program)
            session.flush()
            if sent is not None:
                sent.program_id = program.id
            audit.note(session, user, "debug.accept", challenge=challenge, subject=f"{program.id}")
        accepted = program
    finally:
        if accepted is None:
            storage.delete(path)
    return accepted


def debug_runs(session: Session, team: Team) -> list[Program]:
    """The debug runs of a team, newest first."""
    query = select(Program).where(Program.team_id == team.id, Program.submission_id.is_(None))
    return list(session.scalars(query.order_by(Program.id.desc()).limit(KEPT)))


def open_debug_run(session: Session, user: User, challenge: Challenge, program_id: int) -> Program:
    """A debug run for a member of its team, or for somebody who runs the challenge.

    Raises:
        NotThereError: When there is none that they may know of.
    """
    program = session.get(Program, program_id)
    if program is None or program.challenge_id != challenge.id or program.submission_id is not None:
        raise NotThereError
    team = team_of(session, user, challenge)
    if manages(session, user, challenge) or (team is not None and team.id == program.team_id):
        return program
    raise NotThereError


def _standing(session: Session, user: User, challenge: Challenge, arrived: dt.datetime) -> tuple[Team, CodeTask]:
    """The team, and the task of the phase that is open."""
    team, phase = standing(session, user, challenge, arrived)
    task = asks_for_code(session, phase)
    if task is None:
        raise ConflictError("The open phase accepts runs, not programs.")
    if not task.sample_path or task.debug_hourly == 0:
        raise ConflictError("This challenge offers no debug runs.")
    need_walls(session)
    return team, task


def _check_waiting(session: Session, team: Team) -> None:
    on_their_way = Program.state.in_(("queued", "running"))
    waiting = select(func.count()).where(Program.team_id == team.id, Program.submission_id.is_(None), on_their_way)
    if session.execute(waiting).scalar_one() >= MOST_WAITING:
        raise TooOftenError(f"The team has {MOST_WAITING} debug runs on their way. Wait until one has ended.")
