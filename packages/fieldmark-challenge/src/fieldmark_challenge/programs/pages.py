"""Programs on pages: trying them out, and what organizers decide about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Depends
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web import part_sizes
from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark.web.security import POLICY_WITH_SCRIPT
from fieldmark_challenge.challenges import code_tasks
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.challenges.visible_output import visible_output
from fieldmark_challenge.operations.lease_queue import PROGRAMS
from fieldmark_challenge.people import rights
from fieldmark_challenge.people.rights import open_challenge, team_of
from fieldmark_challenge.programs import debug_jobs, tasks
from fieldmark_challenge.programs.hosts import hosts, why_not
from fieldmark_challenge.programs.tasks import CodeRules
from fieldmark_challenge.records.schema import Challenge, User, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge.web.context import AdmittedOf, UserOf, require_manager
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId, StorageOf
from fieldmark_challenge.web.forms import file_of
from fieldmark_challenge.web.lanes import lane_of

router = APIRouter()


@router.get("/c/{slug}/debug")
def debug_page(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return _debug(request, slug, user, database)


@router.post("/c/{slug}/debug")
async def try_out(
    request: Request, slug: str, user: UserOf, challenge: AdmittedOf, database: DatabaseOf, storage: StorageOf,
    form: FormOf,
) -> Response:  # fmt: skip
    return await lane_of(request).run(user.id, _tried, request, slug, user, challenge, database, storage, form)


def _tried(
    request: Request, slug: str, user: User, challenge: Challenge, database: DatabaseOf, storage: Storage,
    form: FormData,
) -> Response:  # fmt: skip
    try:
        file = file_of(form, "run")
        if file is None:
            raise RefusalError("Choose an archive.")
        with received(file.file, file.filename or "program", limit_mb=request.state.upload_limit_mb) as upload:
            arrived = request.state.arrived
            program = debug_jobs.try_out(database, storage, user, challenge, upload, arrived=arrived)
    except NotThereError:
        raise
    except RefusalError as error:
        return _debug(request, slug, user, database, error=error)
    return go(f"/c/{slug}/debug/{program.id}")


@router.get("/c/{slug}/debug/{program_id}")
def debug_run(request: Request, slug: str, program_id: RowId, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        program = debug_jobs.open_debug_run(session, user, challenge, program_id)
        manages = rights.manages(session, user, challenge)
        page = render(
            request,
            "debug_run.html",
            c=challenge,
            p=program,
            seen=visible_output(program, code_tasks.task_of(session, challenge.id), manages=manages),
            team=team_of(session, user, challenge),
            manages=manages,
            position=PROGRAMS.position(session, program),
            live=program.state in ("queued", "running"),
        )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT  # it looks again by itself
    return page


def _debug(
    request: Request, slug: str, user: User, database: DatabaseOf, *, error: RefusalError | None = None
) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        team = team_of(session, user, challenge)
        task = code_tasks.asks_for_code(session, phase_at(challenge.phases, utc_now()))
        page = render(
            request,
            "debug.html",
            error.status if error else 200,
            c=challenge,
            team=team,
            manages=rights.manages(session, user, challenge),
            task=task,
            why_not=why_not(session) if task else "",
            programs=debug_jobs.debug_runs(session, team) if team else [],
            error=str(error) if error else "",
            parts_from=part_sizes.IN_PARTS_FROM,
        )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT  # large files are sent in parts
    return page


@router.get("/c/{slug}/organize/code", dependencies=[Depends(require_manager)])
def code(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return code_page(request, slug, user, database)


def code_page(
    request: Request,
    slug: str,
    user: User,
    database: DatabaseOf,
    *,
    status: int = 200,
    error: str = "",
    problems: Sequence[dict[str, Any]] = (),
    sent: Mapping[str, str] | None = None,
) -> Response:
    """What organizers decide about programs, also with what is wrong with a form that they sent."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        task = code_tasks.task_of(session, challenge.id)
        return render(
            request,
            "organize_code.html",
            status,
            c=challenge,
            team=team_of(session, user, challenge),
            manages=True,
            task=task,
            rules=tasks.rules_of(task) if task else CodeRules(),
            phases=challenge.phases,
            asking=code_tasks.code_phases(session, challenge),
            hosts=hosts(session),
            why_not=why_not(session),
            error=error,
        )
