"""Whom a token belongs to."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from fieldmark_challenge.records.schema import User
from fieldmark_challenge.web.callers import Reader
from fieldmark_challenge.web.replies import Refused

router = APIRouter(responses={404: {"model": Refused}})


class MeOut(BaseModel):
    """Who calls."""

    name: str
    role: str

    @classmethod
    def of(cls, user: User) -> MeOut:
        return cls(name=user.name, role=user.role)


@router.get("/me", tags=["account"])
def me(user: Reader) -> MeOut:
    """Who the token belongs to."""
    return MeOut.of(user)
