"""Programs through the API: what is asked for, debug runs, and what organizers decide."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse

from fieldmark.challenge.coding import tasks, trying_out
from fieldmark.challenge.coding.archives import ArchiveRefusedError
from fieldmark.challenge.coding.replies import AskedOut, CodeOut, ProgramOut
from fieldmark.challenge.people import rights
from fieldmark.challenge.people.api import ApiOrganizer, Managed, Reader, Submitter
from fieldmark.challenge.people.rights import open_challenge
from fieldmark.challenge.records.code_schema import Program
from fieldmark.challenge.records.schema import Challenge, User
from fieldmark.challenge.records.upload_schema import PartialUpload
from fieldmark.challenge.refusals import ConflictError, RefusalError
from fieldmark.challenge.running.api import RequestBody
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId, StorageOf, admit_upload
from fieldmark.challenge.site.forms import file_of
from fieldmark.challenge.site.lanes import lane_of
from fieldmark.challenge.site.replies import Refused
from fieldmark.challenge.submitting import resuming
from fieldmark.challenge.submitting.api import described_form
from fieldmark.challenge.submitting.resuming_api import own_upload, wrong_offset
from fieldmark.challenge.submitting.senders import UploadSender
from fieldmark.challenge.submitting.uploads import received

router = APIRouter(responses={404: {"model": Refused}})
ARCHIVE = {"type": "string", "format": "binary", "description": "a zip or tar archive with run.sh"}
PROGRAM_FORM = described_form(["run"], run=ARCHIVE)


class CodeIn(RequestBody):
    """What to change about programs; what is left out stays."""

    seconds: int | None = None
    memory_mb: int | None = None
    processes: int | None = None
    disk_mb: int | None = None
    output_mb: int | None = None
    archive_mb: int | None = None
    debug_seconds: int | None = None
    debug_hourly: int | None = None
    show_output: bool | None = None
    phases: list[int] | None = Field(None, description="the phases that ask for programs, and no others")


@router.get("/challenges/{slug}/code", tags=["programs"])
def asked(slug: str, user: Reader, database: DatabaseOf) -> AskedOut:
    """Whether programs are asked for now, and what they may use."""
    with database.read() as session:
        return AskedOut.seen(session, open_challenge(session, user, slug))


@router.get("/challenges/{slug}/debug-runs", tags=["programs"])
def debug_runs(slug: str, user: Reader, database: DatabaseOf) -> list[ProgramOut]:
    """The debug runs of your team, newest first."""
    with database.read() as session:
        team = rights.team_of(session, user, open_challenge(session, user, slug))
        programs = trying_out.debug_runs(session, team) if team else []
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
    """Runs a program on the sample: free of charge, with all that it says, and without a score."""
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
        accepted = trying_out.try_out(database, storage, user, challenge, upload, arrived=request.state.arrived)
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
    """Runs a program that came in parts on the sample. Asking again gives the same debug run."""
    challenge, upload = await run_in_threadpool(own_upload, database, user, slug, upload_id)
    arrived = resuming.arrival(upload, request.state.arrived)
    return await lane_of(request).run(user.id, _tried_upload, challenge, user, database, storage, upload, arrived)


def _tried_upload(
    challenge: Challenge, user: User, database: DatabaseOf, storage: StorageOf, upload: PartialUpload,
    arrived: dt.datetime,
) -> ProgramOut | JSONResponse:  # fmt: skip
    _, upload = own_upload(database, user, challenge.slug, upload.id)  # another request may have been quicker
    number = upload.program_id
    if upload.submission_id is not None:
        raise ConflictError("This upload was handed in. Send the file again to try it out.")
    if number is None:
        try:
            with resuming.assembled(database, storage, upload) as whole:
                program = trying_out.try_out(
                    database, storage, user, challenge, whole, arrived=arrived, sent_as=upload.id
                )
        except resuming.TakenError:
            return _tried_upload(challenge, user, database, storage, upload, arrived)
        except resuming.WrongOffsetError as error:
            return wrong_offset(error)
        except ArchiveRefusedError:
            resuming.remove(database, storage, upload.id)
            raise
        number = program.id
        resuming.finish(database, storage, upload.id)
    with database.read() as session:
        return ProgramOut.of(session, session.get_one(Program, number), manages=False)


@router.get("/challenges/{slug}/debug-runs/{program_id}", tags=["programs"])
def debug_run(slug: str, program_id: RowId, user: Reader, database: DatabaseOf) -> ProgramOut:
    """One debug run: where it stands, what it said, and what is wrong with its answers."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        program = trying_out.open_debug_run(session, user, challenge, program_id)
        return ProgramOut.of(session, program, manages=rights.manages(session, user, challenge))


@router.get("/challenges/{slug}/organize/code", tags=["organizing"])
def code(challenge: Managed, database: DatabaseOf) -> CodeOut:
    """What the challenge asks of programs, and which machines run them."""
    with database.read() as session:
        return CodeOut.seen(session, challenge)


@router.post("/challenges/{slug}/organize/code", tags=["organizing"])
def set_code(
    request: Request, challenge: Managed, user: ApiOrganizer, database: DatabaseOf, storage: StorageOf,
    given: Annotated[CodeIn, Form()],
) -> CodeOut:  # fmt: skip
    """Changes what programs may use, and in which phases they are asked for."""
    changes = given.changes()
    wanted = changes.pop("phases", None)
    with database.read() as session:
        task = tasks.task_of(session, challenge.id)
        phases = tasks.code_phases(session, challenge) if wanted is None else set(wanted)
    rules = replace(tasks.rules_of(task) if task else tasks.CodeRules(), **changes)
    most = request.app.state.upload_mb
    tasks.set_code(database, storage, user, challenge, rules, phases, most_archive_mb=most)
    with database.read() as session:
        return CodeOut.seen(session, challenge)
