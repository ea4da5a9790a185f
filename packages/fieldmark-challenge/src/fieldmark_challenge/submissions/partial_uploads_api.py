"""Uploads in parts: begin, send on from where it stands, finish. The headers are those of tus."""

from __future__ import annotations

import datetime as dt
from typing import Annotated, Any

from fastapi import APIRouter, Form, Header
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fieldmark.web.refusals import ConflictError
from fieldmark.web.security import lower_body_limit
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Challenge, Submission, User
from fieldmark_challenge.records.scratch import scratch
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.records.upload_schema import PartialUpload
from fieldmark_challenge.submissions import partial_uploads, submissions
from fieldmark_challenge.submissions.api import submission_out
from fieldmark_challenge.submissions.partial_uploads import WrongOffsetError
from fieldmark_challenge.submissions.replies import SubmissionOut
from fieldmark_challenge.submissions.run_files import MIB, RunRefusedError
from fieldmark_challenge.submissions.senders import UploadReader, UploadSender
from fieldmark_challenge.submissions.submissions import Entry
from fieldmark_challenge.web.dependencies import LARGEST, DatabaseOf, StorageOf, admit_upload
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.replies import Done, Refused

router = APIRouter(responses={404: {"model": Refused}})
BYTES = "application/octet-stream"  # tus says application/offset+octet-stream, which is taken as well
PART_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}
}


class UploadOut(BaseModel):
    """An upload that comes in parts."""

    id: str
    filename: str
    size: int
    sha256: str
    received: int
    part: int
    expires_at: dt.datetime
    submission: int | None
    debug_run: int | None

    @classmethod
    def of(cls, upload: PartialUpload) -> UploadOut:
        return cls(
            id=upload.id,
            filename=upload.filename,
            size=upload.size,
            sha256=upload.sha256,
            received=upload.received,
            part=partial_uploads.PART,
            expires_at=upload.expires_at,
            submission=upload.submission_id,
            debug_run=upload.program_id,
        )


@router.get("/challenges/{slug}/uploads", tags=["submissions"])
def uploads(slug: str, user: UploadReader, database: DatabaseOf) -> list[UploadOut]:
    """Your uploads that are not finished, to send on."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        return [UploadOut.of(one) for one in partial_uploads.own_uploads(session, user, challenge)]


@router.post(
    "/challenges/{slug}/uploads",
    tags=["submissions"],
    status_code=201,
    responses={status: {"model": Refused} for status in (400, 409, 413, 429, 503)},
)
def begin(
    request: Request,
    slug: str,
    user: UploadSender,
    database: DatabaseOf,
    storage: StorageOf,
    response: Response,
    size: Annotated[int, Form(ge=0, le=LARGEST * MIB, description="bytes of the whole file")] = 0,
    sha256: Annotated[str, Form(max_length=64, description="of the whole file, in hexadecimal digits")] = "",
    filename: Annotated[str, Form(max_length=300)] = "run.csv",
) -> UploadOut:
    """Begins to submit a run in parts. Send them with PATCH, then finish; parts of `part` bytes are a good size."""
    challenge = admit_upload(request, user, slug)
    upload = partial_uploads.begin(
        database, storage, user, challenge, filename, size, sha256,
        limit_mb=request.state.upload_limit_mb, arrived=request.state.arrived,
    )  # fmt: skip
    response.headers["location"] = f"{request.url.path}/{upload.id}"
    return UploadOut.of(upload)


@router.get("/challenges/{slug}/uploads/{upload_id}", tags=["submissions"])
def upload(slug: str, upload_id: str, user: UploadReader, database: DatabaseOf) -> UploadOut:
    """One upload, and how much of it has arrived (`received`): the next part begins there."""
    return UploadOut.of(own_upload(database, user, slug, upload_id)[1])


@router.head("/challenges/{slug}/uploads/{upload_id}", include_in_schema=False)
def offset(slug: str, upload_id: str, user: UploadReader, database: DatabaseOf) -> Response:
    """The same in headers, as tus asks."""
    return _standing_at(own_upload(database, user, slug, upload_id)[1], 200)


@router.patch(
    "/challenges/{slug}/uploads/{upload_id}",
    tags=["submissions"],
    status_code=204,
    response_class=Response,
    openapi_extra=PART_BODY,
    responses={status: {"model": Refused} for status in (400, 409, 413, 503)},
)
async def send_part(
    request: Request,
    slug: str,
    upload_id: str,
    user: UploadSender,
    database: DatabaseOf,
    storage: StorageOf,
    upload_offset: Annotated[int, Header(ge=0, le=LARGEST * MIB, description="where in the file the part begins")] = 0,
) -> Response:
    """Sends a part. 204 with `Upload-Offset` says that it is stored for good; 409 says where to send on from."""
    challenge, upload = await run_in_threadpool(own_upload, database, user, slug, upload_id)
    lane, parts = lane_of(request), f"parts of {user.id}"
    request.state.at_end.append(lane.arriving(parts))
    most = min(partial_uploads.MOST_PART, upload.size - upload.received)
    lower_body_limit(request, 0, f"A part has at most {most} bytes here.", more=most)
    if upload_offset != upload.received:
        return wrong_offset(WrongOffsetError(upload.received))
    with scratch("part") as folder:
        path = folder / "part"
        with path.open("wb") as sink:
            async for piece in request.stream():
                sink.write(piece)
        try:
            upload = await lane.run(
                parts,
                partial_uploads.add_part,
                database,
                storage,
                user,
                challenge,
                upload_id,
                upload_offset,
                path,
            )
        except WrongOffsetError as error:  # another part came first
            return wrong_offset(error)
    return _standing_at(upload, 204)


@router.post(
    "/challenges/{slug}/uploads/{upload_id}/finish",
    tags=["submissions"],
    status_code=201,
    response_model=SubmissionOut,
    responses={status: {"model": Refused} for status in (409, 413, 422, 429, 503)},
)
async def finish(
    request: Request,
    slug: str,
    upload_id: str,
    user: UploadSender,
    database: DatabaseOf,
    storage: StorageOf,
    title: Annotated[str, Form()] = "",
    method: Annotated[str, Form(description="how the run was made")] = "",
    external: Annotated[str, Form(description="external data used: yes or no; must be said")] = "",
    external_note: Annotated[str, Form(description="which, if any")] = "",
    external_found: Annotated[str, Form(description="what the provenance of the run (run.json) records")] = "",
) -> SubmissionOut | JSONResponse:
    """Submit the uploaded file. Finishing again returns the same submission."""
    challenge, upload = await run_in_threadpool(own_upload, database, user, slug, upload_id)
    declared = submissions.declares_external(external)
    entry = Entry(title, method, declared, external_note, idempotency_key=upload_id, external_found=external_found)
    arrived = partial_uploads.arrival(upload, request.state.arrived)
    return await lane_of(request).run(user.id, _finish, database, storage, user, challenge, upload, entry, arrived)


def _finish(
    database: Database, storage: Storage, user: User, challenge: Challenge, upload: PartialUpload, entry: Entry,
    arrived: dt.datetime,
) -> SubmissionOut | JSONResponse:  # fmt: skip
    _, upload = own_upload(database, user, challenge.slug, upload.id)  # another request may have been quicker
    number = upload.submission_id
    if upload.program_id is not None:
        raise ConflictError("This upload was tried out as a debug run. Send the file again to submit it.")
    if number is None:
        try:
            with partial_uploads.assembled(database, storage, upload) as whole:
                accepted = submissions.hand_in(database, storage, user, challenge, whole, entry, arrived=arrived)
        except partial_uploads.TakenError:
            return _finish(database, storage, user, challenge, upload, entry, arrived)
        except WrongOffsetError as error:
            return wrong_offset(error)
        except RunRefusedError as error:
            partial_uploads.remove(database, storage, upload.id)
            return JSONResponse({"error": str(error), "problems": error.problems}, status_code=error.status)
        number = accepted.id
        partial_uploads.finish(database, storage, upload.id, number)
    with database.read() as session:
        return submission_out(session, user, challenge, session.get_one(Submission, number))


@router.delete("/challenges/{slug}/uploads/{upload_id}", tags=["submissions"])
def remove(slug: str, upload_id: str, user: UploadSender, database: DatabaseOf, storage: StorageOf) -> Done:
    """Throws an upload away."""
    partial_uploads.remove(database, storage, own_upload(database, user, slug, upload_id)[1].id)
    return Done(done="removed")


def own_upload(database: Database, user: User, slug: str, upload_id: str) -> tuple[Challenge, PartialUpload]:
    """An upload of one's own, and its challenge."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        return challenge, partial_uploads.open_upload(session, user, challenge, upload_id)


def _standing_at(upload: PartialUpload, status: int) -> Response:
    headers = {"upload-offset": str(upload.received), "upload-length": str(upload.size)}
    return Response(status_code=status, headers=headers)


def wrong_offset(error: WrongOffsetError) -> JSONResponse:
    """Says where to send on from."""
    return JSONResponse({"error": str(error)}, error.status, headers={"upload-offset": str(error.received)})
