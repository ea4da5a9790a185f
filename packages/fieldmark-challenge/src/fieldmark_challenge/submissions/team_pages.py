"""Changes of a team: its captain, withdrawing, and merging with another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import FormOf, go
from fieldmark.web.refusals import NotThereError, RefusalError
from fieldmark_challenge.challenges import team_merges
from fieldmark_challenge.people import rates, teams
from fieldmark_challenge.people.rights import open_challenge, team_of
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.submissions.challenge_pages import show_team
from fieldmark_challenge.web.context import UserOf
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId
from fieldmark_challenge.web.forms import number_of, text_of

router = APIRouter(prefix="/c/{slug}/team")


@router.post("/captain")
def captain(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    def act(challenge: Challenge) -> None:
        teams.hand_over(database, user, challenge, number_of(form, "user_id", "The member"))

    return _do(request, slug, user, database, act, "handed-over")


@router.post("/withdraw")
def withdraw(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    back = text_of(form, "back") == "yes"

    def act(challenge: Challenge) -> None:
        teams.withdraw(database, user, challenge, back=back)

    return _do(request, slug, user, database, act, "returned" if back else "withdrawn")


@router.post("/merge")
def merge(request: Request, slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    def act(challenge: Challenge) -> None:
        rates.count(database, rates.JOIN, str(user.id))
        team_merges.offer_merge(database, user, challenge, text_of(form, "into"))

    return _do(request, slug, user, database, act, "merge-asked")


@router.post("/merges/{offer_id}")
def settle(request: Request, slug: str, offer_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    agreed = text_of(form, "agree") == "yes"

    def act(challenge: Challenge) -> None:
        team_merges.settle_merge(database, user, challenge, offer_id, accept=agreed)

    return _do(request, slug, user, database, act, "merged" if agreed else "merge-declined")


def _do(
    request: Request, slug: str, user: User, database: DatabaseOf, act: Callable[[Challenge], Any], done: str
) -> Response:
    """Does what a form asks, or shows the team again with what is wrong with it."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
        if team_of(session, user, challenge) is None:
            raise NotThereError
    try:
        act(challenge)
    except NotThereError:
        raise
    except RefusalError as error:
        return show_team(request, slug, user, database, status=error.status, error=str(error))
    return go(f"/c/{slug}/team", done)
