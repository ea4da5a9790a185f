"""The queue on both databases: claims, leases, fencing tokens, and scoring again."""

from __future__ import annotations

import datetime as dt
import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fieldmark.scoring.receipts import make_receipt
from fieldmark.web.refusals import ConflictError
from fieldmark_challenge.boards.own_scores import own_cards
from fieldmark_challenge.boards.visibility import entry_of, look
from fieldmark_challenge.challenges import phases
from fieldmark_challenge.challenges.exports import export_rows
from fieldmark_challenge.lifecycle import creation
from fieldmark_challenge.operations import lease_queue
from fieldmark_challenge.operations.lease_queue import RUNS, StaleClaimError
from fieldmark_challenge.records.schema import AuditEvent, Challenge, Submission, utc_now
from fieldmark_challenge.scoring import queue
from fieldmark_challenge.scoring.stored_scores import cards_of, challenge_scores, parts_visible
from fieldmark_challenge_tests.hosting import cards, entrants
from fieldmark_challenge_tests.platform import Platform, truth_text


def expire(platform: Platform, submission_id: int) -> None:
    """As if the worker had not been heard of for longer than its lease."""
    with platform.database.write() as session:
        session.get_one(Submission, submission_id).lease_until = utc_now() - dt.timedelta(seconds=1)


def test_runs_are_claimed_once_and_in_the_order_of_arrival(platform: Platform):
    users = [platform.captain(name) for name in ("ada", "bob", "cyd", "dan")]
    ids = [platform.hand_in(user).id for user in users]
    claims: list[queue.Claim] = []
    lock = threading.Lock()

    def work() -> None:
        while claimed := queue.claim(platform.database, "w"):
            with lock:
                claims.append(claimed)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(claimed.submission_id for claimed in claims) == ids
    assert len({claimed.fence for claimed in claims}) == len(claims)


def test_positions_count_from_one_and_shrink(small_platform: Platform):
    platform = small_platform
    user = platform.captain("ada")
    ids = [platform.hand_in(user).id for _ in range(3)]

    def positions() -> list[int | None]:
        with platform.database.read() as session:
            return [queue.position(session, session.get_one(Submission, number)) for number in ids]

    assert positions() == [1, 2, 3]
    queue.claim(platform.database, "w")
    assert positions() == [None, 1, 2]


def test_a_silent_worker_loses_its_run_and_cannot_overwrite(platform: Platform):
    run = platform.hand_in(platform.captain("ada"))
    stale = queue.claim(platform.database, "asleep")
    assert queue.claim(platform.database, "eager") is None  # the lease holds
    expire(platform, run.id)
    fresh = queue.claim(platform.database, "eager")
    assert fresh.submission_id == run.id and fresh.fence != stale.fence
    assert not RUNS.renew(platform.database, stale) and RUNS.renew(platform.database, fresh)
    for act in (
        lambda: queue.finish(platform.database, stale, cards(0.9)),
        lambda: queue.refuse(platform.database, stale, [], "no"),
        lambda: queue.give_back(platform.database, stale, "no"),
        lambda: queue.release(platform.database, stale),
    ):
        with pytest.raises(StaleClaimError):
            act()
    queue.finish(platform.database, fresh, cards(0.4))
    with pytest.raises(StaleClaimError):
        queue.finish(platform.database, stale, cards(0.9))  # not even when all is done
    found = platform.submission(run.id)
    assert found.state == "scored" and sorted((row.part, row.value) for row in found.scores) == [
        ("private", 0.4),
        ("public", 0.4),
    ]


def test_a_renewed_lease_is_not_taken(platform: Platform):
    platform.hand_in(platform.captain("ada"))
    claimed = queue.claim(platform.database, "busy", lease_s=0.3)
    RUNS.renew(platform.database, claimed, lease_s=60)
    threading.Event().wait(0.4)
    assert queue.claim(platform.database, "eager") is None


def test_attempts_after_a_fault_wait_longer_and_longer(platform: Platform):
    run = platform.hand_in(platform.captain("ada"))
    waits = []
    for _ in range(lease_queue.MAX_ATTEMPTS - 1):
        queue.give_back(platform.database, queue.claim(platform.database, "w"), "the store does not answer")
        found = platform.submission(run.id)
        waits.append((found.lease_until - found.finished_at).total_seconds())
        assert found.state == "queued" and queue.claim(platform.database, "eager") is None
        expire(platform, run.id)
    assert waits == pytest.approx([30, 120, 480], abs=1)
    queue.give_back(platform.database, queue.claim(platform.database, "w"), "the store does not answer")
    assert platform.submission(run.id).state == "failed"


def test_a_run_that_kills_every_worker_ends_as_failed_and_costs_nothing(platform: Platform):
    user = platform.captain("ada")
    run = platform.hand_in(user)
    for _ in range(lease_queue.MAX_ATTEMPTS):
        assert queue.claim(platform.database, "doomed") is not None
        expire(platform, run.id)
    assert queue.claim(platform.database, "wary") is None
    found = platform.submission(run.id)
    assert found.state == "failed" and found.reason == queue.UNCHARGED and platform.quota(user).used == 0


def test_a_run_whose_workers_died_twice_lets_those_that_wait_go_first(platform: Platform):
    first, second, third = [platform.hand_in(platform.captain(name)).id for name in ("ada", "bob", "cyd")]
    for _ in range(lease_queue.TRIED_IN_VAIN):
        assert queue.claim(platform.database, "w").submission_id == first
        expire(platform, first)
    later = platform.hand_in(platform.captain("dan")).id
    taken = [queue.claim(platform.database, "w").submission_id for _ in range(3)]
    assert taken == [second, third, first]  # but what came after its last attempt waits for it
    with platform.database.read() as session:
        assert queue.position(session, session.get_one(Submission, later)) == 1


def test_scoring_anew_keeps_acceptance_times_and_old_scores_until_the_new_ones_are_there(platform: Platform):
    user = platform.captain("ada")
    run = platform.hand_in(user)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards(0.5))
    later = platform.hand_in(user)
    running = queue.claim(platform.database, "old truth")
    assert queue.rescore(platform.database, platform.admin, platform.challenge) == 2
    with pytest.raises(StaleClaimError):
        queue.finish(platform.database, running, cards(0.1))  # scored against the old truth
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        assert challenge.revision == 2
        assert [card.metrics["macro_f1_all"].value for _, card in challenge_scores(session, challenge, "public")] == [
            0.5
        ]
    while claimed := queue.claim(platform.database, "w"):
        queue.finish(platform.database, claimed, cards(0.7))
    for before in (run, later):
        after = platform.submission(before.id)
        assert after.accepted_at == before.accepted_at and after.quota_day == before.quota_day
        assert {row.value for row in after.scores} == {0.7} and {row.revision for row in after.scores} == {2}
    with platform.database.read() as session:
        noted = session.query(AuditEvent).filter_by(action="submission.rescored").one()
    assert noted.details["before"] == 0.5 and noted.details["after"] == 0.7


def test_new_runs_come_before_those_scored_anew(small_platform: Platform):
    platform = small_platform
    user = platform.captain("ada")
    old = platform.hand_in(user)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards())
    queue.rescore(platform.database, platform.admin, platform.challenge)
    new = platform.hand_in(user)
    assert [queue.claim(platform.database, "w").submission_id for _ in range(2)] == [new.id, old.id]


def test_a_mended_truth_is_about_the_same_items(small_platform: Platform):
    platform = small_platform
    mended, other = platform.folder / "mended.csv", platform.folder / "other.csv"
    mended.write_text(truth_text(swapped=True))
    other.write_text(truth_text() + "i60,a,u30\n")
    before = platform.challenge.truth_sha256
    run = platform.hand_in(platform.captain("ada"))
    claimed = queue.claim(platform.database, "w")
    assert creation.replace_truth(platform.database, platform.storage, platform.admin, platform.challenge, mended) == 1
    with platform.database.read() as session:
        after = session.get_one(Challenge, platform.challenge.id)
    assert after.revision == platform.challenge.revision + 1 and platform.submission(run.id).state == "queued"
    with pytest.raises(lease_queue.StaleClaimError):  # a score against the old truth is not wanted any more
        queue.finish(platform.database, claimed, cards())
    assert after.truth_sha256 != before and after.truth_path != platform.challenge.truth_path
    assert platform.storage.exists(f"{platform.challenge.truth_path}/truth.csv")  # the old one is kept
    with pytest.raises(creation.RefusalError, match="other items"):
        creation.replace_truth(platform.database, platform.storage, platform.admin, after, other)


def test_private_scores_are_for_organizers_until_they_are_revealed(small_platform: Platform):
    platform = small_platform
    run = platform.hand_in(platform.captain("ada"))
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards())
    with platform.database.read() as session:
        challenge, found = session.get_one(Challenge, platform.challenge.id), session.get_one(Submission, run.id)
        assert set(own_cards(session, challenge, found, manages=False)) == {"public"}
        assert set(own_cards(session, challenge, found, manages=True)) == {"public", "private"}
    with pytest.raises(ConflictError, match="still open"):
        phases.reveal(platform.database, platform.admin, platform.challenge)
    waiting = platform.hand_in(platform.people["ada"])
    platform.set_phase(ends_at=utc_now())
    with pytest.raises(ConflictError, match="1 runs still wait"):
        phases.reveal(platform.database, platform.admin, platform.challenge)
    queue.finish(platform.database, queue.claim(platform.database, "w"), cards())
    phases.reveal(platform.database, platform.admin, platform.challenge)
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        assert parts_visible(challenge, False) == ("public", "private")
        assert len(cards_of(session, session.get_one(Submission, waiting.id), ("public", "private"))) == 2


def test_a_frozen_board_shows_what_was_accepted_before(small_platform: Platform):
    platform = small_platform
    user = platform.captain("ada")
    early = platform.hand_in(user)
    phases.freeze(platform.database, platform.admin, platform.challenge)
    platform.hand_in(user)
    while claimed := queue.claim(platform.database, "w"):
        queue.finish(platform.database, claimed, cards())
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        shown = challenge_scores(session, challenge, "public", until=challenge.frozen_at)
        assert [submission.id for submission, _ in shown] == [early.id]
        assert len(challenge_scores(session, challenge, "public")) == 2


def test_a_pause_set_by_a_clock_that_was_put_back_does_not_last(platform: Platform):
    run = platform.hand_in(platform.captain("ada"))
    queue.give_back(platform.database, queue.claim(platform.database, "w"), "a fault")
    assert queue.claim(platform.database, "w") is None  # it waits for its pause to end
    with platform.database.write() as session:
        row = session.get_one(Submission, run.id)
        row.lease_until = utc_now() + dt.timedelta(hours=2)  # the clock was two hours ahead
    claimed = queue.claim(platform.database, "w")
    assert claimed is not None and claimed.submission_id == run.id


def test_what_cards_say_of_a_hidden_truth_is_salted_and_stays_on_the_server(small_platform: Platform, tmp_path: Path):
    platform = small_platform
    user, made = platform.captain("ada"), entrants(tmp_path, {"ada": 0.9})[0].card
    plain = made.digests
    for _ in range(2):
        platform.hand_in(user)
        claimed = queue.claim(platform.database, "w")
        queue.finish(platform.database, claimed, {"public": made, "private": replace(made, split="private")})
    with platform.database.read() as session:
        challenge = session.get_one(Challenge, platform.challenge.id)
        found = challenge_scores(session, challenge, "public")
        stored = [card.digests for _, card in found]
        row = session.get_one(Submission, found[0][0].id)
        receipt = make_receipt(
            cards_of(session, row, ("public",))["public"], challenge="c", submission="1", team="ada",
            accepted=utc_now(), salt="s", hidden=True,
        )  # fmt: skip
        shown = entry_of(session, look(challenge, "public", manages=False, team=row.team), str(row.id)).card.to_json()
        handed_out = json.dumps([receipt, shown, export_rows(session, challenge)], default=str)
    assert stored[0] == stored[1] and stored[0]["truth"] != plain["truth"]
    assert stored[0]["classes"] == plain["classes"] and stored[0]["conventions"] == plain["conventions"]
    secrets = [plain["truth"], stored[0]["truth"], *plain["facts"].values(), *stored[0]["facts"].values()]
    assert not [secret for secret in secrets if secret in handed_out]
