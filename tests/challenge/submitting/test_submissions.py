"""Handing in runs: limits that hold, mistakes that cost nothing, deadlines by the moment of arrival."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import pickle
import threading
import zipfile

import pytest

from fieldmark.challenge.people import teams
from fieldmark.challenge.records.database import Database
from fieldmark.challenge.records.schema import Submission, utc_now
from fieldmark.challenge.refusals import ConflictError, NotThereError, RefusalError, TooLargeError, TooOftenError
from fieldmark.challenge.running import phases
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.submitting.submissions import select_final
from fieldmark.challenge.submitting.uploads import RunRefusedError, received
from tests.challenge.platform import House, run_text

DAY = dt.timedelta(days=1)


def parallel(number: int, act) -> list[object]:
    """Does something many times at once; returns what came of it, errors included."""
    outcomes: list[object] = []
    together = threading.Barrier(number)

    def one(place: int) -> None:
        together.wait()
        try:
            outcomes.append(act(place))
        except Exception as error:  # looked at by the tests, whatever it is
            outcomes.append(error)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_a_hundred_parallel_uploads_at_a_limit_of_five_are_five(house: House, database_url):
    user = house.captain("ada")
    # Two servers with connections of their own, as if they were two processes.
    other = House(Database(database_url), house.storage, house.folder, house.admin, house.challenge)
    outcomes = parallel(100, lambda place: (house if place % 2 else other).hand_in(user))
    other.database.close()
    accepted = [outcome for outcome in outcomes if isinstance(outcome, Submission)]
    assert len(outcomes) == 100 and len(accepted) == 5
    assert all(isinstance(outcome, TooOftenError) for outcome in outcomes if outcome not in accepted)
    with house.database.read() as session:
        assert session.query(Submission).filter_by(team_id=accepted[0].team_id).count() == 5
    stored = house.storage.names(f"runs/{house.challenge.id}")
    assert len(stored) == 5  # what was not accepted left nothing behind


def test_the_last_run_of_a_phase_goes_to_one_of_two(house: House):
    user = house.captain("ada")
    house.set_phase(daily_limit=10, total_limit=3)
    house.hand_in(user)
    house.hand_in(user)
    outcomes = parallel(6, lambda place: house.hand_in(user))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Submission", *["TooOftenError"] * 5]
    assert house.quota(user).total_left == 0


def test_days_begin_at_midnight_utc(small_house: House):
    house = small_house
    user = house.captain("ada")
    house.set_phase(daily_limit=1, starts_at=utc_now() - 9 * DAY, ends_at=utc_now() + 9 * DAY)
    evening = dt.datetime.combine(utc_now().date() - 2 * DAY, dt.time(23, 59, 59), dt.UTC)
    house.hand_in(user, arrived=evening)
    with pytest.raises(TooOftenError, match="midnight UTC"):
        house.hand_in(user, arrived=evening)
    # The same moment elsewhere is still the same day; two seconds later is the next.
    tokyo = evening.astimezone(dt.timezone(dt.timedelta(hours=9)))
    with pytest.raises(TooOftenError):
        house.hand_in(user, arrived=tokyo)
    house.hand_in(user, arrived=evening + dt.timedelta(seconds=2))


def test_members_of_a_team_share_one_limit(small_house: House):
    house = small_house
    ada, bob = house.captain("ada"), house.person("bob")
    teams.accept_rules(house.database, bob, house.challenge)
    teams.join(house.database, bob, teams.invite(house.database, ada, house.team(ada)))
    house.set_phase(daily_limit=2)
    house.hand_in(ada)
    house.hand_in(bob)
    for user in (ada, bob):
        with pytest.raises(TooOftenError):
            house.hand_in(user)


def test_mistakes_are_listed_by_line_and_cost_nothing(small_house: House):
    house = small_house
    user = house.captain("ada")
    lines = run_text().splitlines()
    lines[3], lines[5] = "i2,zebra", "strange,a"
    with pytest.raises(RunRefusedError) as caught:
        house.hand_in(user, "\n".join(lines))
    assert [problem["line"] for problem in caught.value.problems] == [4, 6, None]
    assert "zebra" in caught.value.problems[0]["text"]
    assert house.quota(user).today_left == house.phase().daily_limit
    with house.database.read() as session:
        kept = session.query(Submission).filter_by(user_id=user.id).one()
    assert kept.state == "refused" and not kept.counted and kept.problems == caught.value.problems
    assert kept.path == ""


BAD_FILES = {
    "empty": b"",
    "spaces": b"   \n \n",
    "zip": b"PK\x03\x04" + b"\0" * 50,
    "pickle": pickle.dumps({"id": "a"}),
    "numpy": b"\x93NUMPY\x01\x00" + b"\0" * 50,
    "not text": bytes(range(256)) * 10,
    "nul": run_text().encode().replace(b"i3,a", b"i3,\0a"),
    "another header": b"id;label\n",
    "label twice": run_text().replace("i3,a", "i3,a|a").encode(),
    "id twice": (run_text() + "i3,a\n").encode(),
    "missing id": run_text().replace("i3,a\n", "").encode(),
    "confusable id": run_text().replace("i3,a", "\u0456" + "3,a").encode(),
    "a field of a megabyte": run_text().replace("i3,a", "i3," + "a" * 1_000_000).encode(),
    "quoted newline": run_text().replace("i3,a", '"i3\n",z').encode(),
    "many columns": ("id,predicted\n" + "," * 100_000 + "\n").encode(),
    "broken gzip": gzip.compress(run_text().encode())[:-9],
    "NaN as label": run_text().replace("i3,a", "i3,NaN").encode(),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_no_strange_file_is_accepted_or_counted(small_house: House, kind):
    user = small_house.captain("ada")
    with pytest.raises(RunRefusedError) as caught:
        small_house.hand_in(user, BAD_FILES[kind])
    assert caught.value.problems and all(len(problem["text"]) < 500 for problem in caught.value.problems)
    assert small_house.quota(user).used == 0


def test_harmless_differences_are_accepted(small_house: House):
    user = small_house.captain("ada")
    content = run_text()
    for variant in (
        "\ufeff" + content,
        content.replace("\n", "\r\n"),
        gzip.compress(content.encode()),
    ):
        assert small_house.hand_in(user, variant).state == "queued"


def test_a_gzip_file_cannot_grow_beyond_measure(small_house: House):
    user = small_house.captain("ada")
    with small_house.database.write() as session:
        session.merge(small_house.challenge).max_upload_mb = 1
    small_house.challenge.max_upload_mb = 1
    bomb = gzip.compress(b"0" * (5 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(RunRefusedError, match="one problem") as caught:
        small_house.hand_in(user, bomb)
    assert "4 MiB" in caught.value.problems[0]["text"]


def test_reading_stops_at_the_limit():
    class Endless(io.RawIOBase):
        taken = 0

        def read(self, size=-1):
            self.taken += size
            return b"x" * size

    source = Endless()
    with pytest.raises(TooLargeError), received(source, "run.csv", limit_mb=2):
        pass
    assert source.taken <= 3 << 20


def test_the_same_request_twice_is_one_submission(house: House):
    user = house.captain("ada")
    outcomes = parallel(8, lambda place: house.hand_in(user, idempotency_key="0123456789"))
    assert len(outcomes) == 8 and len({outcome.id for outcome in outcomes}) == 1
    assert house.quota(user).used == 1


def test_the_moment_of_arrival_decides_about_the_deadline(small_house: House):
    house = small_house
    user = house.captain("ada")
    now = utc_now()
    house.set_phase(starts_at=now - DAY, ends_at=now - dt.timedelta(seconds=30))
    assert house.hand_in(user, arrived=now - dt.timedelta(minutes=1)).state == "queued"
    with pytest.raises(ConflictError, match="No phase is open"):
        house.hand_in(user, arrived=now)
    house.set_phase(ends_at=now - dt.timedelta(hours=1))
    with pytest.raises(ConflictError, match="on its way"):
        house.hand_in(user, arrived=now - dt.timedelta(hours=2))


def test_rules_and_a_team_come_first(small_house: House):
    house = small_house
    user = house.person("ada")
    with pytest.raises(ConflictError, match="Accept the rules"):
        house.hand_in(user)
    teams.accept_rules(house.database, user, house.challenge)
    with pytest.raises(ConflictError, match="Make a team"):
        house.hand_in(user)


def test_external_data_must_be_named(small_house: House):
    user = small_house.captain("ada")
    with pytest.raises(RefusalError, match="which external data"):
        small_house.hand_in(user, external_data=True)
    assert small_house.hand_in(user, external_data=True, external_note="iNaturalist").external_note == "iNaturalist"


def test_a_fault_of_the_platform_gives_the_run_back(house: House, monkeypatch):
    monkeypatch.setattr(queue, "RETRY_S", 0.0)
    user = house.captain("ada")
    baseline_free = house.hand_in(user)
    for _ in range(queue.MAX_ATTEMPTS):
        claimed = queue.claim(house.database, "w")
        queue.give_back(house.database, claimed, "Traceback: the canary label zebra")
    failed = house.submission(baseline_free.id)
    assert failed.state == "failed" and not failed.counted
    assert "zebra" not in failed.reason and "zebra" in failed.detail  # for organizers only
    assert house.quota(user).used == 0


def test_only_scored_runs_of_ones_own_team_can_be_chosen_and_not_too_many(small_house: House):
    house = small_house
    ada, bob = house.captain("ada"), house.captain("bob")
    runs = [house.hand_in(ada) for _ in range(3)]
    with pytest.raises(ConflictError, match="Only a scored run"):
        select_final(house.database, ada, house.challenge, runs[0].id, True)
    with house.database.write() as session:
        for run in runs:
            session.get_one(Submission, run.id).state = "scored"
    with pytest.raises(NotThereError):
        select_final(house.database, bob, house.challenge, runs[0].id, True)
    for run in runs[:2]:
        select_final(house.database, ada, house.challenge, run.id, True)
    with pytest.raises(ConflictError, match="at most 2"):
        select_final(house.database, ada, house.challenge, runs[2].id, True)
    house.set_phase(ends_at=utc_now())
    phases.reveal(house.database, house.admin, house.challenge)
    with pytest.raises(ConflictError, match="choice is made"):
        select_final(house.database, ada, house.challenge, runs[0].id, False)


def test_zip_members_are_never_unpacked(small_house: House):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("../../etc/cron.d/evil", "x")
    with pytest.raises(RunRefusedError, match="one problem"):
        small_house.hand_in(small_house.captain("ada"), sink.getvalue())


def test_a_phase_with_runs_stays(house: House):
    day = {"starts_at": utc_now(), "ends_at": utc_now() + DAY, "daily_limit": 1, "total_limit": 1}
    spare = phases.set_phase(house.database, house.admin, house.challenge, name="spare", **day)
    phases.remove_phase(house.database, house.admin, house.challenge, spare.id)
    with pytest.raises(NotThereError):
        phases.remove_phase(house.database, house.admin, house.challenge, spare.id)
    house.hand_in(house.captain("ada"))
    with pytest.raises(ConflictError, match="Runs were handed in during the phase 'main'"):
        phases.remove_phase(house.database, house.admin, house.challenge, house.phase().id)
