"""The queue on both databases: claims, leases, fencing tokens, and scoring again."""

from __future__ import annotations

import datetime as dt
import threading
from dataclasses import replace

import pytest

from fieldmark.challenge.boards.finals import NO_RUN_WITHOUT, final_submissions
from fieldmark.challenge.records.schema import AuditEvent, Challenge, PartScore, Submission, utc_now
from fieldmark.challenge.refusals import ConflictError
from fieldmark.challenge.running import creating, phases
from fieldmark.challenge.scoring import queue
from fieldmark.challenge.scoring.queue import StaleClaimError
from fieldmark.challenge.scoring.sandbox import Outcome
from fieldmark.challenge.scoring.stored_scores import cards_of, challenge_scores, own_cards, parts_visible
from fieldmark.challenge.scoring.worker import Worker
from fieldmark.scoring import Score, Scorecard
from tests.challenge.platform import House, truth_text


def cards(value: float = 0.5) -> dict[str, Scorecard]:
    score = Score(value, value - 0.1, value + 0.1, "jackknife-t")
    metrics = {"macro_f1_all": score, "top_1": replace(score, value=value / 2)}
    return {
        part: Scorecard("folder", "1", part, 30, 15, 3, metrics, {}, pseudo={}, unit_ids=())
        for part in ("public", "private")
    }


def expire(house: House, submission_id: int) -> None:
    """As if the worker had not been heard of for longer than its lease."""
    with house.database.write() as session:
        session.get_one(Submission, submission_id).lease_until = utc_now() - dt.timedelta(seconds=1)


def test_runs_are_claimed_once_and_in_the_order_of_arrival(house: House):
    users = [house.captain(name) for name in ("ada", "bob", "cyd", "dan")]
    ids = [house.hand_in(user).id for user in users]
    claims: list[queue.Claim] = []
    lock = threading.Lock()

    def work() -> None:
        while claimed := queue.claim(house.database, "w"):
            with lock:
                claims.append(claimed)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed.submission_id for claimed in claims) == ids
    assert {claimed.fence for claimed in claims} == {1}


def test_positions_count_from_one_and_shrink(small_house: House):
    house = small_house
    user = house.captain("ada")
    ids = [house.hand_in(user).id for _ in range(3)]

    def positions() -> list[int | None]:
        with house.database.read() as session:
            return [queue.position(session, session.get_one(Submission, number)) for number in ids]

    assert positions() == [1, 2, 3]
    queue.claim(house.database, "w")
    assert positions() == [None, 1, 2]


def test_a_silent_worker_loses_its_run_and_cannot_overwrite(house: House):
    run = house.hand_in(house.captain("ada"))
    stale = queue.claim(house.database, "asleep")
    assert queue.claim(house.database, "eager") is None  # the lease holds
    expire(house, run.id)
    fresh = queue.claim(house.database, "eager")
    assert fresh.submission_id == run.id and fresh.fence == stale.fence + 1
    assert not queue.renew(house.database, stale) and queue.renew(house.database, fresh)
    for act in (
        lambda: queue.finish(house.database, stale, cards(0.9)),
        lambda: queue.refuse(house.database, stale, [], "no"),
        lambda: queue.give_back(house.database, stale, "no"),
        lambda: queue.release(house.database, stale),
    ):
        with pytest.raises(StaleClaimError):
            act()
    queue.finish(house.database, fresh, cards(0.4))
    with pytest.raises(StaleClaimError):
        queue.finish(house.database, stale, cards(0.9))  # not even when all is done
    found = house.submission(run.id)
    assert found.state == "scored" and sorted((row.part, row.value) for row in found.scores) == [
        ("private", 0.4),
        ("public", 0.4),
    ]


def test_a_renewed_lease_is_not_taken(house: House):
    house.hand_in(house.captain("ada"))
    claimed = queue.claim(house.database, "busy", lease_s=0.3)
    queue.renew(house.database, claimed, lease_s=60)
    threading.Event().wait(0.4)
    assert queue.claim(house.database, "eager") is None


def test_attempts_after_a_fault_wait_longer_and_longer(house: House):
    run = house.hand_in(house.captain("ada"))
    waits = []
    for _ in range(queue.MAX_ATTEMPTS - 1):
        queue.give_back(house.database, queue.claim(house.database, "w"), "the store does not answer")
        found = house.submission(run.id)
        waits.append((found.lease_until - found.finished_at).total_seconds())
        assert found.state == "queued" and queue.claim(house.database, "eager") is None
        expire(house, run.id)
    assert waits == pytest.approx([30, 120, 480], abs=1)
    queue.give_back(house.database, queue.claim(house.database, "w"), "the store does not answer")
    assert house.submission(run.id).state == "failed"


def test_a_run_that_kills_every_worker_ends_as_failed_and_costs_nothing(house: House):
    user = house.captain("ada")
    run = house.hand_in(user)
    for _ in range(queue.MAX_ATTEMPTS):
        assert queue.claim(house.database, "doomed") is not None
        expire(house, run.id)
    assert queue.claim(house.database, "wary") is None
    found = house.submission(run.id)
    assert found.state == "failed" and found.reason == queue.FAULT and house.quota(user).used == 0


def test_scoring_anew_keeps_acceptance_times_and_old_scores_until_the_new_ones_are_there(house: House):
    user = house.captain("ada")
    run = house.hand_in(user)
    queue.finish(house.database, queue.claim(house.database, "w"), cards(0.5))
    later = house.hand_in(user)
    running = queue.claim(house.database, "old truth")
    assert queue.rescore(house.database, house.admin, house.challenge) == 2
    with pytest.raises(StaleClaimError):
        queue.finish(house.database, running, cards(0.1))  # scored against the old truth
    with house.database.read() as session:
        challenge = session.get_one(Challenge, house.challenge.id)
        assert challenge.revision == 2
        assert [card.metrics["macro_f1_all"].value for _, card in challenge_scores(session, challenge, "public")] == [
            0.5
        ]
    while claimed := queue.claim(house.database, "w"):
        queue.finish(house.database, claimed, cards(0.7))
    for before in (run, later):
        after = house.submission(before.id)
        assert after.accepted_at == before.accepted_at and after.quota_day == before.quota_day
        assert {row.value for row in after.scores} == {0.7} and {row.revision for row in after.scores} == {2}
    with house.database.read() as session:
        noted = session.query(AuditEvent).filter_by(action="submission.rescored").one()
    assert noted.details["before"] == 0.5 and noted.details["after"] == 0.7


def test_new_runs_come_before_those_scored_anew(small_house: House):
    house = small_house
    user = house.captain("ada")
    old = house.hand_in(user)
    queue.finish(house.database, queue.claim(house.database, "w"), cards())
    queue.rescore(house.database, house.admin, house.challenge)
    new = house.hand_in(user)
    assert [queue.claim(house.database, "w").submission_id for _ in range(2)] == [new.id, old.id]


def test_a_mended_truth_is_about_the_same_items(small_house: House):
    house = small_house
    mended, other = house.folder / "mended.csv", house.folder / "other.csv"
    mended.write_text(truth_text(swapped=True))
    other.write_text(truth_text() + "i60,a,u30\n")
    before = house.challenge.truth_sha256
    run = house.hand_in(house.captain("ada"))
    claimed = queue.claim(house.database, "w")
    assert creating.replace_truth(house.database, house.storage, house.admin, house.challenge, mended) == 1
    with house.database.read() as session:
        after = session.get_one(Challenge, house.challenge.id)
    assert after.revision == house.challenge.revision + 1 and house.submission(run.id).state == "queued"
    with pytest.raises(queue.StaleClaimError):  # a score against the old truth is not wanted any more
        queue.finish(house.database, claimed, cards())
    assert after.truth_sha256 != before and after.truth_path != house.challenge.truth_path
    assert house.storage.exists(f"{house.challenge.truth_path}/truth.csv")  # the old one is kept
    with pytest.raises(creating.RefusalError, match="other items"):
        creating.replace_truth(house.database, house.storage, house.admin, after, other)


def test_private_scores_are_for_organizers_until_they_are_revealed(small_house: House):
    house = small_house
    run = house.hand_in(house.captain("ada"))
    queue.finish(house.database, queue.claim(house.database, "w"), cards())
    with house.database.read() as session:
        challenge, found = session.get_one(Challenge, house.challenge.id), session.get_one(Submission, run.id)
        assert set(own_cards(session, challenge, found, manages=False)) == {"public"}
        assert set(own_cards(session, challenge, found, manages=True)) == {"public", "private"}
    with pytest.raises(ConflictError, match="still open"):
        phases.reveal(house.database, house.admin, house.challenge)
    waiting = house.hand_in(house.people["ada"])
    house.set_phase(ends_at=utc_now())
    with pytest.raises(ConflictError, match="1 runs still wait"):
        phases.reveal(house.database, house.admin, house.challenge)
    queue.finish(house.database, queue.claim(house.database, "w"), cards())
    phases.reveal(house.database, house.admin, house.challenge)
    with house.database.read() as session:
        challenge = session.get_one(Challenge, house.challenge.id)
        assert parts_visible(challenge, False) == ("public", "private")
        assert len(cards_of(session, session.get_one(Submission, waiting.id), ("public", "private"))) == 2


def test_a_frozen_board_shows_what_was_accepted_before(small_house: House):
    house = small_house
    user = house.captain("ada")
    early = house.hand_in(user)
    phases.freeze(house.database, house.admin, house.challenge)
    house.hand_in(user)
    while claimed := queue.claim(house.database, "w"):
        queue.finish(house.database, claimed, cards())
    with house.database.read() as session:
        challenge = session.get_one(Challenge, house.challenge.id)
        shown = challenge_scores(session, challenge, "public", until=challenge.frozen_at)
        assert [submission.id for submission, _ in shown] == [early.id]
        assert len(challenge_scores(session, challenge, "public")) == 2


def test_final_runs_are_those_chosen_or_the_best_public_ones(small_house: House):
    house = small_house
    ada, bob = house.captain("ada"), house.captain("bob")
    values = (0.3, 0.6, 0.5)
    for user in (ada, bob):
        for value in values:
            house.hand_in(user, external_data=user is bob, external_note="web" if user is bob else "")
            queue.finish(house.database, queue.claim(house.database, "w"), cards(value))
    with house.database.write() as session:
        mine = session.query(Submission).filter_by(user_id=ada.id).order_by(Submission.id).first()
        mine.selected = True
        session.get_one(Challenge, house.challenge.id).needs_run_without_external = True
    with house.database.read() as session:
        finals = final_submissions(session, session.get_one(Challenge, house.challenge.id))
        value_of = {row.submission_id: row.value for row in session.query(PartScore).filter_by(part="public")}
    of_ada = [final for final in finals if final.submission.user_id == ada.id]
    of_bob = [final for final in finals if final.submission.user_id == bob.id]
    assert [(value_of[final.submission.id], final.chosen, final.eligible) for final in of_ada] == [(0.3, True, True)]
    assert [value_of[final.submission.id] for final in of_bob] == [0.6, 0.5]
    assert all(not final.eligible and final.reason == NO_RUN_WITHOUT for final in of_bob)


def test_a_score_that_is_no_number_is_never_ranked(small_house: House):
    house = small_house
    run = house.hand_in(house.captain("ada"))
    claimed = queue.claim(house.database, "w")
    Worker(house.database, house.storage)._settle(claimed, Outcome(cards=cards(float("nan"))))
    found = house.submission(run.id)
    assert found.state == "refused" and "not a number" in found.reason and not found.scores and not found.counted
