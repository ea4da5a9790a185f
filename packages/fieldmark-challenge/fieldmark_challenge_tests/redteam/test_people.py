"""Attacks by people on rules about people: coming back under another number, guessing, and looking around."""

from __future__ import annotations

import datetime as dt
import re

import pytest
from starlette.testclient import TestClient

from fieldmark.web.refusals import ConflictError
from fieldmark.web.security import SESSION_COOKIE
from fieldmark_challenge.challenges import admissions
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.people import accounts, deletion, rates, teams
from fieldmark_challenge.records import clock_guard
from fieldmark_challenge.records.participation import Admission
from fieldmark_challenge.site.app import create_app
from fieldmark_challenge.site.health import Readiness
from fieldmark_challenge_tests.platform import PASSWORD, Platform


def test_a_refused_person_does_not_return_with_a_new_account(attacked: Platform):
    database, admin = attacked.database, attacked.admin
    asking, coded, anybody = (
        attacked.make(f"kept-{access}", access=access) for access in ("approval", "invitation", "open")
    )
    eve = attacked.person("returning")
    admissions.ask(database, eve, asking, "Let me in, I am Eve")
    for challenge in (asking, coded, anybody):
        admissions.decide(database, admin, challenge, "returning", admit=False)
    deletion.delete_account(database, None, eve.id)
    again = accounts.register(database, "somebody else", "returning@example.org", PASSWORD)
    with pytest.raises(ConflictError, match="you do not take part"):
        admissions.ask(database, again, asking, "Hello")
    with pytest.raises(ConflictError, match="you do not take part"):
        admissions.use_code(database, again, admissions.make_code(database, admin, coded))
    with pytest.raises(ConflictError, match="you do not take part"):
        teams.accept_rules(database, again, anybody)
    with database.read() as session:
        kept = session.query(Admission).filter_by(user_id=eve.id).all()
        assert [(one.state, one.note) for one in kept] == [("refused", "")] * 3  # what she wrote is forgotten
    other = accounts.register(database, "an honest one", "honest@example.org", PASSWORD)
    admissions.ask(database, other, asking, "Hello")
    admissions.decide(database, admin, anybody, "somebody else", admit=True)  # organizers may think better of it
    teams.accept_rules(database, again, anybody)


def test_the_old_password_is_not_guessed_and_a_new_one_ends_all_tokens(attacked: Platform):
    eve = attacked.person("guessed")
    token = accounts.make_token(attacked.database, eve, "shell", ["read"])
    link = accounts.make_reset(attacked.database, "guessed")
    with TestClient(create_app(attacked.database, attacked.storage), follow_redirects=False) as client:
        client.cookies.set(SESSION_COOKIE, accounts.sign_in(attacked.database, "guessed", PASSWORD)[1])
        csrf = re.search(r'name="csrf" value="([0-9a-f]+)"', client.get("/account").text)[1]

        def change(old: str) -> int:
            form = {"old": old, "new": "another long password", "csrf": csrf}
            return client.post("/account/password", data=form).status_code

        codes = [change(f"guess number {number}") for number in range(rates.SIGN_IN.limit - 1)]
        assert set(codes) == {400} and accounts.token_user(attacked.database, token) is not None
        assert change(PASSWORD) == 303
        assert change("another long password") == 429  # the right one as well: it would tell
    assert accounts.token_user(attacked.database, token) is None
    assert not accounts.reset_is_valid(attacked.database, link)


def test_the_page_for_monitors_names_no_challenge_that_not_everybody_sees(attacked: Platform, monkeypatch):
    attacked.make("hush-hush", access="private")
    attacked.make("all-see")
    monkeypatch.setattr(clock_guard, "put_back_by", lambda *_: dt.timedelta(days=3650))
    monkeypatch.setattr("fieldmark_challenge.site.health.put_back_by", lambda *_: dt.timedelta(days=3650))
    said = Readiness(attacked.database, attacked.storage, Stopping(), wait_s=60.0).ask()["clock"]
    assert "all-see" in said and "hush-hush" not in said and re.search(r"1 of challenges that not everybody sees", said)
