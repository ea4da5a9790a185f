"""The clock of the server is put back by two hours: nothing waits for it, and no phase that has ended opens again.

Put forward, it ends leases too early: another worker takes over, and what the first one writes is not wanted.
"""

from __future__ import annotations

import datetime as dt
import io

import pytest
from sqlalchemy import select, update

from fieldmark.web.refusals import ConflictError, TooOftenError
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.mail import notices, outbox
from fieldmark_challenge.operations import heartbeats
from fieldmark_challenge.operations.lease_queue import PROGRAMS, RUNS, StaleClaimError
from fieldmark_challenge.operations.shutdown import Stopping
from fieldmark_challenge.people import accounts, rates, teams
from fieldmark_challenge.programs import program_queue
from fieldmark_challenge.programs.debug_jobs import try_out
from fieldmark_challenge.programs.program_queue import WrittenRun
from fieldmark_challenge.records import clock_guard
from fieldmark_challenge.records.schema import Base, Challenge, Setting, User, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.site.health import Readiness
from fieldmark_challenge.submissions import partial_uploads
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import PASSWORD, Platform
from fieldmark_challenge_tests.programs.test_program_queue import ARCHIVE, ask_for_programs

BACK = dt.timedelta(hours=2)


def put_back(platform: Platform, by: dt.timedelta = BACK) -> None:
    """Moves all that was stamped into the future, which is what a clock that is put back does; phases stay in place."""
    with platform.database.write() as session:
        for table in Base.metadata.sorted_tables:
            if table.name == "phases":
                continue
            for row in session.execute(select(table)).mappings().all():
                later = {name: value + by for name, value in row.items() if isinstance(value, dt.datetime)}
                if later:
                    mine = [column == row[column.name] for column in table.primary_key]
                    session.execute(update(table).where(*mine).values(**later))
        for name in (clock_guard.LATEST, outbox.SWITCH):
            if (kept := session.get(Setting, name)) is not None:
                kept.value = (dt.datetime.fromisoformat(kept.value.decode()) + by).isoformat().encode()


def test_runs_are_taken_and_leases_end(platform: Platform):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    abandoned = platform.hand_in(ada)
    assert queue.claim(platform.database, "dead").submission_id == abandoned.id
    waiting = platform.hand_in(bea)
    put_back(platform)
    later = platform.hand_in(bea)
    taken = [queue.claim(platform.database, "w") for _ in range(3)]
    assert {one.submission_id for one in taken} == {abandoned.id, waiting.id, later.id}
    assert queue.claim(platform.database, "w") is None
    for one in taken:
        queue.finish(platform.database, one, cards())


def test_a_worker_that_lives_keeps_its_run(platform: Platform):
    platform.hand_in(platform.captain("ada"))
    claimed = queue.claim(platform.database, "alive")
    put_back(platform)
    assert RUNS.renew(platform.database, claimed)
    assert queue.claim(platform.database, "w") is None
    queue.finish(platform.database, claimed, cards())


def test_a_clock_put_forward_ends_a_lease_and_the_run_is_scored_once(platform: Platform):
    run = platform.hand_in(platform.captain("ada"))
    alive = queue.claim(platform.database, "alive")
    put_back(platform, -BACK)
    other = queue.claim(platform.database, "w")
    assert other.submission_id == run.id and not RUNS.renew(platform.database, alive)
    with pytest.raises(StaleClaimError):
        queue.finish(platform.database, alive, cards(0.9))
    queue.finish(platform.database, other, cards(0.4))
    assert {row.value for row in platform.submission(run.id).scores} == {0.4}
    assert queue.claim(platform.database, "w") is None


def test_a_clock_put_forward_ends_the_lease_of_a_program_which_is_charged_once(platform: Platform):
    ask_for_programs(platform)
    ada = platform.captain("ada")
    platform.hand_in(ada, ARCHIVE, filename="team.tar.gz")
    alive = program_queue.claim(platform.database, "alive")
    program_queue.note_run(platform.database, alive)
    put_back(platform, -BACK)
    other = program_queue.claim(platform.database, "w")
    assert other.program_id == alive.program_id and not PROGRAMS.renew(platform.database, alive)
    with pytest.raises(StaleClaimError):
        program_queue.finish(platform.database, alive, "", WrittenRun("runs/1/b", 10, "b" * 64))
    program_queue.finish(platform.database, other, "", WrittenRun("runs/1/a", 10, "a" * 64))
    assert queue.claim(platform.database, "s").path == "runs/1/a" and platform.quota(ada).used == 1


def test_programs_and_debug_runs_are_taken(platform: Platform):
    ask_for_programs(platform)
    ada = platform.captain("ada")
    platform.hand_in(ada, ARCHIVE, filename="team.tar.gz")
    silent = program_queue.claim(platform.database, "dead")
    put_back(platform)
    again = program_queue.claim(platform.database, "w")
    assert again.program_id == silent.program_id and again.fence != silent.fence
    program_queue.give_back(platform.database, again, "a fault")
    assert program_queue.claim(platform.database, "w") is None  # it rests for half a minute
    put_back(platform)
    with received(io.BytesIO(ARCHIVE), "team.tar.gz", limit_mb=1) as upload:
        tried = try_out(platform.database, platform.storage, ada, platform.challenge, upload, arrived=utc_now())
    assert {program_queue.claim(platform.database, "w").program_id for _ in range(2)} == {tried.id, again.program_id}


def test_mail_goes_out(platform: Platform):
    outbox.switch(platform.database, on=True)
    ada = platform.captain("ada")
    with platform.database.write() as session:
        session.get_one(User, ada.id).email_verified_at = utc_now()
        assert outbox.put(session, "reset", {}, user_id=ada.id)
    first = outbox.take(platform.database)
    outbox.postpone(platform.database, first, "the mail server is down")
    with platform.database.write() as session:
        assert outbox.put(session, "verify", {}, user_id=ada.id)
    put_back(platform)
    assert {outbox.take(platform.database).kind for _ in range(2)} == {"reset", "verify"}
    assert outbox.take(platform.database) is None  # both are under way, and are not taken twice
    run = platform.hand_in(ada)
    notices.collect(platform.database)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards())
    assert notices.collect(platform.database) == 1
    assert outbox.take(platform.database).data["run"] == run.id


def test_people_stay_signed_in_and_links_work(platform: Platform):
    ada = platform.captain("ada")
    secret = accounts.sign_in(platform.database, "ada", PASSWORD)[1]
    token = accounts.make_token(platform.database, ada, "laptop", ("read",))
    invitation = teams.invite(platform.database, ada, platform.team(ada))
    put_back(platform)
    assert accounts.session_user(platform.database, secret).id == ada.id
    assert accounts.sign_in(platform.database, "ada", PASSWORD)[0].id == ada.id
    assert accounts.token_user(platform.database, token)[0].id == ada.id
    bea = platform.person("bea")
    teams.accept_rules(platform.database, bea, platform.challenge)
    assert teams.join(platform.database, bea, invitation) is not None


def test_who_had_reached_a_limit_waits_no_longer_than_before(platform: Platform, monkeypatch):
    noon = dt.datetime(2026, 5, 1, 12, 15, tzinfo=dt.UTC)
    monkeypatch.setattr(rates, "utc_now", lambda: noon)
    rate = rates.Rate("try", 1, 3600)
    rates.count(platform.database, rate, "ada")
    with pytest.raises(TooOftenError) as refused:
        rates.count(platform.database, rate, "ada")
    assert refused.value.retry_after_s == 2700
    monkeypatch.setattr(rates, "utc_now", lambda: noon - BACK)
    rates.count(platform.database, rate, "ada")
    monkeypatch.setattr(rates, "utc_now", lambda: noon + dt.timedelta(hours=1))
    rates.count(platform.database, rate, "ada")


def test_an_upload_under_way_arrives_now_and_not_in_the_future(platform: Platform):
    ada, where = platform.captain("ada"), (platform.database, platform.storage)
    begun = partial_uploads.begin(
        *where, ada, platform.challenge, "run.csv", 9, "0" * 64, limit_mb=1, arrived=utc_now()
    )
    put_back(platform)
    with platform.database.read() as session:
        upload = partial_uploads.open_upload(session, ada, platform.challenge, begun.id)
    now = utc_now()
    assert upload.created_at > now and partial_uploads.arrival(upload, now) == now


def test_a_worker_that_died_before_does_not_count_as_alive(platform: Platform):
    heartbeats.give_sign(platform.database, "dead")
    put_back(platform)
    assert heartbeats.alive(platform.database) == []
    heartbeats.give_sign(platform.database, "alive")
    assert heartbeats.alive(platform.database) == ["alive"]


def test_a_phase_that_had_ended_takes_no_runs_until_its_dates_are_saved_anew(platform: Platform):
    ada = platform.captain("ada")
    heartbeats.give_sign(platform.database, "w")
    readiness = Readiness(platform.database, platform.storage, Stopping(), kept_s=0)
    assert readiness.ask()["clock"] == "ok"
    platform.hand_in(ada)
    put_back(platform)  # it was two hours later when the phase ended: an hour from now, as the clock tells it
    platform.set_phase(ends_at=utc_now() + BACK / 2)
    with pytest.raises(ConflictError, match="clock of the server was put back"):
        platform.hand_in(ada)
    said = readiness.ask()["clock"]
    assert "120 minutes behind" in said and "main of tiny" in said
    with platform.database.read() as session:
        phase = session.get_one(Challenge, platform.challenge.id).phases[0]
    same = {"name": phase.name, "starts_at": phase.starts_at, "ends_at": phase.ends_at}
    phases.set_phase(
        platform.database, platform.admin, platform.challenge, phase_id=phase.id, daily_limit=5, total_limit=9, **same
    )
    platform.hand_in(ada)
    assert "main of tiny" not in readiness.ask()["clock"]


def test_phases_that_go_on_are_not_touched(platform: Platform):
    ada = platform.captain("ada")
    heartbeats.give_sign(platform.database, "w")
    put_back(platform)
    platform.set_phase(ends_at=utc_now() + 2 * BACK)
    assert platform.hand_in(ada).state == "queued"
    put_back(platform, -BACK)  # and when the time has come again, all is as it was
    readiness = Readiness(platform.database, platform.storage, Stopping(), kept_s=0)
    assert readiness.ask()["clock"] == "ok"
