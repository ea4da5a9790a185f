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

from fieldmark.challenge.people import accounts, teams
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import ApiToken, Challenge, DataFile, Invitation, Submission
from fieldmark.challenge.records.storage import Storage
from fieldmark.challenge.running import organizing
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.scoring.score_parts import score_parts, truth_files
from fieldmark.challenge.site.app import create_app
from fieldmark.challenge.site.security import SESSION_COOKIE
from tests.challenge.conftest import KINDS, administer
from tests.challenge.platform import PASSWORD, House, open_house, run_text
from tests.challenge.site.routes_table import LAST, MANAGERS, ROLES, TABLE

CANARY = "zebra-canary"


@dataclass
class Street:
    """A server with one person of each role, the objects of one team, and those of a challenge elsewhere."""

    house: House
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
            form = {"csrf": self.app.state.guard._token(base), "accept": "yes"}
        return client.request(verb, path, data=form)


@pytest.fixture(scope="module", params=KINDS)
def street(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("street")
    if request.param == "sqlite":
        shutil.copyfile(request.getfixturevalue("empty_sqlite"), folder / "platform.sqlite")
        url = f"sqlite:///{folder / 'platform.sqlite'}"
    else:
        server, template = request.getfixturevalue("postgresql"), request.getfixturevalue("empty_postgresql")
        administer(server, f"CREATE DATABASE street TEMPLATE {template}")
        url = f"{server}/street"
    house = open_house(Database(url), Storage(folder / "files"), folder)
    for name in ("stranger", "former"):
        house.person(name)
    for name in ("member", "rival"):
        house.captain(name)
    for name in ("elsewhere", "organizer"):
        house.person(name, role="organizer")
    organizing.add_organizer(house.database, house.admin, house.challenge, "organizer")
    team, former = house.team(house.people["member"]), house.people["former"]
    teams.accept_rules(house.database, former, house.challenge)
    teams.join(house.database, former, teams.invite(house.database, house.people["member"], team))
    teams.leave(house.database, former, house.challenge)
    draft = house.make("draft", owner=house.people["elsewhere"], published=False)
    own = _objects(house, "member", house.challenge)
    house.captain("lodger", draft)
    foreign = _objects(house, "lodger", draft)
    own["user_id"], foreign["user_id"] = house.people["organizer"].id, house.people["rival"].id
    helper = house.person("helper")
    organizing.add_organizer(house.database, house.admin, house.challenge, "helper")
    with house.database.read() as session:
        files = session.query(DataFile).filter_by(challenge_id=house.challenge.id).order_by(DataFile.id).all()
    spare: dict[str, object] = {"user_id": helper.id, "file_id": files[-1].id}
    assert spare["file_id"] != own["file_id"]
    own["token"] = teams.invite(house.database, house.people["member"], team)
    cookies, tokens = {}, {}
    for role in ROLES[1:]:
        user = house.people[role]
        cookies[role] = accounts.sign_in(house.database, user.name, PASSWORD)[1]
        tokens[role] = accounts.make_token(house.database, user, "all", accounts.SCOPES)
    with house.database.read() as session:
        newest = session.query(ApiToken).filter_by(user_id=house.people["member"].id).one()
    own["token_id"] = newest.id
    yield Street(house, create_app(house.database, house.storage), cookies, tokens, own, foreign, spare)
    house.database.close()


@contextmanager
def copied(street: Street, folder: Path, role: str) -> Iterator[None]:
    """The street once more, to be changed at will."""
    house, kept = street.house, (street.house.database, street.house.storage)
    house.database.close()  # its connections; it opens new ones when it is asked again
    url = house.database.url
    if house.database.is_sqlite:
        for path in Path(url.database).parent.glob("platform.sqlite*"):
            shutil.copyfile(path, folder / path.name)
        copy = Database(f"sqlite:///{folder / 'platform.sqlite'}")
    else:
        server = url.render_as_string(hide_password=False).rpartition("/")[0]
        administer(server, f"CREATE DATABASE street_{role} TEMPLATE street")
        copy = Database(f"{server}/street_{role}")
    street.app.state.database = copy
    street.app.state.storage = Storage(shutil.copytree(house.storage.root, folder / "files"))
    try:
        yield
    finally:
        copy.close()
        street.app.state.database, street.app.state.storage = kept


def _objects(house: House, name: str, challenge: Challenge) -> dict[str, object]:
    """A scored submission, an invitation, a phase and a file."""
    user = house.people[name]
    run = house.hand_in(user, run_text(right=40), challenge=challenge, title=CANARY, method=CANARY)
    claimed = queue.claim(house.database, "w")
    truth = house.storage.fetch_folder(challenge.truth_path, house.folder / challenge.slug)
    (house.folder / "run.csv").write_text(run_text(right=40))
    queue.finish(house.database, claimed, score_parts("folder", house.folder / "run.csv", truth_files(truth)))
    with house.database.read() as session:
        mine = session.get_one(Challenge, challenge.id)
        team = session.get_one(Submission, run.id).team
        phase = mine.phases[0].id
        file = session.query(DataFile).filter_by(challenge_id=challenge.id).first().id
    teams.invite(house.database, user, team)
    with house.database.read() as session:
        invitation = session.query(Invitation).filter_by(team_id=team.id, used_at=None).one().id
    return {
        "slug": challenge.slug,
        "submission_id": run.id,
        "number": run.id,
        "entry": run.id,
        "table": "parts.csv",
        "invitation_id": invitation,
        "phase_id": phase,
        "file_id": file,
    }


def all_routes(app: FastAPI) -> set[str]:
    def walk(routes, prefix: str) -> Iterator[str]:
        for route in routes:
            if hasattr(route, "original_router"):
                yield from walk(route.original_router.routes, prefix + route.include_context.prefix)
            for verb in (getattr(route, "methods", None) or set()) - {"HEAD"}:
                yield f"{verb} {prefix}{route.path}"

    return set(walk(app.routes, ""))


def is_denied(role: str, route: str, answer) -> bool:
    """The one way in which nothing is given away: the same answer whether or not there is something."""
    if role == "anonymous" and "/api/" in route:
        return answer.status_code == 401
    if role == "anonymous" and answer.status_code == 303:
        return answer.headers["location"].startswith("/login")
    return answer.status_code == 404


def test_every_route_has_a_line_in_the_table(street: Street):
    assert all_routes(street.app) == set(TABLE)


@pytest.mark.parametrize("role", ROLES)
def test_who_may_not_is_told_nothing(street: Street, role):
    for route, allowed in TABLE.items():
        if role not in allowed:
            answer = street.ask(role, route, street.own)
            assert is_denied(role, route, answer), (role, route, answer.status_code)
            assert CANARY not in answer.text


@pytest.mark.parametrize("role", ROLES)
def test_a_challenge_that_is_not_published_is_not_there(street: Street, role):
    for route in TABLE:
        if "{slug}" in route and role not in ("elsewhere", "admin"):
            answer = street.ask(role, route, street.foreign)
            assert is_denied(role, route, answer), (role, route, answer.status_code)
            assert "draft" not in answer.text and CANARY not in answer.text


@pytest.mark.parametrize("role", ["member", *sorted(MANAGERS)])
def test_objects_of_another_challenge_are_not_reached_by_way_of_ones_own(street: Street, role):
    ids = ("submission_id", "number", "entry", "invitation_id", "phase_id", "file_id", "user_id")
    for route in TABLE:
        named = [name for name in ids if f"{{{name}}}" in route]
        if "{slug}" in route and named:
            for values in ({**street.foreign, "slug": street.own["slug"]}, {**street.own, named[0]: 999_999}):
                answer = street.ask(role, route, values)
                assert answer.status_code == 404, (role, route, answer.status_code)


@pytest.mark.parametrize("role", ROLES)
def test_who_may_is_let_in(street: Street, role, tmp_path):
    gets = [route for route in TABLE if route.startswith("GET")]
    order = [*gets, *(route for route in TABLE if route not in (*gets, *LAST)), *LAST]
    with copied(street, tmp_path, role):
        for route in (route for route in order if role in TABLE[route]):
            values = street.own | (street.spare if route.startswith("DELETE") else {})
            answer = street.ask(role, route, values)
            if "/reset/{token}" in route:
                assert answer.status_code == 404  # the secret of an invitation is no reset link
                continue
            told = (role, route, answer.status_code, answer.text[-800:])
            assert answer.status_code < 500 and answer.status_code not in (401, 403, 404), told
            if route.startswith("GET"):
                assert answer.status_code in (200, 409), told
            assert not answer.headers.get("location", "").startswith("/login"), told


def test_a_token_reaches_no_further_than_its_scopes(street: Street):
    user = street.house.people["organizer"]
    secret = accounts.make_token(street.house.database, user, "look only", ["read"])
    client = TestClient(street.app)
    headers = {"authorization": f"Bearer {secret}"}
    assert client.get("/api/v1/challenges/tiny", headers=headers).status_code == 200
    for verb, path in (("POST", "submissions"), ("POST", "freeze"), ("GET", "queue"), ("GET", "audit")):
        assert client.request(verb, f"/api/v1/challenges/tiny/{path}", headers=headers).status_code == 404
    run = f"/api/v1/challenges/tiny/submissions/{street.own['submission_id']}"
    assert client.get(run, headers=headers).status_code == 404
    private = "/api/v1/challenges/tiny/board?part=private"
    assert client.get(private, headers=headers).status_code == 404
    more = accounts.make_token(street.house.database, user, "look and organize", ["read", "organize"])
    may = {"authorization": f"Bearer {more}"}
    assert client.get(private, headers=may).status_code == 200
    assert set(client.get(run, headers=may).json()["scores"]) == {"public", "private"}
    with street.house.database.read() as session:
        token = session.query(ApiToken).filter_by(name="look only").one()
        assert secret not in (token.token_hash, token.shown) and token.used_at is not None
    accounts.revoke_token(street.house.database, user, token.id)
    assert client.get("/api/v1/me", headers=headers).status_code == 401


def test_private_scores_are_nowhere_before_they_are_revealed(street: Street):
    with street.house.database.read() as session:
        run = session.get_one(Submission, street.own["submission_id"])
        private = next(row for row in run.scores if row.part == "private")
        public = next(row for row in run.scores if row.part == "public")
    told = {f"{private.value:.4f}"[:6], f"{100 * private.value:.1f}"} - {f"{100 * public.value:.1f}"}
    for role in ("anonymous", "stranger", "rival", "member"):
        for route in TABLE:
            if route.startswith("GET") and role in TABLE[route]:
                for query in ("", "?part=private"):
                    answer = street.ask(role, route + query, street.own)
                    if answer.status_code == 200 and "{token}" not in route:
                        assert not any(text in answer.text for text in told), (role, route)
                        assert '"private": {' not in answer.text


def test_the_api_is_described(street: Street):
    described = TestClient(street.app).get("/api/openapi.json").json()
    paths = {f"{verb.upper()} {path}" for path, verbs in described["paths"].items() for verb in verbs}
    assert paths == {route for route in TABLE if "/api/v1/" in route}
    upload = described["paths"]["/api/v1/challenges/{slug}/submissions"]["post"]
    assert "multipart/form-data" in upload["requestBody"]["content"]
