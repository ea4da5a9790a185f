"""The queue of programs, which is their table: leases and fencing tokens, as in the queue of those who score.

Whoever runs programs writes no scores. When a program has ended well, the run that it wrote is put into its submission,
which from then on waits to be scored as any other run does; both in one transaction. A submission whose program has not
ended yet has no run, and those who score pass it over.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_, select, update
from sqlalchemy.orm import Session

from fieldmark.challenge.coding.runners import CodeLimits
from fieldmark.challenge.coding.tasks import rules_of
from fieldmark.challenge.records.code_schema import CodeTask, Program
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Challenge, Submission, new_fence
from fieldmark.challenge.records.stamps import note_change
from fieldmark.challenge.scoring.queue import LEASE_S, MAX_ATTEMPTS, RETRY_GROWTH, RETRY_S, StaleClaimError, lease_over

WAITING = "waiting for a worker that runs programs"
RUNNING = "the program is running"
ENDED = "the program has ended, and its run waits to be scored"
CHECKED = "The program ended well, and its answers pass the check."
FAULT = "The platform could not run this program, and the organizers can see why."
UNCHARGED = f"{FAULT} It does not count against your limits."
CHARGED = f"{FAULT} It was started on the hidden items, so that it counts; the organizers can give that back."
MOST_DETAIL = 4000


@dataclass(frozen=True)
class ProgramClaim:
    """A program that a worker may run, and all it needs to know for that."""

    program_id: int
    submission_id: int | None
    challenge: Challenge
    fence: int
    attempt: int
    path: str
    sha256: str
    inputs_path: str
    inputs_sha256: str
    sample_items: tuple[str, ...]
    limits: CodeLimits

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
    with database.read() as session:  # an idle worker takes no lock
        if session.scalars(select(Program.id).where(_ready(database.now(session))).limit(1)).first() is None:
            return None
    while True:
        with database.write() as session:
            now = database.now(session)
            query = select(Program).where(_ready(now)).order_by(Program.due_at, Program.id).limit(1)
            row = session.scalars(query if database.is_sqlite else query.with_for_update(skip_locked=True)).first()
            if row is None:
                return None
            task = session.get(CodeTask, row.challenge_id)
            if row.attempts >= MAX_ATTEMPTS or task is None:
                _give_up(session, row, now)
                continue
            row.state, row.reason, row.worker = "running", RUNNING, worker[:100]
            row.attempts, row.fence, row.started_at = row.attempts + 1, new_fence(), now
            row.lease_until = now + dt.timedelta(seconds=lease_s)
            if row.submission is not None:
                row.submission.reason = RUNNING
            debug = row.submission_id is None
            return ProgramClaim(
                program_id=row.id,
                submission_id=row.submission_id,
                challenge=session.get_one(Challenge, row.challenge_id),
                fence=row.fence,
                attempt=row.attempts,
                path=row.path,
                sha256=row.sha256,
                inputs_path=task.sample_path if debug else task.inputs_path,
                inputs_sha256=task.sample_sha256 if debug else task.inputs_sha256,
                sample_items=tuple(task.sample_items) if debug else (),
                limits=rules_of(task).limits(debug=debug),
            )


def renew(database: Database, claimed: ProgramClaim, *, lease_s: float = LEASE_S) -> bool:
    """Prolongs a lease; False where it has been lost."""
    with database.write() as session:
        until = database.now(session) + dt.timedelta(seconds=lease_s)
        return _one(session.execute(_mine(claimed).values(lease_until=until)))


def note_run(database: Database, claimed: ProgramClaim) -> None:
    """Notes that a program is about to see hidden items: from here on it is charged, whatever becomes of it.

    Raises:
        StaleClaimError: When the claim is lost; it must not be started then.
    """
    if claimed.debug:
        return
    with database.write() as session:
        if not _one(session.execute(_mine(claimed).values(ran_at=database.now(session)))):
            raise StaleClaimError(f"{claimed.called}, before it was started")


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
        if claimed.attempt < MAX_ATTEMPTS:
            wait = dt.timedelta(seconds=RETRY_S * RETRY_GROWTH ** (claimed.attempt - 1))
            values = {"state": "queued", "reason": "waiting for another attempt"}
            until = database.now(session) + wait
            _settle(database, session, claimed, detail=detail[-MOST_DETAIL:], lease_until=until, **values)
            return
        row = session.get_one(Program, claimed.program_id, populate_existing=True)
        told = _fault(row)
        _settle(database, session, claimed, state="failed", reason=told, detail=detail[-MOST_DETAIL:])
        _fail(session, _submission(session, claimed), database.now(session), told, detail)


def release(database: Database, claimed: ProgramClaim) -> None:
    """Hands a program back untouched, because the worker is told to stop; the attempt does not count."""
    with database.write() as session:
        _settle(database, session, claimed, state="queued", reason=WAITING, attempts=claimed.attempt - 1)


def position(session: Session, program: Program) -> int | None:
    """How many programs come first, this one included; None where it does not wait."""
    if program.state != "queued":
        return None
    earlier = and_(Program.due_at == program.due_at, Program.id < program.id)
    ahead = or_(Program.due_at < program.due_at, earlier)
    return int(session.execute(select(func.count()).where(Program.state == "queued", ahead)).scalar_one()) + 1


def any_waits(database: Database) -> bool:
    """Whether a program waits, also where it waits for its pause to end."""
    with database.read() as session:
        return session.scalars(select(Program.id).where(Program.state == "queued").limit(1)).first() is not None


def _ready(now: dt.datetime) -> ColumnElement[bool]:
    # A pause that is longer than any was set by a clock that has been put back since.
    longest = dt.timedelta(seconds=RETRY_S * RETRY_GROWTH ** (MAX_ATTEMPTS - 1))
    over = or_(Program.lease_until.is_(None), Program.lease_until <= now, Program.lease_until > now + longest)
    rested = and_(Program.state == "queued", over)
    return or_(rested, and_(Program.state == "running", lease_over(Program.lease_until, now)))


def _mine(claimed: ProgramClaim) -> Any:
    mine = (Program.id == claimed.program_id, Program.fence == claimed.fence, Program.state == "running")
    return update(Program).where(*mine).execution_options(synchronize_session=False)


def _settle(database: Database, session: Session, claimed: ProgramClaim, **values: Any) -> None:
    settled = {"finished_at": database.now(session), "lease_until": None, **values}
    if not _one(session.execute(_mine(claimed).values(**settled))):
        raise StaleClaimError(f"program {claimed.program_id}, token {claimed.fence}")


def _submission(session: Session, claimed: ProgramClaim) -> Submission | None:
    """The submission of a program, which still waits for it."""
    submission = session.get(Submission, claimed.submission_id) if claimed.submission_id is not None else None
    return submission if submission is not None and submission.state == "queued" else None


def _give_up(session: Session, row: Program, now: dt.datetime) -> None:
    said = f"\ngiven up after {row.attempts} attempts; last worker {row.worker}"
    row.state, row.reason, row.finished_at, row.fence = "failed", _fault(row), now, new_fence()
    row.detail = (row.detail + said).strip()[-MOST_DETAIL:]
    waiting = row.submission if row.submission is not None and row.submission.state == "queued" else None
    _fail(session, waiting, now, row.reason, row.detail)


def _fault(row: Program) -> str:
    return CHARGED if row.ran_at is not None else UNCHARGED


def _fail(session: Session, submission: Submission | None, now: dt.datetime, told: str, detail: str) -> None:
    if submission is not None:
        submission.state, submission.reason = "failed", told
        submission.counted = submission.counted and told == CHARGED
        submission.finished_at, submission.detail = now, detail[-MOST_DETAIL:]
        note_change(session, submission.challenge_id)


def _one(result: Any) -> bool:
    return bool(result.rowcount == 1)
