"""The application: pages and API over one database and one file store."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from fieldmark.challenge.boards import board_downloads
from fieldmark.challenge.boards import pages as boards_pages
from fieldmark.challenge.coding import pages as coding_pages
from fieldmark.challenge.mailing import outbox
from fieldmark.challenge.mailing import pages as mailing_pages
from fieldmark.challenge.mailing.mail_settings import MailSettings
from fieldmark.challenge.mailing.sending import start_postman
from fieldmark.challenge.naming import identify_pages
from fieldmark.challenge.naming.namer import PageAnswers
from fieldmark.challenge.operating import health
from fieldmark.challenge.operating.access import Access
from fieldmark.challenge.operating.log_lines import REQUEST_ID
from fieldmark.challenge.operating.measurements import Measurements
from fieldmark.challenge.operating.stopping import Stopping
from fieldmark.challenge.people import account_pages, admission_pages, entrance_pages, own_data_pages
from fieldmark.challenge.people.accounts import new_secret
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.storage import Storage
from fieldmark.challenge.refusals import NotThereError, RefusalError, retry_headers
from fieldmark.challenge.running import creation_pages, people_pages
from fieldmark.challenge.running import pages as running_pages
from fieldmark.challenge.scoring.sandbox import Limits
from fieldmark.challenge.scoring.worker import start_workers
from fieldmark.challenge.signing_on import pages as signing_on_pages
from fieldmark.challenge.signing_on.offer import make_sign_on
from fieldmark.challenge.signing_on.providers import Provider
from fieldmark.challenge.site import api, api_pages
from fieldmark.challenge.site.context import SignInFirstError, Viewer, make_environment, render
from fieldmark.challenge.site.lanes import UploadLane
from fieldmark.challenge.site.security import BodyLimit, FormGuard, SecureHeaders
from fieldmark.challenge.submitting import challenge_pages, team_pages
from fieldmark.challenge.submitting import pages as submitting_pages
from fieldmark.challenge.submitting.uploads import SERVER_MB
from fieldmark.version import __version__

log = logging.getLogger(__name__)

FULL = (errno.ENOSPC, errno.EDQUOT)

STATIC = Path(__file__).parent / "static"
# What is asked first stands first: a path that two of them could take goes to the first.
AREAS = (
    entrance_pages,
    account_pages,
    mailing_pages,
    admission_pages,
    signing_on_pages,
    own_data_pages,
    challenge_pages,
    team_pages,
    submitting_pages,
    boards_pages,
    board_downloads,
    api_pages,
    creation_pages,
    running_pages,
    health,
    people_pages,
    coding_pages,
)
TITLES = {
    403: "Not from here",
    404: "Nothing here",
    405: "Not this way",
    408: "Too slow",
    415: "Not in UTF-8",
    413: "Too large",
    429: "Too often",
    503: "Busy",
    507: "Full",
}


def create_app(
    database: Database,
    storage: Storage,
    *,
    public_url: str | None = None,
    upload_mb: int = SERVER_MB,
    workers: int = 0,
    namer: PageAnswers | None = None,
    limits: Limits | None = None,
    walled: bool = False,
    access_log: bool = False,
    metrics_token: str | None = None,
    stopping: Stopping | None = None,
    mail: MailSettings | None = None,
    providers: Sequence[Provider] = (),
) -> FastAPI:
    """Makes the application.

    Args:
        database: The database, with its tables up to date.
        storage: The file store.
        public_url: The address people know the platform by; https there makes cookies secure.
        upload_mb: The largest upload that any challenge may allow.
        workers: How many workers run inside this process.
        namer: What answers on the identify page; without any there is no such page.
        limits: What they may use to score a run.
        walled: Whether they score nothing without walls.
        access_log: Whether each request leaves a line in the log.
        metrics_token: Who knows it may read `/metrics` from elsewhere.
        stopping: How the process comes to its end.
        mail: The mail server; no mail is sent without one, or without a public address for links.
        providers: Whom people may sign in through; nobody without a public address to come back to.
    """
    stopping = stopping or Stopping()
    https = bool(public_url) and urlsplit(str(public_url)).scheme == "https"
    app = WebApplication(
        title="Fieldmark challenges",
        version=__version__,
        description="Challenges, submissions and boards. Tokens are made on the account page.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere, which our policy forbids; ours is `api_pages`
        redoc_url=None,
        lifespan=_lifespan(database, storage, workers, limits, walled, stopping, mail, public_url),
    )
    app.state.database, app.state.storage = database, storage
    app.state.public_url, app.state.upload_mb = public_url, upload_mb
    app.state.uploads = UploadLane()
    app.state.sign_on = make_sign_on(providers, public_url)
    app.state.readiness, app.state.measurements = health.Readiness(database, storage, stopping), Measurements()
    app.state.metrics_token, app.state.access_log = metrics_token, access_log
    app.state.guard = FormGuard(
        database.setting("form-secret", lambda: new_secret().encode()), https=https, public_url=public_url
    )
    app.state.templates = make_environment()
    for area in AREAS:
        app.include_router(area.router, include_in_schema=False)
    if namer is not None:
        app.state.namer, app.state.areas = namer, {"/identify": "Identify"}
        app.include_router(identify_pages.router, include_in_schema=False)
    app.include_router(api.make_router())
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    add_refusals(app)

    app.add_middleware(BodyLimit, upload_mb=upload_mb)
    app.state.https = https
    return app


class WebApplication(FastAPI):
    """Puts the headers on everything, the answers to faults included, which are made outside of all middleware."""

    def build_middleware_stack(self) -> ASGIApp:
        secured = SecureHeaders(super().build_middleware_stack(), https=self.state.https)
        measurements: Measurements = getattr(self.state, "measurements", None) or Measurements()
        return Access(secured, measurements=measurements, noted=getattr(self.state, "access_log", False))


def _lifespan(
    database: Database,
    storage: Storage,
    workers: int,
    limits: Limits | None,
    walled: bool,
    stopping: Stopping,
    mail: MailSettings | None,
    public_url: str | None,
) -> Callable[[FastAPI], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        threads = []
        if workers:
            threads = start_workers(database, storage, stopping, jobs=workers, limits=limits, walled=walled)
        outbox.switch(database, mail is not None and public_url is not None)
        if mail is not None and public_url is not None:
            threads.append(start_postman(database, mail, public_url, stopping.begun))
        yield
        if threads:
            await asyncio.to_thread(stopping.wait_for, threads)

    return lifespan


def add_refusals(app: FastAPI) -> None:
    """Answers refusals and faults with a sentence, as a page or as JSON."""

    @app.exception_handler(RefusalError)
    async def refused(request: Request, error: RefusalError) -> Response:
        return _answer(request, error.status, str(error), retry_headers(error))

    @app.exception_handler(SignInFirstError)
    async def sign_in(request: Request, error: SignInFirstError) -> Response:
        target = request.url.path if request.method == "GET" else "/"
        return RedirectResponse(f"/login?next={quote(target)}", status_code=303)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        sentence = str(NotThereError()) if error.status_code == 404 else str(error.detail)
        return _answer(request, error.status_code, sentence, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if any(problem["loc"][:1] == ("path",) for problem in error.errors()):
            return _answer(request, 404, str(NotThereError()), {})
        listed = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors())
        return _answer(request, 422, listed, {})

    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeoutError)
    async def database_down(request: Request, error: Exception) -> Response:
        if "full" in str(getattr(error, "orig", "")):
            return await full(request, error)
        log.error("the database does not answer at %s %s: %s", request.method, request.url.path, type(error).__name__)
        request.state.viewer = Viewer(None)  # the page about it must not ask the database who looks
        return _answer(request, 503, "The database does not answer. Try again in a minute.", {"retry-after": "60"})

    @app.exception_handler(OSError)
    async def full(request: Request, error: Exception) -> Response:
        if isinstance(error, OSError) and error.errno not in FULL:
            return await broken(request, error)
        log.error("no room is left at %s %s", request.method, request.url.path)
        request.state.viewer = Viewer(None)
        return _answer(request, 507, "The server has no room left to store this. Its administrators can see that.", {})

    @app.exception_handler(Exception)
    async def broken(request: Request, error: Exception) -> Response:
        log.exception("a fault of ours at %s %s", request.method, request.url.path, exc_info=error)
        sentence = f"Something went wrong on our side. It was noted under the number {REQUEST_ID.get()}."
        return _answer(request, 500, sentence, {})


def _answer(request: Request, status: int, sentence: str, headers: dict[str, str]) -> Response:
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status_code=status, headers=headers)
    page = render(request, "error.html", status, status=status, title=TITLES.get(status, "No"), text=sentence)
    page.headers.update(headers)
    return page
