"""Programs on their way in: looked through by a walled-in process, stored, and put into the queue of programs."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from fieldmark.challenge.coding.archives import ArchiveRefusedError
from fieldmark.challenge.coding.hosts import need_walls
from fieldmark.challenge.coding.program_queue import WAITING
from fieldmark.challenge.coding.tasks import asks_for_code
from fieldmark.challenge.people import rates
from fieldmark.challenge.people.rights import need_acceptance, need_distance, team_of
from fieldmark.challenge.records import audit
from fieldmark.challenge.records.code_schema import CodeTask, Program
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Challenge, Submission, Team, User, utc_now
from fieldmark.challenge.records.storage import Storage, new_name
from fieldmark.challenge.refusals import ConflictError, NotThereError, TooOftenError
from fieldmark.challenge.running.phases import phase_at
from fieldmark.challenge.submitting import uploads
from fieldmark.challenge.submitting.checkers import ExhaustedError
from fieldmark.challenge.submitting.uploads import Upload

# Debug runs are short, and go ahead of what came at most so much earlier: nobody waits longer than that for them.
HEAD_START = dt.timedelta(hours=1)
MOST_WAITING = 2  # debug runs of a team
TAKES_TOO_LONG = "The archive takes too long, or too much memory, to look through."


def check_archive(challenge: Challenge, upload: Upload) -> None:
    """Has an archive looked through by the process that reads runs.

    Raises:
        ArchiveRefusedError: When it is none, holds something strange, or no `run.sh`.
        BusyError: When too many uploads arrive at once.
    """
    job = {"benchmark": challenge.benchmark, "program": True}
    try:
        outcome = uploads.CHECKERS.check(upload.path, job, uploads.CHECK_LIMITS)
    except ExhaustedError as error:
        raise ArchiveRefusedError(TAKES_TOO_LONG) from error
    if outcome.fault is not None:
        raise RuntimeError(f"an archive could not be looked through: {outcome.fault}")
    if outcome.problems:
        raise ArchiveRefusedError(str(outcome.problems[0]["text"]))


def new_path(challenge: Challenge) -> str:
    """Where the next archive of a challenge is stored."""
    return f"code/{challenge.id}/{new_name()}"


def add_program(session: Session, submission: Submission, upload: Upload, path: str) -> Program:
    """Puts the program of a submission into the queue; the submission has no run until the program has written it."""
    submission.reason = WAITING
    program = _row(submission.challenge_id, submission.team_id, submission.user_id, upload, path)
    program.submission_id, program.accepted_at = submission.id, submission.accepted_at
    program.due_at = submission.accepted_at
    session.add(program)
    return program


def try_out(
    database: Database, storage: Storage, user: User, challenge: Challenge, upload: Upload, *, arrived: dt.datetime
) -> Program:
    """Puts a debug run into the queue: on the sample, without a score, and free of charge.

    Raises:
        ArchiveRefusedError: When the archive will not do.
        TooOftenError: When the team has tried too often.
        ConflictError: When there is nothing to try programs on, or no program can be run.
    """
    with database.read() as session:
        team, task = _standing(session, user, challenge, arrived)
        waiting = select(func.count()).where(
            Program.team_id == team.id, Program.submission_id.is_(None), Program.state.in_(("queued", "running"))
        )
        if session.execute(waiting).scalar_one() >= MOST_WAITING:
            raise TooOftenError(f"The team has {MOST_WAITING} debug runs on their way. Wait until one has ended.")
    rates.count(database, rates.Rate("debug run", task.debug_hourly, 3600), str(team.id))
    check_archive(challenge, upload)
    path, program = new_path(challenge), None
    storage.put(upload.path, path)
    try:
        with database.write() as session:
            if database.lock(session, Team, team.id) is None:
                raise NotThereError
            program = _row(challenge.id, team.id, user.id, upload, path)
            program.accepted_at, program.due_at = arrived, arrived - HEAD_START
            session.add(program)
            session.flush()
            audit.note(session, user, "debug.accept", challenge=challenge, subject=f"{program.id}")
    finally:
        if program is None or program.id is None:
            storage.delete(path)
    return program


def _standing(session: Session, user: User, challenge: Challenge, arrived: dt.datetime) -> tuple[Team, CodeTask]:
    """The team, and the task of the phase that is open."""
    present = session.get_one(Challenge, challenge.id, populate_existing=True)
    need_acceptance(session, user, present)
    team = team_of(session, user, present)
    if team is None:
        raise ConflictError("Make a team or join one first; a team of one is fine.")
    need_distance(session, user, present)
    task = asks_for_code(session, phase_at(present.phases, arrived))
    if task is None or present.revealed_at:
        raise ConflictError("No phase that asks for programs is open.")
    if not task.sample_path or task.debug_hourly == 0:
        raise ConflictError("This challenge offers no debug runs.")
    need_walls(session)
    return team, task


def debug_runs(session: Session, team: Team) -> list[Program]:
    """The debug runs of a team, newest first."""
    query = select(Program).where(Program.team_id == team.id, Program.submission_id.is_(None))
    return list(session.scalars(query.order_by(Program.id.desc()).limit(50)))


def _row(challenge_id: int, team_id: int, user_id: int, upload: Upload, path: str) -> Program:
    return Program(
        challenge_id=challenge_id,
        team_id=team_id,
        user_id=user_id,
        filename=upload.filename,
        path=path,
        size=upload.size,
        sha256=upload.sha256,
        state="queued",
        reason=WAITING,
        accepted_at=utc_now(),
    )
