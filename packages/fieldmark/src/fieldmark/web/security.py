"""What every answer carries and every request must pass: headers, size limits, and proof that a form is ours."""

from __future__ import annotations

import asyncio
import datetime as dt
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fieldmark.web.patience import PIECE_S, TOO_SLOW, too_slow
from fieldmark.web.refusals import RefusalError, TooLargeError

POLICY = "; ".join(
    (
        "default-src 'none'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
# For the pages that come with a script of ours, or with sound: what they do without it is written into them.
POLICY_WITH_SCRIPT = f"{POLICY}; script-src 'self'; media-src 'self' data:"
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not "no-referrer": with that, browsers hide where a form was sent from, which is checked below.
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
A_YEAR_S = 31_536_000
MIB = 1 << 20
PLAIN_FORM_BYTES = MIB
NOT_UTF_8 = "Forms are read in UTF-8 only."
SESSION_COOKIE, ANONYMOUS_COOKIE = "fieldmark_session", "fieldmark_form"


def new_secret() -> str:
    """A secret for a cookie, a token or a link."""
    return secrets.token_urlsafe(32)


class OutdatedFormError(RefusalError):
    """A form that does not prove that one of our pages sent it."""

    status = 403

    def __init__(self) -> None:
        super().__init__("This form has expired or came from another site. Open the page again and repeat.")


class TooSlowError(RefusalError):
    """A request that does not come to its end."""

    status = 408

    def __init__(self) -> None:
        super().__init__(TOO_SLOW)


class SecureHeaders:
    """Adds the headers to every answer; pages are not kept by caches, static files are."""

    def __init__(self, app: ASGIApp, *, https: bool) -> None:
        self.app, self.https = app, https

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                static = scope["path"].startswith("/static/")
                headers.setdefault("cache-control", "public, max-age=3600" if static else "no-store")
                _lead_on_here(scope, headers)
                if self.https:
                    headers.setdefault("strict-transport-security", f"max-age={A_YEAR_S}; includeSubDomains")
            await send(message)

        await self.app(scope, receive, with_headers)


def _lead_on_here(scope: Scope, headers: MutableHeaders) -> None:
    """Makes a redirect to another page of ours relative: the server may be known by another name and scheme.

    The framework writes whole addresses, with the scheme that it sees itself, which behind a proxy is not that of the
    browser.
    """
    target = urlsplit(headers.get("location", ""))
    if target.netloc and target.netloc == Headers(scope=scope).get("host"):
        path = f"/{target.path.lstrip('/')}"  # two slashes would begin the name of another host
        headers["location"] = urlunsplit(("", "", path, target.query, target.fragment))


class BodyLimit:
    """Stops reading a request as soon as it is too large: a mebibyte for forms, the limit on uploads for files.

    A route that knows better, such as the limit of its challenge, lowers it with `lower_body_limit` before it reads.
    It also notes when the request arrived (`request.state.arrived`): deadlines go by this, not by when an upload ends.
    What is put into `request.state.at_end` is called when the request is over, however it ends.

    Args:
        app: What answers.
        upload_mb: The largest upload.
        uploads_at: How the paths end to which files are sent.
    """

    def __init__(self, app: ASGIApp, *, upload_mb: int, uploads_at: Sequence[str]) -> None:
        self.app, self.upload_mb, self.uploads_at = app, upload_mb, tuple(uploads_at)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        at_end: list[Callable[[], None]] = []
        scope.setdefault("state", {}).update(arrived=dt.datetime.now(dt.UTC), at_end=at_end)
        uploads = scope["path"].endswith(self.uploads_at) or scope["method"] == "PATCH"  # a part of one
        limit = self.upload_mb * MIB + PLAIN_FORM_BYTES if uploads else PLAIN_FORM_BYTES
        sentence = f"That is larger than {limit // MIB} MiB, the limit here."
        scope["state"]["body_limit"] = (limit, sentence)
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "0")
        begun = time.monotonic()
        arrived, complete = 0, "transfer-encoding" not in headers and announced == "0"

        async def counted() -> MutableMapping[str, Any]:
            nonlocal arrived, complete
            try:
                message = await asyncio.wait_for(receive(), PIECE_S if not complete else None)
            except TimeoutError as error:
                raise TooSlowError from error
            arrived += len(message.get("body", b""))
            most, why = scope["state"]["body_limit"]
            if arrived > most:
                raise TooLargeError(why)
            complete = not message.get("more_body", False)
            if not complete and too_slow(arrived, time.monotonic() - begun):
                raise TooSlowError
            return message

        async def parting(message: Message) -> None:
            if message["type"] == "http.response.start" and not complete:
                MutableHeaders(scope=message)["connection"] = "close"  # the server would read on, and throw away
            await send(message)

        if not announced.isdigit() or int(announced) > limit:
            await _plainly(scope, sentence, 413)(scope, receive, parting)
            return
        if not _is_readable(headers.get("content-type", "")):
            await _plainly(scope, NOT_UTF_8, 415)(scope, receive, parting)
            return
        try:
            await self.app(scope, counted, parting)
        finally:
            for act in at_end:
                act()


def _is_readable(content_type: str) -> bool:
    """Whether a form says that it is in UTF-8, or does not say."""
    _, options = parse_options_header(content_type)
    given = options.get(b"charset", b"utf-8").decode("ascii", "replace").lower()
    return given in ("utf-8", "utf8", "us-ascii", "ascii")


def _plainly(scope: Scope, sentence: str, status: int) -> Response:
    """An answer that is given before anything of a request is looked at."""
    if scope["path"].startswith("/api/"):
        return JSONResponse({"error": sentence}, status)
    return PlainTextResponse(sentence, status)


def lower_body_limit(request: Request, limit_mb: int, sentence: str, *, more: int = PLAIN_FORM_BYTES) -> None:
    """Bounds a request that carries a file of so many mebibytes and some text, also while it streams in chunks.

    Args:
        request: The request.
        limit_mb: How large the file may be.
        sentence: What is said when it is larger.
        more: How many bytes may come with it.

    Raises:
        TooLargeError: When the request says itself that it is larger.
    """
    most = limit_mb * MIB + more
    request.state.body_limit = (most, sentence)
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > most:
        raise TooLargeError(sentence)


class FormGuard:
    """Ties forms to the browser that asked for them.

    The token in a form is a keyed hash of the secret in the browser's cookie: another site can make the browser send
    the cookie, but cannot know the token.

    Args:
        secret: The key, the same on all servers.
        https: Whether cookies are for encrypted connections only.
        public_url: The address people know the platform by, if it is not that of the server itself.
    """

    def __init__(self, secret: bytes, *, https: bool, public_url: str | None = None) -> None:
        self.secret, self.https, self.public_url = secret, https, public_url

    def token(self, request: Request) -> str:
        """The token for the forms of a page."""
        base = request.cookies.get(SESSION_COOKIE) or request.cookies.get(ANONYMOUS_COOKIE)
        if not base:
            base = request.state.new_anonymous = getattr(request.state, "new_anonymous", None) or new_secret()
        return self.token_for(base)

    def keep(self, request: Request, response: Response) -> None:
        """Gives a browser without a session the cookie its form tokens rest on."""
        if made := getattr(request.state, "new_anonymous", None):
            self.set_cookie(response, ANONYMOUS_COOKIE, made)

    def check(self, request: Request, token: object) -> None:
        """Refuses a form whose token is not that of the browser, or that another site sent.

        Raises:
            OutdatedFormError: When it does not prove where it comes from.
        """
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc not in self._hosts(request):
            raise OutdatedFormError
        bases = [request.cookies.get(SESSION_COOKIE), request.cookies.get(ANONYMOUS_COOKIE)]
        base = next((base for base in bases if base), None)
        if base is None or not isinstance(token, str) or not hmac.compare_digest(self.token_for(base), token):
            raise OutdatedFormError

    def set_cookie(self, response: Response, name: str, value: str, *, max_age_s: int | None = None) -> None:
        """Sets a cookie that scripts cannot read and other sites cannot send along with forms."""
        response.set_cookie(name, value, max_age=max_age_s, httponly=True, secure=self.https, samesite="lax", path="/")

    def _hosts(self, request: Request) -> set[str]:
        hosts = {request.headers.get("host", "")}
        return hosts | {urlsplit(self.public_url).netloc} if self.public_url else hosts

    def token_for(self, cookie: str) -> str:
        """The token that belongs to the secret in a cookie."""
        return hmac.new(self.secret, cookie.encode(), hashlib.sha256).hexdigest()


def safe_next(target: object) -> str:
    r"""Where to go on after signing in: a path of this site, whatever was asked.

    >>> safe_next("/c/fungi"), safe_next("//evil.example"), safe_next("/\\evil.example"), safe_next("https://evil")
    ('/c/fungi', '/', '/', '/')
    """
    text = str(target or "/")
    plain = text.startswith("/") and not text.startswith(("//", "/\\")) and "\\" not in text
    return text if plain and text.isprintable() else "/"
