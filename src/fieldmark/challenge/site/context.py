"""What the pages share: who is looking, forms that were checked, and how a page is rendered."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Hashable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from jinja2 import Environment
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import Scope

from fieldmark.challenge.people.accounts import session_user
from fieldmark.challenge.people.rights import open_challenge
from fieldmark.challenge.records.schema import Challenge, User, utc_now
from fieldmark.challenge.refusals import NotThereError
from fieldmark.challenge.site.dependencies import admit_upload, bound_upload, get_database
from fieldmark.challenge.site.security import SESSION_COOKIE, FormGuard
from fieldmark.version import __version__

# What a page says after a form was taken; addresses carry the key only, so that nobody can put words into our mouth.
DONE = {
    "registered": "Welcome. Your account is made and you are signed in.",
    "password": "The new password is set; all other sessions and all tokens are ended.",
    "token-revoked": "The token is revoked.",
    "sessions": "All other sessions are ended.",
    "rules": "You accepted the rules.",
    "team": "The team is made.",
    "joined": "You are in the team.",
    "left": "You left the team.",
    "revoked": "The invitation is revoked.",
    "handed-in": "It is accepted, and waits for its turn.",
    "selected": "The choice is noted.",
    "created": "The challenge is made.",
    "created-warned": "The challenge is made. Its ids or files tell labels by their order: the log says how.",
    "saved": "Saved.",
    "email": "The address is changed.",
    "linked": "You can sign in that way from now on.",
    "unlinked": "That way of signing in is removed.",
    "verify-sent": "A link is on its way to the address; it works for a day.",
    "verified": "The address is verified.",
    "trial-sent": "The mail is on its way; this page shows what becomes of it.",
    "published": "The challenge is visible to everybody.",
    "hidden": "The challenge is visible to its organizers only.",
    "frozen": "The public board is frozen.",
    "unfrozen": "The public board goes on.",
    "revealed": "The private scores are revealed.",
    "rescored": "All runs wait to be scored again.",
    "retried": "The run waits to be scored again.",
    "refunded": "The run no longer counts against the team's limits.",
    "baseline": "The baseline waits to be scored.",
    "admitted": "You may take part: read the rules and accept them.",
    "asked": "The organizers will decide whether you take part.",
    "admission": "The decision is noted.",
    "code-revoked": "The code is revoked; who came in by it stays.",
    "room": "The class rooms are changed.",
    "handed-over": "The team has another captain.",
    "withdrawn": "The team has withdrawn from the challenge.",
    "returned": "The team is back in the challenge.",
    "merge-asked": "The captain of the other team will decide.",
    "merged": "The two teams are one.",
    "merge-declined": "The teams stay apart.",
    "announced": "It is announced.",
    "taken-back": "The announcement is taken back.",
    "deleted": "Your account is deleted.",
    "advanced": "The teams that came through are here.",
    "registration": "Who may register is changed.",
    "standing": "The standing is changed, and the board with it.",
    "file": "The file is stored.",
    "file-deleted": "The file is removed.",
    "organizer": "The organizers are changed.",
    "role": "The role is changed.",
    "disabled": "The account is changed.",
}


class SignInFirstError(Exception):
    """Nobody is signed in, and somebody has to be."""


@dataclass(frozen=True)
class Viewer:
    """Who is asking."""

    user: User | None


def get_guard(request: Request) -> FormGuard:
    """What ties forms to browsers."""
    guard: FormGuard = request.app.state.guard
    return guard


def has_platform(request: Request) -> bool:
    """Whether there are accounts and challenges, or only pages that run by themselves."""
    return hasattr(request.app.state, "database")


def get_viewer(request: Request) -> Viewer:
    """The person behind the session cookie, looked up once per request."""
    if not hasattr(request.state, "viewer"):
        # Pages that run by themselves, without a platform, know nobody.
        secret = request.cookies.get(SESSION_COOKIE) if has_platform(request) else None
        request.state.viewer = Viewer(session_user(get_database(request), secret) if secret else None)
    viewer: Viewer = request.state.viewer
    return viewer


def require_user(request: Request) -> User:
    """The person, who must be signed in."""
    user = get_viewer(request).user
    if user is None:
        raise SignInFirstError
    return user


def require_admin(request: Request) -> User:
    """An admin; everybody else learns nothing."""
    user = require_user(request)
    if user.role != "admin":
        raise NotThereError
    return user


def require_organizer(request: Request) -> None:
    """Somebody who may make challenges."""
    if require_user(request).role not in ("organizer", "admin"):
        raise NotThereError


def require_manager(request: Request, slug: str) -> Challenge:
    """Somebody who runs the challenge of the address: asked before a form is read, which may be large."""
    user = require_user(request)
    with get_database(request).read() as session:
        return open_challenge(session, user, slug, manage=True)


def bounded_by_challenge(request: Request, challenge: Annotated[Challenge, Depends(require_manager)]) -> None:
    """The run of an organizer, which may be as large as that of a team."""
    bound_upload(request, challenge)


def admitted_by_page(request: Request, slug: str) -> Challenge:
    """The challenge that the person at a page hands a run in for."""
    return admit_upload(request, require_user(request), slug)


async def checked_form(request: Request) -> AsyncIterator[FormData]:
    """The fields and files of a form that one of our pages sent."""
    form = await request.form(max_files=8, max_fields=200)
    try:
        get_guard(request).check(request, form.get("csrf"))
        yield form
    finally:
        await form.close()


ViewerOf = Annotated[Viewer, Depends(get_viewer)]
UserOf = Annotated[User, Depends(require_user)]
AdminOf = Annotated[User, Depends(require_admin)]
AdmittedOf = Annotated[Challenge, Depends(admitted_by_page)]
FormOf = Annotated[FormData, Depends(checked_form)]


def make_environment() -> Environment:
    """The templates of the platform with their filters."""
    from fieldmark.challenge.site.filters import FILTERS
    from fieldmark.reports.markup import strict_environment

    environment = strict_environment("fieldmark.challenge.site")
    environment.filters.update(FILTERS)
    return environment


def render(request: Request, name: str, status: int = 200, /, **context: Any) -> HTMLResponse:
    """A page; every one gets `user, csrf, notices, path, now, version, platform, areas`."""
    guard = get_guard(request)
    done = DONE.get(request.query_params.get("done", ""))
    shared: dict[str, Any] = {
        "user": get_viewer(request).user,
        "csrf": guard.token(request),
        "notices": [("ok", done)] if done else [],
        "path": request.url.path,
        "now": utc_now(),
        "version": __version__,
        "platform": has_platform(request),
        "areas": getattr(request.app.state, "areas", {}),
    }
    template = request.app.state.templates.get_template(name)
    response = HTMLResponse(template.render({**shared, **context}), status_code=status)
    guard.keep(request, response)
    return response


def fragment(request: Request, name: str, /, **context: Any) -> Markup:
    """A part of a page that is the same for several people."""
    return Markup(request.app.state.templates.get_template(name).render(context))


def page_tag(request: Request, state: Hashable | None) -> str | None:
    """The tag of a page: another one whenever the page is; None where that cannot be said.

    Args:
        request: Who asks for which page.
        state: What the page shows besides who looks at it.
    """
    if state is None or request.query_params.get("done") or not request.cookies:
        return None  # a notice is shown once, and a first visit gets a cookie
    user = get_viewer(request).user
    who = (user.id, user.name, user.role) if user else None
    seen = (__version__, state, who, str(request.url), get_guard(request).token(request))
    return f'W/"{hashlib.sha256(repr(seen).encode()).hexdigest()[:32]}"'


def kept_headers(tag: str) -> dict[str, str]:
    """The headers of a page that a browser may keep for itself, and asks about each time."""
    return {"etag": tag, "cache-control": "private, no-cache", "vary": "cookie"}


def go(path: str, done: str | None = None) -> RedirectResponse:
    """On to another page after a form was taken."""
    joint = "&" if "?" in path else "?"
    return RedirectResponse(f"{path}{joint}done={done}" if done else path, status_code=303)


def client_of(request: Request) -> str:
    """The address of the machine that asks, as the server itself sees it.

    Headers that say otherwise are believed only where the server was told which proxy to trust.
    """
    scope: Scope = request.scope
    client = scope.get("client")
    return str(client[0]) if client else "unknown"
