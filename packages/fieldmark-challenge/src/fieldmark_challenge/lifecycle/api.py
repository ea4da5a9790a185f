"""Running a challenge from a program: making one, and looking at it; what changes it are actions (`actions.api`).

Whether somebody runs the challenge is decided before anything they sent is looked at, so that a mistake in a form tells
nobody that there is a challenge.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from starlette.datastructures import FormData
from starlette.requests import Request

from fieldmark.errors import FieldmarkError
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.challenges import admissions, exports
from fieldmark_challenge.lifecycle import standings
from fieldmark_challenge.lifecycle.creation_form import create_from, usual_values
from fieldmark_challenge.lifecycle.replies import (
    AdmissionOut,
    EntryCodeOut,
    EventOut,
    ManagedOut,
    QueuedOut,
    TeamOut,
)
from fieldmark_challenge.records import audit
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions.api import TEXT, YES_OR_NO, described_form
from fieldmark_challenge.web.callers import ApiOrganizer, Managed
from fieldmark_challenge.web.dependencies import DatabaseOf, StorageOf
from fieldmark_challenge.web.forms import plain_sentence
from fieldmark_challenge.web.lanes import lane_of
from fieldmark_challenge.web.replies import Refused

router = APIRouter(tags=["organizing"], responses={404: {"model": Refused}})
CSV = {"type": "string", "format": "binary", "description": "a table as CSV"}
NEW_FORM = described_form(
    ["slug", "benchmark"],
    **dict.fromkeys(("slug", "benchmark", "title", "summary", "description", "rules"), TEXT),
    **dict.fromkeys(
        ("public_share", "seed", "starts", "ends", "daily", "total", "access", "stage_of", "stage_entry", "stage_top"),
        TEXT,
    ),
    **dict.fromkeys(("needs_run_without_external", "ladder", "published", "without_data"), YES_OR_NO),
    metric=TEXT | {"description": "the primary metric, if not the one that the benchmark names"},
    data=TEXT | {"description": "a folder on the server that holds the release; for admins, in place of the truth"},
    **dict.fromkeys(("truth", "classes", "media"), CSV),
)


def api_maker(user: ApiOrganizer) -> User:
    """Somebody who may make challenges."""
    if user.role not in ("organizer", "admin"):
        raise NotThereError
    return user


@router.post("/challenges", status_code=201, openapi_extra=NEW_FORM, response_model=ManagedOut)
async def create(
    request: Request, user: Annotated[User, Depends(api_maker)], database: DatabaseOf, storage: StorageOf
) -> ManagedOut:
    """Create a challenge from the truth as small tables; a draft unless `published` is yes.

    It is published without data for participants, or a link to them, only if `without_data` is yes.
    """

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
    """The challenge as its organizers see it: settings, phases, baselines, files, and the state of its runs."""
    return _seen(database, challenge)


@router.get("/challenges/{slug}/queue")
def waiting(challenge: Managed, database: DatabaseOf) -> list[QueuedOut]:
    """Runs being scored, queued and failed, with reasons."""
    with database.read() as session:
        runs = queue.listed(session, challenge)
        return [QueuedOut.of(run, queue.position(session, run)) for run in runs]


@router.get("/challenges/{slug}/export")
def export(challenge: Managed, database: DatabaseOf) -> list[dict[str, Any]]:
    """Every submission with all its scores."""
    with database.read() as session:
        return exports.export_rows(session, challenge)


@router.get("/challenges/{slug}/audit")
def audit_log(
    challenge: Managed, database: DatabaseOf, last: Annotated[int, Query(ge=1, le=10_000)] = audit.SHOWN
) -> list[EventOut]:
    """The audit log, newest first."""
    with database.read() as session:
        events = audit.events(session, challenge, limit=last)
        return [EventOut.model_validate(event, from_attributes=True) for event in events]


@router.get("/challenges/{slug}/teams")
def teams(challenge: Managed, database: DatabaseOf) -> list[TeamOut]:
    """The teams: members, how many runs, and whether they are ranked."""
    with database.read() as session:
        return [TeamOut.of(team, runs) for team, runs in standings.teams_of(session, challenge)]


@router.get("/challenges/{slug}/admissions")
def who_may(challenge: Managed, database: DatabaseOf) -> list[AdmissionOut]:
    """Requests to take part, admissions and rejections."""
    with database.read() as session:
        return [AdmissionOut.of(row) for row in admissions.admissions_of(session, challenge)]


@router.get("/challenges/{slug}/codes")
def codes(challenge: Managed, database: DatabaseOf) -> list[EntryCodeOut]:
    """The invitation codes, newest first."""
    with database.read() as session:
        rows = admissions.codes_of(session, challenge)
        return [EntryCodeOut.model_validate(row, from_attributes=True) for row in rows]


def _seen(database: DatabaseOf, challenge: Challenge) -> ManagedOut:
    with database.read() as session:
        return ManagedOut.seen(session, session.get_one(Challenge, challenge.id))
