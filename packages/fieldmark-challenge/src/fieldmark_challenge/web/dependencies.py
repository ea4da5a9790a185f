"""What pages and API share of a request: the database and the file store of the application, and limits on uploads."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path
from starlette.requests import Request

from fieldmark.web.security import lower_body_limit
from fieldmark_challenge.challenges.code_tasks import upload_limit_mb
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.web.lanes import lane_of

LARGEST = 2**31 - 1  # what a column of the database holds


def get_database(request: Request) -> Database:
    """The database of the application."""
    database: Database = request.app.state.database
    return database


def get_storage(request: Request) -> Storage:
    """The file store of the application."""
    storage: Storage = request.app.state.storage
    return storage


def admit_upload(request: Request, user: User, slug: str) -> Challenge:
    """The challenge that a run is for, before a byte of the run is read.

    Raises:
        NotThereError: When there is none that they may see.
        TooOftenError: When they upload too often.
        BusyError: When too many uploads of theirs are on their way.
        TooLargeError: When the request says itself that it is larger than the challenge takes. One that does not say
            how large it is, is stopped as soon as it is larger.
    """
    database = get_database(request)
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        limit_mb = upload_limit_mb(session, challenge)
    rates.count(database, rates.UPLOAD, str(user.id))
    request.state.at_end.append(lane_of(request).arriving(user.id))
    lower_body_limit(request, limit_mb, too_large(limit_mb))
    request.state.upload_limit_mb = limit_mb
    return challenge


def too_large(limit_mb: int) -> str:
    """What is said about a file over the limit."""
    return f"The file is larger than {limit_mb} MiB, the limit of this challenge."


def bound_upload(request: Request, challenge: Challenge) -> None:
    """Lets no more of a request in than the challenge takes in one run."""
    lower_body_limit(request, challenge.max_upload_mb, too_large(challenge.max_upload_mb))


DatabaseOf = Annotated[Database, Depends(get_database)]
StorageOf = Annotated[Storage, Depends(get_storage)]
# The number of a row in an address; others, which no column holds, are nothing there.
RowId = Annotated[int, Path(ge=1, le=LARGEST)]
