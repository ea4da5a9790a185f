"""Who calls the API: the owner of a token, within what the token allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request

from fieldmark.web.refusals import NotThereError
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.accounts import token_user
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.web.dependencies import get_database

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
