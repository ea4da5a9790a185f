"""Those who send slowly are given up in the end, and everybody else is answered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from fieldmark.web import patience, security
from fieldmark.web.patience import PatientProtocol
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import Platform


@pytest.fixture
def address(small_platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    monkeypatch.setattr(patience, "HEADERS_S", 0.2)
    monkeypatch.setattr(security, "PIECE_S", 0.2)
    app = create_app(small_platform.database, small_platform.storage)
    with listening(app, http=PatientProtocol) as port:
        yield "127.0.0.1", port


def answer_to(address: tuple[str, int], *pieces: bytes) -> bytes:
    """Everything that comes back until the server hangs up."""
    with socket.create_connection(address, timeout=60) as line:
        for piece in pieces:
            line.sendall(piece)
        answer = b""
        while piece := line.recv(1 << 16):
            answer += piece
    return answer


def test_a_request_that_does_not_come_is_given_up(address):
    assert answer_to(address, b"GET /login HTTP/1.1\r\nHost: x\r\nX-Slow: ") == b""
    assert answer_to(address) == b""


def test_a_body_that_does_not_come_is_given_up_with_a_sentence(address):
    head = b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    answer = answer_to(address, head, b"who=ada&")
    assert answer.startswith(b"HTTP/1.1 408 ") and b"too slow" in answer


def test_a_whole_request_is_answered_however_it_is_cut(address):
    answer = answer_to(address, b"GET /login HT", b"TP/1.1\r\nHost: x\r\n", b"Connection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_body_that_trickles_is_given_up(monkeypatch):
    monkeypatch.setattr(security, "too_slow", lambda received, seconds: received > 2)
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message):
        sent.append(message)

    async def app(scope, receive, send):
        while True:
            await receive()

    scope = {"type": "http", "path": "/login", "headers": [(b"transfer-encoding", b"chunked")], "method": "POST"}
    with pytest.raises(security.TooSlowError):
        asyncio.run(security.BodyLimit(app, upload_mb=1, uploads_at=["/submit"])(scope, receive, send))
