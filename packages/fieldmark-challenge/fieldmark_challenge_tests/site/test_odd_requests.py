"""Requests that no browser sends: each gets an answer that says what is wrong, and never a fault of ours."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError
from starlette.datastructures import FormData
from starlette.testclient import TestClient

from fieldmark.web.refusals import RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges.offered_files import add_data_file
from fieldmark_challenge.people import accounts
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.web.forms import moment_of
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text

HUGE = "x" * 200_000
BODY = '--edge\r\nContent-Disposition: form-data; name="{name}"{rest}\r\n\r\n{content}\r\n--edge--\r\n'


@pytest.fixture
def client(small_platform: Platform) -> Iterator[TestClient]:
    app = create_app(small_platform.database, small_platform.storage)
    token = accounts.make_token(small_platform.database, small_platform.captain("ada"), "shell", accounts.SCOPES)
    headers = {"authorization": f"Bearer {token}"}
    with TestClient(app, raise_server_exceptions=False, headers=headers, follow_redirects=False) as made:
        made.cookies.set(SESSION_COOKIE, accounts.sign_in(small_platform.database, "ada", PASSWORD)[1])
        yield made


SUBMIT = "/api/v1/challenges/tiny/submissions"


def send(client: TestClient, body: str | bytes, kind: str = "multipart/form-data; boundary=edge"):
    return client.post(SUBMIT, content=body, headers={"content-type": kind})


@pytest.mark.parametrize(
    ("name", "rest"),
    [("run", f'; filename="{HUGE}"'), (HUGE, ""), ("run", f"\r\nX-Long: {HUGE}"), ("run", "; filename*=klingon''x")],
)
def test_fields_with_endless_or_strange_headers_are_refused(client: TestClient, name, rest):
    answer = send(client, BODY.format(name=name, rest=rest, content=run_text()))
    assert 400 <= answer.status_code < 500 or answer.status_code == 201
    assert answer.status_code == 201 or answer.json()["error"]


@pytest.mark.parametrize("charset", ["klingon", "utf-16", "rot13", "base64", "idna", "undefined"])
def test_forms_in_strange_alphabets_are_refused(client: TestClient, charset):
    kind = f"multipart/form-data; boundary=edge; charset={charset}"
    answer = send(client, BODY.format(name="title", rest="", content="Ünïcode").encode("utf-8"), kind)
    assert 400 <= answer.status_code < 500, answer.text


@pytest.mark.parametrize("header", [HUGE, f"id,{HUGE}", f'"{HUGE}'])
def test_a_run_with_an_endless_header_is_refused_with_its_line(client: TestClient, header):
    answer = client.post(
        "/api/v1/challenges/tiny/submissions", data={"external": "no"}, files={"run": ("run.csv", f"{header}\ni1,a\n")}
    )
    assert answer.status_code == 422 and answer.json()["problems"]


def test_a_run_may_begin_with_two_letters_of_a_zip_archive(client: TestClient):
    answer = client.post(
        "/api/v1/challenges/tiny/submissions",
        data={"external": "no"},
        files={"run": ("run.csv", "PK,predicted\ni1,a\n")},
    )
    assert "zip" not in answer.text and answer.json()["problems"][0]["line"] == 1


def test_a_sample_that_is_no_text_does_not_break_the_form(client: TestClient, small_platform: Platform, tmp_path):
    (tmp_path / "sample").write_bytes(b"id,predicted\n\xff\xfe\x00,\x81\n")
    database, storage = small_platform.database, small_platform.storage
    sample = (database, storage, small_platform.admin, small_platform.challenge, tmp_path / "sample")
    add_data_file(*sample, "sample_run.csv")
    assert client.get("/c/tiny/submit").status_code == 200


def test_a_database_that_is_down_is_said_to_be(client: TestClient, monkeypatch):
    def down(*_: object, **__: object):
        raise OperationalError("SELECT secret", {"password": "hunter2"}, sqlite3.OperationalError("unable to open"))

    monkeypatch.setattr(type(client.app.state.database), "read", down)
    for path in ("/", "/api/v1/me"):
        answer = client.get(path)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert "hunter2" not in answer.text


def test_a_full_disk_is_said_to_be(client: TestClient, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Storage, "put", full)
    answer = client.post(
        "/api/v1/challenges/tiny/submissions", data={"external": "no"}, files={"run": ("run.csv", run_text())}
    )
    assert answer.status_code == 507 and "disk is full" in answer.json()["error"]


def test_a_moment_before_the_first_year_is_refused(client: TestClient, small_platform: Platform):
    """In its own time zone it is in the year 1, in UTC in the year before, which is none."""
    token = accounts.make_token(small_platform.database, small_platform.admin, "shell", accounts.SCOPES)
    form = {"name": "late", "starts_at": "2026-01-01T00:00:00Z", "ends_at": "0001-01-01T00:00:00+04:19"}
    headers = {"authorization": f"Bearer {token}"}
    answer = client.post("/api/v1/challenges/tiny/phases", data=form, headers=headers)
    assert answer.status_code == 422 and "years 1 to 9999" in answer.json()["error"]
    with pytest.raises(RefusalError, match="expected a date and time"):
        moment_of(FormData({"ends": "0001-01-01T00:00:00+04:19"}), "ends", "End")
