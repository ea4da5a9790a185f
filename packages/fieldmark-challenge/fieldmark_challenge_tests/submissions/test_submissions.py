"""Submitting runs: limits that hold, mistakes that cost nothing, deadlines by the moment of arrival."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import pickle
import threading
import zipfile

import pytest

from fieldmark.web.refusals import ConflictError, NotThereError, RefusalError, TooLargeError, TooOftenError
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.operations import lease_queue
from fieldmark_challenge.people import teams
from fieldmark_challenge.records.database import Database
from fieldmark_challenge.records.schema import Submission, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions.run_files import RunRefusedError
from fieldmark_challenge.submissions.submissions import select_final
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge_tests.platform import Platform, run_text

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


def test_a_hundred_parallel_uploads_at_a_limit_of_five_are_five(platform: Platform, database_url):
    user = platform.captain("ada")
    # Two servers with connections of their own, as if they were two processes.
    other = Platform(Database(database_url), platform.storage, platform.folder, platform.admin, platform.challenge)
    outcomes = parallel(100, lambda place: (platform if place % 2 else other).hand_in(user))
    other.database.close()
    accepted = [outcome for outcome in outcomes if isinstance(outcome, Submission)]
    assert len(outcomes) == 100 and len(accepted) == 5
    assert all(isinstance(outcome, TooOftenError) for outcome in outcomes if outcome not in accepted)
    with platform.database.read() as session:
        assert session.query(Submission).filter_by(team_id=accepted[0].team_id).count() == 5
    stored = platform.storage.names(f"runs/{platform.challenge.id}")
    assert len(stored) == 5  # what was not accepted left nothing behind


def test_the_last_run_of_a_phase_goes_to_one_of_two(platform: Platform):
    user = platform.captain("ada")
    platform.set_phase(daily_limit=10, total_limit=3)
    platform.hand_in(user)
    platform.hand_in(user)
    outcomes = parallel(6, lambda place: platform.hand_in(user))
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["Submission", *["TooOftenError"] * 5]
    assert platform.quota(user).total_left == 0


def test_days_begin_at_midnight_utc(small_platform: Platform):
    platform = small_platform
    user = platform.captain("ada")
    platform.set_phase(daily_limit=1, starts_at=utc_now() - 9 * DAY, ends_at=utc_now() + 9 * DAY)
    evening = dt.datetime.combine(utc_now().date() - 2 * DAY, dt.time(23, 59, 59), dt.UTC)
    platform.hand_in(user, arrived=evening)
    with pytest.raises(TooOftenError, match="midnight UTC"):
        platform.hand_in(user, arrived=evening)
    # The same moment elsewhere is still the same day; two seconds later is the next.
    tokyo = evening.astimezone(dt.timezone(dt.timedelta(hours=9)))
    with pytest.raises(TooOftenError):
        platform.hand_in(user, arrived=tokyo)
    platform.hand_in(user, arrived=evening + dt.timedelta(seconds=2))


def test_members_of_a_team_share_one_limit(small_platform: Platform):
    platform = small_platform
    ada, bob = platform.captain("ada"), platform.person("bob")
    teams.accept_rules(platform.database, bob, platform.challenge)
    teams.join(platform.database, bob, teams.invite(platform.database, ada, platform.team(ada)))
    platform.set_phase(daily_limit=2)
    platform.hand_in(ada)
    platform.hand_in(bob)
    for user in (ada, bob):
        with pytest.raises(TooOftenError):
            platform.hand_in(user)


def test_mistakes_are_listed_by_line_and_cost_nothing(small_platform: Platform):
    platform = small_platform
    user = platform.captain("ada")
    lines = run_text().splitlines()
    lines[3], lines[5] = "i2,zebra", "strange,a"
    with pytest.raises(RunRefusedError) as caught:
        platform.hand_in(user, "\n".join(lines))
    assert [problem["line"] for problem in caught.value.problems] == [4, 6, None]
    assert "zebra" in caught.value.problems[0]["text"]
    assert platform.quota(user).today_left == platform.phase().daily_limit
    with platform.database.read() as session:
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
def test_no_strange_file_is_accepted_or_counted(small_platform: Platform, kind):
    user = small_platform.captain("ada")
    with pytest.raises(RunRefusedError) as caught:
        small_platform.hand_in(user, BAD_FILES[kind])
    assert caught.value.problems and all(len(problem["text"]) < 500 for problem in caught.value.problems)
    assert small_platform.quota(user).used == 0


def test_harmless_differences_are_accepted(small_platform: Platform):
    user = small_platform.captain("ada")
    content = run_text()
    for variant in (
        "\ufeff" + content,
        content.replace("\n", "\r\n"),
        gzip.compress(content.encode()),
    ):
        assert small_platform.hand_in(user, variant).state == "queued"


def test_a_gzip_file_cannot_grow_beyond_measure(small_platform: Platform):
    user = small_platform.captain("ada")
    with small_platform.database.write() as session:
        session.merge(small_platform.challenge).max_upload_mb = 1
    small_platform.challenge.max_upload_mb = 1
    bomb = gzip.compress(b"0" * (5 << 20))
    assert len(bomb) < 10_000
    with pytest.raises(RunRefusedError, match="one problem") as caught:
        small_platform.hand_in(user, bomb)
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


def test_the_same_request_twice_is_one_submission(platform: Platform):
    user = platform.captain("ada")
    outcomes = parallel(8, lambda place: platform.hand_in(user, idempotency_key="0123456789"))
    assert len(outcomes) == 8 and len({outcome.id for outcome in outcomes}) == 1
    assert platform.quota(user).used == 1


def test_the_moment_of_arrival_decides_about_the_deadline(small_platform: Platform):
    platform = small_platform
    user = platform.captain("ada")
    now = utc_now()
    platform.set_phase(starts_at=now - DAY, ends_at=now - dt.timedelta(seconds=30))
    assert platform.hand_in(user, arrived=now - dt.timedelta(minutes=1)).state == "queued"
    with pytest.raises(ConflictError, match="No phase is open"):
        platform.hand_in(user, arrived=now)
    platform.set_phase(ends_at=now - dt.timedelta(hours=1))
    with pytest.raises(ConflictError, match="on its way"):
        platform.hand_in(user, arrived=now - dt.timedelta(hours=2))


def test_rules_and_a_team_come_first(small_platform: Platform):
    platform = small_platform
    user = platform.person("ada")
    with pytest.raises(ConflictError, match="Accept the rules"):
        platform.hand_in(user)
    teams.accept_rules(platform.database, user, platform.challenge)
    with pytest.raises(ConflictError, match="Make a team"):
        platform.hand_in(user)


def test_external_data_must_be_named(small_platform: Platform):
    user = small_platform.captain("ada")
    with pytest.raises(RefusalError, match="which external data"):
        small_platform.hand_in(user, external_data=True)
    assert small_platform.hand_in(user, external_data=True, external_note="iNaturalist").external_note == "iNaturalist"


def test_a_fault_of_the_platform_gives_the_run_back(platform: Platform, monkeypatch):
    monkeypatch.setattr(lease_queue, "RETRY_S", 0.0)
    user = platform.captain("ada")
    baseline_free = platform.hand_in(user)
    for _ in range(lease_queue.MAX_ATTEMPTS):
        claimed = queue.claim(platform.database, "w")
        queue.give_back(platform.database, claimed, "Traceback: the canary label zebra")
    failed = platform.submission(baseline_free.id)
    assert failed.state == "failed" and not failed.counted
    assert "zebra" not in failed.reason and "zebra" in failed.detail  # for organizers only
    assert platform.quota(user).used == 0


def test_only_scored_runs_of_ones_own_team_can_be_chosen_and_not_too_many(small_platform: Platform):
    platform = small_platform
    ada, bob = platform.captain("ada"), platform.captain("bob")
    runs = [platform.hand_in(ada) for _ in range(3)]
    with pytest.raises(ConflictError, match="Only a scored run"):
        select_final(platform.database, ada, platform.challenge, runs[0].id, True)
    with platform.database.write() as session:
        for run in runs:
            session.get_one(Submission, run.id).state = "scored"
    with pytest.raises(NotThereError):
        select_final(platform.database, bob, platform.challenge, runs[0].id, True)
    for run in runs[:2]:
        select_final(platform.database, ada, platform.challenge, run.id, True)
    with pytest.raises(ConflictError, match="at most 2"):
        select_final(platform.database, ada, platform.challenge, runs[2].id, True)
    platform.set_phase(ends_at=utc_now())
    phases.reveal(platform.database, platform.admin, platform.challenge)
    with pytest.raises(ConflictError, match="choice is made"):
        select_final(platform.database, ada, platform.challenge, runs[0].id, False)


def test_zip_members_are_never_unpacked(small_platform: Platform):
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("../../etc/cron.d/evil", "x")
    with pytest.raises(RunRefusedError, match="one problem"):
        small_platform.hand_in(small_platform.captain("ada"), sink.getvalue())


def test_a_phase_with_runs_stays(platform: Platform):
    day = {"starts_at": utc_now(), "ends_at": utc_now() + DAY, "daily_limit": 1, "total_limit": 1}
    spare = phases.set_phase(platform.database, platform.admin, platform.challenge, name="spare", **day)
    phases.remove_phase(platform.database, platform.admin, platform.challenge, spare.id)
    with pytest.raises(NotThereError):
        phases.remove_phase(platform.database, platform.admin, platform.challenge, spare.id)
    platform.hand_in(platform.captain("ada"))
    with pytest.raises(ConflictError, match="Runs were submitted during the phase 'main'"):
        phases.remove_phase(platform.database, platform.admin, platform.challenge, platform.phase().id)


def test_baselines_need_a_name_of_their_own(small_platform: Platform):
    platform = small_platform
    from fieldmark_challenge.submissions.submissions import add_baseline
    from fieldmark_challenge.submissions.uploads import received

    for attempt in range(2):
        with received(io.BytesIO(run_text().encode()), "run.csv", limit_mb=1) as upload:
            if attempt:
                with pytest.raises(ConflictError):
                    add_baseline(
                        platform.database, platform.storage, platform.admin, platform.challenge, "chance", upload
                    )
            else:
                add_baseline(platform.database, platform.storage, platform.admin, platform.challenge, "chance", upload)
