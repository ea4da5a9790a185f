"""The queue of runs, which is the table of submissions itself: how one is claimed, and what may become of it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import CursorResult, case, delete, select, update
from sqlalchemy.orm import Session, joinedload

from fieldmark.scoring import Scorecard
from fieldmark.scoring.digests import salted
from fieldmark.scoring.receipts import challenge_salt
from fieldmark.scoring.score_parts import PUBLIC
from fieldmark.web.refusals import ConflictError, NotThereError
from fieldmark_challenge.operations.lease_queue import LEASE_S, RUNS, Lease
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission, User, new_fence
from fieldmark_challenge.records.stamps import note_change
from fieldmark_challenge.scoring.stored_scores import salt_secret, to_row

RESCORE_PRIORITY = 1  # after what has just come in
FAULT = "The platform could not score this run, and the organizers can see why."
UNCHARGED = f"{FAULT} It does not count against your limits."
CHARGED = f"{FAULT} Its program has seen the hidden items, so that it counts; the organizers can give that back."


@dataclass(frozen=True)
class Claim(Lease):
    """A submission that a worker may score, and all it needs to know for that."""

    challenge_id: int
    benchmark: str
    metric: str
    path: str
    sha256: str
    filename: str
    truth_path: str
    truth_sha256: str
    revision: int

    @property
    def submission_id(self) -> int:
        """Of the submission."""
        return self.row_id

    @property
    def called(self) -> str:
        """What the log calls it."""
        return f"submission {self.submission_id}"


def claim(database: Database, worker: str, *, lease_s: float = LEASE_S) -> Claim | None:
    """Takes the next submission that waits, or whose worker has fallen silent; None where there is none."""
    about = {"reason": "being scored", "worker": worker[:100]}
    return RUNS.claim(database, _claim, give_up=_give_up, lease_s=lease_s, **about)


def _claim(session: Session, row: Submission, lease: Lease) -> Claim:
    challenge = session.get_one(Challenge, row.challenge_id)
    return Claim(
        **vars(lease),
        challenge_id=challenge.id,
        benchmark=challenge.versioned_benchmark,
        metric=challenge.metric,
        path=row.path,
        sha256=row.sha256,
        filename=row.filename,
        truth_path=challenge.truth_path,
        truth_sha256=challenge.truth_sha256,
        revision=challenge.revision,
    )


def _give_up(session: Session, row: Submission, now: dt.datetime) -> bool:
    """Ends a submission that no attempt could score; False where another one may be made."""
    if not RUNS.exhausted(row):
        return False
    row.state, row.finished_at = "failed", now
    for name, value in _charge(session, row.id).items():
        setattr(row, name, value)
    row.detail = (row.detail + f"\ngiven up after {row.attempts} attempts; last worker {row.worker}").strip()[-4000:]
    return True


def finish(database: Database, claimed: Claim, cards: dict[str, Scorecard]) -> None:
    """Writes the scores of a submission, and that it is scored, in one transaction.

    What a scorecard says of the hidden truth is salted before it is kept.

    Raises:
        StaleClaimError: When the claim is lost; nothing is written then.
    """
    salt = challenge_salt(salt_secret(database), claimed.challenge_id)
    cards = {part: replace(card, digests=salted(card.digests, salt)) for part, card in cards.items()}
    with database.write() as session:
        RUNS.settle(session, claimed, state="scored", reason="scored", detail="", finished_at=database.now(session))
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
        RUNS.settle(session, claimed, finished_at=database.now(session), **values)
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
        about = {"detail": detail[-4000:], "finished_at": database.now(session)}
        if again and RUNS.may_try_again(claimed):
            RUNS.try_again(database, session, claimed, reason="waiting for another attempt", **about)
            return
        RUNS.settle(session, claimed, state="failed", **_charge(session, claimed.submission_id), **about)
        note_change(session, claimed.challenge_id)


def release(database: Database, claimed: Claim) -> None:
    """Hands a submission back untouched, because the worker is told to stop; the attempt does not count."""
    with database.write() as session:
        values = {"state": "queued", "reason": "waiting for a worker", "attempts": claimed.attempt - 1}
        RUNS.settle(session, claimed, finished_at=database.now(session), **values)


def position(session: Session, submission: Submission) -> int | None:
    """How many submissions come first, this one included; None where it does not wait."""
    return RUNS.position(session, submission)


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
    return list(session.scalars(query.order_by(stage, *RUNS.turn)))


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


def _has_program(session: Session, submission_id: int) -> bool:
    return session.scalars(select(Program.id).where(Program.submission_id == submission_id)).first() is not None


def _charge(session: Session, submission_id: int) -> dict[str, Any]:
    """What a submission that could not be scored costs: nothing, unless a program wrote it."""
    return {"reason": CHARGED} if _has_program(session, submission_id) else {"reason": UNCHARGED, "counted": False}


def _scores(session: Session, claimed: Claim) -> list[PartScore]:
    return list(session.scalars(select(PartScore).where(PartScore.submission_id == claimed.submission_id)))
