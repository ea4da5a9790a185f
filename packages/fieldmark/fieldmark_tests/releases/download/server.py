"""A real HTTP server on this machine, with the faults of real ones."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """What a path answers, and how badly."""

    content: bytes
    etag: str | None = '"one"'
    last_modified: str | None = None
    content_type: str = "application/octet-stream"
    status: int = 200
    redirect: str | None = None
    honors_range: bool = True
    checks_version: bool = True
    chunked: bool = False
    claimed_length: int | None = None
    break_after: list[int] = field(default_factory=list)  # bytes sent in answer to each request before it breaks off
    statuses: list[int] = field(default_factory=list)  # answers to the first requests, before the page is given
    hang_s: float = 0.0
    bytes_per_s: float | None = None
    sent: int = 0
    ranges: list[str | None] = field(default_factory=list)


class Site:
    """The pages of a server; tests put them in and look at what was asked for."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.url = ""
        self.released = threading.Event()

    def put(self, name: str, content: bytes, **faults: object) -> Page:
        page = Page(content, **faults)  # type: ignore[arg-type]
        self.pages[f"/{name}"] = page
        return page

    def __getitem__(self, name: str) -> Page:
        return self.pages[f"/{name}"]


class _Handler(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        page = self.site.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        page.ranges.append(self.headers.get("Range"))
        self.site.released.wait(page.hang_s)
        if page.redirect:
            self.send_response(302)
            self.send_header("Location", page.redirect)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif page.statuses:
            self.send_error(page.statuses.pop(0))
        elif page.status != 200:
            self.send_error(page.status)
        else:
            self._answer(page)

    def _answer(self, page: Page) -> None:
        start, total = self._start(page), len(page.content)
        if start >= total and start:
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{total}")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Type", page.content_type)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        if page.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(page.claimed_length or total - start))
        for name, value in (("ETag", page.etag), ("Last-Modified", page.last_modified)):
            if value:
                self.send_header(name, value)
        self.end_headers()
        self._send(page, page.content[start:])

    def _start(self, page: Page) -> int:
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not asked or not page.honors_range:
            return 0
        known = self.headers.get("If-Range")
        if page.checks_version and known and known not in (page.etag, page.last_modified):
            return 0
        return int(asked[1])

    def _send(self, page: Page, body: bytes) -> None:
        limit = page.break_after.pop(0) if page.break_after else len(body)
        step = len(body) if page.bytes_per_s is None else max(1, int(page.bytes_per_s / 100))
        try:
            for at in range(0, min(limit, len(body)), max(1, step)):
                block = body[at : min(at + step, limit)]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(block), block) if page.chunked else block)
                page.sent += len(block)
                if page.bytes_per_s is not None:
                    time.sleep(0.01)
            if page.chunked and limit >= len(body):
                self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass  # the client went away
        self.close_connection = True


@contextmanager
def serving() -> Iterator[Site]:
    """Runs a server on a free port for the length of the block."""
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"site": site}))
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.released.set()
        server.shutdown()
        server.server_close()


def md5(content: bytes) -> str:
    return hashlib.md5(content).hexdigest()
