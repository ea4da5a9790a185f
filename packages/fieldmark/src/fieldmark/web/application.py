"""The application under all pages: headers on everything, and refusals and faults answered with a sentence."""

from __future__ import annotations

import errno
import logging

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from fieldmark.web.pages import render
from fieldmark.web.refusals import NotThereError, RefusalError, retry_headers
from fieldmark.web.security import SecureHeaders

log = logging.getLogger(__name__)

FULL = (errno.ENOSPC, errno.EDQUOT)
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


class WebApplication(FastAPI):
    """Puts the headers on everything, the answers to faults included, which are made outside of all middleware."""

    def build_middleware_stack(self) -> ASGIApp:
        return SecureHeaders(super().build_middleware_stack(), https=self.state.https)


def add_refusals(app: FastAPI) -> None:
    """Answers refusals and faults with a sentence, as a page or as JSON."""

    @app.exception_handler(RefusalError)
    async def refused(request: Request, error: RefusalError) -> Response:
        return answer(request, error.status, str(error), retry_headers(error))

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        sentence = str(NotThereError()) if error.status_code == 404 else str(error.detail)
        return answer(request, error.status_code, sentence, dict(error.headers or {}))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if any(problem["loc"][:1] == ("path",) for problem in error.errors()):
            return answer(request, 404, str(NotThereError()))
        listed = "; ".join(f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in error.errors())
        return answer(request, 422, listed)

    @app.exception_handler(OSError)
    async def system(request: Request, error: OSError) -> Response:
        return no_room(request) if error.errno in FULL else broken(request, error)

    @app.exception_handler(Exception)
    async def fault(request: Request, error: Exception) -> Response:
        return broken(request, error)


def no_room(request: Request) -> Response:
    """The answer when nothing can be stored."""
    log.error("no room is left at %s %s", request.method, request.url.path)
    request.state.faulty = True
    return answer(request, 507, "The server's disk is full. Its administrators can see that.")


def broken(request: Request, error: Exception) -> Response:
    """The answer to a fault of ours, which is in the log."""
    log.exception("a fault of ours at %s %s", request.method, request.url.path, exc_info=error)
    number = getattr(request.state, "number", "")  # where requests are numbered
    noted = f" It was logged under the number {number}." if number else ""
    return answer(request, 500, f"Something went wrong on our side.{noted}")


def answer(request: Request, status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """A sentence as a page, or as JSON for programs."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": sentence}, status_code=status, headers=headers)
    page = render(request, "error.html", status, status=status, title=TITLES.get(status, "No"), text=sentence)
    page.headers.update(headers or {})
    return page
