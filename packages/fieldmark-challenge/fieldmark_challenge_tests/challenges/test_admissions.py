"""Who may take part: by approval, by code, in private, and a class at once."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from fieldmark.cli.main import app
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooOftenError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import admissions
from fieldmark_challenge.people import accounts, classrooms, rates, rights, rosters, teams
from fieldmark_challenge.records.participation import Admission, EntryCode
from fieldmark_challenge.records.schema import Challenge, DataFile, User
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.platform import PASSWORD, Platform
from fieldmark_challenge_tests.submissions.test_submissions import parallel


def set_access(platform: Platform, access: str) -> Challenge:
    with platform.database.write() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        challenge.access = access
    return challenge


def visible(platform: Platform, user: User | None) -> list[str]:
    with platform.database.read() as session:
        return [one.slug for one in rights.visible_challenges(session, user)]


def test_a_code_lets_so_many_people_in_and_no_more_also_all_at_once(platform: Platform):
    challenge = set_access(platform, "private")
    people = [platform.person(f"pupil{number}") for number in range(6)]
    code = admissions.make_code(platform.database, platform.admin, challenge, uses=3)

    def enter(number: int) -> bool:
        try:
            return admissions.use_code(platform.database, people[number], code.lower().replace("-", " ")) is not None
        except RefusalError:
            return False

    assert sum(parallel(6, enter)) == 3
    inside = [user for user in people if visible(platform, user)]
    assert len(inside) == 3 and visible(platform, None) == []
    assert (
        admissions.use_code(
            platform.database, inside[0], admissions.make_code(platform.database, platform.admin, challenge)
        ).slug
        == "tiny"
    )  # who is in spends nothing
    with platform.database.read() as session:
        assert [one.used for one in session.query(EntryCode).order_by(EntryCode.id)] == [3, 0]
        assert code not in {one.code_hash for one in session.query(EntryCode)}


def test_who_was_refused_stays_out_whatever_they_have(small_platform: Platform):
    platform = small_platform
    ada, eve = platform.captain("ada"), platform.captain("eve")
    challenge = set_access(platform, "approval")
    admissions.decide(platform.database, platform.admin, challenge, "eve", admit=False)
    code = admissions.make_code(platform.database, platform.admin, challenge, uses=9)
    with pytest.raises(ConflictError, match="decided"):
        admissions.use_code(platform.database, eve, code)
    with pytest.raises(ConflictError, match="decided"):
        platform.hand_in(eve)
    platform.hand_in(ada)  # in a team since before
    bob = platform.person("bob")
    with pytest.raises(ConflictError, match="ask them"):
        teams.accept_rules(platform.database, bob, challenge)
    admissions.ask(platform.database, bob, challenge, "a student of fungi")
    with pytest.raises(ConflictError, match="already asked"):
        admissions.ask(platform.database, bob, challenge, "")
    with pytest.raises(ConflictError, match="yet to decide"):
        teams.accept_rules(platform.database, bob, challenge)
    admissions.decide(platform.database, platform.admin, challenge, "bob@example.org", admit=True)
    platform.captain("bob", challenge)
    with pytest.raises(ConflictError, match="cannot take part in"):
        admissions.use_code(platform.database, platform.admin, code)


def test_a_captain_lets_nobody_into_a_private_challenge(small_platform: Platform):
    platform = small_platform
    ada, bob = platform.captain("ada"), platform.person("bob")
    link = teams.invite(platform.database, ada, platform.team(ada))
    challenge = set_access(platform, "private")
    client = TestClient(create_app(platform.database, platform.storage), follow_redirects=False)
    client.cookies.set(SESSION_COOKIE, accounts.sign_in(platform.database, "bob", PASSWORD)[1])
    assert client.get(f"/join/{link}").status_code == 404 and "tiny" not in client.get(f"/join/{link}").text
    with pytest.raises(NotThereError):
        teams.join(platform.database, bob, link)
    code = admissions.make_code(platform.database, platform.admin, challenge)
    token = re.search(r'name="csrf" value="(\w+)"', client.get(f"/enter/{code}").text).group(1)
    assert client.post("/enter", data={"csrf": token, "code": "AAAA"}).status_code == 400
    entered = client.post("/enter", data={"csrf": token, "code": code})
    assert entered.headers["location"] == "/c/tiny?done=admitted" and client.get("/c/tiny").status_code == 200
    with platform.database.read() as session:
        file = session.query(DataFile).first()
    assert client.get(f"/c/tiny/data/{file.id}").status_code == 409  # the rules come first
    teams.accept_rules(platform.database, bob, challenge)
    teams.join(platform.database, bob, link)
    admissions.decide(platform.database, platform.admin, challenge, "bob", admit=False)
    for path in ("/c/tiny", f"/c/tiny/data/{file.id}", "/c/tiny/board.csv", "/c/tiny/starter-kit.zip"):
        assert client.get(path).status_code == 404, path


def test_a_list_makes_accounts_and_opens_none_that_were_there(platform: Platform):
    challenge = set_access(platform, "invitation")
    platform.person("ada")
    listed = "name,email\nGrace,grace@example.org\nAda again,ADA@example.org\nPupil seven,\n"
    made = rosters.make_accounts(platform.database, platform.admin, challenge, listed)
    assert [(one.name, one.secret is None) for one in made] == [("Grace", False), ("ada", True), ("Pupil seven", False)]
    assert made[2].email.endswith("@accounts.invalid")
    with pytest.raises(RefusalError, match="rong name or password"):
        accounts.sign_in(platform.database, "Grace", "")
    accounts.use_reset(platform.database, made[0].secret, "a new long password")
    grace, _ = accounts.sign_in(platform.database, "Grace", "a new long password")
    platform.people["Grace"] = grace
    platform.captain("Grace", challenge)
    with platform.database.read() as session:
        before = session.query(User).count(), session.query(Admission).count()
    for wrong, sentence in (
        ("name\nNew one\nGrace\n", "Line 3: An account with that name"),
        ("name\nNew two\nNew twO\n", "Line 3: An account with that name"),
        ("name,email\nNew three,nowhere\n", "Line 2: That is not an e-mail"),
        ("who\nNew four\n", "expected the columns"),
        ("name\n", "0 people"),
    ):
        with pytest.raises(RefusalError, match=sentence):
            rosters.make_accounts(platform.database, platform.admin, challenge, wrong)
    with platform.database.read() as session:
        assert (session.query(User).count(), session.query(Admission).count()) == before


def test_a_class_behind_one_address_is_limited_per_account(small_platform: Platform):
    platform = small_platform
    room = classrooms.open_room(platform.database, platform.admin, "203.0.113.0/28", hours=1)
    for _ in range(rates.REGISTER.limit + 5):
        classrooms.count_place(platform.database, rates.REGISTER, "203.0.113.9")
    with pytest.raises(TooOftenError):
        for _ in range(rates.REGISTER.limit + 1):
            classrooms.count_place(platform.database, rates.REGISTER, "198.51.100.1")
    classrooms.end_room(platform.database, platform.admin, room.id)
    with pytest.raises(TooOftenError):
        for _ in range(rates.REGISTER.limit + 1):
            classrooms.count_place(platform.database, rates.REGISTER, "203.0.113.9")
    for wrong, sentence in (("10.0.0.0/8", "wider"), ("here", "expected an address")):
        with pytest.raises(RefusalError, match=sentence):
            classrooms.open_room(platform.database, platform.admin, wrong, hours=1)


def test_the_shell_lets_people_in(small_platform: Platform, tmp_path):
    platform = small_platform

    def say(*words: str) -> str:
        said = CliRunner().invoke(app, ["challenge", *words, "--folder", str(platform.folder)])
        assert said.exit_code == 0, (said.output, said.exception)
        return said.stdout

    say("settings", "tiny", "--access", "private")
    platform.person("ada")
    assert "lets 30 people into tiny within 7 days" in say("invite", "tiny", "--uses", "30", "--days", "7")
    assert re.search(r"ada\s+admitted", say("admissions", "tiny", "--admit", "ada"))
    (tmp_path / "class.csv").write_text("name\nPupil one\nPupil two\n")
    out = tmp_path / "links.csv"
    assert "2 accounts made" in say("accounts", "tiny", str(tmp_path / "class.csv"), "--out", str(out))
    assert out.read_text().count("http://127.0.0.1:8000/reset/") == 2 and out.stat().st_mode & 0o777 == 0o600
    assert "203.0.113.7/32 is a class room until" in say("classroom", "203.0.113.7")


def test_where_registration_is_closed_a_code_opens_it(small_platform: Platform):
    platform = small_platform
    client = TestClient(create_app(platform.database, platform.storage), follow_redirects=False)
    csrf = client.app.state.guard.token_for("a secret of this browser")
    said = CliRunner().invoke(app, ["challenge", "registration", "closed", "--folder", str(platform.folder)])
    assert said.stdout == "registration is closed\n"
    code = admissions.make_code(platform.database, platform.admin, platform.challenge)

    def register(name: str, **more: str) -> int:
        client.cookies.clear()
        client.cookies.set("fieldmark_form", "a secret of this browser")
        form = {"csrf": csrf, "name": name, "email": f"{name}@example.org", "password": PASSWORD, "next": "/"} | more
        return client.post("/register", data=form).status_code

    assert "have a code for a challenge" in client.get("/register").text
    assert [register("ada"), register("ada", code="AAAA"), register("ada", next="/enter/none")] == [409] * 3
    assert [register("ada", code=code), register("bea", next=f"/enter/{code}")] == [303, 303]
    admissions.revoke_code(platform.database, platform.admin, platform.challenge, 1)
    assert register("cyd", code=code) == 409
