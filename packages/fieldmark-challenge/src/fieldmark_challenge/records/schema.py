"""The tables of the platform.

A challenge has phases, teams and organizers; a team has members, invitations and submissions; a submission has one
score per part of the truth. The submission row is also the queue: a worker claims it with a lease and a fencing token
(`fence`, drawn for each claim), so that there is no second place that could forget it. Numbers of rows are given once.

Times are UTC everywhere. Secrets (sessions, tokens, invitations) are kept as hashes only.
"""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any, Literal, get_args

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

Role = Literal["participant", "organizer", "admin"]
State = Literal["queued", "running", "scored", "refused", "failed"]
TeamKind = Literal["participants", "baseline"]
LaneName = Literal["score", "code"]
# Empty: it counts. Disqualified ones are named below the ranking, hidden ones nowhere; a team withdraws itself, and one
# that merged lives on in another.
Standing = Literal["", "disqualified", "hidden", "withdrawn", "merged"]
# Who may take part: everybody; whom an organizer lets in after they asked; who has a code; and, in a private challenge,
# nobody else knows of it.
Access = Literal["open", "approval", "invitation", "private"]
ROLES: tuple[Role, ...] = get_args(Role)
STATES: tuple[State, ...] = get_args(State)
ACCESS: tuple[Access, ...] = get_args(Access)


def utc_now() -> dt.datetime:
    """The present moment, in UTC."""
    return dt.datetime.now(dt.UTC)


def new_fence() -> int:
    """The fencing token of a claim: one that no other claim has had, of this row or of any other."""
    return secrets.randbits(62)


class UTCDateTime(TypeDecorator[dt.datetime]):
    """A moment in UTC: aware in Python on both databases, also on SQLite, which knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a moment without a time zone")
        return value.astimezone(dt.UTC)

    def process_result_value(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=dt.UTC) if value.tzinfo is None else value.astimezone(dt.UTC)


class Base(DeclarativeBase):
    """What all tables share: names of constraints that migrations can rely on, and how Python types are stored."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012  (SQLAlchemy reads it from the class)
        dt.datetime: UTCDateTime(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
        bytes: LargeBinary(),
        Role: String(16),
        State: String(16),
        TeamKind: String(16),
        Standing: String(16),
        Access: String(16),
    }


class Setting(Base):
    """What the server itself must remember: its secret for form tokens, the key of its receipts, its address."""

    __tablename__ = "settings"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    value: Mapped[bytes]


class User(Base):
    """A person. `name_key` and `email` are normalized; names with the same `name_look` look alike.

    Of a deleted account the row stays, without name and address; `past_mark` is a keyed hash of the address, so that
    nobody competes twice in one challenge by deleting an account.
    """

    __tablename__ = "users"
    __table_args__ = (CheckConstraint("role IN ('participant', 'organizer', 'admin')", name="role"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(64))
    name_key: Mapped[str] = mapped_column(String(128), unique=True)
    name_look: Mapped[str] = mapped_column(String(256), default="", index=True)
    email: Mapped[str] = mapped_column(String(254), unique=True)
    email_verified_at: Mapped[dt.datetime | None]
    password_hash: Mapped[str] = mapped_column(String(256))
    role: Mapped[Role] = mapped_column(default="participant")
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    disabled_at: Mapped[dt.datetime | None]
    deleted_at: Mapped[dt.datetime | None]
    past_mark: Mapped[str | None] = mapped_column(String(64), index=True)
    may_organize = True  # not kept: False while somebody acts through a token that does not allow it


class WebSession(Base):
    """A signed-in browser; the cookie holds the secret, this row its hash."""

    __tablename__ = "sessions"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    seen_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime]
    user: Mapped[User] = relationship()


class ResetToken(Base):
    """A link that sets a new password, once."""

    __tablename__ = "reset_tokens"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime]
    used_at: Mapped[dt.datetime | None]


class ApiToken(Base):
    """A secret for programs, limited to `scopes` (read, submit, organize) and never more than its owner may do."""

    __tablename__ = "api_tokens"

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(64))
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    shown: Mapped[str] = mapped_column(String(16))  # the first characters, so that its owner can tell it apart
    scopes: Mapped[list[Any]]
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime | None]
    used_at: Mapped[dt.datetime | None]
    revoked_at: Mapped[dt.datetime | None]
    user: Mapped[User] = relationship()


class RateCount(Base):
    """How often something was tried from one place in one window of time."""

    __tablename__ = "rate_counts"

    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    window: Mapped[int] = mapped_column(primary_key=True)
    count: Mapped[int]
    expires_at: Mapped[dt.datetime] = mapped_column(index=True)


class Challenge(Base):
    """A benchmark that is hosted, with its hidden truth and its rules.

    `truth_path` is a folder in the store with the files that `score_parts.truth_files` names. `revision` counts up when
    everything is scored again. The board shows what was accepted until `frozen_at`; private scores are for organizers
    until `revealed_at`. `metric` is the one that decides, as it was when the challenge was made.
    """

    __tablename__ = "challenges"

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(String(64), unique=True)
    title: Mapped[str] = mapped_column(String(200))
    summary: Mapped[str] = mapped_column(String(500), default="")
    description: Mapped[str] = mapped_column(Text, default="")
    rules: Mapped[str] = mapped_column(Text, default="")
    rules_version: Mapped[int] = mapped_column(default=1)
    benchmark: Mapped[str] = mapped_column(String(100))
    benchmark_version: Mapped[str] = mapped_column(String(32))
    metric: Mapped[str] = mapped_column(String(64), default="")
    simulated: Mapped[bool] = mapped_column(default=False)
    owner_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    published_at: Mapped[dt.datetime | None]
    frozen_at: Mapped[dt.datetime | None]
    revealed_at: Mapped[dt.datetime | None]
    truth_path: Mapped[str] = mapped_column(String(300))
    truth_sha256: Mapped[str] = mapped_column(String(64))
    items: Mapped[int]
    units: Mapped[int]
    units_public: Mapped[int]
    classes: Mapped[int]
    max_upload_mb: Mapped[int] = mapped_column(default=64)
    max_team_size: Mapped[int] = mapped_column(default=5)
    max_final: Mapped[int] = mapped_column(default=2)
    needs_run_without_external: Mapped[bool] = mapped_column(default=False)
    ladder: Mapped[bool] = mapped_column(default=False)
    access: Mapped[Access] = mapped_column(default="open")
    merging: Mapped[bool] = mapped_column(default=False)
    revision: Mapped[int] = mapped_column(default=1)
    phases: Mapped[list[Phase]] = relationship(order_by="Phase.starts_at", back_populates="challenge")
    files: Mapped[list[DataFile]] = relationship(order_by="DataFile.name")

    @property
    def versioned_benchmark(self) -> str:
        """The benchmark in the version that the challenge was made with, whatever its current version is by now."""
        return f"{self.benchmark}@{self.benchmark_version}"


class Organizer(Base):
    """Who runs a challenge, besides its owner."""

    __tablename__ = "organizers"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)


class Insider(Base):
    """Who has had access to the truth of a challenge, and never competes in it, whatever role they have now."""

    __tablename__ = "insiders"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    since: Mapped[dt.datetime] = mapped_column(default=utc_now)


class BoardStamp(Base):
    """A mark that is another one after each change of what the boards of a challenge show."""

    __tablename__ = "board_stamps"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    stamp: Mapped[str] = mapped_column(String(32))


class Phase(Base):
    """A span of time in which runs are taken, with limits per team."""

    __tablename__ = "phases"
    __table_args__ = (
        UniqueConstraint("challenge_id", "name"),
        CheckConstraint("starts_at < ends_at", name="order"),
        CheckConstraint("daily_limit > 0 AND total_limit > 0", name="limits"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(64))
    starts_at: Mapped[dt.datetime]
    ends_at: Mapped[dt.datetime]
    daily_limit: Mapped[int] = mapped_column(default=5)
    total_limit: Mapped[int] = mapped_column(default=100)
    challenge: Mapped[Challenge] = relationship(back_populates="phases")


class DataFile(Base):
    """Something to download."""

    __tablename__ = "data_files"
    __table_args__ = (UniqueConstraint("challenge_id", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(200))
    about: Mapped[str] = mapped_column(String(500), default="")
    path: Mapped[str] = mapped_column(String(300))
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)


class Acceptance(Base):
    """Who accepted which rules."""

    __tablename__ = "acceptances"

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    rules_version: Mapped[int] = mapped_column(primary_key=True)
    accepted_at: Mapped[dt.datetime] = mapped_column(default=utc_now)


class Team(Base):
    """Who takes part. Baselines of the organizers are teams of their own kind, without members or limits."""

    __tablename__ = "teams"
    __table_args__ = (
        UniqueConstraint("challenge_id", "name_key"),
        CheckConstraint("kind IN ('participants', 'baseline')", name="kind"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    name: Mapped[str] = mapped_column(String(64))
    name_key: Mapped[str] = mapped_column(String(128))
    name_look: Mapped[str] = mapped_column(String(256), default="")
    kind: Mapped[TeamKind] = mapped_column(default="participants")
    captain_id: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    standing: Mapped[Standing] = mapped_column(default="")
    standing_reason: Mapped[str] = mapped_column(String(500), default="")
    standing_at: Mapped[dt.datetime | None]
    challenge: Mapped[Challenge] = relationship()
    members: Mapped[list[Membership]] = relationship(back_populates="team", order_by="Membership.joined_at")


class Membership(Base):
    """Who belongs to a team; a person has one team in a challenge, also after leaving it (`left_at`)."""

    __tablename__ = "memberships"
    __table_args__ = (UniqueConstraint("challenge_id", "user_id"),)

    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"))
    joined_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    left_at: Mapped[dt.datetime | None]
    team: Mapped[Team] = relationship(back_populates="members")
    user: Mapped[User] = relationship()


class Invitation(Base):
    """A link that lets one person into a team, once."""

    __tablename__ = "invitations"

    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    token_hash: Mapped[str] = mapped_column(String(64), unique=True)
    note: Mapped[str] = mapped_column(String(200), default="")
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime]
    used_at: Mapped[dt.datetime | None]
    used_by: Mapped[int | None] = mapped_column(ForeignKey("users.id"))
    revoked_at: Mapped[dt.datetime | None]
    team: Mapped[Team] = relationship()


class Submission(Base):
    """A run and where it stands: the entry of a team and the job of a worker in one row.

    `accepted_at` is when the request arrived; it never changes, rescoring included. `counted` says whether it spends
    quota: refused runs and faults of the platform do not, unless a program was started on hidden items. `reason` is for
    participants, `detail` for organizers.
    """

    __tablename__ = "submissions"
    __table_args__ = (
        UniqueConstraint("team_id", "idempotency_key"),
        CheckConstraint("state IN ('queued', 'running', 'scored', 'refused', 'failed')", name="state"),
        Index("ix_submissions_queue", "state", "priority", "accepted_at", "id"),
        Index("ix_submissions_quota", "team_id", "phase_id", "counted", "quota_day"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"))
    phase_id: Mapped[int | None] = mapped_column(ForeignKey("phases.id"))
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"), index=True)
    title: Mapped[str] = mapped_column(String(120), default="")
    method: Mapped[str] = mapped_column(Text, default="")
    external_data: Mapped[bool] = mapped_column(default=False)
    external_note: Mapped[str] = mapped_column(String(1000), default="")
    external_found: Mapped[str] = mapped_column(String(1000), default="", server_default="")
    filename: Mapped[str] = mapped_column(String(200))
    path: Mapped[str] = mapped_column(String(300), default="")
    size: Mapped[int]
    sha256: Mapped[str] = mapped_column(String(64))
    idempotency_key: Mapped[str | None] = mapped_column(String(64))
    accepted_at: Mapped[dt.datetime]
    quota_day: Mapped[str] = mapped_column(String(10))
    counted: Mapped[bool] = mapped_column(default=True)
    selected: Mapped[bool] = mapped_column(default=False)
    standing: Mapped[Standing] = mapped_column(default="")
    standing_reason: Mapped[str] = mapped_column(String(500), default="")
    standing_at: Mapped[dt.datetime | None]
    state: Mapped[State] = mapped_column(default="queued")
    reason: Mapped[str] = mapped_column(Text, default="")
    problems: Mapped[list[Any]] = mapped_column(default=list)
    detail: Mapped[str] = mapped_column(Text, default="")
    priority: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    worker: Mapped[str] = mapped_column(String(100), default="")
    lease_until: Mapped[dt.datetime | None]
    started_at: Mapped[dt.datetime | None]
    finished_at: Mapped[dt.datetime | None]
    challenge: Mapped[Challenge] = relationship()
    phase: Mapped[Phase | None] = relationship()
    team: Mapped[Team] = relationship()
    user: Mapped[User] = relationship()
    scores: Mapped[list[PartScore]] = relationship(order_by="PartScore.part.desc()")


class PartScore(Base):
    """What a submission scored on one part of the truth: the scorecard, and its pseudo-values as Parquet."""

    __tablename__ = "scores"
    __table_args__ = (CheckConstraint("part IN ('public', 'private')", name="part"),)

    submission_id: Mapped[int] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"), primary_key=True)
    part: Mapped[str] = mapped_column(String(16), primary_key=True)
    revision: Mapped[int]
    value: Mapped[float]
    card: Mapped[dict[str, Any]]
    unit_values: Mapped[bytes] = mapped_column(deferred=True)
    scored_at: Mapped[dt.datetime] = mapped_column(default=utc_now)


class WorkerSign(Base):
    """When a worker was last heard of, and what it does; it is gone when the worker ends by itself."""

    __tablename__ = "worker_signs"

    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    lane: Mapped[LaneName] = mapped_column(String(16), default="score")
    started_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    seen_at: Mapped[dt.datetime] = mapped_column(default=utc_now)


class AuditEvent(Base):
    """Who did what, and when. Rows are only ever added; in those of a deleted account a number replaces the name."""

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    actor_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    actor: Mapped[str] = mapped_column(String(64), default="")
    action: Mapped[str] = mapped_column(String(64))
    challenge_id: Mapped[int | None] = mapped_column(ForeignKey("challenges.id", ondelete="SET NULL"), index=True)
    subject: Mapped[str] = mapped_column(String(200), default="")
    details: Mapped[dict[str, Any]] = mapped_column(default=dict)
