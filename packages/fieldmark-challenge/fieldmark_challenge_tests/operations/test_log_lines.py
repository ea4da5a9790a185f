"""Lines of the log: readable by programs, traceable to a request, and without secrets."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator

import pytest
from starlette.testclient import TestClient

from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.operations.log_lines import JsonLines, PlainLines
from fieldmark_challenge.people import accounts
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import PASSWORD, Platform

Lines = Callable[[], list[str]]


@pytest.fixture(params=[JsonLines, PlainLines])
def lines(request: pytest.FixtureRequest) -> Iterator[Lines]:
    """What the log says, in each form."""
    sink, root = io.StringIO(), logging.getLogger()
    handler = logging.StreamHandler(sink)
    handler.setFormatter(request.param())
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield lambda: sink.getvalue().splitlines()
    root.removeHandler(handler)
    root.setLevel(level)


def test_no_secret_of_a_request_is_in_the_log(small_platform: Platform, lines: Lines):
    platform = small_platform
    app = create_app(platform.database, platform.storage, access_log=True)
    ada = platform.person("ada")
    session = accounts.sign_in(platform.database, "ada", PASSWORD)[1]
    token = accounts.make_token(platform.database, ada, "shell", ["read"])
    link = accounts.make_reset(platform.database, "ada")
    client = TestClient(app, raise_server_exceptions=False)
    client.get(f"/reset/{link}")
    client.get(f"/reset/{link}/")
    client.get(f"/join/{link}?token={token}")
    client.get(f"/nothing/here?code={token}&password=hunter2")
    client.get(f"/{token}")
    client.get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
    client.cookies.set(SESSION_COOKIE, session)
    client.get("/c/tiny")
    client.get("/c/%0aINFO a forged line%0a")
    told = "\n".join(lines())
    assert len(lines()) >= 8
    for secret in (session, token, link, "hunter2", PASSWORD):
        assert secret not in told
    assert "GET /reset/..." in told and "GET /c/tiny 200" in told
    assert not any(line.startswith("INFO a forged") for line in lines())


def test_a_fault_is_found_by_the_number_that_its_page_shows(small_platform: Platform, monkeypatch):
    sink = io.StringIO()
    handler = logging.StreamHandler(sink)
    handler.setFormatter(JsonLines())
    logging.getLogger().addHandler(handler)

    def stumble(*_: object, **__: object) -> None:
        raise RuntimeError("postgresql://me:hunter2@db/x said no")

    monkeypatch.setattr("fieldmark_challenge.people.rights.open_challenge", stumble)
    monkeypatch.setattr("fieldmark_challenge.boards.pages.rights.open_challenge", stumble)
    app = create_app(small_platform.database, small_platform.storage)
    answer = TestClient(app, raise_server_exceptions=False).get("/c/tiny/board")
    logging.getLogger().removeHandler(handler)
    number = answer.headers["x-request-id"]
    assert answer.status_code == 500 and f"logged under the number {number}" in answer.text
    told = [json.loads(line) for line in sink.getvalue().splitlines()]
    fault = next(line for line in told if line.get("request") == number)
    assert fault["level"] == "error" and "RuntimeError" in fault["error"] and "hunter2" not in fault["error"]


def test_a_line_of_json_says_who_asked_for_what(small_platform: Platform, lines: Lines):
    app = create_app(small_platform.database, small_platform.storage, access_log=True)
    ada = small_platform.person("ada")
    session = accounts.sign_in(small_platform.database, "ada", PASSWORD)[1]
    answer = TestClient(app, cookies={SESSION_COOKIE: session}).get("/c/tiny?x=1")
    (line,) = (line for line in lines() if "HTTP Request" not in line)  # what the client itself says
    if line.startswith("{"):
        said = json.loads(line)
        assert (said["method"], said["path"], said["route"]) == ("GET", "/c/tiny", "/c/{slug}")
        assert (said["status"], said["user"], said["client"]) == (200, ada.id, "testclient")
        assert said["request"] == answer.headers["x-request-id"] and said["bytes"] == len(answer.content)
    else:
        assert f"[{answer.headers['x-request-id']}]" in line
