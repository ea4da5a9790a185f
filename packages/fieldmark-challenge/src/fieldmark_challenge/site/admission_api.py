"""Entering a challenge that is not open to everybody, for programs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form

from fieldmark_challenge.challenges import admissions
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.site import own_data
from fieldmark_challenge.web.callers import Reader, Submitter
from fieldmark_challenge.web.dependencies import DatabaseOf
from fieldmark_challenge.web.replies import Done, Refused

router = APIRouter(tags=["challenges"], responses={status: {"model": Refused} for status in (400, 404, 409, 429)})


@router.post("/enter")
def enter(user: Submitter, database: DatabaseOf, code: Annotated[str, Form(max_length=64)]) -> Done:
    """Enters the challenge of a code; `done` names it."""
    rates.count(database, rates.JOIN, str(user.id))
    return Done(done=admissions.use_code(database, user, code).slug)


@router.get("/me/export", tags=["account"])
def export(user: Reader, database: DatabaseOf) -> dict[str, Any]:
    """Everything the platform keeps about the owner of the token: account, teams, runs, and what they did."""
    rates.count(database, rates.EXPORT, str(user.id))
    with database.read() as session:
        return own_data.own_data(session, user)


@router.post("/challenges/{slug}/ask")
def ask(slug: str, user: Submitter, database: DatabaseOf, note: Annotated[str, Form(max_length=500)] = "") -> Done:
    """Asks to take part where the organizers decide about each person."""
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    admissions.ask(database, user, challenge, note)
    return Done(done="asked")
