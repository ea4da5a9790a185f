"""The application: pages and API over one database and one file store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, FastAPI
from jinja2 import Environment
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from fieldmark.version import __version__
from fieldmark.web import identify_pages
from fieldmark.web.application import WebApplication, add_refusals, answer, no_room
from fieldmark.web.identify_answers import PageAnswers
from fieldmark.web.pages import make_environment
from fieldmark.web.security import BodyLimit, FormGuard, new_secret
from fieldmark_challenge.actions import ORGANIZING, forms
from fieldmark_challenge.boards import board_downloads
from fieldmark_challenge.boards import pages as boards_pages
from fieldmark_challenge.lifecycle import creation_pages, people_pages
from fieldmark_challenge.lifecycle import pages as running_pages
from fieldmark_challenge.mail import outbox
from fieldmark_challenge.mail.delivery import start_postman
from fieldmark_challenge.mail.mail_settings import MailSettings
from fieldmark_challenge.openid.offer import make_sign_on
from fieldmark_challenge.openid.providers import Provider
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.people.classrooms import count_place
from fieldmark_challenge.programs import pages as coding_pages
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring.scoring_process import Limits
from fieldmark_challenge.scoring.worker import start_workers
from fieldmark_challenge.site import (
    account_pages,
    admission_pages,
    api,
    api_pages,
    entrance_pages,
    health,
    own_data_pages,
)
from fieldmark_challenge.site import mail_pages as mailing_pages
from fieldmark_challenge.site import sign_on_pages as signing_on_pages
from fieldmark_challenge.site.access import Access
from fieldmark_challenge.site.filters import FILTERS
from fieldmark_challenge.site.measurements import Measurements
from fieldmark_challenge.submissions import challenge_pages, team_pages
from fieldmark_challenge.submissions import pages as submitting_pages
from fieldmark_challenge.submissions.uploads import SERVER_MB
from fieldmark_challenge.web.context import SignInFirstError, page_values
from fieldmark_challenge.web.lanes import UploadLane

log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
# How the paths end to which files are sent.
UPLOADS_AT = (
    "/submit",
    "/submissions",
    "/debug",
    "/debug-runs",
    "/git-receive-pack",
    "/baselines",
    "/data",
    "/rescore",
    "/organize/new",
    "/challenges",
    "/identify",
)
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
    app = PlatformApplication(
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
    app.state.templates = _templates()
    app.state.page_values, app.state.count = page_values, partial(count_place, database)
    for area in AREAS:
        app.include_router(area.router, include_in_schema=False)
    app.include_router(_forms_router(), include_in_schema=False)
    if namer is not None:
        app.state.namer, app.state.areas = namer, {"/identify": "Identify"}
        app.include_router(identify_pages.router, include_in_schema=False)
    app.include_router(api.make_router())
    app.mount("/static", StaticFiles(directory=STATIC, packages=[("fieldmark.web", "static")]), name="static")
    add_refusals(app)
    _add_own_refusals(app)
    app.add_middleware(BodyLimit, upload_mb=upload_mb, uploads_at=UPLOADS_AT)
    app.state.https = https
    return app


@cache
def _templates() -> Environment:
    """The templates; compiled once, for whatever applications there are in a process."""
    environment = make_environment("fieldmark_challenge.site")
    environment.filters.update(FILTERS)
    environment.globals.update(form_of=forms.form_of, offered_on=forms.offered_on)
    return environment


@cache
def _forms_router() -> APIRouter:
    """Where the forms of organizers are sent to; made once as well."""
    return forms.make_router(*ORGANIZING)


class PlatformApplication(WebApplication):
    """Numbers, counts and notes every request."""

    def build_middleware_stack(self) -> ASGIApp:
        return Access(
            super().build_middleware_stack(), measurements=self.state.measurements, noted=self.state.access_log
        )


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


def _add_own_refusals(app: FastAPI) -> None:
    """Answers what only a platform meets: nobody signed in, and a database that is down or full."""

    @app.exception_handler(SignInFirstError)
    async def sign_in(request: Request, error: SignInFirstError) -> Response:
        target = request.url.path if request.method == "GET" else "/"
        return RedirectResponse(f"/login?next={quote(target)}", status_code=303)

    @app.exception_handler(OperationalError)
    @app.exception_handler(PoolTimeoutError)
    async def database_down(request: Request, error: Exception) -> Response:
        if "full" in str(getattr(error, "orig", "")):
            return no_room(request)
        log.error("the database does not answer at %s %s: %s", request.method, request.url.path, type(error).__name__)
        request.state.faulty = True
        return answer(request, 503, "The database does not answer. Try again in a minute.", {"retry-after": "60"})
