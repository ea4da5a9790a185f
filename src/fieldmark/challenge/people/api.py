"""Who calls the API: the owner of a token, within what the token allows; and the route that says who that is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fieldmark.challenge.people import rates
from fieldmark.challenge.people.accounts import token_user
from fieldmark.challenge.people.rights import open_challenge
from fieldmark.challenge.records.schema import Challenge, User
from fieldmark.challenge.refusals import NotThereError
from fieldmark.challenge.site.dependencies import get_database
from fieldmark.challenge.site.replies import Refused

router = APIRouter(responses={404: {"model": Refused}})
bearer = HTTPBearer(auto_error=False, description="A token from the account page")
Credentials = Annotated[HTTPAuthorizationCredentials | None, Security(bearer)]


def api_user(scope: str) -> Callable[..., User]:
    """The dependency that yields the caller, who needs a token with a scope.

    A call without a valid token is answered 401, whatever it asks for; a token without the scope 404, like all else
    that somebody may not have.
    """

    def caller(request: Request, credentials: Credentials) -> User:
        database = get_database(request)
        owner = token_user(database, credentials.credentials) if credentials else None
        if owner is None:
            headers = {"www-authenticate": "Bearer"}
            raise HTTPException(401, "A valid token is needed: Authorization: Bearer fm_...", headers=headers)
        user, scopes = owner
        rates.count(database, rates.CALL, str(user.id))
        if scope not in scopes:
            raise NotThereError
        user.may_organize = "organize" in scopes
        return user

    return caller


Reader = Annotated[User, Depends(api_user("read"))]
Submitter = Annotated[User, Depends(api_user("submit"))]
ApiOrganizer = Annotated[User, Depends(api_user("organize"))]


def managed(request: Request, slug: str, user: ApiOrganizer) -> Challenge:
    """The challenge of the address for somebody who runs it: asked before anything else they sent is looked at."""
    with get_database(request).read() as session:
        challenge = open_challenge(session, user, slug, manage=True)
        challenge.phases  # noqa: B018  (loaded while there is a session)
        return challenge


Managed = Annotated[Challenge, Depends(managed)]


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
