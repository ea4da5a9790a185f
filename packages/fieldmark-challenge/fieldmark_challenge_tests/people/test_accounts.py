"""Accounts and teams: secrets that are kept as hashes, links that work once, names that are nobody else's."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import inspect

from fieldmark.web.rates import Rate
from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooOftenError
from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.people import accounts, rates, teams
from fieldmark_challenge.people.names import clean_filename, clean_name
from fieldmark_challenge.records.schema import (
    ApiToken,
    Base,
    Invitation,
    Membership,
    ResetToken,
    User,
    WebSession,
    utc_now,
)
from fieldmark_challenge_tests.platform import PASSWORD, Platform

NEW = "a wholly new password"


@pytest.mark.parametrize(
    ("taken", "tried"),
    [("Ada", " ada "), ("Ada", "ADA"), ("Ada Lovelace", "Ada\u00a0  Lovelace"), ("Ada", "\uff21da")],
)
def test_names_that_look_alike_are_one_name(small_platform: Platform, taken, tried):
    accounts.register(small_platform.database, taken, "one@example.org", PASSWORD)
    with pytest.raises(RefusalError, match="exists"):
        accounts.register(small_platform.database, tried, "two@example.org", PASSWORD)


@pytest.mark.parametrize(
    "name", ["", "x", "a\u202eb", "a\u200bb", "Ad\u0430", "\u041eracle", "...", "n" * 65, "a\x00b"]
)
def test_names_that_deceive_are_refused(name):
    with pytest.raises(RefusalError):
        clean_name(name)


@pytest.mark.parametrize("name", ["Åsa Öberg", "李明", "Мария", "O'Brien-Smith", "Team 7"])
def test_honest_names_are_welcome(name):
    assert clean_name(name)[0] == name


def test_file_names_lose_everything_dangerous():
    assert clean_filename('a";\r\nX: y.csv') == "a_X_y.csv"
    assert clean_filename("../../.ssh/.bashrc") == "bashrc"


def test_no_secret_is_stored_as_it_is(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    secrets = [
        accounts.sign_in(platform.database, "ada", PASSWORD)[1],
        accounts.make_token(platform.database, ada, "one", ["read"]),
        accounts.make_reset(platform.database, "ada"),
        teams.invite(platform.database, ada, platform.team(ada)),
        PASSWORD,
    ]
    with platform.database.read() as session:
        stored = [str(row) for table in Base.metadata.sorted_tables for row in session.execute(table.select())]
        user = session.get_one(User, ada.id)
    assert user.password_hash.startswith("$argon2id$")
    for secret in secrets:
        assert not any(secret in row for row in stored)


def test_a_wrong_password_and_a_wrong_name_sound_the_same(small_platform: Platform):
    small_platform.person("ada")
    sentences = set()
    for who, password in (("ada", "wrong password"), ("nobody", PASSWORD), ("ada@example.org", "")):
        with pytest.raises(RefusalError) as caught:
            accounts.sign_in(small_platform.database, who, password)
        sentences.add(str(caught.value))
    assert len(sentences) == 1
    assert accounts.sign_in(small_platform.database, "ADA@Example.org", PASSWORD)[0].name == "ada"


def test_sessions_end_when_signed_out_changed_disabled_or_old(small_platform: Platform):
    platform, database = small_platform, small_platform.database
    ada = platform.person("ada")
    secrets = [accounts.sign_in(database, "ada", PASSWORD)[1] for _ in range(3)]
    assert len(set(secrets)) == 3
    accounts.sign_out(database, secrets[0])
    assert [accounts.session_user(database, secret) is not None for secret in secrets] == [False, True, True]
    accounts.change_password(database, ada, PASSWORD, NEW, keep=secrets[1])
    assert [accounts.session_user(database, secret) is not None for secret in secrets] == [False, True, False]
    with database.write() as session:
        session.query(WebSession).update({"seen_at": utc_now() - dt.timedelta(days=4)})
    assert accounts.session_user(database, secrets[1]) is None
    kept = accounts.sign_in(database, "ada", NEW)[1]
    accounts.set_disabled(database, platform.admin, ada.id, True)
    assert accounts.session_user(database, kept) is None
    with pytest.raises(RefusalError):
        accounts.sign_in(database, "ada", NEW)


def test_a_reset_link_works_once_and_ends_everything_else(platform: Platform):
    database = platform.database
    ada = platform.person("ada")
    session_secret = accounts.sign_in(database, "ada", PASSWORD)[1]
    token = accounts.make_token(database, ada, "one", ["read"])
    first, second = accounts.make_reset(database, "ada"), accounts.make_reset(database, "ada@example.org")
    assert accounts.make_reset(database, "nobody") is None
    accounts.use_reset(database, first, NEW)
    for link in (first, second, "made up"):
        assert not accounts.reset_is_valid(database, link)
        with pytest.raises(NotThereError):
            accounts.use_reset(database, link, NEW)
    assert accounts.session_user(database, session_secret) is None and accounts.token_user(database, token) is None
    assert accounts.sign_in(database, "ada", NEW)
    late = accounts.make_reset(database, "ada")
    with database.write() as session:
        session.query(ResetToken).update({"expires_at": utc_now()})
    with pytest.raises(NotThereError):
        accounts.use_reset(database, late, NEW)


def test_tokens_expire(small_platform: Platform):
    ada = small_platform.person("ada")
    secret = accounts.make_token(small_platform.database, ada, "one", ["submit", "read"])
    assert accounts.token_user(small_platform.database, secret)[1] == ("read", "submit")
    with small_platform.database.write() as session:
        session.query(ApiToken).update({"expires_at": utc_now()})
    assert accounts.token_user(small_platform.database, secret) is None
    with pytest.raises(RefusalError, match="scopes"):
        accounts.make_token(small_platform.database, ada, "two", ["everything"])


def test_the_last_admin_stays(small_platform: Platform):
    with pytest.raises(RefusalError, match="last admin"):
        accounts.set_role(small_platform.database, small_platform.admin, small_platform.admin.id, "participant")
    ada = small_platform.person("ada")
    accounts.set_role(small_platform.database, small_platform.admin, ada.id, "admin")
    accounts.set_role(small_platform.database, ada, small_platform.admin.id, "participant")


@pytest.mark.parametrize("password", ["short", "x" * 201, "aaaaaaaaaaaa"])
def test_poor_passwords_are_refused(small_platform: Platform, password):
    with pytest.raises(RefusalError, match="password"):
        accounts.register(small_platform.database, "ada", "ada@example.org", password)


def test_an_invitation_lets_one_person_in_once(platform: Platform):
    database, ada = platform.database, platform.captain("ada")
    team = platform.team(ada)
    bob, cyd, dan = (platform.person(name) for name in ("bob", "cyd", "dan"))
    link = teams.invite(database, ada, team)
    with pytest.raises(ConflictError, match="Accept the rules"):
        teams.join(database, bob, link)
    for user in (bob, cyd, dan):
        teams.accept_rules(database, user, platform.challenge)
    teams.join(database, bob, link)
    with pytest.raises(NotThereError):
        teams.join(database, cyd, link)  # used
    with pytest.raises(ConflictError, match="Only the captain"):
        teams.invite(database, bob, team)
    revoked = teams.invite(database, ada, team)
    with database.read() as session:
        number = session.query(Invitation).filter_by(used_at=None).one().id
    teams.revoke_invitation(database, ada, team, number)
    with pytest.raises(NotThereError):
        teams.join(database, cyd, revoked)
    platform.captain("eve")
    with pytest.raises(ConflictError, match="in a team"):
        teams.join(database, platform.people["eve"], teams.invite(database, ada, team))
    with database.write() as session:
        session.merge(platform.challenge).max_team_size = 2
    with pytest.raises(ConflictError, match="full"):
        teams.join(database, dan, teams.invite(database, ada, team))


def test_those_who_run_a_challenge_do_not_take_part_in_it(small_platform: Platform):
    platform = small_platform
    captain, helper = platform.captain("ada"), platform.person("helper")
    secret = teams.invite(platform.database, captain, platform.team(captain))
    challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "helper")
    for person in (platform.admin, helper):
        teams.accept_rules(platform.database, person, platform.challenge)
        with pytest.raises(ConflictError, match="cannot take part in"):
            teams.make_team(platform.database, person, platform.challenge, f"team of {person.name}")
        with pytest.raises(ConflictError, match="cannot take part in"):
            teams.join(platform.database, person, secret)
    with pytest.raises(ConflictError, match="takes part in the challenge"):
        challenge_settings.add_organizer(platform.database, platform.admin, platform.challenge, "ada")


def test_nobody_multiplies_limits_by_changing_teams(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    teams.leave(platform.database, ada, platform.challenge)
    with platform.database.read() as session:
        assert session.query(Membership).count() == 0
    teams.make_team(platform.database, ada, platform.challenge, "another")
    platform.hand_in(ada)
    with pytest.raises(ConflictError, match="stays together"):
        teams.leave(platform.database, ada, platform.challenge)


def test_new_rules_have_to_be_accepted_anew(small_platform: Platform):
    platform = small_platform
    ada = platform.captain("ada")
    with platform.database.write() as session:
        mine = session.merge(platform.challenge)
        mine.rules_version += 1
    with pytest.raises(ConflictError, match="Accept the rules"):
        platform.hand_in(ada)


def test_tries_are_counted_together(platform: Platform):
    rate = Rate("knock", 3, 3600)
    for _ in range(3):
        rates.count(platform.database, rate, "door")
    with pytest.raises(TooOftenError) as caught:
        rates.count(platform.database, rate, "door")
    assert 0 < caught.value.retry_after_s <= 3600
    rates.count(platform.database, rate, "window")


def test_migrations_make_exactly_the_tables_of_the_models(platform: Platform):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with platform.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
        assert {"alembic_version", "submissions"} <= set(inspect(connection).get_table_names())
    platform.database.migrate()  # a second time changes nothing
