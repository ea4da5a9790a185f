"""Teams merge and results are revealed amid scoring, on both databases: nothing is lost, nothing happens twice.

Something else is begun in the midst of a transaction and gets as far as it can: on PostgreSQL up to a lock, on SQLite,
where one writes at a time, not at all. Then both have to come to their end.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.challenges import phases, team_merges
from fieldmark_challenge.operations.lease_queue import StaleClaimError
from fieldmark_challenge.programs import program_queue
from fieldmark_challenge.programs.program_queue import WrittenRun
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission, User, utc_now
from fieldmark_challenge.scoring import queue, worker
from fieldmark_challenge.scoring.scoring_process import Outcome
from fieldmark_challenge.scoring.worker import Worker
from fieldmark_challenge.submissions import submissions
from fieldmark_challenge_tests.challenges.test_team_merges import allow
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.operations.test_clock_put_back import BACK, put_back
from fieldmark_challenge_tests.platform import Platform
from fieldmark_challenge_tests.programs.test_program_queue import ARCHIVE, ask_for_programs, expire

HEAD_START_S = 0.5


class Amid:
    """Begins something else once a function has been called so often.

    Args:
        monkeypatch: Undone after the test.
        where: The module of the function that is called in the midst of a transaction.
        name: What it is called.
        other: What is done meanwhile.
        call: Which call it is that counts.
    """

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, where: ModuleType, name: str, other: Callable[[], Any], call: int = 1
    ) -> None:
        self.came_of_it: list[Any] = []
        self._other, self._call, self._calls = other, call, 0
        self._thread = threading.Thread(target=self._do)
        kept = getattr(where, name)

        def called(*given: Any, **named: Any) -> Any:
            answer = kept(*given, **named)
            self._calls += threading.current_thread() is not self._thread
            if self._calls == self._call and threading.current_thread() is not self._thread:
                self._thread.start()
                self._thread.join(HEAD_START_S)
            return answer

        monkeypatch.setattr(where, name, called)

    def _do(self) -> None:
        try:
            self.came_of_it.append(self._other())
        except Exception as error:  # looked at by the tests, whatever it is
            self.came_of_it.append(error)

    def outcome(self) -> Any:
        """What came of it, an error included."""
        self._thread.join()
        return self.came_of_it[0]


def merging(platform: Platform, team: User, into: User) -> Callable[[], None]:
    """Two captains who agree; the second of them when it is called."""
    allow(platform)
    offer = team_merges.offer_merge(platform.database, team, platform.challenge, f"team {into.name}")
    return lambda: team_merges.settle_merge(platform.database, into, platform.challenge, offer.id, accept=True)


def scores(platform: Platform, submission_id: int) -> list[tuple[str, float | None]]:
    with platform.database.read() as session:
        rows = session.query(PartScore).filter_by(submission_id=submission_id)
        return sorted((row.part, row.value) for row in rows)


def test_a_run_is_scored_once_for_the_team_that_its_own_became_part_of(platform: Platform, monkeypatch):
    ada, bea = platform.captain("ada"), platform.captain("bea")
    run = platform.hand_in(ada)
    merge = merging(platform, ada, bea)
    claimed = queue.claim(platform.database, "w")
    meanwhile = Amid(monkeypatch, queue, "_scores", merge)
    queue.finish(platform.database, claimed, cards(0.4))
    assert meanwhile.outcome() is None
    found = platform.submission(run.id)
    assert (found.state, found.team_id) == ("scored", platform.team(bea).id)
    assert scores(platform, run.id) == [("private", 0.4), ("public", 0.4)]
    assert queue.claim(platform.database, "w") is None and platform.quota(bea).used == 1


def test_a_program_writes_its_run_for_the_team_that_its_own_became_part_of(platform: Platform, monkeypatch):
    """Neither waits for a row that the other has locked: PostgreSQL would have to end one of them."""
    ask_for_programs(platform)
    ada, bea = platform.captain("ada"), platform.captain("bea")
    number = platform.hand_in(ada, ARCHIVE, filename="team.tar.gz").id
    merge = merging(platform, ada, bea)
    claimed = program_queue.claim(platform.database, "w")
    program_queue.note_run(platform.database, claimed)
    meanwhile = Amid(monkeypatch, program_queue, "_submission", merge)
    program_queue.finish(platform.database, claimed, "", WrittenRun("runs/1/a", 10, "a" * 64))
    assert meanwhile.outcome() is None
    assert program_queue.claim(platform.database, "w") is None  # it is not run again
    to_score = queue.claim(platform.database, "s")
    assert (to_score.submission_id, to_score.path) == (number, "runs/1/a")
    queue.finish(platform.database, to_score, cards())
    assert platform.submission(number).team_id == platform.team(bea).id and platform.quota(ada).used == 1


def test_a_program_of_a_dead_worker_is_run_again_for_the_merged_team_and_charged_once(platform: Platform):
    ask_for_programs(platform)
    ada, bea = platform.captain("ada"), platform.captain("bea")
    number = platform.hand_in(ada, ARCHIVE, filename="team.tar.gz").id
    stale = program_queue.claim(platform.database, "dead")
    program_queue.note_run(platform.database, stale)
    merging(platform, ada, bea)()
    expire(platform, stale.program_id)
    fresh = program_queue.claim(platform.database, "w")
    assert fresh.submission_id == number
    with pytest.raises(StaleClaimError):
        program_queue.finish(platform.database, stale, "", WrittenRun("runs/1/b", 10, "b" * 64))
    program_queue.finish(platform.database, fresh, "", WrittenRun("runs/1/a", 10, "a" * 64))
    assert queue.claim(platform.database, "s").path == "runs/1/a" and platform.quota(bea).used == 1


def test_results_are_revealed_once_all_is_scored_and_then_no_score_changes(platform: Platform):
    run = platform.hand_in(platform.captain("ada"))
    asleep = queue.claim(platform.database, "asleep", lease_s=-1)
    platform.set_phase(ends_at=utc_now())
    with pytest.raises(ConflictError, match="1 runs still wait"):
        phases.reveal(platform.database, platform.admin, platform.challenge)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.4))
    phases.reveal(platform.database, platform.admin, platform.challenge)
    with pytest.raises(StaleClaimError):
        queue.finish(platform.database, asleep, cards(0.9))
    assert scores(platform, run.id) == [("private", 0.4), ("public", 0.4)]


def test_results_are_not_revealed_while_the_last_score_is_written(platform: Platform, monkeypatch):
    run = platform.hand_in(platform.captain("ada"))
    claimed = queue.claim(platform.database, "w")
    platform.set_phase(ends_at=utc_now())
    meanwhile = Amid(monkeypatch, queue, "_scores", lambda: reveal(platform))
    queue.finish(platform.database, claimed, cards(0.4))
    came_of_it = meanwhile.outcome()
    assert came_of_it is None or "still wait" in str(came_of_it)
    with platform.database.read() as session:
        revealed = session.get_one(Challenge, platform.challenge.id).revealed_at is not None
    assert revealed == (came_of_it is None) and scores(platform, run.id) == [("private", 0.4), ("public", 0.4)]


def reveal(platform: Platform) -> None:
    phases.reveal(platform.database, platform.admin, platform.challenge)


@pytest.mark.parametrize("moved", [BACK, -BACK], ids=["clock put back", "clock put forward"])
def test_a_worker_scores_once_for_the_right_team_whatever_happens_meanwhile(platform: Platform, monkeypatch, moved):
    """Teams merge, results are to be revealed and the clock jumps while a worker scores; a second worker looks on."""
    ada, bea = platform.captain("ada"), platform.captain("bea")
    run, merge = platform.hand_in(ada), merging(platform, ada, bea)
    other = Worker(platform.database, platform.storage, name="other")
    scored: list[str] = []

    def score(*_: object, **__: object) -> Outcome:
        scored.append("once more")
        if len(scored) == 1:
            merge()
            platform.set_phase(ends_at=utc_now())
            with pytest.raises(ConflictError, match="1 runs still wait"):
                reveal(platform)
            put_back(platform, moved)
            other.run_one()  # what the first one has begun, if its lease seems to have ended
            return Outcome(cards=cards(0.9 if len(scored) == 2 else 0.4))
        return Outcome(cards=cards(0.4))

    monkeypatch.setattr(worker, "score_in_sandbox", score)
    Worker(platform.database, platform.storage, name="first").run_one()
    assert not other.run_one()
    found = platform.submission(run.id)
    assert (found.state, found.team_id) == ("scored", platform.team(bea).id)
    assert scores(platform, run.id) == [("private", 0.4), ("public", 0.4)] and platform.quota(bea).used == 1


def hand_in_late(platform: Platform, user: User) -> Submission:
    """A run that had arrived before the phase ended, and was looked at since."""
    return platform.hand_in(user, arrived=utc_now() - dt.timedelta(minutes=5))


def end_phase(platform: Platform) -> User:
    ada, now = platform.captain("ada"), utc_now()
    platform.set_phase(starts_at=now - dt.timedelta(days=1), ends_at=now - dt.timedelta(minutes=1))
    return ada


def test_results_wait_for_a_run_that_is_just_being_accepted(platform: Platform, monkeypatch):
    ada = end_phase(platform)
    meanwhile = Amid(monkeypatch, submissions, "_check_limits", lambda: reveal(platform), call=2)
    assert hand_in_late(platform, ada).state == "queued"
    with pytest.raises(ConflictError, match="1 runs still wait"):
        raise meanwhile.outcome()


def test_a_run_that_comes_while_results_are_revealed_is_not_taken(platform: Platform, monkeypatch):
    ada = end_phase(platform)
    meanwhile = Amid(monkeypatch, phases, "_refuse_reveal", lambda: hand_in_late(platform, ada))
    reveal(platform)
    with pytest.raises(ConflictError, match="No phase is open"):
        raise meanwhile.outcome()
    with platform.database.read() as session:
        assert session.query(Submission).count() == 0
