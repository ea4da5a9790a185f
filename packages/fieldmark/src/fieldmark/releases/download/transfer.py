"""One request for the missing bytes of a file, and what may go wrong with it."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import PurePosixPath
from typing import IO, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from fieldmark.errors import InputError
from fieldmark.releases.download.manifest import ReleaseFile
from fieldmark.releases.download.partial import Partial, Version
from fieldmark.releases.download.room import check_room, show_size
from fieldmark.version import __version__
from fieldmark.work.progress import progress

BLOCK = 1 << 18
WORTH_ANOTHER_TRY = frozenset({408, 425, 429, 500, 502, 503, 504})
RANGE_NOT_SATISFIABLE = 416


class RefusedError(Exception):
    """The mirror does not have the file, or another one; asking again would not help."""

    received = 0


class BrokenOffError(Exception):
    """The connection broke; what came in is kept and another try may bring the rest.

    Args:
        reason: What happened, to follow the address in a sentence.
        received: The bytes that came in.
        wait_s: The seconds that the server asks to wait.
    """

    def __init__(self, reason: str, received: int = 0, wait_s: float = 0.0) -> None:
        self.received, self.wait_s = received, wait_s
        super().__init__(reason)


class UnreachableError(BrokenOffError):
    """There was no connection at all."""


class _KeepsToHttps(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        before, after = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if after != "https" and after != before:
            raise RefusedError(f"leads from {before} to {after or 'nowhere'} ({newurl})")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def transfer(url: str, partial: Partial, file: ReleaseFile, timeout_s: float) -> int:
    """Asks once for the bytes that are missing, and adds them to the part that is there.

    Returns:
        The bytes received; the file is complete as far as the server says.

    Raises:
        RefusedError: If the mirror does not give this file.
        BrokenOffError: If it broke off; what came in is kept.
    """
    start = partial.resume_at(url)
    if start and partial.is_complete:
        return 0
    with _network():
        response = _ask(url, partial, start, timeout_s)
    with response:
        version = _version(url, response)
        start = _agreed_start(response, version, partial, start)
        _check_offer(response, version, file)
        if version.total is not None:
            check_room(partial.target.parent, version.total - start, file.name)
        partial.begin(version, start)
        received = _stream(response, partial, file, version.total)
    if version.total is not None and partial.size < version.total:
        raise BrokenOffError(f"broke off after {partial.size:,} of {version.total:,} bytes", received)
    return received


def _ask(url: str, partial: Partial, start: int, timeout_s: float) -> HTTPResponse:
    headers = {"User-Agent": f"fieldmark/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if partial.version is not None and partial.version.url == url and partial.version.mark:
            headers["If-Range"] = partial.version.mark
    try:
        opened = build_opener(_KeepsToHttps).open(Request(url, headers=headers), timeout=timeout_s)
    except HTTPError as error:
        with error:
            _explain(error, partial)
    assert isinstance(opened, HTTPResponse)  # other schemes were refused before
    return opened


def _explain(error: HTTPError, partial: Partial) -> NoReturn:
    if error.code == RANGE_NOT_SATISFIABLE:
        partial.discard()
        raise BrokenOffError("has fewer bytes than were there already; starting again") from None
    reason = f"answered {error.code} {error.reason}"
    if error.code in WORTH_ANOTHER_TRY:
        asked = error.headers.get("Retry-After", "")
        raise BrokenOffError(reason, wait_s=float(asked) if asked.isdecimal() else 0.0) from None
    raise RefusedError(reason) from None


@contextmanager
def _network() -> Iterator[None]:
    """Turns the many errors of a connection into the few that matter."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        raise RefusedError(f"has no valid certificate ({error.verify_message})") from error
    except URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise RefusedError(f"has no valid certificate ({error.reason.verify_message})") from error
        if isinstance(error.reason, TimeoutError):
            raise BrokenOffError("did not answer in time") from error
        raise UnreachableError(f"cannot be reached ({error.reason})") from error
    except TimeoutError as error:
        raise BrokenOffError("did not answer in time") from error
    except (HTTPException, OSError) as error:
        raise BrokenOffError(f"broke off ({error or type(error).__name__})") from error


def _version(url: str, response: HTTPResponse) -> Version:
    """Reads which version the answer is about. Weak marks do not promise the same bytes and are left out."""
    etag = response.headers.get("ETag")
    total: int | None = None
    if response.status == 206:
        _, total = _content_range(response)
    elif "chunked" not in response.headers.get("Transfer-Encoding", "").lower():
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdecimal() else None
    strong = etag if etag and not etag.startswith("W/") else None
    return Version(url, total, strong, response.headers.get("Last-Modified"))


def _content_range(response: HTTPResponse) -> tuple[int | None, int | None]:
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", "").strip())
    if match is None:
        return None, None
    return int(match[1]), None if match[2] == "*" else int(match[2])


def _agreed_start(response: HTTPResponse, version: Version, partial: Partial, start: int) -> int:
    """Returns where the bytes of the answer belong: at the end of what is there, or at the beginning."""
    if response.status == 200:
        return 0
    if response.status != 206 or not start or partial.version is None:
        raise RefusedError(f"answered {response.status} {response.reason}")
    begins, total = _content_range(response)
    first_version = partial.version
    joins_mirrors = first_version.url != version.url
    unchanged = total is not None and total == first_version.total if joins_mirrors else first_version.same_as(version)
    if begins != start or not unchanged:
        partial.discard()
        raise BrokenOffError("has changed the file since; starting again")
    return start


def _check_offer(response: HTTPResponse, version: Version, file: ReleaseFile) -> None:
    kind = response.headers.get_content_type() if "Content-Type" in response.headers else ""
    if kind == "text/html" and PurePosixPath(file.name).suffix not in (".html", ".htm"):
        raise RefusedError("gave a web page in place of the file (a login, or a warning?)")
    if file.size is not None and version.total is not None and version.total != file.size:
        raise RefusedError(f"has a file of {version.total:,} bytes, expected {file.size:,}")


def _stream(response: HTTPResponse, partial: Partial, file: ReleaseFile, total: int | None) -> int:
    received = shown = 0
    missing = None if total is None else total - partial.size
    from_start = "" if partial.size == 0 else f", going on at {show_size(partial.size)}"
    with progress(f"downloading {file.name} (MiB{from_start})", (missing or 0) >> 20) as tick:
        while missing is None or received < missing:
            wanted = BLOCK if missing is None else min(BLOCK, missing - received)
            try:
                with _network():
                    block = response.read1(wanted)
            except BrokenOffError as error:
                raise type(error)(str(error), received) from error
            if not block:
                break
            _keep(partial, block, file)
            received += len(block)
            if received >> 20 > shown:
                tick((received >> 20) - shown)
                shown = received >> 20
    return received


def _keep(partial: Partial, block: bytes, file: ReleaseFile) -> None:
    try:
        partial.add(block)
    except OSError as error:
        raise InputError(
            partial.target.parent,
            found=f"{error.strerror or error} while {file.name} came in",
            expected="a folder that can be written",
            hint="Run the same command again to continue.",
        ) from error
