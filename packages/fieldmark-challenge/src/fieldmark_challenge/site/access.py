"""Every request gets a number, is counted, and leaves a line in the log that tells no secret."""

from __future__ import annotations

import logging
import re
import secrets
import time
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fieldmark_challenge.operations.log_lines import REQUEST_ID, fields
from fieldmark_challenge.site.measurements import Measurements, kind_of_route

log = logging.getLogger("fieldmark.access")

UNMATCHED = "unmatched"
SECRET_PARAMETERS = ("token", "secret", "code", "key")
_LONG = re.compile(r"[\w~.%-]{25,}")


class Access:
    """Numbers, counts and notes requests.

    Args:
        app: What answers them.
        measurements: Where they are counted.
        noted: Whether each leaves a line in the log.
    """

    def __init__(self, app: ASGIApp, *, measurements: Measurements, noted: bool) -> None:
        self.app, self.measurements, self.noted = app, measurements, noted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        number = secrets.token_hex(8)
        scope.setdefault("state", {})["number"] = number
        kept, begun = REQUEST_ID.set(number), time.perf_counter()
        status, size = 500, 0

        async def watched(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["x-request-id"] = number
            size += len(message.get("body", b""))
            await send(message)

        self.measurements.begin()
        try:
            await self.app(scope, receive, watched)
        finally:
            seconds = time.perf_counter() - begun
            self.measurements.end(scope["method"], route_of(scope), status, seconds)
            if self.noted:
                _note(scope, status, size, seconds)
            REQUEST_ID.reset(kept)


def route_of(scope: Scope) -> str:
    """The pattern of the address of a request."""
    if scope["path"].startswith("/static/"):
        return "/static"
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else UNMATCHED


def shown_path(scope: Scope) -> str:
    """The address of a request as the log shows it: without its query, and without the secrets of links."""
    path: str = scope["path"]
    for name, value in scope.get("path_params", {}).items():
        if name in SECRET_PARAMETERS:
            path = path.replace(str(value), "...")
    return quote("/".join("..." if _LONG.fullmatch(piece) else piece for piece in path.split("/"))[:300], safe="/.-_~@")


def _note(scope: Scope, status: int, size: int, seconds: float) -> None:
    client = scope.get("client")
    viewer = getattr(scope.get("state", {}).get("viewer"), "user", None)
    about = fields(
        method=scope["method"],
        path=shown_path(scope),
        route=route_of(scope),
        status=status,
        seconds=round(seconds, 4),
        bytes=size,
        client=client[0] if client else None,
        user=getattr(viewer, "id", None),
    )
    quiet = kind_of_route(route_of(scope)) in ("operating", "static") and status < 400
    text = f"{scope['method']} {shown_path(scope)} {status} in {1000 * seconds:.0f} ms"
    log.log(logging.DEBUG if quiet else logging.INFO, "%s", text, extra=about)
