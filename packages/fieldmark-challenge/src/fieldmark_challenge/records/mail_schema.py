"""The tables of e-mail: what is to be sent, what nobody wants to get, and proofs that an address is one's own."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from fieldmark_challenge.records.schema import Base, utc_now


class OutgoingMail(Base):
    """A mail that waits to be sent, or what became of it.

    It holds what the mail is about (`kind`, `data`), not its text: secrets of links are made when it is sent, and are
    in no table. `next_try_at` is also the lease of whoever sends it, `fence` the proof that it is still theirs.
    Two mails cannot have the same `once`.
    """

    __tablename__ = "outgoing_mails"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'sent', 'dropped')", name="state"),
        Index("ix_outgoing_mails_due", "state", "next_try_at", "id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    address: Mapped[str] = mapped_column(String(254), default="")
    kind: Mapped[str] = mapped_column(String(32))
    data: Mapped[dict[str, Any]] = mapped_column(default=dict)
    once: Mapped[str | None] = mapped_column(String(128), unique=True)
    state: Mapped[str] = mapped_column(String(16), default="waiting")
    attempts: Mapped[int] = mapped_column(default=0)
    fence: Mapped[int] = mapped_column(BigInteger, default=0)
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    next_try_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime]
    settled_at: Mapped[dt.datetime | None]
    problem: Mapped[str] = mapped_column(String(300), default="")


class MutedTopic(Base):
    """Notices that somebody does not want."""

    __tablename__ = "muted_topics"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), primary_key=True)
    topic: Mapped[str] = mapped_column(String(32), primary_key=True)


class EmailToken(Base):
    """A link that proves, once, that an address belongs to an account, and makes it the address of the account."""

    __tablename__ = "email_tokens"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    email: Mapped[str] = mapped_column(String(254))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime]
    used_at: Mapped[dt.datetime | None]
