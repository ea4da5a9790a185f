"""What the pages of the platform share: who is looking, and what was just done."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request

from fieldmark.version import __version__
from fieldmark.web.pages import get_guard
from fieldmark.web.refusals import NotThereError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.people.accounts import session_user
from fieldmark_challenge.people.rights import open_challenge
from fieldmark_challenge.records.schema import Challenge, User
from fieldmark_challenge.web.dependencies import admit_upload, bound_upload, get_database

# What a page says after a form was taken; addresses carry the key only, so that nobody can put words into our mouth.
DONE = {
    "registered": "Welcome. Your account is created and you are signed in.",
    "password": "The new password is set; all other sessions and tokens have ended.",
    "token-revoked": "The token is revoked.",
    "sessions": "All other sessions are ended.",
    "rules": "You accepted the rules.",
    "team": "The team is created.",
    "joined": "You are in the team.",
    "left": "You left the team.",
    "revoked": "The invitation is revoked.",
    "handed-in": "Accepted, and waiting in the queue.",
    "selected": "The choice is saved.",
    "created": "The challenge is created.",
    "created-warned": "The challenge is created. The order of its ids or files gives labels away: the log says how.",
    "saved": "Saved.",
    "email": "The address is changed.",
    "linked": "You can now sign in that way.",
    "unlinked": "That sign-in is removed.",
    "verify-sent": "A link is on its way to the address; it works for a day.",
    "verified": "The address is verified.",
    "trial-sent": "The mail is on its way; this page shows its delivery.",
    "published": "The challenge is public.",
    "hidden": "Only organizers see the challenge.",
    "frozen": "The public leaderboard is frozen.",
    "unfrozen": "The public leaderboard is no longer frozen.",
    "revealed": "The private scores are revealed.",
    "rescored": "All runs are queued for rescoring.",
    "retried": "The run is queued for rescoring.",
    "refunded": "The run no longer counts against the team's limits.",
    "baseline": "The baseline is queued for scoring.",
    "admitted": "You may take part: read the rules and accept them.",
    "asked": "The organizers will decide whether you take part.",
    "admission": "The decision is saved.",
    "code-revoked": "The code is revoked; those it admitted stay.",
    "room": "The class rooms are changed.",
    "handed-over": "The team has another captain.",
    "withdrawn": "The team has withdrawn from the challenge.",
    "returned": "The team is back in the challenge.",
    "merge-asked": "The captain of the other team will decide.",
    "merged": "The two teams are merged.",
    "merge-declined": "The merge is declined.",
    "announced": "It is announced.",
    "taken-back": "The announcement is withdrawn.",
    "deleted": "Your account is deleted.",
    "advanced": "The qualified teams are admitted.",
    "registration": "Who may register is changed.",
    "standing": "The standing and the leaderboard are changed.",
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


def get_viewer(request: Request) -> Viewer:
    """The person behind the session cookie, looked up once per request."""
    if not hasattr(request.state, "viewer"):
        # A page about a fault of the database must not ask it who looks.
        secret = None if getattr(request.state, "faulty", False) else request.cookies.get(SESSION_COOKIE)
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
    """The challenge that the person at a page submits a run to."""
    return admit_upload(request, require_user(request), slug)


ViewerOf = Annotated[Viewer, Depends(get_viewer)]
UserOf = Annotated[User, Depends(require_user)]
AdminOf = Annotated[User, Depends(require_admin)]
AdmittedOf = Annotated[Challenge, Depends(admitted_by_page)]


def page_values(request: Request) -> dict[str, Any]:
    """What every page of the platform shows: who is signed in, and what was just done."""
    done = DONE.get(request.query_params.get("done", ""))
    return {"user": get_viewer(request).user, "notices": [("ok", done)] if done else [], "platform": True}


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
