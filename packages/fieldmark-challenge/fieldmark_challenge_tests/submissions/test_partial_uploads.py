"""Uploads in parts: what was acknowledged stays, what is not sent on goes, and the end is like any other upload."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from fieldmark.web import client as submitting_client
from fieldmark.web import upload_client
from fieldmark.web.client import Client, PlatformRefusalError
from fieldmark.web.upload_client import InterruptedUploadError
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records import backup
from fieldmark_challenge.records.orphans import collect_orphans
from fieldmark_challenge.records.schema import Challenge, Submission, utc_now
from fieldmark_challenge.records.upload_schema import PartialUpload
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.site.server import Platform as OpenPlatform
from fieldmark_challenge.site.server import tidy_up
from fieldmark_challenge.submissions import partial_uploads
from fieldmark_challenge_tests.listening import listening
from fieldmark_challenge_tests.platform import Platform, run_text

BASE = "/api/v1/challenges/tiny/uploads"
PART = 64 << 10
# A right run of three parts and a bit: blank lines after it count for nothing.
RUN = (run_text() + "\n" * (3 * PART)).encode()


class Sender:
    """Somebody with a token, at a server."""

    def __init__(self, platform: Platform, name: str = "ada", app: Any = None) -> None:
        self.platform, self.user = platform, platform.people.get(name) or platform.captain(name)
        token = accounts.make_token(platform.database, self.user, "shell", accounts.SCOPES)
        app = app or create_app(platform.database, platform.storage)
        self.client = TestClient(app, headers={"authorization": f"Bearer {token}"}, raise_server_exceptions=False)

    def begin(self, content: bytes = RUN, **changes: Any) -> httpx.Response:
        about = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "filename": "run.csv"}
        return self.client.post(BASE, data=about | changes)

    def send(self, upload: str, start: int, content: bytes) -> httpx.Response:
        headers = {"upload-offset": str(start), "content-type": "application/offset+octet-stream"}
        return self.client.patch(f"{BASE}/{upload}", headers=headers, content=content)

    def send_all(self, upload: str, content: bytes = RUN) -> None:
        for start in range(0, len(content), PART):
            assert self.send(upload, start, content[start : start + PART]).status_code == 204

    def finish(self, upload: str, **fields: str) -> httpx.Response:
        return self.client.post(f"{BASE}/{upload}/finish", data={"external": "no", **fields})


def stored_parts(platform: Platform) -> list[str]:
    return [path for path in platform.storage.everything() if path.startswith("parts/")]


def test_a_file_in_parts_becomes_a_run_like_any_other(platform: Platform):
    ada = Sender(platform)
    begun = ada.begin()
    upload = begun.json()["id"]
    assert begun.status_code == 201 and begun.headers["location"] == f"{BASE}/{upload}"
    assert ada.client.head(f"{BASE}/{upload}").headers["upload-offset"] == "0"
    assert ada.send(upload, 0, RUN[:PART]).headers["upload-offset"] == str(PART)
    for start, part in ((0, RUN[:PART]), (2 * PART, RUN[:PART])):  # sent before, and too soon
        refused = ada.send(upload, start, part)
        assert refused.status_code == 409 and refused.headers["upload-offset"] == str(PART)
    assert ada.finish(upload).status_code == 409
    other = Sender(platform, app=ada.client.app)  # another connection goes on, knowing nothing but the file
    (listed,) = other.client.get(BASE).json()
    assert (listed["id"], listed["received"], listed["sha256"]) == (upload, PART, hashlib.sha256(RUN).hexdigest())
    for start in range(PART, len(RUN), PART):
        assert other.send(upload, start, RUN[start : start + PART]).status_code == 204
    head = other.client.head(f"{BASE}/{upload}").headers
    assert head["upload-offset"] == head["upload-length"] == str(len(RUN)) and len(stored_parts(platform)) == 4
    done = other.finish(upload, title="in parts", external="no")
    assert done.status_code == 201 and done.json()["title"] == "in parts" and done.json()["state"] == "queued"
    assert ada.finish(upload).json()["id"] == done.json()["id"]  # asked once more: the same
    assert stored_parts(platform) == [] and other.client.get(BASE).json() == []
    run = platform.submission(done.json()["id"])
    assert b"".join(platform.storage.chunks(run.path)) == RUN and run.sha256 == hashlib.sha256(RUN).hexdigest()
    with platform.database.read() as session:
        assert session.query(Submission).count() == 1
    assert platform.quota(ada.user).used == 1


def test_a_run_with_mistakes_is_refused_with_its_lines_and_costs_nothing(small_platform: Platform):
    ada = Sender(small_platform)
    wrong = RUN.replace(b"i7,", b"zz,", 1)
    upload = ada.begin(wrong).json()["id"]
    ada.send_all(upload, wrong)
    answer = ada.finish(upload)
    assert answer.status_code == 422 and answer.json()["problems"][0]["line"] == 9
    assert stored_parts(small_platform) == [] and small_platform.quota(ada.user).used == 0
    assert ada.client.get(f"{BASE}/{upload}").status_code == 404


def test_what_arrives_must_be_what_was_announced(small_platform: Platform):
    ada = Sender(small_platform)
    upload = ada.begin().json()["id"]
    ada.send_all(upload, RUN[:-1] + b"x")
    answer = ada.finish(upload)
    assert answer.status_code == 409 and "SHA-256 differs" in answer.json()["error"]
    assert stored_parts(small_platform) == [] and ada.client.get(BASE).json() == []


IMPOSSIBLE = (
    ({"size": 0}, 400, "empty"),
    ({"sha256": "x" * 64}, 400, "SHA-256"),
    ({"size": (1 << 20) + 1}, 413, "larger than 1 MiB"),
    ({"size": 1 << 60}, 422, "size"),
    ({"size": "much"}, 422, "size"),
)


def test_an_upload_that_cannot_be_is_refused_before_a_byte_is_sent(small_platform: Platform):
    with small_platform.database.write() as session:
        session.get_one(Challenge, small_platform.challenge.id).max_upload_mb = 1
    ada = Sender(small_platform)
    for changes, status, sentence in IMPOSSIBLE:
        answer = ada.begin(**changes)
        assert answer.status_code == status and sentence in answer.json()["error"], changes


def test_parts_are_neither_crumbs_nor_more_than_was_announced(small_platform: Platform):
    ada = Sender(small_platform)
    upload = ada.begin().json()["id"]
    assert ada.send(upload, 0, b"x" * 100).status_code == 400
    assert ada.send(upload, 0, b"").status_code == 400
    assert ada.send(upload, 0, RUN + b"x").status_code == 413
    assert ada.client.patch(f"{BASE}/{upload}", content=iter([RUN, RUN])).status_code == 413  # says no size
    assert ada.client.patch(f"{BASE}/{upload}", headers={"upload-offset": "-1"}).status_code == 422
    assert stored_parts(small_platform) == [] and ada.client.get(f"{BASE}/{upload}").json()["received"] == 0


def test_of_parts_that_come_at_once_one_is_taken(platform: Platform):
    ada = Sender(platform)
    upload = ada.begin().json()["id"]
    ada.client.get("/login")  # the application is built
    statuses = []
    threads = [
        threading.Thread(target=lambda: statuses.append(ada.send(upload, 0, RUN[:PART]).status_code)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [204, *[409] * 5] and len(stored_parts(platform)) == 1


def test_one_person_has_so_much_under_way_and_no_more(platform: Platform, monkeypatch):
    ada, eve = Sender(platform), Sender(platform, "eve")
    begun = [ada.begin() for _ in range(partial_uploads.UNFINISHED)]
    assert [one.status_code for one in begun] == [201] * partial_uploads.UNFINISHED
    full = ada.begin()
    assert full.status_code == 429 and "unfinished uploads" in full.json()["error"] and "retry-after" in full.headers
    assert eve.begin().status_code == 201
    upload = begun[0].json()["id"]
    for verb, path in (("GET", ""), ("HEAD", ""), ("PATCH", ""), ("POST", "/finish"), ("DELETE", "")):  # not Eve's
        assert eve.client.request(verb, f"{BASE}/{upload}{path}").status_code == 404
    ada.send(upload, 0, RUN[:PART])
    assert ada.client.delete(f"{BASE}/{upload}").status_code == 200 and stored_parts(platform) == []
    assert ada.begin().status_code == 201
    monkeypatch.setattr(partial_uploads, "UNFINISHED", 100)
    monkeypatch.setattr(partial_uploads, "UNFINISHED_MB", 0)
    assert ada.begin().status_code == 429
    monkeypatch.setattr(partial_uploads, "UNFINISHED_MB", 100)
    eager = ada.begin().json()["id"]
    monkeypatch.setattr(partial_uploads, "ALL_UNFINISHED_MB", 0)  # what is announced takes no room, what is sent does
    assert ada.begin().status_code == 201
    assert ada.send(eager, 0, RUN[:PART]).status_code == 503 and stored_parts(platform) == []


def test_what_nobody_sends_on_is_collected(small_platform: Platform, tmp_path):
    platform, ada = small_platform, Sender(small_platform)
    upload = ada.begin().json()["id"]
    ada.send(upload, 0, RUN[:PART])
    counts = backup.backup(platform.database, platform.storage, tmp_path / "all.zip")
    assert counts["files"] == len(platform.storage.everything()) - 1 and "partial_uploads" not in counts
    platform.storage.put(Path(__file__), f"parts/{upload}/lost")  # its server was killed before it could note it
    assert collect_orphans(platform.database, platform.storage, young=dt.timedelta()) == [f"parts/{upload}/lost"]
    assert ada.send(upload, PART, RUN[PART : 2 * PART]).status_code == 204
    with platform.database.write() as session:
        session.query(PartialUpload).update({"expires_at": utc_now() - dt.timedelta(seconds=1)})
    assert ada.client.get(f"{BASE}/{upload}").status_code == 404
    assert ada.send(upload, 2 * PART, RUN[2 * PART : 3 * PART]).status_code == 404
    tidy_up(OpenPlatform(platform.database, platform.storage))
    assert stored_parts(platform) == []
    with platform.database.read() as session:
        assert session.query(PartialUpload).count() == 0


def test_an_upload_counts_from_its_beginning_but_not_for_longer_than_others(small_platform: Platform):
    platform, ada = small_platform, Sender(small_platform)
    upload = ada.begin().json()["id"]
    ada.send_all(upload)
    now = utc_now()
    platform.set_phase(starts_at=now - dt.timedelta(days=1), ends_at=now - dt.timedelta(minutes=1))
    with platform.database.write() as session:  # begun two minutes ago, when the phase was open
        session.get_one(PartialUpload, upload).created_at = now - dt.timedelta(minutes=2)
    done = ada.finish(upload)
    assert done.status_code == 201 and done.json()["accepted_at"] < (now - dt.timedelta(minutes=1)).isoformat()
    assert ada.begin().status_code == 409
    platform.set_phase(ends_at=now + dt.timedelta(days=1))
    second = ada.begin().json()["id"]
    ada.send_all(second)
    platform.set_phase(ends_at=now - dt.timedelta(minutes=20))
    with platform.database.write() as session:  # an hour ago: too long
        session.get_one(PartialUpload, second).created_at = now - dt.timedelta(hours=1)
    assert ada.finish(second).status_code == 409


# Imports everything once, and then starts servers at once, each in a process that can be killed.
NURSERY = """
import os, signal, sys
import uvicorn
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    database, files, port = line.split()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        sys.stdin.close()
        uvicorn.run(create_app(Database(database), Storage(files)), port=int(port), log_level="critical")
        os._exit(0)
    print(child, flush=True)
"""


class Server:
    """A server in a process of its own."""

    def __init__(self, nursery: subprocess.Popen[str], platform: Platform) -> None:
        self.nursery, self.process = nursery, 0
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        url = platform.database.url.render_as_string(hide_password=False)
        self.line = f"{url} {platform.storage.root} {self.port}\n"

    def start(self) -> None:
        self.nursery.stdin.write(self.line)
        self.nursery.stdin.flush()
        self.process = int(self.nursery.stdout.readline())
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/login", timeout=60)
                return
            except httpx.ConnectError:
                os.kill(self.process, 0)  # it lives
                time.sleep(0.05)

    def kill(self) -> None:
        if self.process:
            os.kill(self.process, signal.SIGKILL)
        self.process = 0


@pytest.fixture(scope="module")
def nursery() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", NURSERY]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    yield process
    process.stdin.close()
    process.wait()


def served_here(platform: Platform, port: int = 0) -> AbstractContextManager[int]:
    """The same in a thread of this process, whose checkers are warm; gives its port."""
    return listening(create_app(platform.database, platform.storage), port=port)


@pytest.fixture
def server(nursery: subprocess.Popen[str], small_platform: Platform) -> Iterator[Server]:
    one = Server(nursery, small_platform)
    one.start()
    yield one
    one.kill()


def test_a_killed_server_loses_nothing_and_submit_goes_on(small_platform, server, tmp_path, monkeypatch, capsys):
    """The server is killed while parts arrive, twice: once the client waits, once it gives up and is run again."""
    token = accounts.make_token(small_platform.database, small_platform.captain("ada"), "shell", accounts.SCOPES)
    client = Client.of(f"http://127.0.0.1:{server.port}/c/tiny", token)
    run = tmp_path / "run.csv"
    run.write_bytes(RUN)
    monkeypatch.setattr(submitting_client, "IN_PARTS_FROM", 1)
    monkeypatch.setattr(upload_client, "PART_MOST", PART)
    starts: list[int] = []
    kills = {PART: "come back", 3 * PART: "stay away"}

    def watched(verb: str, url: str, **given: Any) -> httpx.Response:
        start = int(given["headers"].get("upload-offset", -1))
        starts.extend([start] if verb == "PATCH" else [])
        if verb == "PATCH" and start in kills:
            pieces = pieces_of(given.pop("content"), server, comes_back=kills.pop(start) == "come back")
            return original(verb, url, content=pieces, **given)
        return original(verb, url, **given)

    original = httpx.request
    monkeypatch.setattr(httpx, "request", watched)
    monkeypatch.setattr(upload_client, "FAILURES", 3)
    monkeypatch.setattr(upload_client, "WAIT_MOST_S", 0.1)
    with pytest.raises(InterruptedUploadError, match="run the same command again"):
        client.hand_in(run, title="in parts")
    # Nothing that was acknowledged was sent again; a server that comes back slowly may be asked more than once.
    assert starts.count(PART) >= 2 and [one for one in starts if one != PART] == [0, 2 * PART, 3 * PART]
    assert starts == sorted(starts)
    before = len(starts)
    with served_here(small_platform, server.port):
        sent = client.hand_in(run, title="in parts")
    assert starts[before:] == [3 * PART] and "going on after" in capsys.readouterr().err
    assert sent["title"] == "in parts" and small_platform.submission(sent["id"]).size == len(RUN)
    assert stored_parts(small_platform) == []


def pieces_of(content: bytes, server: Server, *, comes_back: bool) -> Iterator[bytes]:
    """Half of a part, and then the server is no more."""
    yield content[: len(content) // 2]
    server.kill()
    if comes_back:
        server.start()
    yield content[len(content) // 2 :]


def test_submit_says_what_the_platform_says(small_platform, tmp_path, monkeypatch):
    token = accounts.make_token(small_platform.database, small_platform.captain("ada"), "shell", accounts.SCOPES)
    monkeypatch.setattr(submitting_client, "IN_PARTS_FROM", 1)
    wrong = tmp_path / "wrong.csv"
    wrong.write_bytes(RUN.replace(b"i7,", b"zz,", 1))
    with served_here(small_platform) as port:
        client = Client.of(f"http://127.0.0.1:{port}/c/tiny", token)
        with pytest.raises(PlatformRefusalError, match="line 9"):
            client.hand_in(wrong)
        with small_platform.database.write() as session:
            session.get_one(Challenge, small_platform.challenge.id).max_upload_mb = 0
        with pytest.raises(PlatformRefusalError, match="larger than 0 MiB"):
            client.hand_in(wrong)
