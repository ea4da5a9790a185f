"""Who takes part in a challenge, as those who run it see and decide it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Depends
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import render
from fieldmark_challenge.challenges import admissions, stages
from fieldmark_challenge.lifecycle import standings
from fieldmark_challenge.people.rights import open_challenge, team_of
from fieldmark_challenge.records.participation import LaterStage
from fieldmark_challenge.records.schema import User
from fieldmark_challenge.web.context import UserOf, require_manager
from fieldmark_challenge.web.dependencies import DatabaseOf

router = APIRouter(prefix="/c/{slug}/organize", dependencies=[Depends(require_manager)])


@router.get("/people")
def people(request: Request, slug: str, user: UserOf, database: DatabaseOf) -> Response:
    return people_page(request, slug, user, database)


def people_page(
    request: Request,
    slug: str,
    user: User,
    database: DatabaseOf,
    *,
    status: int = 200,
    error: str = "",
    problems: Sequence[dict[str, Any]] = (),
    sent: Mapping[str, str] | None = None,
    **once: Any,
) -> Response:
    """The page of who takes part, also with what is wrong with a form, or with what is shown this once."""
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
            **{"code": "", "link": "", "made": [], "table": (sent or {}).get("table", "")} | once,
        )
