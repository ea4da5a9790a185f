"""The way in: the list of challenges, registering, signing in and out, setting a new password."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter
from sqlalchemy import func, select
from starlette.requests import Request
from starlette.responses import Response

from fieldmark.web.pages import FormOf, client_of, get_guard, go, render
from fieldmark.web.refusals import RefusalError, TooOftenError
from fieldmark.web.security import SESSION_COOKIE, safe_next
from fieldmark_challenge.challenges import registration
from fieldmark_challenge.challenges.phases import phase_at
from fieldmark_challenge.mail import addresses
from fieldmark_challenge.openid.offer import offered
from fieldmark_challenge.people import accounts, rates, rights
from fieldmark_challenge.people.classrooms import count_place
from fieldmark_challenge.records.schema import Challenge, Phase, Submission, Team, utc_now
from fieldmark_challenge.web.context import ViewerOf
from fieldmark_challenge.web.dependencies import DatabaseOf
from fieldmark_challenge.web.forms import text_of, texts_of

log = logging.getLogger(__name__)
router = APIRouter()


@dataclass(frozen=True)
class ListedChallenge:
    """A challenge in the list."""

    challenge: Challenge
    phase: Phase | None
    teams: int
    submissions: int
    mine: bool


@router.get("/")
def home(request: Request, database: DatabaseOf, viewer: ViewerOf) -> Response:
    with database.read() as session:
        cards = []
        for challenge in rights.visible_challenges(session, viewer.user):
            here = (Team.challenge_id == challenge.id, Team.kind == "participants")
            teams = select(func.count()).where(*here, Team.standing.in_(rights.COUNTED))
            runs = select(func.count()).where(Submission.challenge_id == challenge.id, Submission.state == "scored")
            cards.append(
                ListedChallenge(
                    challenge=challenge,
                    phase=phase_at(challenge.phases, utc_now()),
                    teams=session.execute(teams).scalar_one(),
                    submissions=session.execute(runs).scalar_one(),
                    mine=rights.team_of(session, viewer.user, challenge) is not None,
                )
            )
        return render(request, "home.html", challenges=cards)


@router.get("/register")
def register_page(request: Request, database: DatabaseOf) -> Response:
    target = safe_next(request.query_params.get("next"))
    return _register(request, database, target)


@router.post("/register")
def register(request: Request, database: DatabaseOf, form: FormOf) -> Response:
    target = safe_next(text_of(form, "next"))
    try:
        count_place(database, rates.REGISTER, client_of(request))
        password = text_of(form, "password")
        registration.need_open(database, target, text_of(form, "code"))
        made = accounts.register(database, text_of(form, "name"), text_of(form, "email"), password)
        with suppress(RefusalError):  # no mail, or too many to that address
            addresses.ask_to_verify(database, made)
        _, secret = accounts.sign_in(database, text_of(form, "email"), password)
    except RefusalError as error:
        values = texts_of(form, "name", "email")
        return _register(request, database, target, error.status, error=str(error), values=values)
    return signed_in(request, secret, target, "registered")


def _register(request: Request, database: DatabaseOf, target: str, status: int = 200, /, **context: Any) -> Response:
    with database.read() as session:
        closed = registration.is_closed(session)
    shown = {"error": "", "values": {"name": "", "email": ""}, "next": target, "closed": closed} | context
    return render(request, "register.html", status, **shown)


@router.get("/login")
def login_page(request: Request) -> Response:
    target = safe_next(request.query_params.get("next"))
    return render(request, "login.html", error="", values={"who": ""}, next=target, providers=offered(request))


@router.post("/login")
def login(request: Request, database: DatabaseOf, form: FormOf) -> Response:
    who, target = text_of(form, "who"), safe_next(text_of(form, "next"))
    try:
        count_place(database, rates.SIGN_IN_PLACE, client_of(request))
        rates.count(database, rates.SIGN_IN, f"{client_of(request)} {' '.join(who.split()).casefold()}")
        _, secret = accounts.sign_in(database, who, text_of(form, "password"))
    except RefusalError as error:
        return render(
            request,
            "login.html",
            error.status,
            error=str(error),
            values={"who": who},
            next=target,
            providers=offered(request),
        )
    return signed_in(request, secret, target)


@router.post("/logout")
def logout(request: Request, database: DatabaseOf, form: FormOf) -> Response:
    if secret := request.cookies.get(SESSION_COOKIE):
        accounts.sign_out(database, secret)
    response = go("/")
    response.delete_cookie(SESSION_COOKIE, path="/")
    return response


@router.get("/reset")
def reset_request_page(request: Request) -> Response:
    return _reset_request(request, values={"who": ""})


@router.post("/reset")
def reset_request(request: Request, database: DatabaseOf, form: FormOf) -> Response:
    """Has a link mailed to the person. Without a mail server an admin hands it to them; the log never holds one."""
    who = text_of(form, "who")
    values = {"who": who}
    try:
        count_place(database, rates.RESET, client_of(request))
    except TooOftenError as error:
        return _reset_request(request, error.status, error=str(error), values=values)
    log.info("a new password was asked for")
    mailed = addresses.ask_to_reset(database, who)
    return _reset_request(request, sent=True, mail_on=mailed, values=values)


def _reset_request(request: Request, status: int = 200, /, **context: Any) -> Response:
    return render(request, "reset_request.html", status, **{"sent": False, "error": "", "mail_on": False} | context)


@router.get("/reset/{token}")
def reset_page(request: Request, token: str, database: DatabaseOf) -> Response:
    valid = accounts.reset_is_valid(database, token)
    return render(request, "reset.html", 200 if valid else 404, valid=valid, error="")


@router.post("/reset/{token}")
def reset(request: Request, token: str, database: DatabaseOf, form: FormOf) -> Response:
    try:
        accounts.use_reset(database, token, text_of(form, "password"))
    except RefusalError as error:
        return render(request, "reset.html", error.status, valid=error.status != 404, error=str(error))
    return go("/login", "password")


def signed_in(request: Request, secret: str, target: str, done: str | None = None) -> Response:
    """On to where somebody wanted to go, with the session that was opened for them."""
    response = go(target, done)
    life = int(accounts.SESSION_LIFE.total_seconds())
    get_guard(request).set_cookie(response, SESSION_COOKIE, secret, max_age_s=life)
    return response
