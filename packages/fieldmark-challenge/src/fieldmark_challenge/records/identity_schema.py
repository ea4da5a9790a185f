"""The tables of signing in through others: identities that open accounts, and attempts that are under way."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import ForeignKey, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from fieldmark_challenge.records.schema import Base, utc_now


class LinkedIdentity(Base):
    """Somebody at a provider who opens an account here. `shown` is what they know it by."""

    __tablename__ = "linked_identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    issuer: Mapped[str] = mapped_column(String(200))
    subject: Mapped[str] = mapped_column(String(255))
    shown: Mapped[str] = mapped_column(String(100))
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    used_at: Mapped[dt.datetime | None]


class SignOnAttempt(Base):
    """Somebody who has gone to a provider and is expected back in the same browser."""

    __tablename__ = "sign_on_attempts"

    state_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    browser_hash: Mapped[str] = mapped_column(String(64))
    provider: Mapped[str] = mapped_column(String(32))
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    target: Mapped[str] = mapped_column(String(300), default="/")
    expires_at: Mapped[dt.datetime] = mapped_column(index=True)
