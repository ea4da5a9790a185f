"""The tables of challenges that ask for programs.

A challenge has one task, which says on what its programs are run and what they may use; some of its phases ask for a
program in place of a run. A program is run for a submission, or to try it out (a debug run, which has none). Its row is
the queue of those who run programs, as the row of a submission is that of those who score.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from fieldmark_challenge.records.schema import Base, Challenge, Submission, Team, User, utc_now

ProgramState = Literal["queued", "running", "done", "refused", "failed"]


class CodeTask(Base):
    """What programs of a challenge are run on, and what they may use.

    `inputs_path` and `sample_path` are archives in the store (see `programs.inputs`): what has to be answered, which
    only programs ever see, and a few public items to try programs on.
    """

    __tablename__ = "code_tasks"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    inputs_path: Mapped[str] = mapped_column(String(300))
    inputs_sha256: Mapped[str] = mapped_column(String(64))
    items: Mapped[int]
    sample_path: Mapped[str] = mapped_column(String(300), default="")
    sample_sha256: Mapped[str] = mapped_column(String(64), default="")
    sample_items: Mapped[list[Any]] = mapped_column(default=list)
    seconds: Mapped[int]
    memory_mb: Mapped[int]
    processes: Mapped[int]
    disk_mb: Mapped[int]
    output_mb: Mapped[int]
    archive_mb: Mapped[int]
    debug_seconds: Mapped[int]
    debug_hourly: Mapped[int]
    show_output: Mapped[bool] = mapped_column(default=False)


class CodePhase(Base):
    """A phase that requires programs."""

    __tablename__ = "code_phases"

    phase_id: Mapped[int] = mapped_column(ForeignKey("phases.id", ondelete="CASCADE"), primary_key=True)


class Program(Base):
    """A program that was submitted, and where running it stands; without a submission it is a debug run.

    `due_at` decides who is next. From `ran_at` on it has been started on hidden items, and costs quota whatever becomes
    of it. `reason` is for participants, `detail` for organizers; `log` is the last that the program said. Who sees what
    of it, `challenges.visible_output` decides.
    """

    __tablename__ = "programs"
    __table_args__ = (
        CheckConstraint("state IN ('queued', 'running', 'done', 'refused', 'failed')", name="state"),
        Index("ix_programs_queue", "state", "due_at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), unique=True)
    filename: Mapped[str] = mapped_column(String(200))
    path: Mapped[str] = mapped_column(String(300))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    accepted_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    due_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    state: Mapped[ProgramState] = mapped_column(String(16), default="queued")
    reason: Mapped[str] = mapped_column(Text, default="")
    problems: Mapped[list[Any]] = mapped_column(default=list)
    log: Mapped[str] = mapped_column(Text, default="")
    detail: Mapped[str] = mapped_column(Text, default="")
    attempts: Mapped[int] = mapped_column(default=0)
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    worker: Mapped[str] = mapped_column(String(100), default="")
    lease_until: Mapped[dt.datetime | None]
    started_at: Mapped[dt.datetime | None]
    ran_at: Mapped[dt.datetime | None]
    finished_at: Mapped[dt.datetime | None]
    challenge: Mapped[Challenge] = relationship()
    team: Mapped[Team] = relationship()
    user: Mapped[User] = relationship()
    submission: Mapped[Submission | None] = relationship()


class CodeHost(Base):
    """A machine that runs programs, and what its self-test found: nothing where its walls hold."""

    __tablename__ = "code_hosts"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    runner: Mapped[str] = mapped_column(String(200))
    failure: Mapped[str] = mapped_column(Text, default="")
    tried_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
