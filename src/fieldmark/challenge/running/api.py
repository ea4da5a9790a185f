"""Running a challenge from a program: what the organizers' pages do, with the same rights.

Whether somebody runs the challenge is decided before anything they sent is looked at, so that a mistake in a form tells
nobody that there is a challenge.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Form, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse

from fieldmark.challenge.people.api import ApiOrganizer, Managed
from fieldmark.challenge.records import audit
from fieldmark.challenge.records.schema import Challenge, Submission, User
from fieldmark.challenge.refusals import NotThereError, RefusalError
from fieldmark.challenge.running import creating, exports, offered_files, organizing, phases
from fieldmark.challenge.running.creation_form import create_from, usual_values
from fieldmark.challenge.running.replies import EventOut, ManagedOut, OrganizerOut, QueuedOut, organizers_out
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId, StorageOf, bound_upload
from fieldmark.challenge.site.forms import file_of, kept_files, plain_sentence, text_of
from fieldmark.challenge.site.lanes import lane_of
from fieldmark.challenge.site.replies import Done, Refused
from fieldmark.challenge.submitting import submissions
from fieldmark.challenge.submitting.api import RUN_FILE, TEXT, YES_OR_NO, described_form, submission_out
from fieldmark.challenge.submitting.replies import FileOut, PhaseOut, SubmissionOut
from fieldmark.challenge.submitting.run_files import RunRefusedError
from fieldmark.challenge.submitting.uploads import received
from fieldmark.errors import FieldmarkError

router = APIRouter(tags=["organizing"], responses={404: {"model": Refused}})
CSV = {"type": "string", "format": "binary", "description": "a table as CSV"}
TRUTH = {"truth": CSV, "classes": CSV, "media": CSV}
NEW_FORM = described_form(
    ["slug", "benchmark"],
    **dict.fromkeys(("slug", "benchmark", "title", "summary", "description", "rules"), TEXT),
    **dict.fromkeys(
        ("public_share", "seed", "starts", "ends", "daily", "total", "access", "stage_of", "stage_entry", "stage_top"),
        TEXT,
    ),
    **dict.fromkeys(("needs_run_without_external", "ladder", "published"), YES_OR_NO),
    data=TEXT | {"description": "a folder on the server that holds the release; for admins, in place of the truth"},
    **TRUTH,
)
BASELINE_FORM = described_form(["run", "title"], run=RUN_FILE, title=TEXT, method=TEXT)
FILE_FORM = described_form(["file"], file={"type": "string", "format": "binary"}, about=TEXT)


def in_utc(moment: dt.datetime) -> dt.datetime:
    """A moment with its time zone; one without is in UTC.

    Raises:
        ValueError: When it is not within the years 1 to 9999 there.
    """
    try:
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except OverflowError as error:
        raise ValueError("expected a moment of the years 1 to 9999") from error


Moment = Annotated[dt.datetime, AfterValidator(in_utc)]


class RequestBody(BaseModel):
    """What somebody sent; names that mean nothing are refused rather than passed over."""

    model_config = ConfigDict(extra="forbid")

    def changes(self) -> dict[str, Any]:
        """The fields that were sent."""
        return self.model_dump(exclude_none=True)


class SettingsIn(RequestBody):
    """What to change about a challenge; what is left out stays."""

    title: str | None = None
    summary: str | None = None
    description: str | None = None
    rules: str | None = Field(None, description="new rules have to be accepted again by everybody")
    max_upload_mb: int | None = None
    max_team_size: int | None = None
    max_final: int | None = None
    needs_run_without_external: bool | None = None
    ladder: bool | None = Field(None, description="chosen before the first run")
    access: Literal["open", "approval", "invitation", "private"] | None = Field(None, description="who may take part")
    merging: bool | None = Field(None, description="whether teams may merge")


class NewPhaseIn(RequestBody):
    """A phase to add; times without a zone are in UTC."""

    name: str
    starts_at: Moment
    ends_at: Moment
    daily_limit: int = 5
    total_limit: int = 100


class PhaseIn(RequestBody):
    """What to change about a phase; what is left out stays."""

    name: str | None = None
    starts_at: Moment | None = None
    ends_at: Moment | None = None
    daily_limit: int | None = None
    total_limit: int | None = None


def api_maker(user: ApiOrganizer) -> User:
    """Somebody who may make challenges."""
    if user.role not in ("organizer", "admin"):
        raise NotThereError
    return user


@router.post("/challenges", status_code=201, openapi_extra=NEW_FORM, response_model=ManagedOut)
async def create(
    request: Request, user: Annotated[User, Depends(api_maker)], database: DatabaseOf, storage: StorageOf
) -> ManagedOut:
    """Makes a challenge from the truth as small tables; a draft unless `published` says yes."""

    def make(form: FormData) -> ManagedOut:
        usual = [(name, value) for name, value in usual_values().items() if name not in form]
        try:
            made = create_from(FormData([*usual, *form.multi_items()]), user, database, storage)
        except RefusalError:
            raise
        except FieldmarkError as error:  # about an uploaded table: without the place where the server keeps it
            raise RefusalError(plain_sentence(error)) from error
        return _seen(database, made)

    async with request.form(max_files=3, max_fields=40) as form:
        return await lane_of(request).run(user.id, make, form)


@router.get("/challenges/{slug}/organize")
def organize(challenge: Managed, database: DatabaseOf) -> ManagedOut:
    """The challenge as those who run it see it: settings, phases, baselines, files, and where its runs stand."""
    return _seen(database, challenge)


@router.post("/challenges/{slug}/settings")
def settings(
    request: Request, challenge: Managed, user: ApiOrganizer, database: DatabaseOf, given: Annotated[SettingsIn, Form()]
) -> ManagedOut:
    """Changes texts and limits."""
    texts = replace(organizing.texts_of(challenge), **given.changes())
    organizing.change(database, user, challenge, texts, most_upload_mb=request.app.state.upload_mb)
    return _seen(database, challenge)


@router.post("/challenges/{slug}/phases", status_code=201)
def add_phase(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf, given: Annotated[NewPhaseIn, Form()]
) -> PhaseOut:
    """Adds a phase."""
    return PhaseOut.of(phases.set_phase(database, user, challenge, **given.model_dump()))


@router.post("/challenges/{slug}/phases/{phase_id}")
def change_phase(
    challenge: Managed, phase_id: RowId, user: ApiOrganizer, database: DatabaseOf, given: Annotated[PhaseIn, Form()]
) -> PhaseOut:
    """Moves a phase, or changes its limits."""
    wanted = next((phase for phase in challenge.phases if phase.id == phase_id), None)
    if wanted is None:
        raise NotThereError
    return PhaseOut.of(phases.change_phase(database, user, challenge, wanted, **given.changes()))


@router.delete("/challenges/{slug}/phases/{phase_id}")
def remove_phase(challenge: Managed, phase_id: RowId, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Removes a phase in which no run was handed in."""
    phases.remove_phase(database, user, challenge, phase_id)
    return Done(done="removed")


@router.post("/challenges/{slug}/publish")
def publish(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf, published: Annotated[bool, Form()] = True
) -> Done:
    """Shows the challenge to everybody, or only to those who run it."""
    phases.publish(database, user, challenge, published=published)
    return Done(done="published" if published else "hidden")


@router.post("/challenges/{slug}/freeze")
def freeze(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf, frozen: Annotated[bool, Form()] = True
) -> Done:
    """Freezes the public board, or lets it go on."""
    phases.freeze(database, user, challenge, frozen=frozen)
    return Done(done="frozen" if frozen else "unfrozen")


@router.post("/challenges/{slug}/reveal")
def reveal(challenge: Managed, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Reveals the private scores, for good."""
    phases.reveal(database, user, challenge)
    return Done(done="revealed")


@router.post("/challenges/{slug}/rescore", openapi_extra=described_form([], **TRUTH))
async def rescore(
    request: Request, challenge: Managed, user: ApiOrganizer, database: DatabaseOf, storage: StorageOf
) -> Done:
    """Scores all runs again, against a corrected truth if one is sent along; acceptance times stay."""

    def again(form: FormData) -> int:
        with kept_files(form, *TRUTH) as files:
            if "truth" not in files:
                return queue.rescore(database, user, challenge)
            corrected = (files["truth"], files.get("classes"), files.get("media"))
            try:
                return creating.replace_truth(database, storage, user, challenge, *corrected)
            except RefusalError:
                raise
            except FieldmarkError as error:
                raise RefusalError(plain_sentence(error)) from error

    async with request.form(max_files=3, max_fields=1) as form:
        return Done(done="rescore", count=await lane_of(request).run(user.id, again, form))


@router.post(
    "/challenges/{slug}/baselines",
    status_code=201,
    openapi_extra=BASELINE_FORM,
    response_model=SubmissionOut,
    responses={status: {"model": Refused} for status in (409, 413, 422)},
)
async def baseline(
    request: Request, challenge: Managed, user: ApiOrganizer, database: DatabaseOf, storage: StorageOf
) -> SubmissionOut | JSONResponse:
    """Puts a run of the organizers on the board. Mistakes are listed with their lines (422)."""
    bound_upload(request, challenge)

    def add(form: FormData) -> SubmissionOut | JSONResponse:
        run = file_of(form, "run")
        if run is None:
            raise RefusalError("Send the run as a file in the field 'run'.")
        name, method = text_of(form, "title"), text_of(form, "method")
        try:
            with received(run.file, run.filename or "run.csv", limit_mb=challenge.max_upload_mb) as upload:
                added = submissions.add_baseline(database, storage, user, challenge, name, upload, method)
        except RunRefusedError as error:
            return JSONResponse({"error": str(error), "problems": error.problems}, status_code=error.status)
        with database.read() as session:
            return submission_out(session, user, challenge, session.get_one(Submission, added.id))

    async with request.form(max_files=1, max_fields=10) as form:
        return await lane_of(request).run(user.id, add, form)


@router.post("/challenges/{slug}/data", status_code=201, openapi_extra=FILE_FORM, response_model=FileOut)
async def add_file(
    request: Request, challenge: Managed, user: ApiOrganizer, database: DatabaseOf, storage: StorageOf
) -> FileOut:
    """Offers a file for download, or a newer version of it."""

    def add(form: FormData) -> FileOut:
        file = file_of(form, "file")
        if file is None:
            raise RefusalError("Send the file in the field 'file'.")
        with received(file.file, file.filename or "file", limit_mb=request.app.state.upload_mb) as upload:
            about = text_of(form, "about")
            added = offered_files.add_data_file(database, storage, user, challenge, upload.path, upload.filename, about)
        return FileOut.of(added)

    async with request.form(max_files=1, max_fields=10) as form:
        return await lane_of(request).run(user.id, add, form)


@router.delete("/challenges/{slug}/data/{file_id}")
def delete_file(
    challenge: Managed, file_id: RowId, user: ApiOrganizer, database: DatabaseOf, storage: StorageOf
) -> Done:
    """Takes a file back."""
    organizing.delete_data_file(database, storage, user, challenge, file_id)
    return Done(done="deleted")


@router.post("/challenges/{slug}/organizers", status_code=201)
def add_organizer(
    challenge: Managed, user: ApiOrganizer, database: DatabaseOf, who: Annotated[str, Form()]
) -> list[OrganizerOut]:
    """Lets somebody else, by name or address, run the challenge as well."""
    organizing.add_organizer(database, user, challenge, who)
    with database.read() as session:
        return organizers_out(session, challenge)


@router.delete("/challenges/{slug}/organizers/{user_id}")
def remove_organizer(challenge: Managed, user_id: RowId, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Takes the right to run the challenge back; its owner keeps it."""
    organizing.remove_organizer(database, user, challenge, user_id)
    return Done(done="removed")


@router.get("/challenges/{slug}/queue")
def waiting(challenge: Managed, database: DatabaseOf) -> list[QueuedOut]:
    """What is being scored, what waits, and what has failed and why."""
    with database.read() as session:
        runs = queue.listed(session, challenge)
        return [QueuedOut.of(run, queue.position(session, run)) for run in runs]


@router.post("/challenges/{slug}/submissions/{submission_id}/retry")
def retry(challenge: Managed, submission_id: RowId, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Scores one run again."""
    return Done(done="retry", count=queue.rescore(database, user, challenge, only=submission_id))


@router.post("/challenges/{slug}/submissions/{submission_id}/refund")
def refund(challenge: Managed, submission_id: RowId, user: ApiOrganizer, database: DatabaseOf) -> Done:
    """Gives a team back what a run cost it."""
    submissions.refund(database, user, challenge, submission_id)
    return Done(done="refunded")


@router.get("/challenges/{slug}/export")
def export(challenge: Managed, database: DatabaseOf) -> list[dict[str, Any]]:
    """Every submission with all its scores."""
    with database.read() as session:
        return exports.export_rows(session, challenge)


@router.get("/challenges/{slug}/audit")
def audit_log(
    challenge: Managed, database: DatabaseOf, last: Annotated[int, Query(ge=1, le=10_000)] = audit.SHOWN
) -> list[EventOut]:
    """Who did what, newest first."""
    with database.read() as session:
        events = audit.events(session, challenge, limit=last)
        return [EventOut.model_validate(event, from_attributes=True) for event in events]


def _seen(database: DatabaseOf, challenge: Challenge) -> ManagedOut:
    with database.read() as session:
        return ManagedOut.seen(session, session.get_one(Challenge, challenge.id))
