"""Challenges, their files, and the submissions of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Form
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.boards.own_scores import own_metrics
from fieldmark_challenge.challenges.announcements import announcements_of
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.challenges.visible_output import programs_of
from fieldmark_challenge.people import rights
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.schema import Challenge, DataFile, Submission, User, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions import submissions
from fieldmark_challenge.submissions.replies import (
    AnnouncementOut,
    ChallengeOut,
    FileOut,
    ProgramOut,
    QuotaOut,
    SubmissionOut,
)
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.submissions.submissions import Entry
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge.web.attachments import sent
from fieldmark_challenge.web.callers import Reader, Submitter
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId, StorageOf, admit_upload
from fieldmark_challenge.web.forms import file_of, text_of
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.replies import Done, Refused

router = APIRouter(responses={404: {"model": Refused}})
RUN_FILE = {
    "type": "string",
    "format": "binary",
    "description": "the run file, plain or gzip; or an archive with run.sh",
}
TEXT = {"type": "string"}
YES_OR_NO = {"type": "string", "enum": ["yes", "no"]}


def described_form(required: Sequence[str], **fields: dict[str, Any]) -> dict[str, Any]:
    """How OpenAPI describes a form with a file, which a route reads itself once it knows who calls."""
    schema = {"type": "object", "required": list(required), "properties": fields}
    return {"requestBody": {"required": bool(required), "content": {"multipart/form-data": {"schema": schema}}}}


UPLOAD_FORM = described_form(
    ["run", "external"],
    run=RUN_FILE,
    title=TEXT,
    method=TEXT | {"description": "how the run was made"},
    external=YES_OR_NO | {"description": "external data used, pretrained weights included"},
    external_note=TEXT | {"description": "which, if any"},
    external_found=TEXT | {"description": "what the provenance of the run (run.json) records"},
    once=TEXT | {"description": "an idempotency key: the same key never makes a second submission"},
)


@router.get("/challenges", tags=["challenges"])
def challenges(user: Reader, database: DatabaseOf) -> list[ChallengeOut]:
    """The challenges you may see."""
    with database.read() as session:
        return [ChallengeOut.of(challenge) for challenge in rights.visible_challenges(session, user)]


@router.get("/challenges/{slug}", tags=["challenges"])
def challenge(slug: str, user: Reader, database: DatabaseOf) -> ChallengeOut:
    """One challenge."""
    with database.read() as session:
        return ChallengeOut.of(open_challenge(session, user, slug))


@router.get("/challenges/{slug}/announcements", tags=["challenges"])
def announcements(slug: str, user: Reader, database: DatabaseOf) -> list[AnnouncementOut]:
    """What the organizers announced, newest first."""
    with database.read() as session:
        rows = announcements_of(session, open_challenge(session, user, slug))
        return [AnnouncementOut.model_validate(row, from_attributes=True) for row in rows]


@router.get("/challenges/{slug}/data", tags=["challenges"])
def files(slug: str, user: Reader, database: DatabaseOf) -> list[FileOut]:
    """Files to download."""
    with database.read() as session:
        return [FileOut.of(file) for file in open_challenge(session, user, slug).files]


@router.get("/challenges/{slug}/data/{file_id}", tags=["challenges"], response_class=Response)
def file(slug: str, file_id: RowId, user: Reader, database: DatabaseOf, storage: StorageOf) -> Response:
    """A download, for those who accepted the rules."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        wanted = session.get(DataFile, file_id)
        if wanted is None or wanted.challenge_id != challenge.id:
            raise NotThereError
        rights.need_acceptance(session, user, challenge)
    return sent(storage, wanted.path, wanted.name, wanted.size)


@router.get("/challenges/{slug}/quota", tags=["submissions"])
def quota(slug: str, user: Reader, database: DatabaseOf) -> QuotaOut:
    """What your team may still submit."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        team, phase = rights.team_of(session, user, challenge), phase_at(challenge.phases, utc_now())
        if team is None or phase is None:
            raise NotThereError
        return QuotaOut.of(phase, submissions.quota(session, team, phase, utc_now()))


@router.get("/challenges/{slug}/submissions", tags=["submissions"])
def own_submissions(slug: str, user: Reader, database: DatabaseOf) -> list[SubmissionOut]:
    """The submissions of your team, newest first."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        team = rights.team_of(session, user, challenge)
        runs = submissions.team_submissions(session, team) if team else []
        return submissions_out(session, user, challenge, runs)


@router.post(
    "/challenges/{slug}/submissions",
    tags=["submissions"],
    status_code=201,
    openapi_extra=UPLOAD_FORM,
    response_model=SubmissionOut,
    responses={status: {"model": Refused} for status in (409, 413, 422, 429, 503)},
)
async def hand_in(
    request: Request, slug: str, user: Submitter, database: DatabaseOf, storage: StorageOf
) -> SubmissionOut | JSONResponse:
    """Submit a run. Mistakes are listed with line numbers (422) and do not count."""
    challenge = await run_in_threadpool(admit_upload, request, user, slug)
    async with request.form(max_files=1, max_fields=20) as form:
        return await lane_of(request).run(user.id, _hand_in, request, challenge, user, database, storage, form)


def _hand_in(
    request: Request, challenge: Challenge, user: User, database: DatabaseOf, storage: StorageOf, form: FormData
) -> SubmissionOut | JSONResponse:
    run: UploadFile | None = file_of(form, "run")
    if run is None:
        raise RefusalError("Send the run as a file in the field 'run'.")
    entry = Entry(
        title=text_of(form, "title"),
        method=text_of(form, "method"),
        external_data=submissions.declares_external(text_of(form, "external")),
        external_note=text_of(form, "external_note"),
        external_found=text_of(form, "external_found"),
        idempotency_key=text_of(form, "once") or None,
    )
    try:
        with received(run.file, run.filename or "run.csv", limit_mb=request.state.upload_limit_mb) as upload:
            arrived = request.state.arrived
            accepted = submissions.hand_in(database, storage, user, challenge, upload, entry, arrived=arrived)
    except RunRefusedError as error:
        return JSONResponse({"error": str(error), "problems": error.problems}, status_code=error.status)
    with database.read() as session:
        return submission_out(session, user, challenge, session.get_one(Submission, accepted.id))


@router.get("/challenges/{slug}/submissions/{submission_id}", tags=["submissions"])
def submission(slug: str, submission_id: RowId, user: Reader, database: DatabaseOf) -> SubmissionOut:
    """One submission: its state and its scores."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        return submission_out(session, user, challenge, rights.open_submission(session, user, challenge, submission_id))


@router.post("/challenges/{slug}/submissions/{submission_id}/select", tags=["submissions"])
def select(
    slug: str, submission_id: RowId, user: Submitter, database: DatabaseOf, selected: Annotated[bool, Form()] = True
) -> Done:
    """Choose a run for the final ranking, or undo the choice."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    submissions.select_final(database, user, challenge, submission_id, selected)
    return Done(done="selected" if selected else "unselected")


def submissions_out(session: Session, user: User, challenge: Challenge, runs: list[Submission]) -> list[SubmissionOut]:
    """Submissions as the API shows them to somebody."""
    manages = rights.manages(session, user, challenge)
    scores = own_metrics(session, challenge, runs, manages=manages)
    programs = {
        number: ProgramOut.of(session, one, manages=manages) for number, one in programs_of(session, runs).items()
    }
    return [SubmissionOut.of(run, scores[run.id], queue.position(session, run), programs.get(run.id)) for run in runs]


def submission_out(session: Session, user: User, challenge: Challenge, run: Submission) -> SubmissionOut:
    """One of them."""
    return submissions_out(session, user, challenge, [run])[0]
