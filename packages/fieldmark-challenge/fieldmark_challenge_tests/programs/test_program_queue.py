"""The queue of programs on both databases: leases, fencing tokens, lanes, and what becomes of submissions."""

from __future__ import annotations

import datetime as dt
import io
import threading
from dataclasses import asdict

import pytest

from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.operations import lease_queue
from fieldmark_challenge.operations.lease_queue import PROGRAMS, RUNS, StaleClaimError
from fieldmark_challenge.programs import program_queue
from fieldmark_challenge.programs.debug_jobs import try_out
from fieldmark_challenge.programs.hosts import tried_with
from fieldmark_challenge.programs.program_queue import WrittenRun
from fieldmark_challenge.programs.runners import BubblewrapRunner
from fieldmark_challenge.programs.tasks import CodeRules
from fieldmark_challenge.records.code_schema import CodeHost, CodePhase, CodeTask, Program
from fieldmark_challenge.records.schema import User, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.submissions.uploads import received
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.programs import archive_of

ARCHIVE = archive_of("print('hello')")


def ask_for_programs(platform: Platform) -> Platform:
    """Has the phase of the small challenge ask for programs."""
    stored = {"inputs_path": "inputs/1", "inputs_sha256": "1", "items": 60, "sample_path": "inputs/2"}
    with platform.database.write() as session:
        task = CodeTask(challenge_id=platform.challenge.id, sample_sha256="2", sample_items=["s"], **stored)
        for name, value in asdict(CodeRules()).items():
            setattr(task, name, value)
        here = CodeHost(name="here", runner=tried_with(BubblewrapRunner()))
        session.add_all([task, CodePhase(phase_id=platform.phase().id), here])
    return platform


@pytest.fixture
def asking(platform: Platform) -> Platform:
    return ask_for_programs(platform)


@pytest.fixture
def small_asking(small_platform: Platform) -> Platform:
    return ask_for_programs(small_platform)


def hand_in(platform: Platform, user: User) -> int:
    return platform.hand_in(user, ARCHIVE, filename="team.tar.gz").id


def debug(platform: Platform, user: User) -> int:
    with received(io.BytesIO(ARCHIVE), "team.tar.gz", limit_mb=1) as upload:
        where = (platform.database, platform.storage, user, platform.challenge, upload)
        return try_out(*where, arrived=utc_now()).id


def program(platform: Platform, **by: int) -> Program:
    with platform.database.read() as session:
        return session.query(Program).filter_by(**by).one()


def expire(platform: Platform, program_id: int) -> None:
    with platform.database.write() as session:
        session.get_one(Program, program_id).lease_until = utc_now() - dt.timedelta(seconds=1)


def test_programs_are_claimed_once_debug_runs_first_and_never_by_those_who_score(asking: Platform):
    users = [asking.captain(name) for name in ("ada", "bob", "cyd")]
    full = [hand_in(asking, user) for user in users]
    tried = debug(asking, users[2])
    assert queue.claim(asking.database, "scorer") is None and not RUNS.any_waits(asking.database)
    claims: list[program_queue.ProgramClaim] = []
    lock = threading.Lock()

    def work() -> None:
        while claimed := program_queue.claim(asking.database, "w"):
            with lock:
                claims.append(claimed)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed.submission_id or 0 for claimed in claims) == [0, *full]
    assert next(claimed.program_id for claimed in claims if claimed.debug) == tried
    assert len({claimed.fence for claimed in claims}) == len(claims)


def test_a_silent_worker_loses_its_program_and_can_hand_in_no_run(asking: Platform):
    number = hand_in(asking, asking.captain("ada"))
    stale = program_queue.claim(asking.database, "asleep")
    assert program_queue.claim(asking.database, "eager") is None  # the lease holds
    expire(asking, stale.program_id)
    fresh = program_queue.claim(asking.database, "eager")
    assert (fresh.program_id, fresh.attempt) == (stale.program_id, 2) and fresh.fence != stale.fence
    assert not PROGRAMS.renew(asking.database, stale) and PROGRAMS.renew(asking.database, fresh)
    run = WrittenRun("runs/1/a", 10, "a" * 64)
    for act in (
        lambda: program_queue.finish(asking.database, stale, "", run),
        lambda: program_queue.refuse(asking.database, stale, "no", "", []),
        lambda: program_queue.give_back(asking.database, stale, "no"),
        lambda: program_queue.release(asking.database, stale),
    ):
        with pytest.raises(StaleClaimError):
            act()
    assert queue.claim(asking.database, "scorer") is None
    program_queue.finish(asking.database, fresh, "", run)
    with pytest.raises(StaleClaimError):
        program_queue.finish(asking.database, stale, "", WrittenRun("runs/1/b", 10, "b" * 64))
    claimed = queue.claim(asking.database, "scorer")
    assert (claimed.submission_id, claimed.path, claimed.sha256) == (number, "runs/1/a", "a" * 64)
    queue.finish(asking.database, claimed, cards(0.5))
    assert asking.submission(number).state == "scored" and program_queue.claim(asking.database, "w") is None


def test_faults_of_the_platform_cost_nothing_and_a_failed_program_can_be_run_again(small_asking: Platform, monkeypatch):
    asking = small_asking
    monkeypatch.setattr(lease_queue, "RETRY_S", 0.0)
    ada = asking.captain("ada")
    number = hand_in(asking, ada)
    for _ in range(lease_queue.MAX_ATTEMPTS):
        program_queue.give_back(asking.database, program_queue.claim(asking.database, "w"), "the disk is full")
    found = asking.submission(number)
    assert (found.state, found.counted) == ("failed", False) and "disk" not in found.reason and "disk" in found.detail
    queue.rescore(asking.database, asking.admin, asking.challenge, only=number)
    again = program_queue.claim(asking.database, "w")
    assert again.submission_id == number and again.attempt == 1
    program_queue.refuse(asking.database, again, "The program failed.", "Traceback", [], "exit status 1")
    refused = asking.submission(number)
    queue.rescore(asking.database, asking.admin, asking.challenge, only=number)  # a limit was too low
    third = program_queue.claim(asking.database, "w")
    assert third.submission_id == number and asking.submission(number).state == "queued"
    assert refused.state == "refused" and not refused.problems and "Traceback" not in refused.reason + refused.detail


def test_a_worker_that_dies_each_time_ends_in_a_fault_and_not_in_an_endless_round(small_asking: Platform):
    asking = small_asking
    number = hand_in(asking, asking.captain("ada"))
    for _ in range(lease_queue.MAX_ATTEMPTS):
        expire(asking, program_queue.claim(asking.database, "doomed").program_id)
    assert program_queue.claim(asking.database, "w") is None
    assert asking.submission(number).state == "failed" and program(asking, submission_id=number).state == "failed"


def test_a_challenge_is_not_revealed_while_a_program_waits(small_asking: Platform):
    asking = small_asking
    hand_in(asking, asking.captain("ada"))
    asking.set_phase(ends_at=utc_now())
    with pytest.raises(ConflictError, match="still wait"):
        phases.reveal(asking.database, asking.admin, asking.challenge)


def test_what_a_program_wrote_counts_even_where_it_cannot_be_scored(small_asking: Platform):
    """Otherwise a program could look at the hidden items as often as it likes, and submit nothing that counts."""
    asking = small_asking
    number = hand_in(asking, asking.captain("ada"))
    program_queue.finish(asking.database, program_queue.claim(asking.database, "w"), "", WrittenRun("runs/1/a", 1, "a"))
    queue.refuse(
        asking.database,
        queue.claim(asking.database, "s"),
        [{"line": 1, "text": "zebra"}],
        "It has a problem.",
    )
    found = asking.submission(number)
    assert found.state == "refused" and found.counted and not found.problems
