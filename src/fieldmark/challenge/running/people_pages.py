"""Who takes part in a challenge, as those who run it see and decide it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.challenge.people import admissions, rates, rosters
from fieldmark.challenge.people.rights import open_challenge, team_of
from fieldmark.challenge.records.participation import LaterStage
from fieldmark.challenge.records.schema import Challenge, User
from fieldmark.challenge.refusals import NotThereError, RefusalError
from fieldmark.challenge.running import stages, standings
from fieldmark.challenge.site.context import FormOf, UserOf, go, render, require_manager
from fieldmark.challenge.site.dependencies import DatabaseOf, RowId
from fieldmark.challenge.site.forms import number_of, text_of
from fieldmark.challenge.site.links import address_of

router = APIRouter(prefix="/c/{slug}/organize", dependencies=[Depends(require_manager)])


@router.get("/people")
def people(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return _page(request, slug, user, database)


@router.post("/teams/{team_id}/standing")
def team_standing(
    request: Request, slug: str, team_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        wanted = (text_of(form, "standing"), text_of(form, "reason"))
        standings.set_team_standing(database, user, challenge, team_id, *wanted)

    return _do(request, slug, user, database, act, "standing")


@router.post("/submissions/{submission_id}/standing")
def run_standing(
    request: Request, slug: str, submission_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf
) -> Response:
    def act(challenge: Challenge) -> None:
        wanted = (text_of(form, "standing"), text_of(form, "reason"))
        standings.set_run_standing(database, user, challenge, submission_id, *wanted)

    return _do(request, slug, user, database, act, "standing")


@router.post("/advance")
def advance(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    return _do(request, slug, user, database, lambda c: stages.advance(database, user, c), "advanced")


@router.post("/admissions")
def admission(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    def act(challenge: Challenge) -> None:
        admit = text_of(form, "decision") != "refuse"
        admissions.decide(database, user, challenge, text_of(form, "who"), admit=admit)

    return _do(request, slug, user, database, act, "admission")


@router.post("/codes")
def make_code(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
    try:
        uses, days = (number_of(form, name, f"The {name}") for name in ("uses", "days"))
        code = admissions.make_code(database, user, challenge, uses=uses, days=days, note=text_of(form, "note"))
    except RefusalError as error:
        return _page(request, slug, user, database, status=error.status, error=str(error))
    return _page(request, slug, user, database, code=code, link=address_of(request, f"/enter/{code}"))


@router.post("/codes/{code_id}/revoke")
def revoke_code(slug: str, code_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
    admissions.revoke_code(database, user, challenge, code_id)
    return go(f"/c/{slug}/organize/people", "code-revoked")


@router.post("/accounts")
def make_accounts(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    table = text_of(form, "table")
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
    try:
        rates.count(database, rates.ROSTER, str(user.id))
        made = rosters.make_accounts(database, user, challenge, table)
    except RefusalError as error:
        return _page(request, slug, user, database, status=error.status, error=str(error), table=table)
    links = [(one, address_of(request, f"/reset/{one.secret}") if one.secret else "") for one in made]
    return _page(request, slug, user, database, made=links)


def _do(
    request: Request, slug: str, user: User, database: DatabaseOf, act: Callable[[Challenge], Any], done: str
) -> Response:
    """Does what a form asks, or shows the page again with what is wrong with it."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
    try:
        act(challenge)
    except NotThereError:
        raise
    except RefusalError as error:
        return _page(request, slug, user, database, status=error.status, error=str(error))
    return go(f"/c/{slug}/organize/people", done)


def _page(
    request: Request, slug: str, user: User, database: DatabaseOf, *, status: int = 200, error: str = "", **more: Any
) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        return render(
            request,
            "organize_people.html",
            status,
            c=challenge,
            manages=True,
            team=team_of(session, user, challenge),
            teams=standings.teams_of(session, challenge),
            admissions=admissions.admissions_of(session, challenge),
            codes=admissions.codes_of(session, challenge),
            stage=stages.in_words(later) if (later := session.get(LaterStage, challenge.id)) is not None else "",
            before=later.first if later is not None else None,
            error=error,
            **{"code": "", "link": "", "made": [], "table": ""} | more,
        )
