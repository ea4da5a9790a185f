"""Every route, for every role, with one's own objects and with those of others: 404 rather than 403."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from fieldmark.scoring.score_parts import score_parts, truth_files
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import admissions, announcements, team_merges
from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.mail.topics import stop_key
from fieldmark_challenge.openid import identities
from fieldmark_challenge.openid.provider_client import Identity
from fieldmark_challenge.openid.providers import read_providers
from fieldmark_challenge.people import accounts, classrooms, teams
from fieldmark_challenge.records.code_schema import Program
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import ApiToken, Challenge, DataFile, Invitation, Submission, utc_now
from fieldmark_challenge.records.storage import Storage
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.submissions import partial_uploads
from fieldmark_challenge_tests.conftest import KINDS, administer
from fieldmark_challenge_tests.platform import PASSWORD, Platform, open_platform, run_text
from fieldmark_challenge_tests.site.routes_table import LAST, MANAGERS, ROLES, TABLE, all_routes

CANARY = "zebra-canary"


@dataclass
class Site:
    """A server with one person of each role, the objects of one team, and those of a challenge elsewhere."""

    platform: Platform
    app: FastAPI
    cookies: dict[str, str]
    tokens: dict[str, str]
    own: dict[str, object]
    foreign: dict[str, object]
    spare: dict[str, object]  # like one's own: what the API deletes after the pages deleted the others

    def ask(self, role: str, route: str, values: dict[str, object], app: FastAPI | None = None):
        """One request, with everything a page would send along."""
        verb, _, path = route.partition(" ")
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", str(value))
        client = TestClient(app or self.app, raise_server_exceptions=False, follow_redirects=False)
        if path.startswith("/api/"):
            token = self.tokens.get(role)
            headers = {"authorization": f"Bearer {token}"} if token else {}
            query = {"first": values["entry"], "second": values["entry"]} if path.endswith("/compare") else {}
            return client.request(verb, path, headers=headers, params=query)
        if role in self.cookies:
            client.cookies.set(SESSION_COOKIE, self.cookies[role])
        form = None
        if verb == "POST":
            base = self.cookies.get(role) or "anonymous-form-secret"
            if role not in self.cookies:
                client.cookies.set("fieldmark_form", base)
            form = {"csrf": self.app.state.guard.token_for(base), "accept": "yes"}
        return client.request(verb, path, data=form)


@pytest.fixture(scope="module", params=KINDS)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("empty_sqlite"), folder / "platform.sqlite")
        url = f"sqlite:///{folder / 'platform.sqlite'}"
    else:
        server, template = request.getfixturevalue("postgresql"), request.getfixturevalue("empty_postgresql")
        administer(server, "DROP DATABASE IF EXISTS site WITH (FORCE)")
        administer(server, f"CREATE DATABASE site TEMPLATE {template}")
        url = f"{server}/site"
    platform = open_platform(Database(url), Storage(folder / "files"), folder)
    for name in ("stranger", "former"):
        platform.person(name)
    for name in ("member", "rival"):
        platform.captain(name)
    for name in ("elsewhere", "organizer"):
        platform.person(name, role="organizer")
    challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "organizer")
    team, former = platform.team(platform.people["member"]), platform.people["former"]
    teams.accept_rules(platform.database, former, platform.challenge)
    teams.join(platform.database, former, teams.invite(platform.database, platform.people["member"], team))
    teams.leave(platform.database, former, platform.challenge)
    draft = platform.make("draft", owner=platform.people["elsewhere"], published=False)
    own = _objects(platform, "member", platform.challenge)
    platform.captain("lodger", draft)
    foreign = _objects(platform, "lodger", draft)
    own["user_id"], foreign["user_id"] = platform.people["organizer"].id, platform.people["rival"].id
    helper = platform.person("helper")
    challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "helper")
    own["heir_id"], foreign["heir_id"] = platform.person("heir").id, platform.people["rival"].id
    challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "heir")
    with platform.database.read() as session:
        files = session.query(DataFile).filter_by(challenge_id=platform.challenge.id).order_by(DataFile.id).all()
    spare: dict[str, object] = {"user_id": helper.id, "file_id": files[-1].id}
    spare["announcement_id"] = int(str(own["announcement_id"])) + 1
    assert spare["file_id"] != own["file_id"]
    with platform.database.write() as session:
        session.get_one(Challenge, platform.challenge.id).merging = True
    offered = (platform.people["rival"], platform.challenge, team.name)
    own["offer_id"], foreign["offer_id"] = team_merges.offer_merge(platform.database, *offered).id, 999_998
    own["token"] = teams.invite(platform.database, platform.people["member"], team)
    cookies, tokens = {}, {}
    for role in ROLES[1:]:
        user = platform.people[role]
        cookies[role] = accounts.sign_in(platform.database, user.name, PASSWORD)[1]
        tokens[role] = accounts.make_token(platform.database, user, "all", accounts.SCOPES)
    with platform.database.read() as session:
        newest = session.query(ApiToken).filter_by(user_id=platform.people["member"].id).one()
    own["token_id"] = newest.id
    own["upload_id"] = partial_uploads.begin(
        platform.database, platform.storage, platform.people["member"], platform.challenge, "run.csv", 9, "0" * 64,
        limit_mb=1, arrived=utc_now(),
    ).id  # fmt: skip
    own["provider"] = "github"
    for name in ("member", "rival"):
        identities.link(platform.database, platform.people[name], Identity("https://github.com", name, name))
    with platform.database.read() as session:
        own["identity_id"] = identities.identities_of(session, platform.people["member"].id)[0].id
    own["key"] = stop_key(platform.database, platform.people["member"].id, "runs")
    github = read_providers({"github": {"client_id": "we", "client_secret": "secret"}}, {}, "the test")
    app = create_app(platform.database, platform.storage, public_url="http://testserver", providers=github)
    yield Site(platform, app, cookies, tokens, own, foreign, spare)
    platform.database.close()


@contextmanager
def copied(site: Site, folder: Path, role: str) -> Iterator[None]:
    """The site copied, to be changed at will."""
    platform, kept = site.platform, (site.platform.database, site.platform.storage)
    platform.database.close()  # its connections; it opens new ones when it is asked again
    url = platform.database.url
    if platform.database.is_sqlite:
        for path in Path(url.database).parent.glob("platform.sqlite*"):
            shutil.copyfile(path, folder / path.name)
        copy = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    else:
        server = url.render_as_string(hide_password=False).rpartition("/")[0]
        administer(server, f"DROP DATABASE IF EXISTS site_{role} WITH (FORCE)")
        administer(server, f"CREATE DATABASE site_{role} TEMPLATE site")
        copy = Database(f"{server}/site_{role}")
    site.app.state.database = copy
    site.app.state.storage = Storage(shutil.copytree(platform.storage.root, folder / "files"))
    try:
        yield
    finally:
        copy.close()
        site.app.state.database, site.app.state.storage = kept


def _objects(platform: Platform, name: str, challenge: Challenge) -> dict[str, object]:
    """A scored submission, an invitation, a code, a phase and a file."""
    announced = [announcements.announce(platform.database, platform.admin, challenge, title, "").id for title in "ab"]
    room = classrooms.open_room(platform.database, platform.admin, "203.0.113.7", hours=1)
    user = platform.people[name]
    run = platform.hand_in(user, run_text(right=40), challenge=challenge, title=CANARY, method=CANARY)
    claimed = queue.claim(platform.database, "w")
    truth = platform.storage.fetch_folder(challenge.truth_path, platform.folder / challenge.slug)
    (platform.folder / "run.csv").write_text(run_text(right=40))
    queue.finish(platform.database, claimed, score_parts("folder", platform.folder / "run.csv", truth_files(truth)))
    with platform.database.read() as session:
        mine = session.get_one(Challenge, challenge.id)
        team = session.get_one(Submission, run.id).team
        phase = mine.phases[0].id
        file = session.query(DataFile).filter_by(challenge_id=challenge.id).first().id
    teams.invite(platform.database, user, team)
    owned = {"challenge_id": challenge.id, "team_id": team.id, "user_id": user.id}
    with platform.database.write() as session:
        tried = Program(filename="p", path="code/p", size=1, sha256="0", state="done", log=CANARY, **owned)
        session.add(tried)
    code = admissions.make_code(platform.database, platform.admin, challenge)
    with platform.database.read() as session:
        code_id = admissions.codes_of(session, challenge)[0].id
        invitation = session.query(Invitation).filter_by(team_id=team.id, used_at=None).one().id
    return {
        "slug": challenge.slug,
        "submission_id": run.id,
        "number": run.id,
        "entry": run.id,
        "table": "parts.csv",
        "team_id": team.id,
        "code": code,
        "code_id": code_id,
        "room_id": room.id,
        "announcement_id": announced[0],
        "invitation_id": invitation,
        "phase_id": phase,
        "program_id": tried.id,
        "file_id": file,
    }


def is_denied(role: str, route: str, answer) -> bool:
    """The one way in which nothing is given away: the same answer whether or not there is something."""
    if role == "anonymous" and "/api/" in route:
        return answer.status_code == 401
    if role == "anonymous" and answer.status_code == 303:
        return answer.headers["location"].startswith("/login")
    return answer.status_code == 404


def test_every_route_has_a_line_in_the_table(site: Site):
    assert all_routes(site.app) == set(TABLE)


@pytest.mark.parametrize("role", ROLES)
def test_who_may_not_is_told_nothing(site: Site, role):
    for route, allowed in TABLE.items():
        if role not in allowed:
            answer = site.ask(role, route, site.own)
            assert is_denied(role, route, answer), (role, route, answer.status_code)
            assert CANARY not in answer.text


@pytest.mark.parametrize("role", ROLES)
def test_a_challenge_that_is_not_published_is_not_there(site: Site, role):
    for route in TABLE:
        if "{slug}" in route and role not in ("elsewhere", "admin"):
            answer = site.ask(role, route, site.foreign)
            assert is_denied(role, route, answer), (role, route, answer.status_code)
            assert "draft" not in answer.text and CANARY not in answer.text


@pytest.mark.parametrize("role", ["anonymous", "rival"])
def test_a_private_challenge_is_not_there_for_those_who_were_not_invited(site: Site, role, tmp_path):
    with copied(site, tmp_path, f"private_{role}"):
        with site.app.state.database.write() as session:
            hosted = session.query(Challenge).filter_by(slug="draft").one()
            hosted.published_at, hosted.access, hosted.title = hosted.created_at, "private", CANARY
        for route in TABLE:
            if "{slug}" in route or route in ("GET /", "GET /api/v1/challenges"):
                answer = site.ask(role, route, site.foreign)
                assert "{slug}" not in route or is_denied(role, route, answer), (role, route, answer.status_code)
                assert CANARY not in answer.text and "draft" not in answer.text, route


@pytest.mark.parametrize("role", ["member", *sorted(MANAGERS)])
def test_objects_of_another_challenge_are_not_reached_by_way_of_ones_own(site: Site, role):
    ids = [name for name in site.foreign if name.endswith("_id") or name in ("number", "entry")]
    for route in TABLE:
        named = [name for name in ids if f"{{{name}}}" in route]
        if "{slug}" in route and named:
            for values in ({**site.foreign, "slug": site.own["slug"]}, {**site.own, named[0]: 999_999}):
                answer = site.ask(role, route, values)
                assert answer.status_code == 404, (role, route, answer.status_code)


@pytest.mark.parametrize("role", ROLES)
def test_who_may_is_let_in(site: Site, role, tmp_path):
    gets = [route for route in TABLE if route.startswith("GET")]
    order = [*gets, *(route for route in TABLE if route not in (*gets, *LAST)), *LAST]
    with copied(site, tmp_path, role):
        for route in (route for route in order if role in TABLE[route]):
            values = site.own | (site.spare if route.startswith("DELETE") else {})
            answer = site.ask(role, route, values)
            if "/sign-on/" in route:
                # To the provider, or back without having been there.
                assert answer.status_code == (303 if route.endswith("{provider}") else 400), (role, route)
                continue
            if "/reset/{token}" in route or "/verify/{token}" in route:
                assert answer.status_code == 404  # the secret of an invitation is no other link
                continue
            if route == "GET /readyz":
                assert answer.json()["checks"].keys() >= {"database", "storage", "checkers", "workers"}
                continue
            told = (role, route, answer.status_code, answer.text[-800:])
            assert answer.status_code < 500 and answer.status_code not in (401, 403, 404), told
            if route.startswith("GET"):
                assert answer.status_code in (200, 409), told
            assert not answer.headers.get("location", "").startswith("/login"), told


def test_a_token_reaches_no_further_than_its_scopes(site: Site):
    user = site.platform.people["organizer"]
    secret = accounts.make_token(site.platform.database, user, "look only", ["read"])
    client = TestClient(site.app)
    headers = {"authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/challenges/tiny", headers=headers).status_code == 200
    for verb, path in (("POST", "submissions"), ("POST", "freeze"), ("GET", "queue"), ("GET", "audit")):
        assert client.request(verb, f"/api/v1/challenges/tiny/{path}", headers=headers).status_code == 404
    run = f"/api/v1/challenges/tiny/submissions/{site.own['submission_id']}"
    assert client.get(run, headers=headers).status_code == 404
    private = "/api/v1/challenges/tiny/board?part=private"
    assert client.get(private, headers=headers).status_code == 404
    more = accounts.make_token(site.platform.database, user, "look and organize", ["read", "organize"])
    may = {"authorization": f"Bearer {more}"}
    assert client.get(private, headers=may).status_code == 200
    assert set(client.get(run, headers=may).json()["scores"]) == {"public", "private"}
    with site.platform.database.read() as session:
        token = session.query(ApiToken).filter_by(name="look only").one()
        assert secret not in (token.token_hash, token.shown) and token.used_at is not None
    accounts.revoke_token(site.platform.database, user, token.id)
    assert client.get("/api/v1/me", headers=headers).status_code == 401


def test_private_scores_are_nowhere_before_they_are_revealed(site: Site):
    with site.platform.database.read() as session:
        run = session.get_one(Submission, site.own["submission_id"])
        private = next(row for row in run.scores if row.part == "private")
        public = next(row for row in run.scores if row.part == "public")
    told = {f"{private.value:.4f}"[:6], f"{100 * private.value:.1f}"} - {f"{100 * public.value:.1f}"}
    for role in ("anonymous", "stranger", "rival", "member"):
        for route in TABLE:
            if route.startswith("GET") and role in TABLE[route]:
                for query in ("", "?part=private"):
                    answer = site.ask(role, route + query, site.own)
                    if answer.status_code == 200 and "{token}" not in route:
                        assert not any(text in answer.text for text in told), (role, route)
                        assert '"private": {' not in answer.text


def test_the_api_is_described(site: Site):
    described = TestClient(site.app).get("/api/openapi.json").json()
    paths = {f"{verb.upper()} {path}" for path, verbs in described["paths"].items() for verb in verbs}
    assert paths == {route for route in TABLE if "/api/v1/" in route}
    upload = described["paths"]["/api/v1/challenges/{slug}/submissions"]["post"]
    assert "multipart/form-data" in upload["requestBody"]["content"]
