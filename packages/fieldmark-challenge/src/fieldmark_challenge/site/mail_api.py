"""The notices of the caller, and what became of mails, for admins."""

from __future__ import annotations

import datetime as dt
from typing import Annotated

from fastapi import APIRouter, Form
from pydantic import BaseModel

from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.mail import outbox, topics
from fieldmark_challenge.mail.messages import TOPICS
from fieldmark_challenge.records.schema import User
from fieldmark_challenge.web.callers import ApiOrganizer, Reader, Submitter
from fieldmark_challenge.web.dependencies import DatabaseOf
from fieldmark_challenge.web.replies import Refused

router = APIRouter(responses={404: {"model": Refused}})


class NoticesOut(BaseModel):
    """Which notices somebody gets: those wanted, once the address is verified, where the platform sends mail."""

    mail: bool
    email_verified: bool
    wanted: list[str]
    topics: dict[str, str]

    @classmethod
    def of(cls, database: DatabaseOf, user: User) -> NoticesOut:
        with database.read() as session:
            muted = topics.muted_by(session, user.id)
            return cls(
                mail=outbox.on_since(session) is not None,
                email_verified=session.get_one(User, user.id).email_verified_at is not None,
                wanted=[topic for topic in TOPICS if topic not in muted],
                topics=TOPICS,
            )


class OutboxOut(BaseModel):
    """How many mails wait, were sent, and were given up in the last two weeks; since when mail is on."""

    since: dt.datetime | None
    waiting: int
    sent: int
    dropped: int


@router.get("/me/notices", tags=["account"])
def notices(user: Reader, database: DatabaseOf) -> NoticesOut:
    """The notices you get."""
    return NoticesOut.of(database, user)


@router.post("/me/notices", tags=["account"], responses={400: {"model": Refused}})
def choose_notices(
    user: Submitter, database: DatabaseOf, wanted: Annotated[list[str] | None, Form(max_length=20)] = None
) -> NoticesOut:
    """Sets the notices you want, and turns the others off."""
    topics.set_wanted(database, user, set(wanted or ()))
    return NoticesOut.of(database, user)


@router.get("/mail", tags=["platform"])
def mail(user: ApiOrganizer, database: DatabaseOf) -> OutboxOut:
    """The state of the outbox, for admins."""
    if user.role != "admin":
        raise NotThereError
    with database.read() as session:
        return OutboxOut(since=outbox.on_since(session), **outbox.counts(session))
