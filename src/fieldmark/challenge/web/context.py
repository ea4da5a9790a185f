"""What routes share: who is asking, forms that were checked, and pages."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Path
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import Scope

from fieldmark.challenge import rates
from fieldmark.challenge.accounts import session_user
from fieldmark.challenge.database import Database
from fieldmark.challenge.models import Challenge, User, utc_now
from fieldmark.challenge.refusals import NotThereError, RefusalError
from fieldmark.challenge.rights import open_challenge
from fieldmark.challenge.storage import Storage
from fieldmark.challenge.uploads import too_large
from fieldmark.challenge.web.security import SESSION_COOKIE, FormGuard, lower_body_limit
from fieldmark.version import __version__

EVERYWHERE = ("0.0.0.0", "::")
LARGEST = 2**31 - 1  # what a column of the database holds
# What a page says after a form was taken; addresses carry the key only, so that nobody can put words into our mouth.
DONE = {
    "registered": "Welcome. Your account is made and you are signed in.",
    "password": "The new password is set; all other sessions are ended.",
    "token-revoked": "The token is revoked.",
    "sessions": "All other sessions are ended.",
    "rules": "You accepted the rules.",
    "team": "The team is made.",
    "joined": "You are in the team.",
    "left": "You left the team.",
    "revoked": "The invitation is revoked.",
    "handed-in": "The run is accepted and waits to be scored.",
    "selected": "The choice is noted.",
    "created": "The challenge is made.",
    "created-warned": "The challenge is made. Its ids or files tell labels by their order: the log says how.",
    "saved": "Saved.",
    "published": "The challenge is visible to everybody.",
    "hidden": "The challenge is visible to its organizers only.",
    "frozen": "The public board is frozen.",
    "unfrozen": "The public board goes on.",
    "revealed": "The private scores are revealed.",
    "rescored": "All runs wait to be scored anew.",
    "retried": "The run waits to be scored anew.",
    "refunded": "The run no longer counts against the team's limits.",
    "baseline": "The baseline waits to be scored.",
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


def get_database(request: Request) -> Database:
    """The database of the application."""
    database: Database = request.app.state.database
    return database


def get_storage(request: Request) -> Storage:
    """The file store of the application."""
    storage: Storage = request.app.state.storage
    return storage


def get_guard(request: Request) -> FormGuard:
    """What ties forms to browsers."""
    guard: FormGuard = request.app.state.guard
    return guard


def get_viewer(request: Request) -> Viewer:
    """The person behind the session cookie, looked up once per request."""
    if not hasattr(request.state, "viewer"):
        secret = request.cookies.get(SESSION_COOKIE)
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


def admit_upload(request: Request, user: User, slug: str) -> Challenge:
    """The challenge that a run is for, before a byte of the run is read.

    Raises:
        NotThereError: When there is none that they may see.
        TooOftenError: When they upload too often.
        TooLargeError: When the request says itself that it is larger than the challenge takes. One that does not say
            how large it is, is stopped as soon as it is larger.
    """
    database = get_database(request)
    with database.read() as session:
        challenge = open_challenge(session, user, slug)
    rates.count(database, rates.UPLOAD, str(user.id))
    bound_upload(request, challenge)
    return challenge


def bound_upload(request: Request, challenge: Challenge) -> None:
    """Lets no more of a request in than the challenge takes in one run."""
    lower_body_limit(request, challenge.max_upload_mb, too_large(challenge.max_upload_mb))


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


DatabaseOf = Annotated[Database, Depends(get_database)]
StorageOf = Annotated[Storage, Depends(get_storage)]
ViewerOf = Annotated[Viewer, Depends(get_viewer)]
UserOf = Annotated[User, Depends(require_user)]
AdminOf = Annotated[User, Depends(require_admin)]
AdmittedOf = Annotated[Challenge, Depends(admitted_by_page)]
FormOf = Annotated[FormData, Depends(checked_form)]
# The number of a row in an address; others, which no column holds, are nothing there.
RowId = Annotated[int, Path(ge=1, le=LARGEST)]


def make_environment() -> Environment:
    """The templates, strict about names and safe about text."""
    from fieldmark.challenge.web.filters import FILTERS

    environment = Environment(
        loader=PackageLoader("fieldmark.challenge.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    return environment


def render(request: Request, name: str, status: int = 200, /, **context: Any) -> HTMLResponse:
    """A page; every one gets `user, csrf, notices, path, now, version`."""
    guard = get_guard(request)
    done = DONE.get(request.query_params.get("done", ""))
    shared: dict[str, Any] = {
        "user": get_viewer(request).user,
        "csrf": guard.token(request),
        "notices": [("ok", done)] if done else [],
        "path": request.url.path,
        "now": utc_now(),
        "version": __version__,
    }
    template = request.app.state.templates.get_template(name)
    response = HTMLResponse(template.render({**shared, **context}), status_code=status)
    guard.keep(request, response)
    return response


def address_of(request: Request, path: str) -> str:
    """A path as an address to send to somebody, for the eyes of the person who asked for it.

    A server that listens everywhere knows no name of itself but the one by which it was asked.
    """
    known = request.app.state.public_url
    if known is None or urlsplit(known).hostname in EVERYWHERE:
        known = str(request.base_url)
    return f"{known.rstrip('/')}{path}"


def go(path: str, done: str | None = None) -> RedirectResponse:
    """On to another page after a form was taken."""
    joint = "&" if "?" in path else "?"
    return RedirectResponse(f"{path}{joint}done={done}" if done else path, status_code=303)


def text_of(form: FormData, name: str) -> str:
    """A text field, empty where it is missing."""
    value = form.get(name, "")
    if isinstance(value, str) and "\0" in value:  # no text has it, and not every database takes it
        raise RefusalError(f"The field {name!r} holds a NUL character.")
    return value if isinstance(value, str) else ""


def texts_of(form: FormData, *names: str) -> dict[str, str]:
    """Text fields by name, to show a form again as it was filled in."""
    return {name: text_of(form, name) for name in names}


def number_of(form: FormData, name: str, what: str, *, most: int = LARGEST) -> int:
    """A whole number from 0 on."""
    text = text_of(form, name).strip()
    try:
        number = int(text)
    except ValueError as error:
        raise RefusalError(f"{what}: found {text[:40]!r}, expected a whole number.") from error
    if not 0 <= number <= most:
        raise RefusalError(f"{what}: found {text[:40]!r}, expected a whole number from 0 to {most}.")
    return number


def moment_of(form: FormData, name: str, what: str) -> dt.datetime:
    """A moment in UTC, as browsers write it (2026-11-15T12:00)."""
    text = text_of(form, name).strip()
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError as error:
        raise RefusalError(
            f"{what}: found {text[:40]!r}, expected a date and time such as 2026-11-15T12:00."
        ) from error
    return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)


def file_of(form: FormData, name: str) -> UploadFile | None:
    """An uploaded file, None where none was chosen."""
    value = form.get(name)
    return value if isinstance(value, UploadFile) and value.filename else None


def client_of(request: Request) -> str:
    """The address of the machine that asks, as the server itself sees it.

    Headers that say otherwise are believed only where the server was told which proxy to trust.
    """
    scope: Scope = request.scope
    client = scope.get("client")
    return str(client[0]) if client else "unknown"
