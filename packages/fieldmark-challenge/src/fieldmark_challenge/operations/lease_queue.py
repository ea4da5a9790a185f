"""The lease queue: how runs, programs and mails are taken from their tables, once each, by workers that may die.

A queue is a table. Whoever takes a row gets a lease: until it ends, nobody else takes the row, and the holder renews it
while the work goes on. Each claim draws a fence, a random number that no other claim has had; whatever a worker writes,
it writes only where the fence is still its own. One that was thought dead and comes back finds that nothing of it is
wanted any more. An attempt that failed through no fault of the row is followed by another one after a pause.

One rule for clocks: all moments are those of the database (`Database.now`), which workers share, and a lease or a pause
that ends later than any can was set by a clock that has been put back since: it is over.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from sqlalchemy import ColumnElement, and_, case, func, or_, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.mail_schema import OutgoingMail
from fieldmark_challenge.records.schema import Submission, new_fence

LEASE_S, LONGEST_LEASE_S = 60.0, 600.0
MAX_ATTEMPTS = 4
# How long another attempt waits, how many times longer each next one, and at most.
RETRY_S, RETRY_GROWTH, RETRY_MOST_S = 30.0, 4.0, 3600.0
TRIED_IN_VAIN = 2

R = TypeVar("R", Submission, Program, OutgoingMail)
C = TypeVar("C", bound="Lease")


class StaleClaimError(Exception):
    """The claim is no longer this worker's: its lease ran out and somebody else has the row."""


@dataclass(frozen=True)
class Lease:
    """A row that somebody holds.

    Args:
        row_id: Which.
        fence: The proof that it is theirs.
        attempt: Which attempt this is, from 1.
    """

    row_id: int
    fence: int
    attempt: int


@dataclass(frozen=True, eq=False)
class LeaseQueue(Generic[R]):
    """A table whose rows are taken one after the other.

    Args:
        table: The table; it has `id`, `state`, `fence` and `attempts`.
        called: What the log calls a row.
        until: The column in which leases and pauses end.
        waiting: The state of a row that waits.
        held: The state of a row that somebody holds; the same where the table does not tell them apart.
        turn: Whose turn comes first.
        complete: What else a row needs to be taken.
        attempts: After how many no other one follows; None where something else ends it.
        longest_lease_s: No lease is longer.
    """

    table: type[R]
    called: str
    until: InstrumentedAttribute[Any]
    turn: tuple[ColumnElement[Any], ...]
    waiting: str = "queued"
    held: str = "running"
    complete: ColumnElement[bool] | None = None
    attempts: int | None = MAX_ATTEMPTS
    longest_lease_s: float = LONGEST_LEASE_S

    @cached_property
    def waits(self) -> ColumnElement[bool]:
        """Whether a row waits, also where it waits for a pause to end."""
        state: ColumnElement[bool] = self.table.state == self.waiting
        return state if self.complete is None else and_(state, self.complete)

    def ready(self, now: dt.datetime) -> ColumnElement[bool]:
        """What may be taken: a row that waits and whose pause is over, or one whose holder has fallen silent."""
        longest_pause_s = _pause_s(self.attempts) if self.attempts is not None else RETRY_MOST_S
        rested = and_(self.waits, or_(self.table.attempts == 0, self._over(now, longest_pause_s)))
        if self.held == self.waiting:
            return rested
        return or_(rested, and_(self.table.state == self.held, self._over(now, self.longest_lease_s)))

    def _over(self, now: dt.datetime, longest_s: float) -> ColumnElement[bool]:
        return or_(self.until.is_(None), self.until <= now, self.until > now + dt.timedelta(seconds=longest_s))

    def claim(
        self,
        database: Database,
        make: Callable[[Session, R, Lease], C],
        *,
        give_up: Callable[[Session, R, dt.datetime], bool],
        lease_s: float = LEASE_S,
        **values: Any,
    ) -> C | None:
        """Takes the next row that is ready; None where there is none.

        Args:
            database: Where the table is.
            make: Makes the claim of a row that is now held, in the same transaction.
            give_up: Ends a row that is not worth another attempt; says whether it did.
            lease_s: How long the claim lasts without being renewed.
            values: What else is written into the row; `started_at` is given the moment.
        """
        with database.read() as session:  # an idle worker takes no lock
            first = select(self.table.id).where(self.ready(database.now(session))).limit(1)
            if session.scalars(first).first() is None:
                return None
        while True:
            with database.write() as session:
                now = database.now(session)
                ready = self.ready(now)
                query = select(self.table).where(ready).order_by(*self.turn).limit(1)
                row = session.scalars(query if database.is_sqlite else query.with_for_update(skip_locked=True)).first()
                if row is None:
                    return None
                if give_up(session, row, now):
                    row.fence = new_fence()
                    continue
                lease = Lease(row.id, new_fence(), row.attempts + 1)
                same = (self.table.id == row.id, self.table.fence == row.fence, ready)
                until = now + dt.timedelta(seconds=lease_s)
                held = {"state": self.held, "fence": lease.fence, "attempts": lease.attempt, self.until.key: until}
                if hasattr(self.table, "started_at"):
                    held["started_at"] = now
                taken = update(self.table).where(*same).values({**held, **values})
                if _one(session.execute(taken.execution_options(synchronize_session=False))):
                    return make(session, row, lease)

    def renew(self, database: Database, lease: Lease, *, lease_s: float = LEASE_S) -> bool:
        """Prolongs a lease; False where it has been lost."""
        with database.write() as session:
            until = database.now(session) + dt.timedelta(seconds=lease_s)
            try:
                self.note(session, lease, **{self.until.key: until})
            except StaleClaimError:
                return False
            return True

    def settle(self, session: Session, lease: Lease, **values: Any) -> None:
        """Writes what came of a row, whose lease ends with it.

        Raises:
            StaleClaimError: When the claim is lost; the transaction must end without anything written.
        """
        self.note(session, lease, **({self.until.key: None} if self.until.expression.nullable else {}) | values)

    def note(self, session: Session, lease: Lease, **values: Any) -> None:
        """Writes something into a row that stays held.

        Raises:
            StaleClaimError: When the claim is lost.
        """
        if not _one(session.execute(self._mine(lease).values(values))):
            raise StaleClaimError(f"{self.called} {lease.row_id}, token {lease.fence}")

    def try_again(self, database: Database, session: Session, lease: Lease, **values: Any) -> None:
        """Has another attempt follow, each time after a longer pause; for what `may_try_again`.

        Raises:
            StaleClaimError: When the claim is lost.
        """
        after = database.now(session) + dt.timedelta(seconds=_pause_s(lease.attempt))
        self.settle(session, lease, **{"state": self.waiting, self.until.key: after, **values})

    def may_try_again(self, lease: Lease) -> bool:
        """Whether another attempt may follow."""
        return self.attempts is None or lease.attempt < self.attempts

    def exhausted(self, row: R) -> bool:
        """Whether all attempts of a row that is ready were made in vain."""
        return self.attempts is not None and row.attempts >= self.attempts

    def position(self, session: Session, row: R) -> int | None:
        """How many rows come first, this one included; None where it does not wait."""
        if row.state != self.waiting:
            return None
        mine = session.execute(select(*self.turn).where(self.table.id == row.id, self.waits)).one_or_none()
        if mine is None:
            return None
        ahead = tuple_(*self.turn) < tuple_(*mine, types=[one.type for one in self.turn])
        return int(session.execute(select(func.count()).where(self.waits, ahead)).scalar_one()) + 1

    def any_waits(self, database: Database) -> bool:
        """Whether a row waits, also where it waits for its pause to end."""
        with database.read() as session:
            return session.scalars(select(self.table.id).where(self.waits).limit(1)).first() is not None

    def _mine(self, lease: Lease) -> Any:
        mine = (self.table.id == lease.row_id, self.table.fence == lease.fence, self.table.state == self.held)
        return update(self.table).where(*mine).execution_options(synchronize_session=False)


def _pause_s(attempt: int) -> float:
    """How long the next attempt waits."""
    return min(RETRY_S * RETRY_GROWTH ** (attempt - 1), RETRY_MOST_S)


def _one(result: Any) -> bool:
    return bool(result.rowcount == 1)


# A run that was tried in vain more than once goes behind what waited at its last attempt: whatever ends workers does
# not meet the same run each time. A submission without a run waits for the program that writes it.
RUNS = LeaseQueue(
    Submission,
    "submission",
    Submission.lease_until,
    turn=(
        Submission.priority.expression,
        case((Submission.attempts >= TRIED_IN_VAIN, Submission.started_at), else_=Submission.accepted_at),
        Submission.id.expression,
    ),
    complete=Submission.path != "",
)
PROGRAMS = LeaseQueue(Program, "program", Program.lease_until, turn=(Program.due_at.expression, Program.id.expression))
# Mails are tried until they are too old. While one is being sent it is `waiting` as well, for the end of its lease.
MAILS = LeaseQueue(
    OutgoingMail,
    "mail",
    OutgoingMail.next_try_at,
    turn=(OutgoingMail.next_try_at.expression, OutgoingMail.id.expression),
    waiting="waiting",
    held="waiting",
    attempts=None,
)
