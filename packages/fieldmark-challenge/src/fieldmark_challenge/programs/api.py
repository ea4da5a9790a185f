"""Programs through the API: what is asked for, debug runs, and what organizers decide."""

from __future__ import annotations

import datetime as dt

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.people import rights
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.programs import debug_jobs
from fieldmark_challenge.programs.replies import AskedOut, CodeOut
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.records.upload_schema import PartialUpload
from fieldmark_challenge.submissions import partial_uploads
from fieldmark_challenge.submissions.api import described_form
from fieldmark_challenge.submissions.archives import ArchiveRefusedError
from fieldmark_challenge.submissions.partial_uploads_api import own_upload, wrong_offset
from fieldmark_challenge.submissions.replies import ProgramOut
from fieldmark_challenge.submissions.senders import UploadSender
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge.web.callers import Managed, Reader, Submitter
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId, StorageOf, admit_upload
from fieldmark_challenge.web.forms import file_of
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.replies import Refused

router = APIRouter(responses={404: {"model": Refused}})
ARCHIVE = {"type": "string", "format": "binary", "description": "a zip or tar archive with run.sh"}
PROGRAM_FORM = described_form(["run"], run=ARCHIVE)


@router.get("/challenges/{slug}/code", tags=["programs"])
def asked(slug: str, user: Reader, database: DatabaseOf) -> AskedOut:
    """Whether programs are required now, and their limits."""
    with database.read() as session:
        return AskedOut.seen(session, open_challenge(session, user, slug))


@router.get("/challenges/{slug}/debug-runs", tags=["programs"])
def debug_runs(slug: str, user: Reader, database: DatabaseOf) -> list[ProgramOut]:
    """The debug runs of your team, newest first."""
    with database.read() as session:
        team = rights.team_of(session, user, open_challenge(session, user, slug))
        programs = debug_jobs.debug_runs(session, team) if team else []
        return [ProgramOut.of(session, program, manages=False) for program in programs]


@router.post(
    "/challenges/{slug}/debug-runs",
    tags=["programs"],
    status_code=201,
    openapi_extra=PROGRAM_FORM,
    response_model=ProgramOut,
    responses={status: {"model": Refused} for status in (409, 413, 422, 429, 503)},
)
async def try_out(request: Request, slug: str, user: Submitter, database: DatabaseOf, storage: StorageOf) -> ProgramOut:
    """Debug run of a program on the sample: all output, no score, not counted."""
    challenge = await run_in_threadpool(admit_upload, request, user, slug)
    async with request.form(max_files=1, max_fields=5) as form:
        return await lane_of(request).run(user.id, _tried, request, challenge, user, database, storage, form)


def _tried(
    request: Request, challenge: Challenge, user: User, database: DatabaseOf, storage: StorageOf, form: FormData
) -> ProgramOut:
    file = file_of(form, "run")
    if file is None:
        raise RefusalError("Send the archive as a file in the field 'run'.")
    with received(file.file, file.filename or "program", limit_mb=request.state.upload_limit_mb) as upload:
        accepted = debug_jobs.try_out(database, storage, user, challenge, upload, arrived=request.state.arrived)
    with database.read() as session:
        return ProgramOut.of(session, session.get_one(Program, accepted.id), manages=False)


@router.post(
    "/challenges/{slug}/uploads/{upload_id}/debug",
    tags=["programs"],
    status_code=201,
    response_model=ProgramOut,
    responses={status: {"model": Refused} for status in (409, 413, 422, 429, 503)},
)
async def try_out_upload(
    request: Request, slug: str, upload_id: str, user: UploadSender, database: DatabaseOf, storage: StorageOf
) -> ProgramOut | JSONResponse:
    """Debug run of a program that was uploaded in parts. Repeating the request returns the same debug run."""
    challenge, upload = await run_in_threadpool(own_upload, database, user, slug, upload_id)
    arrived = partial_uploads.arrival(upload, request.state.arrived)
    return await lane_of(request).run(user.id, _tried_upload, challenge, user, database, storage, upload, arrived)


def _tried_upload(
    challenge: Challenge, user: User, database: DatabaseOf, storage: StorageOf, upload: PartialUpload,
    arrived: dt.datetime,
) -> ProgramOut | JSONResponse:  # fmt: skip
    _, upload = own_upload(database, user, challenge.slug, upload.id)  # another request may have been quicker
    number = upload.program_id
    if upload.submission_id is not None:
        raise ConflictError("This upload was submitted. Send the file again to try it out.")
    if number is None:
        try:
            with partial_uploads.assembled(database, storage, upload) as whole:
                program = debug_jobs.try_out(
                    database, storage, user, challenge, whole, arrived=arrived, sent_as=upload.id
                )
        except partial_uploads.TakenError:
            return _tried_upload(challenge, user, database, storage, upload, arrived)
        except partial_uploads.WrongOffsetError as error:
            return wrong_offset(error)
        except ArchiveRefusedError:
            partial_uploads.remove(database, storage, upload.id)
            raise
        number = program.id
        partial_uploads.finish(database, storage, upload.id)
    with database.read() as session:
        return ProgramOut.of(session, session.get_one(Program, number), manages=False)


@router.get("/challenges/{slug}/debug-runs/{program_id}", tags=["programs"])
def debug_run(slug: str, program_id: RowId, user: Reader, database: DatabaseOf) -> ProgramOut:
    """One debug run: its state, its output, and the mistakes in its answers."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        program = debug_jobs.open_debug_run(session, user, challenge, program_id)
        return ProgramOut.of(session, program, manages=rights.manages(session, user, challenge))


@router.get("/challenges/{slug}/organize/code", tags=["organizing"])
def code(challenge: Managed, database: DatabaseOf) -> CodeOut:
    """The limits of programs, and the machines that run them."""
    with database.read() as session:
        return CodeOut.seen(session, challenge)
