"""The identities that open the account of the caller."""

from __future__ import annotations

import datetime as dt

from fastapi import APIRouter
from pydantic import BaseModel

from fieldmark_challenge.openid.identities import identities_of
from fieldmark_challenge.web.callers import Reader
from fieldmark_challenge.web.dependencies import DatabaseOf
from fieldmark_challenge.web.replies import Refused

router = APIRouter(responses={404: {"model": Refused}})


class IdentityOut(BaseModel):
    """Somebody at a provider who opens the account."""

    id: int
    issuer: str
    shown: str
    created_at: dt.datetime
    used_at: dt.datetime | None


@router.get("/me/identities", tags=["account"])
def identities(user: Reader, database: DatabaseOf) -> list[IdentityOut]:
    """The identities at other sites through which you can sign in."""
    with database.read() as session:
        return [
            IdentityOut(id=one.id, issuer=one.issuer, shown=one.shown, created_at=one.created_at, used_at=one.used_at)
            for one in identities_of(session, user.id)
        ]
