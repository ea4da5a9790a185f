"""More tables: who is let into a challenge, how teams merge, stages, and what organizers announce."""

from __future__ import annotations

import datetime as dt
from typing import Literal

from sqlalchemy import CheckConstraint, ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from fieldmark_challenge.records.schema import Base, Challenge, Team, User, utc_now

AdmissionState = Literal["asked", "admitted", "refused"]
StageEntry = Literal["all", "final", "top"]


class Admission(Base):
    """Whether somebody may take part in a challenge that is not open to everybody."""

    __tablename__ = "admissions"
    __table_args__ = (CheckConstraint("state IN ('asked', 'admitted', 'refused')", name="state"),)

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)
    state: Mapped[AdmissionState] = mapped_column(String(16))
    note: Mapped[str] = mapped_column(String(500), default="")
    changed_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    user: Mapped[User] = relationship()


class EntryCode(Base):
    """A code that admits so many people to a challenge; its hash is kept, and its beginning to tell it apart."""

    __tablename__ = "entry_codes"

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    code_hash: Mapped[str] = mapped_column(String(64), unique=True)
    shown: Mapped[str] = mapped_column(String(16))
    note: Mapped[str] = mapped_column(String(200), default="")
    uses: Mapped[int]
    used: Mapped[int] = mapped_column(default=0)
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime]
    revoked_at: Mapped[dt.datetime | None]
    challenge: Mapped[Challenge] = relationship()


class MergeOffer(Base):
    """The wish of one team (`team_id`) to become part of another (`into_id`), until its captain says yes or no."""

    __tablename__ = "merge_offers"

    id: Mapped[int] = mapped_column(primary_key=True)
    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    into_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)
    made_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    made_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    settled_at: Mapped[dt.datetime | None]
    accepted: Mapped[bool] = mapped_column(default=False)
    team: Mapped[Team] = relationship(foreign_keys=[team_id])
    into: Mapped[Team] = relationship(foreign_keys=[into_id])


class LaterStage(Base):
    """A challenge that is the next stage of another one, and which teams of the first go on to it."""

    __tablename__ = "stages"
    __table_args__ = (CheckConstraint("entry IN ('all', 'final', 'top')", name="entry"),)

    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), primary_key=True)
    first_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    entry: Mapped[StageEntry] = mapped_column(String(16))
    top: Mapped[int | None]
    first: Mapped[Challenge] = relationship(foreign_keys=[first_id])
    challenge: Mapped[Challenge] = relationship(foreign_keys=[challenge_id])


class StageTeam(Base):
    """A team of a later stage and the one of the stage before that it is."""

    __tablename__ = "stage_teams"

    team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), primary_key=True)
    first_team_id: Mapped[int] = mapped_column(ForeignKey("teams.id", ondelete="CASCADE"), index=True)


class Announcement(Base):
    """What organizers tell everybody who sees a challenge."""

    __tablename__ = "announcements"

    id: Mapped[int] = mapped_column(primary_key=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    title: Mapped[str] = mapped_column(String(200))
    text: Mapped[str] = mapped_column(Text, default="")
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)


class Classroom(Base):
    """An address behind which many people sit, so that for a while limits are per account and not per address."""

    __tablename__ = "classrooms"

    id: Mapped[int] = mapped_column(primary_key=True)
    network: Mapped[str] = mapped_column(String(64))
    note: Mapped[str] = mapped_column(String(200), default="")
    created_by: Mapped[int] = mapped_column(ForeignKey("users.id"))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    ends_at: Mapped[dt.datetime]
