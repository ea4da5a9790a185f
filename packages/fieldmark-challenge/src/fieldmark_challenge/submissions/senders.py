"""Who sends a file in parts: the owner of a token, or the script of the page that submits runs.

A browser sends its cookie along with whatever another site makes it ask for. So the script proves that it runs on one
of our pages, as every form does: with the token of the page, in a header.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from fieldmark.web.security import SESSION_COOKIE, FormGuard
from fieldmark_challenge.people import rates
from fieldmark_challenge.people.accounts import session_user
from fieldmark_challenge.records.schema import User
from fieldmark_challenge.web.callers import Credentials, api_user
from fieldmark_challenge.web.dependencies import get_database

FORM_TOKEN = "x-form-token"


def token_or_page(scope: str) -> Callable[..., User]:
    """The dependency that yields who sends: by a token with a scope, or from a page of ours."""
    by_token = api_user(scope)

    def sender(request: Request, credentials: Credentials) -> User:
        secret, proof = request.cookies.get(SESSION_COOKIE), request.headers.get(FORM_TOKEN)
        if credentials is not None or not secret or proof is None:
            return by_token(request, credentials)
        database = get_database(request)
        user = session_user(database, secret)
        if user is None:
            return by_token(request, None)
        guard: FormGuard = request.app.state.guard
        guard.check(request, proof)
        rates.count(database, rates.CALL, str(user.id))
        return user

    return sender


UploadReader = Annotated[User, Depends(token_or_page("read"))]
UploadSender = Annotated[User, Depends(token_or_page("submit"))]
