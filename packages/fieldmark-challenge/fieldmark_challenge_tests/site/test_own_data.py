"""One's own data: all of it and nothing that opens an account; and an account that is deleted."""

from __future__ import annotations

import io
import json
import re
import zipfile

import pytest
from sqlalchemy import select
from starlette.testclient import TestClient

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.boards import visibility
from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.people import accounts, deletion, teams
from fieldmark_challenge.records.schema import Acceptance, AuditEvent, Base, Challenge, Insider, Membership, Team, User
from fieldmark_challenge.site import own_data
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge_tests.boards.test_visibility import score_all
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text


def test_every_table_that_names_people_is_exported_or_left_out_on_purpose():
    naming = {
        table.name
        for table in Base.metadata.sorted_tables
        if any(key.column.table.name == "users" for key in table.foreign_keys)
    }
    assert naming - set(own_data.LEFT_OUT) == set(own_data.TABLES)
    for name, (_, shown) in own_data.TABLES.items():
        assert not {column for column in shown if re.search(r"hash|secret|data$|detail$|log$|path", column)}, name


def test_an_export_holds_what_is_ones_own_and_no_secret(small_platform: Platform):
    platform = small_platform
    ada, bea = platform.captain("ada"), platform.captain("bea")
    platform.hand_in(ada, run_text(right=40), title="mine", method="by hand")
    platform.hand_in(bea, run_text(right=30), title="not mine")
    score_all(platform, right=[40, 30])
    token = accounts.make_token(platform.database, ada, "shell", ["read"])
    accounts.make_reset(platform.database, "ada")
    client = TestClient(create_app(platform.database, platform.storage), follow_redirects=False)
    client.cookies.set(SESSION_COOKIE, accounts.sign_in(platform.database, "ada", PASSWORD)[1])
    answer = client.get("/account/export.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["data.json", "runs/1-run.csv", "README.txt"]
        assert archive.read("runs/1-run.csv").decode() == run_text(right=40)
        data = json.loads(archive.read("data.json"))
    assert data["account"]["email"] == "ada@example.org" and data["account"]["name_look"]
    assert [(team["name"], team["captain"]) for team in data["teams"]] == [("team ada", True)]
    assert [(run["title"], run["method"], set(run["scores"])) for run in data["runs"]] == [
        ("mine", "by hand", {"public"})
    ]
    assert {event["action"] for event in data["records"]["audit_events"]} >= {"team.make", "submission.accept"}
    told = json.dumps(data)
    with platform.database.read() as session:
        user = session.get_one(User, ada.id)
        assert user.password_hash not in told and accounts.hashed(token) not in told and "not mine" not in told
    headers = {"authorization": f"Bearer {token}"}
    assert set(client.get("/api/v1/me/export", headers=headers).json()) == set(data)


def test_a_deleted_account_is_forgotten_and_its_results_stay(platform: Platform):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    for user, right in ((ada, 50), (bea, 40)):
        platform.hand_in(user, run_text(right=right), title=f"{right} right")
    score_all(platform, right=[50, 40])
    cookie = accounts.sign_in(platform.database, "ada", PASSWORD)[1]
    token = accounts.make_token(platform.database, ada, "shell", ["read"])
    client = TestClient(create_app(platform.database, platform.storage), follow_redirects=False)
    client.cookies.set(SESSION_COOKIE, cookie)
    csrf = client.app.state.guard.token_for(cookie)
    form = {"csrf": csrf, "sure": "yes", "rename_teams": "yes", "password": "wrong wrong"}
    assert client.post("/account/delete", data=form | {"csrf": "no"}).status_code == 403
    assert client.post("/account/delete", data=form).status_code == 400
    assert client.post("/account/delete", data=form | {"password": PASSWORD}).headers["location"] == "/?done=deleted"
    assert accounts.session_user(platform.database, cookie) is None
    assert accounts.token_user(platform.database, token) is None
    with pytest.raises(RefusalError, match="rong name or password"):
        accounts.sign_in(platform.database, f"deleted account {ada.id}", "!")
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        board = visibility.board_of(session, visibility.look(challenge, "public", manages=False))
        team = session.query(Team).filter_by(id=1).one()
        assert [row.entrant.team for row in board.rows] == [f"team {team.id}", "team bea"]
        assert session.query(Acceptance).filter_by(user_id=ada.id).count() == 1
        assert session.get_one(Membership, (team.id, ada.id)).left_at is not None
        for table in Base.metadata.sorted_tables:
            for row in session.execute(select(table)).mappings():
                text = " ".join(str(value) for value in row.values())
                assert "ada@example.org" not in text and not re.search(r"\bada\b", text), (table.name, text)
    again = accounts.register(platform.database, "ada", "ada@example.org", PASSWORD)  # the name is free
    teams.accept_rules(platform.database, again, platform.challenge)
    with pytest.raises(ConflictError, match="once is enough"):
        teams.make_team(platform.database, again, platform.challenge, "second try")
    platform.people["ada"] = again
    platform.captain("ada", platform.make("another"))  # elsewhere they are as new as anybody
    with pytest.raises(RefusalError, match="deleted"):
        accounts.set_disabled(platform.database, platform.admin, ada.id, False)


def test_what_others_need_is_settled_before_an_account_goes(small_platform: Platform):
    platform = small_platform
    with pytest.raises(RefusalError, match="last admin"):
        deletion.delete_own(platform.database, platform.admin, PASSWORD, rename_teams=False)
    owner = platform.person("owner", role="organizer")
    mine = platform.make("mine", owner=owner)
    with pytest.raises(RefusalError, match="owns mine"):
        deletion.delete_own(platform.database, owner, PASSWORD, rename_teams=False)
    helper = platform.person("helper")
    challenge_settings.add_organizer(platform.database, owner, mine, "helper")
    challenge_settings.give_away(platform.database, owner, mine, helper.id)
    deletion.delete_own(platform.database, owner, PASSWORD, rename_teams=False)
    with platform.database.read() as session:
        assert session.get_one(Challenge, mine.id).owner_id == helper.id
        assert session.get(Insider, (mine.id, owner.id)) is not None
        noted = session.query(AuditEvent).filter_by(challenge_id=mine.id).all()
        assert all("owner" not in (event.actor, event.subject, *event.details.values()) for event in noted)
    ada = platform.captain("ada")
    bob = platform.person("bob")
    teams.accept_rules(platform.database, bob, platform.challenge)
    teams.join(platform.database, bob, teams.invite(platform.database, ada, platform.team(ada)))
    platform.hand_in(bob)
    deletion.delete_own(platform.database, ada, PASSWORD, rename_teams=True)
    assert platform.team(bob).captain_id == bob.id and platform.team(bob).name == "team ada"  # bob's as well
