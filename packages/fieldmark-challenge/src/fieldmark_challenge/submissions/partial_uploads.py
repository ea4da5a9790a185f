"""Uploads that come in parts and go on after an interruption.

Each part is stored as a file of its own, in the store that all servers share, and noted in the database; only then is
it acknowledged. So whatever ends a server, and whichever server takes the next part, nothing that was acknowledged is
lost. When all parts are there the file is put together, its SHA-256 compared, and submitted like any other.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from fieldmark.errors import InputError
from fieldmark.web.refusals import BusyError, ConflictError, NotThereError, RefusalError, TooLargeError, TooOftenError
from fieldmark_challenge.people.names import clean_filename
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, User, utc_now
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage, new_name
from fieldmark_challenge.records.upload_schema import PartialUpload, UploadPart
from fieldmark_challenge.submissions.run_files import MIB
from fieldmark_challenge.submissions.submissions import UPLOAD_GRACE, standing
from fieldmark_challenge.submissions.uploads import SERVER_MB, Upload
from fieldmark_challenge.web.dependencies import too_large

LIFE = dt.timedelta(hours=24)  # after the last part
# A part has at least so many bytes, but for the last one: each costs a file and a row. And at most so many.
LEAST_PART, MOST_PART = 64 << 10, 32 * MIB
PART = 4 * MIB  # what clients should send
# What one person may have announced, and all together may have sent: who only announces keeps nobody else out.
UNFINISHED, UNFINISHED_MB, ALL_UNFINISHED_MB = 4, 2 * SERVER_MB, 100 * SERVER_MB
SHA256 = re.compile(r"[0-9a-f]{64}")
# Uploads that have become neither a submission nor a debug run yet.
UNDER_WAY = (PartialUpload.submission_id.is_(None), PartialUpload.program_id.is_(None))


class TakenError(Exception):
    """An upload that another request has just submitted, or tried out."""


class WrongOffsetError(ConflictError):
    """A part that does not begin where the last one ended."""

    def __init__(self, received: int) -> None:
        super().__init__(f"The upload has {received} bytes: send on from there.")
        self.received = received


def begin(
    database: Database,
    storage: Storage,
    user: User,
    challenge: Challenge,
    filename: str,
    size: int,
    sha256: str,
    *,
    limit_mb: int,
    arrived: dt.datetime,
) -> PartialUpload:
    """Begins an upload, for somebody who could submit a run now.

    Raises:
        TooLargeError: When it is larger than the challenge takes.
        ConflictError: When no run would be taken.
        TooOftenError: When they have too much under way.
        BusyError: When all together have.
    """
    if not SHA256.fullmatch(sha256):
        raise RefusalError("Give the SHA-256 of the file: 64 hexadecimal digits in small letters.")
    if size < 1:
        raise RefusalError("The file is empty.")
    if size > limit_mb * MIB:
        raise TooLargeError(too_large(limit_mb))
    collect_expired(database, storage)
    with database.write() as session:
        standing(session, user, challenge, arrived)
        database.lock(session, User, user.id)  # counting and adding are one act
        open_ones = select(func.count(), func.coalesce(func.sum(PartialUpload.size), 0)).where(*UNDER_WAY)
        count, held = session.execute(open_ones.where(PartialUpload.user_id == user.id)).one()
        if count >= UNFINISHED or held + size > UNFINISHED_MB * MIB:
            raise TooOftenError(
                f"You have {count} unfinished uploads of {held / MIB:.0f} MiB together; at most {UNFINISHED} and "
                f"{UNFINISHED_MB} MiB are kept. Finish or remove one, or wait a day.",
                retry_after_s=3600,
            )
        _need_room(session, 0)
        upload = PartialUpload(
            id=new_name(),
            user_id=user.id,
            challenge_id=challenge.id,
            filename=clean_filename(filename),
            size=size,
            sha256=sha256,
            received=0,
            expires_at=utc_now() + LIFE,
        )
        session.add(upload)
    return upload


def open_upload(session: Session, user: User, challenge: Challenge, upload_id: str) -> PartialUpload:
    """An upload of one's own.

    Raises:
        NotThereError: When there is none, or it has expired.
    """
    upload = session.get(PartialUpload, upload_id) if re.fullmatch(r"[0-9a-f]{32}", upload_id) else None
    if upload is None or upload.user_id != user.id or upload.challenge_id != challenge.id:
        raise NotThereError
    if upload.expires_at < utc_now():
        raise NotThereError
    return upload


def own_uploads(session: Session, user: User, challenge: Challenge) -> list[PartialUpload]:
    """The uploads that somebody has under way in a challenge, oldest first."""
    query = select(PartialUpload).where(
        PartialUpload.user_id == user.id,
        PartialUpload.challenge_id == challenge.id,
        *UNDER_WAY,
        PartialUpload.expires_at > utc_now(),
    )
    return list(session.scalars(query.order_by(PartialUpload.created_at, PartialUpload.id)))


def check_part(upload: PartialUpload, start: int, size: int) -> None:
    """Refuses a part that begins at the wrong place, or has too few bytes or too many.

    Raises:
        WrongOffsetError: Says where the next part begins.
        RefusalError: When it is too small or too large.
    """
    if upload.submission_id is not None:
        raise ConflictError("The upload is finished.")
    if start != upload.received:
        raise WrongOffsetError(upload.received)
    if start + size > upload.size:
        raise RefusalError(f"The file has {upload.size} bytes; this part would reach {start + size}.")
    if size > MOST_PART:
        raise TooLargeError(f"A part has at most {MOST_PART // MIB} MiB.")
    if size < LEAST_PART and start + size < upload.size:
        raise RefusalError(f"A part has at least {LEAST_PART >> 10} KiB, but for the last one; this one has {size}.")


def add_part(
    database: Database, storage: Storage, user: User, challenge: Challenge, upload_id: str, start: int, part: Path
) -> PartialUpload:
    """Stores a part and notes it; of two that begin at the same place, one is taken.

    Returns:
        The upload as it is now: acknowledged.
    """
    size = part.stat().st_size
    with database.read() as session:
        check_part(open_upload(session, user, challenge, upload_id), start, size)
    path = f"parts/{upload_id}/{start:012d}-{new_name()[:8]}"
    storage.put(part, path)
    kept = False
    try:
        with database.write() as session:
            database.lock(session, PartialUpload, upload_id)
            upload = open_upload(session, user, challenge, upload_id)
            check_part(upload, start, size)
            _need_room(session, size)
            session.add(UploadPart(upload_id=upload_id, start=start, size=size, path=path))
            upload.received, upload.expires_at = start + size, utc_now() + LIFE
        kept = True
    finally:
        if not kept:
            storage.delete(path)
    return upload


@contextmanager
def assembled(database: Database, storage: Storage, upload: PartialUpload) -> Iterator[Upload]:
    """The whole file, for as long as it is needed.

    Raises:
        ConflictError: When parts are missing, or it is another file than was announced; that one is thrown away.
        TakenError: When another request has finished the upload meanwhile; its parts are gone, and what became of it
            is noted.
    """
    if upload.received < upload.size:
        raise WrongOffsetError(upload.received)
    with scratch("upload") as folder:
        path = folder / "run"
        try:
            digest = _put_together(database, storage, upload.id, path)
        except InputError:  # a part is gone
            _need_untaken(database, upload.id)
            raise
        if digest != upload.sha256:
            _need_untaken(database, upload.id)
            remove(database, storage, upload.id)
            raise ConflictError("What arrived is another file than was announced (its SHA-256 differs). Send it again.")
        yield Upload(path, upload.filename, upload.size, upload.sha256)


def _put_together(database: Database, storage: Storage, upload_id: str, path: Path) -> str:
    """Writes the parts of an upload into one file, and returns its SHA-256."""
    with database.read() as session:
        query = select(UploadPart.path).where(UploadPart.upload_id == upload_id).order_by(UploadPart.start)
        parts = list(session.scalars(query))
    sha = hashlib.sha256()
    with path.open("wb") as sink:
        for part in parts:
            for piece in storage.chunks(part):
                sha.update(piece)
                sink.write(piece)
    return sha.hexdigest()


def _need_untaken(database: Database, upload_id: str) -> None:
    with database.read() as session:
        upload = session.get(PartialUpload, upload_id)
    if upload is None:
        raise NotThereError
    if upload.submission_id is not None or upload.program_id is not None:
        raise TakenError


def arrival(upload: PartialUpload, now: dt.datetime) -> dt.datetime:
    """When an upload counts as having arrived: when it began, but no more time ago than a plain one may take.

    One that began before the clock was put back arrives now, not at a moment that is still to come.
    """
    return min(now, max(upload.created_at, now - UPLOAD_GRACE))


def finish(database: Database, storage: Storage, upload_id: str, submission_id: int | None = None) -> None:
    """Throws the parts of an upload away that has become something. Its row stays, for those who ask once more.

    Args:
        database: Where it is noted.
        storage: Where its parts are kept.
        upload_id: The upload.
        submission_id: What it has become; a debug run is noted already (`programs.debug_jobs`).
    """
    with database.write() as session:
        upload = database.lock(session, PartialUpload, upload_id)
        if upload is None:
            return
        upload.submission_id = submission_id if upload.submission_id is None else upload.submission_id
        upload.expires_at = utc_now() + LIFE
        paths = _take_parts(session, upload_id)
    for path in paths:
        storage.delete(path)


def remove(database: Database, storage: Storage, upload_id: str) -> None:
    """Throws an upload away."""
    with database.write() as session:
        paths = _take_parts(session, upload_id)
        session.execute(delete(PartialUpload).where(PartialUpload.id == upload_id))
    for path in paths:
        storage.delete(path)


def collect_expired(database: Database, storage: Storage) -> int:
    """Throws away what nobody has sent on for a day; returns how many."""
    with database.read() as session:
        old = list(session.scalars(select(PartialUpload.id).where(PartialUpload.expires_at < utc_now())))
    for upload_id in old:
        remove(database, storage, upload_id)
    return len(old)


def _need_room(session: Session, more: int) -> None:
    """Refuses bytes that are too many for all uploads together.

    Raises:
        BusyError: When there is no room.
    """
    held = session.execute(select(func.coalesce(func.sum(PartialUpload.received), 0)).where(*UNDER_WAY)).scalar_one()
    if held + more > ALL_UNFINISHED_MB * MIB:
        raise BusyError("Too many uploads are under way. Try again later.", retry_after_s=600)


def _take_parts(session: Session, upload_id: str) -> list[str]:
    paths = list(session.scalars(select(UploadPart.path).where(UploadPart.upload_id == upload_id)))
    session.execute(delete(UploadPart).where(UploadPart.upload_id == upload_id))
    return paths
