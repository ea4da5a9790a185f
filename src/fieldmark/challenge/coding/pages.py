"""Programs on pages: trying them out, and what organizers decide about them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from fastapi import APIRouter, Depends
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.challenge.coding import program_queue, tasks, trying_out
from fieldmark.challenge.coding.hosts import hosts, why_not
from fieldmark.challenge.coding.tasks import CodeRules
from fieldmark.challenge.coding.visible_output import visible_output
from fieldmark.challenge.people import rights
from fieldmark.challenge.people.rights import open_challenge, team_of
from fieldmark.challenge.records.schema import Challenge, User, utc_now
from fieldmark.challenge.records.storage import Storage
from fieldmark.challenge.refusals import NotThereError, RefusalError
from fieldmark.challenge.running.phases import phase_at
from fieldmark.challenge.site.context import AdmittedOf, FormOf, UserOf, go, render, require_manager
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId, StorageOf
from fieldmark.challenge.site.forms import file_of, number_of, text_of
from fieldmark.challenge.site.lanes import lane_of
from fieldmark.challenge.site.security import POLICY_WITH_SCRIPT
from fieldmark.challenge.submitting import part_sizes
from fieldmark.challenge.submitting.uploads import received

router = APIRouter()
NUMBERS = tuple(field.name for field in fields(CodeRules) if field.name != "show_output")


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
            program = trying_out.try_out(database, storage, user, challenge, upload, arrived=arrived)
    except NotThereError:
        raise
    except RefusalError as error:
        return _debug(request, slug, user, database, error=error)
    return go(f"/c/{slug}/debug/{program.id}")


@router.get("/c/{slug}/debug/{program_id}")
def debug_run(request: Request, slug: str, program_id: RowId, user: UserOf, database: DatabaseOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        program = trying_out.open_debug_run(session, user, challenge, program_id)
        manages = rights.manages(session, user, challenge)
        page = render(
            request,
            "debug_run.html",
            c=challenge,
            p=program,
            seen=visible_output(program, tasks.task_of(session, challenge.id), manages=manages),
            team=team_of(session, user, challenge),
            manages=manages,
            position=program_queue.position(session, program),
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
        task = tasks.asks_for_code(session, phase_at(challenge.phases, utc_now()))
        page = render(
            request,
            "debug.html",
            error.status if error else 200,
            c=challenge,
            team=team,
            manages=rights.manages(session, user, challenge),
            task=task,
            why_not=why_not(session) if task else "",
            programs=trying_out.debug_runs(session, team) if team else [],
            error=str(error) if error else "",
            parts_from=part_sizes.IN_PARTS_FROM,
        )
    page.headers["content-security-policy"] = POLICY_WITH_SCRIPT  # large files are sent in parts
    return page


@router.get("/c/{slug}/organize/code", dependencies=[Depends(require_manager)])
def code_page(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return _code(request, slug, user, database)


@router.post("/c/{slug}/organize/code", dependencies=[Depends(require_manager)])
def set_code(
    request: Request, slug: str, user: UserOf, database: DatabaseOf, storage: StorageOf, form: FormOf
) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        task = tasks.task_of(session, challenge.id)
    try:
        numbers: dict[str, Any] = {name: number_of(form, name, name.replace("_", " ")) for name in NUMBERS}
        rules = replace(tasks.rules_of(task) if task else CodeRules(), **numbers)
        rules = replace(rules, show_output=text_of(form, "show_output") == "yes")
        chosen = [int(one) for one in form.getlist("phases") if isinstance(one, str) and one.isdigit()]
        most = request.app.state.upload_mb
        tasks.set_code(database, storage, user, challenge, rules, chosen, most_archive_mb=most)
    except NotThereError:
        raise
    except RefusalError as error:
        return _code(request, slug, user, database, error=error)
    return go(f"/c/{slug}/organize/code", "saved")


def _code(
    request: Request, slug: str, user: User, database: DatabaseOf, *, error: RefusalError | None = None
) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        task = tasks.task_of(session, challenge.id)
        return render(
            request,
            "organize_code.html",
            error.status if error else 200,
            c=challenge,
            team=team_of(session, user, challenge),
            manages=True,
            task=task,
            rules=tasks.rules_of(task) if task else CodeRules(),
            phases=challenge.phases,
            asking=tasks.code_phases(session, challenge),
            hosts=hosts(session),
            why_not=why_not(session),
            error=str(error) if error else "",
        )
