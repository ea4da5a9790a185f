"""Uploads that do not say how large they are, against a server that listens: a limit must hold while they stream."""

from __future__ import annotations

import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from fieldmark.web.security import MIB, SESSION_COOKIE
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.schema import Challenge, Submission
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions.uploads import CHECKERS
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text

HEAD = '--edge\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'
PIECE = b"i1,a\n" * 13_000


@pytest.fixture
def address(small_platform: Platform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A server on a port of its own, whose temporary files lie where they can be counted."""
    CHECKERS.warm_up()  # its folder stays as long as it does
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    with small_platform.database.write() as session:
        session.get_one(Challenge, small_platform.challenge.id).max_upload_mb = 1
    app = create_app(small_platform.database, small_platform.storage)
    with listening(app) as port:
        yield "127.0.0.1", port


def form(file: Iterator[bytes], **fields: str) -> Iterator[bytes]:
    """A form whose last field is a file, piece by piece."""
    for name, value in fields.items():
        yield (HEAD.format(name=name, file="") + value + "\r\n").encode()
    yield HEAD.format(name="run", file='; filename="run.csv"').encode()
    yield from file
    yield b"\r\n--edge--\r\n"


def endless() -> Iterator[bytes]:
    while True:
        yield PIECE


def send_in_chunks(address: tuple[str, int], path: str, pieces: Iterator[bytes], **headers: str) -> tuple[str, int]:
    """Sends until the server answers or there is nothing more: its answer, and how many bytes it was sent."""
    sent = 0
    with socket.create_connection(address, timeout=30) as line:
        given = {"Host": "x", "Transfer-Encoding": "chunked", "Content-Type": "multipart/form-data; boundary=edge"}
        lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**given, **headers}.items())]
        line.sendall("\r\n".join([*lines, "\r\n"]).encode())
        try:
            for piece in pieces:
                line.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                sent += len(piece)
                assert sent < 64 * MIB, "the server takes whatever comes"
            line.sendall(b"0\r\n\r\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has answered and hung up
        answer = b""
        try:
            while piece := line.recv(1 << 16):
                answer += piece
        except ConnectionResetError:
            pass
    return answer.decode(), sent


def left_behind(folder: Path) -> list[str]:
    """Temporary files that are there, or deleted and still open."""
    opened = []
    for one in Path("/proc/self/fd").iterdir():
        try:
            opened.append(str(one.readlink()))
        except OSError:
            continue  # closed while we looked
    return [name for name in opened if name.startswith(str(folder))] + [str(path) for path in folder.rglob("*")]


@pytest.mark.parametrize("by", ["api", "page", "baseline"])
def test_an_endless_upload_is_stopped_at_the_limit_of_the_challenge(small_platform, address, tmp_path, by):
    user = small_platform.admin if by == "baseline" else small_platform.captain("ada")
    if by == "api":
        token = accounts.make_token(small_platform.database, user, "shell", accounts.SCOPES)
        path, fields = "/api/v1/challenges/tiny/submissions", {"external": "no"}
        headers = {"Authorization": f"Bearer {token}"}
    else:
        cookies = {SESSION_COOKIE: accounts.sign_in(small_platform.database, user.name, PASSWORD)[1]}
        path = "/c/tiny/submit" if by == "page" else "/c/tiny/organize/baselines"
        page = httpx.get(f"http://127.0.0.1:{address[1]}{path.removesuffix('/baselines')}", cookies=cookies).text
        fields = {"csrf": re.search(r'name="csrf" value="([0-9a-f]+)"', page)[1], "title": "endless"}
        fields |= {"external": "no"} if by == "page" else {}
        headers = {"Cookie": f"{SESSION_COOKIE}={cookies[SESSION_COOKIE]}"}
    answer, sent = send_in_chunks(address, path, form(endless(), **fields), **headers)
    assert answer.startswith("HTTP/1.1 413 ")
    assert "The file is larger than 1 MiB, the limit of this challenge." in answer
    assert ("application/json" in answer) == (by == "api")
    assert sent < 16 * MIB  # two were read; the rest lies in the buffers of the connection
    assert left_behind(tmp_path / "temporary") == []
    with small_platform.database.read() as session:
        assert session.query(Submission).count() == 0


def test_a_small_upload_in_chunks_is_taken(small_platform, address, tmp_path):
    token = accounts.make_token(small_platform.database, small_platform.captain("ada"), "shell", accounts.SCOPES)
    pieces = form(iter([run_text().encode()]), title="in chunks", external="no")
    path = "/api/v1/challenges/tiny/submissions"
    answer, _ = send_in_chunks(address, path, pieces, Authorization=f"Bearer {token}", Connection="close")
    assert answer.startswith("HTTP/1.1 201 ") and '"title":"in chunks"' in answer
    assert left_behind(tmp_path / "temporary") == []


@pytest.mark.parametrize("path", ["/c/tiny/debug", "/api/v1/challenges/tiny/debug-runs"])
def test_a_program_may_be_larger_than_a_form(small_platform, path):
    from starlette.testclient import TestClient

    client = TestClient(create_app(small_platform.database, small_platform.storage), follow_redirects=False)
    assert client.post(path, content=b"x" * (2 * MIB)).status_code in (303, 401)  # who are you, and not: too large
