"""Pages that run by themselves on one's own machine: no accounts, no database."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from fastapi import APIRouter, FastAPI
from starlette.applications import Starlette
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import RedirectResponse
from starlette.staticfiles import StaticFiles

from fieldmark.version import __version__
from fieldmark.web import identify_pages
from fieldmark.web.application import WebApplication, add_refusals
from fieldmark.web.identify_answers import MOST_MB, PageAnswers
from fieldmark.web.pages import STATIC, make_environment, nobody
from fieldmark.web.rates import CountsInMemory
from fieldmark.web.security import BodyLimit, FormGuard

HERE = ("127.0.0.1", "localhost", "[::1]", "testserver")


def make_local_app(router: APIRouter, start: str, *, host: str = "127.0.0.1", upload_mb: int = 1) -> FastAPI:
    """An application with the pages of one area.

    Args:
        router: The pages.
        start: Where they begin.
        host: The address it listens on. A page of another site that gives our address its name is not answered, unless
            the server listens on all addresses.
        upload_mb: The largest upload.
    """
    app = WebApplication(title="Fieldmark", version=__version__, openapi_url=None, docs_url=None, redoc_url=None)
    app.state.https, app.state.areas, app.state.public_url = False, {}, None
    app.state.count, app.state.page_values = CountsInMemory().count, nobody
    app.state.guard = FormGuard(secrets.token_bytes(32), https=False)
    app.state.templates = make_environment()
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_api_route("/", _go_to(start), include_in_schema=False)
    add_refusals(app)
    app.add_middleware(BodyLimit, upload_mb=upload_mb, uploads_at=[start])
    if host not in ("0.0.0.0", "::"):
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*HERE, host])
    return app


def _go_to(start: str) -> Callable[[], RedirectResponse]:
    def go() -> RedirectResponse:
        return RedirectResponse(start, status_code=303)

    return go


def run_local_app(app: Starlette, *, host: str, port: int) -> None:
    """Serves an application until it is stopped."""
    import uvicorn

    uvicorn.run(app, host=host, port=port, log_level="warning", server_header=False)


def serve_identify(namer: PageAnswers, *, host: str, port: int) -> None:
    """Serves the identify page by itself until it is stopped."""
    app = make_local_app(identify_pages.router, "/identify", host=host, upload_mb=MOST_MB)
    app.state.namer = namer
    run_local_app(app, host=host, port=port)
