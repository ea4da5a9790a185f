"""Names that can be taken for each other, and those that grow when capitals no longer count."""

from __future__ import annotations

import io
import threading

import pytest

from fieldmark.web.refusals import ConflictError, RefusalError
from fieldmark_challenge.challenges.offered_files import add_data_file
from fieldmark_challenge.lifecycle import challenge_settings
from fieldmark_challenge.people import accounts, teams
from fieldmark_challenge.records.schema import DataFile, Organizer, Team, User
from fieldmark_challenge.submissions.submissions import add_baseline
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge_tests.platform import PASSWORD, Platform, run_text
from fieldmark_challenge_tests.submissions.test_submissions import parallel


@pytest.mark.parametrize(
    "other", ["paypaI", "PayPa1", "p\u0430ypal", "\u0440\u0430\u0443\u0440\u0430\u04c0", "paypal\u200b"]
)
def test_nobody_can_pass_for_somebody_else(platform: Platform, other):
    accounts.register(platform.database, "paypal", "a@example.org", PASSWORD)
    with pytest.raises(RefusalError):
        accounts.register(platform.database, other, "b@example.org", PASSWORD)


def test_no_two_teams_look_alike(platform: Platform):
    ada, bea = platform.person("ada"), platform.person("bea")
    for user in (ada, bea):
        teams.accept_rules(platform.database, user, platform.challenge)
    teams.make_team(platform.database, ada, platform.challenge, "modern owls")
    with pytest.raises(ConflictError, match="looks like it"):
        teams.make_team(platform.database, bea, platform.challenge, "modem owls")
    teams.make_team(platform.database, bea, platform.challenge, "barn owls")


def test_two_that_look_alike_at_the_same_moment_are_one(platform: Platform):
    names = ["modern", "modem", "mociern", "rnodern"] * 2
    outcomes = parallel(
        8, lambda place: accounts.register(platform.database, names[place], f"{place}@example.org", PASSWORD)
    )
    looks = [outcome.name_look for outcome in outcomes if isinstance(outcome, User)]
    assert len(looks) == len(set(looks)) and all(isinstance(one, User | RefusalError) for one in outcomes)


def test_letters_that_become_three_are_refused_on_both_databases(platform: Platform):
    with pytest.raises(RefusalError, match="shorter"):
        accounts.register(platform.database, "\u0390" * 64, "a@example.org", PASSWORD)
    assert accounts.register(platform.database, "\u0390" * 40, "a@example.org", PASSWORD).name_key


def test_the_same_file_baseline_or_organizer_twice_at_once_is_one(platform: Platform):
    database, storage, challenge = platform.database, platform.storage, platform.challenge
    platform.person("helper")
    source = platform.folder / "extra.txt"
    source.write_text("more")
    together = threading.Lock()

    def baseline(_: int):
        with received(io.BytesIO(run_text().encode()), "run.csv", limit_mb=1) as upload, together:
            pass
        with received(io.BytesIO(run_text().encode()), "run.csv", limit_mb=1) as upload:
            return add_baseline(database, storage, platform.admin, challenge, "chance", upload)

    acts = {
        "file": lambda _: add_data_file(database, storage, platform.admin, challenge, source, "extra.txt"),
        "baseline": baseline,
        "organizer": lambda _: challenge_settings.add_organizer(database, platform.admin, challenge, "helper"),
    }
    for what, act in acts.items():
        outcomes = parallel(5, act)
        strange = [one for one in outcomes if isinstance(one, Exception) and not isinstance(one, ConflictError)]
        assert strange == [], what
    with database.read() as session:
        assert session.query(DataFile).filter_by(name="extra.txt").count() == 1
        assert session.query(Team).filter_by(kind="baseline").count() == 1
        assert session.query(Organizer).count() == 1
