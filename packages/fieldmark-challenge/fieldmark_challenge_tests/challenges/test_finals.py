"""Which runs count in the end."""

from __future__ import annotations

from fieldmark_challenge.challenges.finals import NO_RUN_WITHOUT, final_submissions
from fieldmark_challenge.records.schema import Challenge, PartScore, Submission
from fieldmark_challenge.scoring import queue
from fieldmark_challenge_tests.hosting import cards
from fieldmark_challenge_tests.platform import Platform


def test_final_runs_are_those_chosen_or_the_best_public_ones(small_platform: Platform):
    platform = small_platform
    ada, bob = platform.captain("ada"), platform.captain("bob")
    values = (0.3, 0.6, 0.5)
    for user in (ada, bob):
        for value in values:
            platform.hand_in(user, external_data=user is bob, external_note="web" if user is bob else "")
            queue.finish(platform.database, queue.claim(platform.database, "w"), cards(value))
    with platform.database.write() as session:
        mine = session.query(Submission).filter_by(user_id=ada.id).order_by(Submission.id).first()
        mine.selected = True
        session.get_one(Challenge, platform.challenge.id).needs_run_without_external = True
    with platform.database.read() as session:
        finals = final_submissions(session, session.get_one(Challenge, platform.challenge.id))
        value_of = {row.submission_id: row.value for row in session.query(PartScore).filter_by(part="public")}
    of_ada = [final for final in finals if final.submission.user_id == ada.id]
    of_bob = [final for final in finals if final.submission.user_id == bob.id]
    assert [(value_of[final.submission.id], final.chosen, final.eligible) for final in of_ada] == [(0.3, True, True)]
    assert [value_of[final.submission.id] for final in of_bob] == [0.6, 0.5]
    assert all(not final.eligible and final.reason == NO_RUN_WITHOUT for final in of_bob)
