"""The web side of safety: headers, forms, cookies, sizes, and where one is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import text
from starlette.testclient import TestClient

from fieldmark.web.security import POLICY, SESSION_COOKIE
from fieldmark_challenge.people import accounts, rates, teams
from fieldmark_challenge.records.schema import Submission
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text


@pytest.fixture
def client(small_platform: Platform) -> Iterator[TestClient]:
    with TestClient(create_app(small_platform.database, small_platform.storage), follow_redirects=False) as made:
        made.platform = small_platform
        yield made


def csrf_of(client: TestClient, path: str) -> str:
    return re.search(r'name="csrf" value="([0-9a-f]+)"', client.get(path).text)[1]


def sign_in(client: TestClient, name: str):
    form = {"who": name, "password": PASSWORD, "csrf": csrf_of(client, "/login")}
    return client.post("/login", data=form)


def test_every_answer_carries_the_headers(client: TestClient):
    for path in ("/", "/login", "/nothing", "/api/v1/me", "/api/openapi.json", "/static/nothing"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
        assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin" and "server" not in headers
    assert client.get("/").headers["cache-control"] == "no-store"


def test_pages_hold_nothing_that_the_policy_would_block(client: TestClient):
    for path in ("/", "/login", "/register", "/reset", "/c/tiny", "/c/tiny/data", "/c/tiny/board"):
        page = client.get(path).text
        assert not re.search(
            r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=|<style|javascript:|https?://(?!www\.w3\.org)", page
        )


def test_cookies_are_closed_to_scripts_and_other_sites(client: TestClient):
    client.platform.person("ada")
    cookie = sign_in(client, "ada").headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie and "Secure" not in cookie
    secure = create_app(client.platform.database, client.platform.storage, public_url="https://challenge.example.org")
    with TestClient(secure, base_url="https://testserver") as other:
        answer = sign_in(other, "ada")
    assert "Secure" in answer.history[0].headers["set-cookie"]
    assert "max-age" in answer.headers["strict-transport-security"]


def test_a_new_session_at_every_sign_in(client: TestClient):
    client.platform.person("ada")
    client.cookies.set(SESSION_COOKIE, "planted-by-somebody-else")
    sign_in(client, "ada")
    first = [cookie.value for cookie in client.cookies.jar if cookie.name == SESSION_COOKIE]
    assert accounts.session_user(client.platform.database, "planted-by-somebody-else") is None
    assert any(accounts.session_user(client.platform.database, value) for value in first)


@pytest.mark.parametrize("kind", ["no token", "another's token", "another origin", "no cookie"])
def test_forms_from_elsewhere_are_refused(client: TestClient, kind):
    platform = client.platform
    platform.person("ada")
    sign_in(client, "ada")
    token, headers = csrf_of(client, "/account"), {}
    if kind == "no token":
        token = ""
    elif kind == "another's token":
        with TestClient(client.app) as other:
            token = csrf_of(other, "/login")
    elif kind == "another origin":
        headers = {"origin": "https://evil.example"}
    else:
        client.cookies.clear()
    answer = client.post(
        "/account/tokens", data={"csrf": token, "name": "x1", "scopes": "read", "days": 9}, headers=headers
    )
    expected = 303 if kind == "no cookie" else 403
    assert answer.status_code == expected
    with platform.database.read() as session:
        assert session.query(accounts.ApiToken).count() == 0


def test_every_form_is_guarded(client: TestClient):
    """No POST route of the pages works without the token of the browser."""
    from fieldmark_challenge_tests.site.routes_table import TABLE

    sign_in(client, "admin")
    for route in TABLE:
        verb, _, path = route.partition(" ")
        if verb == "POST" and not path.startswith("/api/"):
            for name in ("slug", "token"):
                path = path.replace(f"{{{name}}}", "tiny")
            path = re.sub(r"\{\w+\}", "1", path)
            assert client.post(path, data={}).status_code == 403, route


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil", "javascript:1"]
)
def test_nobody_is_sent_elsewhere(client: TestClient, target):
    client.platform.person("ada")
    form = {"who": "ada", "password": PASSWORD, "csrf": csrf_of(client, "/login"), "next": target}
    assert client.post("/login", data=form).headers["location"] == "/"


def test_guessing_is_slowed_down_whatever_a_client_claims_to_be(client: TestClient):
    client.platform.person("ada")
    form = {"who": "ada", "password": "wrong", "csrf": csrf_of(client, "/login")}
    tries = [
        client.post("/login", data=form, headers={"x-forwarded-for": f"10.0.0.{number}"}).status_code
        for number in range(rates.SIGN_IN.limit + 1)
    ]
    assert tries == [400] * rates.SIGN_IN.limit + [429]
    refused = client.post("/login", data={**form, "password": PASSWORD})
    assert refused.status_code == 429 and SESSION_COOKIE not in refused.headers.get("set-cookie", "")


def test_asking_for_a_reset_link_tells_nothing_and_leaves_no_link_in_the_log(client: TestClient, caplog):
    client.platform.person("ada")
    caplog.set_level("DEBUG")
    form = {"who": "ada", "csrf": csrf_of(client, "/reset")}
    answers = [
        client.post("/reset", data=form | {"who": who}, headers={"host": "evil.example"}) for who in ("ada", "no")
    ]
    assert answers[0].status_code == answers[1].status_code == 200 and answers[0].text == answers[1].text
    assert "/reset/" not in caplog.text and "evil.example" not in caplog.text


def test_what_goes_wrong_in_the_database_is_logged_without_what_was_sent(client: TestClient):
    with (
        pytest.raises(Exception, match="hidden due to hide_parameters") as caught,
        client.platform.database.write() as session,
    ):
        session.execute(text("SELECT nothing_there WHERE :secret = 1"), {"secret": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_requests_are_cut_off_at_their_limit(client: TestClient):
    client.platform.person("ada")
    big = b"x" * (2 << 20)
    assert client.post("/login", content=big).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(64):
            yield b"x" * (1 << 16)

    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/login", content=endless(), headers=kind).status_code == 413


def test_a_participant_walks_through_the_pages(client: TestClient):
    """Register, accept, make a team, upload a bad file, read its error, upload a good one."""
    form = {"name": "Ada", "email": "ada@example.org", "password": PASSWORD, "csrf": csrf_of(client, "/register")}
    assert client.post("/register", data=form).status_code == 303
    token = csrf_of(client, "/account")
    assert client.post("/c/tiny/rules", data={"csrf": token, "accept": "yes"}).status_code == 303
    assert client.post("/c/tiny/team", data={"csrf": token, "name": "<script>alert(1)</script>"}).status_code == 303
    page = client.get("/c/tiny/team").text
    assert "<script>alert" not in page and "&lt;script&gt;" in page
    bad = {"run": ("run.csv", run_text().replace("i2,c", "i2,zebra"))}
    answer = client.post("/c/tiny/submit", data={"csrf": token, "title": "first", "external": "no"}, files=bad)
    assert (
        answer.status_code == 422 and "zebra" in answer.text and "4" in answer.text and 'value="first"' in answer.text
    )
    good = client.post("/c/tiny/submit", data={"csrf": token, "external": "no"}, files={"run": ("run.csv", run_text())})
    assert good.status_code == 303
    where = good.headers["location"].partition("?")[0]
    status = client.get(f"{where}/status").json()
    assert status["state"] == "queued" and status["position"] == 1
    assert client.get(where).status_code == 200
    assert client.get(f"{where}/file").text == run_text()
    assert client.get(f"{where}/file").headers["content-disposition"].startswith("attachment")


def test_an_organizer_walks_through_the_forms(client: TestClient):
    from fieldmark_challenge_tests.platform import truth_text

    sign_in(client, "admin")
    token = csrf_of(client, "/account")
    form = {
        "csrf": token, "slug": "second", "title": "Second", "benchmark": "folder", "public_share": "0.4", "seed": "1",
        "starts": "2026-01-01T00:00", "ends": "2036-01-01T00:00", "daily": "3", "total": "9", "published": "yes",
    }  # fmt: skip
    wrong = client.post("/organize/new", data=form, files={"truth": ("t.csv", "id,name\n")})
    assert wrong.status_code == 400 and "expected a column" in wrong.text and "/tmp" not in wrong.text
    hasty = client.post("/organize/new", data=form, files={"truth": ("t.csv", truth_text())})
    assert hasty.status_code == 409 and "offers no data" in hasty.text
    made = client.post("/organize/new", data=form | {"published": ""}, files={"truth": ("t.csv", truth_text())})
    assert made.headers["location"].startswith("/c/second/organize")
    base = "/c/second/organize"
    assert 'name="without_data"' in client.get(base).text
    assert client.post(f"{base}/publish", data={"csrf": token, "published": "yes"}).status_code == 409
    meant = {"csrf": token, "published": "yes", "without_data": "yes"}
    assert client.post(f"{base}/publish", data=meant).status_code == 303
    phase = {
        "csrf": token,
        "name": "late",
        "starts": "2036-01-01T00:00",
        "ends": "2037-01-01T00:00",
        "daily": 1,
        "total": 2,
    }
    assert client.post(f"{base}/phases", data=phase).status_code == 303
    assert client.post(f"{base}/phases", data=phase | {"ends": "2035-01-01T00:00"}).status_code == 400
    baseline = client.post(
        f"{base}/baselines", data={"csrf": token, "title": "all right"}, files={"run": ("r.csv", run_text())}
    )
    assert baseline.status_code == 303
    assert client.post(f"{base}/freeze", data={"csrf": token}).status_code == 303
    early = client.post(f"{base}/reveal", data={"csrf": token})
    assert early.status_code == 409 and "still open" in early.text
    assert client.post(f"{base}/unfreeze", data={"csrf": token}).status_code == 303
    added = client.post(f"{base}/data", data={"csrf": token, "about": "x"}, files={"file": ("more.csv", "a,b\n")})
    assert added.status_code == 303
    audit = client.get(f"{base}/audit").text
    assert all(word in audit for word in ("challenge.create", "phase.set", "board.freeze", "baseline.add", "data.add"))
    exported = client.get(f"{base}/export.json").json()
    assert [row["kind"] for row in exported["submissions"]] == ["baseline"]


@pytest.mark.parametrize("number", ["0", "-1", str(2**31), str(2**63), "9" * 30])
def test_numbers_that_no_row_has_are_nothing_there(client: TestClient, number):
    client.platform.person("admin")
    sign_in(client, "admin")
    for path in (f"submissions/{number}", f"submissions/{number}/file", f"data/{number}", f"entries/{number}"):
        assert client.get(f"/c/tiny/{path}").status_code == 404
    csrf = csrf_of(client, "/c/tiny/organize")
    assert client.post(f"/c/tiny/organize/phases/{number}", data={"csrf": csrf}).status_code == 404


def test_text_with_a_nul_character_and_numbers_beyond_measure_are_refused(client: TestClient):
    sign_in(client, "admin")
    csrf = csrf_of(client, "/c/tiny/organize")
    answer = client.post("/c/tiny/organize/organizers", data={"who": "a\0b", "csrf": csrf})
    assert answer.status_code == 400 and "NUL character" in answer.text
    phase = {"name": "late", "starts": "2027-01-01T00:00", "ends": "2027-02-01T00:00", "total": "9", "csrf": csrf}
    answer = client.post("/c/tiny/organize/phases", data={**phase, "daily": str(2**40)})
    assert answer.status_code == 400 and "expected a whole number from 0 to" in answer.text
    assert client.get("/c/ti%00ny").status_code == 404


def test_answers_to_faults_carry_the_headers_as_well(small_platform: Platform, monkeypatch):
    def broken(*args: object, **options: object) -> None:
        raise OverflowError

    monkeypatch.setattr("fieldmark_challenge.people.rights.visible_challenges", broken)
    made = create_app(small_platform.database, small_platform.storage)
    with TestClient(made, raise_server_exceptions=False) as server:
        answer = server.get("/")
    assert answer.status_code == 500 and answer.headers["content-security-policy"] == POLICY
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("who", "path"), [("ada", "/c/tiny/organize/rescore"), ("ada", "/organize/new"), ("ada", "/c/none/submit")]
)
def test_rights_are_checked_before_a_body_is_read(client: TestClient, monkeypatch, who, path):
    async def reads(*args: object, **options: object) -> None:
        raise AssertionError("the body was read")

    client.platform.person(who)
    sign_in(client, who)
    monkeypatch.setattr("starlette.requests.Request._get_form", reads)
    assert client.post(path, data={"csrf": "x"}).status_code == 404


def test_a_run_that_says_it_is_too_large_or_comes_too_often_is_not_read(client: TestClient, monkeypatch):
    async def reads(*args: object, **options: object) -> None:
        raise AssertionError("the body was read")

    user = client.platform.captain("ada")
    sign_in(client, "ada")
    secret = accounts.make_token(client.platform.database, user, "shell", ["submit"])
    bearer = {"authorization": f"Bearer {secret}"}
    monkeypatch.setattr("starlette.requests.Request._get_form", reads)
    large = {"content-length": str(client.platform.challenge.max_upload_mb * (1 << 20) + (2 << 20))}
    for path, headers in (("/c/tiny/submit", {}), ("/api/v1/challenges/tiny/submissions", bearer)):
        assert client.post(path, content=b"x", headers=headers | large).status_code == 413
    monkeypatch.setattr(rates, "UPLOAD", rates.Rate("upload", 0, 3600))
    for path, headers in (("/c/tiny/submit", {}), ("/api/v1/challenges/tiny/submissions", bearer)):
        assert client.post(path, content=b"x", headers=headers).status_code == 429


@pytest.mark.parametrize(("state", "offered"), [("failed", True), ("refused", False)])
def test_scoring_again_is_offered_where_it_can_work(client: TestClient, state, offered):
    run = client.platform.hand_in(client.platform.captain("ada"))
    with client.platform.database.write() as session:
        session.get_one(Submission, run.id).state = state
    sign_in(client, "admin")
    page = client.get("/c/tiny/organize/submissions").text
    assert (f"/submissions/{run.id}/retry" in page) == offered
    csrf = csrf_of(client, "/c/tiny/organize")
    answer = client.post(f"/c/tiny/organize/submissions/{run.id}/retry", data={"csrf": csrf})
    assert answer.status_code == (303 if offered else 409)


def test_no_page_offers_a_form_to_those_who_may_not_use_it(client: TestClient):
    platform = client.platform
    captain, member = platform.captain("ada"), platform.person("bob")
    teams.accept_rules(platform.database, member, platform.challenge)
    teams.join(platform.database, member, teams.invite(platform.database, captain, platform.team(captain)))
    link = f"/join/{teams.invite(platform.database, captain, platform.team(captain))}"

    def forms(name: str, *paths: str) -> set[str]:
        sign_in(client, name)
        found = [re.findall(r'<form method="post" action="([^"]+)"', client.get(path).text) for path in paths]
        return {action for actions in found for action in actions} - {"/logout"}

    pages = ("/c/tiny", "/c/tiny/team", "/c/tiny/submit", "/c/tiny/submissions", link)
    assert forms("admin", *pages) == set()
    assert "organize#baselines" in client.get("/c/tiny/team").text
    assert 'href="/c/tiny/submit"' not in client.get("/c/tiny").text
    assert forms("bob", "/c/tiny/team") == {"/c/tiny/team/leave"}
    assert forms("ada", "/c/tiny/team") >= {"/c/tiny/team/leave", "/c/tiny/team/invite"}
    platform.hand_in(captain)
    assert "/c/tiny/team/leave" not in forms("ada", "/c/tiny/team")  # she hands the team over first
    assert "/c/tiny/team/leave" in forms("bob", "/c/tiny/team")
    assert "members who leave cannot join another team" in client.get("/c/tiny/team").text


def test_what_is_wrong_with_a_baseline_is_listed_with_its_lines(client: TestClient):
    sign_in(client, "admin")
    form = {"csrf": csrf_of(client, "/c/tiny/organize"), "title": "broken"}
    wrong = run_text().replace("i1,", "nobody,")
    page = client.post("/c/tiny/organize/baselines", data=form, files={"run": ("run.csv", wrong)})
    assert page.status_code == 422 and "line 3" in page.text and "nobody" in page.text
