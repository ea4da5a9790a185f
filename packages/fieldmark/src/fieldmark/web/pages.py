"""What pages share: forms that were checked, and how a page is rendered.

An application keeps what its pages need in its state: `guard` (what ties forms to browsers), `templates`, `count` (what
counts questions by address), `areas` (links beside those of the platform), and `page_values`, a function of the request
for what its templates show besides; without a platform there is nobody to show.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends
from jinja2 import Environment
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import Scope

from fieldmark.reports.markup import count, counted, strict_environment
from fieldmark.version import __version__
from fieldmark.web.security import FormGuard

STATIC = Path(__file__).parent / "static"


def chance(probability: float) -> str:
    """A probability in percent, never a certainty that only rounding made.

    >>> chance(0.42), chance(0.9999), chance(0.0001)
    ('42%', 'over 99%', 'under 1%')
    """
    if probability > 0.99:
        return "over 99%"
    return "under 1%" if probability < 0.01 else f"{probability:.0%}"


def make_environment(*packages: str) -> Environment:
    """The templates of packages, the first that has one deciding, and of local pages; with the filters of these."""
    environment = strict_environment(*packages, "fieldmark.web")
    environment.filters.update({"chance": chance, "count": count, "counted": counted})
    return environment


def get_guard(request: Request) -> FormGuard:
    """What ties forms to browsers."""
    guard: FormGuard = request.app.state.guard
    return guard


async def checked_form(request: Request) -> AsyncIterator[FormData]:
    """The fields and files of a form that one of our pages sent."""
    form = await request.form(max_files=8, max_fields=200)
    try:
        get_guard(request).check(request, form.get("csrf"))
        yield form
    finally:
        await form.close()


FormOf = Annotated[FormData, Depends(checked_form)]


def nobody(_: Request) -> dict[str, Any]:
    """What templates show where there are no accounts."""
    return {"user": None, "notices": [], "platform": False}


def render(request: Request, name: str, status: int = 200, /, **context: Any) -> HTMLResponse:
    """A page; every one gets `user, csrf, notices, path, now, version, platform, areas`."""
    guard = get_guard(request)
    shared: dict[str, Any] = {
        "csrf": guard.token(request),
        "path": request.url.path,
        "now": dt.datetime.now(dt.UTC),
        "version": __version__,
        "areas": getattr(request.app.state, "areas", {}),
        **request.app.state.page_values(request),
    }
    template = request.app.state.templates.get_template(name)
    response = HTMLResponse(template.render({**shared, **context}), status_code=status)
    guard.keep(request, response)
    return response


def fragment(request: Request, name: str, /, **context: Any) -> Markup:
    """A part of a page that is the same for several people."""
    return Markup(request.app.state.templates.get_template(name).render(context))


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
