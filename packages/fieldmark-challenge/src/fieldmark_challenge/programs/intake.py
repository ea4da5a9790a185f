"""Programs on their way in: looked through by a walled-in process, stored, and put into the queue of programs."""

from __future__ import annotations

from sqlalchemy.orm import Session

from fieldmark_challenge.programs.hosts import why_not
from fieldmark_challenge.programs.program_queue import WAITING
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.schema import Challenge, Submission, utc_now
from fieldmark_challenge.records.storage import new_name
from fieldmark_challenge.submissions import uploads
from fieldmark_challenge.submissions.archives import ArchiveRefusedError
from fieldmark_challenge.submissions.checkers import ExhaustedError
from fieldmark_challenge.submissions.program_intake import ProgramIntake, register
from fieldmark_challenge.submissions.uploads import Upload

TAKES_TOO_LONG = "The archive takes too long, or too much memory, to look through."


def check_archive(challenge: Challenge, upload: Upload) -> str:
    """Has an archive looked through by the process that reads runs.

    Returns:
        Which files of weights lie in it, as a board says it; empty for none.

    Raises:
        ArchiveRefusedError: When it is none, holds something strange, or no `run.sh`.
        BusyError: When too many uploads arrive at once.
    """
    job = {"benchmark": challenge.versioned_benchmark}
    try:
        outcome = uploads.CHECKERS.check(upload.path, job, uploads.check_limits(upload.size))
    except ExhaustedError as error:
        raise ArchiveRefusedError(TAKES_TOO_LONG) from error
    if outcome.fault is not None:
        raise RuntimeError(f"an archive could not be looked through: {outcome.fault}")
    if outcome.problems:
        raise ArchiveRefusedError(str(outcome.problems[0]["text"]))
    return f"weights in the archive: {', '.join(outcome.weights)}" if outcome.weights else ""


def new_path(challenge: Challenge) -> str:
    """Where the next archive of a challenge is stored."""
    return f"code/{challenge.id}/{new_name()}"


def add_program(session: Session, submission: Submission, upload: Upload, path: str) -> Program:
    """Puts the program of a submission into the queue; the submission has no run until the program has written it."""
    submission.reason = WAITING
    program = program_row(submission.challenge_id, submission.team_id, submission.user_id, upload, path)
    program.submission_id, program.accepted_at = submission.id, submission.accepted_at
    program.due_at = submission.accepted_at
    session.add(program)
    return program


def program_row(challenge_id: int, team_id: int, user_id: int, upload: Upload, path: str) -> Program:
    """A program that waits to be run."""
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


register(ProgramIntake(why_not=why_not, check=check_archive, new_path=new_path, add=add_program))
