"""The queue, which is the table of submissions itself.

A worker claims a row for a while (the lease) and counts its fencing token up; it renews the lease while it works. When
it dies, the lease runs out and another worker claims the row. Whatever a worker writes, it writes only where the token
is still its own: one that was thought dead and comes back finds that nothing of it is wanted any more.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, CursorResult, and_, case, delete, func, or_, select, tuple_, update
from sqlalchemy.orm import Session, joinedload

from fieldmark.challenge.records import audit
from fieldmark.challenge.records.code_schema import Program
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Challenge, PartScore, Submission, User, new_fence
from fieldmark.challenge.records.stamps import note_change
from fieldmark.challenge.refusals import ConflictError, NotThereError
from fieldmark.challenge.scoring.score_parts import PUBLIC
from fieldmark.challenge.scoring.score_receipts import challenge_salt
from fieldmark.challenge.scoring.stored_scores import salt_secret, to_row
from fieldmark.scoring import Scorecard
from fieldmark.scoring.digests import salted

LEASE_S, LONGEST_LEASE_S = 60.0, 600.0
MAX_ATTEMPTS = 4
# How long another attempt waits after a fault of the platform, and how many times longer each next one.
RETRY_S, RETRY_GROWTH = 30.0, 4.0
TRIED_IN_VAIN = 2
RESCORE_PRIORITY = 1  # after what has just come in
FAULT = "The platform could not score this run, and the organizers can see why."
UNCHARGED = f"{FAULT} It does not count against your limits."
CHARGED = f"{FAULT} Its program has seen the hidden items, so that it counts; the organizers can give that back."


class StaleClaimError(Exception):
    """The claim is no longer this worker's: its lease ran out and somebody else has the row."""


@dataclass(frozen=True)
class Claim:
    """A submission that a worker may score, and all it needs to know for that."""

    submission_id: int
    challenge_id: int
    fence: int
    attempt: int
    benchmark: str
    metric: str
    path: str
    sha256: str
    filename: str
    truth_path: str
    truth_sha256: str
    revision: int

    @property
    def called(self) -> str:
        """What the log calls it."""
        return f"submission {self.submission_id}"


def claim(database: Database, worker: str, *, lease_s: float = LEASE_S) -> Claim | None:
    """Takes the next submission that waits, or whose worker has fallen silent; None where there is none."""
    with database.read() as session:  # an idle worker takes no lock
        if session.scalars(select(Submission.id).where(_ready(database.now(session))).limit(1)).first() is None:
            return None
    while True:
        with database.write() as session:
            now = database.now(session)
            ready = _ready(now)
            query = select(Submission).where(ready).order_by(*_turn()).limit(1)
            row = session.scalars(query if database.is_sqlite else query.with_for_update(skip_locked=True)).first()
            if row is None:
                return None
            if row.attempts >= MAX_ATTEMPTS:
                _give_up(session, row, now)
                continue
            fence, attempt = new_fence(), row.attempts + 1
            taken = session.execute(
                update(Submission)
                .where(Submission.id == row.id, Submission.fence == row.fence, ready)
                .values(
                    state="running",
                    reason="being scored",
                    worker=worker[:100],
                    attempts=attempt,
                    fence=fence,
                    started_at=now,
                    lease_until=now + dt.timedelta(seconds=lease_s),
                )
                .execution_options(synchronize_session=False)
            )
            if not _one(taken):
                continue
            return _claim(row, session.get_one(Challenge, row.challenge_id), fence, attempt)


def _claim(row: Submission, challenge: Challenge, fence: int, attempt: int) -> Claim:
    return Claim(
        submission_id=row.id,
        challenge_id=challenge.id,
        fence=fence,
        attempt=attempt,
        benchmark=challenge.versioned_benchmark,
        metric=challenge.metric,
        path=row.path,
        sha256=row.sha256,
        filename=row.filename,
        truth_path=challenge.truth_path,
        truth_sha256=challenge.truth_sha256,
        revision=challenge.revision,
    )


def renew(database: Database, claimed: Claim, *, lease_s: float = LEASE_S) -> bool:
    """Prolongs a lease; False where it has been lost."""
    with database.write() as session:
        until = database.now(session) + dt.timedelta(seconds=lease_s)
        return _one(session.execute(_mine(claimed).values(lease_until=until)))


def finish(database: Database, claimed: Claim, cards: dict[str, Scorecard]) -> None:
    """Writes the scores of a submission, and that it is scored, in one transaction.

    What a scorecard says of the hidden truth is salted before it is kept.

    Raises:
        StaleClaimError: When the claim is lost; nothing is written then.
    """
    salt = challenge_salt(salt_secret(database), claimed.challenge_id)
    cards = {part: replace(card, digests=salted(card.digests, salt)) for part, card in cards.items()}
    with database.write() as session:
        _settle(database, session, claimed, state="scored", reason="scored", detail="")
        before = {row.part: row.value for row in _scores(session, claimed)}
        session.execute(delete(PartScore).where(PartScore.submission_id == claimed.submission_id))
        rows = [
            to_row(claimed.submission_id, part, claimed.revision, card, claimed.metric) for part, card in cards.items()
        ]
        session.add_all(rows)
        note_change(session, claimed.challenge_id)
        if before:
            audit.note(
                session,
                None,
                "submission.rescored",
                challenge=claimed.challenge_id,
                subject=f"{claimed.submission_id}",
                before=before.get(PUBLIC),
                after={row.part: row.value for row in rows}.get(PUBLIC),
                revision=claimed.revision,
            )


def refuse(database: Database, claimed: Claim, problems: list[dict[str, Any]], reason: str, detail: str = "") -> None:
    """Ends a submission whose run is at fault; what it scored before is gone.

    It costs nothing, unless a program wrote it, which has seen what nobody else may.
    """
    with database.write() as session:
        values: dict[str, Any] = {"state": "refused", "reason": reason, "detail": detail, "selected": False}
        if not _has_program(session, claimed.submission_id):
            values |= {"counted": False, "problems": problems}
        _settle(database, session, claimed, **values)
        note_change(session, claimed.challenge_id)
        session.execute(delete(PartScore).where(PartScore.submission_id == claimed.submission_id))


def give_back(database: Database, claimed: Claim, detail: str, *, again: bool = True) -> None:
    """Ends an attempt that failed through no fault of the team: another one follows, or the submission has failed.

    The next attempt waits, each time longer, so that a short outage does not use up all of them.

    Args:
        database: The database.
        claimed: The claim.
        detail: What happened, for organizers.
        again: Whether another attempt could help.
    """
    with database.write() as session:
        if again and claimed.attempt < MAX_ATTEMPTS:
            values: dict[str, Any] = {"state": "queued", "reason": "waiting for another attempt"}
            wait = dt.timedelta(seconds=RETRY_S * RETRY_GROWTH ** (claimed.attempt - 1))
            values["lease_until"] = database.now(session) + wait
        else:
            values = {"state": "failed", **_charge(session, claimed.submission_id)}
            note_change(session, claimed.challenge_id)
        _settle(database, session, claimed, detail=detail[-4000:], **values)


def release(database: Database, claimed: Claim) -> None:
    """Hands a submission back untouched, because the worker is told to stop; the attempt does not count."""
    with database.write() as session:
        values = {"state": "queued", "reason": "waiting for a worker", "attempts": claimed.attempt - 1}
        _settle(database, session, claimed, **values)


def position(session: Session, submission: Submission) -> int | None:
    """How many submissions come first, this one included; None where it does not wait."""
    if submission.state != "queued" or not submission.path:
        return None
    turn = _turn()
    mine = session.execute(select(*turn).where(Submission.id == submission.id)).one()
    ahead = tuple_(*turn) < tuple_(*mine, types=[one.type for one in turn])
    query = select(func.count()).where(Submission.state == "queued", Submission.path != "", ahead)
    return int(session.execute(query).scalar_one()) + 1


def listed(session: Session, challenge: Challenge | None = None, *, finished: bool = False) -> list[Submission]:
    """What is being scored, what waits, in the order in which workers take it, and what has failed.

    Args:
        session: The database.
        challenge: Of one challenge; of all if not given.
        finished: Whether to list what is scored or refused as well.
    """
    query = select(Submission)
    if not finished:
        query = query.where(Submission.state.in_(("running", "queued", "failed")))
    if challenge is not None:
        query = query.where(Submission.challenge_id == challenge.id)
    stage = case({"running": 0, "queued": 1}, value=Submission.state, else_=2)
    query = query.options(joinedload(Submission.team), joinedload(Submission.challenge))
    return list(session.scalars(query.order_by(stage, *_turn())))


def rescore(database: Database, actor: User | None, challenge: Challenge, *, only: int | None = None) -> int:
    """Puts submissions into the queue again: all that were scored or failed, or one of them.

    Acceptance times stay, old scores stand until new ones replace them, and what is being scored right now against the
    old truth is not wanted any more.

    Returns:
        How many will be scored.
    """
    with database.write() as session:
        return rescore_in(session, actor, database.lock(session, Challenge, challenge.id), only=only)


def rescore_in(session: Session, actor: User | None, mine: Challenge, *, only: int | None = None) -> int:
    """The same within a transaction that holds the lock on the challenge."""
    again: tuple[str, ...] = ("scored", "failed", "running") if only is None else ("scored", "failed")
    if mine.revealed_at and only is not None:
        raise ConflictError("After the private scores are revealed, all runs are scored again or none.")
    if only is None:
        mine.revision += 1
    else:
        again += ("refused",) if _wrote_no_run(session, only) else ()
        _check_again(session, mine, only, again)
    query = update(Submission).where(Submission.challenge_id == mine.id, Submission.state.in_(again))
    if only is not None:
        query = query.where(Submission.id == only)
    done = session.execute(
        query.values(
            state="queued",
            reason="waiting to be scored again",
            priority=RESCORE_PRIORITY,
            attempts=0,
            fence=new_fence(),
            lease_until=None,
        )
    )
    _run_again(session, mine)
    note_change(session, mine.id)
    count = int(done.rowcount) if isinstance(done, CursorResult) else 0
    audit.note(session, actor, "challenge.rescore", challenge=mine, subject=str(only or "all"), count=count)
    return count


def _run_again(session: Session, challenge: Challenge) -> None:
    """Has programs that failed run again, where their submission waits and has no run yet."""
    waiting = select(Submission.id).where(
        Submission.challenge_id == challenge.id, Submission.state == "queued", Submission.path == ""
    )
    again = update(Program).where(Program.submission_id.in_(waiting), Program.state.in_(("failed", "refused")))
    values = {"state": "queued", "attempts": 0, "lease_until": None, "problems": [], "log": "", "detail": ""}
    session.execute(again.values(fence=new_fence(), **values))


def _wrote_no_run(session: Session, submission_id: int) -> bool:
    """Whether a submission was refused because of its program, which may deserve another try after a change of ours."""
    refused = select(Program.id).where(Program.submission_id == submission_id, Program.state == "refused")
    return session.scalars(refused).first() is not None


def _check_again(session: Session, challenge: Challenge, submission_id: int, again: tuple[str, ...]) -> None:
    submission = session.get(Submission, submission_id)
    if submission is None or submission.challenge_id != challenge.id:
        raise NotThereError
    if submission.state not in again:
        raise ConflictError(f"A run that is {submission.state} cannot be scored again.")


def _turn() -> tuple[ColumnElement[Any], ...]:
    """Whose turn comes first.

    A run that was tried in vain more than once goes behind what waited at its last attempt: whatever ends workers does
    not meet the same run each time.
    """
    since = case((Submission.attempts >= TRIED_IN_VAIN, Submission.started_at), else_=Submission.accepted_at)
    return (Submission.priority.expression, since, Submission.id.expression)


def _ready(now: dt.datetime) -> ColumnElement[bool]:
    """What may be claimed: a run that waits and whose pause is over, or one whose worker has fallen silent.

    A submission without a run waits for the program that writes it.
    """
    written = and_(Submission.state == "queued", Submission.path != "")
    # A pause that is longer than any was set by a clock that has been put back since.
    longest = dt.timedelta(seconds=RETRY_S * RETRY_GROWTH ** (MAX_ATTEMPTS - 1))
    over = or_(Submission.lease_until <= now, Submission.lease_until > now + longest)
    rested = and_(written, or_(Submission.lease_until.is_(None), over))
    return or_(rested, and_(Submission.state == "running", lease_over(Submission.lease_until, now)))


def lease_over(lease_until: Any, now: dt.datetime) -> ColumnElement[bool]:
    """Whether a worker has fallen silent.

    A lease that is longer than any was given before the clock was put back: a worker that lives renews it by the clock
    as it is, so that it belongs to one that does not.
    """
    return or_(lease_until < now, lease_until > now + dt.timedelta(seconds=LONGEST_LEASE_S))


def any_waits(database: Database) -> bool:
    """Whether a run waits, also where it waits for its pause to end."""
    with database.read() as session:
        waiting = select(Submission.id).where(Submission.state == "queued", Submission.path != "")
        return session.scalars(waiting.limit(1)).first() is not None


def _give_up(session: Session, row: Submission, now: dt.datetime) -> None:
    row.state, row.finished_at, row.fence = "failed", now, new_fence()
    for name, value in _charge(session, row.id).items():
        setattr(row, name, value)
    row.detail = (row.detail + f"\ngiven up after {row.attempts} attempts; last worker {row.worker}").strip()[-4000:]


def _has_program(session: Session, submission_id: int) -> bool:
    return session.scalars(select(Program.id).where(Program.submission_id == submission_id)).first() is not None


def _charge(session: Session, submission_id: int) -> dict[str, Any]:
    """What a submission that could not be scored costs: nothing, unless a program wrote it."""
    return {"reason": CHARGED} if _has_program(session, submission_id) else {"reason": UNCHARGED, "counted": False}


def _mine(claimed: Claim) -> Any:
    mine = (Submission.id == claimed.submission_id, Submission.fence == claimed.fence, Submission.state == "running")
    return update(Submission).where(*mine).execution_options(synchronize_session=False)


def _settle(database: Database, session: Session, claimed: Claim, **values: Any) -> None:
    settled = {"finished_at": database.now(session), "lease_until": None, **values}
    done = session.execute(_mine(claimed).values(**settled))
    if not _one(done):
        raise StaleClaimError(f"submission {claimed.submission_id}, token {claimed.fence}")


def _scores(session: Session, claimed: Claim) -> list[PartScore]:
    return list(session.scalars(select(PartScore).where(PartScore.submission_id == claimed.submission_id)))


def _one(result: Any) -> bool:
    return bool(result.rowcount == 1)
