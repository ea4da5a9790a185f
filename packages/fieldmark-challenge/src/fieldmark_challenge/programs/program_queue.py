"""The queue of programs, which is their table: how one is claimed, and what may become of it.

Whoever runs programs writes no scores. When a program has ended well, the run that it wrote is put into its submission,
which from then on waits to be scored as any other run does; both in one transaction. A submission whose program has not
ended yet has no run, and those who score pass it over.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from fieldmark_challenge.operations.lease_queue import LEASE_S, PROGRAMS, Lease
from fieldmark_challenge.programs.runners import CodeLimits
from fieldmark_challenge.programs.tasks import rules_of
from fieldmark_challenge.records.code_schema import CodeTask, Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Submission
from fieldmark_challenge.records.stamps import note_change

WAITING = "waiting for a worker that runs programs"
RUNNING = "the program is running"
ENDED = "the program has ended, and its run waits to be scored"
CHECKED = "The program ended well, and its answers pass the check."
FAULT = "The platform could not run this program, and the organizers can see why."
UNCHARGED = f"{FAULT} It does not count against your limits."
CHARGED = f"{FAULT} It was started on the hidden items, so that it counts; the organizers can give that back."
MOST_DETAIL = 4000


@dataclass(frozen=True)
class ProgramClaim(Lease):
    """A program that a worker may run, and all it needs to know for that."""

    submission_id: int | None
    challenge: Challenge
    path: str
    sha256: str
    inputs_path: str
    inputs_sha256: str
    sample_items: tuple[str, ...]
    limits: CodeLimits

    @property
    def program_id(self) -> int:
        """Of the program."""
        return self.row_id

    @property
    def called(self) -> str:
        """What the log calls it."""
        return f"program {self.program_id}"

    @property
    def debug(self) -> bool:
        """Whether it is only tried out."""
        return self.submission_id is None


@dataclass(frozen=True)
class WrittenRun:
    """The run that a program wrote, in the store."""

    path: str
    size: int
    sha256: str


def claim(database: Database, worker: str, *, lease_s: float = LEASE_S) -> ProgramClaim | None:
    """Takes the next program that waits, or whose worker has fallen silent; None where there is none."""
    about = {"reason": RUNNING, "worker": worker[:100]}
    return PROGRAMS.claim(database, _claim, give_up=_give_up, lease_s=lease_s, **about)


def _claim(session: Session, row: Program, lease: Lease) -> ProgramClaim:
    task = session.get_one(CodeTask, row.challenge_id)
    if row.submission is not None:
        row.submission.reason = RUNNING
    debug = row.submission_id is None
    return ProgramClaim(
        **vars(lease),
        submission_id=row.submission_id,
        challenge=session.get_one(Challenge, row.challenge_id),
        path=row.path,
        sha256=row.sha256,
        inputs_path=task.sample_path if debug else task.inputs_path,
        inputs_sha256=task.sample_sha256 if debug else task.inputs_sha256,
        sample_items=tuple(task.sample_items) if debug else (),
        limits=rules_of(task).limits(debug=debug),
    )


def _give_up(session: Session, row: Program, now: dt.datetime) -> bool:
    """Ends a program that no attempt could run, or that nobody asks for any more; False where it may be tried."""
    if not PROGRAMS.exhausted(row) and session.get(CodeTask, row.challenge_id) is not None:
        return False
    said = f"\ngiven up after {row.attempts} attempts; last worker {row.worker}"
    row.state, row.reason, row.finished_at = "failed", _fault(row), now
    row.detail = (row.detail + said).strip()[-MOST_DETAIL:]
    waiting = row.submission if row.submission is not None and row.submission.state == "queued" else None
    _fail(session, waiting, now, row.reason, row.detail)
    return True


def note_run(database: Database, claimed: ProgramClaim) -> None:
    """Notes that a program is about to see hidden items: from here on it is charged, whatever becomes of it.

    Raises:
        StaleClaimError: When the claim is lost; it must not be started then.
    """
    if claimed.debug:
        return
    with database.write() as session:
        PROGRAMS.note(session, claimed, ran_at=database.now(session))


def finish(database: Database, claimed: ProgramClaim, log: str, run: WrittenRun | None) -> None:
    """Ends a program that has answered: a submission gets its run and waits to be scored, a debug run is done.

    Raises:
        StaleClaimError: When the claim is lost; nothing is written then.
    """
    with database.write() as session:
        _settle(database, session, claimed, state="done", reason=CHECKED if run is None else ENDED, log=log)
        submission = _submission(session, claimed)
        if submission is not None and run is not None:
            submission.path, submission.size, submission.sha256 = run.path, run.size, run.sha256
            submission.reason = ENDED


def refuse(
    database: Database, claimed: ProgramClaim, reason: str, log: str, problems: list[dict[str, Any]], detail: str = ""
) -> None:
    """Ends a program that failed. On hidden inputs it counts: whether it fails tells something about them."""
    with database.write() as session:
        _settle(database, session, claimed, state="refused", reason=reason, log=log, problems=problems, detail=detail)
        submission = _submission(session, claimed)
        if submission is not None:
            submission.state, submission.reason, submission.detail = "refused", reason, detail
            submission.finished_at = database.now(session)
            note_change(session, submission.challenge_id)


def give_back(database: Database, claimed: ProgramClaim, detail: str) -> None:
    """Ends an attempt that failed through no fault of the team: another one follows, or the program has failed."""
    with database.write() as session:
        about = {"detail": detail[-MOST_DETAIL:], "finished_at": database.now(session)}
        if PROGRAMS.may_try_again(claimed):
            PROGRAMS.try_again(database, session, claimed, reason="waiting for another attempt", **about)
            return
        row = session.get_one(Program, claimed.program_id, populate_existing=True)
        told = _fault(row)
        PROGRAMS.settle(session, claimed, state="failed", reason=told, **about)
        _fail(session, _submission(session, claimed), database.now(session), told, detail)


def release(database: Database, claimed: ProgramClaim) -> None:
    """Hands a program back untouched, because the worker is told to stop; the attempt does not count."""
    with database.write() as session:
        _settle(database, session, claimed, state="queued", reason=WAITING, attempts=claimed.attempt - 1)


def _settle(database: Database, session: Session, claimed: ProgramClaim, **values: Any) -> None:
    PROGRAMS.settle(session, claimed, finished_at=database.now(session), **values)


def _submission(session: Session, claimed: ProgramClaim) -> Submission | None:
    """The submission of a program, which still waits for it."""
    submission = session.get(Submission, claimed.submission_id) if claimed.submission_id is not None else None
    return submission if submission is not None and submission.state == "queued" else None


def _fault(row: Program) -> str:
    return CHARGED if row.ran_at is not None else UNCHARGED


def _fail(session: Session, submission: Submission | None, now: dt.datetime, told: str, detail: str) -> None:
    if submission is not None:
        submission.state, submission.reason = "failed", told
        submission.counted = submission.counted and told == CHARGED
        submission.finished_at, submission.detail = now, detail[-MOST_DETAIL:]
        note_change(session, submission.challenge_id)
