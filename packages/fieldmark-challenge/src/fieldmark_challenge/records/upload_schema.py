"""The tables of uploads that come in parts."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from fieldmark_challenge.records.schema import Base, utc_now


class PartialUpload(Base):
    """A file that comes in parts: who sends it, how much of it is there, and what became of it.

    `received` counts bytes of parts that are stored; it grows in the transaction that notes a part, and a part is
    acknowledged after that.
    """

    __tablename__ = "partial_uploads"
    __table_args__ = (CheckConstraint("received >= 0 AND received <= size", name="received"),)

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), index=True)
    challenge_id: Mapped[int] = mapped_column(ForeignKey("challenges.id", ondelete="CASCADE"), index=True)
    filename: Mapped[str] = mapped_column(String(200))
    size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
    received: Mapped[int] = mapped_column(BigInteger, default=0)
    created_at: Mapped[dt.datetime] = mapped_column(default=utc_now)
    expires_at: Mapped[dt.datetime] = mapped_column(index=True)
    submission_id: Mapped[int | None] = mapped_column(ForeignKey("submissions.id", ondelete="CASCADE"))
    program_id: Mapped[int | None] = mapped_column(ForeignKey("programs.id", ondelete="CASCADE"))  # a debug run


class UploadPart(Base):
    """A stored piece of such a file."""

    __tablename__ = "upload_parts"

    upload_id: Mapped[str] = mapped_column(ForeignKey("partial_uploads.id", ondelete="CASCADE"), primary_key=True)
    start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    size: Mapped[int] = mapped_column(BigInteger)
    path: Mapped[str] = mapped_column(String(300))
