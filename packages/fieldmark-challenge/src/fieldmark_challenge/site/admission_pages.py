"""Entering a challenge that is not open to everybody: by a code, or by asking."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import FormOf, go, render
from fieldmark.web.refusals import RefusalError
from fieldmark_challenge.challenges import admissions
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.web.context import UserOf
from fieldmark_challenge.web.dependencies import DatabaseOf
from fieldmark_challenge.web.forms import text_of

router = APIRouter()


@router.get("/enter")
def enter_page(request: Request, user: UserOf) -> Response:
    return render(request, "enter.html", code="", error="")


@router.get("/enter/{code}")
def enter_link(request: Request, code: str, user: UserOf) -> Response:
    """The link of a code: it fills the form in; nobody enters by opening a page."""
    return render(request, "enter.html", code=code[:64], error="")


@router.post("/enter")
def enter(request: Request, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    code = text_of(form, "code")
    try:
        rates.count(database, rates.JOIN, str(user.id))
        challenge = admissions.use_code(database, user, code)
    except RefusalError as error:
        return render(request, "enter.html", error.status, code=code[:64], error=str(error))
    return go(f"/c/{challenge.slug}", "admitted")


@router.post("/c/{slug}/ask")
def ask(slug: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    admissions.ask(database, user, challenge, text_of(form, "note"))
    return go(f"/c/{slug}", "asked")
