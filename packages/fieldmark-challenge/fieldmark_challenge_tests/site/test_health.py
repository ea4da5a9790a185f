"""What those who run a server ask it: is it there, can it work, what has it done."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.site.health import Readiness
from fieldmark_challenge.site.measurements import platform_lines
from fieldmark_challenge.submissions import uploads
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.test_program_queue import ask_for_programs

HERE = ("127.0.0.1", 5000)


@pytest.fixture
def readiness(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> Readiness:
    """What is asked anew each time, however long the machine takes; checkers are tried elsewhere."""
    monkeypatch.setattr(uploads.CHECKERS, "ready", lambda: None)
    return Readiness(platform.database, platform.storage, Stopping(), wait_s=60, kept_s=-1)


def test_a_server_is_ready_when_a_worker_is_heard_of(platform: Platform, readiness: Readiness):
    assert readiness.ask()["workers"] == "no worker is there"
    heartbeats.give_sign(platform.database, "w")
    assert set(readiness.ask().values()) == {"ok"}
    with platform.database.write() as session:
        session.execute(text("UPDATE worker_signs SET seen_at = '2026-01-01 00:00:00+00:00'"))
    assert "no worker was heard of for" in readiness.ask()["workers"]
    heartbeats.give_sign(platform.database, "w")
    assert heartbeats.alive(platform.database) == ["w"]
    heartbeats.sign_off(platform.database, "w")
    assert heartbeats.alive(platform.database) == []


def test_programs_need_a_worker_of_their_own_where_they_are_asked_for(platform: Platform, readiness: Readiness):
    heartbeats.give_sign(platform.database, "w")
    assert readiness.ask()["code_workers"] == "ok"  # nobody asks for programs
    ask_for_programs(platform)
    assert readiness.ask()["code_workers"] == "no worker that runs programs is there"
    platform.set_phase(ends_at=utc_now())
    assert readiness.ask()["code_workers"] == "ok"
    platform.set_phase(ends_at=utc_now() + dt.timedelta(days=1))
    heartbeats.give_sign(platform.database, "c", "code")
    assert set(readiness.ask().values()) == {"ok"}
    assert (heartbeats.alive(platform.database), heartbeats.alive(platform.database, "code")) == (["w"], ["c"])
    lines = platform_lines(platform.database)
    assert {"fieldmark_workers 1", "fieldmark_code_workers 1", 'fieldmark_programs{state="queued"} 0'} <= set(lines)
    heartbeats.sign_off(platform.database, "w")
    assert readiness.ask()["workers"] == "no worker is there" and readiness.ask()["code_workers"] == "ok"


def test_what_does_not_work_is_named_with_503(small_platform: Platform, tmp_path):
    (tmp_path / "a file").write_text("no folder can be made in it")
    gone = Database("postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
    app = create_app(small_platform.database, small_platform.storage)
    app.state.readiness = Readiness(gone, Storage(tmp_path / "a file/store"), Stopping(), wait_s=60)
    answer = TestClient(app).get("/readyz?without=checkers")
    assert answer.status_code == 503 and not answer.json()["ready"]
    assert answer.json()["checks"]["database"] == "the database does not answer"
    assert answer.json()["checks"]["storage"].startswith("it does not work")
    assert "secret" not in answer.text
    assert TestClient(app).get("/healthz").text == "ok\n"
    gone.close()


def test_a_process_that_ends_is_not_ready(small_platform: Platform, monkeypatch):
    monkeypatch.setattr(uploads.CHECKERS, "ready", lambda: None)
    stopping = Stopping()
    readiness = Readiness(small_platform.database, small_platform.storage, stopping)
    assert "process" not in readiness.ask()
    stopping.begin()
    assert readiness.ask()["process"] == "it is about to end"


def test_measurements_are_for_the_machine_and_for_those_who_know_the_token(small_platform: Platform):
    app = create_app(small_platform.database, small_platform.storage, metrics_token="a long secret")
    assert TestClient(app, client=HERE).get("/metrics").status_code == 200
    assert TestClient(app, client=("::1", 1)).get("/metrics").status_code == 200
    for client, headers in (
        (("10.0.0.7", 1), {}),
        (("10.0.0.7", 1), {"authorization": "Bearer another"}),
        (HERE, {"x-forwarded-for": "8.8.8.8"}),  # somebody else, by way of a proxy on this machine
        (HERE, {"forwarded": "for=8.8.8.8"}),
    ):
        assert TestClient(app, client=client).get("/metrics", headers=headers).status_code == 404
    token = {"authorization": "Bearer a long secret"}
    assert TestClient(app, client=("10.0.0.7", 1)).get("/metrics", headers=token).status_code == 200
    without = create_app(small_platform.database, small_platform.storage)
    answer = TestClient(without, client=("10.0.0.7", 1)).get("/metrics", headers={"authorization": "Bearer "})
    assert answer.status_code == 404


def test_measurements_count_by_pattern_and_name_nobody(small_platform: Platform):
    small_platform.hand_in(small_platform.captain("ada"))
    client = TestClient(create_app(small_platform.database, small_platform.storage), client=HERE)
    for path in ("/c/tiny", "/c/tiny?x=1", "/reset/Zq8-secret-of-a-link", "/no/such", "/healthz"):
        client.get(path)
    client.request("BREW", "/c/tiny")
    told = client.get("/metrics").text
    assert 'fieldmark_requests_total{method="GET",route="/c/{slug}",status="200"} 2' in told
    assert 'route="unmatched",status="404"' in told and 'method="other"' in told
    assert 'fieldmark_mails{state="waiting"} 0' in told
    assert 'fieldmark_submissions{state="queued"} 1' in told and "fieldmark_workers 0" in told
    assert "Zq8" not in told and "ada" not in told and "tiny" not in told
    for line in told.splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) .+|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? -?[0-9.e+]+', line), line
    counts = dict(re.findall(r'fieldmark_request_seconds_bucket\{kind="page",le="([^"]+)"\} (\d+)', told))
    assert list(map(int, counts.values())) == sorted(map(int, counts.values()))
    assert f'fieldmark_request_seconds_count{{kind="page"}} {counts["+Inf"]}' in told
