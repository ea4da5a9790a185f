"""Signing in through a provider, and the identities of one's own account.

The way there is a link and not a form: browsers do not let a form lead to another site. Linking an identity to one's
account begins with a form all the same, on one's own account page, so that no other site can begin it; the page after
it has the link.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from fieldmark.web.pages import FormOf, client_of, get_guard, go, render
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError
from fieldmark.web.security import new_secret, safe_next
from fieldmark_challenge.challenges import registration
from fieldmark_challenge.mail import addresses
from fieldmark_challenge.openid import attempts, identities
from fieldmark_challenge.openid.attempts import FailedSignOnError
from fieldmark_challenge.openid.offer import SignOn, offered
from fieldmark_challenge.openid.provider_client import Asker, BadTokenError, Identity, ProviderError
from fieldmark_challenge.people import accounts, rates
from fieldmark_challenge.people.classrooms import count_place
from fieldmark_challenge.records.schema import User
from fieldmark_challenge.site.account_pages import account_page
from fieldmark_challenge.site.entrance_pages import signed_in
from fieldmark_challenge.web.context import UserOf, ViewerOf
from fieldmark_challenge.web.dependencies import DatabaseOf, RowId
from fieldmark_challenge.web.forms import text_of, texts_of

log = logging.getLogger(__name__)
router = APIRouter()
COOKIE = "fieldmark_sign_on"
COOKIE_S = 900


@router.get("/sign-on/{provider}")
async def begin(request: Request, provider: str, database: DatabaseOf) -> Response:
    sign_on, asker = _asker(request, provider)
    target, browser = safe_next(request.query_params.get("next")), _browser(request)

    def act() -> str:
        count_place(database, rates.SIGN_IN_PLACE, client_of(request))
        begun = attempts.begin(database, provider, browser, target)
        return asker.address(state=begun.state, nonce=begun.nonce, challenge=begun.challenge)

    address = await _asked(sign_on, provider, act)
    return _with_cookie(request, RedirectResponse(address, status_code=303), browser)


@router.post("/account/identities/{provider}")
async def begin_linking(request: Request, provider: str, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    sign_on, asker = _asker(request, provider)
    browser = _browser(request)

    def act() -> str:
        count_place(database, rates.SIGN_IN_PLACE, client_of(request))
        begun = attempts.begin(database, provider, browser, "/account", user)
        return asker.address(state=begun.state, nonce=begun.nonce, challenge=begun.challenge)

    address = await _asked(sign_on, provider, act)
    page = render(request, "sign_on_go.html", provider=asker.provider, address=address)
    return _with_cookie(request, page, browser)


@router.get("/sign-on/{provider}/callback")
async def come_back(request: Request, provider: str, database: DatabaseOf, viewer: ViewerOf) -> Response:
    sign_on, asker = _asker(request, provider)
    given = {name: request.query_params.get(name, "") for name in ("state", "code", "iss", "error")}
    browser = request.cookies.get(COOKIE, "")

    def act() -> tuple[Identity, int | None, str]:
        count_place(database, rates.SIGN_IN_PLACE, client_of(request))
        begun, user_id, target = attempts.end(database, provider, browser, given["state"])
        if given["error"] or not given["code"]:
            raise ProviderError("it sends people back without a code")
        if given["iss"] and given["iss"] != asker.provider.issuer:
            raise ProviderError("the answer is of another issuer")
        return asker.identity(given["code"], nonce=begun.nonce, verifier=begun.verifier), user_id, target

    identity, user_id, target = await _asked(sign_on, provider, act)
    if user_id is not None:
        return await run_in_threadpool(_linked, request, database, viewer.user, user_id, identity)
    return await run_in_threadpool(_entered, request, database, identity, browser, target)


def _linked(request: Request, database: DatabaseOf, user: User | None, user_id: int, identity: Identity) -> Response:
    if user is None or user.id != user_id:  # another account is signed in by now
        raise FailedSignOnError
    try:
        identities.link(database, user, identity)
    except ConflictError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "linked")


def _entered(request: Request, database: DatabaseOf, identity: Identity, browser: str, target: str) -> Response:
    user = identities.account_of(database, identity)
    if user is not None:
        return signed_in(request, accounts.open_session(database, user), target)
    values = {"name": identity.name, "email": identity.email}
    return _finish_page(request, attempts.seal(database, identity, browser, target), identity, values)


@router.post("/sign-on/finish")
def finish(request: Request, database: DatabaseOf, form: FormOf) -> Response:
    sealed, browser = text_of(form, "sealed"), request.cookies.get(COOKIE, "")
    identity, target = attempts.unseal(database, sealed, browser)
    values = texts_of(form, "name", "email")
    if identity.email_verified:  # not to be changed here: it would no longer be verified
        values["email"] = identity.email
    try:
        count_place(database, rates.REGISTER, client_of(request))
        registration.need_open(database, target)
        user = identities.register(database, identity, values["name"], values["email"])
    except RefusalError as error:
        return _finish_page(request, sealed, identity, values, status=error.status, error=str(error))
    if user.email_verified_at is None:
        with suppress(RefusalError):  # no mail, or too many to that address
            addresses.ask_to_verify(database, user)
    return signed_in(request, accounts.open_session(database, user), target, "registered")


@router.post("/account/identities/{identity_id}/remove")
def remove(request: Request, identity_id: RowId, user: UserOf, database: DatabaseOf, form: FormOf) -> Response:
    try:
        identities.unlink(database, user, identity_id)
    except ConflictError as error:
        return account_page(request, user, database, status=error.status, error=str(error))
    return go("/account", "unlinked")


def _finish_page(
    request: Request, sealed: str, identity: Identity, values: dict[str, str], *, status: int = 200, error: str = ""
) -> Response:
    known = {provider.issuer: provider.title for provider in offered(request)}
    through = known.get(identity.issuer, identity.issuer)
    return render(
        request, "sign_on_finish.html", status, sealed=sealed, identity=identity, values=values, through=through,
        error=error,
    )  # fmt: skip


def _asker(request: Request, provider: str) -> tuple[SignOn, Asker]:
    sign_on: SignOn | None = request.app.state.sign_on
    if sign_on is None or provider not in sign_on.askers:
        raise NotThereError
    return sign_on, sign_on.askers[provider]


async def _asked(sign_on: SignOn, provider: str, act: Callable[[], Any]) -> Any:
    """Does what may wait for a provider, in a lane of its own; what goes wrong there is said in one sentence."""
    try:
        return await sign_on.lane.run(object(), act)  # nobody yet: each is somebody else
    except (ProviderError, BadTokenError) as error:
        log.warning("signing in through %s failed: %s", provider, error)
        raise FailedSignOnError from error


def _browser(request: Request) -> str:
    return request.cookies.get(COOKIE) or new_secret()


def _with_cookie(request: Request, response: Response, browser: str) -> Response:
    get_guard(request).set_cookie(response, COOKIE, browser, max_age_s=COOKIE_S)
    return response
